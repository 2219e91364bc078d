// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responders without acknowledgements: UC and UD. What they cannot take vanishes. UD leaves 40 bytes for the GRH in
 * front of every payload. Under both locks of the QP that receives.
 */
#include <string.h>

#include "softhca/device/queues/flush.h"
#include "softhca/device/queues/qp_halves.h"
#include "receive.h"
#include "responder.h"

#define GRH_VERSION	(6u << 28)
#define GRH_NEXT_IBA	0x1b
#define BTH_LEN		12
#define DETH_LEN	8
#define IMM_LEN		4
#define ICRC_LEN	4

struct wire_grh {
	__be32 version_class_flow;
	__be16 payload_len;
	__u8 next_header;
	__u8 hop_limit;
	__u8 sgid[16];
	__u8 dgid[16];
};
_Static_assert(sizeof(struct wire_grh) == SH_GRH_LEN, "global route header");

/* ---- UC ---- */

/* The message in progress is lost. An RQ's WQE serves the next one; an SRQ's cannot be given back. */
static void abandon(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	if (qp->cur_wqe && qp->cur_srqn)
		sh_recv_abort(dev, hca, qp, MLX4_SYNDROME_REM_ABORT, SH_VENDOR_NONE);
	qp->cur_op = SH_RECV_NONE;
}

static void uc_send(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p,
		    struct sh_packet *resp)
{
	bool first = p->flags & SH_PKT_FIRST;
	uint64_t len = p->payload.len, done = first ? 0 : qp->cur_done;
	struct sh_sge sge[MLX4_MAX_SGE];
	struct sh_seg seg[MLX4_MAX_SGE];
	struct sh_recv r;
	uint32_t ctx = 0;
	int n, nseg = 0;

	/* A WQE that a lost message left behind is the first to be used. */
	if (qp->cur_wqe) {
		sh_recv_resume(&r, dev, hca, qp);
	} else {
		if (sh_recv_begin(&r, dev, hca, qp, 0)) {
			SH_COUNT(hca, drops_no_wqe, p->npackets);
			return;
		}
		if (sh_recv_take(&r, hca, qp)) {
			SH_COUNT(hca, drops_no_wqe, p->npackets);
			goto drop;
		}
		sh_recv_keep(&r, hca, qp);
	}
	n = sh_recv_scatter(&r, dev, hca, qp, sge, MLX4_MAX_SGE);
	if (n < 0)
		goto lost;
	if (len)
		nseg = sh_mr_slice(dev, hca, r.pdn, SH_LOCAL_WRITE, sge, n, done, len, seg, MLX4_MAX_SGE, &ctx);
	if (nseg < 0)
		goto lost;
	if (len) {
		int err = dev->ops->copy(dev->host, ctx, seg, nseg, p->payload.ctx, p->payload.seg, p->payload.nseg, len);

		if (err == SH_COPY_SRC)
			resp->op = SH_PKT_SRC_FAULT;
		if (err)
			goto lost;
	}
	if (p->flags & SH_PKT_LAST) {
		struct sh_cqe cqe = {
			.opcode = p->flags & SH_PKT_IMM ? MLX4_CQE_RECV_SEND_IMM : MLX4_CQE_RECV_SEND,
			.byte_cnt = done + len,
			.imm_be = p->flags & SH_PKT_IMM ? p->imm_be : 0,
			.solicited = !!(p->flags & SH_PKT_SE),
		};
		int err = sh_recv_cqe(&r, dev, hca, qp, &cqe);

		sh_txn_store32(&r.txn, &qp->cur_op, SH_RECV_NONE);
		sh_txn_store32(&r.txn, &qp->cur_wqe, 0);
		sh_recv_commit(&r, dev);
		qp->messages_received++;
		if (err)
			sh_qp_error(dev, hca, qp, SH_QPE_FATAL, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
		return;
	}
	sh_txn_store32(&r.txn, &qp->cur_op, SH_RECV_SEND);
	sh_txn_store32(&r.txn, &qp->cur_done, done + len);
	sh_recv_commit(&r, dev);
	return;
lost:
	SH_COUNT(hca, drops_memory, p->npackets);
	sh_recv_drop(&r, dev);
	abandon(dev, hca, qp);
	return;
drop:
	sh_recv_drop(&r, dev);
	qp->cur_op = SH_RECV_NONE;
}

/* false: the sender may not write there, or it is not there. */
static bool uc_write(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		     const struct sh_packet *p, struct sh_packet *resp)
{
	bool first = p->flags & SH_PKT_FIRST, last = p->flags & SH_PKT_LAST;
	uint64_t len = p->payload.len;
	struct sh_recv r = { 0 };
	uint32_t ctx;

	if (first) {
		if (!(qp->access & SH_REMOTE_WRITE))
			return false;
		qp->cur_va = p->va;
		qp->cur_rkey = p->rkey;
		qp->cur_len = p->dmalen;
		qp->cur_done = 0;
	}
	qp->cur_op = SH_RECV_NONE;
	if (qp->cur_done + len > qp->cur_len || (last && qp->cur_done + len != qp->cur_len))
		return false;
	if (len) {
		uint64_t va = qp->cur_va + qp->cur_done;
		struct sh_seg seg = { .len = len };
		int err;

		if (sh_mr_check(dev, hca->index, qp->cur_rkey, qp->pdn, first ? qp->cur_va : va,
				first ? qp->cur_len : len, SH_REMOTE_WRITE, &ctx))
			return false;
		seg.addr = sh_mr_home(dev, hca->index, qp->cur_rkey, va, len);
		err = dev->ops->copy(dev->host, ctx, &seg, 1, p->payload.ctx, p->payload.seg, p->payload.nseg, len);
		if (err == SH_COPY_SRC)
			resp->op = SH_PKT_SRC_FAULT;
		if (err)
			return false;
	}
	qp->cur_done += len;
	if (!last) {
		qp->cur_op = SH_RECV_WRITE;
		return true;
	}
	if (p->flags & SH_PKT_IMM) {
		struct sh_cqe cqe = {
			.opcode = MLX4_CQE_RECV_RDMA_WRITE_IMM,
			.byte_cnt = qp->cur_len,
			.imm_be = p->imm_be,
			.solicited = !!(p->flags & SH_PKT_SE),
		};
		int err;

		if (qp->cur_wqe) {
			sh_recv_resume(&r, dev, hca, qp);
		} else {
			if (sh_recv_begin(&r, dev, hca, qp, 0)) {
				SH_COUNT(hca, drops_no_wqe, 1);
				return true;
			}
			if (sh_recv_take(&r, hca, qp)) {
				SH_COUNT(hca, drops_no_wqe, 1);
				sh_recv_drop(&r, dev);
				return true;
			}
		}
		err = sh_recv_cqe(&r, dev, hca, qp, &cqe);
		sh_txn_store32(&r.txn, &qp->cur_wqe, 0);
		sh_recv_commit(&r, dev);
		if (err)
			sh_qp_error(dev, hca, qp, SH_QPE_FATAL, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
	}
	qp->messages_received++;
	return true;
}

void sh_respond_uc(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port, const struct sh_packet *p,
		   struct sh_packet *resp)
{
	enum sh_recv_op op = p->op == SH_PKT_WRITE ? SH_RECV_WRITE : SH_RECV_SEND;
	bool first = p->flags & SH_PKT_FIRST;

	if (sh_qp_lock_both(dev, qp))
		return;
	if (!sh_receive_ok(dev, hca, qp, port, p))
		goto out;
	if (p->op != SH_PKT_WRITE && p->op != SH_PKT_SEND)
		goto out;
	/* Anything but the next packet of the message in progress ends it. */
	if (qp->cur_op != SH_RECV_NONE && (first || p->psn != qp->e_psn || op != qp->cur_op))
		abandon(dev, hca, qp);
	qp->e_psn = sh_psn_add(p->psn, p->npackets);
	if (!first && qp->cur_op == SH_RECV_NONE) {
		SH_COUNT(hca, out_of_sequence, p->npackets);
		goto out;
	}
	if (op == SH_RECV_SEND)
		uc_send(dev, hca, qp, p, resp);
	else if (!uc_write(dev, hca, qp, p, resp))
		SH_COUNT(hca, drops_memory, p->npackets);
out:
	sh_qp_unlock_both(dev, qp);
}

/* ---- UD ---- */

static void make_grh(const struct sh_packet *p, struct wire_grh *g)
{
	uint32_t len = BTH_LEN + DETH_LEN + (p->flags & SH_PKT_IMM ? IMM_LEN : 0) + ((p->payload.len + 3) & ~3u) + ICRC_LEN;

	g->version_class_flow = to_be32(GRH_VERSION | (uint32_t)p->grh.traffic_class << 20 |
					(p->grh.flow_label & 0xfffff));
	g->payload_len = to_be16(len);
	g->next_header = GRH_NEXT_IBA;
	g->hop_limit = p->grh.hop_limit;
	memcpy(g->sgid, p->grh.sgid, 16);
	memcpy(g->dgid, p->grh.dgid, 16);
}

/* Put the GRH and the payload where they belong: 0, a syndrome, or -1 when the packet is to be forgotten. */
static int ud_place(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		    const struct sh_packet *p, struct sh_packet *resp)
{
	uint64_t len = p->payload.len, room = 0;
	struct sh_sge sge[MLX4_MAX_SGE];
	struct sh_seg seg[MLX4_MAX_SGE];
	uint32_t ctx;
	int n, nsge, err;

	nsge = sh_recv_scatter(r, dev, hca, qp, sge, MLX4_MAX_SGE);
	if (nsge < 0)
		return MLX4_SYNDROME_LOC_PROT;
	for (int i = 0; i < nsge; i++)
		room += sge[i].len;
	if (room < SH_GRH_LEN + len)
		return MLX4_SYNDROME_LOC_LEN;
	if (p->flags & SH_PKT_GRH) {
		struct wire_grh grh;
		struct sh_seg src = { (uintptr_t)&grh, sizeof(grh) };

		n = sh_mr_slice(dev, hca, r->pdn, SH_LOCAL_WRITE, sge, nsge, 0, SH_GRH_LEN, seg, MLX4_MAX_SGE, &ctx);
		if (n < 0)
			return MLX4_SYNDROME_LOC_PROT;
		make_grh(p, &grh);
		if (dev->ops->copy(dev->host, ctx, seg, n, 0, &src, 1, sizeof(grh)))
			return sh_ctx_live(dev, ctx) ? MLX4_SYNDROME_LOC_PROT : -1;
	}
	if (!len)
		return 0;
	n = sh_mr_slice(dev, hca, r->pdn, SH_LOCAL_WRITE, sge, nsge, SH_GRH_LEN, len, seg, MLX4_MAX_SGE, &ctx);
	if (n < 0)
		return MLX4_SYNDROME_LOC_PROT;
	err = dev->ops->copy(dev->host, ctx, seg, n, p->payload.ctx, p->payload.seg, p->payload.nseg, len);
	if (err == SH_COPY_SRC)
		resp->op = SH_PKT_SRC_FAULT;
	if (err)
		return err == SH_COPY_DST && sh_ctx_live(dev, ctx) ? MLX4_SYNDROME_LOC_PROT : -1;
	return 0;
}

static void ud_receive(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		       const struct sh_packet *p, struct sh_packet *resp)
{
	struct sh_cqe cqe = {
		.opcode = p->flags & SH_PKT_IMM ? MLX4_CQE_RECV_SEND_IMM : MLX4_CQE_RECV_SEND,
		.imm_be = p->flags & SH_PKT_IMM ? p->imm_be : 0,
		.srqn_srcqp = p->srcqp & MLX4_QPN_MASK,
		.sl_vid = p->sl << MLX4_CQE_SL_SHIFT,
		.slid = p->slid,
		.byte_cnt = SH_GRH_LEN + p->payload.len,
		.solicited = !!(p->flags & SH_PKT_SE),
	};
	struct sh_recv r;
	int bad, err;

	if (sh_recv_begin(&r, dev, hca, qp, 0)) {
		SH_COUNT(hca, drops_no_wqe, 1);
		return;
	}
	if (sh_recv_take(&r, hca, qp)) {
		sh_recv_drop(&r, dev);
		SH_COUNT(hca, drops_no_wqe, 1);
		return;
	}
	bad = ud_place(&r, dev, hca, qp, p, resp);
	if (bad < 0) {
		SH_COUNT(hca, drops_memory, 1);
		sh_recv_drop(&r, dev);
		return;
	}
	if (bad) {
		cqe = (struct sh_cqe){ .opcode = MLX4_CQE_ERROR, .syndrome = bad };
	} else {
		if (p->flags & SH_PKT_GRH)
			cqe.srqn_srcqp |= MLX4_CQE_GRH;
		if (p->dqpn != MLX4_MULTICAST_QPN)
			cqe.srqn_srcqp |= (p->dlid & ((1u << (hca->port[port - 1].lmc & 7)) - 1))
					  << MLX4_CQE_PATH_SHIFT;
	}
	err = sh_recv_cqe(&r, dev, hca, qp, &cqe);
	sh_recv_commit(&r, dev);
	if (err)
		sh_qp_error(dev, hca, qp, SH_QPE_FATAL, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
	else if (bad)
		sh_qp_error(dev, hca, qp, SH_QPE_NONE, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
	else
		qp->messages_received++;
}

void sh_respond_ud(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port, const struct sh_packet *p,
		   struct sh_packet *resp)
{
	if (sh_qp_lock_both(dev, qp))
		return;
	if (sh_receive_ok(dev, hca, qp, port, p)) {
		if (qp->qkey != p->qkey)
			SH_COUNT(hca, drops_qkey, 1);
		else
			ud_receive(dev, hca, qp, port, p, resp);
	}
	sh_qp_unlock_both(dev, qp);
}
