/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Windows of the pool: pages of one process that lie beside each other as its addresses do.
 */
#ifndef SOFTHCA_KERNEL_WINDOW_H
#define SOFTHCA_KERNEL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct kernel;

struct kproc;
/*
 * Like pool_get(), but if possible in that window of the process which uaddr falls into.
 * pages_put() takes pages of either kind.
 */
uint64_t pages_get(struct kernel *k, struct kproc *p, uint64_t uaddr, uint64_t npages);
void pages_put(struct kernel *k, uint64_t off, uint64_t npages);
/* Each second: takes the memory of pages that have been spare for that long. */
void pages_rest(struct kernel *k);
/* Takes the memory of all spare pages, for something else. False: there were none. */
bool pages_reclaim(struct kernel *k);
/* The process is gone: the memory of its spare pages is free, too. Pages may be put back later. */
void windows_end(struct kernel *k, struct kproc *p);

#endif
