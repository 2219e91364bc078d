// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Everything in which the kernels' interfaces for XRC differ. A context has one of these for its
 * life, and callers need not know which. */

#ifndef IBVERBS_XRC_H
#define IBVERBS_XRC_H

#include "ibverbs.h"

struct xrc_context;

/* Parameters are those of the ibv_cmd_ function of the same name. Operations that return int return
 * 0 or a positive errno value, and change nothing on failure. The last four may be NULL if there is
 * nothing to do. */
struct xrc_kernel {
	int (*open_domain)(struct ibv_context *context, int fd, int oflag, struct ibv_xrc_domain *d,
			   struct ibv_open_xrc_domain_resp *resp, size_t resp_size);
	int (*close_domain)(struct ibv_xrc_domain *d);

	int (*create_srq)(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
			  uint32_t xrc_domain, uint32_t xrc_cq, struct ibv_create_xrc_srq *cmd,
			  size_t cmd_size, struct ibv_create_srq_resp *resp, size_t resp_size);

	/* Completes a CREATE_QP command for an XRC send QP, and writes it. */
	int (*create_send_qp)(struct ibv_pd *pd, const struct ibv_qp *qp,
			      const struct ibv_qp_init_attr *attr, struct ibv_create_qp *cmd,
			      size_t cmd_size);

	int (*create_rcv_qp)(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn);
	int (*modify_rcv_qp)(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn,
			     struct ibv_qp_attr *attr, int attr_mask);
	int (*query_rcv_qp)(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn,
			    struct ibv_qp_attr *attr, int attr_mask,
			    struct ibv_qp_init_attr *init_attr);
	int (*reg_rcv_qp)(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn);
	int (*unreg_rcv_qp)(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn);

	/* Checks the attributes that a program modifies of a send QP, and removes from *attr_mask
	 * those that the kernel must not get. */
	int (*send_qp_mask)(const struct ibv_qp *qp, const struct ibv_qp_attr *attr,
			    uint32_t *attr_mask);

	/* Called after the kernel has destroyed this QP or SRQ of the context, of any type. */
	void (*object_gone)(struct xrc_context *xrc, const void *object);

	/* Converts a kernel event of a receive QP to the event of the API. Returns false to drop
	 * the event. */
	bool (*translate_event)(struct xrc_context *xrc, struct ibv_kern_async_event *event);

	void (*release)(struct xrc_context *xrc);
};

/* abi_compat of a context points to this from its first XRC call on. */
struct xrc_context {
	const struct xrc_kernel *kernel;
};

/* OFED 1.3 to 1.5 (xrc_ofed.c). */
extern const struct xrc_kernel xrc_ofed;

/* Mainline from 3.3 on (xrc_mainline.c). Returns NULL if there is no memory. */
struct xrc_context *xrc_mainline_new(void);

/*
 * xrc_probe.c
 */

/* Finds out at the first call which XRC the kernel behind the context has. Returns 0, ENOSYS if it
 * has none, or the errno of a question that failed; the next call then asks again. */
int xrc_choose(struct ibv_context *context, struct xrc_context **xrc);

/* Returns the choice if it has been made, else NULL. */
struct xrc_context *xrc_chosen(const struct ibv_context *context);

/*
 * xrc.c
 */

/* Returns 0 if the device, its kernel driver and its provider support XRC, else why not. */
int xrc_supported(struct ibv_context *context);

/* Call the operation above if the context has it. */
void xrc_object_gone(const struct ibv_context *context, const void *object);
bool xrc_translate_event(const struct ibv_context *context, struct ibv_kern_async_event *event);
void xrc_release(struct xrc_context *xrc);

#endif /* IBVERBS_XRC_H */
