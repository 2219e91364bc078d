// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Answers to requests for a connection: what they change, and what they tell the program.
 */
#include <string.h>

#include "channel.h"
#include "exchange.h"
#include "id.h"
#include "message.h"

/* What one side can answer, the other side may ask. */
static void take_rep(struct cm_id *id, const struct cm_message *m)
{
	struct cm_event *e;

	id->x = CM_X_REP_RECEIVED;
	cm_id_timer(id, 0);
	id->peer = m->from;
	id->peer_psn = m->psn;
	id->peer_qpn = m->param.qp_num;
	id->peer_ece = m->ece;
	id->initiator_depth = m->param.responder_resources;
	id->responder_resources = m->param.initiator_depth;
	id->rnr = m->param.rnr_retry_count;
	e = cm_event_new(id, CM_EV_CONNECT_RESPONSE, 0);
	if (!e)
		return;
	e->resp.param.conn = m->param;
	e->resp.param.conn.qkey = 0;
	e->resp.param.conn.len = CM_REP_DATA;
	e->resp.param.conn.responder_resources = id->responder_resources;
	e->resp.param.conn.initiator_depth = id->initiator_depth;
	e->resp.param.conn.retry_count = 0;
	e->resp.param.conn.valid = 0;
	e->resp.ece = m->ece;
	cm_event_queue(e);
}

static void rejected(struct cm_id *id, const struct cm_message *m)
{
	struct cm_event *e;

	id->x = CM_X_ENDED;
	cm_id_timer(id, 0);
	e = cm_event_new(id, CM_EV_REJECTED, m->status);
	if (!e)
		return;
	memcpy(e->resp.param.conn.data, m->param.data, CM_REJ_DATA);
	e->resp.param.conn.len = CM_REJ_DATA;
	cm_event_queue(e);
}

void cm_rc_deliver(struct rdmacm *cm, struct cm_message *m)
{
	struct cm_id *id = cm_id_by_comm(cm, m->to);

	/* A request that was taken back before it was answered. */
	if (!id && m->kind == CM_M_REJ)
		id = cm_id_asked_by(cm, m->from);
	if (!id || id->x == CM_X_ENDED || id->x == CM_X_TIMEWAIT)
		return;
	switch (m->kind) {
	case CM_M_REP:
		if (id->x == CM_X_REQ_SENT)
			take_rep(id, m);
		else if (id->x == CM_X_ESTABLISHED)
			cm_message_send(cm, cm_message_new(id, CM_M_RTU));
		break;
	case CM_M_RTU:
		cm_exchange_established(id);
		break;
	case CM_M_REJ:
		if (id->x >= CM_X_REQ_SENT && id->x <= CM_X_REP_RECEIVED)
			rejected(id, m);
		else
			cm_exchange_broken(id);
		break;
	default:
		break;
	}
}
