/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory of queues and doorbell records. 0 or -errno.
 */
#ifndef SOFTHCA_KERNEL_UVERBS_QUEUE_H
#define SOFTHCA_KERNEL_UVERBS_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/kernel/lists.h"
#include "softhca/device/memory/layout.h"

struct call;
struct kctx;
struct kernel;

struct kbuf { /* whole pages */
	uint64_t uaddr, len;
	uint64_t shm;	 /* 0: the client's own pages */
	uint32_t locked; /* pages accounted */
};
struct dbpage { /* a page of doorbell records that is in use */
	uint64_t uaddr, shm;
	uint32_t refs;
	UT_hash_handle hh;
};

int mem_charge(struct call *c, uint64_t pages); /* 0 or -ENOMEM */
int buf_map(struct call *c, struct kbuf *b, uint64_t addr, uint64_t len, bool write);
void buf_unmap(struct kctx *ctx, struct kbuf *b);
/* The buffer no longer counts as its process's; its pages are kept. */
void buf_uncount(struct kctx *ctx, struct kbuf *b);
void buf_free(struct kernel *k, struct kbuf *b);
struct sh_umem buf_umem(const struct kctx *ctx, const struct kbuf *b);
int db_get(struct call *c, uint64_t addr, uint32_t len, struct sh_umem *m);
void db_put(struct kctx *ctx, uint64_t addr);
/*
 * Is all of the range in a buffer of the context's queues, or in one of its doorbell records'
 * pages?
 */
bool queues_cover(const struct kctx *ctx, uint64_t addr, uint64_t len);
int map_failed(struct kctx *ctx, uint64_t uaddr, uint64_t len);

#endif
