/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Registered memory that is device memory.
 */
#ifndef SOFTHCA_KERNEL_UVERBS_REGION_H
#define SOFTHCA_KERNEL_UVERBS_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/kernel/aside.h"

struct call;
struct kernel;
struct kmr;
struct kproc;

struct kregion { /* whole pages of one process */
	uint64_t uaddr, len;
	uint64_t shm;
	uint64_t born;	 /* the moment (sh_grace_begin()) when it became device memory */
	struct kmr *mrs; /* that use it */
	struct aside aside;
};

/* A new one: shares its pages if that is possible. */
void region_join(struct call *c, struct kmr *mr);
void region_leave(struct kmr *mr); /* its key is not used any more */
/*
 * A registration of the range has ended. The caller may have the pages of each region in it that no
 * other registration overlaps as its own again. left: no thread that may have found the key before
 * is in device code any more.
 */
void region_offer(struct call *c, uint64_t uaddr, uint64_t len, bool left);
/*
 * What the shim says about pages (enum sh_changed). To revoke: -EINPROGRESS while a thread may be
 * using them, -EBUSY if it has been for too long.
 */
int region_changed(struct kernel *k, struct kproc *p, uint32_t what, uint64_t uaddr, uint64_t len,
		   bool late);
/* Does one registration have all of this range of the process's addresses, to be written if out? */
bool region_covers(const struct kproc *p, uint64_t addr, uint64_t len, bool out);
void regions_orphan(struct kernel *k, struct kproc *p);

#endif
