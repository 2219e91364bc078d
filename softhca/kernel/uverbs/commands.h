/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The commands that both faces have. 0 or -errno.
 */
#ifndef SOFTHCA_KERNEL_UVERBS_COMMANDS_H
#define SOFTHCA_KERNEL_UVERBS_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "command.h"
#include "objects.h"

int cmd_get_context(struct call *c); /* cmd_device.c */
int cmd_query_device(struct call *c);
int cmd_query_port(struct call *c);
void fill_query_device(struct call *c, struct uv_query_device_resp *r);
int cmd_alloc_pd(struct call *c); /* cmd_mem.c */
int cmd_dealloc_pd(struct call *c);
int cmd_reg_mr(struct call *c);
int cmd_dereg_mr(struct call *c);
int cmd_create_ah(struct call *c);
int cmd_destroy_ah(struct call *c);
int cmd_create_comp_channel(struct call *c); /* cmd_cq.c */
int cmd_create_cq(struct call *c);
int cmd_resize_cq(struct call *c);
int cmd_destroy_cq(struct call *c);
int cmd_create_srq(struct call *c); /* cmd_srq.c */
int cmd_modify_srq(struct call *c);
int cmd_query_srq(struct call *c);
int cmd_destroy_srq(struct call *c);
struct srq_request {
	uint64_t user_handle;
	uint32_t pd_handle, max_wr, max_sge;
	bool xrc, tell_srqn;
	uint32_t xrcd_handle, cq_handle;
};
int srq_create(struct call *c, const struct srq_request *rq);
int cmd_query_qp(struct call *c); /* cmd_qp.c */
int cmd_modify_qp(struct call *c);
int cmd_destroy_qp(struct call *c);
int cmd_attach_mcast(struct call *c); /* cmd_mcast.c */
int cmd_detach_mcast(struct call *c);
struct qp_request {
	const struct uv_create_qp *cmd;
	uint32_t type;	 /* enum sh_qp_type */
	bool no_recv_cq; /* and no SRQ */
	bool block_self_mcast;
	bool extended; /* so is the response */
	struct kxrcd *d;
};
int qp_create_user(struct call *c, const struct qp_request *rq);
/* Writes the response of either CREATE_QP. */
int qp_respond(struct call *c, const struct uv_create_qp_resp *resp, bool extended);
/* NULL, with *err. */
struct kqp *qp_create_kernel(struct kxrcd *d, struct kernel *k, uint32_t type, uint32_t sq_sig_all,
			     int *err);
int qp_destroy_kernel(struct kernel *k, struct kqp *qp, bool late);
struct kqp *qp_find(struct kernel *k, uint32_t hca, uint32_t qpn);
int qp_modify(struct call *c, struct kqp *qp, const struct uv_qp_dest *dest,
	      const struct uv_qp_dest *alt, const struct uv_modify_attr *a);
int qp_query(struct call *c, struct kqp *qp);

int cmd_open_xrcd(struct call *c);	  /* xrcd.c */
int cmd_close_xrc_domain(struct call *c); /* OFED */
int cmd_close_xrcd(struct call *c);	  /* mainline */
int cmd_unreg_xrc_rcv_qp(struct call *c); /* OFED; face_ofed.c */

static inline uint32_t log2_ceil(uint64_t n)
{
	uint32_t l = 0;

	while ((UINT64_C(1) << l) < n)
		l++;
	return l;
}

#endif
