// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Doorbells, and requests of other processes to look at a QP. Each takes the requester lock of the
 * QP that it names. As the HCA does, the device ignores numbers that name no QP or another
 * context's QP.
 */
#include "softhca/device/memory/exec.h"
#include "softhca/device/queues/attention.h"
#include "softhca/device/queues/cq.h"
#include "softhca/device/queues/flush.h"
#include "doorbell.h"
#include "requester.h"
#include "wire.h"

/* The caller holds the requester lock; this function releases it. */
static inline void serve(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	if (__builtin_expect(qp->silent, 0)) {
		sh_unlock(dev, &qp->lock);
		return;
	}
	switch (qp->state) {
	case SH_QPS_RTS:
	case SH_QPS_SQD:
		sh_requester_run(dev, hca, qp);
		return;
	case SH_QPS_SQE:
	case SH_QPS_ERR:
		if (sh_lock_within(dev, &qp->rlock, SH_WAIT_BRIEFLY)) {
			sh_qp_flush_later(dev, hca, qp);
			break;
		}
		sh_qp_flush(dev, hca, qp);
		sh_unlock(dev, &qp->rlock);
		break;
	}
	sh_unlock(dev, &qp->lock);
}

typedef void later_fn(struct sh_dev *dev, uint64_t key, uint64_t unused);

/* The lock is not free. False: it is this thread's now. */
SH_OUTLINE bool is_left(struct sh_dev *dev, struct sh_qp *qp, uint32_t ctx, uint32_t qpn,
			later_fn *later)
{
	return sh_lock_wait_within(dev, &qp->lock, SH_WAIT_BRIEFLY) &&
	       (!later || sh_defer_or_lock(dev, &qp->lock, later, (uint64_t)ctx << 32 | qpn, 0));
}

/*
 * Returns the QP with this number, locked, if it belongs to the context; else NULL. A thread that
 * stands may have its lock (sh_lock_within()). Then the helper thread calls later(dev, ctx << 32 |
 * qpn, 0) soon; later NULL: it looks at that QP in any case.
 */
static inline struct sh_qp *take(struct sh_dev *dev, uint32_t ctx, uint32_t qpn,
				 struct sh_hca **hca, later_fn *later)
{
	const struct sh_ctx *c = sh_ctx(dev, ctx);
	struct sh_qp *qp;

	if (!sh_ctx_live(dev, ctx))
		return NULL;
	*hca = sh_hca_table(dev, c->hca, 0);
	qp = *hca ? sh_qp_of(*hca, qpn) : NULL;
	if (!qp)
		return NULL;
	if (__builtin_expect(!sh_lock_free(dev, &qp->lock), 0) && is_left(dev, qp, ctx, qpn, later))
		return NULL;
	if (qp->qpn == qpn && qp->ctx == ctx)
		return qp;
	sh_unlock(dev, &qp->lock);
	return NULL;
}

static void ring_again(struct sh_dev *dev, uint64_t key, uint64_t unused);

static void ring(struct sh_dev *dev, uint32_t ctx, uint32_t qpn, uint64_t unused)
{
	struct sh_hca *hca;
	struct sh_qp *qp = take(dev, ctx, qpn, &hca, ring_again);

	(void)unused;
	if (qp)
		serve(dev, hca, qp);
}

void sh_ring(struct sh_dev *dev, uint32_t ctx, uint32_t qpn)
{
	sh_catch(dev, ctx, qpn, 0, ring);
}

static void ring_again(struct sh_dev *dev, uint64_t key, uint64_t unused)
{
	sh_catch_in_turn(dev, (uint32_t)(key >> 32), (uint32_t)key, unused, ring);
}

static void ring_left(struct sh_dev *dev, uint32_t ctx, uint32_t qpn, uint32_t dw0, uint32_t dw1)
{
	(void)dw0, (void)dw1;
	sh_ring(dev, ctx, qpn);
}

void sh_ring_later(struct sh_dev *dev, uint32_t ctx, uint32_t qpn)
{
	if (!sh_later(ring_left, ctx, qpn, 0, 0))
		sh_attention_mark_qp(dev, ctx, qpn);
}

bool sh_recv_matters(struct sh_dev *dev, uint32_t ctx, uint32_t qpn)
{
	const struct sh_ctx *c = sh_ctx(dev, ctx);
	const struct sh_qp *qp = c ? sh_qp_get(dev, c->hca, qpn) : NULL;

	return qp && __atomic_load_n(&qp->state, __ATOMIC_RELAXED) == SH_QPS_ERR;
}

static void recv_posted(struct sh_dev *dev, uint32_t ctx, uint32_t qpn, uint64_t unused)
{
	const struct sh_ctx *c = sh_ctx(dev, ctx);
	struct sh_qp *qp = c ? sh_qp_get(dev, c->hca, qpn) : NULL;
	struct sh_hca *hca;

	(void)unused;
	/*
	 * Nearly every receive is posted to a QP that is not in ERR. If the state changes right
	 * now, the helper thread finds the receive: it looks again and again while the QP is in
	 * ERR.
	 */
	if (!qp || __atomic_load_n(&qp->state, __ATOMIC_RELAXED) != SH_QPS_ERR)
		return;
	qp = take(dev, ctx, qpn, &hca, NULL);
	if (!qp)
		return;
	if (qp->state == SH_QPS_ERR && !qp->silent &&
	    !sh_lock_within(dev, &qp->rlock, SH_WAIT_BRIEFLY)) {
		sh_qp_flush(dev, hca, qp);
		sh_unlock(dev, &qp->rlock);
	}
	sh_unlock(dev, &qp->lock);
}

void sh_recv_posted(struct sh_dev *dev, uint32_t ctx, uint32_t qpn)
{
	sh_catch(dev, ctx, qpn, 0, recv_posted);
}

static void recv_left(struct sh_dev *dev, uint32_t ctx, uint32_t qpn, uint32_t dw0, uint32_t dw1)
{
	(void)dw0, (void)dw1;
	sh_recv_posted(dev, ctx, qpn);
}

void sh_recv_later(struct sh_dev *dev, uint32_t ctx, uint32_t qpn)
{
	if (!sh_later(recv_left, ctx, qpn, 0, 0))
		sh_attention_mark_qp(dev, ctx, qpn);
}

/* ---- attention ---- */

static void look_again(struct sh_dev *dev, uint64_t key, uint64_t unused);

void sh_look(struct sh_dev *dev, uint32_t hca, uint32_t qpn)
{
	struct sh_hca *h = sh_hca(dev, hca);
	struct sh_qp *qp = h ? sh_qp_get(dev, hca, qpn) : NULL;
	const struct sh_ctx *ctx;

	if (!qp)
		return;
	if (sh_lock_within(dev, &qp->lock, SH_WAIT_BRIEFLY) &&
	    sh_defer_or_lock(dev, &qp->lock, look_again, (uint64_t)hca << 32 | qpn, 0))
		return;
	ctx = sh_ctx(dev, qp->ctx);
	if (dev->wire)
		qp->wire_left &= (uint8_t)~SH_WIRE_ASKED;
	if (qp->qpn == qpn && qp->ctx && ctx && (ctx->proc == dev->proc || dev->wire))
		serve(dev, h, qp);
	else
		sh_unlock(dev, &qp->lock);
}

static void look(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint64_t unused)
{
	(void)unused;
	sh_look(dev, hca, qpn);
}

static void look_again(struct sh_dev *dev, uint64_t key, uint64_t unused)
{
	sh_catch_in_turn(dev, (uint32_t)(key >> 32), (uint32_t)key, unused, look);
}

static bool is_marked(const struct sh_proc *p, uint32_t hca)
{
	return __atomic_load_n(&p->lost_hca[hca / 64], __ATOMIC_RELAXED) >> hca % 64 & 1;
}

/* Looks at the 64 QPs of a group, at least one of which is marked. */
static void look_at_qps(struct sh_dev *dev, const struct sh_proc *p, uint32_t group)
{
	for (uint32_t i = 0; i < dev->hcas; i++) {
		const struct sh_hca *hca = sh_hca(dev, i);
		uint32_t used = hca ? __atomic_load_n(&hca->qp_used, __ATOMIC_RELAXED) : 0;

		if (!is_marked(p, i))
			continue;
		for (uint32_t n = group * 64; n < group * 64 + 64 && n < used; n++) {
			uint32_t qpn = sh_qp_slot(dev, i, n)->qpn;

			if (qpn)
				sh_look(dev, i, qpn);
		}
	}
}

/* The same for CQs, of which an arm doorbell was lost. */
static void look_at_cqs(struct sh_dev *dev, const struct sh_proc *p, uint32_t group)
{
	for (uint32_t i = 0; i < dev->hcas; i++)
		for (uint32_t n = 0; n < 64 && is_marked(p, i); n++)
			sh_arm_lost(dev, i, group * 64 + n);
}

static void look_at_lost(struct sh_dev *dev, struct sh_proc *p)
{
	for (uint32_t i = 0; i < (1u << SH_LOG_QPS) / 64 / 64; i++) {
		uint64_t groups = __atomic_exchange_n(&p->lost_qps[i], 0, __ATOMIC_SEQ_CST);

		for (; groups; groups &= groups - 1)
			look_at_qps(dev, p, i * 64 + (uint32_t)__builtin_ctzll(groups));
	}
	for (uint32_t i = 0; i < (1u << SH_LOG_CQS) / 64 / 64; i++) {
		uint64_t groups = __atomic_exchange_n(&p->lost_cqs[i], 0, __ATOMIC_SEQ_CST);

		for (; groups; groups &= groups - 1)
			look_at_cqs(dev, p, i * 64 + (uint32_t)__builtin_ctzll(groups));
	}
}

/*
 * Takes an entry only after it has looked at the QP. If the thread is thrown in between, it looks
 * again. Of the helper thread alone: if two threads took entries, one could take what was posted
 * after its look.
 */
static void attention(struct sh_dev *dev, uint32_t u1, uint32_t u2, uint64_t u3)
{
	struct sh_proc *p = sh_proc(dev, dev->proc);

	(void)u1, (void)u2, (void)u3;
	if (!p)
		return;
	for (unsigned int i = 0; i < SH_ATTENTION_RING; i++) {
		uint64_t entry = __atomic_load_n(&p->ring[i], __ATOMIC_SEQ_CST);

		if (!entry)
			continue;
		sh_look(dev, (entry - 1) >> 32, (uint32_t)(entry - 1));
		__atomic_compare_exchange_n(&p->ring[i], &entry, 0, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
	}
	if (!__atomic_load_n(&p->ring_lost, __ATOMIC_SEQ_CST))
		return;
	sh_pin();
	if (__atomic_exchange_n(&p->ring_lost, 0, __ATOMIC_SEQ_CST))
		look_at_lost(dev, p);
}

void sh_attention(struct sh_dev *dev)
{
	sh_wire_begin_turn(dev);
	sh_catch(dev, 0, 0, 0, attention);
	sh_wire_end_turn(dev);
}

/* at: what is to be looked at, as in the ring; 0: that is done. */
static void look_ahead(struct sh_dev *dev, uint32_t u1, uint32_t u2, uint64_t at)
{
	uint64_t *entry = (uint64_t *)(uintptr_t)at;

	(void)u1, (void)u2;
	for (unsigned int i = 0; i < SH_ATTENTION_RING; i++)
		if (entry[i]) {
			sh_look(dev, (entry[i] - 1) >> 32, (uint32_t)(entry[i] - 1));
			sh_program_order();
			entry[i] = 0;
		}
}

void sh_attention_ahead(struct sh_dev *dev)
{
	const struct sh_proc *p = sh_proc(dev, dev->proc);
	uint64_t entry[SH_ATTENTION_RING];

	if (!p)
		return;
	/* The helper thread may take an entry while this thread is thrown out of that very QP. */
	for (unsigned int i = 0; i < SH_ATTENTION_RING; i++)
		entry[i] = __atomic_load_n(&p->ring[i], __ATOMIC_SEQ_CST);
	sh_wire_begin_turn(dev);
	sh_catch(dev, 0, 0, (uintptr_t)entry, look_ahead);
	sh_wire_end_turn(dev);
}
