// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Commands for queue pairs. For XRC QPs, xrc.h knows what each kernel expects. This file keeps no
 * state. */

#include <string.h>

#include "cmd.h"
#include "xrc.h"

/* Copies the sizes that the kernel granted, if its ABI reports them. Moves the provider's part of
 * the response to its place. */
static void take_create_qp_resp(struct ibv_qp_cap *cap, struct ibv_create_qp_resp *resp,
				size_t resp_size)
{
	if (abi_ver > 3) {
		cap->max_send_wr = resp->max_send_wr;
		cap->max_recv_wr = resp->max_recv_wr;
		cap->max_send_sge = resp->max_send_sge;
		cap->max_recv_sge = resp->max_recv_sge;
		cap->max_inline_data = resp->max_inline_data;
	}

	if (abi_ver == 4)
		cmd_move_driver_resp(resp, resp_size, sizeof(struct ibv_create_qp_resp_v4),
				     sizeof(*resp));
	else if (abi_ver <= 3)
		cmd_move_driver_resp(resp, resp_size, sizeof(struct ibv_create_qp_resp_v3),
				     sizeof(*resp));
}

int ibv_cmd_create_qp(struct ibv_pd *pd, struct ibv_qp *qp, struct ibv_qp_init_attr *attr,
		      struct ibv_create_qp *cmd, size_t cmd_size, struct ibv_create_qp_resp *resp,
		      size_t resp_size)
{
	struct xrc_context *xrc;
	int ret;

	if (!attr->send_cq || !attr->recv_cq)
		return fail(EINVAL);

	CMD_INIT_RESP(cmd, cmd_size, CREATE_QP, resp, resp_size);
	cmd->user_handle = (uintptr_t)qp;
	cmd->pd_handle = pd->handle;
	cmd->send_cq_handle = attr->send_cq->handle;
	cmd->recv_cq_handle = attr->recv_cq->handle;
	cmd->srq_handle = attr->srq ? attr->srq->handle : 0;
	cmd->max_send_wr = attr->cap.max_send_wr;
	cmd->max_recv_wr = attr->cap.max_recv_wr;
	cmd->max_send_sge = attr->cap.max_send_sge;
	cmd->max_recv_sge = attr->cap.max_recv_sge;
	cmd->max_inline_data = attr->cap.max_inline_data;
	cmd->sq_sig_all = attr->sq_sig_all;
	cmd->qp_type = attr->qp_type;
	cmd->is_srq = !!attr->srq;
	cmd->reserved = 0;

	/* Callers may have compiled attr without its last member, so only XRC QPs use it. */
	if (attr->qp_type == IBV_QPT_XRC) {
		ret = xrc_choose(pd->context, &xrc);
		if (!ret)
			ret = xrc->kernel->create_send_qp(pd, qp, attr, cmd, cmd_size);
	} else {
		ret = cmd_write(pd->context, cmd, cmd_size);
	}
	if (ret)
		return fail(ret);
	VALGRIND_MAKE_MEM_DEFINED(resp, resp_size);

	qp->handle = resp->qp_handle;
	qp->qp_num = resp->qpn;
	qp->context = pd->context;
	take_create_qp_resp(&attr->cap, resp, resp_size);

	return 0;
}

void qp_attr_from_resp(struct ibv_qp_attr *attr, const struct ibv_query_qp_resp *resp)
{
	attr->qp_state = resp->qp_state;
	attr->cur_qp_state = resp->cur_qp_state;
	attr->path_mtu = resp->path_mtu;
	attr->path_mig_state = resp->path_mig_state;
	attr->qkey = resp->qkey;
	attr->rq_psn = resp->rq_psn;
	attr->sq_psn = resp->sq_psn;
	attr->dest_qp_num = resp->dest_qp_num;
	attr->qp_access_flags = resp->qp_access_flags;

	attr->cap.max_send_wr = resp->max_send_wr;
	attr->cap.max_recv_wr = resp->max_recv_wr;
	attr->cap.max_send_sge = resp->max_send_sge;
	attr->cap.max_recv_sge = resp->max_recv_sge;
	attr->cap.max_inline_data = resp->max_inline_data;

	ah_from_qp_dest(&attr->ah_attr, &resp->dest);
	ah_from_qp_dest(&attr->alt_ah_attr, &resp->alt_dest);

	attr->pkey_index = resp->pkey_index;
	attr->alt_pkey_index = resp->alt_pkey_index;
	attr->en_sqd_async_notify = 0;
	attr->sq_draining = resp->sq_draining;
	attr->max_rd_atomic = resp->max_rd_atomic;
	attr->max_dest_rd_atomic = resp->max_dest_rd_atomic;
	attr->min_rnr_timer = resp->min_rnr_timer;
	attr->port_num = resp->port_num;
	attr->timeout = resp->timeout;
	attr->retry_cnt = resp->retry_cnt;
	attr->rnr_retry = resp->rnr_retry;
	attr->alt_port_num = resp->alt_port_num;
	attr->alt_timeout = resp->alt_timeout;
}

int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		     struct ibv_qp_init_attr *init_attr, struct ibv_query_qp *cmd, size_t cmd_size)
{
	struct ibv_query_qp_resp resp;
	int ret;

	CMD_INIT_RESP(cmd, cmd_size, QUERY_QP, &resp, sizeof(resp));
	cmd->qp_handle = qp->handle;
	cmd->attr_mask = attr_mask;

	ret = cmd_write(qp->context, cmd, cmd_size);
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(&resp, sizeof(resp));

	qp_attr_from_resp(attr, &resp);

	init_attr->qp_context = qp->qp_context;
	init_attr->send_cq = qp->send_cq;
	init_attr->recv_cq = qp->recv_cq;
	init_attr->srq = qp->srq;
	init_attr->cap = attr->cap;
	init_attr->qp_type = qp->qp_type;
	init_attr->sq_sig_all = resp.sq_sig_all;
	if (qp->qp_type == IBV_QPT_XRC)
		init_attr->xrc_domain = qp->xrc_domain;

	return 0;
}

int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		      struct ibv_modify_qp *cmd, size_t cmd_size)
{
	uint32_t kernel_mask = attr_mask;
	struct xrc_context *xrc;
	int ret;

	if (qp->qp_type == IBV_QPT_XRC) {
		ret = xrc_choose(qp->context, &xrc);
		if (!ret)
			ret = xrc->kernel->send_qp_mask(qp, attr, &kernel_mask);
		if (ret)
			return fail(ret);
	}

	CMD_INIT(cmd, cmd_size, MODIFY_QP);
	qp_dest_from_ah(&cmd->dest, &attr->ah_attr);
	qp_dest_from_ah(&cmd->alt_dest, &attr->alt_ah_attr);
	cmd->qp_handle = qp->handle;
	cmd->attr_mask = kernel_mask;
	cmd->qkey = attr->qkey;
	cmd->rq_psn = attr->rq_psn;
	cmd->sq_psn = attr->sq_psn;
	cmd->dest_qp_num = attr->dest_qp_num;
	cmd->qp_access_flags = attr->qp_access_flags;
	cmd->pkey_index = attr->pkey_index;
	cmd->alt_pkey_index = attr->alt_pkey_index;
	cmd->qp_state = attr->qp_state;
	cmd->cur_qp_state = attr->cur_qp_state;
	cmd->path_mtu = attr->path_mtu;
	cmd->path_mig_state = attr->path_mig_state;
	cmd->en_sqd_async_notify = attr->en_sqd_async_notify;
	cmd->max_rd_atomic = attr->max_rd_atomic;
	cmd->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	cmd->min_rnr_timer = attr->min_rnr_timer;
	cmd->port_num = attr->port_num;
	cmd->timeout = attr->timeout;
	cmd->retry_cnt = attr->retry_cnt;
	cmd->rnr_retry = attr->rnr_retry;
	cmd->alt_port_num = attr->alt_port_num;
	cmd->alt_timeout = attr->alt_timeout;
	memset(cmd->reserved, 0, sizeof(cmd->reserved));

	return cmd_write(qp->context, cmd, cmd_size);
}

static int destroy_qp_v1(struct ibv_qp *qp)
{
	struct ibv_destroy_qp_v1 cmd;

	CMD_INIT(&cmd, sizeof(cmd), DESTROY_QP);
	cmd.qp_handle = qp->handle;

	return cmd_write(qp->context, &cmd, sizeof(cmd));
}

int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
	struct ibv_destroy_qp_resp resp;
	struct ibv_destroy_qp cmd;
	int ret;

	if (abi_ver == 1)
		return destroy_qp_v1(qp);

	CMD_INIT_RESP(&cmd, sizeof(cmd), DESTROY_QP, &resp, sizeof(resp));
	cmd.qp_handle = qp->handle;
	cmd.reserved = 0;

	ret = cmd_write(qp->context, &cmd, sizeof(cmd));
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(&resp, sizeof(resp));

	xrc_object_gone(qp->context, qp);
	wait_acked(&qp->mutex, &qp->cond, &qp->events_completed, resp.events_reported);

	return 0;
}
