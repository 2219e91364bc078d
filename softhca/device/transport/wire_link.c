// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One packet at the edge of the instance, where captures see it and faults hit it; and the packets
 * that wait in a thread's turn. Holds no lock. Owns the packets that a fault holds back.
 */
#include <stdlib.h>
#include <string.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/queues/attention.h"
#include "capture.h"
#include "doorbell.h"
#include "fault.h"
#include "requester.h"
#include "wire.h"

struct late {
	struct sh_held_back held; /* first */
	struct sh_packet p;
	uint16_t dlid;
	unsigned char payload[];
};

/* The port that it leaves may have gone down meanwhile. */
static void late_leaves(struct sh_dev *dev, uint64_t a, uint64_t b)
{
	struct late *l = (struct late *)(uintptr_t)a;
	uint32_t hca, port;

	(void)b;
	if (sh_lid_lookup(dev, l->p.slid, &hca, &port) && !sh_port_active(sh_hca(dev, hca), port))
		SH_DROPPED_AT(sh_hca(dev, hca), sh_qp_get(dev, hca, l->p.srcqp), port, 1);
	else
		dev->wire->send(dev, &l->p, l->dlid, l->payload, SH_WIRE_WHOLE);
	sh_held_give(l->p.payload.len);
	free(l);
}

/* Pinned: a thread must not be thrown out of malloc(), nor forget the memory that it has taken. */
static bool delay(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
		  const unsigned char *payload, const struct sh_met *met)
{
	struct sh_door *door = sh_pin();
	bool taken = sh_held_take(p->payload.len), done = false;
	struct late *l = taken ? malloc(sizeof(*l) + p->payload.len) : NULL;

	if (l) {
		l->held.go = late_leaves;
		l->p = *p;
		l->dlid = dlid;
		if (p->payload.len)
			memcpy(l->payload, payload, p->payload.len);
		done = sh_hold_back(dev, met, &l->held);
	}
	if (!done) {
		free(l);
		if (taken)
			sh_held_give(p->payload.len);
	}
	sh_unpin(door);
	return done;
}

/* Pinned: a receiver cannot tell a packet that a thrown thread sends again from a new one. */
static void flush(struct sh_dev *dev)
{
	struct sh_door *door = sh_pin();

	if (dev->wire->flush)
		dev->wire->flush(dev);
	sh_unpin(door);
}

/* Shows a capture a packet that leaves. fate: as in struct sh_capture_note. */
static void show(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
		 const unsigned char *payload, uint32_t fate, uint64_t ns, bool again)
{
	const struct sh_capture_note note = {fate, ns, again};

	if (sh_capture_on(dev))
		sh_capture_wire(dev, p, dlid, payload, SH_TAPPED_OUT, &note);
}

static bool is_faulty(const struct sh_dev *dev)
{
	return __atomic_load_n(&dev->inst->faults.active, __ATOMIC_RELAXED) & SH_ACTIVE_FAULTS;
}

static void leave_with_fate(struct sh_dev *dev, struct sh_hca *hca, const struct sh_packet *p,
			    uint16_t dlid, const unsigned char *payload)
{
	const struct sh_way way = {.from = hca->host,
				   .to = SH_FAULT_FAR | dlid,
				   .src_qpn = p->srcqp,
				   .dst_qpn = p->dqpn,
				   .bytes = (uint32_t)p->payload.len + SH_FAULT_HEADS};
	struct sh_door *door;
	struct sh_met met;

	sh_fate(dev, &way, &met);
	show(dev, p, dlid, payload, met.fate, met.delay_ns, false);
	switch (met.fate) {
	case SH_FAULT_DROP:
		SH_DROPPED_AT(hca, sh_qp_get(dev, hca->index, p->srcqp), fault, 1);
		return;
	case SH_FAULT_CORRUPT:
		dev->wire->send(dev, p, dlid, payload, SH_WIRE_CORRUPT);
		return;
	case SH_FAULT_DELAY:
	case SH_FAULT_REORDER:
		for (int i = 0; i < 1 + met.twice; i++)
			if (!delay(dev, p, dlid, payload, &met))
				SH_DROPPED_AT(hca, sh_qp_get(dev, hca->index, p->srcqp), fault, 1);
		return;
	case SH_FAULT_DUPLICATE:
		dev->wire->send(dev, p, dlid, payload, SH_WIRE_WHOLE);
		show(dev, p, dlid, payload, met.fate, met.delay_ns, true);
		/* fall through */
	default:
		dev->wire->send(dev, p, dlid, payload, SH_WIRE_WHOLE);
	}
	door = sh_pin();
	sh_pass(dev, &met);
	sh_unpin(door);
}

static bool gathers(const struct sh_dev *dev)
{
	return dev->wire->gather && !is_faulty(dev) && !sh_capture_on(dev);
}

/* Pinned: a thrown thread goes on with its turn, and the packets that wait must be whole. */
static void wait_in_turn(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
			 const unsigned char *payload)
{
	struct sh_door *door = sh_pin();

	dev->wire->turn(dev)->waits++;
	dev->wire->gather(dev, p, dlid, payload);
	sh_unpin(door);
}

void sh_wire_leave(struct sh_dev *dev, struct sh_hca *hca, const struct sh_packet *p, uint16_t dlid,
		   const unsigned char *payload)
{
	if (sh_wire_in_turn(dev)) {
		if (gathers(dev)) {
			wait_in_turn(dev, p, dlid, payload);
			return;
		}
		flush(dev);
	}
	if (is_faulty(dev)) {
		leave_with_fate(dev, hca, p, dlid, payload);
		return;
	}
	show(dev, p, dlid, payload, SH_FAULT_KINDS, 0, false);
	dev->wire->send(dev, p, dlid, payload, SH_WIRE_WHOLE);
}

void sh_wire_begin_run(struct sh_dev *dev)
{
	if (!sh_wire_in_turn(dev) && dev->wire->begin)
		dev->wire->begin(dev);
}

unsigned char *sh_wire_room_in_run(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid)
{
	return dev->wire->room && gathers(dev) ? dev->wire->room(dev, p, dlid) : NULL;
}

void sh_wire_leave_in_run(struct sh_dev *dev, struct sh_hca *hca, const struct sh_packet *p,
			  uint16_t dlid, const unsigned char *payload)
{
	if (!sh_wire_in_turn(dev)) {
		if (gathers(dev)) {
			dev->wire->gather(dev, p, dlid, payload);
			return;
		}
		flush(dev);
	}
	sh_wire_leave(dev, hca, p, dlid, payload);
}

void sh_wire_end_run(struct sh_dev *dev)
{
	if (!sh_wire_in_turn(dev))
		flush(dev);
}

/* ---- turns ---- */

bool sh_wire_in_turn(const struct sh_dev *dev)
{
	return dev->wire->turn && dev->wire->turn((struct sh_dev *)dev)->depth;
}

void sh_wire_begin_turn(struct sh_dev *dev)
{
	struct sh_wire_turn *t = dev->wire && dev->wire->turn ? dev->wire->turn(dev) : NULL;

	if (!t || t->depth++)
		return;
	t->unpaced = 0;
	if (dev->wire->begin)
		dev->wire->begin(dev);
}

uint64_t sh_wire_waits(struct sh_dev *dev)
{
	return dev->wire->turn ? dev->wire->turn(dev)->waits : 0;
}

bool sh_wire_keep(struct sh_dev *dev, const struct sh_hca *hca, struct sh_qp *qp, uint32_t token,
		  uint64_t waited)
{
	struct sh_wire_turn *t = dev->wire->turn ? dev->wire->turn(dev) : NULL;
	struct sh_door *door;
	uint32_t i = 0;

	if (!t || !t->depth)
		return false;
	while (i < t->n && t->kept[i].qp != qp)
		i++;
	if (i == t->n && t->waits == waited)
		return false;
	if (i == SH_WIRE_KEPT)
		return false;
	/* Pinned: a thrown thread either keeps the QP, or looks at it again. */
	door = sh_pin();
	t->kept[i].qp = qp;
	t->kept[i].hca = hca->index;
	t->kept[i].qpn = qp->qpn;
	t->kept[i].again = false;
	t->kept[i].token = token;
	if (i == t->n) {
		t->kept[i].more = false;
		t->n++;
	}
	sh_self.engine.qp = NULL;
	sh_unpin(door);
	return true;
}

bool sh_wire_keeps(struct sh_dev *dev, const struct sh_qp *qp)
{
	const struct sh_wire_turn *t = dev->wire && dev->wire->turn ? dev->wire->turn(dev) : NULL;

	for (uint32_t i = 0; t && i < t->n; i++)
		if (t->kept[i].qp == qp)
			return t->kept[i].token == qp->engine;
	return false;
}

/*
 * Releases a QP of this turn. Other threads have left to this one what came for the QP meanwhile.
 */
static void let_go(struct sh_dev *dev, struct sh_wire_turn *t, uint32_t i)
{
	struct sh_qp *qp = t->kept[i].qp;
	struct sh_door *door;

	/* Pinned: a thrown thread looks again at the QPs that are noted here. */
	door = sh_pin();
	if (sh_lock_within(dev, &qp->lock, SH_WAIT_BRIEFLY) &&
	    sh_requester_leave(dev, qp, t->kept[i].token)) {
		t->kept[i].token = 0;
		sh_unpin(door);
		return;
	}
	if (t->kept[i].token && qp->engine == t->kept[i].token) {
		qp->engine = 0;
		t->kept[i].again = qp->again;
		/* There is more to send: a command that ends the QP meanwhile waits for it. */
		if (qp->again)
			qp->wire_left |= SH_WIRE_ASKED;
	}
	t->kept[i].token = 0;
	sh_unpin(door);
	sh_unlock(dev, &qp->lock);
}

/* Drops the QPs that this thread is done with. */
static void tidy(struct sh_wire_turn *t)
{
	struct sh_door *door = sh_pin();
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->kept[i].token || t->kept[i].again || t->kept[i].more)
			t->kept[n++] = t->kept[i];
	t->n = n;
	sh_unpin(door);
}

/* The helper thread does what remains to be done for the QPs that were released. */
static void leave_to_helper(struct sh_dev *dev, struct sh_wire_turn *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		if ((t->kept[i].again || t->kept[i].more) && !t->kept[i].token) {
			sh_attention_post(dev, dev->proc, t->kept[i].hca, t->kept[i].qpn);
			t->kept[i].again = t->kept[i].more = false;
		}
}

void sh_wire_make_room(struct sh_dev *dev, const struct sh_packet *p)
{
	struct sh_wire_turn *t = dev->wire->turn ? dev->wire->turn(dev) : NULL;
	uint32_t n = t && t->depth ? t->n : 0;

	if (n < SH_WIRE_KEPT)
		return;
	for (uint32_t i = 0; i < n; i++)
		if (t->kept[i].hca == p->src_hca && t->kept[i].qpn == p->srcqp)
			return;
	flush(dev);
	for (uint32_t i = 0; i < n; i++)
		let_go(dev, t, i);
	leave_to_helper(dev, t);
	tidy(t);
}

bool sh_wire_is_enough(struct sh_dev *dev, const struct sh_hca *hca, struct sh_qp *qp,
		       uint32_t packets)
{
	struct sh_wire_turn *t = dev->wire->turn ? dev->wire->turn(dev) : NULL;
	struct sh_door *door;
	uint32_t i = 0;

	if (!t || !t->depth)
		return false;
	if (t->unpaced < SH_WIRE_UNPACED) {
		t->unpaced += packets;
		return false;
	}
	/* A command that ends the QP meanwhile waits. */
	qp->wire_left |= SH_WIRE_ASKED;
	while (i < t->n && t->kept[i].qp != qp)
		i++;
	if (i == SH_WIRE_KEPT) {
		sh_attention_post(dev, dev->proc, hca->index, qp->qpn);
		return true;
	}
	door = sh_pin();
	if (i == t->n) {
		memset(&t->kept[i], 0, sizeof(t->kept[i]));
		t->kept[i].qp = qp;
		t->n++;
	}
	t->kept[i].hca = hca->index;
	t->kept[i].qpn = qp->qpn;
	t->kept[i].more = true;
	sh_unpin(door);
	return true;
}

static void end_turn(struct sh_dev *dev, uint32_t u1, uint32_t u2, uint64_t at)
{
	struct sh_wire_turn *t = (struct sh_wire_turn *)(uintptr_t)at;

	(void)u1, (void)u2;
	for (bool first = true; t->n; first = false) {
		uint32_t n = t->n;

		/*
		 * A program that waits for a completion is woken first: it can go on while the
		 * answer to the other end leaves.
		 */
		sh_errands(dev);
		flush(dev);
		for (uint32_t i = 0; i < n; i++)
			let_go(dev, t, i);
		/* Only once: as long as a program posts, there would be something to do. */
		for (uint32_t i = 0; first && i < n; i++)
			if (t->kept[i].again && !t->kept[i].token) {
				sh_look(dev, t->kept[i].hca, t->kept[i].qpn);
				if (!t->kept[i].token)
					t->kept[i].again = false;
			}
		if (!first)
			leave_to_helper(dev, t);
		tidy(t);
	}
	/*
	 * What still waits is from a QP that was moved to ERR meanwhile, or from before the thread
	 * was thrown.
	 */
	sh_errands(dev);
	flush(dev);
}

void sh_wire_end_turn(struct sh_dev *dev)
{
	struct sh_wire_turn *t = dev->wire && dev->wire->turn ? dev->wire->turn(dev) : NULL;

	if (!t)
		return;
	if (t->depth == 1) {
		sh_self.again = false;
		sh_catch(dev, 0, 0, (uintptr_t)t, end_turn);
	}
	t->depth--;
}

void sh_catch_in_turn(struct sh_dev *dev, uint32_t a, uint32_t b, uint64_t c, sh_caught_fn *fn)
{
	bool entered = sh_enter(dev);

	sh_wire_begin_turn(dev);
	sh_self.again = false;
	sh_catch(dev, a, b, c, fn);
	sh_wire_end_turn(dev);
	if (entered)
		sh_leave(dev);
}

static enum sh_wire_verdict judge(struct sh_dev *dev, struct sh_hca *hca, uint32_t port,
				  const struct sh_packet *p)
{
	const struct sh_way way = {.from = SH_FAULT_FAR | p->slid,
				   .to = hca->host,
				   .src_qpn = p->service == SH_SVC_UD ? p->srcqp : SH_FAULT_ANY,
				   .dst_qpn = p->dqpn,
				   .came = true};
	struct sh_met met;

	switch (sh_fate(dev, &way, &met)) {
	case SH_FAULT_DROP:
		SH_DROPPED_AT(hca, sh_qp_get(dev, hca->index, p->dqpn), fault, 1);
		return SH_WIRE_LOST;
	case SH_FAULT_CORRUPT:
		SH_DROPPED_AT(hca, sh_qp_get(dev, hca->index, p->dqpn), icrc, 1);
		SH_COUNT_RCV(hca, port, 1, p->payload.len);
		SH_COUNT_PORT(hca, port, rcv_errors, 1);
		return SH_WIRE_DAMAGED;
	default:
		return SH_WIRE_COMES;
	}
}

bool sh_wire_gets_in(struct sh_dev *dev, struct sh_hca *hca, uint32_t port,
		     const struct sh_packet *p, enum sh_wire_verdict *verdict)
{
	struct sh_door *door;

	if (*verdict == SH_WIRE_OPEN && is_faulty(dev)) {
		/*
		 * Pinned: a thread that was thrown in between would ask the rules, and count, once
		 * more.
		 */
		door = sh_pin();
		*verdict = judge(dev, hca, port, p);
		sh_unpin(door);
	}
	return *verdict == SH_WIRE_OPEN || *verdict == SH_WIRE_COMES;
}

void sh_wire_show_in(struct sh_dev *dev, const struct sh_packet *p, enum sh_wire_verdict verdict)
{
	struct sh_capture_note note = {.fate = SH_FAULT_KINDS};

	if (!sh_capture_on(dev) || sh_self.again)
		return;
	if (verdict == SH_WIRE_LOST)
		note.fate = SH_FAULT_DROP;
	else if (verdict == SH_WIRE_DAMAGED)
		note.fate = SH_FAULT_CORRUPT;
	sh_capture_wire(dev, p, p->dlid,
			p->payload.len ? (const void *)(uintptr_t)p->payload.seg->addr : NULL,
			SH_TAPPED_IN, &note);
}
