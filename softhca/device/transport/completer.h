/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Takes in responses, and completes WQEs of the send queue. The caller holds the requester's lock.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_COMPLETER_H
#define SOFTHCA_DEVICE_TRANSPORT_COMPLETER_H

#include "softhca/device/queues/wqe.h"
#include "packet.h"

/*
 * Takes in one response; SH_PKT_NONE: SH_BUSY. cache: the WQE that the caller has parsed last,
 * which saves reading it again if the response is about it, or NULL.
 */
void sh_complete(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		 const struct sh_packet *resp, struct sh_wqe *cache);
/*
 * Takes in the answer that was put off, if there is one. held: rnr_waiting as it was before the
 * caller set it to 0.
 */
void sh_take_held(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t held);
/*
 * Takes in the answer that a thread has left in the QP (sh_left()), if there is one. The caller is
 * pinned, or comes here again if it is thrown.
 */
void sh_take_left(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);
/* An answer came: sets the counters of retries and the timer back to where they begin. */
static inline void sh_progress(struct sh_qp *qp)
{
	qp->retry_left = qp->retry_cnt;
	qp->rnr_left = qp->rnr_retry;
	if (!qp->rnr_waiting)
		qp->deadline = 0;
}
/*
 * Retires the oldest WQE; the next one begins at psn. One store changes both words: a thread that
 * was thrown between two stores would go on with the wrong PSN (life.h).
 */
static inline void sh_step_una(struct sh_qp *qp, uint32_t psn)
{
	__atomic_store_n((uint64_t *)&qp->sq_una, sh_two(qp->sq_una + 1, psn), __ATOMIC_RELAXED);
}
/*
 * Is this WQE the only one without an answer, and does it bring back no data? Then an
 * acknowledgement of what was sent last is that of this WQE.
 */
static inline bool sh_wqe_alone(const struct sh_qp *qp, const struct sh_wqe *wqe)
{
	return !sh_wqe_is_fetch(wqe) && wqe->index == qp->sq_una && qp->sq_una + 1 == qp->sq_next;
}
/*
 * The WQE that was sent last has arrived. Retires it without any further lock, if it asks for no
 * CQE and sh_wqe_alone() holds. False: it has changed nothing, and the caller uses sh_complete().
 */
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
/*
 * Retires the oldest WQE, and writes its CQE if it asks for one. 0; -ENOSPC: the CQ overran, and
 * the QP is in ERR; -EINPROGRESS: the CQ is not to be had now, and this is put off (sh_put_off()).
 */
int sh_complete_wqe(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		    const struct sh_wqe *wqe);

#endif
