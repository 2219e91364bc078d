// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Modifies a QP: checks everything before it changes anything. The daemon calls it; it takes both
 * locks of the QP. Moving to ERR flushes here. Moving to RTS does not run the send queue: the owner
 * rings the doorbell.
 */
#include <errno.h>
#include <string.h>

#include "cqe.h"
#include "flush.h"
#include "migrate.h"
#include "modify.h"
#include "path.h"
#include "qp.h"
#include "qp_halves.h"
#include "transitions.h"

#define HAS(name) (mask & SH_QPA_##name)

/* The daemon, which knows the wire's, has looked at the MTU before. */
enum { MTU_4096 = 5 };

static bool values_ok(const struct sh_dev *dev, const struct sh_qp_attr *a, uint32_t mask)
{
	return sh_qp_values_ok(a, mask, dev->ports, MTU_4096) &&
	       !(HAS(PATH_MIG_STATE) && a->path_mig_state > SH_MIG_ARMED);
}

/* Rounds up to a power of two, as the HCA stores it. */
static uint8_t rd_depth(uint8_t n)
{
	uint8_t p = 1;

	while (p < n && p < SH_QP_READS)
		p <<= 1;
	return p;
}

static void set_path(const struct sh_dev *dev, struct sh_path *path, const struct sh_path *to)
{
	*path = *to;
	if (path->is_global)
		path->dlid = sh_wire_dlid(dev, path->dlid, path->dgid);
}

static void set_attrs(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		      const struct sh_qp_attr *a, uint32_t mask)
{
	if (HAS(EN_SQD_ASYNC_NOTIFY))
		qp->sqd_notify = !!a->en_sqd_async_notify;
	if (HAS(ACCESS_FLAGS))
		qp->access =
			a->qp_access_flags & (SH_REMOTE_WRITE | SH_REMOTE_READ | SH_REMOTE_ATOMIC);
	if (HAS(PKEY_INDEX))
		qp->pkey_index = a->pkey_index;
	if (HAS(PORT)) {
		sh_qp_leave_port(hca, qp);
		qp->port = a->port_num;
	}
	if (HAS(QKEY))
		qp->qkey = a->qkey;
	if (HAS(AV))
		set_path(dev, &qp->path, &a->path);
	if (HAS(PATH_MTU))
		qp->path_mtu = a->path_mtu;
	if (HAS(TIMEOUT))
		qp->timeout = a->timeout & 31;
	if (HAS(RETRY_CNT))
		qp->retry_cnt = qp->retry_left = a->retry_cnt & 7;
	if (HAS(RNR_RETRY))
		qp->rnr_retry = qp->rnr_left = a->rnr_retry & 7;
	if (HAS(RQ_PSN))
		qp->e_psn = a->rq_psn & SH_PSN_MASK;
	if (HAS(MAX_QP_RD_ATOMIC))
		qp->max_rd_atomic = rd_depth(a->max_rd_atomic);
	if (HAS(ALT_PATH)) {
		set_path(dev, &qp->alt_path, &a->alt_path);
		qp->alt_port = a->alt_port_num;
		qp->alt_timeout = a->alt_timeout & 31;
		qp->alt_pkey_index = a->alt_pkey_index;
	}
	if (HAS(MIN_RNR_TIMER))
		qp->min_rnr_timer = a->min_rnr_timer & 31;
	if (HAS(SQ_PSN))
		qp->una_psn = qp->next_wqe_psn = qp->ack_psn = qp->next_psn = qp->sent_psn =
			qp->wire_psn = qp->wire_again = a->sq_psn & SH_PSN_MASK;
	if (HAS(MAX_DEST_RD_ATOMIC))
		qp->max_dest_rd_atomic =
			a->max_dest_rd_atomic ? rd_depth(a->max_dest_rd_atomic) : 0;
	if (HAS(DEST_QPN))
		qp->dest_qpn = a->dest_qp_num & MLX4_QPN_MASK;
}

static void set_migration(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t state)
{
	if (state == SH_MIG_MIGRATED && qp->mig_state == SH_MIG_ARMED)
		sh_migrate(dev, hca, qp);
	else if (state == SH_MIG_REARM && qp->alt_port)
		qp->mig_state = SH_MIG_ARMED;
}

/*
 * Makes the QP forget everything. Of the past it completes only a receive that it has taken from an
 * SRQ. 0, or -EINPROGRESS: nothing has changed.
 */
static int reset(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	int err = 0;

	if (qp->cur_wqe && qp->cur_srqn)
		err = sh_recv_abort(dev, hca, qp, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
	if (err)
		return err;
	qp->state = SH_QPS_RESET;
	qp->gen++;
	qp->timer_gen++;
	qp->engine = 0;
	qp->told_hca = qp->told_cqn = qp->has_floor = qp->went_back = qp->probed = 0;
	qp->again = qp->comm_est = qp->drained = qp->nak_sent = 0;
	qp->rnr_waiting = qp->last_wqe = 0;
	qp->sq_una = qp->sq_next = qp->sq_begun = qp->rd_out = 0;
	qp->una_psn = qp->next_wqe_psn = qp->ack_psn = qp->next_psn = qp->sent_psn = 0;
	qp->wire_psn = qp->wire_again = qp->wire_left = 0;
	qp->deadline = qp->timer_at = 0;
	qp->msn = qp->e_psn = qp->rq_consumed = qp->rq_seen = qp->rq_cached = 0;
	qp->cur_op = qp->cur_wqe = qp->cur_srqn = qp->cur_done = qp->cur_len = qp->cur_rkey = 0;
	sh_qp_leave_port(hca, qp);
	qp->cur_va = 0;
	qp->atomic_head = 0;
	memset(qp->atomic_psn, 0, sizeof(qp->atomic_psn));
	qp->qkey = qp->dest_qpn = qp->access = 0;
	qp->pkey_index = qp->alt_pkey_index = 0;
	qp->path_mtu = sh_first_mtu(qp->type);
	qp->mig_state = qp->sqd_notify = qp->max_rd_atomic = 0;
	qp->max_dest_rd_atomic = qp->min_rnr_timer = qp->port = qp->timeout = 0;
	qp->retry_cnt = qp->rnr_retry = qp->alt_port = qp->alt_timeout = 0;
	memset(&qp->path, 0, sizeof(qp->path));
	memset(&qp->alt_path, 0, sizeof(qp->alt_path));
	return 0;
}

static int move(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		const struct sh_qp_attr *a, uint32_t mask, uint32_t to)
{
	if (to == SH_QPS_RESET && sh_qp_is_leaving(dev, qp))
		return -EINPROGRESS;
	if (to == SH_QPS_RESET)
		return qp->state == SH_QPS_RESET ? 0 : reset(dev, hca, qp);
	if (to == SH_QPS_ERR) {
		sh_qp_error(dev, hca, qp, SH_QPE_NONE, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
		return qp->state == SH_QPS_ERR ? sh_qp_flush(dev, hca, qp) : 0;
	}
	if (to == SH_QPS_SQD && qp->state != SH_QPS_SQD)
		qp->sqd_notify = 0;
	set_attrs(dev, hca, qp, a, mask);
	if (HAS(PATH_MIG_STATE))
		set_migration(dev, hca, qp, a->path_mig_state);
	if (to == SH_QPS_SQD && qp->state != SH_QPS_SQD) {
		qp->drained = qp->sq_una == qp->sq_begun && !qp->engine;
		qp->state = to;
		if (qp->drained && qp->sqd_notify)
			sh_qp_event(dev, hca, qp, SH_QPE_SQ_DRAINED);
		return 0;
	}
	qp->state = to;
	return 0;
}

int sh_qp_modify(struct sh_dev *dev, uint32_t hca, uint32_t qpn, const struct sh_qp_attr *attr,
		 uint32_t mask)
{
	struct sh_hca *h = sh_hca(dev, hca);
	struct sh_qp *qp = h ? sh_qp_get(dev, hca, qpn) : NULL;
	uint32_t from, to;
	int err;

	if (!qp)
		return -EINVAL;
	err = sh_qp_lock_both(dev, qp);
	if (err)
		return err;
	err = -EINVAL;
	if (qp->qpn != qpn)
		goto out;
	mask &= ~sh_qp_foreign_attrs(qp->type);
	from = HAS(CUR_STATE) ? attr->cur_qp_state : qp->state;
	to = HAS(STATE) ? attr->qp_state : from;
	if (HAS(CUR_STATE) && (from < SH_QPS_RTR || from > SH_QPS_SQE))
		goto out;
	if (!sh_qp_transition_ok(qp->type, from, to, mask) || !values_ok(dev, attr, mask))
		goto out;
	/* The QP must be in the state that the caller takes for the current one. */
	if (from != qp->state)
		goto out;
	err = move(dev, h, qp, attr, mask, to);
out:
	sh_qp_unlock_both(dev, qp);
	return err;
}

void sh_qp_halt(struct sh_dev *dev, uint32_t hca, uint32_t qpn)
{
	struct sh_qp *qp = sh_qp_get(dev, hca, qpn);

	if (qp)
		__atomic_store_n(&qp->state, SH_QPS_ERR, __ATOMIC_SEQ_CST);
}
