/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The operations of a client's ibv_context, wrapped.
 */
#ifndef SOFTHCA_SHIM_KICK_H
#define SOFTHCA_SHIM_KICK_H

struct shim_ctx;

/* After a command: wraps the client's operations if its ibv_context can be found by now. */
void shim_kick_try(struct shim_ctx *ctx);

#endif
