// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion channels and completion queues. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "libmlx4/src/mlx4-abi.h"
#include "softhca/device/queues/cq.h"
#include "softhca/kernel/process.h"
#include "commands.h"
#include "context.h"
#include "evq.h"
#include "limits.h"
#include "uverbs.h"

int cmd_create_comp_channel(struct call *c)
{
	struct uv_create_comp_channel_resp resp = {0};
	struct kevq *e;
	int err, fd;

	err = evq_open(c->ctx, false, &e, &fd);
	if (err < 0)
		return err;
	err = call_respond(c, &resp, sizeof(resp), NULL, 0);
	if (err < 0) {
		close(fd);
		evq_free(c->k, e);
		return err;
	}
	call_fd(c, fd, c->resp + offsetof(struct uv_create_comp_channel_resp, fd));
	return 0;
}

int cmd_create_cq(struct call *c)
{
	const struct uv_create_cq *cmd = (const void *)c->in;
	struct kernel *k = c->k;
	struct hca_objects *hca = &k->uverbs->objects[c->ctx->hca];
	struct mlx4_abi_create_cq_resp drv_resp = {0};
	struct mlx4_abi_create_cq drv;
	struct uv_create_cq_resp resp;
	struct sh_cq_init init;
	struct kevq *evq = NULL;
	struct kcq *cq;
	uint32_t comp, async;
	int err;

	if (cmd->comp_vector >= K_COMP_VECTORS)
		return -EINVAL;
	if (cmd->comp_channel >= 0) {
		err = evq_by_fd(c->ctx, c->tid, cmd->comp_channel, &evq);
		if (err)
			return err;
	}
	if (cmd->cqe < 1 || cmd->cqe > K_MAX_CQES)
		return -EINVAL;
	err = call_driver(c, &drv, sizeof(drv));
	if (err < 0)
		return err;
	err = call_owner(c);
	if (err < 0)
		return err;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->u.user_handle = cmd->user_handle;
	init = (struct sh_cq_init){
		.ctx = c->ctx->index,
		.log_size = log2_ceil((uint64_t)cmd->cqe + 1),
		.user_handle = cmd->user_handle,
		.comp_evq = evq ? evq->index : 0,
		.comp_vector = cmd->comp_vector,
	};
	cq->entries = 1u << init.log_size;
	err = buf_map(c, &cq->buf, drv.buf_addr, (uint64_t)cq->entries * k->cfg.device.cqe_size,
		      true);
	if (err < 0)
		goto err_free;
	err = db_get(c, drv.db_addr, 8, &init.db);
	if (err < 0)
		goto err_buf;
	cq->db = drv.db_addr;
	err = num_get(&hca->cqn, &cq->cqn);
	if (err < 0)
		goto err_db;
	init.buf = buf_umem(c->ctx, &cq->buf);
	err = sh_cq_create(&k->dev, c->ctx->hca, cq->cqn, &init);
	if (err < 0)
		goto err_num;
	err = uobj_add(c->ctx, &cq->u, UO_CQ);
	if (err < 0)
		goto err_cq;
	resp.cq_handle = cq->u.handle;
	resp.cqe = cq->entries - 1;
	drv_resp.cqn = cq->cqn;
	err = call_respond(c, &resp, sizeof(resp), &drv_resp, sizeof(drv_resp.cqn));
	if (err < 0)
		goto err_del;
	cq->evq = evq;
	if (evq)
		evq->refs++;
	c->r->made_kind = SH_MADE_CQ;
	c->r->made_number = cq->cqn;
	c->r->made_handle = cq->u.handle;
	c->r->made_user_handle = cmd->user_handle;
	return 0;

err_del:
	uobj_del(&cq->u);
err_cq:
	sh_cq_end(&k->dev, c->ctx->hca, cq->cqn, &comp, &async);
err_num:
	num_put(&hca->cqn, cq->cqn);
err_db:
	db_put(c->ctx, drv.db_addr);
err_buf:
	buf_unmap(c->ctx, &cq->buf);
err_free:
	free(cq);
	return err;
}

/*
 * The old buffer stays until the next resize, or the end of the CQ: the library copies from it
 * after this has returned.
 */
int cmd_resize_cq(struct call *c)
{
	const struct uv_resize_cq *cmd = (const void *)c->in;
	struct uv_resize_cq_resp resp;
	struct mlx4_abi_resize_cq drv;
	struct kcq *cq = uobj_get(c->ctx, UO_CQ, cmd->cq_handle);
	struct sh_umem mem;
	struct kbuf buf;
	uint32_t log;
	int err;

	if (!cq || cmd->cqe < 1 || cmd->cqe > K_MAX_CQES)
		return -EINVAL;
	log = log2_ceil((uint64_t)cmd->cqe + 1);
	resp.cqe = (1u << log) - 1;
	if (1u << log == cq->entries)
		return call_respond(c, &resp, sizeof(resp), NULL, 0);
	err = call_driver(c, &drv, sizeof(drv));
	if (err < 0)
		return err;
	err = call_owner(c);
	if (err < 0)
		return err;
	err = buf_map(c, &buf, drv.buf_addr, ((uint64_t)c->k->cfg.device.cqe_size) << log, true);
	if (err < 0)
		return err;
	/* Before the resize, which cannot be undone. */
	err = call_respond(c, &resp, sizeof(resp), NULL, 0);
	if (err < 0)
		goto err_buf;
	mem = buf_umem(c->ctx, &buf);
	err = sh_cq_resize(&c->k->dev, c->ctx->hca, cq->cqn, &mem, log);
	if (err < 0)
		goto err_buf;
	if (cq->old.len)
		buf_unmap(c->ctx, &cq->old);
	cq->old = cq->buf;
	cq->buf = buf;
	cq->entries = 1u << log;
	c->ctx->newest = &cq->u;
	return 0;

err_buf:
	buf_unmap(c->ctx, &buf);
	return err;
}

bool queue_left(struct kernel *k, const struct uobj *u, uint32_t hca, uint32_t number,
		int (*reclaim)(struct sh_dev *dev, uint32_t hca, uint32_t number))
{
	if (k->ending)
		return true;
	/* A thread that holds the locks of a QP which has ended may be about to use this number. */
	return !k->uverbs->stuck_qps && (!u->unlocked || reclaim(&k->dev, hca, number) >= 0);
}

static bool cq_finish(struct kernel *k, struct aside *a)
{
	struct kcq *cq = container_of(a, struct kcq, aside);

	if (!queue_left(k, &cq->u, cq->hca, cq->cqn, sh_cq_reclaim))
		return false;
	num_put(&k->uverbs->objects[cq->hca].cqn, cq->cqn);
	buf_free(k, &cq->buf);
	if (cq->old.len)
		buf_free(k, &cq->old);
	if (a->proc)
		proc_put(k, a->proc);
	free(cq);
	return true;
}

static int cq_end(struct kcq *cq, bool late)
{
	struct kctx *ctx = cq->u.ctx;
	int err = sh_cq_destroy(&ctx->k->dev, ctx->hca, cq->cqn, &cq->u.comp, &cq->u.async);

	if (err == -EINPROGRESS && !late)
		return err;
	if (err == -EINPROGRESS) {
		sh_cq_end(&ctx->k->dev, ctx->hca, cq->cqn, &cq->u.comp, &cq->u.async);
		cq->u.unlocked = true;
	}
	cq->u.ended = true;
	return 0;
}

static int drop_events(struct kcq *cq, bool late)
{
	struct kctx *ctx = cq->u.ctx;
	int err = 0;

	if (!cq->u.comp_dropped)
		err = evq_drop_comp(ctx->k, cq->evq, cq->u.user_handle, late, &cq->u.comp);
	if (err)
		return err;
	cq->u.comp_dropped = true;
	return evq_drop_async(ctx->k, ctx->async, cq->u.user_handle, UO_CQ, late, &cq->u.async);
}

int cq_free(struct kcq *cq, bool late, uint32_t *comp, uint32_t *async)
{
	struct kctx *ctx = cq->u.ctx;
	struct kernel *k = ctx->k;
	int err = 0;

	if (cq->refs)
		return -EBUSY;
	if (!cq->u.ended)
		err = cq_end(cq, late);
	if (!err)
		err = drop_events(cq, late);
	if (err)
		return err;
	*comp = cq->u.comp;
	*async = cq->u.async;
	buf_uncount(ctx, &cq->buf);
	buf_uncount(ctx, &cq->old);
	db_put(ctx, cq->db);
	if (cq->evq)
		evq_put(k, cq->evq);
	uobj_del(&cq->u);
	cq->hca = ctx->hca;
	if (!cq_finish(k, &cq->aside))
		aside_pages(k, &cq->aside, ctx->proc, cq_finish);
	return 0;
}

int cmd_destroy_cq(struct call *c)
{
	const struct uv_object *cmd = (const void *)c->in;
	struct kcq *cq = uobj_ending(c->ctx, UO_CQ, cmd->handle);
	struct uv_destroy_cq_resp resp;
	int err;

	if (!cq)
		return c->k->uverbs->face->no_object;
	/*
	 * Its QPs have ended, which waited for messages. What a stopped thread may still write is a
	 * CQE: into pages that are set aside, or into memory that stays the program's.
	 */
	err = cq_free(cq, cq->buf.shm ? gives_up(c) : gives_up_data(c), &resp.comp_events_reported,
		      &resp.async_events_reported);
	if (err < 0)
		return err;
	return call_respond(c, &resp, sizeof(resp), NULL, 0);
}
