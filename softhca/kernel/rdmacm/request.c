// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A request arrives: which id listens for it, and the new id that it brings.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/host/process.h"
#include "softhca/kernel/ports.h"
#include "address.h"
#include "channel.h"
#include "exchange.h"
#include "id.h"
#include "mad.h"
#include "message.h"
#include "path.h"
#include "port.h"
#include "rdmacm.h"

#define NO_SERVICE  8
#define INVALID_MTU 26
#define REFUSED	    28
#define PATIENCE    16 /* answers' time that the sender waits, once its request has arrived */

/*
 * The room for the private data of a request that begin with the header of IP addresses, whether a
 * program or this daemon has written that.
 */
static size_t data_room(const struct cm_message *m)
{
	return m->kind == CM_M_REQ ? CM_REQ_DATA : CM_SIDR_REQ_DATA;
}

/* The request as a listener with IP addresses has it. False: nothing tells the addresses. */
static bool as_ip(const struct cm_message *m, struct cm_message *out)
{
	*out = *m;
	if (m->src.family != CM_AF_IB)
		return true;
	if (!cm_mad_take_header(m->param.data, cm_addr_port(&m->dst), out))
		return false;
	memcpy(out->param.data, m->param.data + CM_IP_HEADER, data_room(m) - CM_IP_HEADER);
	return true;
}

static void put_gid(union cm_sockaddr *a, const uint8_t gid[16], uint16_t pkey)
{
	memset(a, 0, sizeof(*a));
	a->family = CM_AF_IB;
	a->ib.pkey = htobe16(pkey);
	memcpy(a->ib.gid, gid, 16);
}

/*
 * As one of AF_IB has it: with all of the data, and with no service of the sender, which no request
 * tells.
 */
static void as_ib(const struct cm_message *m, struct cm_message *out)
{
	*out = *m;
	if (m->src.family != CM_AF_IB) {
		cm_mad_put_header(out->param.data, m);
		memcpy(out->param.data + CM_IP_HEADER, m->param.data, data_room(m) - CM_IP_HEADER);
	}
	put_gid(&out->src, m->src.family == CM_AF_IB ? m->src.ib.gid : m->sgid, m->pkey);
	put_gid(&out->dst, m->dst.family == CM_AF_IB ? m->dst.ib.gid : m->dgid, m->pkey);
	cm_addr_set_port(&out->dst, m->ps, cm_addr_port(&m->dst));
}

/* ip: as_ip(), or NULL */
static bool wants(const struct rdmacm *cm, const struct cm_id *l, const struct cm_message *m,
		  const struct cm_message *ip)
{
	/* A kernel does not look at what comes to one of AF_IB: it has the port. */
	if (l->src.family == CM_AF_IB)
		return !l->device || l->port == m->port;
	if (!ip)
		return false;
	if (cm_addr_any(cm, &l->src))
		return !l->afonly || l->src.family == ip->dst.family;
	return cm_addr_same(&l->src, &ip->dst);
}

static bool type_fits(const struct cm_id *l, const struct cm_message *m)
{
	if (m->qp_type == CM_QPT_XRC_INI)
		return l->qp_type == CM_QPT_XRC_TGT;
	return l->qp_type == m->qp_type;
}

/* NULL with the status that the sender gets. */
static struct cm_id *listener(struct rdmacm *cm, const struct cm_message *m, int *status)
{
	struct cm_host *h = &cm->hosts[cm->hcas[m->hca].host];
	int space = cm_space_of(m->ps);
	struct cm_message whole;
	const struct cm_message *ip = as_ip(m, &whole) ? &whole : NULL;
	struct cm_port *p;
	struct cm_id *l, *best = NULL;

	*status = NO_SERVICE;
	p = space < 0 ? NULL : cm_port_find(h, space, cm_addr_port(&m->dst));
	if (!p)
		return NULL;
	DL_FOREACH2(p->ids, l, pnext)
	{
		if (l->state != CM_LISTENING)
			continue;
		/* A kernel listens on the device, and compares addresses afterwards. */
		if (l->device && l->hca != m->hca)
			continue;
		*status = REFUSED;
		if (wants(cm, l, m, ip) && type_fits(l, m) && (!best || !cm_addr_any(cm, &l->src)))
			best = l;
	}
	return best;
}

uint16_t cm_request_family(struct rdmacm *cm, const struct cm_message *m)
{
	int status;
	const struct cm_id *l = listener(cm, m, &status);

	return l ? l->src.family : 0;
}

static void take_addresses(struct cm_id *id, const struct cm_id *l, const struct cm_message *m)
{
	id->src = m->dst;
	id->dst = m->src;
	id->device = true;
	id->hca = m->hca;
	id->port = m->port;
	id->ps = l->ps;
	id->service = l->service;
	id->qp_type = l->qp_type;
}

static void fill_rc(struct cm_event *e, const struct cm_id *id, const struct cm_message *m)
{
	size_t len = id->src.family == CM_AF_IB ? CM_REQ_DATA : CM_REQ_DATA - CM_IP_HEADER;
	struct cm_conn_param *p = &e->resp.param.conn;

	memcpy(p->data, m->param.data, len);
	p->len = (uint8_t)len;
	p->qp_num = m->param.qp_num;
	p->srq = m->param.srq;
	p->responder_resources = id->responder_resources;
	p->initiator_depth = id->initiator_depth;
	p->flow_control = m->param.flow_control;
	p->retry_count = id->retry;
	p->rnr_retry_count = id->rnr;
}

static void fill_ud(struct cm_event *e, const struct cm_id *id, const struct cm_message *m)
{
	size_t len =
		id->src.family == CM_AF_IB ? CM_SIDR_REQ_DATA : CM_SIDR_REQ_DATA - CM_IP_HEADER;

	memcpy(e->resp.param.ud.data, m->param.data, len);
	e->resp.param.ud.len = (uint8_t)len;
}

static struct cm_id *make(struct rdmacm *cm, struct cm_id *l, const struct cm_message *m)
{
	uint32_t hca = 0, port = 0;
	struct cm_id *id;

	if ((!m->far && !cm_port_by_gid(cm, m->sgid, &hca, &port)) ||
	    cm_id_new(l->channel, l->host, &id) < 0)
		return NULL;
	take_addresses(id, l, m);
	id->far = m->far;
	if (m->far)
		cm_path_far(cm, m->hca, m->port, m->far, &id->path);
	else
		cm_path_between(cm, m->hca, m->port, hca, port, &id->path);
	if (m->kind == CM_M_REQ && m->mtu)
		id->path.mtu = m->mtu;
	cm_path_partition(id, m->pkey);
	id->has_path = true;
	id->hidden = true;
	id->state = CM_CONNECTED;
	id->x = m->kind == CM_M_REQ ? CM_X_REQ_RECEIVED : CM_X_SIDR_RECEIVED;
	id->peer = m->from;
	id->peer_psn = m->psn;
	id->peer_qpn = m->param.qp_num;
	id->peer_ece = m->ece;
	/* What one side can answer, the other side may ask. */
	id->responder_resources = m->param.initiator_depth;
	id->initiator_depth = m->param.responder_resources;
	id->retry = m->param.retry_count;
	id->rnr = m->param.rnr_retry_count;
	cm_id_asked(id);
	return id;
}

/*
 * The request has arrived. Its sender waits as long as the listener's program takes; no message
 * says so within an instance.
 */
static void sender_waits(struct rdmacm *cm, struct cm_id *sender)
{
	if (sender && sender->x == CM_X_REQ_SENT)
		cm_id_timer(sender, sh_now() + PATIENCE * cm->response_ns);
}

int cm_request(struct rdmacm *cm, struct cm_message *m)
{
	struct cm_id *l, *id, *sender = cm_id_by_comm(cm, m->from);
	struct cm_message as;
	struct cm_event *e;
	int status;

	id = cm_id_asked_by(cm, m->from);
	if (id) { /* sent again */
		cm_exchange_again(id);
		if (id->x == CM_X_REQ_RECEIVED)
			sender_waits(cm, sender);
		return 0;
	}
	if (m->kind == CM_M_REQ && m->mtu > port_mtu(cm->k))
		return INVALID_MTU;
	l = listener(cm, m, &status);
	if (!l)
		return status;
	if (!l->backlog) {
		if (sender)
			cm_id_wait(sender, l);
		return -1;
	}
	if (l->src.family == CM_AF_IB)
		as_ib(m, &as);
	else
		as_ip(m, &as);
	m = &as;
	e = cm_event_new(l, CM_EV_CONNECT_REQUEST, 0);
	id = e ? make(cm, l, m) : NULL;
	if (!id) {
		free(e);
		return -1;
	}
	if (id->x == CM_X_REQ_RECEIVED)
		fill_rc(e, id, m);
	else
		fill_ud(e, id, m);
	e->resp.id = id->number;
	e->resp.ece = m->ece;
	e->fresh = id;
	l->backlog--;
	cm_event_queue(e);
	sender_waits(cm, sender);
	return 0;
}
