// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Windows: a megabyte of a client's addresses whose queue pages, wherever they are in it, lie in
 * device memory at the same distance from each other. The client's kernel then makes one mapping of
 * all that are adjacent. Without this every queue would take a mapping, and their number is limited
 * (vm.max_map_count). A page of a window is only ever handed out for one address of one process, so
 * it need not rest before it is handed out again. Pages that do not fit into a window come from the
 * pool.
 *
 * To put memory behind a page is a system call, and so is to take it away, for which the kernel
 * visits the page tables of every process of the instance. So a window gets memory in steps, and
 * keeps that of pages that were given back: they are spare. A window that has had spare pages for a
 * second without a page coming or going gives up their memory, and so does every window when no
 * other memory is left, or when its process has ended. A window whose pages are all spare ends
 * then. The shim fills each page that is handed out, so no old contents appear.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kern.h"
#include "lists.h"
#include "process.h"
#include "window.h"

#define WINDOW_SIZE ((uint64_t)POOL_UNIT * K_PAGE)
#define STEP_MAX    16 /* pages; a power of 2 */
#define REST_RUNS   32 /* system calls of one pages_rest() */

struct kwindow {
	struct kproc *proc;
	uint64_t uaddr;			 /* of its first page */
	uint64_t unit;			 /* of the pool */
	uint64_t map[POOL_UNIT / 64];	 /* pages that are handed out */
	uint64_t backed[POOL_UNIT / 64]; /* pages with memory behind them: those, and spare ones */
	uint32_t used, spare;
	bool rested;		     /* no page has come or gone since the last pages_rest() */
	struct kwindow *prev, *next; /* among windows with spare pages */
	UT_hash_handle hh;	     /* of the process */
};

static uint64_t offset_of(const struct kernel *k, const struct kwindow *w, uint64_t page)
{
	return k->pool.base + (w->unit * POOL_UNIT + page) * K_PAGE;
}

static bool has(const uint64_t *map, uint64_t page)
{
	return map[page / 64] >> page % 64 & 1;
}

static bool is_free(const struct kwindow *w, uint64_t page, uint64_t npages)
{
	for (; npages; npages--, page++)
		if (has(w->map, page))
			return false;
	return true;
}

static void flip(uint64_t *map, uint64_t page, uint64_t npages)
{
	for (; npages; npages--, page++)
		map[page / 64] ^= UINT64_C(1) << page % 64;
}

/* Pages became spare (n > 0), or are no longer. */
static void count_spare(struct kernel *k, struct kwindow *w, int64_t n)
{
	if (!w->spare && n)
		DL_APPEND(k->pool.spared, w);
	w->spare += n;
	k->pool.spare += n;
	if (!w->spare)
		DL_DELETE(k->pool.spared, w);
}

/* Takes the memory of spare pages, in at most so many system calls. Returns how many remain. */
static uint32_t take_spare(struct kernel *k, struct kwindow *w, uint32_t runs)
{
	uint64_t page, end;

	for (page = 0; w->spare && runs && page < POOL_UNIT; page = end) {
		end = page + 1;
		if (!has(w->backed, page) || has(w->map, page))
			continue;
		/* Pages without memory may lie in between: they are not handed out. */
		for (uint64_t at = end; at < POOL_UNIT && !has(w->map, at); at++)
			if (has(w->backed, at))
				end = at + 1;
		pool_unback(&k->pool, offset_of(k, w, page), end - page);
		for (uint64_t at = page; at < end; at++) {
			if (!has(w->backed, at))
				continue;
			flip(w->backed, at, 1);
			count_spare(k, w, -1);
		}
		runs--;
	}
	return runs;
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
	while (w->spare)
		(void)take_spare(k, w, 1);
	k->pool.window[w->unit] = NULL;
	pool_release_unit(&k->pool, w->unit);
	HASH_DEL(w->proc->windows, w);
	free(w);
}

/* Puts memory behind those of the pages that have none. They are spare then. */
static int back(struct kernel *k, struct kwindow *w, uint64_t page, uint64_t npages)
{
	int64_t new = 0;

	for (uint64_t at = page; at < page + npages; at++)
		new += !has(w->backed, at);
	if (!new)
		return 0;
	if (pool_back(&k->pool, offset_of(k, w, page), npages) < 0)
		return -ENOMEM;
	for (uint64_t at = page; at < page + npages; at++)
		if (!has(w->backed, at))
			flip(w->backed, at, 1);
	count_spare(k, w, new);
	return 0;
}

/*
 * The same in a step. It is as long as what the window has, up to STEP_MAX, so that a small process
 * has few spare pages. Addresses may come in ascending or descending order.
 */
static int back_step(struct kernel *k, struct kwindow *w, uint64_t page, uint64_t npages)
{
	uint64_t step = STEP_MAX, from, end;
	bool missing = false;

	for (uint64_t at = page; at < page + npages; at++)
		missing |= !has(w->backed, at);
	if (!missing)
		return 0;
	while (step > 1 && step > w->used)
		step /= 2;
	from = page & ~(step - 1);
	end = (page + npages + step - 1) & ~(step - 1);
	return back(k, w, from, end - from) < 0 ? back(k, w, page, npages) : 0;
}

static uint64_t window_get(struct kernel *k, struct kwindow *w, uint64_t page, uint64_t npages)
{
	if (back_step(k, w, page, npages) < 0)
		return 0;
	w->rested = false;
	flip(w->map, page, npages);
	w->used += npages;
	k->pool.used += npages;
	count_spare(k, w, -(int64_t)npages);
	return offset_of(k, w, page);
}

static uint64_t get(struct kernel *k, struct kproc *p, uint64_t uaddr, uint64_t npages)
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
	off = window_get(k, w, page, npages);
	if (!off && !w->used)
		window_free(k, w);
	return off;
}

uint64_t pages_get(struct kernel *k, struct kproc *p, uint64_t uaddr, uint64_t npages)
{
	uint64_t off = get(k, p, uaddr, npages);

	return !off && npages && pages_reclaim(k) ? get(k, p, uaddr, npages) : off;
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
	w->rested = false;
	flip(w->map, page % POOL_UNIT, npages);
	w->used -= npages;
	k->pool.used -= npages;
	count_spare(k, w, (int64_t)npages);
	if (!w->used && w->proc->gone)
		window_free(k, w);
}

void pages_rest(struct kernel *k)
{
	uint32_t runs = REST_RUNS;
	struct kwindow *w, *tmp;

	DL_FOREACH_SAFE(k->pool.spared, w, tmp)
	{
		bool rested = w->rested;

		w->rested = true;
		if (rested && runs)
			runs = take_spare(k, w, runs);
		if (!w->spare && !w->used)
			window_free(k, w);
	}
}

bool pages_reclaim(struct kernel *k)
{
	bool any = k->pool.spared;
	struct kwindow *w;

	while ((w = k->pool.spared)) {
		(void)take_spare(k, w, UINT32_MAX);
		if (!w->used)
			window_free(k, w);
	}
	return any;
}

void windows_end(struct kernel *k, struct kproc *p)
{
	struct kwindow *w, *tmp;

	HASH_ITER(hh, p->windows, w, tmp)
	{
		if (!w->used)
			window_free(k, w);
	}
}
