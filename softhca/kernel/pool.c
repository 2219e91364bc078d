// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pages of device memory that stand in for queue buffers and doorbell records. A page that was given back is
 * punched out at once and handed out again as late as possible: the client it belonged to may still have it
 * mapped. Never hands out a page that is not backed. Windows (window.c) take whole units from the lower half, so that
 * there is memory left for single pages however sparsely windows are used; single pages begin in the upper half.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "kern.h"

int pool_init(struct pool *p, int fd, uint64_t base, uint64_t size)
{
	p->fd = fd;
	p->base = base;
	p->npages = size / K_PAGE;
	p->next = p->npages / 2;
	p->next_unit = p->used = 0;
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

/* The first page in [from, to) that is taken, or is not, or to. */
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

/* The first run of free pages in [from, to), or to. Costs a step per run, or per 64 pages of a long one. */
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
		word = ~UINT64_C(0) >> (64 - bits) << page % 64;
		if (set)
			p->map[page / 64] |= word;
		else
			p->map[page / 64] &= ~word;
	}
}

/* From where the last search ended, round the upper half, then anywhere. */
static uint64_t find_around(const struct pool *p, uint64_t npages)
{
	uint64_t half = p->npages / 2, page;

	page = find(p, p->next, p->npages, npages);
	if (page < p->npages)
		return page;
	page = find(p, half, p->npages, npages);
	return page < p->npages ? page : find(p, 0, p->npages, npages);
}

int pool_back(struct pool *p, uint64_t off, uint64_t npages)
{
	if (sh_reserve(p->fd, off, npages * K_PAGE) < 0)
		return -ENOMEM;
	p->used += npages;
	return 0;
}

void pool_unback(struct pool *p, uint64_t off, uint64_t npages)
{
	p->used -= npages;
	(void)fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, npages * K_PAGE);
}

uint64_t pool_get(struct pool *p, uint64_t npages)
{
	uint64_t page, off;

	if (!npages || npages > p->npages)
		return 0;
	page = find_around(p, npages);
	if (page >= p->npages)
		return 0;
	off = p->base + page * K_PAGE;
	if (pool_back(p, off, npages) < 0)
		return 0;
	mark(p, page, npages, true);
	p->next = page + npages;
	return off;
}

void pool_put(struct pool *p, uint64_t off, uint64_t npages)
{
	if (!off || !npages)
		return;
	mark(p, (off - p->base) / K_PAGE, npages, false);
	pool_unback(p, off, npages);
}

uint64_t pool_claim_unit(struct pool *p)
{
	uint64_t units = p->npages / 2 / POOL_UNIT, i, unit;

	for (i = 0; i < units; i++) {
		unit = (p->next_unit + i) % units;
		if (p->window[unit] || next_page(p, unit * POOL_UNIT, (unit + 1) * POOL_UNIT, true) != (unit + 1) * POOL_UNIT)
			continue;
		mark(p, unit * POOL_UNIT, POOL_UNIT, true);
		p->next_unit = unit + 1;
		return unit;
	}
	return UINT64_MAX;
}

void pool_release_unit(struct pool *p, uint64_t unit)
{
	mark(p, unit * POOL_UNIT, POOL_UNIT, false);
}
