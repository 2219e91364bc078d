// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The QP of an id: creation with what it needs, and the transitions, whose attributes the kernel
 * knows. A QP of an id of type RDMA_XRC_RECV is an XRC receive QP, which has no struct ibv_qp: the
 * one in id->qp describes it, and this file moves the QP by its number.
 */

#include <string.h>
#include <infiniband/marshall.h>

#include "cm.h"

static int modify(struct cm_id *id, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp *qp = id->id.qp;
	int ret;

	if (!id->xrc_recv)
		return -ibv_modify_qp(qp, attr, mask);
	ret = ibv_modify_xrc_rcv_qp(qp->xrc_domain, qp->qp_num, attr, mask);
	if (!ret)
		qp->state = attr->qp_state;
	return -ret;
}

/* The attributes for a transition, as the kernel knows them. */
static int attributes(struct cm_id *id, enum ibv_qp_state state, struct ibv_qp_attr *attr,
		      int *mask)
{
	struct ucma_abi_init_qp_attr cmd = {.id = id->handle, .qp_state = state};
	struct ibv_kern_qp_attr resp;
	int ret;

	memset(&resp, 0, sizeof(resp));
	ret = CM_COMMAND_RESP(cm_fd(id), UCMA_CMD_INIT_QP_ATTR, &cmd, &resp);
	if (ret)
		return ret;
	memset(attr, 0, sizeof(*attr));
	ibv_copy_qp_attr_from_kern(attr, &resp);
	attr->qp_state = state;
	/* These verbs do not know newer bits. */
	*mask = (int)resp.qp_attr_mask & (IBV_QP_DEST_QPN * 2 - 1);
	return 0;
}

int cm_qp_to_init(struct cm_id *id)
{
	struct ibv_qp_attr attr;
	int mask, ret;

	ret = attributes(id, IBV_QPS_INIT, &attr, &mask);
	return ret ? ret : modify(id, &attr, mask);
}

/*
 * OFED's verbs want an XRC QP to be given all that an RC QP is given, also what its half has no use
 * for. A kernel that knows the two halves as types of their own leaves that out.
 */
static void complete_xrc(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	int missing;

	if (!cm_is_xrc(id))
		return;
	if (attr->qp_state == IBV_QPS_RTR)
		missing = ~*mask & (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	else
		missing = ~*mask & (IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
				    IBV_QP_TIMEOUT);
	if (missing & IBV_QP_MAX_DEST_RD_ATOMIC)
		attr->max_dest_rd_atomic = id->responder_resources;
	if (missing & IBV_QP_MAX_QP_RD_ATOMIC)
		attr->max_rd_atomic = id->initiator_depth;
	if (missing & IBV_QP_RETRY_CNT)
		attr->retry_cnt = 7;
	if (missing & IBV_QP_RNR_RETRY)
		attr->rnr_retry = 7;
	*mask |= missing;
}

int cm_qp_to_rtr(struct cm_id *id, uint8_t responder_resources)
{
	struct ibv_qp_attr attr;
	int mask, ret;

	/* Before the connection the kernel did not know what the peer may do. */
	ret = cm_qp_to_init(id);
	if (ret)
		return ret;
	ret = attributes(id, IBV_QPS_RTR, &attr, &mask);
	if (ret)
		return ret;
	if (responder_resources != RDMA_MAX_RESP_RES)
		attr.max_dest_rd_atomic = responder_resources;
	complete_xrc(id, &attr, &mask);
	return modify(id, &attr, mask);
}

int cm_qp_to_rts(struct cm_id *id, uint8_t initiator_depth)
{
	struct ibv_qp_attr attr;
	int mask, ret;

	ret = attributes(id, IBV_QPS_RTS, &attr, &mask);
	if (ret)
		return ret;
	if (initiator_depth != RDMA_MAX_INIT_DEPTH)
		attr.max_rd_atomic = initiator_depth;
	complete_xrc(id, &attr, &mask);
	return modify(id, &attr, mask);
}

void cm_qp_to_err(struct cm_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (id->id.qp)
		modify(id, &attr, IBV_QP_STATE);
}

/* ---- From RESET on ---- */

/* What ABI 3 leaves to the library. */
static int init_attributes_abi3(struct cm_id *id, struct ibv_qp_attr *attr)
{
	struct rdma_cm_id *rdma_id = &id->id;
	struct ibv_port_attr port;
	uint16_t pkey;
	int i, ret;

	ret = ibv_query_port(rdma_id->verbs, rdma_id->port_num, &port);
	if (ret)
		return -ret;
	for (i = 0; i < port.pkey_tbl_len; i++) {
		if (ibv_query_pkey(rdma_id->verbs, rdma_id->port_num, i, &pkey))
			return -errno;
		if (pkey != rdma_id->route.addr.addr.ibaddr.pkey)
			continue;
		memset(attr, 0, sizeof(*attr));
		attr->qp_state = IBV_QPS_INIT;
		attr->pkey_index = i;
		attr->port_num = rdma_id->port_num;
		return 0;
	}
	return -EINVAL;
}

static int start_connected(struct cm_id *id)
{
	struct ibv_qp_attr attr;
	int ret;

	if (cm_abi() != 3)
		return cm_qp_to_init(id);
	ret = init_attributes_abi3(id, &attr);
	if (ret)
		return ret;
	return modify(id, &attr,
		      IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
}

static int start_ud(struct cm_id *id)
{
	struct ibv_qp_attr attr;
	int ret;

	if (cm_abi() != 3) {
		ret = cm_qp_to_init(id);
	} else {
		ret = init_attributes_abi3(id, &attr);
		if (ret)
			return ret;
		attr.qkey = RDMA_UDP_QKEY;
		ret = modify(id, &attr,
			     IBV_QP_STATE | IBV_QP_QKEY | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
	}
	if (ret)
		return ret;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTR;
	ret = modify(id, &attr, IBV_QP_STATE);
	if (ret)
		return ret;
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 0;
	return modify(id, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

/* ---- CQs that come with a QP ---- */

/*
 * The program has them with the id, and may destroy them itself: so their channels are not marked
 * by cm_keep().
 */

int cm_create_cq(struct cm_id *id, uint32_t size, struct ibv_comp_channel **channel,
		 struct ibv_cq **cq)
{
	int ret;

	errno = 0;
	*channel = ibv_create_comp_channel(id->id.verbs);
	if (!*channel)
		return errno ? -errno : -ENOMEM;
	*cq = ibv_create_cq(id->id.verbs, size ? (int)size : 1, &id->id, *channel, 0);
	if (*cq)
		return 0;
	ret = errno ? -errno : -ENOMEM;
	ibv_destroy_comp_channel(*channel);
	*channel = NULL;
	return ret;
}

void cm_destroy_cq(struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	/* One that the program still uses stays with the id. */
	if (*cq && ibv_destroy_cq(*cq))
		return;
	*cq = NULL;
	if (*channel && !ibv_destroy_comp_channel(*channel))
		*channel = NULL;
}

static void destroy_cqs(struct cm_id *id)
{
	cm_destroy_cq(&id->id.send_cq_channel, &id->id.send_cq);
	/* That of an XRC SRQ lives as long as the SRQ. */
	if (id->id.recv_cq != id->srq_cq)
		cm_destroy_cq(&id->id.recv_cq_channel, &id->id.recv_cq);
}

static int create_cqs(struct cm_id *id, struct ibv_qp_init_attr *attr)
{
	uint32_t receives = attr->cap.max_recv_wr;
	int ret;

	if (attr->srq && attr->srq == id->id.srq)
		receives = id->srq_size;
	if (!attr->recv_cq) {
		if (!id->id.recv_cq) {
			ret = cm_create_cq(id, receives, &id->id.recv_cq_channel, &id->id.recv_cq);
			if (ret)
				return ret;
		}
		attr->recv_cq = id->id.recv_cq;
	}
	if (!attr->send_cq) {
		ret = cm_create_cq(id, attr->cap.max_send_wr, &id->id.send_cq_channel,
				   &id->id.send_cq);
		if (ret)
			return ret;
		attr->send_cq = id->id.send_cq;
	}
	return 0;
}

/* ---- Creation ---- */

static int create_xrc_recv(struct cm_id *id, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp;
	uint32_t number;
	int ret;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	ret = ibv_create_xrc_rcv_qp(attr, &number);
	if (ret) {
		free(qp);
		return -ret;
	}
	qp->context = id->id.verbs;
	qp->qp_context = attr->qp_context;
	qp->pd = id->id.pd;
	qp->qp_num = number;
	qp->qp_type = IBV_QPT_XRC;
	qp->xrc_domain = attr->xrc_domain;
	id->xrc_recv = true;
	id->id.qp = qp;
	return 0;
}

static int create_xrc(struct cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	int ret;

	if (!attr->xrc_domain) {
		ret = cm_domain_get(id->dev, &attr->xrc_domain);
		if (ret)
			return ret;
		id->qp_in_domain = true;
	}
	attr->qp_type = IBV_QPT_XRC;
	attr->srq = NULL;
	if ((int)id->id.qp_type == RDMA_XRC_RECV)
		return create_xrc_recv(id, attr);

	ret = create_cqs(id, attr);
	if (ret)
		return ret;
	errno = 0;
	id->id.qp = ibv_create_qp(pd, attr);
	return id->id.qp ? 0 : errno ? -errno : -ENOMEM;
}

static int create_plain(struct cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	int ret;

	if (!attr->srq)
		attr->srq = id->id.srq;
	ret = create_cqs(id, attr);
	if (ret)
		return ret;
	errno = 0;
	id->id.qp = ibv_create_qp(pd, attr);
	return id->id.qp ? 0 : errno ? -errno : -ENOMEM;
}

/* QP, CQs and the library's domain, as far as there are any. */
static void destroy(struct cm_id *id)
{
	if (id->xrc_recv) {
		ibv_unreg_xrc_rcv_qp(id->id.qp->xrc_domain, id->id.qp->qp_num);
		free(id->id.qp);
	} else if (id->id.qp) {
		ibv_destroy_qp(id->id.qp);
	}
	id->id.qp = NULL;
	id->xrc_recv = false;
	destroy_cqs(id);
	if (id->qp_in_domain)
		cm_domain_put(id->dev);
	id->qp_in_domain = false;
}

void cm_copy_init_attr(const struct cm_id *id, struct ibv_qp_init_attr *to,
		       const struct ibv_qp_init_attr *from)
{
	if (cm_is_xrc(id) || from->qp_type == IBV_QPT_XRC) {
		*to = *from;
	} else {
		memset(to, 0, sizeof(*to));
		memcpy(to, from, offsetof(struct ibv_qp_init_attr, xrc_domain));
	}
}

static int create_qp(struct cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr attr;
	struct ibv_pd *old_pd = id->id.pd;
	enum ibv_qp_type old_type = id->id.qp_type;
	int ret;

	if (id->id.qp || !id->dev || !qp_init_attr)
		return -EINVAL;
	if (!pd)
		pd = id->id.pd;
	else if (pd->context != id->id.verbs)
		return -EINVAL;

	cm_copy_init_attr(id, &attr, qp_init_attr);
	if (cm_is_xrc(id) || qp_init_attr->qp_type == IBV_QPT_XRC) {
		if (!cm_is_xrc(id)) {
			if (id->id.qp_type != IBV_QPT_RC)
				return -EINVAL;
			id->id.qp_type = (enum ibv_qp_type)RDMA_XRC_SEND;
		}
		id->id.pd = pd;
		ret = create_xrc(id, pd, &attr);
	} else {
		id->id.pd = pd;
		ret = create_plain(id, pd, &attr);
	}
	if (!ret)
		ret = cm_is_ud(id) ? start_ud(id) : start_connected(id);
	if (ret) {
		destroy(id);
		id->id.pd = old_pd;
		id->id.qp_type = old_type;
		return ret;
	}
	qp_init_attr->cap = attr.cap;
	return 0;
}

PUBLIC int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *qp_init_attr)
{
	int state = cm_hold_cancel();
	int ret = create_qp(to_cm_id(id), pd, qp_init_attr);

	cm_let_cancel(state);
	return cm_return(ret);
}

PUBLIC void rdma_destroy_qp(struct rdma_cm_id *id)
{
	int state = cm_hold_cancel();

	if (id->qp)
		destroy(to_cm_id(id));
	cm_let_cancel(state);
}
