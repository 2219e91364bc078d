// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the library keeps about a context that uses mainline's XRC, and what the two files for it
 * share. The lock protects all of it. It is held during commands that create or destroy handles, so
 * a handle found here is still valid in the kernel. */

#ifndef IBVERBS_XRC_MAINLINE_H
#define IBVERBS_XRC_MAINLINE_H

#include <sys/types.h>

#include "table.h"
#include "xrc.h"

/* A handle of a domain. Several handles can refer to the same domain if it has a file. */
struct xrc_handle {
	struct xrc_handle *next;
	uint32_t handle;
	bool has_file;
	dev_t dev;
	ino_t ino;
	unsigned int objects; /* send QPs and SRQs created through it */
	unsigned int rcv_qps; /* registered through it */
};

/* A send QP or an SRQ of a domain. */
struct xrc_object {
	struct table_link link; /* by the object's address, which is not dereferenced */
	struct xrc_handle *domain;
};

/* A receive QP that the context is registered with. */
struct xrc_rcv_qp {
	struct table_link by_qpn; /* unique within a domain */
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

/* The caller holds the lock. */
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
