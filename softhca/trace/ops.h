/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The verbs that programs call through their context's operations, since they are inline functions
 * of the header: posts, polls, requests for events; with rdma-core's libibverbs some more.
 */
#ifndef SOFTHCA_TRACE_OPS_H
#define SOFTHCA_TRACE_OPS_H

#include <infiniband/verbs.h>

/*
 * Puts itself in front of the context's operations. Also after each verb, since softhca's preloaded
 * library does so, too, when the program makes its first objects: this one is to be the outer one,
 * so that it sees how long a post takes.
 */
void ops_wrap(struct ibv_context *context);
/* The operations that extended_wrap() has found in a context of which it has wrapped some. */
struct extended_ops;
const struct extended_ops *ops_extended(const struct ibv_context *context);
/* The context is about to be closed. */
void ops_forget(struct ibv_context *context);

#endif
