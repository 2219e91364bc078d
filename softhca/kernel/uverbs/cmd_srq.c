// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues, plain and of an XRC domain. */
#include <errno.h>
#include <stdlib.h>

#include "libmlx4/src/mlx4-abi.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/queues/srq.h"
#include "softhca/kernel/process.h"
#include "commands.h"
#include "context.h"
#include "evq.h"
#include "limits.h"
#include "uverbs.h"
#include "xrc.h"

int srq_create(struct call *c, const struct srq_request *rq)
{
	struct kernel *k = c->k;
	struct kctx *ctx = c->ctx;
	struct hca_objects *hca = &k->uverbs->objects[ctx->hca];
	struct mlx4_abi_create_srq_resp drv_resp = {0};
	struct mlx4_abi_create_srq drv;
	struct uv_create_srq_resp resp = {0};
	struct sh_srq_init init = {0};
	struct ksrq *srq;
	int err;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	err = -EINVAL;
	srq->u.user_handle = rq->user_handle;
	if (rq->xrc) {
		srq->xh = uobj_get(ctx, UO_XRCD, rq->xrcd_handle);
		srq->cq = uobj_get(ctx, UO_CQ, rq->cq_handle);
		if (!srq->xh || !srq->cq)
			goto err_free;
		srq->d = srq->xh->d;
	}
	srq->pd = uobj_get(ctx, UO_PD, rq->pd_handle);
	if (!srq->pd || rq->max_wr >= K_MAX_WQES || rq->max_sge > K_MAX_SRQ_SGE)
		goto err_free;
	err = call_driver(c, &drv, sizeof(drv));
	if (err < 0)
		goto err_free;
	err = call_owner(c);
	if (err < 0)
		goto err_free;
	init.ctx = ctx->index;
	init.pdn = srq->pd->pdn;
	init.log_size = log2_ceil((uint64_t)rq->max_wr + 1);
	init.wqe_shift = log2_ceil(16 + 16 * rq->max_sge);
	if (init.wqe_shift < 5)
		init.wqe_shift = 5;
	init.max_sge = rq->max_sge;
	init.user_handle = rq->user_handle;
	if (rq->xrc) {
		init.xrcd = srq->d->xrcdn;
		init.cqn = srq->cq->cqn;
	}
	srq->max = 1u << init.log_size;
	srq->max_sge = rq->max_sge;
	err = buf_map(c, &srq->buf, drv.buf_addr, (uint64_t)srq->max << init.wqe_shift, false);
	if (err < 0)
		goto err_free;
	err = db_get(c, drv.db_addr, 4, &init.db);
	if (err < 0)
		goto err_buf;
	srq->db = drv.db_addr;
	err = num_get(&hca->srqn, &srq->srqn);
	if (err < 0)
		goto err_db;
	init.buf = buf_umem(ctx, &srq->buf);
	err = sh_srq_create(&k->dev, ctx->hca, srq->srqn, &init);
	if (err < 0)
		goto err_num;
	err = uobj_add(ctx, &srq->u, UO_SRQ);
	if (err < 0)
		goto err_srq;
	resp.srq_handle = srq->u.handle;
	resp.max_wr = srq->max - 1;
	resp.max_sge = rq->max_sge;
	if (rq->tell_srqn)
		resp.srqn = srq->srqn;
	drv_resp.srqn = srq->srqn;
	err = call_respond(c, &resp, sizeof(resp), &drv_resp, sizeof(drv_resp.srqn));
	if (err < 0)
		goto err_del;
	srq->pd->refs++;
	if (rq->xrc) {
		srq->cq->refs++;
		srq->xh->srqs++;
		srq->d->users++;
	}
	return 0;

err_del:
	uobj_del(&srq->u);
err_srq:
	(void)sh_srq_end(&k->dev, ctx->hca, srq->srqn);
err_num:
	num_put(&hca->srqn, srq->srqn);
err_db:
	db_put(ctx, drv.db_addr);
err_buf:
	buf_unmap(ctx, &srq->buf);
err_free:
	free(srq);
	return err;
}

int cmd_create_srq(struct call *c)
{
	const struct uv_create_srq *cmd = (const void *)c->in;
	struct srq_request rq = {
		.user_handle = cmd->user_handle,
		.pd_handle = cmd->pd_handle,
		.max_wr = cmd->max_wr,
		.max_sge = cmd->max_sge,
	};

	return srq_create(c, &rq);
}

int cmd_modify_srq(struct call *c)
{
	const struct uv_modify_srq *cmd = (const void *)c->in;
	struct ksrq *srq = uobj_get(c->ctx, UO_SRQ, cmd->srq_handle);

	if (!srq || cmd->attr_mask & UV_SRQ_MAX_WR)
		return -EINVAL;
	if (!(cmd->attr_mask & UV_SRQ_LIMIT))
		return 0;
	if (cmd->srq_limit >= srq->max)
		return -EINVAL;
	return sh_srq_limit(&c->k->dev, c->ctx->hca, srq->srqn, cmd->srq_limit);
}

int cmd_query_srq(struct call *c)
{
	const struct uv_object *cmd = (const void *)c->in;
	struct ksrq *srq = uobj_get(c->ctx, UO_SRQ, cmd->handle);
	struct uv_query_srq_resp resp = {0};
	struct sh_srq_info info;
	int err;

	if (!srq)
		return -EINVAL;
	err = sh_srq_query(&c->k->dev, c->ctx->hca, srq->srqn, &info);
	if (err < 0)
		return err;
	resp.max_wr = srq->max - 1;
	resp.max_sge = srq->max_sge;
	resp.srq_limit = info.limit;
	return call_respond(c, &resp, sizeof(resp), NULL, 0);
}

static bool srq_finish(struct kernel *k, struct aside *a)
{
	struct ksrq *srq = container_of(a, struct ksrq, aside);

	if (!queue_left(k, &srq->u, srq->hca, srq->srqn, sh_srq_reclaim))
		return false;
	num_put(&k->uverbs->objects[srq->hca].srqn, srq->srqn);
	buf_free(k, &srq->buf);
	if (a->proc)
		proc_put(k, a->proc);
	free(srq);
	return true;
}

/* From now on nothing finds it. Does nothing the second time. */
static int srq_end(struct ksrq *srq, bool late)
{
	struct kctx *ctx = srq->u.ctx;
	int err;

	if (srq->refs)
		return -EBUSY;
	if (srq->u.ended)
		return 0;
	err = sh_srq_destroy(&ctx->k->dev, ctx->hca, srq->srqn, &srq->u.async);
	if (err == -EINPROGRESS && !late)
		return err;
	if (err == -EINPROGRESS) {
		srq->u.async = sh_srq_end(&ctx->k->dev, ctx->hca, srq->srqn);
		srq->u.unlocked = true;
	}
	srq->u.ended = true;
	return 0;
}

int srq_free(struct ksrq *srq, bool late, uint32_t *async)
{
	struct kctx *ctx = srq->u.ctx;
	struct kernel *k = ctx->k;
	int err = srq_end(srq, late);

	if (!err)
		err = evq_drop_async(k, ctx->async, srq->u.user_handle, UO_SRQ, late,
				     &srq->u.async);
	if (err)
		return err;
	*async = srq->u.async;
	buf_uncount(ctx, &srq->buf);
	db_put(ctx, srq->db);
	srq->pd->refs--;
	if (srq->d) {
		srq->cq->refs--;
		srq->xh->srqs--;
		xrcd_put_user(k, srq->d);
	}
	uobj_del(&srq->u);
	srq->hca = ctx->hca;
	if (!srq_finish(k, &srq->aside))
		aside_pages(k, &srq->aside, ctx->proc, srq_finish);
	return 0;
}

/*
 * A sender places a message of up to SH_SHORT bytes into a receive of the SRQ under its lock, and
 * copies a longer one without it. The QPs of a plain SRQ end before it does, and such copies with
 * them. An XRC SRQ ends while QPs that receive for it live on, so a copy may still be running. The
 * receive's buffer is the program's after the command: as in cmd_dereg_mr(), the answer waits for
 * each thread that was in device code.
 */
static int senders_left(struct call *c, struct ksrq *srq)
{
	if (!srq->d)
		return 0;
	if (!srq->moment)
		srq->moment = sh_grace_begin(&c->k->dev);
	return call_left(c, srq->moment);
}

int cmd_destroy_srq(struct call *c)
{
	const struct uv_object *cmd = (const void *)c->in;
	struct ksrq *srq = uobj_ending(c->ctx, UO_SRQ, cmd->handle);
	struct uv_destroy_resp resp;
	int err;

	if (!srq)
		return c->k->uverbs->face->no_object;
	err = srq_end(srq, gives_up_data(c));
	if (!err)
		err = senders_left(c, srq);
	if (!err)
		err = srq_free(srq, gives_up_data(c), &resp.events_reported);
	if (err < 0)
		return err;
	return call_respond(c, &resp, sizeof(resp), NULL, 0);
}
