/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Responses, and the completions of the send queue. The requester's lock is held.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_COMPLETER_H
#define SOFTHCA_DEVICE_TRANSPORT_COMPLETER_H

#include "softhca/device/queues/wqe.h"
#include "packet.h"

/* Execute a response. cache: a parsed WQE that may be the one in question, or NULL. */
void sh_complete(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *resp,
		 struct sh_wqe *cache);
/* An answer came: what was counted and waited for begins anew. */
static inline void sh_progress(struct sh_qp *qp)
{
	qp->retry_left = qp->retry_cnt;
	qp->rnr_left = qp->rnr_retry;
	if (!qp->rnr_waiting)
		qp->deadline = 0;
}
/* The oldest WQE is done, and the next one begins at psn. Both at once, or a thread that is thrown in between goes on with the
 * wrong PSN (life.h). */
static inline void sh_step_una(struct sh_qp *qp, uint32_t psn)
{
	__atomic_store_n((uint64_t *)&qp->sq_una, sh_two(qp->sq_una + 1, psn), __ATOMIC_RELAXED);
}
/* Nothing else is on its way, and no data comes back: an acknowledgement of what was sent last is one of this WQE. */
static inline bool sh_wqe_alone(const struct sh_qp *qp, const struct sh_wqe *wqe)
{
	return !sh_wqe_is_fetch(wqe) && wqe->index == qp->sq_una && qp->sq_una + 1 == qp->sq_next;
}
/* The WQE sent last has arrived. If it is the only one and neither returns data nor wants a CQE, it is done, and no lock
 * was needed. false: not so. */
static inline bool sh_complete_quiet(struct sh_qp *qp, const struct sh_wqe *wqe)
{
	if (wqe->signaled || !sh_wqe_alone(qp, wqe))
		return false;
	sh_progress(qp);
	sh_step_una(qp, qp->next_psn);
	qp->ack_psn = qp->next_psn;
	qp->messages_sent++;
	return true;
}
/* The oldest WQE is done: CQE when it asks for one, and on to the next. -ENOSPC: the CQ overran and the QP is in ERR. */
int sh_complete_wqe(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_wqe *wqe);

#endif
