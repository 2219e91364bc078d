/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Pages of device memory that stand in for clients' pages. 0 or -errno.
 */
#ifndef SOFTHCA_KERNEL_POOL_H
#define SOFTHCA_KERNEL_POOL_H

#include <stdbool.h>
#include <stdint.h>

#define K_PAGE	   4096u
#define POOL_UNIT  256	/* pages of a window */
#define POOL_CHUNK 4096 /* pages by which the limit rises */
struct kwindow;
struct pool {
	uint64_t base, npages, used; /* used: handed out */
	uint64_t spare;		     /* not handed out, with memory behind them: of windows */
	uint64_t limit;		     /* pages from here on are not handed out yet */
	uint64_t windows;	     /* windows may begin in so many pages of each chunk */
	uint64_t next, next_unit;    /* where the next search begins */
	uint64_t *map;		     /* a bit per page */
	struct kwindow **window;     /* by unit; NULL: its pages are handed out one by one */
	struct kwindow *spared;	     /* windows with spare pages */
	int fd;			     /* the memfd */
	bool kept;		     /* memory stays behind pages that are given back */
};
/* windows: half of each chunk is for windows. */
int pool_init(struct pool *p, int fd, uint64_t base, uint64_t size, bool windows);
void pool_exit(struct pool *p);
/* An offset with pages behind it; 0: no memory. */
uint64_t pool_get(struct pool *p, uint64_t npages);
void pool_put(struct pool *p, uint64_t off, uint64_t npages);
/*
 * A whole unit without memory behind it: its number, or UINT64_MAX if no unit is left for windows.
 */
uint64_t pool_claim_unit(struct pool *p);
void pool_release_unit(struct pool *p, uint64_t unit);
/*
 * From now on no memory is taken away: the instance ends, and processes live on that have their
 * data there. The kernel frees it when the last of them has unmapped it.
 */
void pool_keep(struct pool *p);
/* Puts memory behind pages of a unit, and takes it away. Neither counts them. 0 or -ENOMEM. */
int pool_back(struct pool *p, uint64_t off, uint64_t npages);
void pool_unback(struct pool *p, uint64_t off, uint64_t npages);

#endif
