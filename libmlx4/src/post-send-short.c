// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What inline data and BlueFlame are for: one request of a few bytes, without a call. Entered from
 * post-send.c with the SQ's lock; what does not fit is left to post-send-any.c. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include "mlx4-wqe.h"

/* From 16 to 48 bytes; no byte outside [src, src + n) is read. */
static inline void copy_blocks(char *dst, const char *src, uint32_t n)
{
	const struct mlx4_block first = *(const struct mlx4_block *)src;
	const struct mlx4_block last = *(const struct mlx4_block *)(src + n - 16);

	if (n > 32)
		*(struct mlx4_block *)(dst + 16) = *(const struct mlx4_block *)(src + 16);
	*(struct mlx4_block *)dst = first;
	*(struct mlx4_block *)(dst + n - 16) = last;
}

static inline __attribute__((always_inline)) int post_short(struct mlx4_qp *qp,
							    struct ibv_send_wr *wr,
							    struct ibv_send_wr **bad_wr,
							    uint32_t index, int locked)
{
	const uint32_t header_size = sizeof(struct mlx4_wqe_inline);
	struct mlx4_sq *const sq = &qp->sq;
	const struct mlx4_send_op *op = &sq->ops[wr->opcode];
	uint32_t length = wr->sg_list->length;
	uint32_t end = op->data_at + header_size + length;
	const struct mlx4_send_flags *flags;
	struct mlx4_wqe_ctrl *ctrl;
	struct mlx4_context *ctx;
	__be32 ctrl_flags, dw1;
	char *data;

	/* max_short is 0 without BlueFlame, and a length of 0 goes round to more than it is. */
	if (length - 1 >= sq->max_short || end > MLX4_CHUNK ||
	    op->segs & (OP_READ | OP_ATOMIC | SEG_UD) ||
	    (uint32_t)wr->send_flags > (MLX4_PLAIN_FLAGS | IBV_SEND_INLINE))
		return mlx4_post_send_any(qp, wr, bad_wr, index);

	sq->wrid[index & sq->mask] = wr->wr_id;
	ctrl = sq->next;
	data = (char *)ctrl + op->data_at + header_size;
	if (length >= 16)
		copy_blocks(data, (const char *)(uintptr_t)wr->sg_list->addr, length);
	else
		mlx4_copy_short(data, (const char *)(uintptr_t)wr->sg_list->addr, length);
	mlx4_end_inline_seg(data - header_size, length);

	flags = &sq->flags[wr->send_flags & MLX4_PLAIN_FLAGS];
	ctrl_flags = flags->ctrl;
	if (op->segs) {
		if (op->segs & SEG_XRC)
			ctrl_flags |= to_be32(wr->xrc_remote_srq_num << MLX4_WQE_SRQN_SHIFT);
		if (op->segs & SEG_RADDR)
			mlx4_set_raddr(ctrl + 1, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
	}
	ctrl->flags = ctrl_flags;
	ctrl->imm = (MLX4_FORCE __be32)(wr->imm_data & (uint32_t)(int32_t)op->imm_mask);

	/* The register wants doorbell and index in the WQE; in memory no one looks at them. */
	dw1 = sq->doorbell_qpn | to_be32(flags->fence | (end + 15) / 16);
	memcpy(&ctrl->vlan_tag, &dw1, sizeof(dw1));
	udma_to_device_barrier(); /* pairs with the device's read of the owner bit before the rest
				     of the WQE */
	*(volatile __be32 *)&ctrl->owner_opcode =
		op->opcode | sq->owner | mlx4_blueflame_index(index);

	ctx = to_mlx4_ctx(qp->ibv_qp.context);
	if (!locked || mlx4_trylock(&ctx->bf_lock))
		mlx4_write_blueflame(ctx, ctrl, MLX4_CHUNK);
	else
		mlx4_ring_doorbell(sq);

	mlx4_next_slot(sq, ctrl);
	sq->head = index + 1;
	if (mlx4_has_long(sq))
		mlx4_stamp(sq, index);
	mlx4_unlock(&sq->lock);
	return 0;
}

int mlx4_post_short(struct mlx4_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
		    uint32_t index)
{
	return post_short(qp, wr, bad_wr, index, 1);
}

int mlx4_post_short_st(struct mlx4_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
		       uint32_t index)
{
	return post_short(qp, wr, bad_wr, index, 0);
}
