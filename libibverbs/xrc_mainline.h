// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the library remembers of a context whose XRC is mainline's, and what the two files of it share.
 * The lock guards all of it, and is held across the commands by which handles come and go, so that a
 * handle found here is one that the kernel still means. */

#ifndef IBVERBS_XRC_MAINLINE_H
#define IBVERBS_XRC_MAINLINE_H

#include <sys/types.h>

#include "table.h"
#include "xrc.h"

/* A handle on a domain. Two of them can be on the same domain, which has a file then. */
struct xrc_handle {
	struct xrc_handle *next;
	uint32_t handle;
	bool has_file;
	dev_t dev;
	ino_t ino;
	unsigned int objects;		/* send QPs and SRQs made through it */
	unsigned int rcv_qps;		/* registered through it */
};

/* A send QP or an SRQ of a domain. */
struct xrc_object {
	struct table_link link;		/* by the address of the ibv_qp or ibv_srq: looked at by nobody */
	struct xrc_handle *domain;
};

/* A receive QP that the context is registered with. */
struct xrc_rcv_qp {
	struct table_link by_qpn;	/* one per domain */
	struct table_link by_user_handle;
	struct xrc_handle *domain;
	uint32_t handle;
};

struct xrc_mainline {
	struct xrc_context xrc;
	pthread_mutex_t lock;
	uint64_t last_user_handle;
	struct xrc_handle *domains;
	struct table objects;
	struct table rcv_qps;
	struct table rcv_user_handles;
};

static inline struct xrc_mainline *xrc_mainline_of(const struct ibv_context *context)
{
	return (struct xrc_mainline *)xrc_chosen(context);
}

/* Both with the lock held. */
struct xrc_handle *xrc_find_domain(const struct xrc_mainline *m, uint32_t handle);
bool xrc_same_domain(const struct xrc_handle *a, const struct xrc_handle *b);

/*
 * xrc_mainline_rcv.c: the operations of xrc_kernel on receive QPs
 */
int mainline_create_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn);
int mainline_modify_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn, struct ibv_qp_attr *attr,
			   int attr_mask);
int mainline_query_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn, struct ibv_qp_attr *attr,
			  int attr_mask, struct ibv_qp_init_attr *init_attr);
int mainline_reg_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn);
int mainline_unreg_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn);
bool mainline_translate_event(struct xrc_context *xrc, struct ibv_kern_async_event *event);

#endif /* IBVERBS_XRC_MAINLINE_H */
