// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How a thread of any process has the owner of a QP look at it: an entry in the ring of the owning
 * process, or, when the ring is full, a mark for a group of QPs. The helper thread of that process
 * takes them, and no other one (transport/doorbell.c). No locks: several threads may post at once.
 */
#include "softhca/device/memory/life.h"
#include "attention.h"

#define POST_TRIES (4 * SH_ATTENTION_RING)

/* Before the word that says that something was lost (ring_lost). */
static void mark(struct sh_proc *p, uint32_t hca, uint64_t *groups, uint32_t slot)
{
	const uint32_t group = slot / 64;

	__atomic_fetch_or(&p->lost_hca[hca / 64 % (SH_MAX_HCAS / 64)], UINT64_C(1) << hca % 64,
			  __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&groups[group / 64], UINT64_C(1) << group % 64, __ATOMIC_SEQ_CST);
}

void sh_attention_mark_qp(struct sh_dev *dev, uint32_t ctx, uint32_t qpn)
{
	const struct sh_ctx *c = sh_ctx(dev, ctx);
	struct sh_proc *p = sh_proc(dev, dev->proc);

	if (c && p)
		mark(p, c->hca, p->lost_qps, qpn & ((1u << SH_LOG_QPS) - 1));
}

void sh_attention_mark_cq(struct sh_dev *dev, uint32_t ctx, uint32_t cqn)
{
	const struct sh_ctx *c = sh_ctx(dev, ctx);
	struct sh_proc *p = sh_proc(dev, dev->proc);

	if (c && p)
		mark(p, c->hca, p->lost_cqs, cqn & ((1u << SH_LOG_CQS) - 1));
}

void sh_attention_marked(struct sh_dev *dev)
{
	struct sh_proc *p = sh_proc(dev, dev->proc);
	struct sh_door *door;

	if (!p)
		return;
	door = sh_pin();
	__atomic_store_n(&p->ring_lost, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&p->attention, 1, __ATOMIC_SEQ_CST);
	dev->ops->wake(dev->host, dev->proc);
	sh_unpin(door);
}

void sh_attention_post(struct sh_dev *dev, uint32_t proc, uint32_t hca, uint32_t qpn)
{
	struct sh_proc *p = sh_proc(dev, proc);
	uint64_t entry = ((uint64_t)hca << 32 | qpn) + 1;
	struct sh_door *door;
	int i;

	if (!p)
		return;
	/*
	 * Pinned: a thread that was thrown before it wakes the process would not come here again.
	 */
	door = sh_pin();
	for (i = 0; i < POST_TRIES; i++) {
		uint32_t at =
			__atomic_fetch_add(&p->ring_tail, 1, __ATOMIC_RELAXED) % SH_ATTENTION_RING;
		uint64_t none = 0;

		/* pairs with the exchange in attention() of doorbell.c */
		if (__atomic_compare_exchange_n(&p->ring[at], &none, entry, false, __ATOMIC_SEQ_CST,
						__ATOMIC_RELAXED))
			break;
	}
	if (i == POST_TRIES) {
		mark(p, hca, p->lost_qps, qpn & ((1u << SH_LOG_QPS) - 1));
		__atomic_store_n(&p->ring_lost, 1, __ATOMIC_SEQ_CST);
	}
	__atomic_fetch_add(&p->attention, 1, __ATOMIC_SEQ_CST);
	dev->ops->wake(dev->host, proc);
	sh_unpin(door);
}
