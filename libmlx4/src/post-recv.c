// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receive work requests become scatter lists, told to the device by one doorbell record per call. Under the RQ's or the
 * SRQ's lock; there is no MMIO for receives. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>

#include "mlx4.h"

static inline void end_list(struct mlx4_wqe_data *seg)
{
	seg->byte_count = 0;
	seg->lkey = MLX4_BE32(MLX4_INVALID_LKEY);
	seg->addr = 0;
}

/*
 * A scatter list that is not one plain entry. Entries of length 0 are left out: to the device a count of 0 means 2^31.
 * Returns 0, or -EINVAL for a length that no segment can say; the slot is not posted then.
 */
static int put_scatter_list(struct mlx4_wqe_data *seg, const struct ibv_recv_wr *wr, uint32_t max_gs)
{
	uint32_t used = 0;
	int i;

	for (i = 0; i < wr->num_sge; ++i) {
		if (likely((int32_t)wr->sg_list[i].length > 0))
			mlx4_set_data(&seg[used++], &wr->sg_list[i]);
		else if (wr->sg_list[i].length)
			return -EINVAL;
	}
	if (used < max_gs)
		end_list(&seg[used]);
	return 0;
}

/* 0 or -EINVAL */
static inline int put_scatter(struct mlx4_wqe_data *seg, const struct ibv_recv_wr *wr, uint32_t max_gs)
{
	if (unlikely((uint32_t)wr->num_sge > max_gs))
		return -EINVAL;
	if (unlikely(wr->num_sge != 1 || (int32_t)wr->sg_list->length <= 0))
		return put_scatter_list(seg, wr, max_gs);

	mlx4_set_data(seg, wr->sg_list);
	if (max_gs > 1)
		end_list(seg + 1);
	return 0;
}

/* Whether there is no room at head even when nobody is polling; updates the limit. */
static int rq_full(struct mlx4_qp *qp, uint32_t head, uint32_t *limit)
{
	struct mlx4_cq *cq = to_mlx4_cq(qp->ibv_qp.recv_cq);

	mlx4_lock(&cq->lock);
	*limit = qp->rq.tail + qp->rq.max_post;
	mlx4_unlock(&cq->lock);
	return head == *limit;
}

int mlx4_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct mlx4_qp *qp = to_mlx4_qp(ibqp);
	struct mlx4_rq *const rq = &qp->rq;
	struct mlx4_wqe_data *seg;
	uint32_t head, limit;
	int ret = 0;

	mlx4_lock(&rq->lock);
	head = rq->head;
	/* Acquire: pairs with the release of the tail in cq-poll.c. */
	limit = __atomic_load_n(&rq->tail, __ATOMIC_ACQUIRE) + rq->max_post;

	for (; wr; wr = wr->next) {
		if (unlikely(head == limit) && rq_full(qp, head, &limit)) {
			/* A QP with an SRQ, or XRC, has no room at all. */
			ret = rq->max_post ? ENOMEM : EINVAL;
			goto bad;
		}
		seg = (struct mlx4_wqe_data *)(rq->wqes + ((size_t)(head & rq->mask) << rq->shift));
		if (unlikely(put_scatter(seg, wr, rq->max_gs))) {
			ret = EINVAL;
			goto bad;
		}
		rq->wrid[head & rq->mask] = wr->wr_id;
		++head;
	}

out:
	if (likely(head != rq->head)) {
		rq->head = head;
		udma_to_device_barrier(); /* pairs with the device's read of the record before the WQEs */
		*(volatile __be32 *)&rq->db->posted = to_be32(head & MLX4_RQ_DB_MASK);
	}
	mlx4_unlock(&rq->lock);
	return ret;

bad:
	*bad_wr = wr;
	goto out;
}

int mlx4_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct mlx4_srq *const srq = to_mlx4_srq(ibsrq);
	struct mlx4_wqe_srq_next *next;
	uint32_t head, posted = 0;
	int ret = 0;

	mlx4_lock(&srq->lock);
	head = srq->head;

	for (; wr; wr = wr->next) {
		/* The last free one stays: its link is not known yet. */
		if (unlikely(head == srq->tail)) {
			ret = ENOMEM;
			goto bad;
		}
		next = mlx4_srq_wqe(srq, head);
		if (unlikely(put_scatter((struct mlx4_wqe_data *)(next + 1), wr, srq->max_gs))) {
			ret = EINVAL;
			goto bad;
		}
		srq->wrid[head] = wr->wr_id;
		head = from_be16(next->next_wqe_index);
		++posted;
	}

out:
	if (likely(posted)) {
		srq->head = head;
		srq->counter += posted;
		udma_to_device_barrier(); /* pairs with the device's read of the record before the WQEs */
		*(volatile __be32 *)&srq->db->posted = to_be32(srq->counter & MLX4_RQ_DB_MASK);
	}
	mlx4_unlock(&srq->lock);
	return ret;

bad:
	*bad_wr = wr;
	goto out;
}
