// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See wire.h. Holds no lock of its own; knows neither bytes nor addresses. Owns the READs whose
 * answers leave in portions. They are in memory of the engine's process, and only its main thread
 * uses them.
 */
#include <stdlib.h>
#include <string.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/mr.h"
#include "softhca/device/queues/attention.h"
#include "softhca/device/queues/qp_halves.h"
#include "capture.h"
#include "doorbell.h"
#include "fault.h"
#include "mcast.h"
#include "requester.h"
#include "responder.h"
#include "rules.h"
#include "wire.h"

#define WINDOW_BYTES   (64u << 10)
#define WINDOW_PACKETS 64u
#define WINDOW_LEAST   8u
#define MTU_MOST       4096

/*
 * A socket buffer as kernels make it holds some 25 packets of 4096 bytes, or 250 short ones, of all
 * QPs together.
 */
static uint32_t window(uint32_t mtu)
{
	uint32_t n = WINDOW_BYTES / mtu;

	return n > WINDOW_PACKETS ? WINDOW_PACKETS : n < WINDOW_LEAST ? WINDOW_LEAST : n;
}

/* ---- requests that leave ---- */

/* How much of the WQE lay in front of this run, in packets. */
static uint32_t first_of(const struct sh_wqe *wqe, const struct sh_packet *p)
{
	uint64_t rest = sh_wqe_is_fetch(wqe) ? p->dmalen : p->payload.len;

	return (uint32_t)((wqe->length - rest) / p->mtu);
}

/* As if only n packets of the run had been built. */
static void take_back(struct sh_qp *qp, const struct sh_wqe *wqe, const struct sh_packet *p,
		      uint32_t n)
{
	if (qp->sq_next == wqe->index + 1) {
		qp->sq_next = wqe->index;
		qp->next_wqe_psn = sh_psn_add(p->psn, -first_of(wqe, p));
	}
	qp->next_psn = sh_psn_add(p->psn, n);
	/* A READ that goes in pieces counts once, with its last piece. */
	if (sh_wqe_is_fetch(wqe) && qp->rd_out)
		qp->rd_out--;
}

static void shorten(struct sh_qp *qp, const struct sh_wqe *wqe, struct sh_packet *p, uint32_t n)
{
	uint64_t len = (uint64_t)n * p->mtu;

	take_back(qp, wqe, p, n);
	if (p->op == SH_PKT_READ) {
		p->dmalen = (uint32_t)len;
		return;
	}
	p->npackets = n;
	p->flags &= ~(SH_PKT_LAST | SH_PKT_IMM | SH_PKT_SE);
	sh_payload_slice(&p->payload, 0, len, &p->payload, (struct sh_seg *)p->payload.seg);
}

/* PSNs that the run takes. */
static uint32_t packets_of(const struct sh_packet *p)
{
	return p->op == SH_PKT_READ ? sh_packets(p->dmalen, p->mtu) : p->npackets;
}

/*
 * How many packets of a READ to ask for now; 0: none. The other end does not pace its answers, so a
 * READ goes in pieces of a window, one at a time. When a piece is asked for again, from some packet
 * on, it ends where it ended before: a responder answers no duplicate that asks for more.
 */
static uint32_t read_piece(const struct sh_wqe *wqe, const struct sh_packet *p, bool others,
			   uint32_t room)
{
	uint32_t first = first_of(wqe, p), n = window(p->mtu) - first % window(p->mtu);

	if (n > packets_of(p))
		n = packets_of(p);
	return others && (first || n > room) ? 0 : n;
}

static enum sh_wire_admitted admit(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
				   const struct sh_wqe *wqe, struct sh_packet *p)
{
	int32_t unanswered = sh_psn_diff(p->psn, qp->ack_psn), room;
	uint32_t proc, most;

	if (qp->type == SH_QPT_UD && p->payload.len > dev->inst->wire.mtu) {
		take_back(qp, wqe, p, 0);
		return SH_WIRE_TOO_LONG;
	}
	if (!dev->wire && __atomic_load_n(&dev->inst->wire.lost, __ATOMIC_RELAXED))
		return SH_WIRE_SEND;
	if (!dev->wire) {
		take_back(qp, wqe, p, 0);
		qp->wire_left |= SH_WIRE_ASKED;
		sh_wire_watch(dev);
		proc = __atomic_load_n(&dev->inst->wire.proc, __ATOMIC_ACQUIRE);
		/*
		 * An engine that has not come yet will look at every QP: pairs with
		 * sh_wire_begin().
		 */
		if (proc)
			sh_attention_post(dev, proc, hca->index, qp->qpn);
		return SH_WIRE_LATER;
	}
	if (!sh_qp_is_reliable(qp)) {
		if (!sh_wire_is_enough(dev, hca, qp, packets_of(p)))
			return SH_WIRE_SEND;
		take_back(qp, wqe, p, 0);
		return SH_WIRE_LATER;
	}
	room = (int32_t)window(p->mtu) - unanswered;
	most = room > 0 ? (uint32_t)room : 0;
	if (p->op == SH_PKT_READ)
		most = read_piece(wqe, p, unanswered > 0, most);
	/* A probe goes alone. */
	if (qp->probed == qp->ack_psn + 1 && most)
		most = unanswered <= 0;
	if (!most) {
		take_back(qp, wqe, p, 0);
		return SH_WIRE_LATER;
	}
	if (packets_of(p) > most)
		shorten(qp, wqe, p, most);
	return SH_WIRE_SEND;
}

/*
 * Notes whether something waits that has not been sent yet, for a command that ends the QP. What is
 * not sent now may itself be new. The rest of a READ is not: a card would have asked for all of it
 * at once. If what is not sent now was sent before, something new may stand behind it.
 */
static void note_unsent(struct sh_dev *dev, struct sh_qp *qp, const struct sh_wqe *wqe,
			const struct sh_packet *p, enum sh_wire_admitted admitted)
{
	bool rest = p->op == SH_PKT_READ && first_of(wqe, p);
	uint32_t end = sh_psn_add(p->psn, packets_of(p));

	if (admitted == SH_WIRE_SEND) {
		/* If this was not all, the requester comes again at once. */
		if (sh_psn_diff(qp->next_psn, qp->wire_psn) > 0)
			qp->wire_left &= (uint8_t)~SH_WIRE_UNSENT;
	} else if ((!rest && sh_psn_diff(end, qp->wire_psn) > 0) ||
		   sh_wqe_posted(dev, qp, qp->sq_begun) == 1) {
		qp->wire_left |= SH_WIRE_UNSENT;
	}
}

enum sh_wire_admitted sh_wire_admit(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
				    const struct sh_wqe *wqe, struct sh_packet *p)
{
	enum sh_wire_admitted admitted = admit(dev, hca, qp, wqe, p);

	if (dev->wire && sh_qp_is_reliable(qp))
		note_unsent(dev, qp, wqe, p, admitted);
	if (admitted == SH_WIRE_SEND && sh_psn_diff(qp->next_psn, qp->wire_psn) > 0)
		qp->wire_psn = qp->next_psn;
	/*
	 * The requester has counted all that it had built. What was taken back must count as not
	 * sent: an ACK of it comes from an earlier life of the QPs, or from a stranger.
	 */
	qp->sent_psn = qp->wire_psn;
	return admitted;
}

/* ---- runs ---- */

/*
 * Packet i of a run, whose payload begins at *off, which moves on. Returns what the copy returns.
 */
static enum sh_copy leave_part(struct sh_dev *dev, struct sh_hca *hca, const struct sh_packet *run,
			       uint16_t dlid, uint32_t i, uint64_t *off)
{
	unsigned char buf[MTU_MOST], *at = NULL;
	struct sh_seg from[SH_MAX_SEGS], to = {0, 0};
	bool last = i + 1 == run->npackets;
	struct sh_packet one = *run;
	enum sh_copy err;

	to.len = run->payload.len - *off;
	if (!last && to.len > run->mtu)
		to.len = run->mtu;
	if (to.len > MTU_MOST)
		return SH_COPY_SRC;
	/* The packet before may have caused a switch to another thread, which disarms this one. */
	sh_rearm();
	one.psn = sh_psn_add(run->psn, i);
	one.npackets = 1;
	if (i)
		one.flags &= ~SH_PKT_FIRST;
	if (!last) {
		one.flags &= ~(SH_PKT_LAST | SH_PKT_SE | SH_PKT_IMM | SH_PKT_ACKREQ);
		/* The answer comes while the other half of the window is on its way. */
		if ((i + 1) % (window(run->mtu) / 2) == 0)
			one.flags |= SH_PKT_ACKREQ;
	}
	sh_payload_slice(&run->payload, *off, to.len, &one.payload, from);
	*off += to.len;
	if (run->npackets > 1 || sh_wire_in_turn(dev))
		at = sh_wire_room_in_run(dev, &one, dlid);
	if (!at)
		at = buf;
	to.addr = (uintptr_t)at;
	if (to.len) {
		err = dev->ops->copy(dev->host, 0, &to, 1, one.payload.ctx, from, one.payload.nseg,
				     to.len);
		if (err)
			return err;
	}
	if (run->npackets > 1)
		sh_wire_leave_in_run(dev, hca, &one, dlid, at);
	else
		sh_wire_leave(dev, hca, &one, dlid, at);
	return SH_COPY_OK;
}

/*
 * All packets of a run. *sent: how many have gone if the copy fails, which is what this function
 * returns.
 */
static enum sh_copy leave_run(struct sh_dev *dev, struct sh_hca *hca, const struct sh_packet *run,
			      uint16_t dlid, uint32_t *sent)
{
	enum sh_copy err = SH_COPY_OK;
	uint64_t off = 0;
	uint32_t i;

	if (run->npackets > 1)
		sh_wire_begin_run(dev);
	for (i = 0; i < run->npackets; i++) {
		err = leave_part(dev, hca, run, dlid, i, &off);
		if (err)
			break;
	}
	if (run->npackets > 1)
		sh_wire_end_run(dev);
	*sent = i;
	return err;
}

void sh_wire_transmit(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp)
{
	struct sh_hca *src;
	uint32_t sent;

	sh_wire_make_room(dev, p);
	if (sh_is_to_group(p)) {
		/* Delivery inside the instance counts it, and what a port that is down drops. */
		sh_packet_init(resp);
		src = sh_hca(dev, p->src_hca);
		if (!src || !sh_port_active(src, p->src_port))
			return;
	} else {
		src = sh_leave_from(dev, p, resp);
		if (!src)
			return;
		sh_has_left(dev, src, p);
	}
	/*
	 * Not pinned: a thread that is thrown out of here sends packets of RC and XRC again, which
	 * the receiver takes for duplicates. What was left of an unreliable message is lost.
	 */
	if (leave_run(dev, src, p, p->dlid, &sent) == SH_COPY_SRC) {
		resp->op = SH_PKT_SRC_FAULT;
		resp->psn = sh_psn_add(p->psn, sent);
	}
}

/* ---- what comes ---- */

static bool is_response(const struct sh_packet *p)
{
	return p->op == SH_PKT_ACK || p->op == SH_PKT_READ_RESP || p->op == SH_PKT_ATOMIC_RESP;
}

/*
 * Where an answer goes, looked up before the request is executed: as soon as the program sees the
 * message, it may destroy the QP, and a card has answered by then.
 */
struct peer {
	uint32_t qpn;
	uint16_t pkey;
};

static struct peer peer_of(const struct sh_hca *hca, const struct sh_qp *qp)
{
	return (struct peer){__atomic_load_n(&qp->dest_qpn, __ATOMIC_RELAXED), sh_qp_pkey(hca, qp)};
}

/*
 * Answers the QP's peer, wherever the request came from. Both are the same, or the responder would
 * not have answered.
 */
static void answer(struct sh_dev *dev, struct sh_hca *hca, struct peer peer,
		   const struct sh_packet *req, struct sh_packet *resp)
{
	const uint16_t to = req->slid;
	uint32_t sent;

	if (resp->op == SH_PKT_NONE || resp->op == SH_PKT_SRC_FAULT)
		return;
	resp->service = req->service;
	resp->slid = req->dlid;
	resp->pkey = peer.pkey;
	resp->srcqp = req->dqpn;
	resp->dqpn = peer.qpn;
	if (resp->op != SH_PKT_READ_RESP) {
		resp->payload.len = 0;
		sh_wire_leave(dev, hca, resp, to, NULL);
		return;
	}
	/* Has the memory gone since the key was checked? */
	if (leave_run(dev, hca, resp, to, &sent) == SH_COPY_SRC) {
		resp->op = SH_PKT_ACK;
		resp->psn = sh_psn_add(resp->psn, sent);
		resp->syndrome = SH_AETH_NAK_OP;
		resp->payload.len = 0;
		sh_wire_leave(dev, hca, resp, to, NULL);
	}
}

/* ---- READs that are answered in portions ---- */

#define HELD_MOST 64

/*
 * A request to a QP that owes an answer waits for it: answers leave in the order of the requests.
 */
struct held {
	struct held *next;
	struct sh_packet p;
	struct sh_seg seg;
	unsigned char payload[];
};

/* What is left of a READ. */
struct owed {
	struct owed *next;
	uint32_t hca, port, gen;
	struct sh_packet req;
	struct held *held, **held_end;
	unsigned int nheld;
};

/* first: the next one. tail: what the last call has left; its req.dmalen 0: nothing. */
static struct {
	struct owed *first;
	struct owed tail;
} reads;

/* Cuts the answer down to what goes now, and notes the rest. */
static void cut(struct sh_packet *resp, const struct sh_packet *req, uint32_t hca, uint32_t gen)
{
	uint32_t len = SH_WIRE_PORTION * resp->mtu;

	reads.tail.req.dmalen = 0;
	if (resp->op != SH_PKT_READ_RESP || resp->npackets <= SH_WIRE_PORTION)
		return;
	reads.tail.req = *req;
	reads.tail.req.psn = sh_psn_add(req->psn, SH_WIRE_PORTION);
	reads.tail.req.va += len;
	reads.tail.req.dmalen -= len;
	reads.tail.hca = hca;
	reads.tail.gen = gen;
	resp->npackets = SH_WIRE_PORTION;
	resp->flags &= ~SH_PKT_LAST;
	sh_payload_slice(&resp->payload, 0, len, &resp->payload,
			 (struct sh_seg *)resp->payload.seg);
}

/* Finds the rest; the key is looked up anew. False: the QP is not what it was. */
static bool find_rest(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		      const struct owed *o, struct sh_packet *resp, struct sh_seg *seg)
{
	const struct sh_sge place = {o->req.va, o->req.dmalen, o->req.rkey};
	uint32_t pdn, ctx = 0;
	bool good;

	if (sh_qp_lock_both(dev, qp))
		return false;
	good = qp->gen == o->gen && sh_receive_ok(dev, hca, qp, o->port, &o->req);
	if (good) {
		sh_aeth(resp, o->req.psn, SH_AETH_NAK_ACCESS, qp->msn);
		if (sh_op_allowed(qp, &o->req) && !sh_rkey_pd(hca, qp, &o->req, &pdn) &&
		    !sh_mr_locate(dev, hca, pdn, SH_REMOTE_READ, &place, seg, &ctx)) {
			sh_aeth(resp, o->req.psn, SH_AETH_ACK, qp->msn);
			resp->op = SH_PKT_READ_RESP;
			resp->flags = SH_PKT_LAST;
			resp->mtu = sh_qp_mtu(qp);
			resp->npackets = sh_packets(place.len, resp->mtu);
			resp->payload = (struct sh_payload){
				.ctx = ctx, .nseg = 1, .seg = seg, .len = place.len};
		}
	}
	sh_qp_unlock_both(dev, qp);
	return good;
}

static void portion(struct sh_dev *dev, uint32_t u1, uint32_t u2, uint64_t at)
{
	const struct owed *o = (const struct owed *)(uintptr_t)at;
	struct sh_hca *hca = sh_hca(dev, o->hca);
	struct sh_qp *qp = sh_qp_get(dev, o->hca, o->req.dqpn);
	struct sh_seg seg[SH_MAX_SEGS];
	struct sh_packet resp;
	struct peer peer;

	(void)u1, (void)u2;
	reads.tail.req.dmalen = 0;
	sh_packet_init(&resp);
	resp.npackets = 1;
	if (!hca || !qp || !sh_port_active(hca, o->port))
		return;
	peer = peer_of(hca, qp);
	if (!find_rest(dev, hca, qp, o, &resp, seg))
		return;
	cut(&resp, &o->req, o->hca, o->gen);
	answer(dev, hca, peer, &o->req, &resp);
}

static struct owed *owed_by(uint32_t hca, uint32_t qpn)
{
	struct owed *o = reads.first;

	while (o && (o->hca != hca || o->req.dqpn != qpn))
		o = o->next;
	return o;
}

/* Does the requester ask for the end of that READ once more, because answers were lost? */
static bool begins_again(const struct owed *o, const struct sh_packet *p)
{
	return p->op == SH_PKT_READ &&
	       sh_psn_add(p->psn, sh_packets(p->dmalen, o->req.mtu)) ==
		       sh_psn_add(o->req.psn, sh_packets(o->req.dmalen, o->req.mtu));
}

/* Puts it behind all others. Without memory the rest is lost, as if the wire had lost it. */
static void owe(uint32_t port)
{
	struct owed *o = malloc(sizeof(*o)), **end = &reads.first;

	if (!o)
		return;
	*o = reads.tail;
	o->port = port;
	o->next = NULL;
	o->held = NULL;
	o->held_end = &o->held;
	o->nheld = 0;
	while (*end)
		end = &(*end)->next;
	*end = o;
}

/* If there are too many, it is lost on the wire: its sender sends it again. */
static void hold(struct owed *o, const struct sh_packet *p)
{
	struct held *h = o->nheld < HELD_MOST ? malloc(sizeof(*h) + p->payload.len) : NULL;

	if (!h)
		return;
	h->next = NULL;
	h->p = *p;
	h->seg = (struct sh_seg){(uintptr_t)h->payload, p->payload.len};
	h->p.payload.seg = &h->seg;
	if (p->payload.len)
		memcpy(h->payload, (const void *)(uintptr_t)p->payload.seg[0].addr, p->payload.len);
	*o->held_end = h;
	o->held_end = &h->next;
	o->nheld++;
}

bool sh_wire_go_on(struct sh_dev *dev)
{
	struct owed *o = reads.first;
	struct held *h;

	if (!o)
		return false;
	reads.first = o->next;
	sh_catch(dev, 0, 0, (uintptr_t)o, portion);
	if (reads.tail.req.dmalen) {
		struct owed **end = &reads.first;

		o->req = reads.tail.req;
		o->next = NULL;
		while (*end)
			end = &(*end)->next;
		*end = o;
		return true;
	}
	/* One of these may owe the next answer. Then the others wait again. */
	while ((h = o->held)) {
		o->held = h->next;
		sh_wire_arrive(dev, o->hca, o->port, &h->p);
		free(h);
	}
	free(o);
	return reads.first;
}

static void request(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		    uint32_t gen, struct sh_packet *p)
{
	const struct peer peer = peer_of(hca, qp);
	struct sh_seg seg[SH_MAX_SEGS];
	struct sh_packet resp;

	sh_packet_init(&resp);
	resp.psn = p->psn;
	resp.npackets = 1;
	p->npackets = 1;
	p->mtu = sh_qp_mtu(qp);
	switch (p->service) {
	case SH_SVC_UC:
		sh_respond_uc(dev, hca, qp, port, p, &resp);
		break;
	case SH_SVC_UD:
		sh_respond_ud(dev, hca, qp, port, p, &resp);
		break;
	default:
		sh_respond_reliable(dev, hca, qp, port, p, &resp, seg);
		cut(&resp, p, hca->index, gen);
		answer(dev, hca, peer, p, &resp);
	}
}

/* Does the answer have a syndrome that means something? A requester drops the others. */
static bool syndrome_ok(const struct sh_packet *p)
{
	uint8_t kind = p->syndrome & SH_AETH_KIND;

	return p->op != SH_PKT_ACK || kind == 0 || kind == SH_AETH_RNR ||
	       (p->syndrome >= SH_AETH_NAK_SEQ && p->syndrome <= SH_AETH_NAK_OP);
}

/*
 * Is the packet from the peer of the QP, and of its partition? The locks say whether the QP is
 * still the same.
 */
static bool response_ok(struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
			const struct sh_packet *p)
{
	if (p->service != (qp->type == SH_QPT_RC ? SH_SVC_RC : SH_SVC_XRC) ||
	    !sh_qp_is_reliable(qp)) {
		SH_DROPPED_AT(hca, qp, no_qp, 1);
		return false;
	}
	if (qp->port != port || qp->path.dlid != p->slid) {
		SH_DROPPED_AT(hca, qp, path, 1);
		return false;
	}
	if (!sh_pkey_match(p->pkey, sh_qp_pkey(hca, qp))) {
		SH_DROPPED_AT(hca, qp, pkey, 1);
		return false;
	}
	return true;
}

struct coming {
	const struct sh_packet *p; /* stays as it came */
	enum sh_wire_verdict verdict;
	uint64_t ports; /* that have members, of a group */
};

/*
 * at: of struct coming. A thread that is thrown takes in the packet once more, as if the wire had
 * repeated it. Nothing tells a repeated packet of UD from a new one, nor the first one of a message
 * of
 * UC: such a packet counts as lost.
 */
static void arrived(struct sh_dev *dev, uint32_t index, uint32_t port, uint64_t at)
{
	struct coming *coming = (struct coming *)(uintptr_t)at;
	struct sh_packet packet = *coming->p, *p = &packet;
	struct sh_hca *hca = sh_hca(dev, index);
	bool active, comes;
	struct sh_qp *qp;
	uint32_t gen;

	if (!hca || (sh_self.again && (p->service == SH_SVC_UD || p->service == SH_SVC_UC)))
		return;
	active = sh_port_active(hca, port);
	comes = active && sh_wire_gets_in(dev, hca, port, p, &coming->verdict);
	sh_wire_show_in(dev, p, coming->verdict);
	if (!active)
		SH_DROPPED_AT(hca, sh_qp_get(dev, index, p->dqpn), port, 1);
	if (!comes)
		return;
	/* A response counts when its QP takes it in (completer.c). */
	if (!is_response(p))
		SH_COUNT_RCV(hca, port, 1, p->payload.len);
	if (p->dqpn == SH_GSI_QPN) {
		sh_gsi_arrive(dev, hca, port, p);
		return;
	}
	qp = sh_qp_get(dev, index, p->dqpn);
	if (!qp) {
		SH_DROPPED(hca, no_qp, 1);
		return;
	}
	gen = __atomic_load_n(&qp->gen, __ATOMIC_ACQUIRE);
	if (!is_response(p)) {
		SH_COUNT_QP(qp, long_rcv_data, p->payload.len);
		request(dev, hca, qp, port, gen, p);
	} else if (response_ok(hca, qp, port, p) && syndrome_ok(p)) {
		p->npackets = 1;
		sh_response(dev, index, p->dqpn, gen, p);
	}
}

void sh_wire_arrive(struct sh_dev *dev, uint32_t hca, uint32_t port, const struct sh_packet *p)
{
	struct owed *o = is_response(p) ? NULL : owed_by(hca, p->dqpn);
	struct coming coming = {.p = p, .verdict = SH_WIRE_OPEN};

	/* Those of strangers go on, and are dropped. */
	if (o && p->slid == o->req.slid && p->service == o->req.service && !begins_again(o, p)) {
		hold(o, p);
		return;
	}
	sh_self.again = false;
	reads.tail.req.dmalen = 0;
	sh_catch(dev, hca, port, (uintptr_t)&coming, arrived);
	if (!reads.tail.req.dmalen)
		return;
	if (o)
		o->req = reads.tail.req;
	else
		owe(port);
}

/* ---- groups ---- */

/*
 * As arrived(), for a group: if the thread is thrown, the datagram is lost to the members that have
 * not got it yet.
 */
static void arrived_group(struct sh_dev *dev, uint32_t hca, uint32_t unused, uint64_t at)
{
	struct coming *coming = (struct coming *)(uintptr_t)at;
	const struct sh_packet *p = coming->p;
	uint64_t ports = coming->ports;
	uint32_t first = (uint32_t)__builtin_ctzll(ports);
	struct sh_hca *h = sh_hca(dev, hca);
	bool comes;

	(void)unused;
	if (!h || sh_self.again)
		return;
	comes = sh_wire_gets_in(dev, h, first % dev->ports + 1, p, &coming->verdict);
	sh_wire_show_in(dev, p, coming->verdict);
	if (comes && !sh_deliver_group(dev, ports, p))
		SH_DROPPED(h, mcast, 1);
}

void sh_wire_arrive_group(struct sh_dev *dev, uint64_t ports, const struct sh_packet *p)
{
	struct coming coming = {p, SH_WIRE_OPEN, ports};

	if (!ports || !sh_is_to_group(p))
		return;
	sh_self.again = false;
	sh_catch(dev, (uint32_t)__builtin_ctzll(ports) / dev->ports, 0, (uintptr_t)&coming,
		 arrived_group);
}

/* ---- the beginning ---- */

static void look_at_all(struct sh_dev *dev, uint32_t u1, uint32_t u2, uint64_t u3)
{
	(void)u1, (void)u2, (void)u3;
	for (uint32_t i = 0; i < dev->hcas; i++) {
		const struct sh_hca *hca = sh_hca(dev, i);
		uint32_t used = hca ? __atomic_load_n(&hca->qp_used, __ATOMIC_RELAXED) : 0;

		for (uint32_t n = 0; n < used; n++)
			sh_look(dev, i, sh_qp_slot(dev, i, n)->qpn);
	}
}

void sh_wire_begin(struct sh_dev *dev)
{
	pthread_mutex_lock(&dev->inst->wire.alive);
	/*
	 * Pairs with sh_wire_admit(): it finds this process, or leaves its request before this
	 * look.
	 */
	__atomic_store_n(&dev->inst->wire.proc, dev->proc, __ATOMIC_SEQ_CST);
	sh_wire_begin_turn(dev);
	sh_catch(dev, 0, 0, 0, look_at_all);
	sh_wire_end_turn(dev);
}
