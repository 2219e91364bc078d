/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Both halves of a QP (memory/qp_context.h) at once: their locks, and transactions over them.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_QP_HALVES_H
#define SOFTHCA_DEVICE_QUEUES_QP_HALVES_H

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/qp_context.h"

/*
 * Takes the requester's lock, then the responder's. 0; -EINPROGRESS: what sh_lock_mine() says, and
 * the thread holds neither.
 */
int sh_qp_lock_both(struct sh_dev *dev, struct sh_qp *qp);
/* The same for who comes back by a timer, whatever the service is: it waits briefly. */
int sh_qp_lock_both_briefly(struct sh_dev *dev, struct sh_qp *qp);
void sh_qp_unlock_both(struct sh_dev *dev, struct sh_qp *qp);

/* Begins a transaction that changes both halves. */
static inline void sh_qp_txn(struct sh_txn_open *t, struct sh_dev *dev, struct sh_qp *qp)
{
	sh_txn_begin(t, dev, &qp->txn, &qp->rlock);
	sh_txn_covers(t, &qp->lock);
}

/*
 * Takes back the WQEs that the requester has retired before the receiver committed their messages,
 * if its thread was stopped in between. The caller holds the requester's lock.
 */
static inline void sh_qp_to_floor(struct sh_qp *qp)
{
	if (!qp->has_floor)
		return;
	__atomic_store_n((uint64_t *)&qp->sq_una, qp->floor, __ATOMIC_RELAXED);
	/* A thread that dies or is thrown in between leaves the same to do. */
	sh_program_order();
	qp->has_floor = 0;
}

/*
 * Has the wire's engine still to send what has been posted? A card sends it within microseconds, so
 * programs post messages, and end the QP without another look. A card does not wait for answers to
 * what it has sent before, either. But what it sends to a receiver that is not ready is lost with
 * the QP, and a peer that has not answered in time may be gone. A peer that has reported a loss is
 * there, although the resend took a retry. The caller holds the requester's lock.
 */
static inline bool sh_qp_is_leaving(const struct sh_dev *dev, const struct sh_qp *qp)
{
	return qp->state == SH_QPS_RTS && !qp->silent &&
	       (qp->wire_left & SH_WIRE_ASKED ||
		(qp->wire_left & SH_WIRE_UNSENT &&
		 (!qp->rnr_waiting || qp->rnr_waiting & SH_PUT_OFF) &&
		 (qp->retry_left == qp->retry_cnt || qp->went_back == qp->ack_psn + 1)) ||
		(qp->engine && qp->engine == qp->wire_engine)) &&
	       __atomic_load_n(&dev->inst->wire.proc, __ATOMIC_RELAXED);
}

#endif
