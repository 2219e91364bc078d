// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Posts requests of a few bytes, with inline data and BlueFlame, and without a call for each.
 * post-send.c calls it with the lock of the SQ held; post-send-any.c handles all other requests. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include "mlx4-blueflame.h"
#include "mlx4-wqe.h"

/* The chunks of a datagram's WQE whose bytes are short: control and datagram segments, bytes. */
enum { MLX4_DATAGRAM_CHUNKS = 2 };

/* Copies 16 to 48 bytes, and reads no byte outside [src, src + n). */
static inline void copy_blocks(char *dst, const char *src, uint32_t n)
{
	const struct mlx4_block first = *(const struct mlx4_block *)src;
	const struct mlx4_block last = *(const struct mlx4_block *)(src + n - 16);

	if (n > 32)
		*(struct mlx4_block *)(dst + 16) = *(const struct mlx4_block *)(src + 16);
	*(struct mlx4_block *)dst = first;
	*(struct mlx4_block *)(dst + n - 16) = last;
}

/* Is the request one for this file? It has one entry and a known opcode, as post-send.c has
 * checked. end: of its data in the WQE; max: limit of inline bytes. */
static inline __attribute__((always_inline)) int
is_short(const struct ibv_send_wr *wr, const struct mlx4_send_op *op, uint32_t end, uint32_t max)
{
	/* A length of 0 wraps to more than max. */
	return wr->sg_list->length - 1 < max && end <= MLX4_CHUNK &&
	       !(op->segs & (OP_READ | OP_ATOMIC | SEG_UD)) &&
	       (uint32_t)wr->send_flags - IBV_SEND_INLINE <= MLX4_PLAIN_FLAGS;
}

static inline __attribute__((always_inline)) uint32_t data_end(const struct ibv_send_wr *wr,
							       const struct mlx4_send_op *op)
{
	return op->data_at + sizeof(struct mlx4_wqe_inline) + wr->sg_list->length;
}

static inline __attribute__((always_inline)) const struct mlx4_send_flags *
flags_of(const struct mlx4_sq *sq, const struct ibv_send_wr *wr)
{
	return &sq->flags[wr->send_flags & MLX4_PLAIN_FLAGS];
}

/* Writes the WQE except for the two words that BlueFlame changes. */
static inline __attribute__((always_inline)) void
fill(struct mlx4_sq *sq, struct mlx4_wqe_ctrl *ctrl, const struct ibv_send_wr *wr,
     const struct mlx4_send_op *op, uint32_t index)
{
	const uint32_t header_size = sizeof(struct mlx4_wqe_inline);
	uint32_t length = wr->sg_list->length;
	char *data = (char *)ctrl + op->data_at + header_size;
	__be32 ctrl_flags;

	sq->wrid[index & sq->mask] = wr->wr_id;
	if (length >= 16)
		copy_blocks(data, (const char *)(uintptr_t)wr->sg_list->addr, length);
	else
		mlx4_copy_short(data, (const char *)(uintptr_t)wr->sg_list->addr, length);
	mlx4_end_inline_seg(data - header_size, length);

	ctrl_flags = flags_of(sq, wr)->ctrl;
	if (op->segs) {
		if (op->segs & SEG_XRC)
			ctrl_flags |= to_be32(wr->xrc_remote_srq_num << MLX4_WQE_SRQN_SHIFT);
		if (op->segs & SEG_RADDR)
			mlx4_set_raddr(ctrl + 1, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
	}
	ctrl->flags = ctrl_flags;
	ctrl->imm = (MLX4_FORCE __be32)(wr->imm_data & (uint32_t)(int32_t)op->imm_mask);
}

static inline __attribute__((always_inline)) void make_valid(struct mlx4_wqe_ctrl *ctrl,
							     __be32 owner_opcode)
{
	udma_to_device_barrier(); /* pairs with the device's read of the owner bit before the rest
				     of the WQE */
	*(volatile __be32 *)&ctrl->owner_opcode = owner_opcode;
}

/* Writes the word with fence and size; its other bits are the VLAN or the doorbell value. */
static inline __attribute__((always_inline)) void set_size(struct mlx4_wqe_ctrl *ctrl, __be32 word)
{
	memcpy(&ctrl->vlan_tag, &word, sizeof(word));
}

/* Posts a datagram of one entry whose bytes fit the second chunk, and takes all other requests to
 * post-send-any.c. Requests that fit one chunk do not come here. */
static int __attribute__((noinline)) post_datagram(struct mlx4_qp *qp, struct ibv_send_wr *wr,
						   struct ibv_send_wr **bad_wr, uint32_t index)
{
	struct mlx4_context *ctx = to_mlx4_ctx(qp->ibv_qp.context);
	struct mlx4_sq *const sq = &qp->sq;
	const struct mlx4_send_op *op = &sq->ops[wr->opcode];
	uint32_t length = wr->sg_list->length, ds = (data_end(wr, op) + 15) / 16;
	struct mlx4_wqe_ctrl *ctrl = sq->next;
	__be32 size;
	char *data;

	/* As in is_short(). */
	if (!(op->segs & SEG_UD) || length - 1 >= sq->max_inline ||
	    ds > MLX4_DATAGRAM_CHUNKS * MLX4_CHUNK / 16 ||
	    ctx->blueflame_size < MLX4_DATAGRAM_CHUNKS * MLX4_CHUNK ||
	    (uint32_t)wr->send_flags - IBV_SEND_INLINE > MLX4_PLAIN_FLAGS)
		return mlx4_post_send_any(qp, wr, bad_wr, index);

	data = (char *)mlx4_set_datagram(ctrl + 1, wr) + sizeof(struct mlx4_wqe_inline);
	mlx4_copy_short(data, (const char *)(uintptr_t)wr->sg_list->addr, length);
	mlx4_end_inline_seg(data - sizeof(struct mlx4_wqe_inline), length);
	sq->wrid[index & sq->mask] = wr->wr_id;
	ctrl->flags = flags_of(sq, wr)->ctrl;
	ctrl->imm = (MLX4_FORCE __be32)(wr->imm_data & (uint32_t)(int32_t)op->imm_mask);
	if (ds > sq->longest_ds)
		sq->longest_ds = ds;
	size = to_be32(flags_of(sq, wr)->fence | ds);
	sq->head = index + 1;
	if (mlx4_lock_if_free(&ctx->blueflame_lock)) {
		set_size(ctrl, sq->doorbell_qpn | size);
		make_valid(ctrl, op->opcode | sq->owner | mlx4_blueflame_index(index));
		mlx4_write_blueflame(ctx, ctrl, MLX4_DATAGRAM_CHUNKS * MLX4_CHUNK);
	} else {
		set_size(ctrl, size);
		make_valid(ctrl, op->opcode | sq->owner);
		mlx4_ring_doorbell(sq);
	}
	mlx4_next_slot(sq, ctrl);
	mlx4_stamp(sq, index);
	mlx4_unlock(&sq->lock);
	return 0;
}

static inline __attribute__((always_inline)) int post_short(struct mlx4_qp *qp,
							    struct ibv_send_wr *wr,
							    struct ibv_send_wr **bad_wr,
							    uint32_t index, int locked)
{
	struct mlx4_sq *const sq = &qp->sq;
	const struct mlx4_send_op *op = &sq->ops[wr->opcode];
	uint32_t end = data_end(wr, op);
	struct mlx4_wqe_ctrl *ctrl;
	struct mlx4_context *ctx;
	__be32 size;

	/* Without BlueFlame max_short is 0. */
	if (!is_short(wr, op, end, sq->max_short))
		return post_datagram(qp, wr, bad_wr, index);

	ctrl = sq->next;
	fill(sq, ctrl, wr, op, index);
	size = to_be32(flags_of(sq, wr)->fence | (end + 15) / 16);
	ctx = to_mlx4_ctx(qp->ibv_qp.context);
	if (!locked || mlx4_trylock(&ctx->blueflame_lock)) {
		/* The register expects doorbell value and index in the WQE. */
		set_size(ctrl, sq->doorbell_qpn | size);
		make_valid(ctrl, op->opcode | sq->owner | mlx4_blueflame_index(index));
		mlx4_write_blueflame(ctx, ctrl, MLX4_CHUNK);
	} else {
		/* The device would take them for a VLAN if it read them from memory. */
		set_size(ctrl, size);
		make_valid(ctrl, op->opcode | sq->owner);
		mlx4_ring_doorbell(sq);
	}

	mlx4_next_slot(sq, ctrl);
	sq->head = index + 1;
	if (mlx4_has_long(sq))
		mlx4_stamp(sq, index);
	mlx4_unlock(&sq->lock);
	return 0;
}

int mlx4_post_short_list(struct mlx4_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
			 uint32_t index)
{
	struct mlx4_sq *const sq = &qp->sq;
	const struct mlx4_send_op *op;
	struct mlx4_wqe_ctrl *ctrl;
	uint32_t end;

	do {
		/* Repeats the stamp for the last WQE that the caller has posted, which does no
		 * harm. */
		if (mlx4_has_long(sq) && index != sq->head)
			mlx4_stamp(sq, index - 1);
		if (unlikely(index == sq->limit) || unlikely(wr->num_sge != 1) ||
		    unlikely((uint32_t)wr->opcode >= MLX4_SEND_OPCODES))
			return mlx4_post_send_any(qp, wr, bad_wr, index);
		op = &sq->ops[wr->opcode];
		end = data_end(wr, op);
		if (unlikely(!is_short(wr, op, end, sq->max_inline)))
			return mlx4_post_send_any(qp, wr, bad_wr, index);

		ctrl = sq->next;
		fill(sq, ctrl, wr, op, index);
		ctrl->fence_size = flags_of(sq, wr)->fence | (end + 15) / 16;
		make_valid(ctrl, op->opcode | sq->owner);
		mlx4_next_slot(sq, ctrl);
		++index;
		wr = wr->next;
	} while (wr);

	sq->head = index;
	mlx4_ring_doorbell(sq);
	if (mlx4_has_long(sq))
		mlx4_stamp(sq, index - 1);
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
