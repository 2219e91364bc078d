// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The verbs for contexts, memory, queues and multicast. They call the provider and set the
 * library's members of the provider's objects. The mutex of the context protects the reference
 * count of a channel. */

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xrc.h"

int ibv_query_device_1_1(struct ibv_context *context, struct ibv_device_attr *device_attr)
{
	return context->ops.query_device(context, device_attr);
}
default_symver(ibv_query_device_1_1, ibv_query_device);

int ibv_query_port_1_1(struct ibv_context *context, uint8_t port_num,
		       struct ibv_port_attr *port_attr)
{
	return context->ops.query_port(context, port_num, port_attr);
}
default_symver(ibv_query_port_1_1, ibv_query_port);

/* Reads an entry of a port's table in sysfs as text. Returns 0, or -1 with errno set. */
static int read_port_table(struct ibv_context *context, uint8_t port_num, const char *table,
			   int index, char *text, size_t size)
{
	char file[48];
	int len;

	snprintf(file, sizeof(file), "ports/%d/%s/%d", port_num, table, index);
	len = ibv_read_sysfs_file(context->device->ibdev_path, file, text, size - 1);
	if (len < 0)
		return -1;

	text[len] = '\0';
	return 0;
}

int ibv_query_gid_1_1(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	unsigned int value, i;
	union ibv_gid found;
	char text[41];

	if (read_port_table(context, port_num, "gids", index, text, sizeof(text)))
		return -1;

	/* Eight groups of four hexadecimal digits, five characters apart. */
	if (strlen(text) != 39 || strspn(text, "0123456789abcdefABCDEF:") != 39) {
		errno = EINVAL;
		return -1;
	}
	for (i = 0; i < 8; ++i) {
		if (strcspn(text + 5 * i, ":") != 4) {
			errno = EINVAL;
			return -1;
		}
		value = strtoul(text + 5 * i, NULL, 16);
		found.raw[2 * i] = value >> 8;
		found.raw[2 * i + 1] = value;
	}

	*gid = found;
	return 0;
}
default_symver(ibv_query_gid_1_1, ibv_query_gid);

int ibv_query_pkey_1_1(struct ibv_context *context, uint8_t port_num, int index, uint16_t *pkey)
{
	unsigned long value;
	char text[16], *end;

	if (read_port_table(context, port_num, "pkeys", index, text, sizeof(text)))
		return -1;

	value = strtoul(text, &end, 16);
	if (end == text || *end || value > UINT16_MAX) {
		errno = EINVAL;
		return -1;
	}

	*pkey = htons(value);
	return 0;
}
default_symver(ibv_query_pkey_1_1, ibv_query_pkey);

struct ibv_pd *ibv_alloc_pd_1_1(struct ibv_context *context)
{
	struct ibv_pd *pd;

	pd = context->ops.alloc_pd(context);
	if (pd)
		pd->context = context;

	return pd;
}
default_symver(ibv_alloc_pd_1_1, ibv_alloc_pd);

int ibv_dealloc_pd_1_1(struct ibv_pd *pd)
{
	return pd->context->ops.dealloc_pd(pd);
}
default_symver(ibv_dealloc_pd_1_1, ibv_dealloc_pd);

struct ibv_mr *ibv_reg_mr_1_1(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr;
	int err;

	if (ibv_dontfork_range(addr, length))
		return NULL;

	mr = pd->context->ops.reg_mr(pd, addr, length, access);
	if (!mr) {
		err = errno;
		ibv_dofork_range(addr, length);
		errno = err;
		return NULL;
	}

	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;

	return mr;
}
default_symver(ibv_reg_mr_1_1, ibv_reg_mr);

int ibv_dereg_mr_1_1(struct ibv_mr *mr)
{
	void *addr = mr->addr;
	size_t length = mr->length;
	int ret;

	ret = mr->context->ops.dereg_mr(mr);
	if (!ret)
		ibv_dofork_range(addr, length);

	return ret;
}
default_symver(ibv_dereg_mr_1_1, ibv_dereg_mr);

struct ibv_cq *ibv_create_cq_1_1(struct ibv_context *context, int cqe, void *cq_context,
				 struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq *cq;

	/* Held during the call, so that the channel cannot be destroyed meanwhile. */
	pthread_mutex_lock(&context->mutex);

	cq = context->ops.create_cq(context, cqe, channel, comp_vector);
	if (cq) {
		cq->context = context;
		cq->channel = channel;
		if (channel)
			++channel->refcnt;
		cq->cq_context = cq_context;
		cq->comp_events_completed = 0;
		cq->async_events_completed = 0;
		pthread_mutex_init(&cq->mutex, NULL);
		pthread_cond_init(&cq->cond, NULL);
	}

	pthread_mutex_unlock(&context->mutex);

	return cq;
}
default_symver(ibv_create_cq_1_1, ibv_create_cq);

int ibv_resize_cq_1_1(struct ibv_cq *cq, int cqe)
{
	if (!cq->context->ops.resize_cq)
		return fail(ENOSYS);

	return cq->context->ops.resize_cq(cq, cqe);
}
default_symver(ibv_resize_cq_1_1, ibv_resize_cq);

int ibv_destroy_cq_1_1(struct ibv_cq *cq)
{
	struct ibv_comp_channel *channel = cq->channel;
	int ret;

	if (!channel)
		return cq->context->ops.destroy_cq(cq);

	pthread_mutex_lock(&channel->context->mutex);
	ret = cq->context->ops.destroy_cq(cq);
	if (!ret)
		--channel->refcnt;
	pthread_mutex_unlock(&channel->context->mutex);

	return ret;
}
default_symver(ibv_destroy_cq_1_1, ibv_destroy_cq);

struct ibv_srq *ibv_create_srq_1_1(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr)
{
	struct ibv_srq *srq;

	if (!pd->context->ops.create_srq) {
		errno = ENOSYS;
		return NULL;
	}

	srq = pd->context->ops.create_srq(pd, srq_init_attr);
	if (!srq)
		return NULL;

	srq->context = pd->context;
	srq->srq_context = srq_init_attr->srq_context;
	srq->pd = pd;
	srq->events_completed = 0;
	srq->xrc_srq_num = 0;
	srq->xrc_domain = NULL;
	srq->xrc_cq = NULL;
	pthread_mutex_init(&srq->mutex, NULL);
	pthread_cond_init(&srq->cond, NULL);

	return srq;
}
default_symver(ibv_create_srq_1_1, ibv_create_srq);

int ibv_modify_srq_1_1(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask)
{
	return srq->context->ops.modify_srq(srq, srq_attr, srq_attr_mask);
}
default_symver(ibv_modify_srq_1_1, ibv_modify_srq);

int ibv_query_srq_1_1(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr)
{
	return srq->context->ops.query_srq(srq, srq_attr);
}
default_symver(ibv_query_srq_1_1, ibv_query_srq);

int ibv_destroy_srq_1_1(struct ibv_srq *srq)
{
	return srq->context->ops.destroy_srq(srq);
}
default_symver(ibv_destroy_srq_1_1, ibv_destroy_srq);

struct ibv_qp *ibv_create_qp_1_1(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	bool xrc = qp_init_attr->qp_type == IBV_QPT_XRC;
	struct ibv_qp *qp;
	int ret;

	ret = xrc ? xrc_supported(pd->context) : 0;
	if (ret) {
		errno = ret;
		return NULL;
	}

	qp = pd->context->ops.create_qp(pd, qp_init_attr);
	if (!qp)
		return NULL;

	qp->context = pd->context;
	qp->qp_context = qp_init_attr->qp_context;
	qp->pd = pd;
	qp->send_cq = qp_init_attr->send_cq;
	qp->recv_cq = qp_init_attr->recv_cq;
	qp->srq = qp_init_attr->srq;
	qp->qp_type = qp_init_attr->qp_type;
	qp->state = IBV_QPS_RESET;
	qp->events_completed = 0;
	/* A program that does not use XRC may have an init_attr without this member. */
	qp->xrc_domain = xrc ? qp_init_attr->xrc_domain : NULL;
	pthread_mutex_init(&qp->mutex, NULL);
	pthread_cond_init(&qp->cond, NULL);

	return qp;
}
default_symver(ibv_create_qp_1_1, ibv_create_qp);

int ibv_query_qp_1_1(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		     struct ibv_qp_init_attr *init_attr)
{
	int ret;

	ret = qp->context->ops.query_qp(qp, attr, attr_mask, init_attr);
	if (!ret && (attr_mask & IBV_QP_STATE))
		qp->state = attr->qp_state;

	return ret;
}
default_symver(ibv_query_qp_1_1, ibv_query_qp);

int ibv_modify_qp_1_1(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	int ret;

	ret = qp->context->ops.modify_qp(qp, attr, attr_mask);
	if (!ret && (attr_mask & IBV_QP_STATE))
		qp->state = attr->qp_state;

	return ret;
}
default_symver(ibv_modify_qp_1_1, ibv_modify_qp);

int ibv_destroy_qp_1_1(struct ibv_qp *qp)
{
	return qp->context->ops.destroy_qp(qp);
}
default_symver(ibv_destroy_qp_1_1, ibv_destroy_qp);

int ibv_attach_mcast_1_1(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return qp->context->ops.attach_mcast(qp, gid, lid);
}
default_symver(ibv_attach_mcast_1_1, ibv_attach_mcast);

int ibv_detach_mcast_1_1(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return qp->context->ops.detach_mcast(qp, gid, lid);
}
default_symver(ibv_detach_mcast_1_1, ibv_detach_mcast);
