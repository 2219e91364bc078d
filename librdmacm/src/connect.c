// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections: asking, accepting, rejecting, ending. The kernel exchanges the messages; the library
 * moves the QP. The active side's answer to the answer is a second ACCEPT, with valid 0.
 */

#include <string.h>

#include "cm.h"

/* The peer's message has room for more or less than a command has. */
static int put_data(void *room, const void *head, size_t head_len, const void *data, size_t len,
		    uint8_t *total)
{
	if (head_len + len > UINT8_MAX)
		return -EINVAL;
	if (head_len)
		memcpy(room, head, head_len);
	if (len && !data)
		return -EINVAL;
	if (len)
		memcpy((uint8_t *)room + head_len, data, len);
	*total = head_len + len;
	return 0;
}

/* param NULL: as much as there is. */
static int put_param(struct cm_id *id, struct ucma_abi_conn_param *to,
		     const struct rdma_conn_param *param, const void *head, size_t head_len)
{
	to->responder_resources = id->responder_resources;
	to->initiator_depth = id->initiator_depth;
	to->valid = 1;
	if (id->id.qp) {
		to->qp_num = id->id.qp->qp_num;
		/* The receives of an XRC receive QP come from SRQs. */
		to->srq = id->xrc_recv || id->id.qp->srq;
	} else if (param) {
		to->qp_num = param->qp_num;
		to->srq = param->srq;
	}
	if (!param) {
		to->retry_count = 7;
		to->rnr_retry_count = 7;
		return put_data(to->private_data, head, head_len, NULL, 0, &to->private_data_len);
	}
	to->flow_control = param->flow_control;
	to->retry_count = param->retry_count;
	to->rnr_retry_count = param->rnr_retry_count;
	return put_data(to->private_data, head, head_len, param->private_data,
			param->private_data_len, &to->private_data_len);
}

/* Refuses depths that the device does not have. "As much as there is" always passes. */
static int check_param(const struct cm_id *id, const struct rdma_conn_param *param)
{
	if (cm_is_ud(id))
		return 0;
	if (!id->id.qp && !param)
		return -EINVAL;
	if (!param || !id->dev)
		return 0;
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
	    param->responder_resources > id->dev->max_responder_resources)
		return -EINVAL;
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    param->initiator_depth > id->dev->max_initiator_depth)
		return -EINVAL;
	return 0;
}

static int do_connect(struct cm_id *id, const struct rdma_conn_param *param)
{
	struct ucma_abi_connect cmd = {.id = id->handle};
	int ret;

	ret = check_param(id, param);
	if (ret)
		return ret;

	if (param && param->responder_resources != RDMA_MAX_RESP_RES)
		id->responder_resources = param->responder_resources;
	else
		id->responder_resources = id->dev ? id->dev->max_responder_resources : 0;
	if (param && param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		id->initiator_depth = param->initiator_depth;
	else
		id->initiator_depth = id->dev ? id->dev->max_initiator_depth : 0;

	ret = put_param(id, &cmd.conn_param, param, id->connect, id->connect_len);
	if (ret)
		return ret;
	id->connect_error = false;
	id->disconnected = false;
	return CM_COMMAND(cm_fd(id), UCMA_CMD_CONNECT, &cmd);
}

PUBLIC int rdma_connect(struct rdma_cm_id *rdma_id, struct rdma_conn_param *conn_param)
{
	struct cm_id *id = to_cm_id(rdma_id);
	int ret, state;

	cm_forget_event(id);
	state = cm_begin();
	ret = do_connect(id, conn_param);
	cm_let_cancel(state);
	if (!ret)
		ret = cm_complete(id);
	return cm_return(ret);
}

int cm_connect_response(struct cm_id *id)
{
	struct ucma_abi_accept cmd = {.id = id->handle};
	int ret;

	ret = cm_qp_to_rtr(id, RDMA_MAX_RESP_RES);
	if (!ret)
		ret = cm_qp_to_rts(id, RDMA_MAX_INIT_DEPTH);
	if (!ret)
		ret = CM_COMMAND(cm_fd(id), UCMA_CMD_ACCEPT, &cmd);
	if (ret) {
		cm_qp_to_err(id);
		id->connect_error = true;
	}
	return ret;
}

static uint8_t least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static int do_accept(struct cm_id *id, const struct rdma_conn_param *param)
{
	struct ucma_abi_accept cmd = {.uid = (uintptr_t)id, .id = id->handle};
	int ret;

	ret = check_param(id, param);
	if (ret)
		return ret;

	if (param && param->responder_resources != RDMA_MAX_RESP_RES)
		id->responder_resources = param->responder_resources;
	else if (id->dev)
		id->responder_resources =
			least(id->responder_resources, id->dev->max_responder_resources);
	if (param && param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		id->initiator_depth = param->initiator_depth;
	else if (id->dev)
		id->initiator_depth = least(id->initiator_depth, id->dev->max_initiator_depth);

	ret = put_param(id, &cmd.conn_param, param, NULL, 0);
	if (ret)
		return ret;
	if (!cm_is_ud(id) && id->id.qp) {
		ret = cm_qp_to_rtr(id, id->responder_resources);
		if (!ret)
			ret = cm_qp_to_rts(id, id->initiator_depth);
	}
	if (!ret)
		ret = CM_COMMAND(cm_fd(id), UCMA_CMD_ACCEPT, &cmd);
	if (ret && !cm_is_ud(id))
		cm_qp_to_err(id);
	return ret;
}

PUBLIC int rdma_accept(struct rdma_cm_id *rdma_id, struct rdma_conn_param *conn_param)
{
	struct cm_id *id = to_cm_id(rdma_id);
	int state = cm_begin(), ret;

	ret = do_accept(id, conn_param);
	cm_let_cancel(state);
	if (!ret && !cm_is_ud(id)) {
		cm_forget_event(id);
		ret = cm_complete(id);
	}
	return cm_return(ret);
}

PUBLIC int rdma_reject(struct rdma_cm_id *rdma_id, const void *private_data,
		       uint8_t private_data_len)
{
	struct cm_id *id = to_cm_id(rdma_id);
	struct ucma_abi_reject cmd = {.id = id->handle};
	int ret;

	ret = put_data(cmd.private_data, NULL, 0, private_data, private_data_len,
		       &cmd.private_data_len);
	if (!ret)
		ret = CM_COMMAND(cm_fd(to_cm_id(rdma_id)), UCMA_CMD_REJECT, &cmd);
	return cm_return(ret);
}

PUBLIC int rdma_notify(struct rdma_cm_id *rdma_id, enum ibv_event_type event)
{
	struct cm_id *id = to_cm_id(rdma_id);
	struct ucma_abi_notify cmd = {.id = id->handle, .event = event};

	return cm_return(CM_COMMAND(cm_fd(to_cm_id(rdma_id)), UCMA_CMD_NOTIFY, &cmd));
}

PUBLIC int rdma_disconnect(struct rdma_cm_id *rdma_id)
{
	struct cm_id *id = to_cm_id(rdma_id);
	struct ucma_abi_disconnect cmd = {.id = id->handle};
	int state = cm_begin(), ret;

	if (!cm_is_ud(id))
		cm_qp_to_err(id);
	ret = CM_COMMAND(cm_fd(to_cm_id(rdma_id)), UCMA_CMD_DISCONNECT, &cmd);
	cm_let_cancel(state);
	/* DISCONNECTED comes once. */
	if (ret || id->disconnected)
		return cm_return(ret);
	cm_forget_event(id);
	return cm_return(cm_complete(id));
}
