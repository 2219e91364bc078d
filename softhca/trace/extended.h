/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Verbs of rdma-core's libibverbs that are inline functions of its header and take operations in
 * front of the context: XRC domains, QPs and SRQs with more attributes, ports.
 */
#ifndef SOFTHCA_TRACE_EXTENDED_H
#define SOFTHCA_TRACE_EXTENDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct extended_xrcd_attr {
	uint32_t comp_mask;
	int fd, oflags;
};
struct extended_srq_attr {
	void *srq_context;
	struct ibv_srq_attr attr;
	uint32_t comp_mask, type;
	struct ibv_pd *pd;
	struct ibv_xrc_domain *xrcd;
	struct ibv_cq *cq;
};
_Static_assert(offsetof(struct extended_srq_attr, comp_mask) == 20, "as in rdma-core");
_Static_assert(offsetof(struct extended_srq_attr, cq) == 48, "as in rdma-core");
struct extended_open_attr {
	uint32_t comp_mask, qp_num;
	void *xrcd, *qp_context;
	uint32_t type;
};
_Static_assert(offsetof(struct extended_open_attr, type) == 24, "as in rdma-core");

/* The operations from the one that is farthest in front. */
struct extended_ops {
	int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
			  size_t len);
	void *others[31];
	struct ibv_qp *(*open_qp)(struct ibv_context *context, struct extended_open_attr *attr);
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *context, struct ibv_qp_init_attr *attr);
	int (*get_srq_num)(void *srq, uint32_t *number);
	struct ibv_srq *(*create_srq_ex)(struct ibv_context *context,
					 struct extended_srq_attr *attr);
	void *(*open_xrcd)(struct ibv_context *context, struct extended_xrcd_attr *attr);
	int (*close_xrcd)(void *xrcd);
	uint64_t reserved;
	size_t size;
};
_Static_assert(sizeof(struct extended_ops) == 320, "in front of the context");

/*
 * Puts wrappers in front of the operations, which real keeps. False: it is not such a context, and
 * nothing has changed. The caller holds the lock of ops.c.
 */
bool extended_wrap(struct ibv_context *context, struct extended_ops *real);

#endif
