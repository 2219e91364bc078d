// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * READ and atomic requests at the responder. The answer to a READ names the place of the data, and
 * the completer copies it from there. A duplicate READ carries its address, so the responder checks
 * and answers it anew. The responder keeps the results of atomic operations for their duplicates.
 * It runs under both locks of the QP; for a READ that takes the express way, under the responder's
 * lock alone. It changes memory for an atomic operation under one of the HCA's atomic locks as
 * well.
 */
#include <errno.h>

#include "softhca/device/queues/cqe.h"
#include "softhca/device/queues/flush.h"
#include "softhca/device/queues/qp_halves.h"
#include "softhca/device/queues/srq_receives.h"
#include "place.h"
#include "responder.h"
#include "rules.h"

int sh_rkey_pd(struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p, uint32_t *pdn)
{
	const struct sh_srq *srq;
	uint32_t gen;

	*pdn = qp->pdn;
	if (!sh_qp_is_xrc(qp))
		return 0;
	srq = p->srqn ? sh_srq_of(hca, p->srqn) : NULL;
	if (!srq)
		return -EINVAL;
	/*
	 * Without the SRQ's lock, since no receive is taken. All that is read here must be of one
	 * SRQ: pairs with the stores in sh_srq_create().
	 */
	do {
		gen = __atomic_load_n(&srq->gen, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&srq->live, __ATOMIC_ACQUIRE) == SH_NONE ||
		    !sh_srq_serves(qp, srq, p->srqn))
			return -EINVAL;
		*pdn = srq->pdn;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (__atomic_load_n(&srq->gen, __ATOMIC_RELAXED) != gen);
	return 0;
}

static void refuse(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		   const struct sh_packet *p, struct sh_packet *resp, uint8_t syndrome,
		   bool duplicate)
{
	const struct sh_refusal how = {
		syndrome, syndrome == SH_AETH_NAK_ACCESS ? SH_QPE_ACCESS_ERR : SH_QPE_REQ_ERR,
		MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ};

	if (!duplicate)
		sh_refuse(dev, hca, qp, p, resp, &how);
}

/*
 * In the list of atomic operations, whose length limits READs, too. With the bit no number is that
 * of an atomic operation. Without a transaction: a READ that is listed, and was not executed, is
 * ahead of the expected PSN, and sh_ack_psn() looks at none of these.
 */
#define IS_READ 0x80000000u

static void list_read(struct sh_qp *qp, uint32_t psn)
{
	uint32_t head = qp->atomic_head, listed = (psn + 1) | IS_READ;

	/* A thread that was thrown, or has died, may have listed it before. */
	if (qp->atomic_psn[(head - 1) % SH_QP_ATOMICS] == listed)
		return;
	__atomic_store_n(&qp->atomic_psn[head % SH_QP_ATOMICS], listed, __ATOMIC_RELAXED);
	__atomic_store_n(&qp->atomic_head, head + 1, __ATOMIC_RELAXED);
}

uint32_t sh_ack_psn(const struct sh_qp *qp, uint32_t after)
{
	int32_t upto = sh_psn_diff(qp->e_psn, after);

	for (uint32_t slot = 0; slot < SH_QP_ATOMICS; slot++) {
		uint32_t listed = qp->atomic_psn[slot] & ~IS_READ;
		int32_t ahead = sh_psn_diff(listed - 1, after);

		if (listed && ahead >= 0 && ahead < upto)
			upto = ahead;
	}
	return sh_psn_add(after, (uint32_t)upto - 1);
}

uint8_t sh_execute_read(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
			const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg,
			bool duplicate)
{
	uint32_t npackets = sh_packets(p->dmalen, sh_qp_mtu(qp)), pdn, ctx = 0;
	const struct sh_sge place = {p->va, p->dmalen, p->rkey};

	if (!sh_op_allowed(qp, p) || sh_rkey_pd(hca, qp, p, &pdn))
		return SH_AETH_NAK_REQ;
	if (place.len && sh_mr_locate(dev, hca, pdn, SH_REMOTE_READ, &place, resp_seg, &ctx))
		return SH_AETH_NAK_ACCESS;
	if (!duplicate) {
		list_read(qp, p->psn);
		sh_step_psn(qp, 1, sh_psn_add(p->psn, npackets));
	}
	sh_aeth(resp, p->psn, SH_AETH_ACK, qp->msn);
	SH_COUNT_XMIT(hca, qp->port, npackets, p->dmalen);
	SH_COUNT_QP(qp, long_xmit_data, p->dmalen);
	resp->op = SH_PKT_READ_RESP;
	resp->flags = SH_PKT_FIRST | SH_PKT_LAST;
	resp->npackets = npackets;
	resp->mtu = sh_qp_mtu(qp);
	resp->payload = (struct sh_payload){
		.ctx = ctx, .nseg = place.len ? 1 : 0, .seg = resp_seg, .len = place.len};
	return 0;
}

void sh_respond_read(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		     const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg,
		     bool duplicate)
{
	uint32_t npackets = sh_packets(p->dmalen, sh_qp_mtu(qp));
	uint8_t syndrome;

	if (duplicate && sh_psn_diff(sh_psn_add(p->psn, npackets), qp->e_psn) > 0)
		return;
	syndrome = sh_execute_read(dev, hca, qp, p, resp, resp_seg, duplicate);
	if (syndrome)
		refuse(dev, hca, qp, p, resp, syndrome, duplicate);
	else if (!duplicate)
		qp->messages_received++;
}

static uint64_t changed(const struct sh_packet *p, uint64_t old)
{
	return p->op == SH_PKT_FA ? old + p->swap_add : p->swap_add;
}

static bool changes(const struct sh_packet *p, uint64_t old)
{
	return p->op == SH_PKT_FA || old == p->compare;
}

/*
 * Reads a word in that context's memory, and changes it up to the last store (life.h): a thread
 * that was thrown after it would send the request again, and the word would change twice. The
 * caller holds the lock of the word.
 */
static enum sh_copy change(struct sh_dev *dev, uint32_t ctx, const struct sh_seg *theirs,
			   const struct sh_packet *p, uint64_t *old, struct sh_last *last)
{
	struct sh_seg mine = {(uintptr_t)old, sizeof(*old)};
	uint64_t *word = sh_shared_at(dev, theirs);
	enum sh_copy err;

	if (word) {
		*old = __atomic_load_n(word, __ATOMIC_RELAXED);
		if (changes(p, *old))
			*last = (struct sh_last){
				.at = word, .val = changed(p, *old), .size = sizeof(*word)};
		return SH_COPY_OK;
	}
	err = dev->ops->copy(dev->host, 0, &mine, 1, ctx, theirs, 1, sizeof(*old));
	sh_rearm();
	if (!err && changes(p, *old))
		*last = (struct sh_last){
			.val = changed(p, *old), .ctx = ctx, .to = *theirs, .len = sizeof(*old)};
	return err;
}

static void answer_atomic(struct sh_qp *qp, const struct sh_packet *p, struct sh_packet *resp,
			  uint64_t old)
{
	resp->op = SH_PKT_ATOMIC_RESP;
	resp->flags = SH_PKT_FIRST | SH_PKT_LAST;
	resp->psn = p->psn;
	resp->npackets = 1;
	resp->syndrome = SH_AETH_ACK;
	resp->swap_add = old;
	resp->msn = qp->msn;
}

/* The place of a word in its page is the same in device memory and at each address. */
static struct sh_lock *lock_of(struct sh_hca *hca, const struct sh_seg *word)
{
	return &hca->atomic_lock[word->addr / sizeof(uint64_t) % SH_ATOMIC_LOCKS];
}

/*
 * Changes the word and commits the step. No other atomic operation of this HCA on that word comes
 * in between. 0;
 * -ESRCH: the process has ended; -EINPROGRESS: the lock is not to be had now; -EFAULT.
 */
static int change_once(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t ctx,
		       const struct sh_seg *theirs, const struct sh_packet *p, uint64_t *old)
{
	uint32_t slot = qp->atomic_head % SH_QP_ATOMICS;
	struct sh_lock *lock = lock_of(hca, theirs);
	struct sh_last last = {0};
	struct sh_txn_open t;
	enum sh_copy err;

	if (sh_lock_within(dev, lock, SH_WAIT_BRIEFLY))
		return -EINPROGRESS;
	err = change(dev, ctx, theirs, p, old, &last);
	if (!err) {
		sh_qp_txn(&t, dev, qp);
		sh_txn_store32(&t, &qp->atomic_psn[slot], p->psn + 1);
		sh_txn_store64(&t, &qp->atomic_result[slot], *old);
		sh_txn_store32(&t, &qp->atomic_head, qp->atomic_head + 1);
		sh_txn_psn(&t, qp, 1, sh_psn_add(p->psn, 1));
		err = sh_txn_commit_last(&t, &last);
	}
	sh_unlock(dev, lock);
	return err == SH_COPY_GONE ? -ESRCH : err ? -EFAULT : 0;
}

void sh_respond_atomic(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		       const struct sh_packet *p, struct sh_packet *resp, bool duplicate)
{
	const struct sh_sge place = {p->va, sizeof(uint64_t), p->rkey};
	uint32_t pdn, ctx, slot;
	struct sh_seg theirs;
	uint64_t old;
	int err;

	if (duplicate) {
		/* The newest first: an older one may be of 2^24 packets before. */
		for (uint32_t i = 1; i <= SH_QP_ATOMICS; i++) {
			slot = (qp->atomic_head - i) % SH_QP_ATOMICS;
			if (qp->atomic_psn[slot] == p->psn + 1) {
				answer_atomic(qp, p, resp, qp->atomic_result[slot]);
				break;
			}
		}
		return;
	}
	if (!sh_op_allowed(qp, p) || sh_rkey_pd(hca, qp, p, &pdn)) {
		refuse(dev, hca, qp, p, resp, SH_AETH_NAK_REQ, false);
		return;
	}
	if (sh_mr_locate(dev, hca, pdn, SH_REMOTE_ATOMIC, &place, &theirs, &ctx)) {
		refuse(dev, hca, qp, p, resp, SH_AETH_NAK_ACCESS, false);
		return;
	}
	if (p->va % sizeof(old)) {
		refuse(dev, hca, qp, p, resp, SH_AETH_NAK_REQ, false);
		return;
	}
	err = change_once(dev, hca, qp, ctx, &theirs, p, &old);
	if (err) {
		if (err == -EINPROGRESS)
			resp->syndrome = SH_BUSY;
		else if (err != -ESRCH && sh_ctx_live(dev, ctx))
			refuse(dev, hca, qp, p, resp, SH_AETH_NAK_ACCESS, false);
		else
			SH_DROPPED_AT(hca, qp, memory, 1);
		return;
	}
	qp->messages_received++;
	answer_atomic(qp, p, resp, old);
}
