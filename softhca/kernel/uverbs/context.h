/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Contexts: open device files.
 */
#ifndef SOFTHCA_KERNEL_UVERBS_CONTEXT_H
#define SOFTHCA_KERNEL_UVERBS_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "handle.h"

struct dbpage;
struct kernel;
struct kevq;
struct kproc;

enum kctx_state { KC_OPENING, KC_OPEN, KC_RELEASING };
struct kctx {
	struct kernel *k;
	uint32_t index, generation;
	enum kctx_state state;
	bool started;  /* GET_CONTEXT has been done */
	bool gone;     /* its address space has ended */
	bool untied;   /* its second file, not open, does not say so: ctx_life_closed() */
	bool silenced; /* gone, and all its QPs are silent */
	struct kproc *proc;
	uint32_t host, hca, device; /* hca counts over all hosts, device per host */
	struct uobj *objs[UO_TYPES];
	/* The object that was made, or given another buffer, last; NULL when it has ended. */
	struct uobj *newest;
	struct kevq *async, *evqs; /* evqs: all of them */
	struct dbpage *dbpages;
	uint64_t commands;
	uint64_t
		leaves_until; /* while it is released: until then its QPs may send what was posted */
};

int ctx_open(struct kernel *k, struct kproc *p, uint32_t device, struct kctx **out);
int ctx_opened(struct kernel *k, struct kproc *p, uint32_t index);
int ctx_kick(struct kctx *ctx);				/* its file has length 0 before */
struct kctx *ctx_get(struct kernel *k, uint32_t index); /* or NULL */
void ctx_gone(struct kctx *ctx);
/*
 * No process has the context's second file open any more, or mapped. Where mappings are of another
 * file below (overlayfs), that is so as soon as the client has mapped it, and ctx_tick() looks.
 */
void ctx_life_closed(struct kctx *ctx);
void ctx_tick(struct kernel *k);
/* Closes of the files may have been missed: looks whether they are open. */
void ctx_missed(struct kernel *k);
/*
 * Ends everything of the context, in the kernel's order. ctx_retry() ends what a stopped client
 * holds.
 */
void ctx_release(struct kctx *ctx);
void ctx_retry(struct kernel *k);

#endif
