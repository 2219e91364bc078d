/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What this room keeps: open device files, their event queues, and the objects behind handles.
 * struct kernel has a pointer to it, which no file outside this folder follows.
 */
#ifndef SOFTHCA_KERNEL_UVERBS_UVERBS_H
#define SOFTHCA_KERNEL_UVERBS_UVERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softhca/kernel/kern.h"
#include "softhca/kernel/numbers.h"

struct face;
struct hca_objects;
struct kctx;
struct kevq;
struct khost;

struct uverbs {
	const struct face *face;
	struct khost *hosts;	     /* handles of each host */
	struct hca_objects *objects; /* of each HCA */
	struct kctx *ctx[SH_MAX_CTX];
	struct kevq *evq[SH_MAX_EVQ];
	/* The queue was freed, but its place is still in use. */
	bool evq_aside[SH_MAX_EVQ];
	uint32_t evq_gen[SH_MAX_EVQ], ctx_gen[SH_MAX_CTX];
	uint32_t evq_next, ctx_next;
	/*
	 * Where evq.c puts records meanwhile. It begins with room for as much as a new pipe holds.
	 */
	char *keep;
	size_t keep_size;
	struct sh_numbers xrc_reg; /* entries of registrations of XRC receive QPs; 0: none */
	uint32_t xrc_reg_backed;   /* entries below have memory behind them */
	/*
	 * QPs that have ended without their locks and are set aside. While there is one, CQs and
	 * SRQs keep their numbers and pages.
	 */
	uint32_t stuck_qps;
	/* Contexts to release, and contexts to silence, in another try. */
	uint32_t releasing, loud;
	bool untied; /* a context is, or was */
	uint64_t
		missed_until; /* closes of context files may have been missed: ctx_tick() looks until then */
	/* Spilled records could not be moved: a client held the lock of their queue. */
	bool spill_again;
};

#endif
