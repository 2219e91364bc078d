/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What packets a WQE makes: whether it may start and is well formed, where its bytes are, whom it
 * goes to, and which part of it is the next run. For requester.c alone: inline, since each message
 * comes here. It sends nothing. The caller holds the requester's lock.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_REQUESTER_PACKETS_H
#define SOFTHCA_DEVICE_TRANSPORT_REQUESTER_PACKETS_H

#include <string.h>

#include "softhca/device/queues/path.h"
#include "softhca/device/queues/qp_halves.h"
#include "express.h"
#include "wire.h"

#define RUN_BYTES   (8u << 20) /* the longest run, so that a lock is not held for too long */
#define PSN_WINDOW  (1 << 22)  /* PSNs in flight; must stay far below half the circle */
#define MAX_MESSAGE (UINT64_C(1) << 30)

/* A turn of the engine. */
struct run {
	struct sh_dev *dev;
	struct sh_hca *hca;
	struct sh_qp *qp;
	uint32_t token, gen;
	struct sh_packet p, resp;
	struct sh_seg seg[SH_MAX_SEGS], resp_seg[SH_MAX_SEGS];
	struct sh_wqe wqe; /* its index is valid while cached is */
	bool cached;
	unsigned int held; /* messages since the lock was last released */
	struct sh_express express;
	unsigned int unusual; /* RUN_LEFT, RUN_ON_WIRE, RUN_LATE */
	uint64_t waited;      /* what had waited in this turn before (wire.h) */
};

#define RUN_LEFT    1u /* the wire's engine goes on with this queue */
#define RUN_ON_WIRE 2u /* this is the wire's engine */
#define RUN_LATE    4u /* what a timer was to do has been done */

/* May the WQE at sq_next start now? If ordering or depth forbid it, that is no error. */
static bool may_start(const struct sh_qp *qp, const struct sh_wqe *wqe)
{
	uint32_t depth = qp->max_rd_atomic ? qp->max_rd_atomic : 1;

	if (wqe->fence && qp->rd_out)
		return false;
	if (wqe->strong && qp->sq_una != qp->sq_next)
		return false;
	if (sh_wqe_is_fetch(wqe) && qp->rd_out >= depth)
		return false;
	return qp->sq_una == qp->sq_next ||
	       sh_psn_diff(qp->next_psn, qp->ack_psn) + (int32_t)sh_wqe_packets(qp, wqe) <
		       PSN_WINDOW;
}

/* Is the address of a datagram one of the QP's PD, for the QP's port? Other services have none. */
static inline bool address_fits(const struct sh_qp *qp, const struct sh_wqe *wqe)
{
	return qp->type != SH_QPT_UD || (wqe->av_pd == qp->pdn && wqe->av_port == qp->port);
}

/* What is wrong with a WQE, in its form (wqe->bad) or otherwise: a syndrome, 0 = nothing is. */
static uint8_t check_wqe(const struct sh_qp *qp, const struct sh_wqe *wqe)
{
	if (wqe->bad)
		return wqe->bad;
	if (!address_fits(qp, wqe))
		return MLX4_SYNDROME_LOC_QP_OP;
	if (wqe->is_inline && sh_wqe_is_fetch(wqe))
		return MLX4_SYNDROME_LOC_QP_OP;
	if (wqe->length > (qp->type == SH_QPT_UD ? sh_qp_mtu(qp) : MAX_MESSAGE))
		return MLX4_SYNDROME_LOC_LEN;
	if (sh_wqe_is_atomic(wqe) && wqe->length != sizeof(uint64_t))
		return MLX4_SYNDROME_LOC_LEN;
	return 0;
}

/* Locates the pieces of a list. Returns what locate() returns. */
SH_OUTLINE uint8_t locate_list(struct run *r, uint64_t off, uint64_t len, uint32_t access,
			       struct sh_payload *out)
{
	const struct sh_wqe *wqe = &r->wqe;
	int n;

	if (wqe->is_inline) {
		struct sh_seg all[SH_MAX_SEGS];
		struct sh_payload data = {.nseg = wqe->nsge, .seg = all, .len = wqe->length};

		for (unsigned int i = 0; i < wqe->nsge; i++) {
			all[i].addr = wqe->sge[i].addr;
			all[i].len = wqe->sge[i].len;
		}
		sh_payload_slice(&data, off, len, out, r->seg);
		return 0;
	}
	n = sh_mr_slice(r->dev, r->hca, r->qp->pdn, access, wqe->sge, wqe->nsge, off, len, r->seg,
			SH_MAX_SEGS, &out->ctx);
	if (n < 0)
		return MLX4_SYNDROME_LOC_PROT;
	out->nseg = n;
	return 0;
}

/* Finds where the bytes [off, off+len) of the WQE's data are. Returns a syndrome, 0 = found. */
static inline uint8_t locate(struct run *r, uint64_t off, uint64_t len, uint32_t access,
			     struct sh_payload *out)
{
	const struct sh_wqe *wqe = &r->wqe;

	out->ctx = 0;
	out->nseg = 0;
	out->seg = r->seg;
	out->len = len;
	if (!len)
		return 0;
	if (wqe->nsge != 1 || off || len != wqe->sge[0].len)
		return locate_list(r, off, len, access, out);
	out->nseg = 1;
	if (wqe->is_inline)
		r->seg[0] = (struct sh_seg){wqe->sge[0].addr, len};
	else if (sh_mr_locate(r->dev, r->hca, r->qp->pdn, access, &wqe->sge[0], &r->seg[0],
			      &out->ctx))
		return MLX4_SYNDROME_LOC_PROT;
	return 0;
}

SH_OUTLINE void address_datagram(struct run *r, const struct sh_port *port)
{
	struct sh_packet *p = &r->p;
	const struct sh_wqe *wqe = &r->wqe;

	p->slid = port->lid | wqe->path_bits;
	p->dlid = wqe->dlid;
	p->sl = wqe->sl;
	p->dqpn = wqe->dqpn;
	p->qkey = wqe->qkey & 0x80000000u ? r->qp->qkey : wqe->qkey;
	if (wqe->grh) {
		p->flags |= SH_PKT_GRH;
		memcpy(p->grh.sgid, port->gid[wqe->gid_index % SH_GIDS], 16);
		memcpy(p->grh.dgid, wqe->dgid, 16);
		if (p->dlid < SH_LID_GROUPS)
			p->dlid = sh_wire_dlid(r->dev, p->dlid, wqe->dgid);
		p->grh.flow_label = wqe->flow_label;
		p->grh.traffic_class = wqe->traffic_class;
		p->grh.hop_limit = wqe->hop_limit;
	}
}

static inline void address(struct run *r)
{
	struct sh_packet *p = &r->p;
	const struct sh_qp *qp = r->qp;
	const struct sh_port *port = &r->hca->port[(qp->port - 1u) % SH_MAX_PORTS];

	p->src_hca = r->hca->index;
	p->srcqp = qp->qpn;
	p->src_gen = qp->gen;
	p->src_port = qp->port;
	p->pkey = sh_qp_pkey(r->hca, qp);
	if (qp->type == SH_QPT_UD) {
		address_datagram(r, port);
		return;
	}
	p->slid = port->lid | qp->path.src_path_bits;
	p->dlid = qp->path.dlid;
	p->sl = qp->path.sl;
	p->dqpn = qp->dest_qpn;
	p->srqn = r->wqe.srqn;
}

static uint8_t service_of(const struct sh_qp *qp)
{
	switch (qp->type) {
	case SH_QPT_RC:
		return SH_SVC_RC;
	case SH_QPT_UC:
		return SH_SVC_UC;
	case SH_QPT_UD:
		return SH_SVC_UD;
	default:
		return SH_SVC_XRC;
	}
}

static uint8_t packet_op(uint8_t opcode)
{
	switch (opcode) {
	case MLX4_OPCODE_RDMA_WRITE:
	case MLX4_OPCODE_RDMA_WRITE_IMM:
		return SH_PKT_WRITE;
	case MLX4_OPCODE_RDMA_READ:
		return SH_PKT_READ;
	case MLX4_OPCODE_ATOMIC_CS:
		return SH_PKT_CS;
	case MLX4_OPCODE_ATOMIC_FA:
		return SH_PKT_FA;
	default:
		return SH_PKT_SEND;
	}
}

/* Is the WQE in order, and one packet of a SEND or WRITE? Nearly all are. */
static inline bool is_one_packet(const struct sh_qp *qp, const struct sh_wqe *wqe)
{
	const uint32_t opcodes = 1u << MLX4_OPCODE_SEND | 1u << MLX4_OPCODE_SEND_IMM |
				 1u << MLX4_OPCODE_RDMA_WRITE | 1u << MLX4_OPCODE_RDMA_WRITE_IMM;

	return !wqe->bad && opcodes >> wqe->opcode & 1 && wqe->length <= sh_qp_mtu(qp) &&
	       address_fits(qp, wqe);
}

/* Does what this thread builds go over the wire, whose other end places it? */
static bool leaves_now(const struct run *r)
{
	return r->dev->wire && sh_wire_leads(r->dev, r->qp->path.dlid);
}

/*
 * Makes the next packets of the WQE at sq_next one run in r->p, and sets the state as if they were
 * sent. A syndrome, 0 = ok. one: the caller knows by is_one_packet() that it is one packet, which
 * makes this a third of the work.
 */
SH_INLINE uint8_t build_as(struct run *r, bool one)
{
	struct sh_qp *qp = r->qp;
	const struct sh_wqe *wqe = &r->wqe;
	struct sh_packet *p = &r->p;
	uint32_t mtu = sh_qp_mtu(qp), npkt, first, n;
	bool last = true, fetch = !one && sh_wqe_is_fetch(wqe);
	uint64_t off, left, len;
	uint8_t bad;

	sh_packet_init(p);
	p->op = packet_op(wqe->opcode);
	p->service = service_of(qp);
	p->mtu = mtu;
	p->psn = qp->next_psn;
	npkt = one ? 1 : sh_wqe_packets(qp, wqe);
	first = one ? 0 : sh_psn_diff(qp->next_psn, qp->next_wqe_psn);
	off = (uint64_t)first * mtu;
	left = wqe->length > off ? wqe->length - off : 0;
	n = npkt - first;
	len = left;
	if (fetch) {
		bad = locate(r, off, len, SH_LOCAL_WRITE, &p->payload);
		if (bad)
			return bad;
		memset(&p->payload, 0, sizeof(p->payload));
		p->npackets = 1;
		p->flags = SH_PKT_FIRST | SH_PKT_LAST | SH_PKT_ACKREQ;
		p->dmalen = left;
		p->swap_add = wqe->swap_add;
		p->compare = wqe->compare;
	} else {
		if (!one && left > RUN_BYTES) {
			n = RUN_BYTES / mtu;
			len = RUN_BYTES;
			last = false;
		} else if (!one && n > 1 && left > SH_SHORT && p->op == SH_PKT_WRITE &&
			   sh_qp_is_reliable(qp) && !leaves_now(r)) {
			/*
			 * The last packet travels alone: if the receiver's memory is not device
			 * memory, this thread copies it pinned (life.h).
			 */
			n--;
			len = (uint64_t)n * mtu;
			last = false;
		}
		bad = locate(r, off, len, 0, &p->payload);
		if (bad)
			return bad;
		p->npackets = n;
		p->dmalen = wqe->length;
		p->flags = SH_PKT_ACKREQ | (off ? 0 : SH_PKT_FIRST);
		if (last) {
			p->flags |= SH_PKT_LAST;
			if (wqe->opcode == MLX4_OPCODE_SEND_IMM ||
			    wqe->opcode == MLX4_OPCODE_RDMA_WRITE_IMM) {
				p->flags |= SH_PKT_IMM;
				p->imm_be = wqe->imm_be;
			}
			if (wqe->solicited && wqe->opcode != MLX4_OPCODE_RDMA_WRITE)
				p->flags |= SH_PKT_SE;
		}
	}
	p->va = wqe->raddr + (p->op == SH_PKT_READ ? off : 0);
	p->rkey = wqe->rkey;
	address(r);

	if (fetch)
		qp->rd_out++;
	if ((int32_t)(qp->sq_begun - qp->sq_next) <= 0)
		qp->sq_begun = qp->sq_next + 1;
	qp->next_psn = sh_psn_add(qp->next_psn, n);
	if (sh_psn_diff(qp->next_psn, qp->sent_psn) > 0)
		qp->sent_psn = qp->next_psn;
	if (last) {
		qp->sq_next++;
		qp->next_wqe_psn = qp->next_psn;
	}
	return 0;
}

SH_OUTLINE uint8_t build(struct run *r)
{
	sh_rearm();
	return build_as(r, false);
}

#endif
