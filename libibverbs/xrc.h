// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* All that differs between the kernels' ways to do XRC. A context has one of these for its life; who
 * calls through it does not ask which. */

#ifndef IBVERBS_XRC_H
#define IBVERBS_XRC_H

#include "ibverbs.h"

/* Each operation returns 0 or a positive errno and changes nothing on failure; parameters are those of
 * the ibv_cmd_ function of the name. */
struct xrc_kernel {
	int (*open_domain)(struct ibv_context *context, int fd, int oflag, struct ibv_xrc_domain *d,
			   struct ibv_open_xrc_domain_resp *resp, size_t resp_size);
	int (*close_domain)(struct ibv_xrc_domain *d);

	int (*create_srq)(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
			  uint32_t xrc_domain, uint32_t xrc_cq, struct ibv_create_xrc_srq *cmd,
			  size_t cmd_size, struct ibv_create_srq_resp *resp, size_t resp_size);

	/* Turns a CREATE_QP command, otherwise complete, into one for an XRC send QP. */
	int (*fill_send_qp)(struct ibv_create_qp *cmd, const struct ibv_qp_init_attr *attr);

	int (*create_rcv_qp)(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn);
	int (*modify_rcv_qp)(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn, struct ibv_qp_attr *attr,
			     int attr_mask);
	int (*query_rcv_qp)(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn, struct ibv_qp_attr *attr,
			    int attr_mask, struct ibv_qp_init_attr *init_attr);
	int (*reg_rcv_qp)(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn);
	int (*unreg_rcv_qp)(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn);
};

/* OFED 1.3 to 1.5 (xrc_ofed.c). */
extern const struct xrc_kernel xrc_ofed;

/* What the kernel behind the context has, found out at the first call. Never NULL: without XRC it is one
 * whose operations all return ENOSYS. */
const struct xrc_kernel *xrc_kernel(struct ibv_context *context);

/* Whether the device, its kernel driver and its provider can do XRC at all. */
bool xrc_supported(struct ibv_context *context);

#endif /* IBVERBS_XRC_H */
