// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Posts send requests of every kind: inline data and BlueFlame, atomics, lists of entries, and
 * those that are refused. post-send.c calls it with the lock of the SQ held. Of the members that
 * the lock of the send CQ protects, it only reads the tail. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>

#include "mlx4-blueflame.h"
#include "mlx4-wqe.h"

/* Stamps a slot again whose WQE was abandoned half-written. */
static void restamp(const struct mlx4_sq *sq, struct mlx4_wqe_ctrl *ctrl)
{
	uint32_t offset;

	for (offset = MLX4_CHUNK; offset < sq->stride; offset += MLX4_CHUNK)
		mlx4_set_stamp((char *)ctrl + offset);
}

/* Returns the length of the list in bytes; UINT32_MAX also if it is longer. */
static uint32_t gather_length(const struct ibv_send_wr *wr)
{
	uint64_t total = 0;
	int i;

	for (i = 0; i < wr->num_sge; ++i)
		total += wr->sg_list[i].length;
	return total > UINT32_MAX ? UINT32_MAX : total;
}

/* Writes the entries as one run of bytes, a segment per chunk. Returns the end. */
static char *set_inline_list(char *seg, const struct ibv_send_wr *wr)
{
	const uint32_t header_size = sizeof(struct mlx4_wqe_inline);
	char *header = seg, *dst = seg + header_size;
	uint32_t room = MLX4_CHUNK - ((uintptr_t)dst & (MLX4_CHUNK - 1));
	uint32_t length, n;
	const char *src;
	int i;

	for (i = 0; i < wr->num_sge; ++i) {
		src = (const char *)(uintptr_t)wr->sg_list[i].addr;
		for (length = wr->sg_list[i].length; length; length -= n) {
			if (!room) {
				mlx4_end_inline_seg(header, dst - header - header_size);
				header = dst;
				dst += header_size;
				room = MLX4_CHUNK - header_size;
			}
			n = length < room ? length : room;
			mlx4_copy_short(dst, src, n);
			dst += n;
			src += n;
			room -= n;
		}
	}
	mlx4_end_inline_seg(header, dst - header - header_size);
	return dst;
}

/* Writes the data of an inline request as segments. Returns the end, or NULL if there is too much
 * data. */
static char *set_inline(const struct mlx4_sq *sq, char *seg, const struct ibv_send_wr *wr)
{
	uint32_t length = gather_length(wr);

	if (length > sq->max_inline)
		return NULL;
	return length ? set_inline_list(seg, wr) : seg;
}

/* Writes a gather list, the last entry first, so that the first word of a chunk is written last.
 * Returns the end, or NULL for a length that does not fit a segment. */
static char *set_gather(char *at, const struct ibv_sge *list, int n)
{
	struct mlx4_wqe_data *seg = (struct mlx4_wqe_data *)at;
	int i;

	for (i = n - 1; i >= 0; --i) {
		if (likely((int32_t)list[i].length > 0)) {
			mlx4_set_data(&seg[i], list[i].addr, mlx4_length_lkey(&list[i]));
		} else if (!list[i].length) {
			/* To the device a count of 0 means 2^31. An inline segment of length 0
			 * means no data. */
			seg[i].addr = to_be64(list[i].addr);
			seg[i].lkey = to_be32(list[i].lkey);
			udma_to_device_barrier(); /* pairs with the device's read of byte_count
						     before the rest */
			*(volatile __be32 *)&seg[i].byte_count = MLX4_BE32(MLX4_INLINE_SEG);
		} else {
			return NULL;
		}
	}
	return (char *)(seg + n);
}

static char *set_atomic(void *at, const struct ibv_send_wr *wr, uint32_t segs)
{
	struct mlx4_wqe_atomic *seg =
		mlx4_set_raddr(at, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);

	if (segs & SEG_CS) {
		seg->swap_add = to_be64(wr->wr.atomic.swap);
		seg->compare = to_be64(wr->wr.atomic.compare_add);
	} else {
		seg->swap_add = to_be64(wr->wr.atomic.compare_add);
		seg->compare = 0;
	}
	return (char *)(seg + 1);
}

/* Is the queue full at index? The final answer needs the lock of the send CQ, under which other
 * threads make room. Updates the limit. */
static int __attribute__((noinline)) is_full(struct mlx4_qp *qp, uint32_t index)
{
	struct mlx4_cq *cq = to_mlx4_cq(qp->ibv_qp.send_cq);
	uint16_t used;

	/* Acquire: pairs with the release of the tail in cq-poll.c. */
	used = index - __atomic_load_n(&qp->sq.tail, __ATOMIC_ACQUIRE);
	if (used >= qp->sq.max_post) {
		mlx4_lock(&cq->lock);
		used = index - qp->sq.tail;
		mlx4_unlock(&cq->lock);
	}
	qp->sq.limit = index - used + qp->sq.max_post;
	return index == qp->sq.limit;
}

/*
 * Writes a WQE except for the word with the owner bit, which it returns in *owner_opcode. Returns 0
 * or a positive errno value; on failure the slot still counts as unfinished. *blueflame: the WQE
 * should go to the BlueFlame register.
 */
static inline int build(struct mlx4_qp *qp, const struct ibv_send_wr *wr, uint32_t index,
			__be32 *owner_opcode, int *blueflame)
{
	struct mlx4_sq *sq = &qp->sq;
	struct mlx4_wqe_ctrl *ctrl = sq->next;
	const struct mlx4_send_flags *flags;
	const struct mlx4_send_op *op;
	char *seg, *fixed_end;
	__be32 ctrl_flags, size;
	uint32_t ds;

	if (unlikely(index == sq->limit) && is_full(qp, index))
		return ENOMEM;
	if (unlikely((uint32_t)wr->num_sge > sq->max_gs) ||
	    unlikely((uint32_t)wr->opcode >= MLX4_SEND_OPCODES))
		return EINVAL;

	op = &sq->ops[wr->opcode];
	flags = &sq->flags[wr->send_flags & MLX4_PLAIN_FLAGS];
	ctrl_flags = flags->ctrl;
	seg = (char *)(ctrl + 1);
	*blueflame = op->segs & OP_READ;

	if (op->segs) {
		if (op->segs & SEG_XRC)
			ctrl_flags |= to_be32(wr->xrc_remote_srq_num << MLX4_WQE_SRQN_SHIFT);
		if (op->segs & SEG_UD) {
			seg = mlx4_set_datagram(seg, wr);
		} else if (op->segs & OP_ATOMIC) {
			/* The atomic segment takes the place of a data segment. */
			if (unlikely((uint32_t)wr->num_sge >= sq->max_gs))
				return EINVAL;
			seg = set_atomic(seg, wr, op->segs);
		} else if (op->segs & SEG_RADDR) {
			seg = mlx4_set_raddr(seg, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
		}
	}

	fixed_end = seg;
	if (wr->send_flags & IBV_SEND_INLINE) {
		seg = op->segs & (OP_READ | OP_ATOMIC) ? NULL : set_inline(sq, seg, wr);
		*blueflame = seg != fixed_end;
	} else {
		seg = set_gather(seg, wr->sg_list, wr->num_sge);
	}
	if (unlikely(!seg)) {
		restamp(sq, ctrl);
		return EINVAL;
	}

	sq->wrid[index & sq->mask] = wr->wr_id;
	ctrl->flags = ctrl_flags;
	ctrl->imm = (MLX4_FORCE __be32)(wr->imm_data & (uint32_t)(int32_t)op->imm_mask);
	ds = (seg - (char *)ctrl + 15) / 16;
	/* Clear the VLAN tag, where BlueFlame may have left the QP number of an earlier WQE. */
	size = to_be32(flags->fence | ds);
	memcpy(&ctrl->vlan_tag, &size, sizeof(size));
	if (ds > sq->longest_ds)
		sq->longest_ds = ds;
	*owner_opcode = op->opcode | sq->owner;
	return 0;
}

/* Writes a finished WQE to the BlueFlame register, which expects index and doorbell value in it.
 * They also stay in memory, where the device does not read them any more. If another thread has the
 * register, the device reads the WQE from memory as it is. */
static void ring_blueflame(struct mlx4_context *ctx, struct mlx4_sq *sq, struct mlx4_wqe_ctrl *ctrl,
			   uint32_t index, uint32_t bytes)
{
	__be32 words[2];

	if (!mlx4_lock_if_free(&ctx->blueflame_lock)) {
		mlx4_ring_doorbell(sq);
		return;
	}
	words[0] = ctrl->owner_opcode | mlx4_blueflame_index(index);
	memcpy(&words[1], &ctrl->vlan_tag, sizeof(words[1]));
	words[1] |= sq->doorbell_qpn;
	memcpy(ctrl, words, sizeof(words));
	mlx4_write_blueflame(ctx, ctrl, mlx4_align(bytes, MLX4_CHUNK));
}

int mlx4_post_send_any(struct mlx4_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
		       uint32_t index)
{
	struct mlx4_context *ctx = to_mlx4_ctx(qp->ibv_qp.context);
	struct mlx4_sq *const sq = &qp->sq;
	struct mlx4_wqe_ctrl *ctrl = NULL;
	__be32 owner_opcode;
	int blueflame = 0;
	uint32_t bytes;
	int ret = 0;

	for (; wr; wr = wr->next) {
		ctrl = sq->next;
		ret = build(qp, wr, index, &owner_opcode, &blueflame);
		if (unlikely(ret)) {
			*bad_wr = wr;
			blueflame = 0;
			break;
		}

		udma_to_device_barrier(); /* pairs with the device's read of the owner bit before
					     the rest of the WQE */
		*(volatile __be32 *)&ctrl->owner_opcode = owner_opcode;

		++index;
		mlx4_next_slot(sq, ctrl);
		if (wr->next && mlx4_has_long(sq))
			mlx4_stamp(sq, index - 1);
	}

	if (likely(index != sq->head)) {
		bytes = 0;
		if (blueflame && index - sq->head == 1)
			bytes = (ctrl->fence_size & MLX4_WQE_DS_MASK) * 16;
		sq->head = index;
		if (bytes && bytes <= ctx->blueflame_size) {
			ring_blueflame(ctx, sq, ctrl, index - 1, bytes);
		} else {
			mlx4_ring_doorbell(sq);
		}
		if (mlx4_has_long(sq))
			mlx4_stamp(sq, index - 1);
	}
	mlx4_unlock(&sq->lock);
	return ret;
}
