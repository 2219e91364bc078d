// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the two completion channel calls need from the IBVERBS_1.0 layer. These calls have one
 * symbol version for programs of both ABIs. A program of 1.0 passes a 1.0 context and gets, and
 * later destroys, a channel with fd at offset 0.
 */
#ifndef IBVERBS_COMPAT_H
#define IBVERBS_COMPAT_H

#include <infiniband/verbs.h>

/*
 * Returns the current context behind a 1.0 context, or NULL if the argument is not a 1.0 context.
 */
struct ibv_context *compat_real_context(const void *maybe_shadow);

/*
 * Returns the current channel behind a 1.0 channel, or NULL if the argument is not a 1.0 channel.
 */
struct ibv_comp_channel *compat_real_channel(const void *maybe_shadow);

/*
 * Makes a 1.0 channel for a current one, which still belongs to the caller. NULL with ENOMEM on
 * failure.
 */
struct ibv_comp_channel *compat_shadow_channel(struct ibv_comp_channel *real);

/* Frees a 1.0 channel after the current one has been destroyed. Ignores any other pointer. */
void compat_forget_channel(struct ibv_comp_channel *shadow);

#endif
