// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* All that differs between the kernels' ways to do XRC. A context has one of these for its life; who
 * calls through it does not ask which. */

#ifndef IBVERBS_XRC_H
#define IBVERBS_XRC_H

#include "ibverbs.h"

struct xrc_context;

/* Each operation that returns int returns 0 or a positive errno, and changes nothing on failure;
 * parameters are those of the ibv_cmd_ function of the name. The last four may be NULL: nothing to do. */
struct xrc_kernel {
	int (*open_domain)(struct ibv_context *context, int fd, int oflag, struct ibv_xrc_domain *d,
			   struct ibv_open_xrc_domain_resp *resp, size_t resp_size);
	int (*close_domain)(struct ibv_xrc_domain *d);

	int (*create_srq)(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
			  uint32_t xrc_domain, uint32_t xrc_cq, struct ibv_create_xrc_srq *cmd,
			  size_t cmd_size, struct ibv_create_srq_resp *resp, size_t resp_size);

	/* Turns a CREATE_QP command, otherwise complete, into one for an XRC send QP, and writes it. */
	int (*create_send_qp)(struct ibv_pd *pd, const struct ibv_qp *qp, const struct ibv_qp_init_attr *attr,
			      struct ibv_create_qp *cmd, size_t cmd_size);

	int (*create_rcv_qp)(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn);
	int (*modify_rcv_qp)(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn, struct ibv_qp_attr *attr,
			     int attr_mask);
	int (*query_rcv_qp)(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn, struct ibv_qp_attr *attr,
			    int attr_mask, struct ibv_qp_init_attr *init_attr);
	int (*reg_rcv_qp)(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn);
	int (*unreg_rcv_qp)(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn);

	/* Checks what a caller wants to modify of a send QP, and makes it what the kernel is to be told. */
	int (*send_qp_mask)(const struct ibv_qp *qp, const struct ibv_qp_attr *attr, uint32_t *attr_mask);

	/* The kernel has destroyed this QP or SRQ of the context, of whatever type. */
	void (*object_gone)(struct xrc_context *xrc, const void *object);

	/* Makes an event of a receive QP the one that the API knows. False: it is for nobody. */
	bool (*translate_event)(struct xrc_context *xrc, struct ibv_kern_async_event *event);

	void (*release)(struct xrc_context *xrc);
};

/* What a context's abi_compat points to from its first XRC call on. */
struct xrc_context {
	const struct xrc_kernel *kernel;
};

/* OFED 1.3 to 1.5 (xrc_ofed.c). */
extern const struct xrc_kernel xrc_ofed;

/* Mainline from 3.3 on (xrc_mainline.c). NULL when there is no memory. */
struct xrc_context *xrc_mainline_new(void);

/*
 * xrc_probe.c
 */

/* What the kernel behind the context has, found out at the first call. 0, ENOSYS without XRC, or the
 * errno with which the kernel could not be asked: then the next call asks again. */
int xrc_choose(struct ibv_context *context, struct xrc_context **xrc);

/* The choice if it has been made, else NULL. */
struct xrc_context *xrc_chosen(const struct ibv_context *context);

/*
 * xrc.c
 */

/* Whether the device, its kernel driver and its provider can do XRC at all: 0, or why not. */
int xrc_supported(struct ibv_context *context);

/* The operations above, where there are any. */
void xrc_object_gone(const struct ibv_context *context, const void *object);
bool xrc_translate_event(const struct ibv_context *context, struct ibv_kern_async_event *event);
void xrc_release(struct xrc_context *xrc);

#endif /* IBVERBS_XRC_H */
