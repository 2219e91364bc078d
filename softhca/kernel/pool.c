// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pages of device memory that stand in for queue buffers and doorbell records. A page that was given back is
 * punched out at once and handed out again as late as possible: the client it belonged to may still have it
 * mapped. Never hands out a page that is not backed.
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
	p->next = p->used = 0;
	p->map = calloc((p->npages + 63) / 64, sizeof(*p->map));
	return p->map ? 0 : -ENOMEM;
}

void pool_exit(struct pool *p)
{
	free(p->map);
	p->map = NULL;
}

static bool taken(const struct pool *p, uint64_t page)
{
	return p->map[page / 64] >> (page % 64) & 1;
}

/* The first run of free pages in [from, to), or to. */
static uint64_t find(const struct pool *p, uint64_t from, uint64_t to, uint64_t npages)
{
	uint64_t page, run = 0;

	for (page = from; page < to; page++) {
		if (page % 64 == 0 && p->map[page / 64] == ~UINT64_C(0)) {
			page += 63;
			run = 0;
			continue;
		}
		run = taken(p, page) ? 0 : run + 1;
		if (run == npages)
			return page + 1 - npages;
	}
	return to;
}

static void mark(struct pool *p, uint64_t page, uint64_t npages, bool set)
{
	for (; npages; npages--, page++) {
		if (set)
			p->map[page / 64] |= UINT64_C(1) << (page % 64);
		else
			p->map[page / 64] &= ~(UINT64_C(1) << (page % 64));
	}
}

uint64_t pool_get(struct pool *p, uint64_t npages)
{
	uint64_t page, off;

	if (!npages || npages > p->npages)
		return 0;
	page = find(p, p->next, p->npages, npages);
	if (page >= p->npages) {
		page = find(p, 0, p->npages, npages);
		if (page >= p->npages)
			return 0;
	}
	off = p->base + page * K_PAGE;
	if (sh_reserve(p->fd, off, npages * K_PAGE) < 0)
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
	(void)fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, npages * K_PAGE);
}
