// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Turns receive requests into scatter lists, and writes one doorbell record per call. Runs under
 * the lock of the RQ or SRQ. Receives need no MMIO. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>

#include "mlx4-wqe.h"

/* count is read after the barrier. */
#define set_record(db, count)                                                                        \
	do {                                                                                         \
		udma_to_device_barrier(); /* pairs with the device's read of the record before the \
					     WQEs */ \
		*(volatile __be32 *)&(db)->posted = to_be32((count)&MLX4_RQ_DB_MASK);                \
	} while (0)

/*
 * Writes a scatter list of any length. Entries of length 0 are left out, because a count of 0 means
 * 2^31 to the device. Returns 0, or a positive errno value if the device has no form for the list;
 * the slot is not posted then.
 */
static int set_scatter(struct mlx4_wqe_data *seg, const struct ibv_recv_wr *wr, uint32_t max_gs)
{
	uint32_t used = 0;
	int i;

	if ((uint32_t)wr->num_sge > max_gs)
		return EINVAL;
	for (i = 0; i < wr->num_sge; ++i) {
		if (likely((int32_t)wr->sg_list[i].length > 0))
			mlx4_set_data(&seg[used++], wr->sg_list[i].addr,
				      mlx4_length_lkey(&wr->sg_list[i]));
		else if (wr->sg_list[i].length)
			return EINVAL;
	}
	if (used < max_gs)
		mlx4_end_list(&seg[used]);
	return 0;
}

/* Is the queue full at head? The final answer needs the lock of the receive CQ, under which other
 * threads make room. Updates the limit. */
static int __attribute__((noinline)) is_full(struct mlx4_qp *qp, uint32_t head)
{
	struct mlx4_cq *cq = to_mlx4_cq(qp->ibv_qp.recv_cq);

	/* Acquire: pairs with the release of the tail in cq-poll.c. */
	qp->rq.limit = __atomic_load_n(&qp->rq.tail, __ATOMIC_ACQUIRE) + qp->rq.max_post;
	if (head != qp->rq.limit)
		return 0;

	mlx4_lock(&cq->lock);
	qp->rq.limit = qp->rq.tail + qp->rq.max_post;
	mlx4_unlock(&cq->lock);
	return head == qp->rq.limit;
}

static inline struct mlx4_wqe_data *rq_slot(const struct mlx4_rq *rq, uint32_t slot)
{
	return (struct mlx4_wqe_data *)(rq->wqes + ((size_t)slot << rq->shift));
}

/* Posts requests that the fast path does not handle. The caller holds the lock; this function
 * releases it. head is the index after the requests that the call has posted. */
static int __attribute__((noinline)) post_recv_any(struct mlx4_qp *qp, struct ibv_recv_wr *wr,
						   struct ibv_recv_wr **bad_wr, uint32_t head)
{
	struct mlx4_rq *const rq = &qp->rq;
	int ret = 0;

	for (; wr; wr = wr->next) {
		/* QPs with an SRQ and XRC QPs have no receive queue. */
		if (unlikely(head == rq->limit) && is_full(qp, head))
			ret = rq->max_post ? ENOMEM : EINVAL;
		else
			ret = set_scatter(rq_slot(rq, head & rq->mask), wr, rq->max_gs);
		if (ret) {
			*bad_wr = wr;
			break;
		}
		rq->wrid[head & rq->mask] = wr->wr_id;
		++head;
	}

	if (head != rq->head) {
		rq->head = head;
		set_record(rq->db, head);
	}
	mlx4_unlock(&rq->lock);
	return ret;
}

static int __attribute__((noinline))
post_recv_contended(struct mlx4_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	mlx4_lock_wait(&qp->rq.lock);
	return post_recv_any(qp, wr, bad_wr, qp->rq.head);
}

/* Posts a receive with one entry. Returns 0 for any other request, without touching the slot. */
static inline __attribute__((always_inline)) int
post_recv_one(struct mlx4_rq *rq, const struct ibv_recv_wr *wr, uint32_t head)
{
	struct mlx4_wqe_data *seg;
	uint64_t length_lkey;
	uint32_t slot;

	if (unlikely(head == rq->limit) || unlikely(wr->num_sge != 1))
		return 0;
	length_lkey = mlx4_length_lkey(wr->sg_list);
	if (unlikely(mlx4_pair_length(length_lkey) <= 0))
		return 0;

	slot = head & rq->mask;
	rq->wrid[slot] = wr->wr_id;
	seg = rq_slot(rq, slot);
	if (rq->max_gs > 1)
		mlx4_end_list(seg + 1);
	mlx4_set_data(seg, wr->sg_list->addr, length_lkey);
	return 1;
}

/* Posts the requests after wr, which has been posted. head is the index after it. */
static int __attribute__((noinline)) post_recv_more(struct mlx4_qp *qp, struct ibv_recv_wr *wr,
						    struct ibv_recv_wr **bad_wr, uint32_t head)
{
	struct mlx4_rq *const rq = &qp->rq;

	while ((wr = wr->next)) {
		if (unlikely(!post_recv_one(rq, wr, head)))
			return post_recv_any(qp, wr, bad_wr, head);
		++head;
	}

	rq->head = head;
	set_record(rq->db, head);
	mlx4_unlock(&rq->lock);
	return 0;
}

static inline __attribute__((always_inline)) int
post_recv(struct mlx4_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr, int locked)
{
	struct mlx4_rq *const rq = &qp->rq;
	uint32_t head;

	if (locked && !mlx4_trylock(&rq->lock))
		return post_recv_contended(qp, wr, bad_wr);

	head = rq->head;
	if (unlikely(!wr) || unlikely(!post_recv_one(rq, wr, head)))
		return post_recv_any(qp, wr, bad_wr, head);
	++head;
	if (wr->next)
		return post_recv_more(qp, wr, bad_wr, head);

	rq->head = head;
	set_record(rq->db, head);
	if (locked)
		mlx4_unlock(&rq->lock);
	return 0;
}

int mlx4_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return post_recv(to_mlx4_qp(ibqp), wr, bad_wr, 1);
}

int mlx4_post_recv_st(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return post_recv(to_mlx4_qp(ibqp), wr, bad_wr, 0);
}

/* Like post_recv_any(), under the lock of the SRQ. counter already includes what the call has
 * posted. */
static int __attribute__((noinline))
post_srq_any(struct mlx4_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct mlx4_srq_wqe *head;
	int ret = 0;

	for (; wr; wr = wr->next) {
		head = srq->head;
		if (!head->next)
			ret = ENOMEM;
		else
			ret = set_scatter((struct mlx4_wqe_data *)(head->wqe + 1), wr, srq->max_gs);
		if (ret) {
			*bad_wr = wr;
			break;
		}
		head->wr_id = wr->wr_id;
		head->wqe->next_wqe_index = (MLX4_FORCE __be16)head->next->link;
		srq->head = head->next;
		++srq->counter;
	}

	set_record(srq->db, srq->counter);
	mlx4_unlock(&srq->lock);
	return ret;
}

static int __attribute__((noinline))
post_srq_contended(struct mlx4_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	mlx4_lock_wait(&srq->lock);
	return post_srq_any(srq, wr, bad_wr);
}

static inline __attribute__((always_inline)) int post_srq_one(struct mlx4_srq *srq,
							      const struct ibv_recv_wr *wr)
{
	struct mlx4_srq_wqe *head = srq->head, *next = head->next;
	struct mlx4_wqe_data *seg;
	uint64_t length_lkey;

	if (unlikely(!next) || unlikely(wr->num_sge != 1))
		return 0;
	length_lkey = mlx4_length_lkey(wr->sg_list);
	if (unlikely(mlx4_pair_length(length_lkey) <= 0))
		return 0;

	srq->head = next;
	head->wr_id = wr->wr_id;
	++srq->counter;
	head->wqe->next_wqe_index = (MLX4_FORCE __be16)next->link;
	seg = (struct mlx4_wqe_data *)(head->wqe + 1);
	if (srq->max_gs > 1)
		mlx4_end_list(seg + 1);
	mlx4_set_data(seg, wr->sg_list->addr, length_lkey);
	return 1;
}

/* Posts the requests after wr, which has been posted. */
static int __attribute__((noinline))
post_srq_more(struct mlx4_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	while ((wr = wr->next))
		if (unlikely(!post_srq_one(srq, wr)))
			return post_srq_any(srq, wr, bad_wr);

	set_record(srq->db, srq->counter);
	mlx4_unlock(&srq->lock);
	return 0;
}

static inline __attribute__((always_inline)) int
post_srq(struct mlx4_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr, int locked)
{
	if (locked && !mlx4_trylock(&srq->lock))
		return post_srq_contended(srq, wr, bad_wr);

	if (unlikely(!wr) || unlikely(!post_srq_one(srq, wr)))
		return post_srq_any(srq, wr, bad_wr);
	if (wr->next)
		return post_srq_more(srq, wr, bad_wr);

	set_record(srq->db, srq->counter);
	if (locked)
		mlx4_unlock(&srq->lock);
	return 0;
}

int mlx4_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return post_srq(to_mlx4_srq(ibsrq), wr, bad_wr, 1);
}

int mlx4_post_srq_recv_st(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
			  struct ibv_recv_wr **bad_wr)
{
	return post_srq(to_mlx4_srq(ibsrq), wr, bad_wr, 0);
}
