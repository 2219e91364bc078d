// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The SRQ of an id. That of an id of type RDMA_XRC_RECV is an XRC SRQ in the library's own domain,
 * with a CQ that becomes the id's recv_cq.
 */

#include "cm.h"

static int create_xrc(struct cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_xrc_domain *domain;
	bool made = false;
	int ret;

	ret = cm_domain_get(id->dev, &domain);
	if (ret)
		return ret;
	if (!id->id.recv_cq) {
		ret = cm_create_cq(id, attr->attr.max_wr, &id->id.recv_cq_channel, &id->id.recv_cq);
		if (ret)
			goto put;
		made = true;
	}
	errno = 0;
	id->id.srq = ibv_create_xrc_srq(pd, domain, id->id.recv_cq, attr);
	if (id->id.srq) {
		id->srq_in_domain = true;
		id->srq_cq = id->id.recv_cq;
		return 0;
	}
	ret = errno ? -errno : -ENOMEM;
	if (made)
		cm_destroy_cq(&id->id.recv_cq_channel, &id->id.recv_cq);
put:
	cm_domain_put(id->dev);
	return ret;
}

static int create_srq(struct cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	int ret = 0;

	if (id->id.srq || !id->dev || !attr)
		return -EINVAL;
	if (!pd)
		pd = id->id.pd;
	else if (pd->context != id->id.verbs)
		return -EINVAL;

	if ((int)id->id.qp_type == RDMA_XRC_RECV) {
		ret = create_xrc(id, pd, attr);
	} else {
		errno = 0;
		id->id.srq = ibv_create_srq(pd, attr);
		if (!id->id.srq)
			ret = errno ? -errno : -ENOMEM;
	}
	if (!ret) {
		id->id.pd = pd;
		id->srq_size = attr->attr.max_wr;
	}
	return ret;
}

PUBLIC int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	int state = cm_hold_cancel();
	int ret = create_srq(to_cm_id(id), pd, attr);

	cm_let_cancel(state);
	return cm_return(ret);
}

static void destroy_srq(struct cm_id *id)
{
	if (!id->id.srq || ibv_destroy_srq(id->id.srq))
		return;
	id->id.srq = NULL;
	if (!id->srq_in_domain)
		return;
	id->srq_in_domain = false;
	id->srq_cq = NULL;
	cm_destroy_cq(&id->id.recv_cq_channel, &id->id.recv_cq);
	cm_domain_put(id->dev);
}

PUBLIC void rdma_destroy_srq(struct rdma_cm_id *id)
{
	int state = cm_hold_cancel();

	destroy_srq(to_cm_id(id));
	cm_let_cancel(state);
}
