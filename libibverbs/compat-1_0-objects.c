// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * IBVERBS_1.0: protection domains, regions, queues and address handles. A create function makes the
 * shadow first, so that the current object points to it from its first event on. A shadow is freed
 * only after the current object has been destroyed. Create functions return NULL on failure and
 * leave errno as the current verb set it; all others return what the current verb returns. Holds no
 * lock.
 */
#include <stdlib.h>

#include "compat.h"
#include "compat-1_0.h"
#include "ibverbs.h"

struct ibv_pd_1_0 *ibv_alloc_pd_1_0(struct ibv_context_1_0 *context)
{
	struct ibv_pd_1_0 *pd;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	pd->real_pd = ibv_alloc_pd(context->real_context);
	if (!pd->real_pd) {
		free(pd);
		return NULL;
	}

	pd->context = context;
	pd->handle = pd->real_pd->handle;
	return pd;
}
symver(ibv_alloc_pd_1_0, ibv_alloc_pd, "IBVERBS_1.0");

int ibv_dealloc_pd_1_0(struct ibv_pd_1_0 *pd)
{
	int ret = ibv_dealloc_pd(pd->real_pd);

	if (!ret)
		free(pd);
	return ret;
}
symver(ibv_dealloc_pd_1_0, ibv_dealloc_pd, "IBVERBS_1.0");

struct ibv_mr_1_0 *ibv_reg_mr_1_0(struct ibv_pd_1_0 *pd, void *addr, size_t length, int access)
{
	struct ibv_mr_1_0 *mr;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;

	mr->real_mr = ibv_reg_mr(pd->real_pd, addr, length, access);
	if (!mr->real_mr) {
		free(mr);
		return NULL;
	}

	mr->context = pd->context;
	mr->pd = pd;
	mr->handle = mr->real_mr->handle;
	mr->lkey = mr->real_mr->lkey;
	mr->rkey = mr->real_mr->rkey;
	return mr;
}
symver(ibv_reg_mr_1_0, ibv_reg_mr, "IBVERBS_1.0");

int ibv_dereg_mr_1_0(struct ibv_mr_1_0 *mr)
{
	int ret = ibv_dereg_mr(mr->real_mr);

	if (!ret)
		free(mr);
	return ret;
}
symver(ibv_dereg_mr_1_0, ibv_dereg_mr, "IBVERBS_1.0");

struct ibv_cq_1_0 *ibv_create_cq_1_0(struct ibv_context_1_0 *context, int cqe, void *cq_context,
				     struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_comp_channel *real_channel = channel ? compat_real_channel(channel) : NULL;
	struct ibv_cq_1_0 *cq;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;

	cq->context = context;
	cq->cq_context = cq_context;
	cq->cqe = cqe;
	cq->real_cq = ibv_create_cq(context->real_context, cqe, cq,
				    real_channel ? real_channel : channel, comp_vector);
	if (!cq->real_cq) {
		free(cq);
		return NULL;
	}

	cq->handle = cq->real_cq->handle;
	return cq;
}
symver(ibv_create_cq_1_0, ibv_create_cq, "IBVERBS_1.0");

int ibv_resize_cq_1_0(struct ibv_cq_1_0 *cq, int cqe)
{
	return ibv_resize_cq(cq->real_cq, cqe);
}
symver(ibv_resize_cq_1_0, ibv_resize_cq, "IBVERBS_1.0");

int ibv_destroy_cq_1_0(struct ibv_cq_1_0 *cq)
{
	int ret = ibv_destroy_cq(cq->real_cq);

	if (!ret)
		free(cq);
	return ret;
}
symver(ibv_destroy_cq_1_0, ibv_destroy_cq, "IBVERBS_1.0");

struct ibv_srq_1_0 *ibv_create_srq_1_0(struct ibv_pd_1_0 *pd,
				       struct ibv_srq_init_attr *srq_init_attr)
{
	struct ibv_srq_init_attr real_attr = *srq_init_attr;
	struct ibv_srq_1_0 *srq;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;

	srq->context = pd->context;
	srq->srq_context = srq_init_attr->srq_context;
	srq->pd = pd;
	real_attr.srq_context = srq;
	srq->real_srq = ibv_create_srq(pd->real_pd, &real_attr);
	if (!srq->real_srq) {
		free(srq);
		return NULL;
	}

	srq->handle = srq->real_srq->handle;
	srq_init_attr->attr = real_attr.attr;
	return srq;
}
symver(ibv_create_srq_1_0, ibv_create_srq, "IBVERBS_1.0");

int ibv_modify_srq_1_0(struct ibv_srq_1_0 *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask)
{
	return ibv_modify_srq(srq->real_srq, srq_attr, srq_attr_mask);
}
symver(ibv_modify_srq_1_0, ibv_modify_srq, "IBVERBS_1.0");

int ibv_query_srq_1_0(struct ibv_srq_1_0 *srq, struct ibv_srq_attr *srq_attr)
{
	return ibv_query_srq(srq->real_srq, srq_attr);
}
symver(ibv_query_srq_1_0, ibv_query_srq, "IBVERBS_1.0");

int ibv_destroy_srq_1_0(struct ibv_srq_1_0 *srq)
{
	int ret = ibv_destroy_srq(srq->real_srq);

	if (!ret)
		free(srq);
	return ret;
}
symver(ibv_destroy_srq_1_0, ibv_destroy_srq, "IBVERBS_1.0");

struct ibv_qp_1_0 *ibv_create_qp_1_0(struct ibv_pd_1_0 *pd,
				     struct ibv_qp_init_attr_1_0 *qp_init_attr)
{
	struct ibv_qp_init_attr real_attr = {
		.send_cq = qp_init_attr->send_cq ? qp_init_attr->send_cq->real_cq : NULL,
		.recv_cq = qp_init_attr->recv_cq ? qp_init_attr->recv_cq->real_cq : NULL,
		.srq = qp_init_attr->srq ? qp_init_attr->srq->real_srq : NULL,
		.cap = qp_init_attr->cap,
		.qp_type = qp_init_attr->qp_type,
		.sq_sig_all = qp_init_attr->sq_sig_all,
	};
	struct ibv_qp_1_0 *qp;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;

	qp->context = pd->context;
	qp->qp_context = qp_init_attr->qp_context;
	qp->pd = pd;
	qp->send_cq = qp_init_attr->send_cq;
	qp->recv_cq = qp_init_attr->recv_cq;
	qp->srq = qp_init_attr->srq;
	qp->qp_type = qp_init_attr->qp_type;
	real_attr.qp_context = qp;
	qp->real_qp = ibv_create_qp(pd->real_pd, &real_attr);
	if (!qp->real_qp) {
		free(qp);
		return NULL;
	}

	qp->handle = qp->real_qp->handle;
	qp->qp_num = qp->real_qp->qp_num;
	qp->state = qp->real_qp->state;
	qp_init_attr->cap = real_attr.cap;
	return qp;
}
symver(ibv_create_qp_1_0, ibv_create_qp, "IBVERBS_1.0");

int ibv_query_qp_1_0(struct ibv_qp_1_0 *qp, struct ibv_qp_attr *attr, int attr_mask,
		     struct ibv_qp_init_attr_1_0 *init_attr)
{
	struct ibv_qp_init_attr real_attr = {0};
	int ret;

	ret = ibv_query_qp(qp->real_qp, attr, attr_mask, &real_attr);
	if (ret)
		return ret;

	qp->state = qp->real_qp->state;
	init_attr->qp_context = qp->qp_context;
	init_attr->send_cq = real_attr.send_cq ? real_attr.send_cq->cq_context : NULL;
	init_attr->recv_cq = real_attr.recv_cq ? real_attr.recv_cq->cq_context : NULL;
	init_attr->srq = real_attr.srq ? real_attr.srq->srq_context : NULL;
	init_attr->cap = real_attr.cap;
	init_attr->qp_type = real_attr.qp_type;
	init_attr->sq_sig_all = real_attr.sq_sig_all;
	return 0;
}
symver(ibv_query_qp_1_0, ibv_query_qp, "IBVERBS_1.0");

int ibv_modify_qp_1_0(struct ibv_qp_1_0 *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	int ret = ibv_modify_qp(qp->real_qp, attr, attr_mask);

	if (!ret)
		qp->state = qp->real_qp->state;
	return ret;
}
symver(ibv_modify_qp_1_0, ibv_modify_qp, "IBVERBS_1.0");

int ibv_destroy_qp_1_0(struct ibv_qp_1_0 *qp)
{
	int ret = ibv_destroy_qp(qp->real_qp);

	if (!ret)
		free(qp);
	return ret;
}
symver(ibv_destroy_qp_1_0, ibv_destroy_qp, "IBVERBS_1.0");

struct ibv_ah_1_0 *ibv_create_ah_1_0(struct ibv_pd_1_0 *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah_1_0 *ah;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;

	ah->real_ah = ibv_create_ah(pd->real_pd, attr);
	if (!ah->real_ah) {
		free(ah);
		return NULL;
	}

	ah->context = pd->context;
	ah->pd = pd;
	ah->handle = ah->real_ah->handle;
	return ah;
}
symver(ibv_create_ah_1_0, ibv_create_ah, "IBVERBS_1.0");

int ibv_destroy_ah_1_0(struct ibv_ah_1_0 *ah)
{
	int ret = ibv_destroy_ah(ah->real_ah);

	if (!ret)
		free(ah);
	return ret;
}
symver(ibv_destroy_ah_1_0, ibv_destroy_ah, "IBVERBS_1.0");

int ibv_attach_mcast_1_0(struct ibv_qp_1_0 *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_attach_mcast(qp->real_qp, gid, lid);
}
symver(ibv_attach_mcast_1_0, ibv_attach_mcast, "IBVERBS_1.0");

int ibv_detach_mcast_1_0(struct ibv_qp_1_0 *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_detach_mcast(qp->real_qp, gid, lid);
}
symver(ibv_detach_mcast_1_0, ibv_detach_mcast, "IBVERBS_1.0");
