// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the IBVERBS_1.0 layer asks of the two completion channel calls, which have one symbol version for the callers of
 * both ABIs: a caller of 1.0 passes its own context and gets, and later destroys, a channel whose fd is at offset 0.
 */
#ifndef IBVERBS_COMPAT_H
#define IBVERBS_COMPAT_H

#include <infiniband/verbs.h>

/* The current context behind a 1.0 one; NULL if this is not a 1.0 context. */
struct ibv_context *compat_real_context(const void *maybe_shadow);

/* The current channel behind a 1.0 one; NULL if this is not a 1.0 channel. */
struct ibv_comp_channel *compat_real_channel(const void *maybe_shadow);

/* A 1.0 channel in front of a current one, which stays the caller's. NULL and ENOMEM on failure. */
struct ibv_comp_channel *compat_shadow_channel(struct ibv_comp_channel *real);

/* Frees a 1.0 channel, once the current one is gone. Anything else is left alone. */
void compat_forget_channel(struct ibv_comp_channel *shadow);

#endif
