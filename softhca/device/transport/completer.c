// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The completer: takes in acknowledgements and responses, and retires WQEs in posting order. Runs
 * under the requester lock of the QP, in the process that owns the QP. A CQE and the step of the
 * send queue that it reports are one transaction.
 */
#include <errno.h>

#include "softhca/device/queues/cqe.h"
#include "softhca/device/queues/flush.h"
#include "completer.h"
#include "requester.h"
#include "timer.h"
#include "wire.h"

/*
 * The oldest WQE of the send queue: from the cache, or read into buf. NULL: the memory of the queue
 * is gone.
 */
static const struct sh_wqe *oldest(struct sh_dev *dev, const struct sh_qp *qp,
				   const struct sh_wqe *cache, struct sh_wqe *buf, bool *have)
{
	if (cache && cache->index == qp->sq_una)
		return cache;
	if (*have && buf->index == qp->sq_una)
		return buf;
	if (sh_wqe_fetch(dev, qp, qp->sq_una, buf))
		return NULL;
	*have = true;
	return buf;
}

/*
 * A retry may have gone back to WQEs that have been acknowledged since. Moves the requester on
 * behind them.
 */
static void pull_next(struct sh_qp *qp)
{
	if ((int32_t)(qp->sq_next - qp->sq_una) < 0) {
		qp->sq_next = qp->sq_una;
		qp->next_wqe_psn = qp->una_psn;
		qp->next_psn = qp->ack_psn;
	} else if (qp->sq_next == qp->sq_una && sh_psn_diff(qp->next_psn, qp->ack_psn) < 0) {
		qp->next_psn = qp->ack_psn;
	}
}

static inline struct sh_cqe done(const struct sh_qp *qp, const struct sh_wqe *wqe)
{
	return (struct sh_cqe){
		.qpn = qp->qpn,
		.byte_cnt = sh_wqe_is_fetch(wqe) ? (uint32_t)wqe->length : 0,
		.wqe_index = (uint16_t)qp->sq_una,
		.opcode = wqe->opcode,
		.send = 1,
	};
}

SH_OUTLINE int step_unusual(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
			    struct sh_cq *cq, const struct sh_wqe *wqe, uint32_t psn)
{
	struct sh_cqe cqe = done(qp, wqe);
	struct sh_txn_open t;
	int err;

	sh_txn_begin(&t, dev, &cq->txn, &cq->lock);
	sh_txn_covers(&t, &qp->lock);
	err = sh_cq_put(&t, hca, cq, &cqe);
	sh_txn_store_two(&t, &qp->sq_una, qp->sq_una + 1, psn);
	sh_txn_commit(&t);
	return err;
}

/*
 * Retires the WQE and writes its CQE. Returns what sh_cq_put() returns; or -EINPROGRESS: the CQ is
 * not to be had now, and nothing has changed. The transaction is in the CQ's log, because the QP's
 * log belongs to its responder.
 */
static int step_with_cqe(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, struct sh_cq *cq,
			 const struct sh_wqe *wqe, uint32_t psn)
{
	struct sh_cqe cqe = done(qp, wqe);
	struct sh_txn_open t;
	uint64_t *place, word[4];
	int err = 0;

	if (sh_lock_within(dev, &cq->lock, SH_WAIT_BRIEFLY))
		return -EINPROGRESS;
	place = sh_cq_usual(dev, cq, cq->producer);
	if (place) {
		sh_txn_begin(&t, dev, &cq->txn, &cq->lock);
		sh_txn_joins(&t, &qp->lock);
		sh_txn_store_two(&t, &qp->sq_una, qp->sq_una + 1, psn);
		sh_txn_cq(&t, cq, cq->producer + 1, sh_cqe_solicits(&cqe));
		sh_cqe_words(word, &cqe, cq, cq->producer);
		sh_txn_commit_cqe(&t, &cq->buf, place, word, false, NULL);
		sh_txn_leave(&qp->lock);
	} else {
		err = step_unusual(dev, hca, qp, cq, wqe, psn);
	}
	sh_cq_let_go(dev, cq);
	return err;
}

/*
 * What the requester has to do is put off. The answer must not be lost: the peer may end meanwhile,
 * or be in ERR already, and would not give it once more.
 */
static void hold(struct sh_qp *qp, uint32_t psn, uint8_t syndrome)
{
	uint32_t held = qp->rnr_waiting;

	if (!(held & SH_PUT_OFF))
		return;
	if (held & SH_IS_HELD && (SH_HELD_NAK(held) || sh_psn_diff(psn, SH_HELD_PSN(held)) < 0))
		return;
	qp->rnr_waiting = SH_PUT_OFF | SH_HELD(psn, syndrome);
}

int sh_complete_wqe(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		    const struct sh_wqe *wqe)
{
	uint32_t packets = sh_wqe_packets(qp, wqe), psn = sh_psn_add(qp->una_psn, packets);
	struct sh_cq *cq = wqe->signaled ? sh_cq_of(hca, qp->send_cqn) : NULL;
	int err = 0;

	if (cq)
		err = step_with_cqe(dev, hca, qp, cq, wqe, psn);
	else
		sh_step_una(qp, psn);
	if (__builtin_expect(err == -EINPROGRESS, 0)) {
		sh_put_off(dev, hca, qp);
		if (sh_qp_is_reliable(qp) && packets)
			hold(qp, sh_psn_add(psn, -1u), 0);
		return err;
	}
	qp->messages_sent++;
	qp->ack_psn = psn;
	if (sh_wqe_is_fetch(wqe) && qp->rd_out)
		qp->rd_out--;
	pull_next(qp);
	if (err != -ENOSPC)
		return 0;
	/* If it is not to be had now, the next CQE moves the QP to ERR: the CQ takes none. */
	if (sh_lock_within(dev, &qp->rlock, SH_WAIT_BRIEFLY))
		return err;
	sh_qp_error(dev, hca, qp, SH_QPE_FATAL, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
	sh_unlock(dev, &qp->rlock);
	return err;
}

/*
 * Is this the answer to a packet that the requester sent before it last went back? Where packets
 * are held back, many such answers may arrive at once. What they tell of losses it knows: it has
 * sent all of that again. Each would take one more retry, and in an instant no retry would be left.
 */
static bool is_old_news(const struct sh_qp *qp, const struct sh_packet *resp)
{
	return resp->flags & SH_PKT_TOLD && resp->retries != qp->retries;
}

/*
 * The requester learns that packets were lost: from a NAK, or because the answer to a later packet
 * came first.
 */
static void lost(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		 const struct sh_packet *resp)
{
	if (is_old_news(qp, resp))
		return;
	/* The requester knows that already: it has gone back, and has sent nothing since. */
	if (qp->rnr_waiting || (qp->sq_next == qp->sq_una && qp->next_psn == qp->ack_psn))
		return;
	/*
	 * On the wire it may have sent again by the time that the rest of the old packets arrives.
	 */
	if (dev->wire) {
		if (qp->went_back == qp->ack_psn + 1)
			return;
		qp->went_back = qp->ack_psn + 1;
	}
	sh_retry(dev, hca, qp);
}

/*
 * All packets before PSN limit have arrived at the responder, as resp says. Returns whether resp is
 * to be looked at further: not if one of them is a READ or an atomic operation whose response has
 * not arrived here.
 */
static bool acknowledge(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
			const struct sh_packet *resp, uint32_t limit, const struct sh_wqe *cache,
			struct sh_wqe *buf, bool *have)
{
	while (sh_psn_diff(limit, qp->una_psn) > 0) {
		const struct sh_wqe *wqe = oldest(dev, qp, cache, buf, have);
		uint32_t n;

		if (!wqe)
			return false;
		n = sh_wqe_packets(qp, wqe);
		if (!n && wqe->opcode != MLX4_OPCODE_NOP)
			return true;
		/* All of the data may be here, and the CQE was put off. */
		if (sh_wqe_is_fetch(wqe) &&
		    sh_psn_diff(qp->ack_psn, sh_psn_add(qp->una_psn, n)) < 0) {
			if (sh_psn_diff(limit, qp->ack_psn) <= 0)
				return true;
			lost(dev, hca, qp, resp);
			return false;
		}
		if (sh_psn_diff(limit, sh_psn_add(qp->una_psn, n)) < 0) {
			if (sh_psn_diff(limit, qp->ack_psn) > 0) {
				qp->ack_psn = limit;
				sh_progress(qp);
				pull_next(qp);
			}
			return true;
		}
		sh_progress(qp);
		if (sh_complete_wqe(dev, hca, qp, wqe))
			return false;
	}
	return true;
}

#define TWIN_MOST UINT64_C(50000000)

/*
 * How long to wait for a receiver that was not ready. A packet that was sent again ahead of time
 * (timer.c) gets two answers. If retries are limited, only the first answer takes one: the
 * requester waits until the second one must have come, and ignores that.
 */
static uint64_t rnr_wait(struct sh_dev *dev, struct sh_qp *qp, uint32_t code)
{
	uint64_t ns = sh_rnr_wait(qp, code), twin;

	if (!dev->wire || qp->probed != qp->ack_psn + 1)
		return ns;
	qp->probed = 0;
	if (qp->rnr_retry == SH_RNR_FOREVER)
		return ns;
	twin = 2 * sh_wire_pace(dev, qp);
	if (twin > TWIN_MOST)
		twin = TWIN_MOST;
	return ns > twin ? ns : twin;
}

static void rnr_nak(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t code)
{
	uint64_t ns;

	if (qp->rnr_waiting)
		return;
	if (qp->rnr_retry != SH_RNR_FOREVER) {
		if (!qp->rnr_left) {
			sh_fail_oldest(dev, hca, qp, MLX4_SYNDROME_RNR_RETRY_EXC, SH_VENDOR_RNR);
			return;
		}
		qp->rnr_left--;
	}
	SH_COUNT(hca, rnr_retries, 1);
	qp->retries++;
	if (dev->wire)
		sh_wire_pace_again(dev, hca, qp);
	ns = rnr_wait(dev, qp, code);
	sh_requester_rewind(qp);
	qp->rnr_waiting = 1;
	sh_timer_arm(dev, hca, qp, dev->ops->now(dev->host) + ns);
}

static void refused(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint8_t syndrome)
{
	switch (syndrome) {
	case SH_AETH_NAK_REQ:
		sh_fail_oldest(dev, hca, qp, MLX4_SYNDROME_REM_INVAL_REQ, SH_VENDOR_REM_INV);
		break;
	case SH_AETH_NAK_ACCESS:
		sh_fail_oldest(dev, hca, qp, MLX4_SYNDROME_REM_ACCESS, SH_VENDOR_REM_ACCESS);
		break;
	default:
		sh_fail_oldest(dev, hca, qp, MLX4_SYNDROME_REM_OP, SH_VENDOR_REM_OP);
	}
}

static void take_nak(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		     const struct sh_packet *resp)
{
	if ((resp->syndrome & SH_AETH_KIND) == SH_AETH_RNR)
		rnr_nak(dev, hca, qp, resp->syndrome & 0x1f);
	else if (resp->syndrome == SH_AETH_NAK_SEQ)
		lost(dev, hca, qp, resp);
	else
		refused(dev, hca, qp, resp->syndrome);
}

static void take_ack(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		     const struct sh_packet *resp, const struct sh_wqe *cache, struct sh_wqe *buf)
{
	bool nak = (resp->syndrome & SH_AETH_KIND) != 0, have = false;
	uint32_t limit = nak ? resp->psn : sh_psn_add(resp->psn, 1);

	if (sh_psn_diff(limit, qp->ack_psn) < 0 || sh_psn_diff(resp->psn, qp->sent_psn) >= 0)
		return;
	if (dev->wire && !nak && limit == qp->ack_psn)
		sh_wire_pace_twice(dev, qp);
	if (acknowledge(dev, hca, qp, resp, limit, cache, buf, &have) && nak)
		take_nak(dev, hca, qp, resp);
	/* A receiver that is not ready, or misses a packet, says so again. */
	if (resp->syndrome > SH_AETH_NAK_SEQ)
		hold(qp, resp->psn,
		     resp->syndrome < SH_AETH_NAK_OP ? resp->syndrome : SH_AETH_NAK_OP);
	else if (limit != qp->una_psn)
		hold(qp, sh_psn_add(limit, -1u), 0);
}

/*
 * All of the data that the oldest WQE reads may be here, and nobody remembers that it only lacks
 * its CQE: another answer was held, or the thread was thrown before this one was. It is read again.
 */
static void forget_whole_fetch(struct sh_dev *dev, struct sh_qp *qp)
{
	struct sh_wqe wqe;

	if (qp->ack_psn == qp->una_psn || qp->rnr_waiting ||
	    sh_wqe_fetch(dev, qp, qp->sq_una, &wqe) || !sh_wqe_is_fetch(&wqe) ||
	    sh_psn_diff(qp->ack_psn, sh_psn_add(qp->una_psn, sh_wqe_packets(qp, &wqe))) < 0)
		return;
	qp->ack_psn = qp->una_psn;
	sh_requester_rewind(qp);
}

static void take_held(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t held)
{
	struct sh_packet resp;
	struct sh_wqe buf;

	sh_packet_init(&resp);
	resp.op = SH_PKT_ACK;
	resp.psn = SH_HELD_PSN(held);
	if (SH_HELD_NAK(held))
		resp.syndrome = SH_AETH_NAK_SEQ | SH_HELD_NAK(held);
	take_ack(dev, hca, qp, &resp, NULL, &buf);
}

void sh_take_held(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t held)
{
	if (!sh_qp_is_reliable(qp) || (qp->state != SH_QPS_RTS && qp->state != SH_QPS_SQD))
		return;
	if (held & SH_IS_HELD)
		take_held(dev, hca, qp, held);
	if (qp->state == SH_QPS_RTS || qp->state == SH_QPS_SQD)
		forget_whole_fetch(dev, qp);
}

void sh_take_left(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	uint64_t left = __atomic_load_n(&qp->left, __ATOMIC_RELAXED);
	struct sh_packet resp;

	if (!sh_qp_is_reliable(qp) ||
	    left != sh_left(qp->gen, SH_LEFT_PSN(left), SH_LEFT_SYNDROME(left)))
		return;
	sh_packet_init(&resp);
	resp.op = SH_PKT_ACK;
	resp.psn = SH_LEFT_PSN(left);
	resp.syndrome = SH_LEFT_SYNDROME(left);
	sh_complete(dev, hca, qp, &resp, NULL);
	__atomic_store_n(&qp->left, 0, __ATOMIC_RELAXED);
}

/*
 * Stores the data of a READ, or the old value of an atomic operation, into the local buffers from
 * off on.
 */
static void place(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		  const struct sh_wqe *wqe, uint64_t off, const struct sh_packet *resp)
{
	const struct sh_payload *data = &resp->payload;
	struct sh_seg seg[SH_MAX_SEGS];
	uint32_t ctx = 0;
	int n, err;

	if (data->len) {
		n = sh_mr_slice(dev, hca, qp->pdn, SH_LOCAL_WRITE, wqe->sge, wqe->nsge, off,
				data->len, seg, SH_MAX_SEGS, &ctx);
		if (n < 0) {
			sh_fail_oldest(dev, hca, qp, MLX4_SYNDROME_LOC_PROT, SH_VENDOR_NONE);
			return;
		}
		err = dev->ops->copy(dev->host, ctx, seg, n, data->ctx, data->seg, data->nseg,
				     data->len);
		if (err == SH_COPY_SRC && sh_ctx_live(dev, data->ctx)) {
			sh_fail_oldest(dev, hca, qp, MLX4_SYNDROME_REM_OP, SH_VENDOR_REM_OP);
			return;
		}
		if (err == SH_COPY_DST) {
			sh_fail_oldest(dev, hca, qp, MLX4_SYNDROME_LOC_PROT, SH_VENDOR_NONE);
			return;
		}
		if (err) /* the peer has ended meanwhile: as if no response had come */
			return;
	}
	sh_progress(qp);
	qp->ack_psn = sh_psn_add(qp->ack_psn, resp->npackets);
	pull_next(qp);
	if (sh_psn_diff(qp->ack_psn, qp->una_psn) >= (int32_t)sh_wqe_packets(qp, wqe))
		sh_complete_wqe(dev, hca, qp, wqe);
}

static void take_data(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		      const struct sh_packet *resp, const struct sh_wqe *cache, struct sh_wqe *buf)
{
	const struct sh_wqe *wqe;
	bool have = false;
	uint64_t off, left, full;

	if (dev->wire && resp->psn + 1 == qp->probed)
		sh_wire_pace_twice(dev, qp);
	if (sh_psn_diff(resp->psn, qp->ack_psn) < 0 || sh_psn_diff(resp->psn, qp->sent_psn) >= 0)
		return;
	if (!acknowledge(dev, hca, qp, resp, resp->psn, cache, buf, &have) ||
	    resp->psn != qp->ack_psn)
		return;
	wqe = oldest(dev, qp, cache, buf, &have);
	if (!wqe)
		return;
	if (wqe->bad || (resp->op == SH_PKT_READ_RESP) != (wqe->opcode == MLX4_OPCODE_RDMA_READ) ||
	    !sh_wqe_is_fetch(wqe)) {
		sh_fail_oldest(dev, hca, qp, MLX4_SYNDROME_BAD_RESP, SH_VENDOR_NONE);
		return;
	}
	if (resp->op == SH_PKT_ATOMIC_RESP) {
		uint64_t old = resp->swap_add;
		struct sh_seg seg = {(uintptr_t)&old, sizeof(old)};
		struct sh_packet value = *resp;

		value.payload = (struct sh_payload){.nseg = 1, .seg = &seg, .len = sizeof(old)};
		place(dev, hca, qp, wqe, 0, &value);
		return;
	}
	off = (uint64_t)sh_psn_diff(resp->psn, qp->una_psn) * sh_qp_mtu(qp);
	left = wqe->length - off;
	full = (uint64_t)resp->npackets * sh_qp_mtu(qp);
	if (off > wqe->length || resp->payload.len != (left < full ? left : full)) {
		sh_fail_oldest(dev, hca, qp, MLX4_SYNDROME_BAD_RESP, SH_VENDOR_NONE);
		return;
	}
	place(dev, hca, qp, wqe, off, resp);
}

/*
 * The memory that a packet was to be sent from is gone. That is an error of the WQE of that packet,
 * but only when that WQE is the oldest: if it is not, the requester first goes back to the older
 * ones, and comes to this one again.
 */
static void source_gone(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
			const struct sh_packet *resp, const struct sh_wqe *cache,
			struct sh_wqe *buf)
{
	bool have = false;
	const struct sh_wqe *wqe = oldest(dev, qp, cache, buf, &have);
	int32_t at = sh_psn_diff(resp->psn, qp->una_psn);

	if (wqe && at >= 0 && at < (int32_t)sh_wqe_packets(qp, wqe))
		sh_fail_source(dev, hca, qp);
	else
		lost(dev, hca, qp, resp);
}

SH_OUTLINE void complete(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
			 const struct sh_packet *resp, const struct sh_wqe *cache)
{
	struct sh_wqe buf;

	sh_rearm();
	switch (resp->op) {
	case SH_PKT_NONE:
		sh_put_off(dev, hca, qp);
		break;
	case SH_PKT_ACK:
		take_ack(dev, hca, qp, resp, cache, &buf);
		break;
	case SH_PKT_READ_RESP:
		SH_COUNT_RCV(hca, qp->port, resp->npackets, resp->payload.len);
		SH_COUNT_QP(qp, long_rcv_data, resp->payload.len);
		take_data(dev, hca, qp, resp, cache, &buf);
		break;
	case SH_PKT_ATOMIC_RESP:
		take_data(dev, hca, qp, resp, cache, &buf);
		break;
	case SH_PKT_SRC_FAULT:
		source_gone(dev, hca, qp, resp, cache, &buf);
		break;
	}
}

/*
 * Is this a positive acknowledgement of the only WQE outstanding, and is that WQE in the cache?
 * Nearly all are.
 */
static inline bool simple(const struct sh_qp *qp, const struct sh_packet *resp,
			  const struct sh_wqe *wqe)
{
	return resp->op == SH_PKT_ACK && !(resp->syndrome & SH_AETH_KIND) && wqe &&
	       sh_wqe_alone(qp, wqe) && sh_psn_add(resp->psn, 1) == qp->next_psn;
}

static bool complete_simple(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
			    const struct sh_packet *resp, const struct sh_wqe *cache)
{
	if (!simple(qp, resp, cache))
		return false;
	sh_progress(qp);
	sh_complete_wqe(dev, hca, qp, cache);
	return true;
}

void sh_complete(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		 const struct sh_packet *resp, struct sh_wqe *cache)
{
	if (qp->state != SH_QPS_RTS && qp->state != SH_QPS_SQD)
		return;
	if (!complete_simple(dev, hca, qp, resp, cache))
		complete(dev, hca, qp, resp, cache);
}
