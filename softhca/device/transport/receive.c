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
 * Locks the SRQ of the number r->srqn. What its context says holds only under its lock: until then
 * the owner may destroy the SRQ and create another one with the same number. 0, -EINVAL, or
 * -EINPROGRESS.
 */
static int hold(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, const struct sh_qp *qp)
{
	struct sh_srq *srq = sh_srq_of(hca, r->srqn);
	int err = srq ? sh_lock_mine(dev, &srq->lock, sh_qp_wait(qp)) : -EINVAL;

	r->srq = err ? NULL : srq;
	return err;
}

static void let_go_srq(struct sh_recv *r, struct sh_dev *dev)
{
	if (r->srq)
		sh_unlock(dev, &r->srq->lock);
	r->srq = NULL;
}

/* Notes where the buffers of the receive must lie, and where its CQE goes. The SRQ is locked. */
static void note_source(struct sh_recv *r, const struct sh_qp *qp)
{
	r->pdn = sh_recv_pdn(qp, r->srq);
	r->cqn = sh_recv_cqn(qp, r->srq);
	r->srq_gen = r->srq ? r->srq->gen : 0;
}

/*
 * Locks the SRQ again that the WQE was taken from. 0; -ENOENT: it is destroyed, and the receive
 * with it; -EINPROGRESS.
 */
static int hold_again(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca,
		      const struct sh_qp *qp)
{
	int err = hold(r, dev, hca, qp);

	if (err)
		return err == -EINPROGRESS ? err : -ENOENT;
	if (!sh_srq_is_still(r->srq, r->srq_gen)) {
		let_go_srq(r, dev);
		return -ENOENT;
	}
	note_source(r, qp);
	return 0;
}

int sh_recv_begin(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		  uint32_t srqn)
{
	int err = 0;

	r->srq = NULL;
	r->cq = NULL;
	r->have = false;
	if (!sh_recv_srqn(qp, srqn, &r->srqn))
		return -EINVAL;
	if (r->srqn)
		err = hold(r, dev, hca, qp);
	if (err)
		return err;
	if (r->srq && !sh_srq_serves(qp, r->srq, r->srqn))
		err = -EINVAL;
	else if (r->srq && !sh_ctx_live(dev, r->srq->ctx))
		err = -ENODEV;
	if (err) {
		let_go_srq(r, dev);
		return err;
	}
	note_source(r, qp);
	sh_qp_txn(&r->txn, dev, qp);
	if (r->srq)
		sh_txn_covers(&r->txn, &r->srq->lock);
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
		dev->ops->complain(dev->host, "a receive queue's record runs ahead of it",
				   hca->index, qp->qpn);
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
	r->cq = NULL;
	let_go_srq(r, dev);
}

void sh_recv_progress(struct sh_recv *r, struct sh_qp *qp, uint64_t done)
{
	/* It says something only together with cur_wqe, which the transaction sets. */
	qp->cur_srq_gen = r->srq_gen;
	sh_txn_store32(&r->txn, &qp->cur_op, SH_RECV_SEND);
	sh_txn_store32(&r->txn, &qp->cur_wqe, r->index + 1);
	sh_txn_store32(&r->txn, &qp->cur_srqn, r->srqn);
	sh_txn_store32(&r->txn, &qp->cur_done, done);
}

void sh_recv_keep(struct sh_recv *r, struct sh_hca *hca, struct sh_qp *qp)
{
	struct sh_dev *dev = r->txn.dev;

	(void)hca;
	sh_recv_progress(r, qp, 0);
	sh_txn_commit(&r->txn);
	let_go(r, dev);
	sh_qp_txn(&r->txn, dev, qp);
}

void sh_recv_resume(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	(void)hca;
	r->srq = NULL;
	r->cq = NULL;
	r->srqn = qp->cur_srqn;
	/* Of an SRQ: anew when it is locked again. */
	note_source(r, qp);
	r->srq_gen = qp->cur_srq_gen;
	r->index = qp->cur_wqe - 1;
	r->have = true;
	sh_qp_txn(&r->txn, dev, qp);
}

static int rq_scatter(struct sh_dev *dev, const struct sh_qp *qp, uint32_t index,
		      struct sh_sge *sge, unsigned int max)
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
 * Reads the list of the receive that was taken. Returns how many entries it has, -EFAULT, -ENOENT
 * or
 * -EINPROGRESS. sge has room for MLX4_MAX_SGE.
 */
static int scatter(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca,
		   const struct sh_qp *qp, struct sh_sge *sge)
{
	int n;

	if (!r->srqn)
		return rq_scatter(dev, qp, r->index, sge, MLX4_MAX_SGE);
	if (r->srq)
		return sh_srq_scatter(dev, r->srq, r->index, sge, MLX4_MAX_SGE);
	n = hold_again(r, dev, hca, qp);
	if (n)
		return n;
	n = sh_srq_scatter(dev, r->srq, r->index, sge, MLX4_MAX_SGE);
	/* Others take receives of it while this thread copies. */
	let_go_srq(r, dev);
	return n;
}

int sh_place_list(struct sh_dev *dev, struct sh_hca *hca, uint32_t pdn, const struct sh_sge *sge,
		  unsigned int n, uint64_t skip, const struct sh_payload *data)
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
	nseg = sh_mr_slice(dev, hca, pdn, SH_LOCAL_WRITE, sge, n, skip, data->len, seg,
			   MLX4_MAX_SGE, &ctx);
	return nseg < 0 ? MLX4_SYNDROME_LOC_PROT : sh_copy_to(dev, ctx, seg, nseg, data);
}

int sh_recv_place(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		  uint64_t skip, const struct sh_payload *data)
{
	struct sh_sge sge[MLX4_MAX_SGE];
	int n = scatter(r, dev, hca, qp, sge);

	sh_rearm();
	if (n == -EINPROGRESS)
		return SH_PLACED_BUSY;
	return n < 0 ? MLX4_SYNDROME_LOC_PROT : sh_place_list(dev, hca, r->pdn, sge, n, skip, data);
}

int sh_recv_cqe(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, const struct sh_qp *qp,
		const struct sh_cqe *cqe)
{
	int err;

	/* As long as this thread holds the SRQ's lock, the SRQ keeps its CQ. */
	if (r->srqn && !r->srq) {
		err = hold_again(r, dev, hca, qp);
		if (err)
			return err;
	}
	r->cq = r->cqn ? sh_cq_of(hca, r->cqn) : NULL;
	if (!r->cq)
		return 0;
	err = sh_lock_mine(dev, &r->cq->lock, sh_qp_wait(qp));
	if (err) {
		r->cq = NULL;
		return err;
	}
	sh_rearm();
	sh_txn_covers(&r->txn, &r->cq->lock);
	return sh_cq_put(&r->txn, hca, r->cq, cqe) == -ENOSPC ? -ENOSPC : 0;
}

void sh_recv_commit(struct sh_recv *r, struct sh_dev *dev)
{
	sh_txn_commit(&r->txn);
	let_go(r, dev);
}

enum sh_copy sh_recv_commit_last(struct sh_recv *r, struct sh_dev *dev, const struct sh_last *last)
{
	enum sh_copy err = sh_txn_commit_last(&r->txn, last);

	if (!err)
		let_go(r, dev);
	return err;
}

void sh_recv_give_up(struct sh_recv *r, struct sh_dev *dev)
{
	let_go(r, dev);
}
