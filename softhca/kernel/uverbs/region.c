// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Registered memory whose pages are device memory: regions of a process, each a run of whole pages
 * that the shim has exchanged for pages of the shared pool. A region belongs to the process, not to
 * a context, because its pages hold what the application wrote. So they are given back only when
 * the shim says that they are mapped no more, or when the process has ended. Memory regions (kmr)
 * use a region until its pages are about to change their meaning. Then they are taken off it, and
 * the device reaches the memory as it reaches any other.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/mr.h"
#include "softhca/kernel/kern.h"
#include "softhca/kernel/process.h"
#include "softhca/kernel/window.h"
#include "command.h"
#include "context.h"
#include "objects.h"
#include "region.h"

/* Ranges that overlap are equal, so a search also finds what is in the way. */
static int by_range(const void *a, const void *b)
{
	const struct kregion *r = a, *s = b;

	if (r->uaddr + r->len <= s->uaddr)
		return -1;
	return r->uaddr >= s->uaddr + s->len;
}

static struct kregion *overlapping(struct kproc *p, uint64_t uaddr, uint64_t len)
{
	struct kregion key = {.uaddr = uaddr, .len = len};
	struct kregion **found = tfind(&key, &p->regions, by_range);

	return found ? *found : NULL;
}

/* NULL: no memory. Takes the pages over only when it succeeds. */
static struct kregion *region_add(struct kproc *p, uint64_t uaddr, uint64_t len, uint64_t shm,
				  uint64_t born)
{
	struct kregion *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->uaddr = uaddr;
	r->len = len;
	r->shm = shm;
	r->born = born;
	if (!tsearch(r, &p->regions, by_range)) {
		free(r);
		return NULL;
	}
	return r;
}

static bool used_unshared(const struct kproc *p, uint64_t uaddr, uint64_t len)
{
	const struct kmr *mr;

	DL_FOREACH2(p->unshared, mr, rnext)
	if (mr->start < uaddr + len && uaddr < mr->start + mr->len)
		return true;
	return false;
}

static void use(struct kmr *mr, struct kregion *r)
{
	mr->region = r;
	DL_APPEND2(r->mrs, mr, rprev, rnext);
}

/* ---- memory regions come and go ---- */

static struct kregion *region_new(struct call *c, uint64_t first, uint64_t len)
{
	struct kernel *k = c->k;
	struct kproc *p = c->proc;
	struct kregion *r;
	struct sh_action *a;
	uint64_t shm;

	if (c->r->nactions == SH_MAX_ACTIONS || used_unshared(p, first, len) ||
	    region_changed(k, p, SH_CHANGED_GONE, first, len, false) < 0)
		return NULL;
	shm = pool_get(&k->shared, len / K_PAGE);
	if (!shm && pages_reclaim(k))
		shm = pool_get(&k->shared, len / K_PAGE);
	if (!shm)
		return NULL;
	r = region_add(p, first, len, shm, sh_grace_begin(&k->dev));
	if (!r) {
		pool_put(&k->shared, shm, len / K_PAGE);
		return NULL;
	}
	a = &c->r->action[c->r->nactions++];
	*a = (struct sh_action){
		.uaddr = first, .len = len, .shm_off = shm, .kind = SH_ACTION_SHARE};
	return r;
}

void region_join(struct call *c, struct kmr *mr)
{
	uint64_t first = mr->start & ~(uint64_t)(K_PAGE - 1);
	uint64_t len = ((mr->start + mr->len + K_PAGE - 1) & ~(uint64_t)(K_PAGE - 1)) - first;
	struct kregion *r = NULL;

	if (mr->len && c->share == SH_SHARE_HAVE) {
		r = overlapping(c->proc, first, len);
		if (r && (r->uaddr > first || first + len > r->uaddr + r->len ||
			  c->have_off != r->shm + (first - r->uaddr)))
			r = NULL;
	} else if (mr->len && c->share == SH_SHARE_PRIVATE) {
		r = region_new(c, first, len);
	}
	if (!r) {
		if (mr->len)
			c->k->count.regions_private++;
		DL_APPEND2(c->proc->unshared, mr, rprev, rnext);
		return;
	}
	use(mr, r);
	(void)sh_mr_share(&c->k->dev, c->ctx->hca, mr->key, r->shm + (mr->start - r->uaddr));
	c->k->count.regions_shared++;
}

void region_leave(struct kmr *mr)
{
	struct kproc *p = mr->u.ctx->proc;

	if (mr->region)
		DL_DELETE2(mr->region->mrs, mr, rprev, rnext);
	else
		DL_DELETE2(p->unshared, mr, rprev, rnext);
	mr->region = NULL;
}

/*
 * If no registration uses the region, the caller may have its pages as its own again. What a thread
 * that has not left stores there late goes to the old pages, which are set aside until it has left.
 * But a stopped thread knows nothing of a region that is newer than the end of the wait for it.
 * Such a region stays device memory: else a program that registers and deregisters over and over
 * would have all pages set aside.
 */
static void offer(struct call *c, const struct kregion *r, bool left)
{
	struct sh_action *a;

	if (!left && !may_know(c->k, r->born))
		return;
	/* The copy must not miss what the device may still write there by another key. */
	if (r->mrs || c->r->nactions == SH_MAX_ACTIONS || used_unshared(c->proc, r->uaddr, r->len))
		return;
	a = &c->r->action[c->r->nactions++];
	*a = (struct sh_action){
		.uaddr = r->uaddr, .len = r->len, .shm_off = r->shm, .kind = SH_ACTION_GIVE_BACK};
}

static struct kregion *leftmost(struct kproc *p, uint64_t uaddr, uint64_t len)
{
	struct kregion *r = overlapping(p, uaddr, len), *left;

	/* To the search all that overlap are equal. */
	while (r && r->uaddr > uaddr && (left = overlapping(p, uaddr, r->uaddr - uaddr)))
		r = left;
	return r;
}

void region_offer(struct call *c, uint64_t uaddr, uint64_t len, bool left)
{
	uint64_t end = uaddr + len;
	const struct kregion *r;

	while (uaddr < end && (r = leftmost(c->proc, uaddr, end - uaddr))) {
		offer(c, r, left);
		uaddr = r->uaddr + r->len;
	}
}

/* ---- the pages change ---- */

/*
 * To each thread that looks up a key of the region from now on, it means the process's own
 * addresses again.
 */
static void revoke(struct kernel *k, struct kproc *p, struct kregion *r)
{
	struct kmr *mr;

	while ((mr = r->mrs)) {
		(void)sh_mr_share(&k->dev, mr->u.ctx->hca, mr->key, 0);
		DL_DELETE2(r->mrs, mr, rprev, rnext);
		mr->region = NULL;
		DL_APPEND2(p->unshared, mr, rprev, rnext);
	}
}

static bool region_finish(struct kernel *k, struct aside *a)
{
	struct kregion *r = container_of(a, struct kregion, aside);

	pool_put(&k->shared, r->shm, r->len / K_PAGE);
	free(r);
	return true;
}

/* Its pages are given out again when no thread in device code can be using them. */
static void give_up(struct kernel *k, struct kregion *r)
{
	if (sh_grace_over(&k->dev, 0, sh_grace_begin(&k->dev)))
		(void)region_finish(k, &r->aside);
	else
		aside_until_left(k, &r->aside, region_finish);
}

/*
 * The part of r in [from, to) is no longer mapped. What is left of r stays, as one region or as
 * two.
 */
static int cut(struct kernel *k, struct kproc *p, struct kregion *r, uint64_t from, uint64_t to)
{
	uint64_t end = r->uaddr + r->len;
	struct kregion *part;

	if (from < r->uaddr)
		from = r->uaddr;
	if (to > end)
		to = end;
	if (from == r->uaddr && to == end) {
		tdelete(r, &p->regions, by_range);
		give_up(k, r);
		return 0;
	}
	part = calloc(1, sizeof(*part));
	if (!part)
		return -ENOMEM;
	part->len = to - from;
	part->shm = r->shm + (from - r->uaddr);
	if (from == r->uaddr) {
		r->shm += to - from;
		r->len -= to - from;
		r->uaddr = to; /* its place in the order stays: nothing lies between */
	} else {
		r->len = from - r->uaddr;
		/*
		 * The rest behind the part: if it cannot become a region of its own, r stays whole.
		 */
		if (to < end && !region_add(p, to, end - to, part->shm + part->len, r->born)) {
			r->len = end - r->uaddr;
			free(part);
			return -ENOMEM;
		}
	}
	give_up(k, part);
	return 0;
}

/*
 * Can a thread still be using what was revoked? Threads that have taken too long already are not
 * waited for.
 */
static int revoked_over(struct kernel *k, struct kproc *p, bool late)
{
	if (p->revoked && !late && !all_left(k, p->revoked))
		return -EINPROGRESS;
	/* Asked last: a thread that was inside at the look before may have left since. */
	if (!p->revoked || sh_grace_over(&k->dev, 0, p->revoked)) {
		p->revoked = 0;
		return 0;
	}
	if (late)
		wait_no_more(k, p->revoked);
	return -EBUSY;
}

int region_changed(struct kernel *k, struct kproc *p, uint32_t what, uint64_t uaddr, uint64_t len,
		   bool late)
{
	uint64_t first = uaddr & ~(uint64_t)(K_PAGE - 1),
		 end = (uaddr + len + K_PAGE - 1) & ~(uint64_t)(K_PAGE - 1);
	uint64_t at = first;
	struct kregion *r;
	bool used = false;
	int err;

	if (!len || end <= first)
		return -EINVAL;
	while (at < end && (r = leftmost(p, at, end - at))) {
		if (r->mrs) {
			used = true;
			k->count.regions_revoked++;
		}
		revoke(k, p, r);
		at = r->uaddr + r->len;
	}
	if (used)
		p->revoked = sh_grace_begin(&k->dev);
	if (what != SH_CHANGED_GONE)
		return revoked_over(k, p, late);
	while ((r = overlapping(p, first, end - first))) {
		err = cut(k, p, r, first, end);
		if (err < 0)
			return err;
	}
	return 0;
}

static bool holds(const struct kmr *mr, uint64_t addr, uint64_t len, bool out)
{
	/*
	 * All that is written by a key, from near or far, needs this; the kernel does not look
	 * again.
	 */
	if (out && !(mr->access & SH_LOCAL_WRITE))
		return false;
	/*
	 * Also while the registration ends: threads that have found its key before may be copying.
	 */
	return addr >= mr->start && len <= mr->len && addr - mr->start <= mr->len - len;
}

bool region_covers(const struct kproc *p, uint64_t addr, uint64_t len, bool out)
{
	struct kregion key = {.uaddr = addr, .len = len ? len : 1};
	struct kregion **found = tfind(&key, &p->regions, by_range);
	const struct kmr *mr;

	DL_FOREACH2(p->unshared, mr, rnext)
	if (holds(mr, addr, len, out))
		return true;
	if (found)
		DL_FOREACH2((*found)->mrs, mr, rnext)
	if (holds(mr, addr, len, out))
		return true;
	return false;
}

/* ---- the process ends ---- */

void regions_orphan(struct kernel *k, struct kproc *p)
{
	struct kregion *r;

	/*
	 * A tree loses its order while it is taken apart, so this takes one node after the other
	 * from the root.
	 */
	while (p->regions) {
		r = *(struct kregion **)p->regions;
		revoke(k, p, r);
		tdelete(r, &p->regions, by_range);
		give_up(k, r);
	}
}
