// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * After the death of a process: finds the objects whose locks it may have held (device/memory/orphans.c).
 * Looks at nothing if no thread died in device code, which is usual.
 */
#include "softhca/device/memory/orphans.h"
#include "softhca/kernel/uverbs/context.h"
#include "softhca/kernel/uverbs/objects.h"
#include "kern.h"
#include "orphans.h"

static void queues_of(struct kernel *k, const struct kctx *ctx)
{
	struct uobj *u;

	DL_FOREACH(ctx->objs[UO_SRQ], u)
		sh_orphans_of_srq(&k->dev, ctx->hca, ((struct ksrq *)u)->srqn);
	DL_FOREACH(ctx->objs[UO_CQ], u)
		sh_orphans_of_cq(&k->dev, ctx->hca, ((struct kcq *)u)->cqn);
}

void orphans_free(struct kernel *k)
{
	if (!sh_orphans(&k->dev, &k->died_inside))
		return;
	for (uint32_t i = 0; i < k->dev.hcas; i++) {
		struct kqp *qp, *tmp;

		HASH_ITER(hh, k->objects[i].qps, qp, tmp)
			sh_orphans_of_qp(&k->dev, i, qp->qpn);
		sh_orphans_of_hca(&k->dev, i);
	}
	for (uint32_t i = 1; i < SH_MAX_CTX; i++)
		if (k->ctx[i])
			queues_of(k, k->ctx[i]);
	for (uint32_t i = 1; i < SH_MAX_EVQ; i++)
		if (k->evq[i])
			sh_orphans_of_evq(&k->dev, i);
}
