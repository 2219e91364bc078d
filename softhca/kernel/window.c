// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Windows: a megabyte of a client's addresses whose queue pages, wherever they are in it, lie in
 * device memory at the same distance from each other. The client's kernel then makes one mapping of
 * all that are adjacent. Without this every queue would take a mapping, and their number is limited
 * (vm.max_map_count). A page of a window is only ever handed out for one address of one process, so
 * it need not rest before it is handed out again. A window ends with its last page. Pages that do
 * not fit into a window come from the pool.
 */
#include <stdlib.h>
#include <string.h>

#include "kern.h"
#include "lists.h"
#include "process.h"
#include "window.h"

#define WINDOW_SIZE ((uint64_t)POOL_UNIT * K_PAGE)

struct kwindow {
	struct kproc *proc;
	uint64_t uaddr;		      /* of its first page */
	uint64_t unit;		      /* of the pool */
	uint64_t map[POOL_UNIT / 64]; /* pages that are handed out */
	uint32_t used;
	UT_hash_handle hh; /* of the process */
};

static uint64_t offset_of(const struct kernel *k, const struct kwindow *w, uint64_t page)
{
	return k->pool.base + (w->unit * POOL_UNIT + page) * K_PAGE;
}

static bool is_free(const struct kwindow *w, uint64_t page, uint64_t npages)
{
	for (; npages; npages--, page++)
		if (w->map[page / 64] >> page % 64 & 1)
			return false;
	return true;
}

static void flip(struct kwindow *w, uint64_t page, uint64_t npages)
{
	for (; npages; npages--, page++)
		w->map[page / 64] ^= UINT64_C(1) << page % 64;
}

static struct kwindow *window_new(struct kernel *k, struct kproc *p, uint64_t uaddr)
{
	struct kwindow *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->unit = pool_claim_unit(&k->pool);
	if (w->unit == UINT64_MAX) {
		free(w);
		return NULL;
	}
	w->proc = p;
	w->uaddr = uaddr;
	HASH_ADD(hh, p->windows, uaddr, sizeof(w->uaddr), w);
	if (!w->hh.tbl) {
		pool_release_unit(&k->pool, w->unit);
		free(w);
		return NULL;
	}
	k->pool.window[w->unit] = w;
	return w;
}

static void window_free(struct kernel *k, struct kwindow *w)
{
	k->pool.window[w->unit] = NULL;
	pool_release_unit(&k->pool, w->unit);
	HASH_DEL(w->proc->windows, w);
	free(w);
}

uint64_t pages_get(struct kernel *k, struct kproc *p, uint64_t uaddr, uint64_t npages)
{
	uint64_t begin = uaddr & ~(WINDOW_SIZE - 1), page = (uaddr - begin) / K_PAGE, off;
	struct kwindow *w;

	if (!npages || npages > POOL_UNIT - page)
		return pool_get(&k->pool, npages);
	HASH_FIND(hh, p->windows, &begin, sizeof(begin), w);
	if (!w)
		w = window_new(k, p, begin);
	if (!w || !is_free(w, page, npages))
		return pool_get(&k->pool, npages);
	off = offset_of(k, w, page);
	if (pool_back(&k->pool, off, npages) < 0) {
		if (!w->used)
			window_free(k, w);
		return 0;
	}
	flip(w, page, npages);
	w->used += npages;
	return off;
}

void pages_put(struct kernel *k, uint64_t off, uint64_t npages)
{
	uint64_t page;
	struct kwindow *w;

	if (!off || !npages)
		return;
	page = (off - k->pool.base) / K_PAGE;
	w = k->pool.window[page / POOL_UNIT];
	if (!w) {
		pool_put(&k->pool, off, npages);
		return;
	}
	pool_unback(&k->pool, off, npages);
	flip(w, page % POOL_UNIT, npages);
	w->used -= npages;
	if (!w->used)
		window_free(k, w);
}
