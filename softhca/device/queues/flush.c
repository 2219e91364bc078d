// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Errors and flushing. The thread that moves a QP to ERR or SQE flushes what is posted by then,
 * under both of the QP's locks and in posting order. Sends that are posted later are flushed when
 * their doorbell rings. Receives that are posted later ring none: in kick the call that posts them
 * flushes them (doorbell.c), else the owner's helper thread, which looks again and again while the
 * QP is in ERR. No function here runs the requester.
 */
#include <errno.h>

#include "softhca/device/memory/exec.h"
#include "attention.h"
#include "cqe.h"
#include "flush.h"
#include "qp_halves.h"
#include "rq_receives.h"

#define POLL_FIRST_NS UINT64_C(1000000)
#define POLL_LAST_NS  UINT64_C(50000000)

void sh_qp_event(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t event)
{
	struct sh_txn_open t;

	sh_qp_txn(&t, dev, qp);
	sh_txn_async_event(&t, hca->index, event, qp->qpn);
	sh_txn_commit(&t);
}

/* ---- one CQE ---- */

/*
 * Commits t with this CQE in it. A CQ that is gone or full gets no CQE. 0, or -EINPROGRESS: nothing
 * was done.
 */
static int commit_with(struct sh_txn_open *t, struct sh_dev *dev, struct sh_hca *hca, uint32_t cqn,
		       const struct sh_cqe *cqe)
{
	struct sh_cq *cq = cqn ? sh_cq_of(hca, cqn) : NULL;

	if (cq) {
		if (sh_lock_mine(dev, &cq->lock, SH_WAIT_BRIEFLY))
			return -EINPROGRESS;
		sh_txn_covers(t, &cq->lock);
		sh_cq_put(t, hca, cq, cqe);
	}
	sh_txn_commit(t);
	if (cq)
		sh_cq_let_go(dev, cq);
	return 0;
}

/* ---- queues ---- */

static int flush_sends(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	sh_qp_to_floor(qp);
	while (sh_wqe_posted(dev, qp, qp->sq_una) == 1) {
		struct sh_cqe cqe = sh_cqe_failed(qp, true, 0, qp->sq_una, MLX4_SYNDROME_WR_FLUSH,
						  SH_VENDOR_FLUSH_SQ);
		struct sh_txn_open t;

		sh_qp_txn(&t, dev, qp);
		sh_txn_store32(&t, &qp->sq_una, qp->sq_una + 1);
		if (commit_with(&t, dev, hca, qp->send_cqn, &cqe))
			return -EINPROGRESS;
	}
	qp->sq_next = qp->sq_begun = qp->sq_una;
	qp->next_wqe_psn = qp->next_psn = qp->ack_psn = qp->una_psn;
	qp->rd_out = 0;
	return 0;
}

static int flush_receives(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	uint32_t posted;

	while (qp->rq_present && !sh_umem_load32(dev, &qp->rq_db, 0, &posted) &&
	       sh_posted(posted, qp->rq_consumed)) {
		struct sh_cqe cqe = sh_cqe_failed(qp, false, 0, qp->rq_consumed,
						  MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
		struct sh_txn_open t;

		if (sh_posted(posted, qp->rq_consumed) > sh_rq_size(qp)) {
			dev->ops->complain(dev->host, "a receive queue's record runs ahead of it",
					   hca->index, qp->qpn);
			return 0;
		}
		sh_qp_txn(&t, dev, qp);
		sh_txn_store32(&t, &qp->rq_consumed, qp->rq_consumed + 1);
		if (commit_with(&t, dev, hca, qp->recv_cqn, &cqe))
			return -EINPROGRESS;
	}
	return 0;
}

/*
 * Where the CQE of the message in progress goes. *cqn 0: nowhere, as the SRQ of its WQE is
 * destroyed. *srq: that SRQ, locked, so that it keeps its CQ; NULL: none. 0, or -EINPROGRESS.
 */
static int lock_source(struct sh_dev *dev, struct sh_hca *hca, const struct sh_qp *qp,
		       struct sh_srq **srq, uint32_t *cqn)
{
	*srq = qp->cur_srqn ? sh_srq_of(hca, qp->cur_srqn) : NULL;
	*cqn = qp->cur_srqn ? 0 : sh_recv_cqn(qp, NULL);
	if (!*srq)
		return 0;
	if (sh_lock_mine(dev, &(*srq)->lock, SH_WAIT_BRIEFLY))
		return -EINPROGRESS;
	if (sh_srq_is_still(*srq, qp->cur_srq_gen)) {
		*cqn = sh_recv_cqn(qp, *srq);
	} else {
		sh_unlock(dev, &(*srq)->lock);
		*srq = NULL;
	}
	return 0;
}

int sh_recv_abort(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint8_t syndrome,
		  uint8_t vendor)
{
	struct sh_srq *srq;
	struct sh_txn_open t;
	struct sh_cqe cqe;
	uint32_t cqn;
	int err;

	if (!qp->cur_wqe) {
		qp->cur_op = SH_RECV_NONE;
		return 0;
	}
	if (lock_source(dev, hca, qp, &srq, &cqn))
		return -EINPROGRESS;
	cqe = sh_cqe_failed(qp, false, qp->cur_srqn, qp->cur_wqe - 1, syndrome, vendor);
	sh_qp_txn(&t, dev, qp);
	sh_txn_store32(&t, &qp->cur_op, SH_RECV_NONE);
	sh_txn_store32(&t, &qp->cur_wqe, 0);
	err = commit_with(&t, dev, hca, cqn, &cqe);
	if (srq)
		sh_unlock(dev, &srq->lock);
	return err;
}

static void last_wqe(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	struct sh_txn_open t;

	if (qp->state != SH_QPS_ERR || !qp->srqn || qp->last_wqe || qp->cur_wqe)
		return;
	sh_qp_txn(&t, dev, qp);
	sh_txn_store32(&t, &qp->last_wqe, 1);
	sh_txn_async_event(&t, hca->index, SH_QPE_LAST_WQE, qp->qpn);
	sh_txn_commit(&t);
}

static int flush(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	int err = flush_sends(dev, hca, qp);

	if (err || qp->state != SH_QPS_ERR)
		return err;
	err = sh_recv_abort(dev, hca, qp, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
	if (!err)
		err = flush_receives(dev, hca, qp);
	last_wqe(dev, hca, qp);
	return err;
}

/* ---- the owner's helper thread ---- */

static void poll(struct sh_dev *dev, uint64_t key, uint64_t arg);

/* A thread that is thrown out of here may set one timer more. */
static void poll_one(struct sh_dev *dev, uint32_t index, uint32_t qpn, uint64_t arg)
{
	struct sh_hca *hca = sh_hca(dev, index);
	struct sh_qp *qp = sh_qp_get(dev, index, qpn & MLX4_QPN_MASK);
	uint64_t key = (uint64_t)index << 32 | qpn, wait = (arg >> 32) * 1000;
	uint32_t gen = arg;

	if (!hca || !qp)
		return;
	if (sh_qp_lock_both_briefly(dev, qp)) {
		sh_defer(dev, dev->ops->now(dev->host) + POLL_LAST_NS, poll, key, arg);
		return;
	}
	if (qp->qpn == (key & MLX4_QPN_MASK) && qp->gen == gen && qp->state == SH_QPS_ERR) {
		flush(dev, hca, qp);
		wait = wait * 2 > POLL_LAST_NS ? POLL_LAST_NS : wait * 2;
		sh_defer(dev, dev->ops->now(dev->host) + wait, poll, key,
			 (wait / 1000) << 32 | gen);
	}
	sh_qp_unlock_both(dev, qp);
}

static void poll(struct sh_dev *dev, uint64_t key, uint64_t arg)
{
	bool entered = sh_enter(dev);

	sh_catch(dev, (uint32_t)(key >> 32), (uint32_t)key, arg, poll_one);
	if (entered)
		sh_leave(dev);
}

/* The device does not see the store that posts a receive, so the helper thread has to look. */
static void watch(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	if (qp->state != SH_QPS_ERR || !qp->rq_present || qp->polled == qp->gen)
		return;
	/* If this thread is thrown before it stores polled, the helper looks twice as often. */
	if (!sh_defer(dev, dev->ops->now(dev->host) + POLL_FIRST_NS, poll,
		      (uint64_t)hca->index << 32 | qp->qpn, (POLL_FIRST_NS / 1000) << 32 | qp->gen))
		qp->polled = qp->gen;
}

static void flush_again(struct sh_dev *dev, uint64_t key, uint64_t gen);

void sh_qp_flush_later(struct sh_dev *dev, const struct sh_hca *hca, const struct sh_qp *qp)
{
	sh_defer_once(dev, dev->ops->now(dev->host) + SH_PUT_OFF_NS, flush_again,
		      (uint64_t)hca->index << 32 | qp->qpn, qp->gen);
}

static void flush_one_again(struct sh_dev *dev, uint32_t index, uint32_t qpn, uint64_t gen)
{
	struct sh_hca *hca = sh_hca(dev, index);
	struct sh_qp *qp = sh_qp_get(dev, index, qpn & MLX4_QPN_MASK);

	if (!hca || !qp)
		return;
	if (sh_qp_lock_both_briefly(dev, qp)) {
		sh_defer_once(dev, dev->ops->now(dev->host) + SH_PUT_OFF_NS, flush_again,
			      (uint64_t)index << 32 | qpn, gen);
		return;
	}
	if (qp->qpn == (qpn & MLX4_QPN_MASK) && qp->gen == (uint32_t)gen &&
	    (qp->state == SH_QPS_ERR || qp->state == SH_QPS_SQE))
		sh_qp_flush(dev, hca, qp);
	sh_qp_unlock_both(dev, qp);
}

static void flush_again(struct sh_dev *dev, uint64_t key, uint64_t gen)
{
	bool entered = sh_enter(dev);

	sh_catch(dev, (uint32_t)(key >> 32), (uint32_t)key, gen, flush_one_again);
	if (entered)
		sh_leave(dev);
}

int sh_qp_flush(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	const struct sh_ctx *ctx = sh_ctx(dev, qp->ctx);
	const bool owned = qp->ctx && ctx;
	int err = flush(dev, hca, qp);

	if (owned && ctx->proc == dev->proc)
		watch(dev, hca, qp);
	/* An XRC receive QP has no owner that could flush the rest. */
	if (err && dev->proc && (!owned || ctx->proc == dev->proc))
		sh_qp_flush_later(dev, hca, qp);
	else if (err && owned)
		sh_attention_post(dev, ctx->proc, hca->index, qp->qpn);
	return owned || dev->proc ? 0 : err;
}

/* ---- entering the state ---- */

static void store_state(struct sh_txn_open *t, struct sh_qp *qp, uint32_t state)
{
	sh_txn_store32(t, &qp->state, state);
	sh_txn_store32(t, &qp->gen, qp->gen + 1);
	sh_txn_store32(t, &qp->engine, 0);
	sh_txn_store32(t, &qp->rnr_waiting, 0);
	sh_txn_store64(t, &qp->deadline, 0);
}

/*
 * Asks the owner's helper thread to look at the QP, before the new state is committed. If this
 * thread dies in the flush, the helper, which waits for the lock, finishes it. False: there is no
 * other process that could.
 */
static bool tell_owner(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	const struct sh_ctx *ctx = sh_ctx(dev, qp->ctx);

	if (!qp->ctx || !ctx || ctx->proc == dev->proc)
		return false;
	sh_attention_post(dev, ctx->proc, hca->index, qp->qpn);
	return true;
}

void sh_qp_error(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t event,
		 uint8_t recv_syndrome, uint8_t vendor)
{
	sh_qp_error_left(dev, hca, qp, event, recv_syndrome, vendor, NULL, 0);
}

void sh_qp_error_left(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t event,
		      uint8_t recv_syndrome, uint8_t vendor, uint64_t *left, uint64_t word)
{
	struct sh_door *door = NULL;
	struct sh_txn_open t;

	if (qp->state == SH_QPS_ERR || qp->state == SH_QPS_RESET)
		return;
	/*
	 * Pinned: no other process finishes the flush. A thread that was thrown before it would
	 * come back only to the QP whose engine it ran.
	 */
	if (!tell_owner(dev, hca, qp))
		door = sh_pin();
	sh_qp_txn(&t, dev, qp);
	store_state(&t, qp, SH_QPS_ERR);
	if (left)
		sh_txn_store64(&t, left, word);
	if (event != SH_QPE_NONE)
		sh_txn_async_event(&t, hca->index, event, qp->qpn);
	sh_txn_commit(&t);
	/* If that is not possible now, the flush does it. */
	(void)sh_recv_abort(dev, hca, qp, recv_syndrome, vendor);
	sh_qp_flush(dev, hca, qp);
	sh_unpin(door);
}

int sh_send_failed(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint8_t syndrome,
		   uint8_t vendor)
{
	struct sh_cqe cqe = sh_cqe_failed(qp, true, 0, qp->sq_una, syndrome, vendor);
	struct sh_txn_open t;
	int err;

	if (sh_lock_within(dev, &qp->rlock, SH_WAIT_BRIEFLY))
		return -EINPROGRESS;
	tell_owner(dev, hca, qp);
	sh_qp_txn(&t, dev, qp);
	store_state(&t, qp, sh_qp_is_reliable(qp) ? SH_QPS_ERR : SH_QPS_SQE);
	sh_txn_store32(&t, &qp->sq_una, qp->sq_una + 1);
	err = commit_with(&t, dev, hca, qp->send_cqn, &cqe);
	if (!err)
		sh_qp_flush(dev, hca, qp);
	sh_unlock(dev, &qp->rlock);
	return err;
}
