// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See wire.h. An id has 64 bits of a number, of which the lower half goes over the wire. The number
 * of an id elsewhere is that half with the LID of its port, and with a bit that no number of this
 * instance has.
 */
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/transport/fault.h"
#include "softhca/device/transport/gsi.h"
#include "softhca/host/process.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/wire_engine.h"
#include "address.h"
#include "exchange.h"
#include "farewell.h"
#include "fault.h"
#include "id.h"
#include "mad.h"
#include "rdmacm.h"
#include "timer.h"
#include "wire.h"

#define ELSEWHERE     (UINT64_C(1) << 63)
#define UNIT_NS	      4096
#define MOST_PATIENCE 24 /* 69 s: as long as kernels ask for */
#define PATIENCE      4	 /* 16 times as long as an answer takes */
#define INVALID_COMM  6	 /* reason of a REJ */
_Static_assert(CM_MAD == SH_GSI_SIZE, "a management datagram");

/* So long is it waited for an answer, as 4.096 us << this. */
static uint8_t timeout_of(const struct rdmacm *cm)
{
	uint8_t t = 0;

	while (t < 31 && (uint64_t)UNIT_NS << t < cm->response_ns)
		t++;
	return t;
}

static uint64_t elsewhere(uint16_t lid, uint64_t number)
{
	return number ? ELSEWHERE | (uint64_t)lid << 32 | number : 0;
}

/*
 * The last id that got a number with this lower half; if there was none, a number that no id has.
 */
static uint64_t own_number(const struct rdmacm *cm, uint64_t half)
{
	uint64_t last = cm->next_comm, number = (last & ~(uint64_t)UINT32_MAX) | half;

	if (number > last)
		number -= number > UINT32_MAX ? (uint64_t)1 << 32 : 0;
	return half ? number : 0;
}

/* ---- what leaves ---- */

/* The entry of the port's table for that partition: of two limited members none hears the other. */
static uint16_t own_pkey(const struct rdmacm *cm, const struct cm_message *m)
{
	const struct sh_port *port = &sh_hca(cm->dev, m->hca)->port[m->port - 1];
	uint16_t found = m->pkey;

	for (unsigned int i = 0; i < SH_PKEYS; i++)
		if ((port->pkey[i] ^ m->pkey) == 0x8000)
			found = port->pkey[i] & 0x8000 ? port->pkey[i] : found;
	return found;
}

void cm_wire_leave(struct rdmacm *cm, const struct cm_message *m)
{
	struct sh_wire_mad w = {.hca = m->hca, .port = m->port, .lid = m->far};
	const struct cm_mad_sender s = {
		.guid = sh_hca(cm->dev, m->hca)->node_guid,
		.timeout = timeout_of(cm),
	};
	struct cm_message copy;

	if (!port_active(cm->k, m->hca, m->port)) {
		cm->count.dropped++;
		return;
	}
	if (cm_fault_hits(cm, cm->hcas[m->hca].host, SH_FAULT_FAR | m->far)) {
		cm->count.faults++;
		return;
	}
	copy = *m;
	if (copy.kind == CM_M_MRA)
		copy.patience = s.timeout + PATIENCE < 31 ? s.timeout + PATIENCE : 31;
	/*
	 * A program that has bound itself to an address of the instance alone has another one on
	 * the wire.
	 */
	if (copy.src.family == cm_wire_family(cm)) {
		uint16_t port = cm_addr_port(&m->src);

		cm_addr_on_wire(cm, copy.src.family, m->hca, m->port, &copy.src);
		cm_addr_set_port(&copy.src, m->ps, port);
	}
	w.pkey = own_pkey(cm, m);
	cm_mad_write(&copy, &s, w.mad);
	if (!wire_send(cm->k, &w))
		cm->count.dropped++;
}

/* ---- what comes ---- */

/* Is the message one of the id's peer? */
static bool fits(const struct cm_id *id, const struct cm_message *m)
{
	if (id->far != m->far || id->hca != m->hca || id->port != m->port)
		return false;
	switch (m->kind) {
	case CM_M_SIDR_REP:
		return true;
	case CM_M_REP:
	case CM_M_REJ:
	case CM_M_MRA:
		/* The first answer tells the peer's number. */
		return !id->peer || id->peer == m->from;
	case CM_M_DREQ:
		return id->peer == m->from && id->qpn == m->peer_qpn;
	default:
		return id->peer == m->from;
	}
}

/* The peer needs time: it has the message, and will answer. */
static void wait_longer(struct cm_id *id, const struct cm_message *m)
{
	uint8_t patience = m->patience < MOST_PATIENCE ? m->patience : MOST_PATIENCE;

	if ((id->x == CM_X_REQ_SENT && m->about == CM_ABOUT_REQ) ||
	    (id->x == CM_X_REP_SENT && m->about == CM_ABOUT_REP))
		cm_id_timer(id, sh_now() + ((uint64_t)UNIT_NS << patience) + id->cm->response_ns);
}

/* There is no such connection any more, or it is another one's. Both sides end it. */
static void answer_stray(struct rdmacm *cm, const struct cm_message *m)
{
	struct cm_message *answer;

	if (!m->from || (m->kind != CM_M_DREQ && m->kind != CM_M_REP))
		return;
	answer = cm_message_answer(m, m->kind == CM_M_DREQ ? CM_M_DREP : CM_M_REJ);
	if (answer && m->kind == CM_M_REP) {
		answer->status = INVALID_COMM;
		answer->about = CM_ABOUT_REP;
	}
	cm_message_send(cm, answer);
}

static void deliver(struct rdmacm *cm, struct cm_message *m)
{
	struct cm_id *id = m->to ? cm_id_by_comm(cm, m->to) : NULL;

	if (m->kind == CM_M_REQ || m->kind == CM_M_SIDR_REQ) {
		if (m->from)
			cm_exchange_deliver(cm, m);
		return;
	}
	/* A request that is taken back before it is answered is known by its sender alone. */
	if (m->kind == CM_M_REJ && !m->to && m->from) {
		cm_exchange_deliver(cm, m);
		return;
	}
	cm_farewell_heard(cm, m);
	if (!id || !fits(id, m))
		answer_stray(cm, m);
	else if (m->kind == CM_M_MRA)
		wait_longer(id, m);
	else
		cm_exchange_deliver(cm, m);
}

/* A question for a UD QP has no GIDs in it: it is for the port that it has come to. */
static void fill_gid(const struct rdmacm *cm, struct cm_message *m)
{
	union cm_sockaddr own;

	if (m->src.family != CM_AF_IB || !cm_addr_zero(&m->dst))
		return;
	cm_addr_on_wire(cm, CM_AF_IB, m->hca, m->port, &own);
	memcpy(m->dst.ib.gid, own.ib.gid, sizeof(own.ib.gid));
}

/*
 * A request names its sender itself, but programs get the address that it came from. The sender has
 * none of the other version of IP: the request then finds no listener.
 */
static void check_source(const struct rdmacm *cm, struct cm_message *m)
{
	uint16_t port = cm_addr_port(&m->src), family = m->src.family;

	if (m->kind != CM_M_REQ && m->kind != CM_M_SIDR_REQ)
		return;
	fill_gid(cm, m);
	if (family != CM_AF_IB && family != cm_wire_family(cm))
		m->ps = 0;
	else if (cm_addr_far(cm, &m->src) != m->far) {
		cm_addr_of_far(cm, family, m->far, &m->src);
		cm_addr_set_port(&m->src, m->ps, port);
	}
}

/*
 * Does the header of IP addresses name the port that the request has come to? Else it is no header.
 */
static bool names_port(const struct rdmacm *cm, const struct cm_message *m)
{
	union cm_sockaddr own;

	cm_addr_on_wire(cm, m->dst.family, m->hca, m->port, &own);
	return cm_addr_same(&m->dst, &own) || cm_addr_any(cm, &m->dst);
}

/*
 * Data that a program with addresses of AF_IB has written may begin as the header of IP addresses
 * does, and nothing in the request tells them apart. Kernels go by the listener: one of AF_IB gets
 * all of the data. Others get what follows the header, if there is one.
 */
static void choose_data(struct rdmacm *cm, const uint8_t *mad, struct cm_message *m)
{
	uint16_t family = m->src.family, other;
	struct cm_message whole = *m;

	if ((m->kind != CM_M_REQ && m->kind != CM_M_SIDR_REQ) || family == CM_AF_IB)
		return;
	cm_mad_whole(mad, &whole);
	fill_gid(cm, &whole);
	other = cm_request_family(cm, m);
	if ((family == cm_wire_family(cm) && !names_port(cm, m)) ||
	    (cm_request_family(cm, &whole) == CM_AF_IB && (!other || other == CM_AF_IB)))
		*m = whole;
}

void cm_wire_came(struct rdmacm *cm, const struct sh_wire_mad *w)
{
	struct cm_message m;

	if (!cm_mad_read(w->mad, &m))
		return;
	m.hca = w->hca;
	m.port = w->port;
	m.far = w->lid;
	m.pkey = w->pkey;
	m.from = elsewhere(w->lid, m.from);
	m.to = own_number(cm, m.to);
	choose_data(cm, w->mad, &m);
	check_source(cm, &m);
	cm_timer_hold(cm);
	deliver(cm, &m);
	cm_timer_go(cm);
}
