// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * XRC domains. The inode behind the descriptor that a process passes names a domain of one device.
 * The daemon keeps the inode open, so that its number is not used again. No other process can open
 * a domain that was made without a descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libmlx4/src/mlx4-abi.h"
#include "softhca/kernel/user.h"
#include "commands.h"
#include "context.h"
#include "uverbs.h"
#include "xrc.h"

static void domain_free(struct kernel *k, struct kxrcd *d)
{
	struct hca_objects *hca = &k->uverbs->objects[d->hca];

	num_put(&hca->xrcdn, d->xrcdn);
	num_put(&hca->pdn, d->pdn);
	if (d->fd >= 0)
		close(d->fd);
	DL_DELETE(hca->xrcds, d);
	free(d);
}

static void domain_check(struct kernel *k, struct kxrcd *d)
{
	if (!d->opens && !d->users)
		domain_free(k, d);
}

void xrcd_put_user(struct kernel *k, struct kxrcd *d)
{
	d->users--;
	domain_check(k, d);
}

/* Takes fd over, even if it fails. */
static int domain_new(struct kernel *k, uint32_t index, int fd, const struct stat *st,
		      struct kxrcd **out)
{
	struct hca_objects *hca = &k->uverbs->objects[index];
	struct kxrcd *d = calloc(1, sizeof(*d));
	int err = -ENOMEM;

	if (!d)
		goto err_fd;
	d->hca = index;
	d->fd = fd;
	if (fd >= 0) {
		d->key.dev = st->st_dev;
		d->key.ino = st->st_ino;
	}
	err = num_get(&hca->xrcdn, &d->xrcdn);
	if (err < 0)
		goto err_free;
	err = num_get(&hca->pdn, &d->pdn);
	if (err < 0)
		goto err_num;
	DL_APPEND(hca->xrcds, d);
	*out = d;
	return 0;

err_num:
	num_put(&hca->xrcdn, d->xrcdn);
err_free:
	free(d);
err_fd:
	if (fd >= 0)
		close(fd);
	return err;
}

static struct kxrcd *domain_find(struct kernel *k, uint32_t hca, const struct stat *st)
{
	struct kxrcd *d;

	DL_FOREACH(k->uverbs->objects[hca].xrcds, d)
	if (d->fd >= 0 && d->key.dev == st->st_dev && d->key.ino == st->st_ino)
		return d;
	return NULL;
}

static int domain_get(struct call *c, int fd, uint32_t oflags, struct kxrcd **out, bool *made)
{
	struct kernel *k = c->k;
	struct kxrcd *d = NULL;
	struct stat st;
	int own;

	*made = true;
	if (fd == -1)
		return domain_new(k, c->ctx->hca, -1, NULL, out);
	own = client_file(k, c->tid, fd);
	if (own < 0)
		return own;
	if (fstat(own, &st) < 0) {
		close(own);
		return -EBADF;
	}
	d = domain_find(k, c->ctx->hca, &st);
	if (!d && oflags & O_CREAT)
		return domain_new(k, c->ctx->hca, own, &st, out);
	close(own);
	if (!d)
		return -EAGAIN;
	if (oflags & O_EXCL)
		return -EINVAL;
	*made = false;
	*out = d;
	return 0;
}

int cmd_open_xrcd(struct call *c)
{
	const struct uv_open_xrc_domain *cmd = (const void *)c->in;
	struct mlx4_abi_open_xrc_domain_resp drv = {0};
	struct uv_open_xrc_domain_resp resp;
	struct kxrcd_handle *xh;
	struct kxrcd *d;
	bool made, tell;
	int err;

	xh = calloc(1, sizeof(*xh));
	if (!xh)
		return -ENOMEM;
	err = domain_get(c, (int)cmd->fd, cmd->oflags, &d, &made);
	if (err < 0) {
		free(xh);
		return err;
	}
	xh->d = d;
	err = uobj_add(c->ctx, &xh->u, UO_XRCD);
	if (err < 0)
		goto err_domain;
	resp.xrcd_handle = xh->u.handle;
	drv.xrcdn = d->xrcdn;
	tell = made && c->k->cfg.device.face == SH_FACE_OFED;
	err = call_respond(c, &resp, sizeof(resp), &drv, tell ? sizeof(drv.xrcdn) : 0);
	if (err < 0)
		goto err_del;
	d->opens++;
	return 0;

err_del:
	uobj_del(&xh->u);
err_domain:
	domain_check(c->k, d);
	free(xh);
	return err;
}

void xrcd_drop(struct kernel *k, struct kxrcd_handle *xh)
{
	struct kxrcd *d = xh->d;

	d->opens--;
	domain_check(k, d);
	uobj_del(&xh->u);
	free(xh);
}

/* OFED checks what the calling context has in the domain, through any handle. */
static bool used_by_context(const struct kctx *ctx, const struct kxrcd *d)
{
	const struct uobj *u;

	if (!d->users)
		return false;
	DL_FOREACH(ctx->objs[UO_QP], u)
	{
		const struct kqp *qp = ((const struct kqp_handle *)u)->qp;

		if (qp && qp->d == d)
			return true;
	}
	DL_FOREACH(ctx->objs[UO_SRQ], u)
	if (((const struct ksrq *)u)->d == d)
		return true;
	return false;
}

static int close_domain(struct call *c, struct kxrcd_handle *xh)
{
	if (xh->regs || ((xh->d->fd < 0 || xh->d->opens == 1) && xh->d->users))
		return -EBUSY;
	xrcd_drop(c->k, xh);
	return 0;
}

int cmd_close_xrc_domain(struct call *c)
{
	const struct uv_object *cmd = (const void *)c->in;
	struct kxrcd_handle *xh = uobj_get(c->ctx, UO_XRCD, cmd->handle);

	if (!xh)
		return -EINVAL;
	if (used_by_context(c->ctx, xh->d))
		return -EBUSY;
	return close_domain(c, xh);
}

int cmd_close_xrcd(struct call *c)
{
	const struct uv_handle *cmd = (const void *)c->in;
	struct kxrcd_handle *xh = uobj_get(c->ctx, UO_XRCD, cmd->handle);

	if (!xh)
		return c->k->uverbs->face->no_object;
	if (xh->srqs)
		return -EBUSY;
	return close_domain(c, xh);
}
