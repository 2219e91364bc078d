// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How MADs travel. A MAD is never queued on its way: its receiver answers at once. A MAD without a
 * route is lost.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/transport/fabric.h"
#include "softhca/device/transport/fault.h"
#include "softhca/device/transport/gsi.h"
#include "softhca/kernel/lists.h"
#include "softhca/kernel/ports.h"
#include "agent.h"
#include "fabric.h"
#include "file.h"
#include "gsi.h"
#include "io.h"
#include "notice.h"
#include "perf.h"
#include "reassemble.h"
#include "sa.h"
#include "segments.h"
#include "sm.h"
#include "smp.h"

#define OUI  UINT64_C(0x0002c903)
#define HOPS 0xff /* of what kernels send back on a global route */

uint32_t fabric_ports(const struct umad *u)
{
	return u->dev->hcas * u->cfg->ports;
}

uint32_t fabric_port_of(const struct umad *u, uint32_t hca, uint32_t port)
{
	return hca * u->cfg->ports + port;
}

void fabric_end_of(const struct umad *u, uint32_t number, uint32_t *hca, uint32_t *port)
{
	*hca = (number - 1) / u->cfg->ports;
	*port = (number - 1) % u->cfg->ports + 1;
}

bool fabric_link(struct umad *u, uint32_t hca, uint32_t port)
{
	return port_active(u->k, hca, port);
}

uint64_t fabric_switch_guid(void)
{
	return OUI << 32 | UINT64_C(0x200000);
}

uint16_t fabric_lid_of(const struct umad *u, const struct mad_node *n)
{
	return n->is_switch ? (uint16_t)switch_lid(u->k)
			    : (uint16_t)sh_hca(u->dev, n->hca)->port[n->port - 1].lid;
}

uint8_t fabric_forward(struct umad *u, uint32_t lid)
{
	uint32_t hca, port;

	if (sh_lid_is_switch(u->dev, lid))
		return 0;
	if (!lid || lid >= SH_MAX_LIDS || !sh_lid_lookup(u->dev, (uint16_t)lid, &hca, &port) ||
	    port > u->cfg->ports)
		return 255;
	return (uint8_t)fabric_port_of(u, hca, port);
}

/* By LID, from the switch to an end port: false, there is no way. */
static bool out_by_lid(struct umad *u, uint16_t lid, struct mad_node *n)
{
	uint32_t number = fabric_forward(u, lid);

	*n = (struct mad_node){0};
	if (!number || number == 255)
		return false;
	fabric_end_of(u, number, &n->hca, &n->port);
	n->in = n->port;
	return fabric_link(u, n->hca, n->port);
}

/* By LID, from a port: false, there is no way. */
static bool by_lid(struct umad *u, uint32_t hca, uint32_t port, uint16_t lid, struct mad_node *n)
{
	const struct sh_port *p = &sh_hca(u->dev, hca)->port[port - 1];

	*n = (struct mad_node){.hca = hca, .port = port, .in = port};
	if (lid == p->lid || (lid == PERMISSIVE && !p->lid))
		return true;
	if (!fabric_link(u, hca, port))
		return false;
	if (sh_lid_is_switch(u->dev, lid)) {
		*n = (struct mad_node){.is_switch = true, .in = fabric_port_of(u, hca, port)};
		return true;
	}
	return out_by_lid(u, lid, n);
}

static struct mad_node sender(const struct mad_way *w)
{
	if (w->from_switch)
		return (struct mad_node){.is_switch = true};
	return (struct mad_node){.hca = w->hca, .port = w->port};
}

/* Over the cable of a port of a node. */
static bool hop(struct umad *u, struct mad_node *n, uint32_t out)
{
	uint32_t hca, port;

	if (!n->is_switch) {
		if (out != n->port || !fabric_link(u, n->hca, n->port))
			return false;
		n->in = fabric_port_of(u, n->hca, n->port);
		n->is_switch = true;
		return true;
	}
	if (!out || out > fabric_ports(u))
		return false;
	fabric_end_of(u, out, &hca, &port);
	*n = (struct mad_node){.hca = hca, .port = port, .in = port};
	return fabric_link(u, hca, port);
}

bool fabric_route_ok(const uint8_t *mad, uint32_t port)
{
	uint8_t count = mad[AT_HOP_COUNT], pointer = mad[AT_HOP_POINTER];

	if (count >= MAD_PATH)
		return false;
	if (mad16(mad, AT_STATUS) & STATUS_DIRECTION)
		return !count || (pointer == count + 1 && mad[AT_RETURN + count] == port);
	if (mad16(mad, AT_DR_SLID) != PERMISSIVE)
		return true;
	return !count || (!pointer && mad[AT_INITIAL + 1] == port);
}

/* A request on a directed route: follows it to its end, and writes the way back into it. */
static bool go_there(struct umad *u, const struct mad_way *w, uint8_t *mad, struct mad_node *n)
{
	uint8_t count = mad[AT_HOP_COUNT], *pointer = &mad[AT_HOP_POINTER];

	*n = (struct mad_node){.hca = w->hca, .port = w->port, .in = w->port};
	/* The first part of the way may go by LID; the route then begins at a switch. */
	if (mad16(mad, AT_DR_SLID) != PERMISSIVE) {
		if (!by_lid(u, w->hca, w->port, w->dlid, n))
			return false;
		if (!n->is_switch && count)
			return false;
	}
	if (!count)
		return true;
	*pointer = 1;
	if (!hop(u, n, mad[AT_INITIAL + 1]))
		return false;
	while (*pointer < count) {
		/* Only a switch sends on. */
		if (!n->is_switch)
			return false;
		mad[AT_RETURN + *pointer] = (uint8_t)n->in;
		*pointer += 1;
		if (!hop(u, n, mad[AT_INITIAL + *pointer]))
			return false;
	}
	mad[AT_RETURN + count] = (uint8_t)n->in;
	*pointer = count + 1;
	if (mad16(mad, AT_DR_DLID) == PERMISSIVE)
		return true;
	if (!n->is_switch)
		return false;
	/* And the last part. */
	return by_lid(u, w->hca, w->port, mad16(mad, AT_DR_DLID), n);
}

/* A response that a program sends. */
static bool go_back(struct umad *u, const struct mad_way *w, uint8_t *mad, struct mad_node *n)
{
	uint8_t count = mad[AT_HOP_COUNT], *pointer = &mad[AT_HOP_POINTER];

	*n = (struct mad_node){.hca = w->hca, .port = w->port, .in = w->port};
	if (!count)
		return true;
	for (*pointer = count; *pointer; *pointer -= 1)
		if (!hop(u, n, mad[AT_RETURN + *pointer]))
			return false;
	return !n->is_switch;
}

static uint32_t host_of(struct umad *u, const struct mad_node *n)
{
	return n->is_switch ? SH_FAULT_ANY : u->hcas[n->hca].host;
}

/*
 * Does a rule of `softhca fault` hit a MAD between two nodes? The rule may drop the MAD or damage
 * it, and a damaged one is lost too. Device code applies the rules to what QPs of programs send and
 * get, and to what the switch answers them (device/transport/gsi.c).
 */
static bool faulted(struct umad *u, const struct mad_way *w, const struct mad_node *from,
		    const struct mad_node *to)
{
	const struct sh_way way = {.from = host_of(u, from),
				   .to = host_of(u, to),
				   .src_qpn = w->qpn,
				   .dst_qpn = w->to_qpn,
				   .at_once = true};
	struct sh_met met;
	uint32_t fate;

	if (!(__atomic_load_n(&u->dev->inst->faults.active, __ATOMIC_RELAXED) & SH_ACTIVE_FAULTS) ||
	    w->qpn > 1 ||
	    (!from->is_switch && !to->is_switch && from->hca == to->hca && from->port == to->port))
		return false;
	fate = sh_fate(u->dev, &way, &met);
	if (fate == SH_FAULT_DROP && !from->is_switch)
		SH_COUNT_PORT(sh_hca(u->dev, from->hca), from->port, xmit_discards, 1);
	if (fate == SH_FAULT_CORRUPT && !to->is_switch)
		SH_COUNT_PORT(sh_hca(u->dev, to->hca), to->port, rcv_errors, 1);
	return fate == SH_FAULT_DROP || fate == SH_FAULT_CORRUPT;
}

/* QP 1 of a port takes what has a P_Key of the port's table. The switch takes all. */
static bool let_in(struct umad *u, const struct mad_node *n, struct mad_way *came)
{
	came->pkey_index = 0;
	return n->is_switch ||
	       sh_gsi_let_in(sh_hca(u->dev, n->hca), n->port, came->pkey, &came->pkey_index);
}

uint16_t fabric_pkey(struct umad *u, const struct mad_node *n, const struct mad_way *came)
{
	if (n->is_switch)
		return came->pkey | 0x8000;
	return (uint16_t)sh_hca(u->dev, n->hca)->port[n->port - 1].pkey[came->pkey_index];
}

/* To that port, over the links between and by their faults? */
static bool reaches(struct umad *u, const struct mad_way *w)
{
	const struct mad_node to = {.hca = w->hca, .port = w->port};
	struct mad_node from = {.is_switch = sh_lid_is_switch(u->dev, w->dlid)};

	if (!from.is_switch && !sh_lid_lookup(u->dev, w->dlid, &from.hca, &from.port))
		return false;
	if (!from.is_switch && from.hca == to.hca && from.port == to.port)
		return true;
	return (from.is_switch || fabric_link(u, from.hca, from.port)) &&
	       fabric_link(u, to.hca, to.port) && !faulted(u, w, &from, &to);
}

bool fabric_arrives(struct umad *u, const struct mad_way *w)
{
	return reaches(u, w) && sh_gsi_let_in(sh_hca(u->dev, w->hca), w->port, w->pkey, NULL);
}

/*
 * The index of the GID by which a route reaches a node. -1: the node has no such GID. The MAD is
 * lost then, since kernels find no way back.
 */
static int gid_index(struct umad *u, const struct mad_node *n, const uint8_t gid[16])
{
	static const uint8_t empty[16];
	const struct sh_port *p;

	if (n->is_switch)
		return mad64(gid, 0) == FABRIC_PREFIX && mad64(gid, 8) == fabric_switch_guid() ? 0
											       : -1;
	p = &sh_hca(u->dev, n->hca)->port[n->port - 1];
	for (int i = 0; i < SH_GIDS; i++)
		if (!memcmp(p->gid[i], gid, 16))
			return memcmp(gid, empty, 16) ? i : -1;
	return -1;
}

void fabric_give(struct umad_file *f, struct umad_msg *m, const struct mad_way *w, uint32_t id,
		 const uint8_t *mad)
{
	memcpy(m->mad, mad, m->len);
	m->hdr.id = id;
	m->hdr.length = (uint32_t)((f->pkey ? sizeof(m->hdr) : UMAD_HDR_OLD) + m->len);
	m->hdr.qpn = htobe32(w->qpn);
	m->hdr.lid = htobe16(w->dlid);
	m->hdr.sl = w->sl;
	m->hdr.pkey_index = w->pkey_index;
	if (w->grh) {
		const struct mad_node n = {.hca = f->hca, .port = f->port};
		int at = gid_index(f->u, &n, w->route.dgid);

		/* What the program needs to send back. */
		m->hdr.grh_present = 1;
		m->hdr.gid_index = at < 0 ? 0 : (uint8_t)at;
		m->hdr.hop_limit = HOPS;
		m->hdr.traffic_class = w->route.traffic_class;
		m->hdr.flow_label = htobe32(w->route.flow_label);
		memcpy(m->hdr.gid, w->route.sgid, sizeof(m->hdr.gid));
	}
	umad_queue(f, m);
}

/* Does the receiver's kernel put this segment together with others to a message? */
static bool in_segments(const struct umad_agent *a, const struct mad_way *w, const uint8_t *mad)
{
	return a->rmpp_version && mad_is_rmpp(mad) && !w->whole;
}

/*
 * An agent has its response, with the LID of its sender in w->dlid. There are MAD_SIZE octets of
 * mad at least.
 */
static void end_wait(struct umad_file *f, uint32_t id, const struct mad_way *w, const uint8_t *mad,
		     size_t len)
{
	bool rmpp = f->agent[id].rmpp_version;
	struct umad_msg *sent, *m;
	struct mad_way to = *w;

	to.hca = f->hca;
	to.port = f->port;
	/*
	 * RMPP of the receiver's kernel acknowledges what it has, whether a request waits for it or
	 * not.
	 */
	if (rmpp && w->whole)
		umad_acked(f->u, w->number);
	else if (segments_again(f->u, &to, mad))
		return;
	if (!umad_asker(f->u, f->hca, f->port, mad, &sent)) {
		/*
		 * No request waits for this. But a kernel that leaves RMPP to the program cannot
		 * tell for which segments the program waits.
		 */
		if (!rmpp && mad_is_rmpp(mad) && (m = umad_msg_new(f, MAD_SIZE)))
			fabric_give(f, m, w, id, mad);
		return;
	}
	if (!rmpp && (len > MAD_SIZE || (w->whole && w->number))) {
		/* Else the request waits on, and ends by its timeout. */
		if (!segments_begin(f->u, &to, mad, len))
			return;
		umad_sent_drop(f, sent);
		return;
	}
	/* To an agent without RMPP a segment is a whole datagram. */
	m = umad_msg_instead(f, sent, len < MAD_SIZE && !rmpp ? MAD_SIZE : len);
	if (!m)
		return; /* as if it were lost on its way */
	fabric_give(f, m, w, sent->hdr.id, mad);
	umad_sent_drop(f, sent);
}

/* A response reaches a port. w: as it came, with the LID of its sender in dlid. */
static void answered(struct umad *u, uint32_t hca, uint32_t port, const struct mad_way *w,
		     const uint8_t *mad, size_t len)
{
	const struct mad_node n = {.hca = hca, .port = port, .in = port};
	struct mad_way first;
	struct umad_file *f;
	uint8_t *whole;
	uint32_t id;

	f = umad_agent_of(u, hca, port, mad, &id);
	if (!f) {
		notice_answered(u, mad);
	} else if (f->agent[id].rmpp_version && segments_word(mad)) {
		/* The kernel's RMPP takes what is said to it. */
		segments_told(u, &n, w, mad);
	} else if (in_segments(&f->agent[id], w, mad)) {
		whole = reassemble(u, &n, w, f->agent[id].hi_tid, mad, &len, &first);
		if (whole)
			end_wait(f, id, &first, whole, len);
		free(whole);
	} else {
		end_wait(f, id, w, mad, len);
	}
}

/* Turns a request into the response that its receiver sends. */
static void turn(uint8_t *mad, uint16_t status)
{
	if (mad[AT_METHOD] == METHOD_TRAP)
		mad[AT_METHOD] = METHOD_TRAP_REPRESS;
	else if (mad[AT_METHOD] == METHOD_SET)
		mad[AT_METHOD] = METHOD_GET | METHOD_RESPONSE;
	else
		mad[AT_METHOD] |= METHOD_RESPONSE;
	if (mad[AT_CLASS] == CLASS_DIRECTED) {
		status |= STATUS_DIRECTION;
		mad[AT_HOP_POINTER] = 0; /* as it arrives where it came from */
	}
	mad_put16(mad, AT_STATUS, status);
}

static void reply(struct umad *u, const struct mad_way *w, const struct mad_node *n,
		  const uint8_t *mad, size_t len)
{
	const struct mad_node to = sender(w);
	struct mad_way back = *w;

	if (!mad_is_smp(mad))
		back.pkey = fabric_pkey(u, n, w);
	if (w->qpn > 1) {
		gsi_answer(u, &back, n, mad, len);
		return;
	}
	back.dlid = mad[AT_CLASS] == CLASS_DIRECTED && mad16(mad, AT_DR_SLID) == PERMISSIVE
			    ? PERMISSIVE
			    : fabric_lid_of(u, n);
	back.whole = true;
	back.number = 0;
	memcpy(back.route.sgid, w->route.dgid, sizeof(back.route.sgid));
	memcpy(back.route.dgid, w->route.sgid, sizeof(back.route.dgid));
	if (!faulted(u, w, n, &to) && (mad_is_smp(mad) || let_in(u, &to, &back)))
		answered(u, w->hca, w->port, &back, mad, len);
}

/* A request reaches an agent. came: with the LID of its sender in dlid. */
static void give(struct umad *u, struct umad_file *f, uint32_t id, const struct mad_way *came,
		 const struct mad_node *n, const uint8_t *mad, size_t len)
{
	const struct umad_agent *a = &f->agent[id];
	struct mad_way to = *came;
	uint8_t *whole = NULL;
	struct umad_msg *m;

	if (!a->rmpp_version && came->whole) {
		to.hca = n->hca;
		to.port = n->port;
		segments_ask(u, &to, mad, len);
		return;
	}
	if (in_segments(a, came, mad)) {
		whole = reassemble(u, n, came, a->hi_tid, mad, &len, &to);
		if (!whole)
			return;
		mad = whole;
	}
	m = umad_msg_new(f, len);
	if (m && came->whole)
		umad_acked(u, came->number);
	if (m)
		fabric_give(f, m, &to, id, mad);
	free(whole);
}

/* A request reaches a node: the agents of the card and of the switch come first. */
static void asked(struct umad *u, const struct mad_way *w, const struct mad_node *n, uint8_t *mad,
		  size_t len)
{
	bool smp = mad_is_smp(mad), query;
	const struct mad_node from = sender(w);
	struct mad_way came = *w;
	struct umad_file *f = NULL;
	uint8_t *more = NULL;
	size_t more_len = MAD_SIZE;
	uint32_t id;
	int status = -1;

	query = mad[AT_METHOD] == METHOD_GET || mad[AT_METHOD] == METHOD_SET;
	if (mad[0] != 1)
		return;
	if (query && smp)
		status = smp_answer(u, n, mad);
	else if (query && mad[AT_CLASS] == CLASS_PERF)
		status = perf_answer(u, n, mad);
	came.dlid = fabric_lid_of(u, &from);
	if (!n->is_switch && segments_word(mad)) {
		/*
		 * Kernels keep it from agents that leave RMPP to them, as the built-in manager
		 * does.
		 */
		f = umad_agent_for(u, n->hca, n->port, mad, &id);
		if (f ? f->agent[id].rmpp_version : sa_is_at(u, n, mad))
			segments_told(u, n, &came, mad);
		if (!f || f->agent[id].rmpp_version)
			return;
	}
	if (status < 0 && !n->is_switch) {
		f = umad_agent_for(u, n->hca, n->port, mad, &id);
		if (f) {
			give(u, f, id, &came, n, mad, len);
			return;
		}
		if (smp && query)
			status = smp_sm_answer(u, n, mad);
		else if (smp && mad[AT_METHOD] == METHOD_TRAP)
			status = sm_told(u, n, mad);
		else if (sa_is_at(u, n, mad)) {
			if (w->whole)
				umad_acked(u, w->number);
			if (sa_ignores(mad))
				return;
			status = sa_answer(u, w, n, mad, &more, &more_len);
		}
	}
	if (status < 0 && query)
		status = STATUS_ATTRIBUTE;
	if (status >= 0) {
		uint8_t *answer = more ? more : mad;

		turn(answer, (uint16_t)status);
		reply(u, w, n, answer, more_len);
	}
	free(more);
}

/*
 * QP 0 has subnet management, and QP 1 the rest: a port drops what comes to the wrong one. A
 * directed request of no hops never leaves its port, and no QP is looked at.
 */
static bool wrong_qp(const struct mad_way *w, const uint8_t *mad)
{
	if (!mad_is_smp(mad))
		return !w->to_qpn;
	return w->to_qpn && (mad[AT_CLASS] != CLASS_DIRECTED || mad[AT_HOP_COUNT]);
}

void fabric_send(struct umad *u, const struct mad_way *way, const uint8_t *mad, size_t len)
{
	const struct mad_node from = sender(way);
	struct mad_way came = *way;
	struct mad_node n;
	uint8_t one[MAD_SIZE] = {0}, *copy = len > MAD_SIZE ? malloc(len) : one;
	bool back = mad_is_response(mad), there;

	if (!copy)
		return;
	memcpy(copy, mad, len);
	if (wrong_qp(way, mad)) {
		there = false;
	} else if (way->to_qpn > 1 && !mad_is_smp(mad)) {
		gsi_send(u, way, mad, len);
		/* What such a program says about segments concerns no file. */
		if (way->whole)
			umad_acked(u, way->number);
		there = false;
	} else if (mad[AT_CLASS] == CLASS_DIRECTED && mad16(mad, AT_STATUS) & STATUS_DIRECTION)
		there = go_back(u, way, copy, &n);
	else if (mad[AT_CLASS] == CLASS_DIRECTED)
		there = go_there(u, way, copy, &n);
	else if (way->from_switch)
		there = out_by_lid(u, way->dlid, &n);
	else
		there = by_lid(u, way->hca, way->port, way->dlid, &n);
	if (there && faulted(u, way, &from, &n))
		there = false;
	if (there && !mad_is_smp(mad) &&
	    (!let_in(u, &n, &came) || (way->grh && gid_index(u, &n, way->route.dgid) < 0)))
		there = false;
	if (there && back && !n.is_switch) {
		came.dlid = fabric_lid_of(u, &from);
		answered(u, n.hca, n.port, &came, copy, len);
	} else if (there && back) {
		notice_answered(u, copy); /* the switch asks for nothing else */
	} else if (there) {
		asked(u, &came, &n, copy, len);
	}
	if (copy != one)
		free(copy);
}
