// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Makes, shows and ends queue pairs. The daemon calls this, and does not wait for the locks of a
 * QP: -EINPROGRESS means that nothing has changed. The locks, the log and the generation counters
 * of a slot outlive the QPs in it.
 */
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/instance.h"
#include "cqe.h"
#include "flush.h"
#include "qp.h"
#include "qp_halves.h"

static int lock_both(struct sh_dev *dev, struct sh_qp *qp, enum sh_wait how)
{
	int err = sh_lock_mine(dev, &qp->lock, how);

	if (err)
		return err;
	err = sh_lock_mine(dev, &qp->rlock, how);
	if (err)
		sh_unlock(dev, &qp->lock);
	return err;
}

int sh_qp_lock_both(struct sh_dev *dev, struct sh_qp *qp)
{
	return lock_both(dev, qp, sh_qp_wait(qp));
}

int sh_qp_lock_both_briefly(struct sh_dev *dev, struct sh_qp *qp)
{
	return lock_both(dev, qp, SH_WAIT_BRIEFLY);
}

void sh_qp_unlock_both(struct sh_dev *dev, struct sh_qp *qp)
{
	sh_unlock(dev, &qp->rlock);
	sh_unlock(dev, &qp->lock);
}

/* Clears the fields of a slot from one offset up to another. */
static void clear_from(struct sh_qp *qp, size_t begin, size_t end)
{
	memset((char *)qp + begin, 0, end - begin);
}

static bool sizes_ok(const struct sh_qp_init *init)
{
	uint64_t need = 0;

	if (init->sq_present) {
		if (init->log_sq_size > 14 || init->sq_shift < MLX4_MIN_SQ_SHIFT ||
		    init->sq_shift > MLX4_MAX_SQ_SHIFT)
			return false;
		need += UINT64_C(1) << (init->log_sq_size + init->sq_shift);
	}
	if (init->rq_present) {
		if (init->log_rq_size > 14 || init->rq_shift < MLX4_MIN_RQ_SHIFT ||
		    init->rq_shift > 9)
			return false;
		need += UINT64_C(1) << (init->log_rq_size + init->rq_shift);
	}
	return !need || need <= init->buf.len;
}

static void clear(struct sh_qp *qp)
{
	uint32_t gen = qp->gen, engine_seq = qp->engine_seq, timer_gen = qp->timer_gen,
		 polled = qp->polled;

	clear_from(qp, offsetof(struct sh_qp, engine), offsetof(struct sh_qp, rlock));
	clear_from(qp, offsetof(struct sh_qp, msn), offsetof(struct sh_qp, txn));
	clear_from(qp, offsetof(struct sh_qp, atomic_psn), sizeof(*qp));
	qp->gen = gen + 1;
	qp->engine_seq = engine_seq;
	qp->timer_gen = timer_gen + 1;
	qp->polled = polled;
}

static void fill(struct sh_qp *qp, const struct sh_qp_init *init)
{
	uint32_t sq_bytes = init->sq_present ? 1u << (init->log_sq_size + init->sq_shift) : 0;
	uint32_t rq_bytes = init->rq_present ? 1u << (init->log_rq_size + init->rq_shift) : 0;

	qp->ctx = init->ctx;
	qp->type = init->type;
	qp->path_mtu = sh_first_mtu(init->type);
	qp->pdn = init->pdn;
	qp->send_cqn = init->send_cqn;
	qp->recv_cqn = init->recv_cqn;
	qp->srqn = init->srqn;
	qp->xrcd = init->xrcd;
	qp->sq_sig_all = !!init->sq_sig_all;
	qp->block_self_mcast = !!init->block_self_mcast;
	qp->sq_present = !!init->sq_present;
	qp->rq_present = !!init->rq_present;
	qp->log_sq_size = init->log_sq_size;
	qp->sq_shift = init->sq_shift;
	qp->log_rq_size = init->log_rq_size;
	qp->rq_shift = init->rq_shift;
	/* The queue with the larger stride comes first. */
	if (init->rq_shift > init->sq_shift)
		qp->sq_off = rq_bytes;
	else
		qp->rq_off = sq_bytes;
	qp->buf = init->buf;
	qp->rq_db = init->rq_db;
	qp->user_handle = init->user_handle;
	qp->cap_recv_wr = (uint16_t)init->cap_recv_wr;
	qp->cap_recv_sge = (uint16_t)init->cap_recv_sge;
	qp->state = SH_QPS_RESET;
}

int sh_qp_create(struct sh_dev *dev, uint32_t hca, uint32_t qpn, const struct sh_qp_init *init)
{
	struct sh_hca *h = sh_hca(dev, hca);
	struct sh_qp *qp = sh_qp_slot(dev, hca, qpn);
	uint32_t slot = qpn & ((1u << SH_LOG_QPS) - 1);
	int err;

	if (!h || !qp || !qpn || qpn > MLX4_QPN_MASK || !sizes_ok(init))
		return -EINVAL;
	err = sh_promise(dev, qp, sizeof(*qp));
	if (err)
		return err;
	sh_lock_init(&qp->lock);
	sh_lock_init(&qp->rlock);
	err = sh_qp_lock_both(dev, qp);
	if (err)
		return err;
	if (qp->qpn) {
		sh_qp_unlock_both(dev, qp);
		return -EEXIST;
	}
	clear(qp);
	fill(qp, init);
	if (h->qp_used <= slot)
		__atomic_store_n(&h->qp_used, slot + 1, __ATOMIC_RELAXED);
	/* pairs with the acquire in sh_qp_get() */
	__atomic_store_n(&qp->qpn, qpn, __ATOMIC_RELEASE);
	sh_qp_unlock_both(dev, qp);
	return 0;
}

/* Finds a QP and takes both its locks. With -EINPROGRESS, too, *h and *qp are set. */
static int take(struct sh_dev *dev, uint32_t hca, uint32_t qpn, struct sh_hca **h,
		struct sh_qp **qp)
{
	int err;

	*h = sh_hca(dev, hca);
	*qp = *h ? sh_qp_get(dev, hca, qpn) : NULL;
	if (!*qp)
		return -EINVAL;
	err = sh_qp_lock_both(dev, *qp);
	if (err)
		return err;
	if ((*qp)->qpn == qpn)
		return 0;
	sh_qp_unlock_both(dev, *qp);
	return -EINVAL;
}

/* Adds what the QP has counted itself. */
static void add_traffic(struct sh_traffic *to, const struct sh_qp *qp)
{
	__atomic_fetch_add(&to->xmit_packets, qp->xmit_packets, __ATOMIC_RELAXED);
	__atomic_fetch_add(&to->xmit_data, qp->xmit_data, __ATOMIC_RELAXED);
	__atomic_fetch_add(&to->rcv_packets, qp->rcv_packets, __ATOMIC_RELAXED);
	__atomic_fetch_add(&to->rcv_data, qp->rcv_data, __ATOMIC_RELAXED);
	if (qp->type != SH_QPT_UD)
		return;
	__atomic_fetch_add(&to->xmit_multicast, qp->xmit_multicast, __ATOMIC_RELAXED);
	__atomic_fetch_add(&to->rcv_multicast, qp->rcv_multicast, __ATOMIC_RELAXED);
}

void sh_qp_leave_port(struct sh_hca *hca, struct sh_qp *qp)
{
	uint32_t number = qp->port - 1u;

	if (number < SH_MAX_PORTS)
		add_traffic(&hca->traffic[number], qp);
	qp->xmit_packets = qp->xmit_data = 0;
	qp->rcv_packets = qp->rcv_data = 0;
	if (qp->type == SH_QPT_UD)
		qp->xmit_multicast = qp->rcv_multicast = 0;
}

static void add_counters(struct sh_counters *to, const struct sh_qp *qp)
{
	__atomic_fetch_add(&to->messages_sent, qp->messages_sent, __ATOMIC_RELAXED);
	__atomic_fetch_add(&to->messages_received, qp->messages_received, __ATOMIC_RELAXED);
}

void sh_traffic(struct sh_dev *dev, uint32_t hca, struct sh_traffic out[SH_MAX_PORTS])
{
	const struct sh_hca *h = sh_hca(dev, hca);

	memcpy(out, h->traffic, sizeof(h->traffic));
	for (uint32_t n = 0; n < h->qp_used && n < 1u << SH_LOG_QPS; n++) {
		const struct sh_qp *qp = sh_qp_slot(dev, hca, n);
		uint32_t number = qp->port - 1u;

		if (qp->qpn && number < SH_MAX_PORTS)
			add_traffic(&out[number], qp);
	}
}

void sh_counters(struct sh_dev *dev, uint32_t hca, struct sh_counters *out)
{
	const struct sh_hca *h = sh_hca(dev, hca);
	struct sh_traffic port[SH_MAX_PORTS];

	*out = h->counters;
	for (uint32_t n = 0; n < h->qp_used && n < 1u << SH_LOG_QPS; n++) {
		const struct sh_qp *qp = sh_qp_slot(dev, hca, n);

		if (qp->qpn)
			add_counters(out, qp);
	}
	sh_traffic(dev, hca, port);
	out->xmit_packets = out->xmit_data = out->rcv_packets = out->rcv_data = 0;
	for (uint32_t i = 0; i < SH_MAX_PORTS; i++) {
		out->xmit_packets += port[i].xmit_packets;
		out->xmit_data += port[i].xmit_data;
		out->rcv_packets += port[i].rcv_packets;
		out->rcv_data += port[i].rcv_data;
	}
}

int sh_qp_destroy(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint32_t *async_events)
{
	struct sh_hca *h;
	struct sh_qp *qp;
	const struct sh_ctx *ctx;
	uint32_t evq, events = 0;
	int err = take(dev, hca, qpn, &h, &qp);

	if (err)
		return err;
	if (sh_qp_is_leaving(dev, qp)) {
		sh_qp_unlock_both(dev, qp);
		return -EINPROGRESS;
	}
	ctx = qp->ctx ? sh_ctx(dev, qp->ctx) : NULL;
	evq = ctx ? ctx->async_evq : 0;
	/*
	 * Otherwise a WQE that was taken from an SRQ and not completed would be lost to the SRQ's
	 * owner.
	 */
	if (qp->cur_wqe && qp->cur_srqn)
		err = sh_recv_abort(dev, h, qp, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
	if (!err)
		err = sh_evq_hold(dev, evq);
	if (err) {
		sh_qp_unlock_both(dev, qp);
		return err;
	}
	__atomic_store_n(&qp->qpn, 0, __ATOMIC_RELEASE);
	if (ctx)
		events = sh_evq_end(dev, evq, &qp->async_events, qp->user_handle, SH_EV_QP);
	sh_evq_release(dev, evq);
	add_counters(&h->counters, qp);
	sh_qp_leave_port(h, qp);
	clear(qp);
	sh_qp_unlock_both(dev, qp);
	if (async_events)
		*async_events = events;
	return 0;
}

uint32_t sh_qp_end(struct sh_dev *dev, uint32_t hca, uint32_t qpn)
{
	struct sh_qp *qp = sh_qp_get(dev, hca, qpn);
	const struct sh_ctx *ctx = qp && qp->ctx ? sh_ctx(dev, qp->ctx) : NULL;
	uint32_t evq = ctx ? ctx->async_evq : 0, events = 0;
	bool held;

	if (!qp)
		return 0;
	held = !sh_evq_hold(dev, evq);
	__atomic_store_n(&qp->qpn, 0, __ATOMIC_SEQ_CST);
	if (ctx && held)
		events = sh_evq_end(dev, evq, &qp->async_events, qp->user_handle, SH_EV_QP);
	else if (ctx)
		events = __atomic_load_n(&qp->async_events, __ATOMIC_SEQ_CST);
	if (held)
		sh_evq_release(dev, evq);
	return events;
}

int sh_qp_reclaim(struct sh_dev *dev, uint32_t hca, uint32_t qpn)
{
	struct sh_hca *h = sh_hca(dev, hca);
	struct sh_qp *qp = sh_qp_slot(dev, hca, qpn);
	int err = 0;

	if (!h || !qp)
		return 0;
	err = sh_qp_lock_both(dev, qp);
	if (err)
		return err;
	/*
	 * Gives a receive of an XRC SRQ back to the owner of the SRQ. That of a plain SRQ would be
	 * completed to the QP's own CQ, which has forgotten the QP by now.
	 */
	if (qp->cur_wqe && qp->cur_srqn && sh_qp_is_xrc(qp))
		err = sh_recv_abort(dev, h, qp, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
	if (!err) {
		add_counters(&h->counters, qp);
		sh_qp_leave_port(h, qp);
		clear(qp);
	}
	sh_qp_unlock_both(dev, qp);
	return err;
}

static void read_attr(const struct sh_qp *qp, struct sh_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = attr->cur_qp_state = qp->state;
	attr->max_recv_wr = qp->cap_recv_wr;
	attr->max_recv_sge = qp->cap_recv_sge;
	attr->sq_sig_all = qp->sq_sig_all;
	if (qp->state == SH_QPS_RESET)
		return;
	attr->path_mtu = qp->path_mtu;
	attr->path_mig_state = qp->mig_state;
	attr->qkey = qp->qkey;
	attr->rq_psn = qp->e_psn;
	attr->sq_psn = qp->next_psn;
	attr->dest_qp_num = qp->dest_qpn;
	attr->qp_access_flags = qp->access;
	attr->pkey_index = qp->pkey_index;
	attr->alt_pkey_index = qp->alt_pkey_index;
	attr->en_sqd_async_notify = qp->sqd_notify;
	attr->sq_draining = qp->state == SH_QPS_SQD && !qp->drained;
	attr->max_rd_atomic = qp->max_rd_atomic;
	attr->max_dest_rd_atomic = qp->max_dest_rd_atomic;
	attr->min_rnr_timer = qp->min_rnr_timer;
	attr->port_num = qp->port;
	attr->timeout = qp->timeout;
	attr->retry_cnt = qp->retry_cnt;
	attr->rnr_retry = qp->rnr_retry;
	attr->alt_port_num = qp->alt_port;
	attr->alt_timeout = qp->alt_timeout;
	if (qp->type != SH_QPT_UD) {
		attr->path = qp->path;
		attr->alt_path = qp->alt_path;
	}
}

int sh_qp_query(struct sh_dev *dev, uint32_t hca, uint32_t qpn, struct sh_qp_attr *attr)
{
	struct sh_hca *h;
	struct sh_qp *qp;
	int err = take(dev, hca, qpn, &h, &qp);

	if (err)
		return err;
	read_attr(qp, attr);
	sh_qp_unlock_both(dev, qp);
	return 0;
}

int sh_qp_peek(struct sh_dev *dev, uint32_t hca, uint32_t qpn, struct sh_qp_attr *attr)
{
	const struct sh_qp *qp = sh_qp_get(dev, hca, qpn);

	if (!qp)
		return -EINVAL;
	read_attr(qp, attr);
	return 0;
}

int sh_qp_info(struct sh_dev *dev, uint32_t hca, uint32_t qpn, struct sh_qp_info *info)
{
	struct sh_hca *h;
	struct sh_qp *qp;
	uint32_t posted, n = 0;
	int err = take(dev, hca, qpn, &h, &qp);

	/* What the daemon shows need not be from one moment. */
	if (err && err != -EINPROGRESS)
		return err;
	*info = (struct sh_qp_info){
		.qpn = qpn,
		.ctx = qp->ctx,
		.type = qp->type,
		.state = qp->state,
		.pdn = qp->pdn,
		.send_cqn = qp->send_cqn,
		.recv_cqn = qp->recv_cqn,
		.srqn = qp->srqn,
		.xrcd = qp->xrcd,
		.dest_qpn = qp->dest_qpn,
		.dlid = qp->path.dlid,
		.port = qp->port,
		.retry_left = SH_RETRY_LEFT(qp->retry_left),
		.rnr_left = sh_rnr_left(qp),
		.messages_sent = qp->messages_sent,
		.messages_received = qp->messages_received,
		.xmit_data = qp->xmit_data + qp->long_xmit_data,
		.rcv_data = qp->rcv_data + qp->long_rcv_data,
		.retries = qp->retries,
		.drops = __atomic_load_n(&qp->drops, __ATOMIC_RELAXED),
	};
	if (qp->state != SH_QPS_RESET) {
		while (n < 1u << (qp->log_sq_size & 15) &&
		       sh_wqe_posted(dev, qp, qp->sq_una + n) == 1)
			n++;
		info->sq_posted_unfinished = n;
		if (qp->rq_present && !sh_umem_load32(dev, &qp->rq_db, 0, &posted))
			info->rq_available = (uint16_t)(posted - qp->rq_consumed);
	}
	if (!err)
		sh_qp_unlock_both(dev, qp);
	return 0;
}

int sh_qp_set_xrc_regs(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint32_t head)
{
	struct sh_qp *qp = sh_qp_get(dev, hca, qpn);

	if (!qp)
		return -EINVAL;
	/* pairs with tell_registered(), which finds the entry whole */
	__atomic_store_n(&qp->regs, head, __ATOMIC_RELEASE);
	return 0;
}

int sh_qp_silence(struct sh_dev *dev, uint32_t hca, uint32_t qpn)
{
	struct sh_hca *h;
	struct sh_qp *qp;
	int err = take(dev, hca, qpn, &h, &qp);

	if (err)
		return err;
	qp->silent = 1;
	qp->gen++;
	qp->engine = 0;
	qp->deadline = 0;
	sh_qp_unlock_both(dev, qp);
	return 0;
}
