/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The sending half of a QP: takes WQEs and sends packets.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_REQUESTER_H
#define SOFTHCA_DEVICE_TRANSPORT_REQUESTER_H

#include "softhca/device/memory/qp_context.h"
#include "packet.h"

/*
 * Runs the send queue in this thread, unless another thread runs it already; that one then looks
 * at the queue once more. Does nothing in a process that does not own the QP, but for the wire's
 * engine. The caller is in device code (sh_enter()) and holds the requester's lock, which this
 * function releases.
 */
void sh_requester_run(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);
/*
 * Makes the requester send again from the oldest PSN that is not acknowledged. The caller holds the
 * requester's lock.
 */
void sh_requester_rewind(struct sh_qp *qp);

/*
 * The wire's engine, which may have run this requester, has ended: the owner goes on, from the
 * oldest WQE that is not complete. The caller is in device code and holds the requester's lock,
 * which this function releases.
 */
void sh_requester_inherit(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);

/*
 * This thread does not get the lock of a QP whose engine it runs (sh_lock_within()). The helper
 * thread puts the engine in order when the lock is to be had: it goes back to the oldest WQE. True;
 * or what sh_defer_or_lock() says.
 */
bool sh_requester_leave(struct sh_dev *dev, struct sh_qp *qp, uint32_t token);

/* Takes in a response that comes to a QP outside of its engine. Takes the requester's lock. */
void sh_response(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint32_t gen,
		 const struct sh_packet *resp);

#endif
