// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responders of the services without acknowledgements, UC and UD. They drop what they cannot
 * take. UD leaves 40 bytes for the GRH in front of every payload. They run under both locks of the
 * receiving QP. The daemon sends datagrams (gsi.h) and waits for no lock, nor for a process that is
 * exchanging pages: for a datagram that finds one in its way, the response says so.
 */
#include <errno.h>

#include "softhca/device/queues/flush.h"
#include "softhca/device/queues/qp_halves.h"
#include "datagram.h"
#include "gsi.h"
#include "place.h"
#include "receive.h"
#include "responder.h"
#include "rules.h"

/* ---- UC ---- */

/*
 * Gives up the message in progress. If its WQE is from the RQ, it serves the next message. A WQE
 * cannot be given back to an SRQ, so it completes in error.
 */
static void abandon(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	if (qp->cur_wqe && qp->cur_srqn)
		sh_recv_abort(dev, hca, qp, MLX4_SYNDROME_REM_ABORT, SH_VENDOR_NONE);
	qp->cur_op = SH_RECV_NONE;
}

/*
 * Commits the CQE of a receive. err: the CQ takes no more. failed: the CQE reports an error. Both
 * move the QP to ERR. The thread is pinned from the commit to that move, because a thrown sender of
 * an unreliable service does not come back to the message.
 */
static void commit(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		   int err, bool failed)
{
	struct sh_door *door;

	if (!err && !failed) {
		sh_recv_commit(r, dev);
		return;
	}
	door = sh_pin();
	sh_recv_commit(r, dev);
	sh_qp_error(dev, hca, qp, err ? SH_QPE_FATAL : SH_QPE_NONE, MLX4_SYNDROME_WR_FLUSH,
		    SH_VENDOR_FLUSH_RQ);
	sh_unpin(door);
}

static void uc_send(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		    const struct sh_packet *p, struct sh_packet *resp)
{
	bool first = p->flags & SH_PKT_FIRST;
	uint64_t len = p->payload.len, done = first ? 0 : qp->cur_done;
	struct sh_recv r;
	int placed;

	/* A lost message may have left its WQE, which is used first. */
	if (qp->cur_wqe) {
		sh_recv_resume(&r, dev, hca, qp);
	} else {
		if (sh_recv_begin(&r, dev, hca, qp, 0)) {
			SH_DROPPED_AT(hca, qp, no_wqe, p->npackets);
			return;
		}
		if (sh_recv_take(&r, hca, qp)) {
			SH_DROPPED_AT(hca, qp, no_wqe, p->npackets);
			goto drop;
		}
		sh_recv_keep(&r, hca, qp);
	}
	placed = sh_recv_place(&r, dev, hca, qp, done, &p->payload);
	if (placed == SH_PLACED_NO_SOURCE)
		resp->op = SH_PKT_SRC_FAULT;
	if (placed)
		goto lost;
	if (p->flags & SH_PKT_LAST) {
		struct sh_cqe cqe = sh_cqe_received(qp, r.srqn, r.index, p->op, p, done + len);
		int err = sh_recv_cqe(&r, dev, hca, qp, &cqe);

		if (err == -EINPROGRESS)
			goto lost;
		sh_txn_store32(&r.txn, &qp->cur_op, SH_RECV_NONE);
		sh_txn_store32(&r.txn, &qp->cur_wqe, 0);
		qp->messages_received++;
		commit(&r, dev, hca, qp, err, false);
		return;
	}
	sh_txn_store32(&r.txn, &qp->cur_op, SH_RECV_SEND);
	sh_txn_store32(&r.txn, &qp->cur_done, done + len);
	sh_recv_commit(&r, dev);
	return;
lost:
	SH_DROPPED_AT(hca, qp, memory, p->npackets);
	sh_recv_give_up(&r, dev);
	abandon(dev, hca, qp);
	return;
drop:
	sh_recv_give_up(&r, dev);
	qp->cur_op = SH_RECV_NONE;
}

/*
 * False: the sender may not write there, memory of either side is not there, or a lock is not to be
 * had.
 */
static bool uc_write(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		     const struct sh_packet *p, struct sh_packet *resp)
{
	bool first = p->flags & SH_PKT_FIRST, last = p->flags & SH_PKT_LAST;
	uint64_t len = p->payload.len;
	struct sh_recv r = {0};
	struct sh_sge place;
	int err;

	if (first) {
		if (!sh_op_allowed(qp, p))
			return false;
		qp->cur_va = p->va;
		qp->cur_rkey = p->rkey;
		qp->cur_len = p->dmalen;
		qp->cur_done = 0;
	}
	qp->cur_op = SH_RECV_NONE;
	if (qp->cur_done + len > qp->cur_len || (last && qp->cur_done + len != qp->cur_len))
		return false;
	place = (struct sh_sge){qp->cur_va + qp->cur_done, (uint32_t)(first ? qp->cur_len : len),
				qp->cur_rkey};
	err = sh_place_at(dev, hca, qp->pdn, SH_REMOTE_WRITE, &place, &p->payload);
	if (err == SH_PLACED_NO_SOURCE)
		resp->op = SH_PKT_SRC_FAULT;
	if (err)
		return false;
	qp->cur_done += len;
	if (!last) {
		qp->cur_op = SH_RECV_WRITE;
		return true;
	}
	if (p->flags & SH_PKT_IMM) {
		struct sh_cqe cqe;

		if (qp->cur_wqe) {
			sh_recv_resume(&r, dev, hca, qp);
		} else {
			if (sh_recv_begin(&r, dev, hca, qp, 0)) {
				SH_DROPPED_AT(hca, qp, no_wqe, 1);
				return true;
			}
			if (sh_recv_take(&r, hca, qp)) {
				SH_DROPPED_AT(hca, qp, no_wqe, 1);
				sh_recv_give_up(&r, dev);
				return true;
			}
		}
		cqe = sh_cqe_received(qp, r.srqn, r.index, p->op, p, qp->cur_len);
		err = sh_recv_cqe(&r, dev, hca, qp, &cqe);
		if (err == -EINPROGRESS) {
			sh_recv_give_up(&r, dev);
			return false;
		}
		sh_txn_store32(&r.txn, &qp->cur_wqe, 0);
		commit(&r, dev, hca, qp, err, false);
	}
	qp->messages_received++;
	return true;
}

void sh_respond_uc(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		   const struct sh_packet *p, struct sh_packet *resp)
{
	enum sh_recv_op op = p->op == SH_PKT_WRITE ? SH_RECV_WRITE : SH_RECV_SEND;
	bool first = p->flags & SH_PKT_FIRST;

	if (sh_qp_lock_both(dev, qp)) {
		SH_DROPPED_AT(hca, qp, memory, p->npackets);
		return;
	}
	if (!sh_receive_ok(dev, hca, qp, port, p))
		goto out;
	if (p->op != SH_PKT_WRITE && p->op != SH_PKT_SEND)
		goto out;
	/* Anything but the next packet of the message in progress ends it. */
	if (!sh_between_messages(qp) && (first || sh_ahead(qp, 0, p) || op != qp->cur_op))
		abandon(dev, hca, qp);
	sh_expect_after(qp, p);
	if (!first && sh_between_messages(qp)) {
		SH_COUNT(hca, out_of_sequence, p->npackets);
		goto out;
	}
	if (!sh_length_fits(qp, p)) {
		abandon(dev, hca, qp);
		SH_COUNT(hca, out_of_sequence, p->npackets);
		goto out;
	}
	if (op == SH_RECV_SEND)
		uc_send(dev, hca, qp, p, resp);
	else if (!uc_write(dev, hca, qp, p, resp))
		SH_DROPPED_AT(hca, qp, memory, p->npackets);
out:
	sh_qp_unlock_both(dev, qp);
}

/* ---- UD ---- */

/* Places the payload, and the GRH in front of it. Returns what sh_recv_place() returns. */
static int ud_place(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		    const struct sh_packet *p, struct sh_packet *resp)
{
	int err = sh_recv_place(r, dev, hca, qp, SH_GRH_LEN, &p->payload);
	struct sh_wire_grh grh;
	struct sh_seg src = {(uintptr_t)&grh, sizeof(grh)};
	struct sh_payload head = {.nseg = 1, .seg = &src, .len = sizeof(grh)};

	if (err == SH_PLACED_NO_SOURCE)
		resp->op = SH_PKT_SRC_FAULT;
	if (err || !(p->flags & SH_PKT_GRH))
		return err;
	sh_make_grh(p, &grh);
	return sh_recv_place(r, dev, hca, qp, 0, &head);
}

static void ud_receive(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		       const struct sh_packet *p, struct sh_packet *resp)
{
	struct sh_cqe cqe;
	struct sh_recv r;
	int bad, err;

	err = sh_recv_begin(&r, dev, hca, qp, 0);
	if (err == -EINPROGRESS) {
		resp->syndrome = SH_BUSY;
		return;
	}
	if (err) {
		SH_DROPPED_AT(hca, qp, no_wqe, 1);
		return;
	}
	if (sh_recv_take(&r, hca, qp)) {
		sh_recv_give_up(&r, dev);
		SH_DROPPED_AT(hca, qp, no_wqe, 1);
		return;
	}
	bad = ud_place(&r, dev, hca, qp, p, resp);
	if (bad < 0) {
		SH_DROPPED_AT(hca, qp, memory, 1);
		sh_recv_give_up(&r, dev);
		return;
	}
	if (bad)
		cqe = sh_cqe_failed(qp, false, r.srqn, r.index, bad, SH_VENDOR_NONE);
	else
		cqe = sh_cqe_datagram(hca, qp, r.srqn, r.index, p);
	err = sh_recv_cqe(&r, dev, hca, qp, &cqe);
	if (err == -EINPROGRESS) {
		resp->syndrome = SH_BUSY;
		sh_recv_give_up(&r, dev);
		return;
	}
	commit(&r, dev, hca, qp, err, bad);
	if (!err && !bad)
		qp->messages_received++;
}

void sh_respond_ud(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		   const struct sh_packet *p, struct sh_packet *resp)
{
	if (sh_qp_lock_both(dev, qp)) {
		resp->syndrome = SH_BUSY;
		return;
	}
	if (sh_receive_ok(dev, hca, qp, port, p)) {
		if (!sh_qkey_match(qp, p)) {
			SH_DROPPED_AT(hca, qp, qkey, 1);
		} else if (!sh_place_begin(dev, qp->ctx)) {
			resp->syndrome = SH_BUSY;
		} else {
			ud_receive(dev, hca, qp, p, resp);
			sh_place_end(dev);
		}
	}
	sh_qp_unlock_both(dev, qp);
}
