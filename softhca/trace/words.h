/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Arguments of verbs, by name: enums, masks, structures, objects. Each writes to the call, and does
 * nothing if that is not on. Pointers may be NULL.
 *
 * The structures are those of include/infiniband/verbs.h. What stands here of them is the same in
 * rdma-core's.
 */
#ifndef SOFTHCA_TRACE_WORDS_H
#define SOFTHCA_TRACE_WORDS_H

#include <infiniband/verbs.h>

#include "call.h"

void say_context(struct call *c, const struct ibv_context *context);
void say_pd(struct call *c, const struct ibv_pd *pd);
void say_mr(struct call *c, const struct ibv_mr *mr);
void say_cq(struct call *c, const struct ibv_cq *cq);
void say_srq(struct call *c, const struct ibv_srq *srq);
void say_qp(struct call *c, const struct ibv_qp *qp);
void say_xrcd(struct call *c, const struct ibv_xrc_domain *d);

void say_access(struct call *c, int access);
void say_qp_type(struct call *c, unsigned int type);
void say_qp_state(struct call *c, unsigned int state);
void say_qp_mask(struct call *c, int mask);
void say_qp_cap(struct call *c, const struct ibv_qp_cap *cap);
/* Without xrc_domain, which rdma-core's has not. */
void say_qp_init(struct call *c, const struct ibv_qp_init_attr *attr);
/* The members that the mask names. */
void say_qp_attr(struct call *c, const struct ibv_qp_attr *attr, int mask);
void say_srq_attr(struct call *c, const struct ibv_srq_attr *attr);
void say_ah_attr(struct call *c, const struct ibv_ah_attr *attr);
void say_gid(struct call *c, const union ibv_gid *gid);
void say_event(struct call *c, const struct ibv_async_event *event);
void say_oflags(struct call *c, int oflags);

/* Requests and completions, with their works. */
void say_send(struct call *c, const struct ibv_qp *qp, const struct ibv_send_wr *wr);
void say_recv(struct call *c, const void *context, enum trace_work_kind kind, uint32_t qpn,
	      const struct ibv_recv_wr *wr);
void say_completions(struct call *c, const void *context, const struct ibv_wc *wc, int n);

#endif
