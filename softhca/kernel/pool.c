// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pages of device memory that stand in for queue buffers and doorbell records, or for registered
 * memory. Every page that is handed out has memory behind it. Processes map their parts from the
 * beginning to as far as they need (host/memory.h), so pages come from a part that is as short as
 * it can be, below the limit. A page that is given back is punched out at once, and handed out
 * again as late as possible: the client that had it may still have it mapped. Windows keep theirs
 * for a while.
 *
 * Windows (window.c) take whole units, from the first half of each chunk. Single pages come from
 * the second half, so that memory is left for them however sparsely windows are used.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "softhca/device/memory/instance.h"
#include "pool.h"

int pool_init(struct pool *p, int fd, uint64_t base, uint64_t size, bool windows)
{
	p->fd = fd;
	p->base = base;
	p->npages = size / K_PAGE;
	p->windows = windows ? POOL_CHUNK / 2 : 0;
	p->limit = p->npages < POOL_CHUNK ? p->npages : POOL_CHUNK;
	p->next = p->next_unit = p->used = p->spare = 0;
	p->spared = NULL;
	p->kept = false;
	p->map = calloc((p->npages + 63) / 64, sizeof(*p->map));
	p->window = calloc(p->npages / POOL_UNIT + 1, sizeof(*p->window));
	if (p->map && p->window)
		return 0;
	pool_exit(p);
	return -ENOMEM;
}

void pool_exit(struct pool *p)
{
	free(p->map);
	free(p->window);
	p->map = NULL;
	p->window = NULL;
}

/* The first page in [from, to) that is taken, or free if taken is false; or to. */
static uint64_t next_page(const struct pool *p, uint64_t from, uint64_t to, bool taken)
{
	uint64_t flip = taken ? 0 : ~UINT64_C(0), word;

	while (from < to) {
		word = (p->map[from / 64] ^ flip) >> from % 64;
		if (word) {
			from += (uint64_t)__builtin_ctzll(word);
			break;
		}
		from = (from | 63) + 1;
	}
	return from < to ? from : to;
}

/*
 * The first run of free pages in [from, to), or to. Takes one step for each run, or for 64 pages of
 * a long one.
 */
static uint64_t find(const struct pool *p, uint64_t from, uint64_t to, uint64_t npages)
{
	uint64_t page, end;

	for (page = next_page(p, from, to, false); page < to && to - page >= npages;
	     page = next_page(p, end, to, false)) {
		end = next_page(p, page, page + npages, true);
		if (end - page == npages)
			return page;
	}
	return to;
}

static void mark(struct pool *p, uint64_t page, uint64_t npages, bool set)
{
	uint64_t bits, word;

	for (; npages; npages -= bits, page += bits) {
		bits = 64 - page % 64 < npages ? 64 - page % 64 : npages;
		/*
		 * NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): bits is 1 to
		 * 64
		 */
		word = ~UINT64_C(0) >> (64 - bits) << page % 64;
		if (set)
			p->map[page / 64] |= word;
		else
			p->map[page / 64] &= ~word;
	}
}

/* Finds pages where windows do not begin, from where the last search ended, and round. */
static uint64_t find_single(const struct pool *p, uint64_t npages)
{
	uint64_t chunks = p->limit / POOL_CHUNK, first = p->next / POOL_CHUNK;

	/*
	 * The chunk in which the search begins comes again at its end, this time from the chunk's
	 * beginning.
	 */
	for (uint64_t i = 0; i <= chunks + 1; i++) {
		uint64_t begin = (first + i) % (chunks + 1) * POOL_CHUNK, from = begin + p->windows;
		uint64_t to = begin + POOL_CHUNK < p->limit ? begin + POOL_CHUNK : p->limit, page;

		if (!i && p->next > from)
			from = p->next;
		page = from < to ? find(p, from, to, npages) : to;
		if (page < to)
			return page;
	}
	return UINT64_MAX;
}

/* Finds pages below the limit, or returns UINT64_MAX. */
static uint64_t find_below(const struct pool *p, uint64_t npages)
{
	uint64_t page;

	if (p->windows && npages <= POOL_CHUNK - p->windows) {
		page = find_single(p, npages);
		/* Where windows begin, only if nothing else is left. */
		if (page != UINT64_MAX || p->limit < p->npages)
			return page;
	}
	page = find(p, p->next, p->limit, npages);
	if (page < p->limit)
		return page;
	page = find(p, 0, p->limit, npages);
	return page < p->limit ? page : UINT64_MAX;
}

static void raise_limit(struct pool *p)
{
	p->limit = p->npages - p->limit > POOL_CHUNK ? p->limit + POOL_CHUNK : p->npages;
}

/* Finds pages in as short a part as will do, a quarter of which stays free. */
static uint64_t find_lowest(struct pool *p, uint64_t npages)
{
	uint64_t page;

	if (p->used + npages > p->limit / 4 * 3 && p->limit < p->npages)
		raise_limit(p);
	while ((page = find_below(p, npages)) == UINT64_MAX && p->limit < p->npages)
		raise_limit(p);
	return page;
}

int pool_back(struct pool *p, uint64_t off, uint64_t npages)
{
	return sh_reserve(p->fd, off, npages * K_PAGE);
}

void pool_keep(struct pool *p)
{
	p->kept = true;
}

void pool_unback(struct pool *p, uint64_t off, uint64_t npages)
{
	if (p->kept)
		return;
	(void)fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, npages * K_PAGE);
}

uint64_t pool_get(struct pool *p, uint64_t npages)
{
	uint64_t page, off;

	if (!npages || npages > p->npages)
		return 0;
	page = find_lowest(p, npages);
	if (page == UINT64_MAX)
		return 0;
	off = p->base + page * K_PAGE;
	if (pool_back(p, off, npages) < 0)
		return 0;
	mark(p, page, npages, true);
	p->used += npages;
	p->next = page + npages;
	return off;
}

void pool_put(struct pool *p, uint64_t off, uint64_t npages)
{
	if (!off || !npages)
		return;
	mark(p, (off - p->base) / K_PAGE, npages, false);
	p->used -= npages;
	pool_unback(p, off, npages);
}

/* A free unit below the limit, from where the last search ended, and round; or UINT64_MAX. */
static uint64_t find_unit(const struct pool *p)
{
	uint64_t units = p->limit / POOL_UNIT, unit, page;

	for (uint64_t i = 0; i < units; i++) {
		unit = (p->next_unit + i) % units;
		page = unit * POOL_UNIT;
		if (page % POOL_CHUNK < p->windows && !p->window[unit] &&
		    next_page(p, page, page + POOL_UNIT, true) == page + POOL_UNIT)
			return unit;
	}
	return UINT64_MAX;
}

uint64_t pool_claim_unit(struct pool *p)
{
	uint64_t unit;

	while ((unit = find_unit(p)) == UINT64_MAX && p->limit < p->npages)
		raise_limit(p);
	if (unit == UINT64_MAX)
		return unit;
	mark(p, unit * POOL_UNIT, POOL_UNIT, true);
	p->next_unit = unit + 1;
	return unit;
}

void pool_release_unit(struct pool *p, uint64_t unit)
{
	mark(p, unit * POOL_UNIT, POOL_UNIT, false);
}
