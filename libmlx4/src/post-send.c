// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Turns send requests into WQEs and a doorbell: common requests, without a call. It leaves all
 * others to post-send-any.c, with the lock held. It makes no system calls, allocates no memory and
 * does not check the state of the QP. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include "mlx4-wqe.h"

static int __attribute__((noinline))
post_contended(struct mlx4_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	mlx4_lock_wait(&qp->sq.lock);
	return mlx4_post_send_any(qp, wr, bad_wr, qp->sq.head);
}

/* Members of the queue that posting a list keeps in registers. A single post reads each where it
 * needs it. */
struct cursor {
	struct mlx4_wqe_ctrl *ctrl;
	const struct mlx4_send_op *ops;
	const struct mlx4_send_flags *flags;
	uint64_t *wrid;
	uint32_t mask;
};

#define AT(c, sq, field) ((c) ? (c)->field : (sq)->field)

/* Writes the rest of a WQE: its data, then the word that makes it valid. */
static inline __attribute__((always_inline)) void finish(const struct mlx4_sq *sq,
							 struct mlx4_wqe_ctrl *ctrl, void *seg,
							 const struct ibv_send_wr *wr,
							 const struct mlx4_send_op *op,
							 uint64_t addr, uint64_t length_lkey)
{
	mlx4_set_data(seg, addr, length_lkey);
	ctrl->imm = (MLX4_FORCE __be32)(wr->imm_data & (uint32_t)(int32_t)op->imm_mask);
	udma_to_device_barrier(); /* pairs with the device's read of the owner bit before the rest
				     of the WQE */
	*(volatile __be32 *)&ctrl->owner_opcode = op->opcode | sq->owner;
}

enum posted { POSTED, FLAGS_NOT_PLAIN, NOT_PLAIN };

/*
 * Posts a WQE with one data segment at the cursor, or at sq->next without a cursor, and advances to
 * the next slot. Otherwise returns the reason why it cannot, and has touched at most the first
 * chunk of the slot.
 */
static inline __attribute__((always_inline)) enum posted
post_one(struct mlx4_sq *sq, struct cursor *c, const struct ibv_send_wr *wr, uint32_t index)
{
	struct mlx4_wqe_ctrl *ctrl = c ? c->ctrl : sq->next;
	const struct mlx4_send_op *op;
	const struct ibv_sge *sge;
	uint64_t length_lkey;
	__be32 flags;
	void *seg;

	if (unlikely(index == sq->limit) || unlikely(wr->num_sge != 1) ||
	    unlikely((uint32_t)wr->opcode >= MLX4_SEND_OPCODES))
		return NOT_PLAIN;
	if (unlikely((uint32_t)wr->send_flags > MLX4_PLAIN_FLAGS))
		return FLAGS_NOT_PLAIN;
	sge = wr->sg_list;
	length_lkey = mlx4_length_lkey(sge);
	if (unlikely(mlx4_pair_length(length_lkey) <= 0))
		return NOT_PLAIN;

	AT(c, sq, wrid)[index & AT(c, sq, mask)] = wr->wr_id;
	op = &AT(c, sq, ops)[wr->opcode];
	ctrl->fence_size = AT(c, sq, flags)[(uint32_t)wr->send_flags].fence | op->ds;
	flags = AT(c, sq, flags)[(uint32_t)wr->send_flags].ctrl;

	if (!op->segs) {
		ctrl->flags = flags;
		finish(sq, ctrl, ctrl + 1, wr, op, sge->addr, length_lkey);
	} else if (op->segs == SEG_XRC) {
		ctrl->flags = flags | to_be32(wr->xrc_remote_srq_num << MLX4_WQE_SRQN_SHIFT);
		finish(sq, ctrl, ctrl + 1, wr, op, sge->addr, length_lkey);
	} else {
		if (op->segs & SEG_XRC)
			flags |= to_be32(wr->xrc_remote_srq_num << MLX4_WQE_SRQN_SHIFT);
		ctrl->flags = flags;
		if (unlikely(op->segs & (SEG_CS | SEG_FA | OP_READ)))
			return NOT_PLAIN;
		if (op->segs & SEG_UD) {
			seg = mlx4_set_datagram(ctrl + 1, wr);
			if (sq->longest_ds < op->ds)
				sq->longest_ds = op->ds;
		} else {
			seg = mlx4_set_raddr(ctrl + 1, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
		}
		finish(sq, ctrl, seg, wr, op, sge->addr, length_lkey);
	}

	ctrl = (struct mlx4_wqe_ctrl *)((char *)ctrl + sq->stride);
	if (unlikely(ctrl == sq->end)) {
		ctrl = (struct mlx4_wqe_ctrl *)sq->wqes;
		sq->owner ^= MLX4_BE32(MLX4_WQE_OWNER);
	}
	if (c)
		c->ctrl = ctrl;
	else
		sq->next = ctrl;
	return POSTED;
}

static inline __attribute__((always_inline)) void ring(struct mlx4_sq *sq, uint32_t index)
{
	sq->head = index;
	mlx4_ring_doorbell(sq);
	if (mlx4_has_long(sq))
		mlx4_stamp(sq, index - 1);
}

/* Posts the rest of a list whose first request has been posted. index is the index after it. */
static int __attribute__((noinline))
post_more(struct mlx4_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr, uint32_t index)
{
	struct mlx4_sq *const sq = &qp->sq;
	struct cursor c = {.ctrl = sq->next,
			   .ops = sq->ops,
			   .flags = sq->flags,
			   .wrid = sq->wrid,
			   .mask = sq->mask};
	enum posted posted;

	do {
		if (mlx4_has_long(sq))
			mlx4_stamp(sq, index - 1);
		posted = post_one(sq, &c, wr, index);
		if (unlikely(posted != POSTED)) {
			sq->next = c.ctrl;
			return posted == FLAGS_NOT_PLAIN
				       ? mlx4_post_short_list(qp, wr, bad_wr, index)
				       : mlx4_post_send_any(qp, wr, bad_wr, index);
		}
		++index;
		wr = wr->next;
	} while (wr);

	sq->next = c.ctrl;
	ring(sq, index);
	mlx4_unlock(&sq->lock);
	return 0;
}

static inline __attribute__((always_inline)) int
post_send(struct mlx4_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr, int locked)
{
	struct mlx4_sq *const sq = &qp->sq;
	enum posted posted;
	uint32_t index;

	if (locked && !mlx4_trylock(&sq->lock))
		return post_contended(qp, wr, bad_wr);

	index = sq->head;
	if (unlikely(!wr))
		return mlx4_post_send_any(qp, wr, bad_wr, index);
	posted = post_one(sq, NULL, wr, index);
	if (unlikely(posted == FLAGS_NOT_PLAIN)) {
		if (wr->next)
			return mlx4_post_short_list(qp, wr, bad_wr, index);
		return locked ? mlx4_post_short(qp, wr, bad_wr, index)
			      : mlx4_post_short_st(qp, wr, bad_wr, index);
	}
	if (unlikely(posted != POSTED))
		return mlx4_post_send_any(qp, wr, bad_wr, index);
	++index;
	if (wr->next)
		return post_more(qp, wr->next, bad_wr, index);

	ring(sq, index);
	if (locked)
		mlx4_unlock(&sq->lock);
	return 0;
}

int mlx4_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	return post_send(to_mlx4_qp(ibqp), wr, bad_wr, 1);
}

int mlx4_post_send_st(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	return post_send(to_mlx4_qp(ibqp), wr, bad_wr, 0);
}
