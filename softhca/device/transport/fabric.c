// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The fabric: carries packets from QP to QP by LID. It is the only place where the rules of fault.h
 * drop, delay, duplicate or corrupt packets. It holds no lock. While rules are set, it takes a run
 * apart, so that each packet meets its own fate. A packet that outlives the call that sent it owns
 * its payload; the helper thread of the sender's process delivers it.
 */
#include <stdlib.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/queues/wqe.h"
#include "capture.h"
#include "express.h"
#include "fabric.h"
#include "fault.h"
#include "gsi.h"
#include "loop.h"
#include "mcast.h"
#include "requester.h"
#include "wire.h"

bool sh_lid_lookup(const struct sh_dev *dev, uint16_t lid, uint32_t *hca, uint32_t *port)
{
	for (unsigned int lmc = 0; lmc < 8; lmc++) {
		uint32_t base = lid & ~((1u << lmc) - 1);
		const struct sh_hca *h;

		if (base == 0 || !sh_lid_exact(dev, base, hca, port))
			continue;
		h = sh_hca(dev, *hca);
		if (!h || *port < 1 || *port > SH_MAX_PORTS)
			continue;
		if (lmc && h->port[*port - 1].lmc < lmc)
			continue;
		return true;
	}
	return false;
}

bool sh_lid_same_port(const struct sh_dev *dev, uint16_t a, uint16_t b)
{
	uint32_t hca[2], port[2];

	return sh_lid_lookup(dev, a, &hca[0], &port[0]) &&
	       sh_lid_lookup(dev, b, &hca[1], &port[1]) && hca[0] == hca[1] && port[0] == port[1];
}

void sh_payload_slice(const struct sh_payload *in, uint64_t skip, uint64_t len,
		      struct sh_payload *out, struct sh_seg *seg)
{
	uint32_t n = 0;
	uint64_t want = len;

	for (uint32_t i = 0; i < in->nseg && want; i++) {
		uint64_t have = in->seg[i].len, part;

		if (skip >= have) {
			skip -= have;
			continue;
		}
		part = have - skip < want ? have - skip : want;
		seg[n].addr = in->seg[i].addr + skip;
		seg[n++].len = part;
		skip = 0;
		want -= part;
	}
	out->ctx = in->ctx;
	out->nseg = n;
	out->seg = seg;
	out->len = len - want;
}

static bool is_mcast(const struct sh_packet *p)
{
	return p->service == SH_SVC_UD && p->dqpn == MLX4_MULTICAST_QPN;
}

/* The QP that counts a lost packet: the one that it was for, or else the one that sent it. */
static struct sh_qp *concerned(struct sh_dev *dev, const struct sh_packet *p)
{
	struct sh_qp *qp = NULL;
	uint32_t hca, port;

	if (!is_mcast(p) && sh_lid_lookup(dev, p->dlid, &hca, &port))
		qp = sh_qp_get(dev, hca, p->dqpn);
	return qp ? qp : sh_qp_get(dev, p->src_hca, p->srcqp);
}

struct sh_hca *sh_leave_from(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp)
{
	struct sh_hca *src = sh_hca(dev, p->src_hca);

	sh_packet_init(resp);
	resp->psn = p->psn;
	resp->npackets = 1;
	if (!src || sh_port_active(src, p->src_port))
		return src;
	SH_DROPPED_AT(src, sh_qp_get(dev, p->src_hca, p->srcqp), port, p->npackets);
	SH_COUNT_PORT(src, p->src_port, xmit_discards, p->npackets);
	return NULL;
}

void sh_has_left(struct sh_dev *dev, struct sh_hca *src, const struct sh_packet *p)
{
	struct sh_qp *qp = sh_qp_get(dev, p->src_hca, p->srcqp);

	if (p->flags & SH_PKT_DOUBLE)
		return;
	/* First: the port never shows more unicast packets than there were (struct sh_traffic). */
	if (is_mcast(p))
		SH_COUNT_PORT(src, p->src_port, xmit_multicast, p->npackets);
	SH_COUNT_XMIT(src, p->src_port, p->npackets, p->payload.len);
	if (qp)
		SH_COUNT_QP(qp, long_xmit_data, p->payload.len);
}

/*
 * Does the daemon send it again, if its receiver is busy? Under faults it is lost then
 * (sh_transmit()).
 */
static bool may_come_again(const struct sh_dev *dev, const struct sh_packet *p)
{
	return p->service == SH_SVC_UD && !dev->proc &&
	       !(__atomic_load_n(&dev->inst->faults.active, __ATOMIC_RELAXED) & SH_ACTIVE_FAULTS);
}

static bool is_busy(const struct sh_packet *resp)
{
	return resp->op == SH_PKT_NONE && resp->syndrome == SH_BUSY;
}

/* again: a packet that a busy receiver does not take has not been received yet. */
static void go_to(struct sh_dev *dev, struct sh_hca *src, const struct sh_packet *p, bool again,
		  struct sh_packet *resp, struct sh_seg *resp_seg)
{
	struct sh_hca *dst;
	uint32_t hca, port;
	struct sh_qp *qp;

	if (is_mcast(p)) {
		sh_deliver_mcast(dev, p, resp);
		return;
	}
	if (!sh_lid_lookup(dev, p->dlid, &hca, &port)) {
		if (!sh_lid_is_switch(dev, p->dlid) || !sh_gsi_take(dev, NULL, 0, p))
			SH_DROPPED_AT(src, sh_qp_get(dev, p->src_hca, p->srcqp), lid, p->npackets);
		return;
	}
	dst = sh_hca(dev, hca);
	if (!sh_port_active(dst, port)) {
		SH_DROPPED_AT(dst, concerned(dev, p), port, p->npackets);
		return;
	}
	qp = sh_qp_get(dev, hca, p->dqpn);
	if (qp && again) {
		sh_respond_ud(dev, dst, qp, port, p, resp);
		if (!is_busy(resp)) {
			SH_COUNT_RCV(dst, port, p->npackets, p->payload.len);
			SH_COUNT_QP(qp, long_rcv_data, p->payload.len);
		}
		return;
	}
	SH_COUNT_RCV(dst, port, p->npackets, p->payload.len);
	if (!qp) {
		if (!sh_gsi_take(dev, dst, port, p))
			SH_DROPPED_AT(dst, concerned(dev, p), no_qp, p->npackets);
		return;
	}
	SH_COUNT_QP(qp, long_rcv_data, p->payload.len);
	switch (p->service) {
	case SH_SVC_UC:
		if (!sh_respond_lossy(dev, dst, qp, port, p))
			sh_respond_uc(dev, dst, qp, port, p, resp);
		break;
	case SH_SVC_UD:
		/* The express way waits for locks, which the daemon does not. */
		if (!dev->proc || !sh_respond_lossy(dev, dst, qp, port, p))
			sh_respond_ud(dev, dst, qp, port, p, resp);
		if (dev->proc && is_busy(resp)) {
			SH_DROPPED_AT(dst, qp, memory, p->npackets);
			resp->syndrome = 0;
		}
		break;
	default:
		if (!sh_respond_express(dev, dst, qp, port, p, resp, resp_seg))
			sh_respond_reliable(dev, dst, qp, port, p, resp, resp_seg);
	}
}

void sh_deliver(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp,
		struct sh_seg *resp_seg)
{
	struct sh_hca *src = sh_leave_from(dev, p, resp);
	bool again = may_come_again(dev, p);

	if (!src)
		return;
	if (!again)
		sh_has_left(dev, src, p);
	go_to(dev, src, p, again, resp, resp_seg);
	/* It is counted when it is not to be sent again. */
	if (again && !is_busy(resp))
		sh_has_left(dev, src, p);
}

/* ---- faults ---- */

struct late {
	struct sh_held_back held; /* first */
	struct sh_packet p;
	struct sh_seg seg;
	bool response;
	uint32_t hca, qpn, gen; /* of the requester, for a response */
	unsigned char payload[];
};

static bool request_one(struct sh_dev *dev, const struct sh_packet *p);
static void arrive(struct sh_dev *dev, const struct sh_packet *resp, uint32_t hca, uint32_t qpn,
		   uint32_t gen);

static void late_arrives(struct sh_dev *dev, uint64_t a, uint64_t b)
{
	struct late *l = (struct late *)(uintptr_t)a;
	bool entered = sh_enter(dev);

	(void)b;
	sh_held_give(l->p.payload.len);
	if (l->response)
		arrive(dev, &l->p, l->hca, l->qpn, l->gen);
	else if (request_one(dev, &l->p))
		sh_gsi_lost(dev, &l->p);
	if (entered)
		sh_leave(dev);
	free(l);
}

/*
 * Holds a packet back. False: the packet cannot be kept and is lost, as a fabric may lose packets.
 */
static bool delay(struct sh_dev *dev, const struct sh_packet *p, const struct sh_met *met,
		  bool response, uint32_t hca, uint32_t qpn, uint32_t gen)
{
	struct late *l;

	if (!sh_held_take(p->payload.len))
		return false;
	l = malloc(sizeof(*l) + p->payload.len);
	if (!l)
		goto lost;
	l->held.go = late_arrives;
	l->p = *p;
	l->response = response;
	l->hca = hca;
	l->qpn = qpn;
	l->gen = gen;
	l->seg.addr = (uintptr_t)l->payload;
	l->seg.len = p->payload.len;
	l->p.payload.ctx = 0;
	l->p.payload.seg = &l->seg;
	l->p.payload.nseg = p->payload.len ? 1 : 0;
	if (p->payload.len && dev->ops->copy(dev->host, 0, &l->seg, 1, p->payload.ctx,
					     p->payload.seg, p->payload.nseg, p->payload.len))
		goto free;
	if (sh_hold_back(dev, met, &l->held))
		return true;
free:
	free(l);
lost:
	sh_held_give(p->payload.len);
	return false;
}

/* An answer goes through its bytes. If the memory that it is read from has gone, it is a NAK. */
SH_OUTLINE void arrive_looped(struct sh_dev *dev, const struct sh_packet *resp, uint32_t hca,
			      uint32_t qpn, uint32_t gen)
{
	struct sh_looped l;
	enum sh_loop came = sh_loop(dev, resp, false, &l);

	/* The peer has ended meanwhile: as if no response had come. */
	if (came == SH_LOOP_NO_SOURCE && !sh_ctx_live(dev, resp->payload.ctx))
		return;
	if (came == SH_LOOP_NO_SOURCE) {
		struct sh_packet nak = *resp;

		nak.op = SH_PKT_ACK;
		nak.syndrome = SH_AETH_NAK_OP;
		nak.payload.nseg = 0;
		nak.payload.len = 0;
		came = sh_loop(dev, &nak, false, &l);
	}
	if (came == SH_LOOP_READ)
		sh_response(dev, hca, qpn, gen, &l.p);
}

static void arrive(struct sh_dev *dev, const struct sh_packet *resp, uint32_t hca, uint32_t qpn,
		   uint32_t gen)
{
	if (dev->loop && resp->op != SH_PKT_SRC_FAULT)
		arrive_looped(dev, resp, hca, qpn, gen);
	else
		sh_response(dev, hca, qpn, gen, resp);
}

/* Does a packet with a wrong bit pass the check of its ICRC? Then it arrives. */
SH_OUTLINE bool passes(struct sh_dev *dev, const struct sh_packet *p)
{
	struct sh_looped l;

	return dev->loop && sh_loop(dev, p, true, &l) != SH_LOOP_BAD_ICRC;
}

static uint32_t host_of(const struct sh_hca *h)
{
	return h ? h->host : SH_FAULT_ANY;
}

/*
 * The way of a request. A request to a multicast group, or to a LID that no port has, is for no
 * host.
 */
static struct sh_way way_of(struct sh_dev *dev, const struct sh_packet *p)
{
	uint32_t hca, port;

	return (struct sh_way){
		.from = host_of(sh_hca(dev, p->src_hca)),
		.to = sh_lid_lookup(dev, p->dlid, &hca, &port) ? host_of(sh_hca(dev, hca))
							       : SH_FAULT_ANY,
		.src_qpn = p->srcqp,
		.dst_qpn = p->dqpn,
		.bytes = (uint32_t)p->payload.len + SH_FAULT_HEADS,
	};
}

/* Lost by a fault: the port that sends the packet counts it, too. */
static void discarded(struct sh_dev *dev, uint16_t lid)
{
	uint32_t hca, port;
	struct sh_hca *h = sh_lid_lookup(dev, lid, &hca, &port) ? sh_hca(dev, hca) : NULL;

	if (h)
		SH_COUNT_PORT(h, port, xmit_discards, 1);
}

/* The QP that a response is for; NULL if that has ended, and its number may be another one's. */
static struct sh_qp *requester(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint32_t gen)
{
	struct sh_qp *qp = sh_qp_get(dev, hca, qpn);

	return qp && __atomic_load_n(&qp->gen, __ATOMIC_RELAXED) == gen ? qp : NULL;
}

static void respond_one(struct sh_dev *dev, const struct sh_packet *req,
			const struct sh_packet *resp, const struct sh_way *way)
{
	uint32_t hca = req->src_hca, qpn = req->srcqp, gen = req->src_gen;
	struct sh_hca *h = sh_hca(dev, hca);
	struct sh_met met;

	if (!h)
		return;
	sh_fate(dev, way, &met);
	if (sh_capture_on(dev))
		sh_capture_one(dev, req, resp,
			       &(struct sh_capture_note){met.fate, met.delay_ns, false});
	switch (met.fate) {
	case SH_FAULT_DROP:
		SH_DROPPED_AT(h, requester(dev, hca, qpn, gen), fault, 1);
		discarded(dev, req->dlid);
		return;
	case SH_FAULT_CORRUPT:
		if (passes(dev, resp)) {
			arrive(dev, resp, hca, qpn, gen);
			break;
		}
		SH_DROPPED_AT(h, requester(dev, hca, qpn, gen), icrc, 1);
		/* Like those that arrive (completer.c). */
		if (resp->op == SH_PKT_READ_RESP)
			SH_COUNT_RCV(h, req->src_port, 1, resp->payload.len);
		SH_COUNT_PORT(h, req->src_port, rcv_errors, 1);
		return;
	case SH_FAULT_DELAY:
	case SH_FAULT_REORDER:
		for (int i = 0; i < 1 + met.twice; i++)
			if (!delay(dev, resp, &met, true, hca, qpn, gen))
				SH_DROPPED_AT(h, requester(dev, hca, qpn, gen), fault, 1);
		return;
	case SH_FAULT_DUPLICATE:
		if (sh_capture_on(dev))
			sh_capture_one(dev, req, resp,
				       &(struct sh_capture_note){met.fate, met.delay_ns, true});
		arrive(dev, resp, hca, qpn, gen);
		/* fall through */
	default:
		arrive(dev, resp, hca, qpn, gen);
	}
	sh_pass(dev, &met);
}

/* A response may be a run (READ data). Each packet of it travels alone. */
static void respond_each(struct sh_dev *dev, const struct sh_packet *req,
			 const struct sh_packet *resp)
{
	struct sh_way there, back;
	struct sh_packet one = *resp;
	struct sh_seg seg[SH_MAX_SEGS];
	uint64_t off = 0;

	if (resp->op == SH_PKT_NONE)
		return;
	if (resp->op == SH_PKT_SRC_FAULT) {
		arrive(dev, resp, req->src_hca, req->srcqp, req->src_gen);
		return;
	}
	there = way_of(dev, req);
	back = (struct sh_way){.from = there.to,
			       .to = there.from,
			       .src_qpn = there.dst_qpn,
			       .dst_qpn = there.src_qpn};
	one.service = req->service;
	one.pkey = req->pkey;
	one.sl = req->sl;
	one.slid = req->dlid;
	one.dlid = req->slid;
	one.dqpn = req->srcqp;
	for (uint32_t i = 0; i < resp->npackets; i++) {
		uint64_t len = resp->payload.len - off;

		if (resp->npackets > 1 && len > resp->mtu)
			len = resp->mtu;
		one.psn = sh_psn_add(resp->psn, i);
		one.npackets = 1;
		one.flags = resp->flags;
		if (i)
			one.flags &= ~SH_PKT_FIRST;
		if (i + 1 != resp->npackets)
			one.flags &= ~SH_PKT_LAST;
		sh_payload_slice(&resp->payload, off, len, &one.payload, seg);
		off += len;
		back.bytes = (uint32_t)len + SH_FAULT_HEADS;
		respond_one(dev, req, &one, &back);
	}
}

/* Delivers a request as it is read from its bytes. */
SH_OUTLINE void deliver_looped(struct sh_dev *dev, const struct sh_packet *p,
			       struct sh_packet *resp, struct sh_seg *resp_seg)
{
	struct sh_looped l;
	enum sh_loop came = sh_loop(dev, p, false, &l);

	if (came == SH_LOOP_READ) {
		l.p.flags |= p->flags & SH_PKT_DOUBLE;
		sh_deliver(dev, &l.p, resp, resp_seg);
		return;
	}
	sh_packet_init(resp);
	resp->psn = p->psn;
	resp->npackets = 1;
	if (came == SH_LOOP_NO_SOURCE)
		resp->op = SH_PKT_SRC_FAULT;
}

/*
 * Delivers one request packet and lets its responses travel. True: the daemon has not delivered it,
 * because its receiver is busy (gsi.h).
 */
static bool request_one(struct sh_dev *dev, const struct sh_packet *p)
{
	struct sh_packet resp;
	struct sh_seg seg[SH_MAX_SEGS];

	if (dev->loop)
		deliver_looped(dev, p, &resp, seg);
	else
		sh_deliver(dev, p, &resp, seg);
	/* The answer may arrive when the requester has gone back, and sent again, since. */
	resp.flags |= SH_PKT_TOLD;
	resp.retries = p->retries;
	respond_each(dev, p, &resp);
	return is_busy(&resp);
}

/*
 * A bit of it is wrong. The port at the other end has received it, all the same, and counts it with
 * its errors; to: what counts the drop.
 */
static void damaged(struct sh_dev *dev, const struct sh_packet *p, struct sh_hca *to)
{
	uint32_t hca, port;

	sh_has_left(dev, sh_hca(dev, p->src_hca), p);
	SH_DROPPED_AT(to, concerned(dev, p), icrc, 1);
	if (!sh_lid_lookup(dev, p->dlid, &hca, &port) || is_mcast(p))
		return;
	SH_COUNT_RCV(to, port, 1, p->payload.len);
	SH_COUNT_PORT(to, port, rcv_errors, 1);
}

/* Are both ends of its way up? Else it is lost there, whatever else it meets. */
static bool has_way(struct sh_dev *dev, const struct sh_packet *p)
{
	uint32_t hca, port;

	return sh_port_active(sh_hca(dev, p->src_hca), p->src_port) &&
	       (!sh_lid_lookup(dev, p->dlid, &hca, &port) ||
		sh_port_active(sh_hca(dev, hca), port));
}

static bool request_with_fate(struct sh_dev *dev, const struct sh_packet *p)
{
	const struct sh_way way = way_of(dev, p);
	struct sh_hca *to, *from = sh_hca(dev, p->src_hca);
	struct sh_packet second;
	uint32_t hca, port;
	struct sh_met met;
	bool busy = false;

	/* Without a receiver the sender's HCA counts the packet. */
	if (!sh_lid_lookup(dev, p->dlid, &hca, &port))
		hca = p->src_hca;
	to = sh_hca(dev, hca);
	if (!to || !from)
		return false;
	sh_fate(dev, &way, &met);
	if (sh_capture_on(dev))
		sh_capture_request(dev, p,
				   &(struct sh_capture_note){met.fate, met.delay_ns, false});
	switch (met.fate) {
	case SH_FAULT_DROP:
		SH_DROPPED_AT(to, concerned(dev, p), fault, 1);
		SH_COUNT_PORT(from, p->src_port, xmit_discards, 1);
		return false;
	case SH_FAULT_CORRUPT:
		if (passes(dev, p) || !has_way(dev, p)) {
			busy = request_one(dev, p);
			break;
		}
		damaged(dev, p, to);
		return false;
	case SH_FAULT_DELAY:
	case SH_FAULT_REORDER:
		second = *p;
		for (int i = 0; i < 1 + met.twice; i++) {
			if (delay(dev, &second, &met, false, 0, 0, 0))
				second.flags |= SH_PKT_DOUBLE;
			else
				SH_DROPPED_AT(to, concerned(dev, p), fault, 1);
		}
		return false;
	case SH_FAULT_DUPLICATE:
		if (sh_capture_on(dev))
			sh_capture_request(dev, p,
					   &(struct sh_capture_note){met.fate, met.delay_ns, true});
		(void)request_one(dev, p);
		second = *p;
		second.flags |= SH_PKT_DOUBLE;
		busy = request_one(dev, &second);
		break;
	default:
		busy = request_one(dev, p);
	}
	sh_pass(dev, &met);
	return busy;
}

/* As request_one(), of the last packet. */
static bool transmit_each(struct sh_dev *dev, const struct sh_packet *p)
{
	const struct sh_qp *from = sh_qp_get(dev, p->src_hca, p->srcqp);
	uint32_t after = from ? __atomic_load_n(&from->next_psn, __ATOMIC_RELAXED) : 0;
	struct sh_packet one = *p;
	struct sh_seg seg[SH_MAX_SEGS];
	uint64_t off = 0;
	bool busy = false;

	for (uint32_t i = 0; i < p->npackets; i++) {
		uint64_t len = p->payload.len - off;
		bool last = i + 1 == p->npackets;

		if (!last && len > p->mtu)
			len = p->mtu;
		one.psn = sh_psn_add(p->psn, i);
		one.npackets = 1;
		one.flags = p->flags;
		if (i)
			one.flags &= ~SH_PKT_FIRST;
		if (!last)
			one.flags &= ~(SH_PKT_LAST | SH_PKT_SE | SH_PKT_IMM | SH_PKT_ACKREQ);
		if ((i & 0xff) == 0xff)
			one.flags |= SH_PKT_ACKREQ;
		sh_payload_slice(&p->payload, off, len, &one.payload, seg);
		off += len;
		busy = request_with_fate(dev, &one);
		/* The requester has gone back, and will send the rest of this run again anyway. */
		if (from && __atomic_load_n(&from->next_psn, __ATOMIC_RELAXED) != after)
			break;
	}
	return busy;
}

void sh_transmit(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp,
		 struct sh_seg *resp_seg)
{
	uint32_t active = __atomic_load_n(&dev->inst->faults.active, __ATOMIC_RELAXED);

	if (dev->wire && sh_wire_leads(dev, p->dlid) &&
	    (p->dlid < SH_LID_GROUPS || sh_is_to_group(p))) {
		sh_wire_transmit(dev, p, resp);
		/* Members of a group in the instance get a datagram as they always do. */
		if (p->dlid < SH_LID_GROUPS || resp->op == SH_PKT_SRC_FAULT)
			return;
	}
	if (!active) {
		sh_deliver(dev, p, resp, resp_seg);
		return;
	}
	if (!(active & SH_ACTIVE_FAULTS) && !dev->loop) {
		sh_capture_request(dev, p, NULL);
		sh_deliver(dev, p, resp, resp_seg);
		sh_capture_response(dev, p, resp);
		return;
	}
	sh_packet_init(resp);
	/*
	 * Pinned: the thread must not be thrown out of here. Packets wait in the memory of this
	 * process, and one requester may run within another.
	 */
	sh_pin();
	if (!transmit_each(dev, p))
		return;
	/* A packet that faults may have hit or repeated is lost; any other one comes again. */
	if (!(active & SH_ACTIVE_FAULTS))
		resp->syndrome = SH_BUSY;
	else if (p->service == SH_SVC_UD)
		sh_gsi_lost(dev, p);
}
