// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Commands: listeners and connections. */
#include <errno.h>
#include <string.h>

#include "command.h"
#include "exchange.h"
#include "id.h"
#include "message.h"
#include "port.h"
#include "resolve.h"

#define MAX_BACKLOG	 1024
#define COMM_EST	 4
#define CONSUMER	 28
#define NO_VENDOR_OPTION 35

/* What the id is going to send. */
static void take_param(struct cm_id *id, const struct cm_conn_param *p, const struct cm_ece *ece)
{
	id->sent = *p;
	memset(id->sent.data + p->len, 0, sizeof(id->sent.data) - p->len);
	id->sent.qp_num &= 0xffffff;
	id->sent.srq = p->srq != 0;
	id->sent.flow_control = p->flow_control != 0;
	id->sent.retry_count = p->retry_count < 7 ? p->retry_count : 7;
	id->sent.rnr_retry_count = p->rnr_retry_count < 7 ? p->rnr_retry_count : 7;
	id->qpn = id->sent.qp_num;
	id->ece = *ece;
	if (id->src.family == CM_AF_IB)
		id->qkey = p->qkey;
}

static size_t request_room(const struct cm_id *id)
{
	size_t room = cm_id_is_ud(id) ? CM_SIDR_REQ_DATA : CM_REQ_DATA;

	return id->src.family == CM_AF_IB ? room : room - CM_IP_HEADER;
}

int cm_cmd_connect(struct cm_call *c)
{
	const struct cm_connect *cmd = (const void *)c->in;
	struct cm_id *id;
	int err;

	if (!cmd->param.valid)
		return -EINVAL;
	err = cm_call_id(c, cmd->id, &id);
	if (err)
		return err;
	if (id->state != CM_ROUTE_RESOLVED || cmd->param.len > request_room(id))
		return -EINVAL;
	take_param(id, &cmd->param, &cmd->ece);
	id->responder_resources = cmd->param.responder_resources;
	id->initiator_depth = cmd->param.initiator_depth;
	id->retry = id->sent.retry_count;
	cm_exchange_connect(id);
	return 0;
}

int cm_cmd_listen(struct cm_call *c)
{
	const struct cm_two *cmd = (const void *)c->in;
	union cm_sockaddr any = {.family = AF_INET};
	struct cm_id *id;
	int err;

	err = cm_call_id(c, cmd->id, &id);
	if (err)
		return err;
	if (id->state == CM_IDLE) {
		err = cm_bind(id, &any, c->privileged);
		if (err)
			return err;
	}
	if (id->state != CM_BOUND)
		return -EINVAL;
	err = id->reuse ? cm_port_alone(id) : 0;
	if (err)
		return err;
	id->backlog =
		(int32_t)cmd->value <= 0 || cmd->value > MAX_BACKLOG ? MAX_BACKLOG : cmd->value;
	id->state = CM_LISTENING;
	return 0;
}

static int accept_request(struct cm_id *id, const struct cm_accept *cmd)
{
	size_t room = cm_id_is_ud(id) ? CM_SIDR_REP_DATA : CM_REP_DATA;
	int err;

	if (id->x != CM_X_REQ_RECEIVED && id->x != CM_X_SIDR_RECEIVED)
		return -EINVAL;
	err = cmd->param.len > room ? -EINVAL : 0;
	if (err) {
		(void)cm_exchange_reject(id, CONSUMER, NULL, 0);
		return err;
	}
	take_param(id, &cmd->param, &cmd->ece);
	id->responder_resources = cmd->param.responder_resources;
	id->initiator_depth = cmd->param.initiator_depth;
	err = cm_exchange_accept(id);
	if (err)
		return err;
	id->uid = cmd->uid;
	id->known = true;
	return 0;
}

int cm_cmd_accept(struct cm_call *c)
{
	const struct cm_accept *cmd = (const void *)c->in;
	struct cm_id *id;
	int err;

	err = cm_call_id(c, cmd->id, &id);
	if (err)
		return err;
	if (id->state != CM_CONNECTED)
		return -EINVAL;
	return cmd->param.valid ? accept_request(id, cmd) : cm_exchange_rtu(id);
}

int cm_cmd_reject(struct cm_call *c)
{
	const struct cm_reject *cmd = (const void *)c->in;
	int err, reason = cmd->reason;
	struct cm_id *id;

	/* Where older kernels have the reason, they have nothing. */
	if (!reason || cm_ofed(c))
		reason = CONSUMER;
	if (reason != CONSUMER && reason != NO_VENDOR_OPTION)
		return -EINVAL;
	err = cm_call_id(c, cmd->id, &id);
	if (err)
		return err;
	return cm_exchange_reject(id, reason, cmd->data, cmd->len);
}

int cm_cmd_disconnect(struct cm_call *c)
{
	const struct cm_two *cmd = (const void *)c->in;
	struct cm_id *id;
	int err = cm_call_id(c, cmd->id, &id);

	return err ? err : cm_exchange_disconnect(id);
}

int cm_cmd_notify(struct cm_call *c)
{
	const struct cm_two *cmd = (const void *)c->in;
	struct cm_id *id;
	int err;

	err = cm_call_id(c, cmd->id, &id);
	if (err)
		return err;
	if (id->x == CM_X_NONE)
		return -EINVAL;
	if (cmd->value == COMM_EST)
		cm_exchange_established(id);
	return 0;
}
