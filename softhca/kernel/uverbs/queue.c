// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue buffers and doorbell records of clients. Their pages become pages of device memory when
 * they are registered: the daemon copies the contents in, and the shim maps the new pages over the
 * old ones before the command returns. Where that is not wanted, or not possible, shm stays 0 and
 * the device copies through the host interface. Either way the bytes of a buffer count against
 * RLIMIT_MEMLOCK.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/host/memory.h"
#include "softhca/device/queues/unshare.h"
#include "softhca/kernel/kern.h"
#include "softhca/kernel/process.h"
#include "softhca/kernel/window.h"
#include "command.h"
#include "context.h"
#include "objects.h"
#include "queue.h"
#include "region.h"

int mem_charge(struct call *c, uint64_t pages)
{
	struct kproc *p = c->ctx->proc;

	if (!c->cap_ipc_lock && p->locked + pages > c->memlock_limit / K_PAGE)
		return -ENOMEM;
	p->locked += pages;
	return 0;
}

static int user_read(struct kctx *ctx, uint64_t addr, void *buf, size_t len)
{
	return client_read(ctx->k, &ctx->proc->user, addr, buf, len);
}

/* Is each page present, and writable if it must be? The contents do not change. */
static int check_pages(struct kctx *ctx, uint64_t addr, uint64_t len, bool write)
{
	uint64_t at;
	char byte;

	for (at = addr; at < addr + len; at += K_PAGE) {
		if (user_read(ctx, at, &byte, 1) < 0)
			return -EFAULT;
		if (write && client_write(ctx->k, &ctx->proc->user, at, &byte, 1) < 0)
			return -EFAULT;
	}
	return 0;
}

static void add_action(struct call *c, uint64_t uaddr, uint64_t len, uint64_t shm)
{
	struct sh_action *a = &c->r->action[c->r->nactions++];

	a->uaddr = uaddr;
	a->len = len;
	a->shm_off = shm;
	a->kind = SH_ACTION_QUEUE;
}

/*
 * Gets pages of device memory with what the client has there now. Returns 0 and *shm, which is 0 if
 * the pages stay the client's own.
 */
static int share(struct call *c, uint64_t uaddr, uint64_t len, uint64_t *shm)
{
	struct kernel *k = c->k;

	*shm = 0;
	if (k->cfg.copy_queues || c->r->nactions == SH_MAX_ACTIONS) {
		k->count.queues_copied++;
		return 0;
	}
	*shm = pages_get(k, c->ctx->proc, uaddr, len / K_PAGE);
	if (!*shm)
		return -ENOMEM;
	if (sh_memory_extend(&k->dev, *shm, len) < 0) {
		/* The daemon's own limit must not make the client's command fail. */
		pages_put(k, *shm, len / K_PAGE);
		*shm = 0;
		k->count.queues_copied++;
		return 0;
	}
	if (user_read(c->ctx, uaddr, sh_at(&k->dev, *shm), len) < 0) {
		pages_put(k, *shm, len / K_PAGE);
		*shm = 0;
		return -EFAULT;
	}
	/* Registered memory that was shared there is not mapped there any more. */
	(void)region_changed(k, c->ctx->proc, SH_CHANGED_GONE, uaddr, len, false);
	add_action(c, uaddr, len, *shm);
	k->count.queues_shared++;
	return 0;
}

int buf_map(struct call *c, struct kbuf *b, uint64_t addr, uint64_t len, bool write)
{
	uint64_t first = addr & ~(uint64_t)(K_PAGE - 1), last, shm;
	int err;

	if (!len || addr + len < addr || addr + len > UINT64_MAX - K_PAGE)
		return -EINVAL;
	last = (addr + len + K_PAGE - 1) & ~(uint64_t)(K_PAGE - 1);
	err = mem_charge(c, (last - first) / K_PAGE);
	if (err < 0)
		return err;
	err = share(c, first, last - first, &shm);
	if (err == 0 && (write || !shm))
		err = check_pages(c->ctx, first, last - first, write);
	if (err < 0) {
		pages_put(c->k, shm, (last - first) / K_PAGE);
		c->ctx->proc->locked -= (last - first) / K_PAGE;
		return err;
	}
	b->uaddr = first;
	b->len = last - first;
	b->shm = shm;
	b->locked = (last - first) / K_PAGE;
	return 0;
}

void buf_uncount(struct kctx *ctx, struct kbuf *b)
{
	ctx->proc->locked -= b->locked;
	b->locked = 0;
}

void buf_free(struct kernel *k, struct kbuf *b)
{
	pages_put(k, b->shm, b->len / K_PAGE);
	memset(b, 0, sizeof(*b));
}

void buf_unmap(struct kctx *ctx, struct kbuf *b)
{
	buf_uncount(ctx, b);
	buf_free(ctx->k, b);
}

struct sh_umem buf_umem(const struct kctx *ctx, const struct kbuf *b)
{
	return (struct sh_umem){
		.uaddr = b->uaddr, .len = b->len, .shm_off = b->shm, .ctx = ctx->index};
}

/*
 * The records in one page share one page of device memory. A page is converted when the first
 * object gets a record in it. The record of every object starts at zero, which is what its provider
 * has just written.
 */
int db_get(struct call *c, uint64_t addr, uint32_t len, struct sh_umem *m)
{
	struct kctx *ctx = c->ctx;
	uint64_t uaddr = addr & ~(uint64_t)(K_PAGE - 1);
	struct dbpage *page;
	int err;

	if (addr & 3 || addr - uaddr + len > K_PAGE)
		return -EINVAL;
	HASH_FIND(hh, ctx->dbpages, &uaddr, sizeof(uaddr), page);
	if (!page) {
		page = calloc(1, sizeof(*page));
		if (!page)
			return -ENOMEM;
		page->uaddr = uaddr;
		err = mem_charge(c, 1);
		if (err < 0) {
			free(page);
			return err;
		}
		err = share(c, uaddr, K_PAGE, &page->shm);
		if (err == 0 && !page->shm)
			err = check_pages(ctx, uaddr, K_PAGE, false);
		if (err == 0) {
			HASH_ADD(hh, ctx->dbpages, uaddr, sizeof(page->uaddr), page);
			err = page->hh.tbl ? 0 : -ENOMEM;
		}
		if (err < 0) {
			pages_put(c->k, page->shm, 1);
			ctx->proc->locked--;
			free(page);
			return err;
		}
	}
	page->refs++;
	*m = (struct sh_umem){.uaddr = addr, .len = len, .ctx = ctx->index};
	if (page->shm) {
		m->shm_off = page->shm + (addr - uaddr);
		memset(sh_at(&c->k->dev, m->shm_off), 0, len);
	}
	return 0;
}

void db_put(struct kctx *ctx, uint64_t addr)
{
	uint64_t uaddr = addr & ~(uint64_t)(K_PAGE - 1);
	struct dbpage *page;

	HASH_FIND(hh, ctx->dbpages, &uaddr, sizeof(uaddr), page);
	if (!page || --page->refs)
		return;
	pages_put(ctx->k, page->shm, 1);
	ctx->proc->locked--;
	HASH_DEL(ctx->dbpages, page);
	free(page);
}

/* ---- the shim could not map the pages ---- */

static bool covers(const struct kbuf *b, uint64_t uaddr, uint64_t len)
{
	return b->shm && b->uaddr == uaddr && b->len == len;
}

static bool has_buffer(const struct uobj *u, uint64_t uaddr, uint64_t len)
{
	switch (u->type) {
	case UO_CQ:
		return covers(&((const struct kcq *)u)->buf, uaddr, len);
	case UO_SRQ:
		return covers(&((const struct ksrq *)u)->buf, uaddr, len);
	case UO_QP:
		return ((const struct kqp_handle *)u)->qp &&
		       covers(&((const struct kqp_handle *)u)->qp->buf, uaddr, len);
	default:
		return false;
	}
}

static bool within(const struct kbuf *b, uint64_t addr, uint64_t len)
{
	return addr >= b->uaddr && len <= b->len && addr - b->uaddr <= b->len - len;
}

bool queues_cover(const struct kctx *ctx, uint64_t addr, uint64_t len)
{
	uint64_t uaddr = addr & ~(uint64_t)(K_PAGE - 1);
	const struct dbpage *page;
	const struct uobj *u;

	HASH_FIND(hh, ctx->dbpages, &uaddr, sizeof(uaddr), page);
	if (page && addr - uaddr + len <= K_PAGE)
		return true;
	DL_FOREACH(ctx->objs[UO_CQ], u)
	{
		const struct kcq *cq = (const struct kcq *)u;

		if (within(&cq->buf, addr, len) || within(&cq->old, addr, len))
			return true;
	}
	DL_FOREACH(ctx->objs[UO_SRQ], u)
	if (within(&((const struct ksrq *)u)->buf, addr, len))
		return true;
	DL_FOREACH(ctx->objs[UO_QP], u)
	{
		const struct kqp_handle *h = (const struct kqp_handle *)u;

		if (h->qp && h->qp->ctx == ctx && within(&h->qp->buf, addr, len))
			return true;
	}
	return false;
}

static void forget(struct kernel *k, struct kbuf *b)
{
	pages_put(k, b->shm, b->len / K_PAGE);
	b->shm = 0;
}

static bool in_page(uint64_t db, const struct dbpage *page)
{
	return page && db / K_PAGE == page->uaddr / K_PAGE;
}

static int unshare_cq(struct kctx *ctx, struct kcq *cq, const struct dbpage *page, uint64_t uaddr,
		      uint64_t len)
{
	int err = 0;

	if (covers(&cq->buf, uaddr, len) || in_page(cq->db, page))
		err = sh_cq_unshare(&ctx->k->dev, ctx->hca, cq->cqn, uaddr, len);
	if (!err && covers(&cq->buf, uaddr, len))
		forget(ctx->k, &cq->buf);
	return err;
}

static int unshare_srq(struct kctx *ctx, struct ksrq *srq, const struct dbpage *page,
		       uint64_t uaddr, uint64_t len)
{
	int err = 0;

	if (covers(&srq->buf, uaddr, len) || in_page(srq->db, page))
		err = sh_srq_unshare(&ctx->k->dev, ctx->hca, srq->srqn, uaddr, len);
	if (!err && covers(&srq->buf, uaddr, len))
		forget(ctx->k, &srq->buf);
	return err;
}

static int unshare_qp(struct kctx *ctx, struct kqp *qp, const struct dbpage *page, uint64_t uaddr,
		      uint64_t len)
{
	int err = 0;

	if (!qp || qp->ctx != ctx)
		return 0;
	if (covers(&qp->buf, uaddr, len) || (qp->db && in_page(qp->db, page)))
		err = sh_qp_unshare(&ctx->k->dev, ctx->hca, qp->qpn, uaddr, len);
	if (!err && covers(&qp->buf, uaddr, len))
		forget(ctx->k, &qp->buf);
	return err;
}

static int unshare_one(struct uobj *u, const struct dbpage *page, uint64_t uaddr, uint64_t len)
{
	switch (u->type) {
	case UO_CQ:
		return unshare_cq(u->ctx, (struct kcq *)u, page, uaddr, len);
	case UO_SRQ:
		return unshare_srq(u->ctx, (struct ksrq *)u, page, uaddr, len);
	case UO_QP:
		return unshare_qp(u->ctx, ((struct kqp_handle *)u)->qp, page, uaddr, len);
	default:
		return 0;
	}
}

/* Ends at the first failure: the rest stays as it is. */
static int unshare_all(struct kctx *ctx, enum uobj_type type, const struct dbpage *page,
		       uint64_t uaddr, uint64_t len)
{
	struct uobj *u;
	int err = 0;

	DL_FOREACH(ctx->objs[type], u)
	{
		err = unshare_one(u, page, uaddr, len);
		if (err)
			break;
	}
	return err;
}

/*
 * Every object of the context that has something there. As a rule that is the newest one alone,
 * from whose command the client has not come back.
 */
static int unshare_objects(struct kctx *ctx, const struct dbpage *page, uint64_t uaddr,
			   uint64_t len)
{
	struct uobj *newest = ctx->newest;
	int err;

	if (newest && (page ? page->refs == 1 : has_buffer(newest, uaddr, len)))
		return unshare_one(newest, page, uaddr, len);
	err = unshare_all(ctx, UO_CQ, page, uaddr, len);
	if (!err)
		err = unshare_all(ctx, UO_SRQ, page, uaddr, len);
	if (!err)
		err = unshare_all(ctx, UO_QP, page, uaddr, len);
	return err;
}

int map_failed(struct kctx *ctx, uint64_t uaddr, uint64_t len)
{
	struct dbpage *page;
	int err;

	HASH_FIND(hh, ctx->dbpages, &uaddr, sizeof(uaddr), page);
	err = unshare_objects(ctx, page, uaddr, len);
	if (err == -EINPROGRESS)
		return err;
	ctx->k->count.maps_failed++;
	if (err < 0 || !page)
		return err;
	pages_put(ctx->k, page->shm, 1);
	page->shm = 0;
	return 0;
}
