// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Send work requests become WQEs and a doorbell. Under the SQ's lock; of what the send CQ's lock guards only the tail
 * is read, under that lock when the queue looks full. Never touches the kernel, allocates or looks at the QP's state. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>

#include "mlx4.h"

/* Segments between control and data, and where else an opcode differs. */
enum {
	SEG_XRC = 1 << 0,   /* remote SRQ number in the control segment */
	SEG_RADDR = 1 << 1, /* remote address */
	SEG_CS = 1 << 2,    /* atomics */
	SEG_FA = 1 << 3,
	SEG_UD = 1 << 4, /* datagram */
	OP_READ = 1 << 5, /* fetches: no data of ours to put inline; as good as inline for BlueFlame */
	OP_ATOMIC = SEG_CS | SEG_FA,
};

enum { OPCODES = IBV_WR_ATOMIC_FETCH_AND_ADD + 1 };

struct mlx4_send_op {
	__be32 opcode;
	uint32_t imm_mask; /* all ones where the immediate is sent */
	uint32_t segs;
	uint32_t reserved;
};

#define OP(verbs, code, imm, s) [verbs] = { .opcode = MLX4_BE32(code), .imm_mask = (imm), .segs = (s) }
#define IMM 0xffffffffu

#define CONNECTED_OPS(x) \
	{ \
		OP(IBV_WR_RDMA_WRITE, MLX4_OPCODE_RDMA_WRITE, 0, SEG_RADDR | (x)), \
		OP(IBV_WR_RDMA_WRITE_WITH_IMM, MLX4_OPCODE_RDMA_WRITE_IMM, IMM, SEG_RADDR | (x)), \
		OP(IBV_WR_SEND, MLX4_OPCODE_SEND, 0, (x)), \
		OP(IBV_WR_SEND_WITH_IMM, MLX4_OPCODE_SEND_IMM, IMM, (x)), \
		OP(IBV_WR_RDMA_READ, MLX4_OPCODE_RDMA_READ, 0, SEG_RADDR | OP_READ | (x)), \
		OP(IBV_WR_ATOMIC_CMP_AND_SWP, MLX4_OPCODE_ATOMIC_CS, 0, SEG_RADDR | SEG_CS | (x)), \
		OP(IBV_WR_ATOMIC_FETCH_AND_ADD, MLX4_OPCODE_ATOMIC_FA, 0, SEG_RADDR | SEG_FA | (x)), \
	}

static const struct mlx4_send_op rc_ops[OPCODES] = CONNECTED_OPS(0);
static const struct mlx4_send_op xrc_ops[OPCODES] = CONNECTED_OPS(SEG_XRC);

/* What the transport does not have reaches the device as it is, which completes it in error. */
static const struct mlx4_send_op uc_ops[OPCODES] = {
	OP(IBV_WR_RDMA_WRITE, MLX4_OPCODE_RDMA_WRITE, 0, SEG_RADDR),
	OP(IBV_WR_RDMA_WRITE_WITH_IMM, MLX4_OPCODE_RDMA_WRITE_IMM, IMM, SEG_RADDR),
	OP(IBV_WR_SEND, MLX4_OPCODE_SEND, 0, 0),
	OP(IBV_WR_SEND_WITH_IMM, MLX4_OPCODE_SEND_IMM, IMM, 0),
	OP(IBV_WR_RDMA_READ, MLX4_OPCODE_RDMA_READ, 0, 0),
	OP(IBV_WR_ATOMIC_CMP_AND_SWP, MLX4_OPCODE_ATOMIC_CS, 0, 0),
	OP(IBV_WR_ATOMIC_FETCH_AND_ADD, MLX4_OPCODE_ATOMIC_FA, 0, 0),
};

static const struct mlx4_send_op ud_ops[OPCODES] = {
	OP(IBV_WR_RDMA_WRITE, MLX4_OPCODE_RDMA_WRITE, 0, SEG_UD),
	OP(IBV_WR_RDMA_WRITE_WITH_IMM, MLX4_OPCODE_RDMA_WRITE_IMM, IMM, SEG_UD),
	OP(IBV_WR_SEND, MLX4_OPCODE_SEND, 0, SEG_UD),
	OP(IBV_WR_SEND_WITH_IMM, MLX4_OPCODE_SEND_IMM, IMM, SEG_UD),
	OP(IBV_WR_RDMA_READ, MLX4_OPCODE_RDMA_READ, 0, SEG_UD),
	OP(IBV_WR_ATOMIC_CMP_AND_SWP, MLX4_OPCODE_ATOMIC_CS, 0, SEG_UD),
	OP(IBV_WR_ATOMIC_FETCH_AND_ADD, MLX4_OPCODE_ATOMIC_FA, 0, SEG_UD),
};

const struct mlx4_send_op *mlx4_send_ops(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UD:
		return ud_ops;
	case IBV_QPT_UC:
		return uc_ops;
	case IBV_QPT_XRC:
		return xrc_ops;
	default:
		return rc_ops;
	}
}

/* IBV_SEND_SIGNALED and IBV_SEND_SOLICITED as control segment flags, by the low bits of send_flags. */
static const __be32 ctrl_flags[8] = {
	[IBV_SEND_SIGNALED] = MLX4_BE32(MLX4_WQE_CQ_UPDATE),
	[IBV_SEND_SIGNALED | IBV_SEND_FENCE] = MLX4_BE32(MLX4_WQE_CQ_UPDATE),
	[IBV_SEND_SOLICITED] = MLX4_BE32(MLX4_WQE_SOLICITED),
	[IBV_SEND_SOLICITED | IBV_SEND_FENCE] = MLX4_BE32(MLX4_WQE_SOLICITED),
	[IBV_SEND_SOLICITED | IBV_SEND_SIGNALED] = MLX4_BE32(MLX4_WQE_SOLICITED | MLX4_WQE_CQ_UPDATE),
	[IBV_SEND_SOLICITED | IBV_SEND_SIGNALED | IBV_SEND_FENCE] = MLX4_BE32(MLX4_WQE_SOLICITED | MLX4_WQE_CQ_UPDATE),
};
_Static_assert(IBV_SEND_FENCE == 1 && IBV_SEND_SIGNALED == 2 && IBV_SEND_SOLICITED == 4, "index of ctrl_flags");
_Static_assert(IBV_SEND_FENCE << 6 == MLX4_WQE_FENCE, "fence bit");

/*
 * The slot that the headroom reaches next becomes unfinished in every chunk but the first, over the length of what it
 * held. The first chunk needs no stamp: its owner bit says the same.
 */
static inline void stamp(const struct mlx4_sq *sq, uint32_t index)
{
	struct mlx4_wqe_ctrl *ctrl = mlx4_sq_slot(sq, index);
	uint32_t bytes = (ctrl->fence_size & MLX4_WQE_DS_MASK) * 16;
	uint32_t offset;

	for (offset = MLX4_CHUNK; offset < bytes; offset += MLX4_CHUNK)
		*(volatile __be32 *)((char *)ctrl + offset) = MLX4_BE32(MLX4_STAMP);
}

/* A slot whose WQE was given up half-written. */
static void restamp(const struct mlx4_sq *sq, struct mlx4_wqe_ctrl *ctrl)
{
	uint32_t offset;

	for (offset = MLX4_CHUNK; offset < 1u << sq->shift; offset += MLX4_CHUNK)
		*(volatile __be32 *)((char *)ctrl + offset) = MLX4_BE32(MLX4_STAMP);
}

/* Up to a chunk's worth, no byte outside [src, src + n) read; a call would cost more than the copy. */
static inline void copy_short(char *dst, const char *src, uint32_t n)
{
	struct block {
		char bytes[16];
	} __attribute__((may_alias));

	if (n >= 16) {
		const struct block last = *(const struct block *)(src + n - 16);
		uint32_t i;

		for (i = 0; i + 16 < n; i += 16)
			*(struct block *)(dst + i) = *(const struct block *)(src + i);
		*(struct block *)(dst + n - 16) = last;
	} else if (n >= 8) {
		uint64_t first, last;

		memcpy(&first, src, 8);
		memcpy(&last, src + n - 8, 8);
		memcpy(dst, &first, 8);
		memcpy(dst + n - 8, &last, 8);
	} else if (n >= 4) {
		uint32_t first, last;

		memcpy(&first, src, 4);
		memcpy(&last, src + n - 4, 4);
		memcpy(dst, &first, 4);
		memcpy(dst + n - 4, &last, 4);
	} else if (n) {
		dst[0] = src[0];
		if (n > 1) {
			dst[1] = src[1];
			dst[n - 1] = src[n - 1];
		}
	}
}

/* The header comes after its bytes, so that a chunk which was prefetched in between still carries its stamp. */
static inline void end_inline_seg(char *header, const char *end)
{
	udma_to_device_barrier(); /* pairs with the device's read of a header before the bytes behind it */
	*(volatile __be32 *)header = to_be32(MLX4_INLINE_SEG | (uint32_t)(end - header - sizeof(struct mlx4_wqe_inline)));
}

/* How many bytes the list has; more than can be inline when the sum is. */
static uint32_t gather_length(const struct ibv_send_wr *wr)
{
	uint64_t total = 0;
	int i;

	for (i = 0; i < wr->num_sge; ++i)
		total += wr->sg_list[i].length;
	return total > UINT32_MAX ? UINT32_MAX : total;
}

/* The list as one run of bytes, a segment per chunk. Returns where it ends. */
static char *put_inline_list(char *seg, const struct ibv_send_wr *wr)
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
				end_inline_seg(header, dst);
				header = dst;
				dst += header_size;
				room = MLX4_CHUNK - header_size;
			}
			n = length < room ? length : room;
			copy_short(dst, src, n);
			dst += n;
			src += n;
			room -= n;
		}
	}
	end_inline_seg(header, dst);
	return dst;
}

/* A gather list that is not one plain entry, last entry first so that a chunk's first word is its last. Returns 0 or
 * -EINVAL for a length that no segment can say. */
static int put_data_list(struct mlx4_wqe_data *seg, const struct ibv_sge *list, int n)
{
	int i;

	for (i = n - 1; i >= 0; --i) {
		if (likely((int32_t)list[i].length > 0)) {
			mlx4_set_data(&seg[i], &list[i]);
		} else if (!list[i].length) {
			/* A count of 0 would mean 2^31; an inline segment of nothing means nothing. */
			seg[i].addr = to_be64(list[i].addr);
			seg[i].lkey = to_be32(list[i].lkey);
			udma_to_device_barrier(); /* pairs with the device's read of byte_count before the rest */
			*(volatile __be32 *)&seg[i].byte_count = MLX4_BE32(MLX4_INLINE_SEG);
		} else {
			return -EINVAL;
		}
	}
	return 0;
}

static inline void *put_raddr(struct mlx4_wqe_raddr *seg, uint64_t addr, uint32_t rkey)
{
	seg->raddr = to_be64(addr);
	seg->rkey = to_be32(rkey);
	seg->reserved = 0;
	return seg + 1;
}

static void *put_atomic(struct mlx4_wqe_atomic *seg, const struct ibv_send_wr *wr, uint32_t segs)
{
	if (segs & SEG_CS) {
		seg->swap_add = to_be64(wr->wr.atomic.swap);
		seg->compare = to_be64(wr->wr.atomic.compare_add);
	} else {
		seg->swap_add = to_be64(wr->wr.atomic.compare_add);
		seg->compare = 0;
	}
	return seg + 1;
}

static inline void *put_datagram(struct mlx4_wqe_datagram *seg, const struct ibv_send_wr *wr)
{
	const struct mlx4_ah *ah = to_mlx4_ah(wr->wr.ud.ah);

	seg->av = ah->av;
	seg->dqpn = to_be32(wr->wr.ud.remote_qpn);
	seg->qkey = to_be32(wr->wr.ud.remote_qkey);
	seg->vlan = ah->vlan;
	memcpy(seg->mac, ah->mac, sizeof(seg->mac));
	return seg + 1;
}

/* Whether there is no room at head even when nobody is polling; updates the limit. */
static int sq_full(struct mlx4_qp *qp, uint32_t head, uint32_t *limit)
{
	struct mlx4_cq *cq = to_mlx4_cq(qp->ibv_qp.send_cq);

	mlx4_lock(&cq->lock);
	*limit = qp->sq.tail + qp->sq.max_post;
	mlx4_unlock(&cq->lock);
	return head == *limit;
}

/* The one WQE just posted goes through the BlueFlame register, which is a doorbell too. */
static void post_blueflame(struct mlx4_context *ctx, struct mlx4_sq *sq, struct mlx4_wqe_ctrl *ctrl, uint32_t index,
			   uint32_t bytes)
{
	__be32 words[2];

	/* dw0 gains the index, dw1 the doorbell; they stay in memory as well, where no one looks at them. */
	words[0] = ctrl->owner_opcode | to_be32((index & MLX4_WQE_INDEX_MASK) << MLX4_WQE_INDEX_SHIFT);
	memcpy(&words[1], &ctrl->vlan_tag, sizeof(words[1]));
	words[1] |= sq->doorbell_qpn;
	memcpy(ctrl, words, sizeof(words));

	udma_to_device_barrier(); /* the WQE is in memory before the register says so */
	mlx4_lock(&ctx->bf_lock);
	mmio_copy_chunks((char *)ctx->bf + ctx->bf_offset, ctrl, mlx4_align(bytes, MLX4_CHUNK));
	mmio_flush_writes(); /* this buffer leaves before the next user of the register fills the other */
	ctx->bf_offset ^= ctx->bf_size;
	mlx4_unlock(&ctx->bf_lock);
}

int mlx4_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct mlx4_qp *qp = to_mlx4_qp(ibqp);
	struct mlx4_sq *const sq = &qp->sq;
	struct mlx4_wqe_ctrl *ctrl = NULL;
	const struct mlx4_send_op *op;
	uint32_t ind, limit, length;
	uint32_t blueflame = 0; /* bytes of a WQE that may go there, the last one's */
	uint32_t send_flags;
	__be32 flags;
	int ret = 0;
	char *seg;

	mlx4_lock(&sq->lock);
	ind = sq->head;
	/* Acquire: pairs with the release of the tail in cq-poll.c. */
	limit = __atomic_load_n(&sq->tail, __ATOMIC_ACQUIRE) + sq->max_post;

	for (; wr; wr = wr->next) {
		if (unlikely(ind == limit) && sq_full(qp, ind, &limit)) {
			ret = ENOMEM;
			goto bad;
		}
		if (unlikely((uint32_t)wr->num_sge > sq->max_gs) || unlikely((uint32_t)wr->opcode >= OPCODES)) {
			ret = EINVAL;
			goto bad;
		}

		ctrl = mlx4_sq_slot(sq, ind);
		seg = (char *)(ctrl + 1);
		op = &sq->ops[wr->opcode];
		send_flags = wr->send_flags;
		flags = ctrl_flags[send_flags & 7] | sq->flags;
		blueflame = 0;

		if (op->segs) {
			if (op->segs & SEG_XRC)
				flags |= to_be32(wr->xrc_remote_srq_num << MLX4_WQE_SRQN_SHIFT);
			if (op->segs & SEG_UD) {
				seg = put_datagram((void *)seg, wr);
			} else if (op->segs & OP_ATOMIC) {
				/* Takes the place of a data segment. */
				if (unlikely((uint32_t)wr->num_sge >= sq->max_gs)) {
					ret = EINVAL;
					goto bad;
				}
				seg = put_raddr((void *)seg, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
				seg = put_atomic((void *)seg, wr, op->segs);
			} else if (op->segs & SEG_RADDR) {
				seg = put_raddr((void *)seg, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
				blueflame = op->segs & OP_READ;
			}
		}

		if (unlikely(send_flags & IBV_SEND_INLINE)) {
			if (unlikely(op->segs & (OP_READ | OP_ATOMIC))) {
				ret = EINVAL;
				goto bad;
			}
			length = gather_length(wr);
			if (unlikely(length > sq->max_inline)) {
				ret = EINVAL;
				goto bad;
			}
			if (length) {
				seg = put_inline_list(seg, wr);
				blueflame = 1;
			}
		} else if (likely(wr->num_sge == 1 && (int32_t)wr->sg_list->length > 0)) {
			mlx4_set_data((void *)seg, wr->sg_list);
			seg += sizeof(struct mlx4_wqe_data);
		} else {
			if (unlikely(put_data_list((void *)seg, wr->sg_list, wr->num_sge))) {
				restamp(sq, ctrl);
				ret = EINVAL;
				goto bad;
			}
			seg += wr->num_sge * sizeof(struct mlx4_wqe_data);
		}

		sq->wrid[ind & sq->mask] = wr->wr_id;
		ctrl->flags = flags;
		ctrl->imm = (MLX4_FORCE __be32)(wr->imm_data & op->imm_mask);
		length = (seg - (char *)ctrl + 15) / 16;
		ctrl->fence_size = length | (send_flags & IBV_SEND_FENCE) << 6;
		if (blueflame)
			blueflame = length;

		udma_to_device_barrier(); /* pairs with the device's read of the owner bit before the rest of the WQE */
		*(volatile __be32 *)&ctrl->owner_opcode =
			op->opcode | (ind & (sq->mask + 1) ? MLX4_BE32(MLX4_WQE_OWNER) : 0);
		++ind;

		if (wr->next && sq->shift > MLX4_MIN_SQ_SHIFT)
			stamp(sq, ind - 1 + sq->spare);
	}

out:
	if (unlikely(ind == sq->head))
		goto unlock;

	if (blueflame > 1 && ind - sq->head == 1 &&
	    blueflame * 16 <= to_mlx4_ctx(ibqp->context)->bf_size) {
		sq->head = ind;
		post_blueflame(to_mlx4_ctx(ibqp->context), sq, ctrl, ind - 1, blueflame * 16);
	} else {
		sq->head = ind;
		udma_to_device_barrier(); /* every WQE is in memory before the doorbell rings */
		mmio_write32(sq->doorbell, sq->doorbell_qpn);
	}
	if (sq->shift > MLX4_MIN_SQ_SHIFT)
		stamp(sq, ind - 1 + sq->spare);
unlock:
	mlx4_unlock(&sq->lock);
	return ret;

bad:
	*bad_wr = wr;
	blueflame = 0;
	goto out;
}
