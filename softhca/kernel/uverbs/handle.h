/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Objects behind the handles of a context. 0 or -errno.
 */
#ifndef SOFTHCA_KERNEL_UVERBS_HANDLE_H
#define SOFTHCA_KERNEL_UVERBS_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/kernel/numbers.h"

enum uobj_type { UO_PD, UO_MR, UO_CQ, UO_SRQ, UO_QP, UO_AH, UO_XRCD, UO_TYPES };

struct kctx;
struct uobj {
	struct kctx *ctx;
	enum uobj_type type;
	uint32_t handle;
	uint64_t user_handle;
	struct uobj *prev, *next; /* objects of the context, by type, oldest first */
	/*
	 * The device does not know the object any more. What comes after that may take more than
	 * one try.
	 */
	bool ended, unlocked; /* unlocked: ended without its lock, so that it is set aside */
	bool comp_dropped;
	uint32_t comp, async; /* events to report */
};
/* One space for each host and type, lowest free number first, as the kernel's idr. */
struct handles {
	/*
	 * NULL: there are no slots yet. The slot of a number that is not given out means nothing.
	 */
	struct uobj **slot;
	struct sh_numbers numbers;
};
int uobj_add(struct kctx *ctx, struct uobj *obj, enum uobj_type type); /* 0 or -ENOMEM */
void uobj_del(struct uobj *obj);
/* NULL: there is no such handle, it is another context's, or its object is ending. */
void *uobj_get(struct kctx *ctx, enum uobj_type type, uint32_t handle);
/* Also finds an object that is ending: for the command that ends it, which is tried again. */
void *uobj_ending(struct kctx *ctx, enum uobj_type type, uint32_t handle);
void handles_exit(struct handles *h);

#endif
