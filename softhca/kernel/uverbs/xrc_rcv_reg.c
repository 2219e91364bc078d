// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The contexts that are interested in a kernel-made receive QP. The list is kept twice: here, and
 * in device memory, where a thread that raises an event walks it under the QP's lock. There it is
 * changed by one store at a time, and an entry that was taken out is used again as late as
 * possible.
 */
#include <errno.h>
#include <stdlib.h>

#include "softhca/device/queues/qp.h"
#include "commands.h"
#include "context.h"
#include "uverbs.h"
#include "xrc.h"

static struct sh_xrc_reg *entry(struct kernel *k, uint32_t index)
{
	return (struct sh_xrc_reg *)sh_at(&k->dev, SH_XRC_REG_OFF) + index;
}

#define BACK_AT_ONCE 1024

/*
 * An entry with memory behind it. Indices are given out in turn, so those below xrc_reg_backed
 * have memory already.
 */
static int entry_get(struct kernel *k, uint32_t *index)
{
	int err = num_get(&k->uverbs->xrc_reg, index);

	while (err == 0 && *index >= k->uverbs->xrc_reg_backed) {
		err = sh_reserve(k->memfd,
				 SH_XRC_REG_OFF + (uint64_t)k->uverbs->xrc_reg_backed *
							  sizeof(struct sh_xrc_reg),
				 BACK_AT_ONCE * sizeof(struct sh_xrc_reg));
		if (err < 0)
			num_put(&k->uverbs->xrc_reg, *index);
		else
			k->uverbs->xrc_reg_backed += BACK_AT_ONCE;
	}
	return err;
}

struct kxrc_reg *xrc_rcv_reg_find(struct kqp *qp, const struct kctx *ctx)
{
	struct kxrc_reg *reg;

	DL_FOREACH(qp->regs, reg)
	if (reg->ctx == ctx)
		return reg;
	return NULL;
}

int xrc_rcv_reg_add(struct kernel *k, struct kqp *qp, struct kctx *ctx, struct kxrcd_handle *xh,
		    uint64_t user_handle, struct kxrc_reg **out)
{
	struct kxrc_reg *reg = calloc(1, sizeof(*reg));
	int err;

	if (!reg)
		return -ENOMEM;
	err = entry_get(k, &reg->index);
	if (err < 0) {
		free(reg);
		return err;
	}
	*entry(k, reg->index) = (struct sh_xrc_reg){
		.ctx = ctx->index,
		.next = qp->regs ? qp->regs->index : 0,
		.user_handle = user_handle,
	};
	err = sh_qp_set_xrc_regs(&k->dev, qp->hca, qp->qpn, reg->index);
	if (err < 0) {
		num_put(&k->uverbs->xrc_reg, reg->index);
		free(reg);
		return err;
	}
	reg->qp = qp;
	reg->ctx = ctx;
	reg->xh = xh;
	DL_PREPEND(qp->regs, reg);
	DL_APPEND2(xh->regs, reg, xprev, xnext);
	*out = reg;
	return 0;
}

int xrc_rcv_reg_del(struct kernel *k, struct kxrc_reg *reg, bool late, uint32_t *events)
{
	struct kqp *qp = reg->qp;
	bool last = qp->regs == reg && !reg->next;
	uint32_t next = reg->next ? reg->next->index : 0;
	int err = 0;

	if (last)
		err = qp_destroy_kernel(k, qp, late);
	else if (qp->regs == reg)
		err = sh_qp_set_xrc_regs(&k->dev, qp->hca, qp->qpn, next);
	else
		__atomic_store_n(&entry(k, reg->prev->index)->next, next, __ATOMIC_RELEASE);
	if (err == -EINPROGRESS)
		return err;
	*events = entry(k, reg->index)->events;
	if (!last)
		DL_DELETE(qp->regs, reg);
	DL_DELETE2(reg->xh->regs, reg, xprev, xnext);
	num_put(&k->uverbs->xrc_reg, reg->index);
	free(reg);
	return 0;
}
