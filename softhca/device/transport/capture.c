// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See capture.h. No function here waits or fails: a packet that cannot be copied is left out. A
 * payload that cannot be read is no packet; the device finds that out by itself.
 */
#include <string.h>

#include "softhca/device/queues/wqe.h"
#include "capture.h"
#include "fabric.h"

static const struct sh_capture_note nothing = {.fate = SH_FAULT_KINDS};

/* The HCA of a LID is one of this host's. */
static bool lid_of(const struct sh_dev *dev, uint16_t lid, uint32_t host)
{
	uint32_t hca, port;

	return sh_lid_lookup(dev, lid, &hca, &port) && sh_hca(dev, hca)->host == host;
}

static bool wanted(const struct sh_dev *dev, const struct sh_tap *tap, uint16_t slid, uint16_t dlid,
		   uint32_t srcqp, uint32_t dqpn)
{
	if (tap->qpn != SH_TAP_ANY && tap->qpn != srcqp && tap->qpn != dqpn)
		return false;
	return tap->host == SH_TAP_ANY || lid_of(dev, slid, tap->host) ||
	       lid_of(dev, dlid, tap->host);
}

/* Copies one packet. way: the request that it is or answers, and whether it is an answer. */
static void tap_one(struct sh_dev *dev, const struct sh_packet *way, bool answer,
		    const struct sh_packet *p, const struct sh_capture_note *note,
		    enum sh_tapped_wire wire)
{
	uint64_t snap = __atomic_load_n(&sh_tap(dev)->snap, __ATOMIC_RELAXED);
	uint64_t have = p->payload.len < snap ? p->payload.len : snap;
	struct sh_seg from[SH_MAX_SEGS], to[2];
	struct sh_payload part;
	struct sh_tapped *t;

	if (p->payload.len > SH_TAP_PAYLOAD)
		return;
	t = sh_tap_take(dev, (uint32_t)have);
	if (!t)
		return;
	if (have) {
		unsigned int n = sh_tap_payload(dev, t, to);
		enum sh_copy err;

		sh_payload_slice(&p->payload, 0, have, &part, from);
		err = dev->ops->copy(dev->host, 0, to, n, part.ctx, from, part.nseg, have);
		sh_rearm();
		if (err || part.len != have) {
			sh_tap_drop(dev, t);
			return;
		}
	}
	t->when = dev->ops->now(dev->host);
	t->len = (uint16_t)p->payload.len;
	t->op = p->op;
	t->service = way->service;
	t->flags = (uint8_t)(p->flags | (note->again ? SH_TAPPED_AGAIN : 0));
	t->sl = way->sl;
	t->slid = answer ? way->dlid : way->slid;
	t->dlid = answer ? way->slid : way->dlid;
	t->pkey = way->pkey;
	t->syndrome = p->syndrome;
	t->fate = (uint8_t)note->fate;
	t->wire = (uint8_t)wire;
	t->srcqp = answer ? way->dqpn : way->srcqp;
	t->dqpn = answer ? way->srcqp : way->dqpn;
	t->psn = p->psn;
	t->qkey = p->qkey;
	t->srqn = p->srqn;
	t->msn = p->msn;
	t->rkey = p->rkey;
	t->dmalen = p->dmalen;
	memcpy(&t->imm, &p->imm_be, sizeof(t->imm));
	t->va = p->va;
	t->swap_add = p->swap_add;
	t->compare = p->compare;
	t->delay_us = note->fate == SH_FAULT_DELAY ? (uint32_t)(note->delay_ns / 1000) : 0;
	if (!answer && p->flags & SH_PKT_GRH) {
		t->flow_label = p->grh.flow_label;
		t->traffic_class = p->grh.traffic_class;
		t->hop_limit = p->grh.hop_limit;
		memcpy(t->sgid, p->grh.sgid, 16);
		memcpy(t->dgid, p->grh.dgid, 16);
	}
	sh_tap_put(dev, t);
}

/* Copies packet i of a run. off: where its payload begins. Returns how much payload it has. */
static uint64_t tap_part(struct sh_dev *dev, const struct sh_packet *way, bool answer,
			 const struct sh_packet *run, uint32_t i, uint64_t off,
			 const struct sh_capture_note *note)
{
	bool last = i + 1 == run->npackets;
	struct sh_seg seg[SH_MAX_SEGS];
	struct sh_packet one = *run;
	uint64_t len = run->payload.len - off;

	if (!last && len > run->mtu)
		len = run->mtu;
	one.psn = sh_psn_add(run->psn, i);
	if (i)
		one.flags &= ~SH_PKT_FIRST;
	if (!last)
		one.flags &= ~(SH_PKT_LAST | SH_PKT_SE | SH_PKT_IMM | SH_PKT_ACKREQ);
	sh_payload_slice(&run->payload, off, len, &one.payload, seg);
	tap_one(dev, way, answer, &one, note, SH_TAPPED_FABRIC);
	return len;
}

static void tap_run(struct sh_dev *dev, const struct sh_packet *way, bool answer,
		    const struct sh_packet *run, const struct sh_capture_note *note)
{
	uint64_t off = 0;

	for (uint32_t i = 0; i < run->npackets; i++)
		off += tap_part(dev, way, answer, run, i, off, note);
}

void sh_capture_request(struct sh_dev *dev, const struct sh_packet *p,
			const struct sh_capture_note *note)
{
	const struct sh_hca *src = sh_hca(dev, p->src_hca);

	/* What a port that is down is to send does not get onto the fabric. */
	if (!src || !sh_port_active(src, p->src_port) ||
	    !wanted(dev, sh_tap(dev), p->slid, p->dlid, p->srcqp, p->dqpn))
		return;
	tap_run(dev, p, false, p, note ? note : &nothing);
}

void sh_capture_response(struct sh_dev *dev, const struct sh_packet *req,
			 const struct sh_packet *resp)
{
	if (resp->op != SH_PKT_NONE && resp->op != SH_PKT_SRC_FAULT &&
	    wanted(dev, sh_tap(dev), req->slid, req->dlid, req->srcqp, req->dqpn))
		tap_run(dev, req, true, resp, &nothing);
}

void sh_capture_one(struct sh_dev *dev, const struct sh_packet *req, const struct sh_packet *one,
		    const struct sh_capture_note *note)
{
	if (wanted(dev, sh_tap(dev), req->slid, req->dlid, req->srcqp, req->dqpn))
		tap_one(dev, req, true, one, note, SH_TAPPED_FABRIC);
}

void sh_capture_wire(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
		     const unsigned char *payload, enum sh_tapped_wire which,
		     const struct sh_capture_note *note)
{
	struct sh_seg seg = {(uintptr_t)payload, p->payload.len};
	struct sh_packet one = *p;

	if (!wanted(dev, sh_tap(dev), p->slid, dlid, p->srcqp, p->dqpn))
		return;
	one.dlid = dlid;
	one.payload.ctx = 0;
	one.payload.nseg = p->payload.len ? 1 : 0;
	one.payload.seg = &seg;
	tap_one(dev, &one, false, &one, note ? note : &nothing, which);
}
