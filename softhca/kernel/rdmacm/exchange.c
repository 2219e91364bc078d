// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What connections and questions for a UD QP have in common: requests are sent until they are
 * answered, and listeners let a number of them wait.
 */
#include <errno.h>
#include <string.h>

#include "softhca/host/process.h"
#include "address.h"
#include "channel.h"
#include "exchange.h"
#include "farewell.h"
#include "id.h"
#include "message.h"
#include "rdmacm.h"

#define STALE 10 /* reason of a REJ: stale connection */

/* How long a connection is not used again. */
static uint64_t timewait_ns(const struct cm_id *id)
{
	unsigned int timeout = id->path.life + 2u;

	return UINT64_C(1000000) << (timeout > 8 ? timeout - 8 : 0);
}

static void wait_for_answer(struct cm_id *id)
{
	cm_id_timer(id, sh_now() + id->cm->response_ns);
}

static void send_request(struct cm_id *id)
{
	struct cm_message *m =
		cm_message_new(id, id->x == CM_X_SIDR_SENT ? CM_M_SIDR_REQ : CM_M_REQ);

	if (!m)
		return;
	m->src = id->src;
	m->dst = id->dst;
	m->ps = id->dst.family == CM_AF_IB ? cm_addr_service(&id->dst) : id->service;
	m->qp_type = id->qp_type;
	m->mtu = id->path.mtu;
	m->psn = id->psn;
	m->param = id->sent;
	m->ece = id->ece;
	cm_message_send(id->cm, m);
}

static void send_rep(struct cm_id *id)
{
	struct cm_message *m = cm_message_new(id, CM_M_REP);

	if (!m)
		return;
	m->psn = id->psn;
	m->param = id->sent;
	m->ece = id->ece;
	cm_message_send(id->cm, m);
}

void cm_exchange_send(struct cm_id *id)
{
	switch (id->x) {
	case CM_X_REQ_SENT:
	case CM_X_SIDR_SENT:
		send_request(id);
		break;
	case CM_X_REP_SENT:
		send_rep(id);
		break;
	case CM_X_DREQ_SENT:
		cm_message_send(id->cm, cm_message_new(id, CM_M_DREQ));
		break;
	default:
		return;
	}
	wait_for_answer(id);
}

void cm_exchange_connect(struct cm_id *id)
{
	id->state = CM_CONNECTED;
	id->x = cm_id_is_ud(id) ? CM_X_SIDR_SENT : CM_X_REQ_SENT;
	id->tries = CM_TRIES;
	cm_exchange_send(id);
}

int cm_exchange_accept(struct cm_id *id)
{
	if (id->x == CM_X_SIDR_RECEIVED)
		return cm_sidr_reply(id, 0, id->sent.data, id->sent.len);
	if (id->x != CM_X_REQ_RECEIVED)
		return -EINVAL;
	id->x = CM_X_REP_SENT;
	id->tries = CM_TRIES;
	cm_exchange_send(id);
	return 0;
}

int cm_exchange_rtu(struct cm_id *id)
{
	if (id->x != CM_X_REP_RECEIVED)
		return -EINVAL;
	id->x = CM_X_ESTABLISHED;
	cm_message_send(id->cm, cm_message_new(id, CM_M_RTU));
	return 0;
}

static void send_rej(struct cm_id *id, int status, const uint8_t *data, size_t len)
{
	struct cm_message *m = cm_message_new(id, CM_M_REJ);

	if (!m)
		return;
	m->status = status;
	m->about = id->x == CM_X_REQ_RECEIVED	? CM_ABOUT_REQ
		   : id->x == CM_X_REP_RECEIVED ? CM_ABOUT_REP
						: CM_ABOUT_OTHER;
	if (len)
		memcpy(m->param.data, data, len);
	cm_message_send(id->cm, m);
}

/* For the peer the connection may stand: its RTU is under way, or was lost. */
static void refuse_established(struct cm_id *id, int status)
{
	send_rej(id, status, NULL, 0);
	if (id->far)
		cm_farewell(id);
}

void cm_exchange_again(struct cm_id *id)
{
	struct cm_message *m;

	if (id->x == CM_X_REQ_RECEIVED && id->far) {
		m = cm_message_new(id, CM_M_MRA);
		if (m)
			m->about = CM_ABOUT_REQ;
		cm_message_send(id->cm, m);
	} else if (id->x == CM_X_ENDED && id->refused && !cm_id_is_ud(id)) {
		m = cm_message_new(id, CM_M_REJ);
		if (m) {
			m->status = id->refused - 1;
			memcpy(m->param.data, id->sent.data, CM_REJ_DATA);
		}
		cm_message_send(id->cm, m);
	} else if (id->x >= CM_X_DREQ_SENT && id->far && !id->refused && !cm_id_is_ud(id)) {
		/* The peer has not heard of the connection, which has ended here. */
		m = cm_message_new(id, CM_M_REJ);
		if (m)
			m->status = STALE;
		cm_message_send(id->cm, m);
	} else if (id->x == CM_X_ENDED && id->refused) {
		(void)cm_sidr_reply(id, id->refused - 1, id->sent.data, CM_SIDR_REP_DATA);
	}
}

int cm_exchange_reject(struct cm_id *id, int status, const uint8_t *data, size_t len)
{
	switch (id->x) {
	case CM_X_SIDR_RECEIVED:
		return cm_sidr_reply(id, 2, data, len);
	case CM_X_REQ_SENT:
	case CM_X_REQ_RECEIVED:
	case CM_X_REP_SENT:
	case CM_X_REP_RECEIVED:
		break;
	default:
		return -EINVAL;
	}
	if (len > CM_REJ_DATA)
		return -EINVAL;
	send_rej(id, status, data, len);
	if (id->x == CM_X_REQ_RECEIVED) {
		id->refused = (uint16_t)(status + 1);
		memset(id->sent.data, 0, sizeof(id->sent.data));
		if (len)
			memcpy(id->sent.data, data, len);
	}
	id->x = CM_X_ENDED;
	cm_id_timer(id, 0);
	return 0;
}

static void disconnected(struct cm_id *id, int status)
{
	struct cm_event *e;

	if (id->told)
		return;
	id->told = true;
	id->state = CM_DISCONNECTED;
	e = cm_event_new(id, CM_EV_DISCONNECTED, status);
	if (e)
		cm_event_queue(e);
}

static void enter_timewait(struct cm_id *id)
{
	id->x = CM_X_TIMEWAIT;
	cm_id_timer(id, sh_now() + timewait_ns(id));
}

void cm_exchange_broken(struct cm_id *id)
{
	if (id->x != CM_X_ESTABLISHED)
		return;
	disconnected(id, 0);
	enter_timewait(id);
}

int cm_exchange_disconnect(struct cm_id *id)
{
	switch (id->x) {
	case CM_X_NONE:
		return -EINVAL;
	case CM_X_REP_SENT:
	case CM_X_REP_RECEIVED:
	case CM_X_ESTABLISHED:
		id->x = CM_X_DREQ_SENT;
		id->tries = CM_TRIES;
		cm_exchange_send(id);
		break;
	case CM_X_DREQ_RECEIVED:
		cm_message_send(id->cm, cm_message_new(id, CM_M_DREP));
		enter_timewait(id);
		break;
	default:
		break;
	}
	return 0;
}

void cm_exchange_end(struct cm_id *id)
{
	switch (id->x) {
	case CM_X_REQ_SENT:
		send_rej(id, 4, NULL, 0);
		break;
	case CM_X_REQ_RECEIVED:
	case CM_X_REP_RECEIVED:
		send_rej(id, 28, NULL, 0);
		break;
	case CM_X_REP_SENT:
		refuse_established(id, 28);
		break;
	case CM_X_ESTABLISHED:
	case CM_X_DREQ_SENT:
		cm_farewell(id);
		break;
	case CM_X_DREQ_RECEIVED:
		cm_message_send(id->cm, cm_message_new(id, CM_M_DREP));
		break;
	case CM_X_SIDR_RECEIVED:
		(void)cm_sidr_reply(id, 2, NULL, 0);
		break;
	default:
		break;
	}
	id->x = CM_X_ENDED;
	cm_id_timer(id, 0);
}

/* The peer has not answered. */
static void give_up(struct cm_id *id)
{
	enum cm_exchange x = id->x;
	struct cm_event *e;

	id->cm->count.given_up++;
	if (x == CM_X_DREQ_SENT) {
		disconnected(id, -ETIMEDOUT);
		enter_timewait(id);
		return;
	}
	if (x == CM_X_REP_SENT)
		refuse_established(id, 4);
	else if (x == CM_X_REQ_SENT)
		send_rej(id, 4, NULL, 0);
	id->x = CM_X_ENDED;
	e = cm_event_new(id, CM_EV_UNREACHABLE, -ETIMEDOUT);
	if (e)
		cm_event_queue(e);
}

void cm_exchange_due(struct cm_id *id)
{
	struct cm_event *e;

	if (id->x == CM_X_TIMEWAIT) {
		id->x = CM_X_ENDED;
		e = cm_event_new(id, CM_EV_TIMEWAIT_EXIT, 0);
		if (e)
			cm_event_queue(e);
	} else if (!id->tries) {
		give_up(id);
	} else {
		id->tries--;
		id->cm->count.repeated++;
		cm_exchange_send(id);
	}
}

void cm_exchange_read(struct cm_id *listener)
{
	struct cm_id *id;

	listener->backlog++;
	while ((id = listener->waiting)) {
		cm_id_wait_no_more(id);
		if (id->x != CM_X_REQ_SENT && id->x != CM_X_SIDR_SENT)
			continue;
		cm_exchange_send(id);
		return;
	}
}

void cm_exchange_established(struct cm_id *id)
{
	struct cm_event *e;

	if (id->x != CM_X_REP_SENT)
		return;
	id->x = CM_X_ESTABLISHED;
	cm_id_timer(id, 0);
	e = cm_event_new(id, CM_EV_ESTABLISHED, 0);
	if (e)
		cm_event_queue(e);
}

void cm_exchange_deliver(struct rdmacm *cm, struct cm_message *m)
{
	struct cm_id *id;
	struct cm_message *answer;
	int status;

	switch (m->kind) {
	case CM_M_REQ:
	case CM_M_SIDR_REQ:
		status = cm_request(cm, m);
		if (status <= 0)
			return;
		answer = cm_message_answer(m, m->kind == CM_M_REQ ? CM_M_REJ : CM_M_SIDR_REP);
		if (answer)
			answer->status = m->kind == CM_M_REQ ? status : status == 8 ? 1 : 2;
		cm_message_send(cm, answer);
		return;
	case CM_M_DREQ:
		id = cm_id_by_comm(cm, m->to);
		if (!id || id->x == CM_X_TIMEWAIT || id->x == CM_X_ENDED) {
			cm_message_send(cm, cm_message_answer(m, CM_M_DREP));
		} else if (id->x == CM_X_DREQ_SENT) {
			cm_message_send(cm, cm_message_answer(m, CM_M_DREP));
			disconnected(id, 0);
			enter_timewait(id);
		} else if (id->x >= CM_X_REP_SENT && id->x <= CM_X_ESTABLISHED) {
			id->x = CM_X_DREQ_RECEIVED;
			cm_id_timer(id, 0);
			disconnected(id, 0);
		}
		return;
	case CM_M_DREP:
		id = cm_id_by_comm(cm, m->to);
		if (id && id->x == CM_X_DREQ_SENT) {
			disconnected(id, 0);
			enter_timewait(id);
		}
		return;
	case CM_M_SIDR_REP:
		cm_sidr_deliver(cm, m);
		return;
	default:
		cm_rc_deliver(cm, m);
	}
}
