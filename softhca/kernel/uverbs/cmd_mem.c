// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Protection domains, memory regions and address handles. */
#include <errno.h>
#include <stdlib.h>

#include "libmlx4/src/mlx4-abi.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/mr.h"
#include "softhca/kernel/process.h"
#include "commands.h"
#include "context.h"
#include "region.h"
#include "uverbs.h"

int cmd_alloc_pd(struct call *c)
{
	struct hca_objects *hca = &c->k->uverbs->objects[c->ctx->hca];
	struct mlx4_abi_alloc_pd_resp drv;
	struct uv_alloc_pd_resp resp;
	struct kpd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return -ENOMEM;
	err = num_get(&hca->pdn, &pd->pdn);
	if (err < 0)
		goto err_free;
	err = uobj_add(c->ctx, &pd->u, UO_PD);
	if (err < 0)
		goto err_num;
	resp.pd_handle = pd->u.handle;
	drv.pdn = pd->pdn;
	err = call_respond(c, &resp, sizeof(resp), &drv, sizeof(drv.pdn));
	if (err < 0)
		goto err_del;
	return 0;

err_del:
	uobj_del(&pd->u);
err_num:
	num_put(&hca->pdn, pd->pdn);
err_free:
	free(pd);
	return err;
}

int pd_free(struct kpd *pd)
{
	if (pd->refs)
		return -EBUSY;
	num_put(&pd->u.ctx->k->uverbs->objects[pd->u.ctx->hca].pdn, pd->pdn);
	uobj_del(&pd->u);
	free(pd);
	return 0;
}

int cmd_dealloc_pd(struct call *c)
{
	const struct uv_handle *cmd = (const void *)c->in;
	struct kpd *pd = uobj_get(c->ctx, UO_PD, cmd->handle);

	return pd ? pd_free(pd) : c->k->uverbs->face->no_object;
}

/* ---- memory regions ---- */

static uint32_t key_of(uint32_t index)
{
	return index << 8 | index >> 24;
}

static uint32_t index_of(uint32_t key)
{
	return key >> 8 | key << 24;
}

/* First pass: the client must make the pages present. */
static int pin(struct call *c, uint64_t addr, uint64_t len, bool write)
{
	c->r->pin_check = 1;
	c->r->pin_addr = addr;
	c->r->pin_len = len;
	c->r->pin_write = write;
	c->r->pin_share = !c->k->cfg.copy_queues;
	return 0;
}

static uint64_t pages_of(uint64_t addr, uint64_t len)
{
	return len ? (addr + len - 1) / K_PAGE - addr / K_PAGE + 1 : 0;
}

static bool mr_finish(struct kernel *k, struct aside *a)
{
	struct kmr *mr = container_of(a, struct kmr, aside);

	num_put(&k->uverbs->objects[mr->hca].mpt, index_of(mr->key));
	free(mr);
	return true;
}

/* The key can be given out again when no thread can have it from before. */
static void mr_put(struct kernel *k, struct kmr *mr, uint32_t hca)
{
	mr->hca = hca;
	if (sh_grace_over(&k->dev, 0, mr->moment))
		(void)mr_finish(k, &mr->aside);
	else
		aside_until_left(k, &mr->aside, mr_finish);
}

/*
 * The access bits of a region, and those that a kernel which does not know them may ignore. OFED
 * does not check the rest.
 */
#define ACCESS_KNOWN                                                                               \
	(SH_LOCAL_WRITE | SH_REMOTE_WRITE | SH_REMOTE_READ | SH_REMOTE_ATOMIC | SH_MW_BIND)
#define ACCESS_OPTIONAL 0x3ff00000u
#define ACCESS_HUGETLB	0x80u

static bool access_ok(const struct kernel *k, uint32_t access)
{
	if (access & (SH_REMOTE_WRITE | SH_REMOTE_ATOMIC) && !(access & SH_LOCAL_WRITE))
		return false;
	return k->cfg.device.face == SH_FACE_OFED ||
	       !(access & ~(ACCESS_KNOWN | ACCESS_OPTIONAL | ACCESS_HUGETLB));
}

int cmd_reg_mr(struct call *c)
{
	const struct uv_reg_mr *cmd = (const void *)c->in;
	struct kernel *k = c->k;
	struct hca_objects *hca = &k->uverbs->objects[c->ctx->hca];
	struct uv_reg_mr_resp resp;
	struct kmr *mr;
	uint32_t index;
	uint64_t pages = pages_of(cmd->start, cmd->length);
	int err;

	if ((cmd->start ^ cmd->hca_va) % K_PAGE)
		return -EINVAL;
	if (!access_ok(k, cmd->access_flags))
		return -EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	err = -EINVAL;
	mr->pd = uobj_get(c->ctx, UO_PD, cmd->pd_handle);
	if (!mr->pd || call_owner(c) < 0 || cmd->start + cmd->length < cmd->start ||
	    cmd->hca_va + cmd->length < cmd->hca_va)
		goto err_free;
	if (!cmd->length && k->cfg.device.face == SH_FACE_MAINLINE)
		goto err_free;
	err = mem_charge(c, pages);
	if (err < 0)
		goto err_free;
	if (cmd->length && !c->pinned) {
		c->ctx->proc->locked -= pages;
		free(mr);
		return pin(c, cmd->start, cmd->length,
			   (cmd->access_flags & ACCESS_KNOWN & ~SH_REMOTE_READ) != 0);
	}
	err = c->pin_error;
	if (err < 0)
		goto err_charge;
	err = num_get(&hca->mpt, &index);
	if (err < 0)
		goto err_charge;
	mr->key = key_of(index);
	mr->start = cmd->start;
	mr->len = cmd->length;
	mr->access = cmd->access_flags;
	mr->locked = pages;
	err = sh_mr_create_at(&k->dev, c->ctx->hca, mr->key, c->ctx->index, mr->pd->pdn,
			      cmd->hca_va, mr->start, mr->len, mr->access & ACCESS_KNOWN);
	if (err < 0)
		goto err_num;
	err = uobj_add(c->ctx, &mr->u, UO_MR);
	if (err < 0)
		goto err_mr;
	resp.mr_handle = mr->u.handle;
	resp.lkey = resp.rkey = mr->key;
	err = call_respond(c, &resp, sizeof(resp), NULL, 0);
	if (err < 0)
		goto err_del;
	mr->pd->refs++;
	region_join(c, mr);
	return 0;

err_del:
	uobj_del(&mr->u);
err_mr:
	(void)sh_mr_destroy(&k->dev, c->ctx->hca, mr->key);
	mr->moment = sh_grace_begin(&k->dev);
	c->ctx->proc->locked -= pages;
	mr_put(k, mr, c->ctx->hca);
	return err;
err_num:
	num_put(&hca->mpt, index);
err_charge:
	c->ctx->proc->locked -= pages;
err_free:
	free(mr);
	return err;
}

/* From now on no thread finds the key. */
static void mr_end(struct kmr *mr)
{
	struct kctx *ctx = mr->u.ctx;

	if (mr->moment)
		return;
	(void)sh_mr_destroy(&ctx->k->dev, ctx->hca, mr->key);
	mr->moment = sh_grace_begin(&ctx->k->dev);
}

void mr_free(struct kmr *mr)
{
	struct kctx *ctx = mr->u.ctx;
	struct kernel *k = ctx->k;

	mr_end(mr);
	ctx->proc->locked -= mr->locked;
	region_leave(mr);
	mr->pd->refs--;
	uobj_del(&mr->u);
	mr_put(k, mr, ctx->hca);
}

/*
 * The device must not touch the memory after the command has returned. So the answer waits until
 * each thread that may have found the key has left device code. A thread that takes too long,
 * because it is stopped, is waited for once, and again when it goes on. What it stores after the
 * answer does not reach the program if the program takes back the pages, which the answer offers.
 */
int cmd_dereg_mr(struct call *c)
{
	const struct uv_handle *cmd = (const void *)c->in;
	struct kmr *mr = uobj_get(c->ctx, UO_MR, cmd->handle);
	struct kernel *k = c->k;
	uint64_t start, len;
	bool left;
	int err;

	if (!mr)
		return k->uverbs->face->no_object;
	mr_end(mr);
	err = call_left(c, mr->moment);
	if (err < 0)
		return err;
	left = sh_grace_over(&k->dev, 0, mr->moment);
	start = mr->start;
	len = mr->len;
	mr_free(mr);
	if (call_owner(c) == 0)
		region_offer(c, start, len, left);
	return 0;
}

/* ---- address handles: mlx4's library keeps its own, other libraries may ask ---- */

int cmd_create_ah(struct call *c)
{
	const struct uv_create_ah *cmd = (const void *)c->in;
	struct uv_create_ah_resp resp;
	struct kah *ah;
	int err;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return -ENOMEM;
	ah->pd = uobj_get(c->ctx, UO_PD, cmd->pd_handle);
	ah->attr = cmd->attr;
	ah->u.user_handle = cmd->user_handle;
	if (!ah->pd) {
		free(ah);
		return -EINVAL;
	}
	err = uobj_add(c->ctx, &ah->u, UO_AH);
	if (err < 0) {
		free(ah);
		return err;
	}
	resp.handle = ah->u.handle;
	err = call_respond(c, &resp, sizeof(resp), NULL, 0);
	if (err < 0) {
		uobj_del(&ah->u);
		free(ah);
		return err;
	}
	ah->pd->refs++;
	return 0;
}

int cmd_destroy_ah(struct call *c)
{
	const struct uv_handle *cmd = (const void *)c->in;
	struct kah *ah = uobj_get(c->ctx, UO_AH, cmd->handle);

	if (!ah)
		return c->k->uverbs->face->no_object;
	ah->pd->refs--;
	uobj_del(&ah->u);
	free(ah);
	return 0;
}
