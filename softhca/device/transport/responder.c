// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder of the acknowledged services, RC and XRC. It checks a request in the order of the
 * InfiniBand rules, executes it and answers. It runs in the thread that delivers the request, under
 * both locks of the receiving QP. It places the payload first and commits the step of the QP
 * afterwards: a sender that is killed in between has not sent the packet.
 */
#include <errno.h>

#include "softhca/device/queues/flush.h"
#include "softhca/device/queues/migrate.h"
#include "softhca/device/queues/qp_halves.h"
#include "fabric.h"
#include "place.h"
#include "receive.h"
#include "responder.h"
#include "rules.h"

bool sh_receive_ok(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		   const struct sh_packet *p)
{
	bool migrate;

	if (!sh_is_for(dev, qp, p)) {
		SH_DROPPED_AT(hca, qp, no_qp, p->npackets);
		return false;
	}
	if (!sh_state_receives(qp)) {
		SH_DROPPED_AT(hca, qp, state, p->npackets);
		return false;
	}
	migrate = false;
	if (!sh_on_path(dev, qp, qp->port, port, p, &qp->path)) {
		migrate = qp->mig_state == SH_MIG_ARMED &&
			  sh_on_path(dev, qp, qp->alt_port, port, p, &qp->alt_path);
		if (!migrate) {
			SH_DROPPED_AT(hca, qp, path, p->npackets);
			return false;
		}
	}
	if (!sh_pkey_match(p->pkey, migrate ? sh_pkey_at(hca, qp->alt_port, qp->alt_pkey_index)
					    : sh_qp_pkey(hca, qp))) {
		SH_DROPPED_AT(hca, qp, pkey, p->npackets);
		SH_COUNT_PORT(hca, port, rcv_constraint, p->npackets);
		return false;
	}
	if (qp->type == SH_QPT_UD)
		return true;
	if (migrate)
		sh_migrate(dev, hca, qp);
	if (sh_establishes(qp)) {
		struct sh_door *door = sh_pin();

		qp->comm_est = 1;
		sh_qp_event(dev, hca, qp, SH_QPE_COMM_EST);
		sh_unpin(door);
	}
	return true;
}

void sh_nak(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, struct sh_packet *resp,
	    uint8_t syndrome)
{
	(void)dev;
	SH_COUNT(hca, naks_sent, 1);
	sh_aeth(resp, qp->e_psn, syndrome, qp->msn);
}

/*
 * Where the requester finds an answer that its thread does not live to take in. NULL: the request
 * is from another instance; or faults are set, which may drop the answer, and then it is lost.
 */
static uint64_t *left_at(struct sh_dev *dev, const struct sh_packet *p)
{
	struct sh_qp *from = sh_qp_get(dev, p->src_hca, p->srcqp);

	if (!from || __atomic_load_n(&from->gen, __ATOMIC_RELAXED) != p->src_gen ||
	    __atomic_load_n(&dev->inst->faults.active, __ATOMIC_RELAXED) & SH_ACTIVE_FAULTS)
		return NULL;
	return &from->left;
}

void sh_refuse(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p,
	       struct sh_packet *resp, const struct sh_refusal *how)
{
	sh_nak(dev, hca, qp, resp, how->nak);
	sh_qp_error_left(dev, hca, qp, how->event, how->syndrome, how->vendor, left_at(dev, p),
			 sh_left(p->src_gen, resp->psn, how->nak));
}

/* Answers a request that breaks the rules of requesters, and moves the QP to ERR. */
static void invalid(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		    const struct sh_packet *p, struct sh_packet *resp)
{
	static const struct sh_refusal how = {SH_AETH_NAK_REQ, SH_QPE_REQ_ERR,
					      MLX4_SYNDROME_REM_INVAL_REQ, SH_VENDOR_REM_INV};

	sh_refuse(dev, hca, qp, p, resp, &how);
}

static void forbidden(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		      const struct sh_packet *p, struct sh_packet *resp)
{
	static const struct sh_refusal how = {SH_AETH_NAK_ACCESS, SH_QPE_ACCESS_ERR,
					      MLX4_SYNDROME_LOC_ACCESS, SH_VENDOR_NONE};

	sh_refuse(dev, hca, qp, p, resp, &how);
}

/* The same, where the receive has its completion, or can have none. */
static void fails(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		  const struct sh_packet *p, struct sh_packet *resp, uint8_t nak, uint32_t event)
{
	const struct sh_refusal how = {nak, event, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ};

	sh_refuse(dev, hca, qp, p, resp, &how);
}

static void not_ready(struct sh_hca *hca, struct sh_qp *qp, struct sh_packet *resp)
{
	SH_COUNT(hca, rnr_naks_sent, 1);
	qp->nak_sent = 1;
	sh_aeth(resp, qp->e_psn, SH_AETH_RNR | (qp->min_rnr_timer & 0x1f), qp->msn);
}

/* Gives up what was begun for the request, which comes again. */
static void come_again(struct sh_recv *r, struct sh_dev *dev, struct sh_packet *resp)
{
	sh_recv_give_up(r, dev);
	resp->syndrome = SH_BUSY;
}

/*
 * Completes the WQE of this message in error, moves the QP to ERR, and answers with that NAK. Or
 * the request comes again.
 */
static void receive_failed(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca,
			   struct sh_qp *qp, uint8_t syndrome, const struct sh_packet *p,
			   struct sh_packet *resp)
{
	struct sh_cqe cqe = sh_cqe_failed(qp, false, r->srqn, r->index, syndrome, SH_VENDOR_NONE);
	/*
	 * Pinned: a thread that was thrown in between would send the message again, and fail one
	 * more receive.
	 */
	struct sh_door *door = sh_pin();

	if (sh_recv_cqe(r, dev, hca, qp, &cqe) == -EINPROGRESS) {
		come_again(r, dev, resp);
	} else {
		sh_txn_store32(&r->txn, &qp->cur_op, SH_RECV_NONE);
		sh_txn_store32(&r->txn, &qp->cur_wqe, 0);
		sh_recv_commit(r, dev);
		fails(dev, hca, qp, p, resp,
		      syndrome == MLX4_SYNDROME_LOC_LEN ? SH_AETH_NAK_REQ : SH_AETH_NAK_OP,
		      SH_QPE_NONE);
	}
	sh_unpin(door);
}

static void acknowledge(struct sh_qp *qp, const struct sh_packet *p, struct sh_packet *resp)
{
	if (p->flags & SH_PKT_ACKREQ)
		sh_ack(resp, p, qp->msn);
}

static void store_psn(struct sh_txn_open *t, struct sh_qp *qp, const struct sh_packet *p)
{
	sh_txn_psn(t, qp, p->flags & SH_PKT_LAST ? 1 : 0, sh_psn_after(p));
}

/*
 * Adds the CQE of a message of len bytes, whose last packet is p. Returns what sh_recv_cqe() does.
 */
static int add_cqe(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		   const struct sh_packet *p, uint64_t len)
{
	struct sh_cqe cqe = sh_cqe_received(qp, r->srqn, r->index, p->op, p, len);

	return sh_recv_cqe(r, dev, hca, qp, &cqe);
}

/*
 * Commits the last packet of a message. err: what add_cqe() returned. The CQ may be full. Or the
 * SRQ of a long message is destroyed: no CQE will tell of the message, so it has failed. Returns
 * what sh_recv_commit_last() does.
 */
static enum sh_copy finish(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca,
			   struct sh_qp *qp, const struct sh_packet *p, int err,
			   const struct sh_last *last, struct sh_packet *resp)
{
	struct sh_door *door;
	enum sh_copy copied;

	sh_txn_store_two(&r->txn, &qp->cur_op, SH_RECV_NONE, 0);
	if (!err) {
		store_psn(&r->txn, qp, p);
		copied = sh_recv_commit_last(r, dev, last);
		if (!copied) {
			qp->messages_received++;
			acknowledge(qp, p, resp);
		}
		return copied;
	}
	/*
	 * Pinned: a thread that was thrown in between would send the message again, and take one
	 * more receive.
	 */
	door = sh_pin();
	copied = sh_recv_commit_last(r, dev, last);
	if (!copied) {
		fails(dev, hca, qp, p, resp, SH_AETH_NAK_OP,
		      err == -ENOENT ? SH_QPE_NONE : SH_QPE_FATAL);
	}
	sh_unpin(door);
	return copied;
}

/* Answers a request for which no receive could be taken. */
static void none_taken(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		       const struct sh_packet *p, struct sh_packet *resp, int err)
{
	sh_recv_give_up(r, dev);
	if (err == -ENOENT) {
		not_ready(hca, qp, resp);
		return;
	}
	fails(dev, hca, qp, p, resp, SH_AETH_NAK_OP, SH_QPE_FATAL);
}

/*
 * Answers a request whose payload could not be copied, by no fault of the receiver. If the sender's
 * memory is not there, that is an error of its WQE. A lock may not be to be had now. Else the
 * packet counts as lost.
 */
static void not_placed(struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p,
		       struct sh_packet *resp, int placed)
{
	if (placed == SH_PLACED_NO_SOURCE)
		resp->op = SH_PKT_SRC_FAULT;
	else if (placed == SH_PLACED_BUSY)
		resp->syndrome = SH_BUSY;
	else
		SH_DROPPED_AT(hca, qp, memory, p->npackets);
}

/* Takes a receive for the request. False: there is none, and the request has its answer. */
static bool take_receive(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca,
			 struct sh_qp *qp, const struct sh_packet *p, struct sh_packet *resp)
{
	int err = sh_recv_begin(r, dev, hca, qp, p->srqn);

	if (err) {
		if (err == -EINPROGRESS)
			resp->syndrome = SH_BUSY;
		else if (err != -ENODEV)
			invalid(dev, hca, qp, p, resp);
		else
			SH_DROPPED_AT(hca, qp, no_wqe, p->npackets);
		return false;
	}
	err = sh_recv_take(r, hca, qp);
	if (err)
		none_taken(r, dev, hca, qp, p, resp, err);
	return !err;
}

static void respond_send(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
			 const struct sh_packet *p, struct sh_packet *resp)
{
	uint64_t len = p->payload.len, done = p->flags & SH_PKT_FIRST ? 0 : qp->cur_done;
	bool started = qp->cur_op == SH_RECV_SEND;
	const struct sh_last nothing = {0};
	struct sh_recv r;
	int err;

	if (!sh_length_fits(qp, p) || done + len > SH_MAX_MESSAGE) {
		invalid(dev, hca, qp, p, resp);
		return;
	}
	if (started)
		sh_recv_resume(&r, dev, hca, qp);
	else if (!take_receive(&r, dev, hca, qp, p, resp))
		return;
	if (!started && len > SH_SHORT)
		sh_recv_keep(&r, hca, qp);
	err = sh_recv_place(&r, dev, hca, qp, done, &p->payload);
	if (err > 0) {
		receive_failed(&r, dev, hca, qp, err, p, resp);
		return;
	}
	if (err) {
		sh_recv_give_up(&r, dev);
		not_placed(hca, qp, p, resp, err);
		return;
	}
	if (p->flags & SH_PKT_LAST) {
		err = add_cqe(&r, dev, hca, qp, p, done + len);
		if (err == -EINPROGRESS)
			come_again(&r, dev, resp);
		else
			(void)finish(&r, dev, hca, qp, p, err, &nothing, resp);
		return;
	}
	sh_recv_progress(&r, qp, done + len);
	store_psn(&r.txn, qp, p);
	sh_recv_commit(&r, dev);
	acknowledge(qp, p, resp);
}

/* The same, of a WRITE. placed: what sh_place_at() returns. */
static void not_written(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
			const struct sh_packet *p, struct sh_packet *resp, int placed)
{
	sh_recv_give_up(r, dev);
	if (placed > 0)
		forbidden(dev, hca, qp, p, resp);
	else
		not_placed(hca, qp, p, resp, placed);
}

static void respond_write(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
			  const struct sh_packet *p, struct sh_packet *resp)
{
	bool first = p->flags & SH_PKT_FIRST, last = p->flags & SH_PKT_LAST;
	bool notify = last && p->flags & SH_PKT_IMM;
	uint64_t len = p->payload.len, done, total, va;
	struct sh_last rest = {0};
	enum sh_copy copied;
	int err, cqe_err = 0;
	struct sh_sge place;
	struct sh_recv r;
	uint32_t pdn;

	done = first ? 0 : qp->cur_done;
	total = first ? p->dmalen : qp->cur_len;
	va = first ? p->va : qp->cur_va;
	/* The key must allow the whole message before any byte of it is written. */
	place.key = first ? p->rkey : qp->cur_rkey;
	place.addr = va + done;
	place.len = (uint32_t)(first ? total : len);
	if ((first && !sh_op_allowed(qp, p)) || !sh_length_fits(qp, p) ||
	    (last ? done + len != total : done + len >= total)) {
		invalid(dev, hca, qp, p, resp);
		return;
	}
	if (notify) {
		if (!take_receive(&r, dev, hca, qp, p, resp))
			return;
	} else {
		r = (struct sh_recv){0};
		sh_qp_txn(&r.txn, dev, qp);
	}
	/* With the SRQ locked, if it gives a receive: that is the SRQ whose PD is asked for. */
	if (sh_rkey_pd(hca, qp, p, &pdn)) {
		sh_recv_give_up(&r, dev);
		invalid(dev, hca, qp, p, resp);
		return;
	}
	/* As soon as the payload is placed, the thread waits for nothing until it has committed. */
	if (notify)
		cqe_err = add_cqe(&r, dev, hca, qp, p, total);
	if (cqe_err == -EINPROGRESS) {
		come_again(&r, dev, resp);
		return;
	}
	if (last)
		err = sh_place_most(dev, hca, pdn, SH_REMOTE_WRITE, &place, &p->payload, &rest);
	else
		err = sh_place_at(dev, hca, pdn, SH_REMOTE_WRITE, &place, &p->payload);
	if (err) {
		not_written(&r, dev, hca, qp, p, resp, err);
		return;
	}
	if (notify) {
		copied = finish(&r, dev, hca, qp, p, cqe_err, &rest, resp);
		if (copied)
			not_written(&r, dev, hca, qp, p, resp, sh_placed(dev, rest.ctx, copied));
		return;
	}
	if (last) {
		sh_txn_store32(&r.txn, &qp->cur_op, SH_RECV_NONE);
	} else {
		sh_txn_store32(&r.txn, &qp->cur_op, SH_RECV_WRITE);
		sh_txn_store32(&r.txn, &qp->cur_done, done + len);
		sh_txn_store32(&r.txn, &qp->cur_len, total);
		sh_txn_store64(&r.txn, &qp->cur_va, va);
		sh_txn_store32(&r.txn, &qp->cur_rkey, place.key);
	}
	store_psn(&r.txn, qp, p);
	copied = sh_recv_commit_last(&r, dev, &rest);
	if (copied) {
		not_written(&r, dev, hca, qp, p, resp, sh_placed(dev, rest.ctx, copied));
		return;
	}
	if (last)
		qp->messages_received++;
	acknowledge(qp, p, resp);
}

static void execute(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		    const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg)
{
	qp->nak_sent = 0;
	if (!sh_in_turn(qp, p)) {
		invalid(dev, hca, qp, p, resp);
		return;
	}
	switch (p->op) {
	case SH_PKT_SEND:
		respond_send(dev, hca, qp, p, resp);
		break;
	case SH_PKT_WRITE:
		respond_write(dev, hca, qp, p, resp);
		break;
	case SH_PKT_READ:
		sh_respond_read(dev, hca, qp, p, resp, resp_seg, false);
		break;
	case SH_PKT_CS:
	case SH_PKT_FA:
		sh_respond_atomic(dev, hca, qp, p, resp, false);
		break;
	default:
		invalid(dev, hca, qp, p, resp);
	}
}

/* A request that is `behind` packets behind the expected PSN: all or some of it came before. */
static void duplicate(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		      const struct sh_packet *p, uint32_t behind, struct sh_packet *resp,
		      struct sh_seg *resp_seg)
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
		sh_aeth(resp, sh_ack_psn(qp, sh_psn_after(p)), SH_AETH_ACK, qp->msn);
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

	if (sh_qp_lock_both(dev, qp)) {
		resp->syndrome = SH_BUSY;
		return;
	}
	sh_rearm();
	if (!sh_receive_ok(dev, hca, qp, port, p)) {
		sh_qp_unlock_both(dev, qp);
		return;
	}
	ahead = sh_ahead(qp, 0, p);
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
