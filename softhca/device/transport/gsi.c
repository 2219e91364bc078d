// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Datagrams to and from QP 1. To send one, the daemon looks first whether the locks of its receiver
 * are free, and holds none while it sends. Before that it announces that it will copy to the
 * receiver's memory, so that the process exchanges no pages meanwhile.
 */
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/life.h"
#include "softhca/device/memory/tables.h"
#include "softhca/device/memory/txn.h"
#include "softhca/device/queues/rq_receives.h"
#include "softhca/device/queues/srq_receives.h"
#include "softhca/device/queues/wqe.h"
#include "fabric.h"
#include "fault.h"
#include "gsi.h"
#include "place.h"
#include "responder.h"
#include "rules.h"
#include "wire.h"

bool sh_gsi_let_in(struct sh_hca *at, uint32_t port, uint16_t pkey, uint16_t *index)
{
	for (uint16_t i = 0; i < SH_PKEYS; i++)
		if (sh_pkey_match(pkey, sh_pkey_at(at, port, i))) {
			if (index)
				*index = i;
			return true;
		}
	SH_DROPPED(at, pkey, 1);
	SH_COUNT_PORT(at, port, rcv_constraint, 1);
	return false;
}

/* Copies the datagram out of the sender's memory, and writes the record. False: it is lost. */
static bool hand_over(struct sh_dev *dev, const struct sh_packet *p)
{
	struct sh_gsi_record r = {
		.hca = p->src_hca,
		.port = p->src_port,
		.srcqp = p->srcqp,
		.slid = p->slid,
		.dlid = p->dlid,
		.pkey = p->pkey,
		.sl = p->sl,
		.grh = !!(p->flags & SH_PKT_GRH),
	};
	struct sh_seg to = {(uintptr_t)r.mad, sizeof(r.mad)};
	struct sh_door *door;
	int err;

	if (r.grh)
		r.route = p->grh;
	if (dev->ops->copy(dev->host, 0, &to, 1, p->payload.ctx, p->payload.seg, p->payload.nseg,
			   sizeof(r.mad)))
		return false;
	/* Pinned: it takes a lock of the process, and the record must not be written twice. */
	door = sh_pin();
	err = dev->ops->event_begin(dev->host, SH_GSI_EVQ);
	if (!err)
		err = dev->ops->event(dev->host, SH_GSI_EVQ, &r, sizeof(r));
	sh_unpin(door);
	return !err;
}

bool sh_gsi_take(struct sh_dev *dev, struct sh_hca *at, uint32_t port, const struct sh_packet *p)
{
	struct sh_hca *counts = at ? at : sh_hca(dev, p->src_hca);

	if (p->dqpn != SH_GSI_QPN || p->service != SH_SVC_UD || !counts)
		return false;
	if (at && !sh_gsi_let_in(at, port, p->pkey, NULL))
		return true;
	if (p->qkey != SH_GSI_QKEY)
		SH_DROPPED(counts, qkey, 1);
	else if (p->payload.len != SH_GSI_SIZE || !hand_over(dev, p))
		SH_DROPPED(counts, memory, 1);
	return true;
}

/* Does a rule of `softhca fault` take what the switch sends to that port? */
static bool faulted(struct sh_dev *dev, struct sh_hca *to, uint32_t port, const struct sh_packet *p)
{
	const struct sh_way way = {
		.from = SH_FAULT_ANY,
		.to = to->host,
		.src_qpn = SH_GSI_QPN,
		.dst_qpn = p->dqpn,
		.at_once = true,
	};
	struct sh_met met;
	uint32_t fate;

	if (!(__atomic_load_n(&dev->inst->faults.active, __ATOMIC_RELAXED) & SH_ACTIVE_FAULTS))
		return false;
	fate = sh_fate(dev, &way, &met);
	if (fate == SH_FAULT_DROP) {
		SH_DROPPED(to, fault, 1);
	} else if (fate == SH_FAULT_CORRUPT) {
		SH_DROPPED(to, icrc, 1);
		SH_COUNT_RCV(to, port, 1, p->payload.len);
		SH_COUNT_PORT(to, port, rcv_errors, 1);
	}
	return fate == SH_FAULT_DROP || fate == SH_FAULT_CORRUPT;
}

/* The switch has no HCA, so its packets do not begin at one. */
static void from_switch(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *none)
{
	struct sh_hca *h;
	struct sh_qp *qp;
	uint32_t hca, port;

	if (!sh_lid_lookup(dev, p->dlid, &hca, &port))
		return;
	h = sh_hca(dev, hca);
	if (!sh_port_active(h, port)) {
		SH_DROPPED(h, port, 1);
		return;
	}
	if (faulted(dev, h, port, p))
		return;
	qp = sh_qp_get(dev, hca, p->dqpn);
	if (!qp)
		SH_DROPPED(h, no_qp, 1);
	else
		sh_respond_ud(dev, h, qp, port, p, none);
	/* It comes again, and is counted then. */
	if (none->syndrome == SH_BUSY)
		return;
	SH_COUNT_RCV(h, port, 1, p->payload.len);
	if (qp)
		SH_COUNT_QP(qp, long_rcv_data, p->payload.len);
}

static bool is_free(struct sh_dev *dev, struct sh_lock *lock, bool suspect)
{
	if (!sh_lock_soon(dev, lock)) {
		sh_unlock(dev, lock);
		return true;
	}
	if (suspect)
		sh_lock_suspect(dev, lock);
	return false;
}

/* The QP that the datagram is for; NULL: there is none, or it is for a group. */
static struct sh_qp *receiver(struct sh_dev *dev, const struct sh_packet *p, uint32_t *hca)
{
	struct sh_qp *qp;
	uint32_t port;

	if (!sh_lid_lookup(dev, p->dlid, hca, &port))
		return NULL;
	qp = sh_qp_get(dev, *hca, p->dqpn);
	return qp && sh_is_for(dev, qp, p) ? qp : NULL;
}

/* Are the locks free that the receiver takes for a datagram? */
static bool is_all_free(struct sh_dev *dev, uint32_t hca, struct sh_qp *qp, bool suspect)
{
	uint32_t srqn, cqn;
	struct sh_srq *srq;
	struct sh_cq *cq;

	if (!is_free(dev, &qp->lock, suspect) || !is_free(dev, &qp->rlock, suspect))
		return false;
	/*
	 * Without the lock these may be of another QP by now. Then other locks are looked at in
	 * vain.
	 */
	srq = sh_recv_srqn(qp, 0, &srqn) && srqn ? sh_srq_of(sh_hca(dev, hca), srqn) : NULL;
	cqn = sh_recv_cqn(qp, NULL);
	cq = cqn ? sh_cq_of(sh_hca(dev, hca), cqn) : NULL;
	return (!srq || is_free(dev, &srq->lock, suspect)) &&
	       (!cq || is_free(dev, &cq->lock, suspect));
}

int sh_gsi_send(struct sh_dev *dev, const struct sh_packet *p, bool suspect)
{
	struct sh_packet none;
	struct sh_seg seg[SH_MAX_SEGS];
	uint32_t hca;
	struct sh_qp *qp = receiver(dev, p, &hca);

	if (qp && (!is_all_free(dev, hca, qp, suspect) || !sh_place_begin(dev, qp->ctx)))
		return -EINPROGRESS;
	sh_packet_init(&none);
	if (p->src_port)
		sh_transmit(dev, p, &none, seg);
	else
		from_switch(dev, p, &none);
	if (qp)
		sh_place_end(dev);
	/* A thread has taken a lock since: perhaps the one that has sent what this answers. */
	return none.syndrome == SH_BUSY ? -EINPROGRESS : 0;
}

/* ---- over the wire ---- */

void sh_gsi_arrive(struct sh_dev *dev, struct sh_hca *at, uint32_t port, const struct sh_packet *p)
{
	const uint8_t whole = SH_PKT_FIRST | SH_PKT_LAST;
	struct sh_wire_mad m = {.hca = at->index, .port = port, .lid = p->slid, .pkey = p->pkey};
	const uint8_t *mad = p->payload.len == SH_GSI_SIZE
				     ? (const void *)(uintptr_t)p->payload.seg->addr
				     : NULL;

	if (!dev->wire || !dev->wire->mad || p->service != SH_SVC_UD || p->op != SH_PKT_SEND ||
	    (p->flags & (whole | SH_PKT_IMM)) != whole || p->srcqp != SH_GSI_QPN || !mad ||
	    mad[SH_GSI_CLASS] != SH_GSI_CLASS_CM) {
		SH_DROPPED(at, no_qp, 1);
		return;
	}
	if (!sh_gsi_let_in(at, port, p->pkey, NULL))
		return;
	if (p->qkey != SH_GSI_QKEY) {
		SH_DROPPED(at, qkey, 1);
		return;
	}
	memcpy(m.mad, mad, sizeof(m.mad));
	if (!dev->wire->mad(dev, &m))
		SH_DROPPED(at, memory, 1);
}

static void leaves(struct sh_dev *dev, uint32_t index, uint32_t port, uint64_t at)
{
	const struct sh_wire_mad *m = (const struct sh_wire_mad *)(uintptr_t)at;
	static uint32_t psn; /* of the engine's main thread; receivers look at none of QP 1 */
	struct sh_hca *hca = sh_hca(dev, index);
	struct sh_packet p;

	if (!hca || !sh_port_active(hca, port))
		return;
	sh_packet_init(&p);
	p.op = SH_PKT_SEND;
	p.service = SH_SVC_UD;
	p.flags = SH_PKT_FIRST | SH_PKT_LAST;
	p.src_hca = index;
	p.src_port = (uint8_t)port;
	p.slid = (uint16_t)hca->port[port - 1].lid;
	p.dlid = m->lid;
	p.pkey = m->pkey;
	p.srcqp = p.dqpn = SH_GSI_QPN;
	p.qkey = SH_GSI_QKEY;
	p.psn = psn++ & 0xffffff;
	p.npackets = 1;
	p.mtu = 4096;
	p.payload.len = sizeof(m->mad);
	SH_COUNT_XMIT(hca, port, 1, sizeof(m->mad));
	sh_wire_leave(dev, hca, &p, m->lid, m->mad);
}

void sh_gsi_leave(struct sh_dev *dev, const struct sh_wire_mad *m)
{
	sh_self.again = false;
	sh_catch(dev, m->hca, m->port, (uintptr_t)m, leaves);
}

void sh_gsi_lost(struct sh_dev *dev, const struct sh_packet *p)
{
	uint32_t hca, port;
	struct sh_hca *h = sh_lid_lookup(dev, p->dlid, &hca, &port) ? sh_hca(dev, hca)
								    : sh_hca(dev, p->src_hca);

	if (h)
		SH_DROPPED(h, memory, 1);
}
