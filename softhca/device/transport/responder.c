// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder of acknowledged transports (RC, XRC): checks a request in the order of the InfiniBand rules, executes
 * it and answers. Runs in whatever process the packet came from, under both locks of the QP that it is for. Payload is
 * placed first and the step of the QP committed after, so that a sender killed in between has not sent the packet.
 */
#include <errno.h>

#include "softhca/device/queues/flush.h"
#include "softhca/device/queues/qp_halves.h"
#include "fabric.h"
#include "receive.h"
#include "responder.h"
#include "timer.h"

#define ONE_STEP_MAX	(8u << 10)	/* above this a SEND does not keep its SRQ locked while it is copied */
#define MAX_MESSAGE	(UINT64_C(1) << 31)

static bool service_fits(const struct sh_qp *qp, uint8_t service)
{
	switch (service) {
	case SH_SVC_RC:
		return qp->type == SH_QPT_RC;
	case SH_SVC_UC:
		return qp->type == SH_QPT_UC;
	case SH_SVC_UD:
		return qp->type == SH_QPT_UD;
	default:
		return qp->type == SH_QPT_XRC || qp->type == SH_QPT_XRC_TGT;
	}
}

static bool lid_is(const struct sh_dev *dev, uint16_t slid, uint16_t dlid)
{
	uint32_t hca[2], port[2];

	if (slid == dlid)
		return true;
	/* Path bits may differ: one port either way. */
	return sh_lid_lookup(dev, slid, &hca[0], &port[0]) && sh_lid_lookup(dev, dlid, &hca[1], &port[1]) &&
	       hca[0] == hca[1] && port[0] == port[1];
}

/* Did the packet come in where this path of a QP ends, and from where it begins? */
static bool on_path(const struct sh_dev *dev, const struct sh_qp *qp, uint32_t at, uint32_t port, const struct sh_packet *p,
		    const struct sh_path *path)
{
	return at == port && (qp->type == SH_QPT_UD || lid_is(dev, p->slid, path->dlid));
}

static uint16_t alt_pkey(const struct sh_hca *hca, const struct sh_qp *qp)
{
	return hca->port[(qp->alt_port - 1) % SH_MAX_PORTS].pkey[qp->alt_pkey_index % SH_PKEYS];
}

bool sh_receive_ok(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port, const struct sh_packet *p)
{
	bool migrate;

	if (qp->silent || qp->qpn != (p->dqpn == MLX4_MULTICAST_QPN ? qp->qpn : p->dqpn) ||
	    !service_fits(qp, p->service) || (qp->ctx && !sh_ctx_live(dev, qp->ctx))) {
		SH_COUNT(hca, drops_no_qp, p->npackets);
		return false;
	}
	if (qp->state < SH_QPS_RTR || qp->state == SH_QPS_ERR) {
		SH_COUNT(hca, drops_state, p->npackets);
		return false;
	}
	migrate = false;
	if (!on_path(dev, qp, port, qp->port, p, &qp->path)) {
		migrate = qp->mig_state == SH_MIG_ARMED && on_path(dev, qp, port, qp->alt_port, p, &qp->alt_path);
		if (!migrate) {
			SH_COUNT(hca, drops_path, p->npackets);
			return false;
		}
	}
	if (!sh_pkey_match(p->pkey, migrate ? alt_pkey(hca, qp) : sh_qp_pkey(hca, qp))) {
		SH_COUNT(hca, drops_pkey, p->npackets);
		return false;
	}
	if (qp->type == SH_QPT_UD)
		return true;
	if (migrate)
		sh_migrate(dev, hca, qp);
	if (qp->state == SH_QPS_RTR && !qp->comm_est) {
		struct sh_door *door = sh_pin();

		qp->comm_est = 1;
		sh_qp_event(dev, hca, qp, SH_QPE_COMM_EST);
		sh_unpin(door);
	}
	return true;
}

void sh_nak(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, struct sh_packet *resp, uint8_t syndrome)
{
	(void)dev;
	SH_COUNT(hca, naks_sent, 1);
	sh_aeth(resp, qp->e_psn, syndrome, qp->msn);
}

/* A request that no requester should have sent. */
static void invalid(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, struct sh_packet *resp)
{
	sh_nak(dev, hca, qp, resp, SH_AETH_NAK_REQ);
	sh_qp_error(dev, hca, qp, SH_QPE_REQ_ERR, MLX4_SYNDROME_REM_INVAL_REQ, SH_VENDOR_REM_INV);
}

static void forbidden(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, struct sh_packet *resp)
{
	sh_nak(dev, hca, qp, resp, SH_AETH_NAK_ACCESS);
	sh_qp_error(dev, hca, qp, SH_QPE_ACCESS_ERR, MLX4_SYNDROME_LOC_ACCESS, SH_VENDOR_NONE);
}

static void not_ready(struct sh_hca *hca, struct sh_qp *qp, struct sh_packet *resp)
{
	SH_COUNT(hca, rnr_naks_sent, 1);
	qp->nak_sent = 1;
	sh_aeth(resp, qp->e_psn, SH_AETH_RNR | (qp->min_rnr_timer & 0x1f), qp->msn);
}

/* The lengths that First, Middle, Last and Only packets may have. */
static bool length_fits(const struct sh_qp *qp, const struct sh_packet *p)
{
	uint64_t mtu = sh_qp_mtu(qp), full = p->npackets * mtu, len = p->payload.len;
	bool only = p->npackets == 1 && (p->flags & (SH_PKT_FIRST | SH_PKT_LAST)) == (SH_PKT_FIRST | SH_PKT_LAST);

	if (!(p->flags & SH_PKT_LAST))
		return len == full;
	return len <= full && (only || len > full - mtu);
}

/* The WQE of this message completes in error, and the QP ends. */
static void receive_failed(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
			   uint8_t syndrome)
{
	struct sh_cqe cqe = { .opcode = MLX4_CQE_ERROR, .syndrome = syndrome };

	if (r->have) {
		sh_recv_cqe(r, dev, hca, qp, &cqe);
		sh_txn_store32(&r->txn, &qp->cur_op, SH_RECV_NONE);
		sh_txn_store32(&r->txn, &qp->cur_wqe, 0);
		sh_recv_commit(r, dev);
	} else {
		sh_recv_drop(r, dev);
	}
	sh_qp_error(dev, hca, qp, SH_QPE_NONE, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
}

static void acknowledge(struct sh_qp *qp, const struct sh_packet *p, struct sh_packet *resp)
{
	if (p->flags & SH_PKT_ACKREQ)
		sh_aeth(resp, sh_psn_add(qp->e_psn, SH_PSN_MASK), SH_AETH_ACK, qp->msn);
}

static void store_psn(struct sh_txn_open *t, struct sh_qp *qp, const struct sh_packet *p)
{
	sh_txn_store32(t, &qp->e_psn, sh_psn_add(p->psn, p->npackets));
	if (p->flags & SH_PKT_LAST)
		sh_txn_store32(t, &qp->msn, sh_psn_add(qp->msn, 1));
}

/* A message is complete with a CQE: commit. The CQ may turn out to be full. */
static void finish(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		   const struct sh_packet *p, struct sh_cqe *cqe, struct sh_packet *resp)
{
	int err;

	if (p->flags & SH_PKT_IMM)
		cqe->imm_be = p->imm_be;
	cqe->solicited = !!(p->flags & SH_PKT_SE);
	err = sh_recv_cqe(r, dev, hca, qp, cqe);
	sh_txn_store_two(&r->txn, &qp->cur_op, SH_RECV_NONE, 0);
	if (!err)
		store_psn(&r->txn, qp, p);
	sh_recv_commit(r, dev);
	if (err) {
		sh_nak(dev, hca, qp, resp, SH_AETH_NAK_OP);
		sh_qp_error(dev, hca, qp, SH_QPE_FATAL, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
		return;
	}
	qp->messages_received++;
	acknowledge(qp, p, resp);
}

/* No receive can be had: what the requester hears. */
static void none_taken(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		       struct sh_packet *resp, int err)
{
	sh_recv_drop(r, dev);
	if (err == -ENOENT) {
		not_ready(hca, qp, resp);
		return;
	}
	sh_nak(dev, hca, qp, resp, SH_AETH_NAK_OP);
	sh_qp_error(dev, hca, qp, SH_QPE_FATAL, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
}

static void respond_send(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p,
			 struct sh_packet *resp)
{
	bool first = p->flags & SH_PKT_FIRST, started = qp->cur_op == SH_RECV_SEND;
	uint64_t len = p->payload.len, done = first ? 0 : qp->cur_done, room = 0;
	struct sh_sge sge[MLX4_MAX_SGE];
	struct sh_seg seg[MLX4_MAX_SGE];
	struct sh_recv r;
	uint32_t ctx = 0;
	int err, n, nseg = 0;

	/* A first packet may come again when its copy was cut short; its WQE is taken already. */
	if (first ? qp->cur_op != SH_RECV_NONE && !(started && !qp->cur_done) : !started) {
		invalid(dev, hca, qp, resp);
		return;
	}
	if (!length_fits(qp, p) || done + len > MAX_MESSAGE) {
		invalid(dev, hca, qp, resp);
		return;
	}
	if (started) {
		sh_recv_resume(&r, dev, hca, qp);
	} else {
		err = sh_recv_begin(&r, dev, hca, qp, p->srqn);
		if (err) {
			if (err != -ENODEV)
				invalid(dev, hca, qp, resp);
			else
				SH_COUNT(hca, drops_no_wqe, p->npackets);
			return;
		}
		err = sh_recv_take(&r, hca, qp);
		if (err) {
			none_taken(&r, dev, hca, qp, resp, err);
			return;
		}
	}
	n = sh_recv_scatter(&r, dev, hca, qp, sge, MLX4_MAX_SGE);
	for (int i = 0; i < n; i++)
		room += sge[i].len;
	if (n >= 0 && done + len > room) {
		sh_nak(dev, hca, qp, resp, SH_AETH_NAK_REQ);
		receive_failed(&r, dev, hca, qp, MLX4_SYNDROME_LOC_LEN);
		return;
	}
	if (n >= 0 && len)
		nseg = sh_mr_slice(dev, hca, r.pdn, SH_LOCAL_WRITE, sge, n, done, len, seg, MLX4_MAX_SGE, &ctx);
	if (n < 0 || nseg < 0) {
		sh_nak(dev, hca, qp, resp, SH_AETH_NAK_OP);
		receive_failed(&r, dev, hca, qp, MLX4_SYNDROME_LOC_PROT);
		return;
	}
	if (!started && len > ONE_STEP_MAX)
		sh_recv_keep(&r, hca, qp);
	if (len) {
		err = dev->ops->copy(dev->host, ctx, seg, nseg, p->payload.ctx, p->payload.seg, p->payload.nseg, len);
		if (err == SH_COPY_DST && sh_ctx_live(dev, ctx)) {
			sh_nak(dev, hca, qp, resp, SH_AETH_NAK_OP);
			receive_failed(&r, dev, hca, qp, MLX4_SYNDROME_LOC_PROT);
			return;
		}
		if (err) {
			sh_recv_drop(&r, dev);
			if (err == SH_COPY_SRC)
				resp->op = SH_PKT_SRC_FAULT;
			else
				SH_COUNT(hca, drops_memory, p->npackets);
			return;
		}
	}
	if (p->flags & SH_PKT_LAST) {
		struct sh_cqe cqe = {
			.opcode = p->flags & SH_PKT_IMM ? MLX4_CQE_RECV_SEND_IMM : MLX4_CQE_RECV_SEND,
			.byte_cnt = done + len,
		};

		finish(&r, dev, hca, qp, p, &cqe, resp);
		return;
	}
	sh_txn_store32(&r.txn, &qp->cur_op, SH_RECV_SEND);
	sh_txn_store32(&r.txn, &qp->cur_wqe, r.index + 1);
	sh_txn_store32(&r.txn, &qp->cur_srqn, r.srqn);
	sh_txn_store32(&r.txn, &qp->cur_done, done + len);
	store_psn(&r.txn, qp, p);
	sh_recv_commit(&r, dev);
	acknowledge(qp, p, resp);
}

/* The RETH of a WRITE's first packet, checked whole. false: answered. */
static bool write_starts(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p,
			 struct sh_packet *resp)
{
	if (!(qp->access & SH_REMOTE_WRITE) || p->dmalen > MAX_MESSAGE) {
		invalid(dev, hca, qp, resp);
		return false;
	}
	return true;
}

static void respond_write(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p,
			  struct sh_packet *resp)
{
	bool first = p->flags & SH_PKT_FIRST, last = p->flags & SH_PKT_LAST;
	bool notify = last && p->flags & SH_PKT_IMM;
	uint64_t len = p->payload.len, done, total, va;
	uint32_t rkey, pdn, ctx = 0;
	struct sh_recv r;
	int err;

	if (first ? qp->cur_op != SH_RECV_NONE : qp->cur_op != SH_RECV_WRITE) {
		invalid(dev, hca, qp, resp);
		return;
	}
	if (first && !write_starts(dev, hca, qp, p, resp))
		return;
	done = first ? 0 : qp->cur_done;
	total = first ? p->dmalen : qp->cur_len;
	va = first ? p->va : qp->cur_va;
	rkey = first ? p->rkey : qp->cur_rkey;
	if (!length_fits(qp, p) || (last ? done + len != total : done + len >= total) ||
	    sh_rkey_pd(hca, qp, p, &pdn)) {
		invalid(dev, hca, qp, resp);
		return;
	}
	if (notify) {
		err = sh_recv_begin(&r, dev, hca, qp, p->srqn);
		if (err) {
			if (err != -ENODEV)
				invalid(dev, hca, qp, resp);
			else
				SH_COUNT(hca, drops_no_wqe, p->npackets);
			return;
		}
		err = sh_recv_take(&r, hca, qp);
		if (err) {
			none_taken(&r, dev, hca, qp, resp, err);
			return;
		}
	} else {
		r = (struct sh_recv){ 0 };
		sh_qp_txn(&r.txn, dev, qp);
	}
	err = first ? total && sh_mr_check(dev, hca->index, rkey, pdn, va, total, SH_REMOTE_WRITE, &ctx) : 0;
	if (!err && !first && len)
		err = sh_mr_check(dev, hca->index, rkey, pdn, va + done, len, SH_REMOTE_WRITE, &ctx);
	if (err) {
		sh_recv_drop(&r, dev);
		forbidden(dev, hca, qp, resp);
		return;
	}
	if (len) {
		struct sh_seg seg = { sh_mr_home(dev, hca->index, rkey, va + done, len), len };

		err = dev->ops->copy(dev->host, ctx, &seg, 1, p->payload.ctx, p->payload.seg, p->payload.nseg, len);
		if (err) {
			sh_recv_drop(&r, dev);
			if (err == SH_COPY_SRC)
				resp->op = SH_PKT_SRC_FAULT;
			else if (err == SH_COPY_DST && sh_ctx_live(dev, ctx))
				forbidden(dev, hca, qp, resp);
			else
				SH_COUNT(hca, drops_memory, p->npackets);
			return;
		}
	}
	if (notify) {
		struct sh_cqe cqe = { .opcode = MLX4_CQE_RECV_RDMA_WRITE_IMM, .byte_cnt = total };

		finish(&r, dev, hca, qp, p, &cqe, resp);
		return;
	}
	if (last) {
		sh_txn_store32(&r.txn, &qp->cur_op, SH_RECV_NONE);
		qp->messages_received++;
	} else {
		sh_txn_store32(&r.txn, &qp->cur_op, SH_RECV_WRITE);
		sh_txn_store32(&r.txn, &qp->cur_done, done + len);
		sh_txn_store32(&r.txn, &qp->cur_len, total);
		sh_txn_store64(&r.txn, &qp->cur_va, va);
		sh_txn_store32(&r.txn, &qp->cur_rkey, rkey);
	}
	store_psn(&r.txn, qp, p);
	sh_recv_commit(&r, dev);
	acknowledge(qp, p, resp);
}

static void execute(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p,
		    struct sh_packet *resp, struct sh_seg *resp_seg)
{
	struct sh_door *door;

	qp->nak_sent = 0;
	switch (p->op) {
	case SH_PKT_SEND:
		respond_send(dev, hca, qp, p, resp);
		break;
	case SH_PKT_WRITE:
		/* Sent again by a thread that was thrown, it would write over what the receiver has stored there since. */
		door = sh_pin();
		respond_write(dev, hca, qp, p, resp);
		sh_unpin(door);
		break;
	case SH_PKT_READ:
		if (qp->cur_op != SH_RECV_NONE)
			invalid(dev, hca, qp, resp);
		else
			sh_respond_read(dev, hca, qp, p, resp, resp_seg, false);
		break;
	case SH_PKT_CS:
	case SH_PKT_FA:
		if (qp->cur_op != SH_RECV_NONE)
			invalid(dev, hca, qp, resp);
		else
			sh_respond_atomic(dev, hca, qp, p, resp, false);
		break;
	default:
		invalid(dev, hca, qp, resp);
	}
}

/* Behind the expected PSN, by `behind` packets: seen before, wholly or in part. */
static void duplicate(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p,
		      uint32_t behind, struct sh_packet *resp, struct sh_seg *resp_seg)
{
	struct sh_packet rest;
	struct sh_seg seg[SH_MAX_SEGS];
	uint64_t skip;

	SH_COUNT(hca, duplicates, behind < p->npackets ? behind : p->npackets);
	if (p->op == SH_PKT_READ) {
		sh_respond_read(dev, hca, qp, p, resp, resp_seg, true);
		return;
	}
	if (p->op == SH_PKT_CS || p->op == SH_PKT_FA) {
		sh_respond_atomic(dev, hca, qp, p, resp, true);
		return;
	}
	if (behind >= p->npackets) {
		sh_aeth(resp, sh_psn_add(qp->e_psn, SH_PSN_MASK), SH_AETH_ACK, qp->msn);
		return;
	}
	rest = *p;
	rest.psn = qp->e_psn;
	rest.npackets = p->npackets - behind;
	rest.flags &= ~SH_PKT_FIRST;
	skip = (uint64_t)behind * p->mtu;
	sh_payload_slice(&p->payload, skip, p->payload.len - skip, &rest.payload, seg);
	execute(dev, hca, qp, &rest, resp, resp_seg);
}

void sh_respond_reliable(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
			 const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg)
{
	int32_t ahead;

	if (sh_qp_lock_both(dev, qp))
		return;
	if (!sh_receive_ok(dev, hca, qp, port, p)) {
		sh_qp_unlock_both(dev, qp);
		return;
	}
	ahead = sh_psn_diff(p->psn, qp->e_psn);
	if (ahead > 0) {
		SH_COUNT(hca, out_of_sequence, p->npackets);
		if (!qp->nak_sent) {
			qp->nak_sent = 1;
			sh_nak(dev, hca, qp, resp, SH_AETH_NAK_SEQ);
		}
	} else if (ahead < 0) {
		duplicate(dev, hca, qp, p, -ahead, resp, resp_seg);
	} else {
		execute(dev, hca, qp, p, resp, resp_seg);
	}
	sh_qp_unlock_both(dev, qp);
}
