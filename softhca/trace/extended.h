/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Verbs of rdma-core's libibverbs that are inline functions of its header and take operations in
 * front of the context: XRC domains, QPs and SRQs with more attributes, ports.
 */
#ifndef SOFTHCA_TRACE_EXTENDED_H
#define SOFTHCA_TRACE_EXTENDED_H

#include <stdbool.h>

#include <infiniband/verbs.h>

/* False: it is not such a context, and nothing has changed. The caller holds the lock of ops.c. */
bool extended_wrap(struct ibv_context *context);
void extended_forget(struct ibv_context *context);

#endif
