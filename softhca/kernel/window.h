/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Windows of the pool: pages of one process that lie beside each other as its addresses do.
 */
#ifndef SOFTHCA_KERNEL_WINDOW_H
#define SOFTHCA_KERNEL_WINDOW_H

#include <stdint.h>

struct kernel;

struct kproc;
/*
 * Like pool_get(), but if possible in that window of the process which uaddr falls into.
 * pages_put() takes pages of either kind.
 */
uint64_t pages_get(struct kernel *k, struct kproc *p, uint64_t uaddr, uint64_t npages);
void pages_put(struct kernel *k, uint64_t off, uint64_t npages);

#endif
