// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The end of a question for a UD QP: the answer has the QP's number and key, and ends both sides of
 * the exchange.
 */
#include <errno.h>
#include <string.h>

#include "channel.h"
#include "exchange.h"
#include "id.h"
#include "message.h"
#include "path.h"

int cm_sidr_reply(struct cm_id *id, int status, const uint8_t *data, size_t len)
{
	struct cm_message *m;

	if (len > CM_SIDR_REP_DATA)
		return -EINVAL;
	id->x = CM_X_ENDED;
	id->refused = (uint16_t)(status + 1);
	if (data != id->sent.data) {
		memset(id->sent.data, 0, sizeof(id->sent.data));
		if (len)
			memcpy(id->sent.data, data, len);
	}
	m = cm_message_new(id, CM_M_SIDR_REP);
	if (!m)
		return 0;
	m->status = status;
	m->ps = id->service;
	m->src = id->src;
	m->param.qp_num = id->qpn;
	m->param.qkey = cm_id_qkey(id);
	if (len)
		memcpy(m->param.data, data, len);
	m->ece = id->ece;
	cm_message_send(id->cm, m);
	return 0;
}

void cm_sidr_deliver(struct rdmacm *cm, struct cm_message *m)
{
	struct cm_id *id = cm_id_by_comm(cm, m->to);
	enum cm_event_type type = m->status ? CM_EV_UNREACHABLE : CM_EV_ESTABLISHED;
	int status = m->status;
	struct cm_event *e;

	if (!id || id->x != CM_X_SIDR_SENT)
		return;
	id->x = CM_X_ENDED;
	cm_id_timer(id, 0);
	if (!status && id->qkey && id->qkey != m->param.qkey) {
		type = CM_EV_ADDR_ERROR;
		status = -EINVAL;
	}
	e = cm_event_new(id, type, status);
	if (!e)
		return;
	if (!status) {
		e->resp.param.ud.qp_num = m->param.qp_num;
		e->resp.param.ud.qkey = m->param.qkey;
		cm_path_av(id, &e->resp.param.ud.ah);
	}
	memcpy(e->resp.param.ud.data, m->param.data, CM_SIDR_REP_DATA);
	e->resp.param.ud.len = CM_SIDR_REP_DATA;
	e->resp.ece = m->ece;
	cm_event_queue(e);
}
