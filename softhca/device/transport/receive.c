// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Takes receive WQEs from the QP's own queue or from an SRQ, and adds their CQEs. Runs under both
 * locks of the receiving QP. It also holds the SRQ's lock from sh_recv_begin() on, and the CQ's
 * from sh_recv_cqe() on, until the transaction is committed or dropped.
 */
#include <errno.h>

#include "softhca/device/queues/qp_halves.h"
#include "softhca/device/queues/rq_receives.h"
#include "softhca/device/queues/srq_receives.h"
#include "place.h"
#include "receive.h"

/*
 * Finds out where the receive comes from and where its CQE goes. -EINVAL: this QP may not use that
 * SRQ.
 */
static int source(struct sh_recv *r, struct sh_hca *hca, struct sh_qp *qp, uint32_t srqn, struct sh_srq **srq)
{
	*srq = srqn ? sh_srq_of(hca, srqn) : NULL;
	if (*srq && !sh_srq_serves(qp, *srq, srqn))
		*srq = NULL;
	r->srqn = srqn;
	r->pdn = sh_recv_pdn(qp, *srq);
	r->cqn = sh_recv_cqn(qp, *srq);
	return srqn && !*srq ? -EINVAL : 0;
}

int sh_recv_begin(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t srqn)
{
	struct sh_srq *srq;

	r->srq = NULL;
	r->cq = NULL;
	r->have = false;
	if (!sh_recv_srqn(qp, srqn, &srqn) || source(r, hca, qp, srqn, &srq))
		return -EINVAL;
	if (srq && !sh_ctx_live(dev, srq->ctx))
		return -ENODEV;
	sh_qp_txn(&r->txn, dev, qp);
	if (!srq)
		return 0;
	sh_lock(dev, &srq->lock);
	r->srq = srq;
	if (!sh_srq_serves(qp, srq, srqn)) {
		sh_recv_give_up(r, dev);
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
	n = sh_posted(posted, qp->rq_consumed);
	if (!n)
		return -ENOENT;
	if (n > sh_rq_size(qp)) {
		dev->ops->complain(dev->host, "a receive queue's record runs ahead of it", hca->index, qp->qpn);
		return -EFAULT;
	}
	/*
	 * Indices come around. What the express way has read ahead must not pass for a later
	 * receive.
	 */
	qp->rq_cached = 0;
	qp->rq_seen = posted;
	r->index = sh_rq_index(qp->rq_consumed);
	sh_txn_rq(&r->txn, qp, 1);
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
	unsigned int n = sh_rq_list(qp);

	if (n > max)
		n = max;
	if (sh_umem_read(dev, &qp->buf, sh_rq_at(qp, index), list, n * sizeof(list[0])))
		return -EFAULT;
	return (int)sh_sge_list(list, n, sge);
}

/*
 * Reads the list of the receive that was taken. Returns how many entries it has, or -EFAULT. sge
 * has room for MLX4_MAX_SGE.
 */
static int scatter(const struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, const struct sh_qp *qp,
		   struct sh_sge *sge)
{
	struct sh_srq *srq;

	if (!r->srqn)
		return rq_scatter(dev, qp, r->index, sge, MLX4_MAX_SGE);
	srq = sh_srq_of(hca, r->srqn);
	return srq ? sh_srq_scatter(dev, srq, r->index, sge, MLX4_MAX_SGE) : -EFAULT;
}

int sh_place_list(struct sh_dev *dev, struct sh_hca *hca, uint32_t pdn, const struct sh_sge *sge, unsigned int n,
		  uint64_t skip, const struct sh_payload *data)
{
	struct sh_seg seg[MLX4_MAX_SGE];
	uint64_t room = 0;
	uint32_t ctx;
	int nseg;

	for (unsigned int i = 0; i < n; i++)
		room += sge[i].len;
	if (skip + data->len > room)
		return MLX4_SYNDROME_LOC_LEN;
	if (!data->len)
		return SH_PLACED;
	nseg = sh_mr_slice(dev, hca, pdn, SH_LOCAL_WRITE, sge, n, skip, data->len, seg, MLX4_MAX_SGE, &ctx);
	return nseg < 0 ? MLX4_SYNDROME_LOC_PROT : sh_copy_to(dev, ctx, seg, nseg, data);
}

int sh_recv_place(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint64_t skip,
		  const struct sh_payload *data)
{
	struct sh_sge sge[MLX4_MAX_SGE];
	int n = scatter(r, dev, hca, qp, sge);

	return n < 0 ? MLX4_SYNDROME_LOC_PROT : sh_place_list(dev, hca, r->pdn, sge, n, skip, data);
}

int sh_recv_cqe(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, const struct sh_cqe *cqe)
{
	r->cq = r->cqn ? sh_cq_of(hca, r->cqn) : NULL;
	if (!r->cq)
		return 0;
	sh_lock(dev, &r->cq->lock);
	sh_txn_covers(&r->txn, &r->cq->lock);
	return sh_cq_put(&r->txn, hca, r->cq, cqe) == -ENOSPC ? -ENOSPC : 0;
}

void sh_recv_commit(struct sh_recv *r, struct sh_dev *dev)
{
	sh_txn_commit(&r->txn);
	let_go(r, dev);
}

void sh_recv_give_up(struct sh_recv *r, struct sh_dev *dev)
{
	let_go(r, dev);
}
