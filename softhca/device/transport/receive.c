// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receive WQEs, from the QP's own queue or from an SRQ, and their CQEs. Runs under both locks of the responder's QP; the SRQ's
 * is held from taking a WQE until the transaction that takes it is committed or given up, the CQ's while a CQE is in it.
 */
#include <errno.h>

#include "softhca/device/queues/qp_halves.h"
#include "softhca/device/queues/srq_receives.h"
#include "receive.h"

/* Everything about where receives come from and go to; -EINVAL: not an SRQ that this QP may use. */
static int source(struct sh_recv *r, struct sh_hca *hca, struct sh_qp *qp, uint32_t srqn, struct sh_srq **srq)
{
	*srq = NULL;
	r->srqn = srqn;
	r->pdn = qp->pdn;
	r->cqn = qp->recv_cqn;
	if (!srqn)
		return 0;
	*srq = sh_srq_of(hca, srqn);
	if (!*srq || !(*srq)->live || (*srq)->srqn != srqn)
		return -EINVAL;
	r->pdn = (*srq)->pdn;
	if (!sh_qp_is_xrc(qp))
		return 0;
	if (!(*srq)->cqn || (*srq)->xrcd != qp->xrcd)
		return -EINVAL;
	r->cqn = (*srq)->cqn;
	return 0;
}

int sh_recv_begin(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t srqn)
{
	struct sh_srq *srq;

	r->srq = NULL;
	r->cq = NULL;
	r->have = false;
	if (!sh_qp_is_xrc(qp))
		srqn = qp->srqn;
	else if (!srqn)
		return -EINVAL;
	if (source(r, hca, qp, srqn, &srq))
		return -EINVAL;
	if (srq && !sh_ctx_live(dev, srq->ctx))
		return -ENODEV;
	sh_qp_txn(&r->txn, dev, qp);
	if (!srq)
		return 0;
	sh_lock(dev, &srq->lock);
	r->srq = srq;
	if (!srq->live || srq->srqn != srqn) {
		sh_recv_drop(r, dev);
		return -EINVAL;
	}
	sh_txn_covers(&r->txn, &srq->lock);
	return 0;
}

int sh_recv_take(struct sh_recv *r, struct sh_hca *hca, struct sh_qp *qp)
{
	struct sh_dev *dev = r->txn.dev;
	uint32_t posted, n;
	int err;

	if (r->srq) {
		err = sh_srq_take(&r->txn, hca, r->srq, &r->index);
		r->have = !err;
		return err;
	}
	if (!qp->rq_present)
		return -ENOENT;
	if (sh_umem_load32(dev, &qp->rq_db, 0, &posted))
		return -EFAULT;
	n = (uint16_t)(posted - qp->rq_consumed);
	if (!n)
		return -ENOENT;
	if (n > 1u << (qp->log_rq_size & 15)) {
		dev->ops->complain(dev->host, "a receive queue's record runs ahead of it", hca->index, qp->qpn);
		return -EFAULT;
	}
	/* What the express way remembers comes around, as indices do. */
	qp->rq_cached = 0;
	qp->rq_seen = posted;
	r->index = qp->rq_consumed & MLX4_RQ_DB_MASK;
	sh_txn_store32(&r->txn, &qp->rq_consumed, qp->rq_consumed + 1);
	r->have = true;
	return 0;
}

static void let_go(struct sh_recv *r, struct sh_dev *dev)
{
	if (r->cq)
		sh_cq_let_go(dev, r->cq);
	if (r->srq)
		sh_unlock(dev, &r->srq->lock);
	r->cq = NULL;
	r->srq = NULL;
}

void sh_recv_keep(struct sh_recv *r, struct sh_hca *hca, struct sh_qp *qp)
{
	struct sh_dev *dev = r->txn.dev;

	(void)hca;
	sh_txn_store32(&r->txn, &qp->cur_op, SH_RECV_SEND);
	sh_txn_store32(&r->txn, &qp->cur_wqe, r->index + 1);
	sh_txn_store32(&r->txn, &qp->cur_srqn, r->srqn);
	sh_txn_store32(&r->txn, &qp->cur_done, 0);
	sh_txn_commit(&r->txn);
	let_go(r, dev);
	sh_qp_txn(&r->txn, dev, qp);
}

void sh_recv_resume(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	struct sh_srq *srq;

	r->srq = NULL;
	r->cq = NULL;
	source(r, hca, qp, qp->cur_srqn, &srq);
	r->index = qp->cur_wqe - 1;
	r->have = true;
	sh_qp_txn(&r->txn, dev, qp);
}

static int rq_scatter(struct sh_dev *dev, const struct sh_qp *qp, uint32_t index, struct sh_sge *sge, unsigned int max)
{
	struct mlx4_wqe_data list[MLX4_MAX_SGE];
	uint32_t slot = index & ((1u << (qp->log_rq_size & 15)) - 1);
	unsigned int n, gs = 1u << ((qp->rq_shift - MLX4_MIN_RQ_SHIFT) & 15);

	if (gs > MLX4_MAX_SGE)
		gs = MLX4_MAX_SGE;
	if (sh_umem_read(dev, &qp->buf, qp->rq_off + ((uint64_t)slot << (qp->rq_shift & 15)), list, gs * sizeof(list[0])))
		return -EFAULT;
	for (n = 0; n < gs && n < max; n++) {
		sge[n].len = from_be32(list[n].byte_count);
		sge[n].key = from_be32(list[n].lkey);
		sge[n].addr = from_be64(list[n].addr);
		if (sge[n].key == MLX4_INVALID_LKEY)
			break;
	}
	return n;
}

int sh_recv_scatter(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, struct sh_sge *sge,
		    unsigned int max)
{
	struct sh_srq *srq;

	if (!r->srqn)
		return rq_scatter(dev, qp, r->index, sge, max);
	srq = sh_srq_of(hca, r->srqn);
	if (!srq || !srq->live)
		return -EFAULT;
	return sh_srq_scatter(dev, srq, r->index, sge, max);
}

int sh_recv_cqe(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, struct sh_cqe *cqe)
{
	r->cq = r->cqn ? sh_cq_of(hca, r->cqn) : NULL;
	if (!r->cq)
		return 0;
	cqe->qpn = qp->qpn;
	if (sh_qp_is_xrc(qp))
		cqe->srqn_srcqp = r->srqn;
	cqe->wqe_index = r->index;
	sh_lock(dev, &r->cq->lock);
	sh_txn_covers(&r->txn, &r->cq->lock);
	return sh_cq_put(&r->txn, hca, r->cq, cqe) == -ENOSPC ? -ENOSPC : 0;
}

void sh_recv_commit(struct sh_recv *r, struct sh_dev *dev)
{
	sh_txn_commit(&r->txn);
	let_go(r, dev);
}

void sh_recv_drop(struct sh_recv *r, struct sh_dev *dev)
{
	let_go(r, dev);
}
