/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The sending half of a QP: takes WQEs and sends packets.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_REQUESTER_H
#define SOFTHCA_DEVICE_TRANSPORT_REQUESTER_H

#include "softhca/device/memory/qp_context.h"
#include "packet.h"

/* Run the send queue from this thread if nobody does. Locked on entry, unlocked on return; the thread is in the
 * device (sh_enter) and in the process that owns the QP. */
void sh_requester_run(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);
/* Send again from the oldest PSN that is not acknowledged. Locked. */
void sh_requester_rewind(struct sh_qp *qp);

/* A response reached the requester of a QP, outside of its engine: takes the QP's lock. */
void sh_response(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint32_t gen, const struct sh_packet *resp);

#endif
