// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The tables by which posting looks up opcodes and flags, chosen for each QP at its creation.
 * Constants only. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include "mlx4-wqe.h"

#define DS(s) (2 + !!((s)&SEG_RADDR) + !!((s)&OP_ATOMIC) + 3 * !!((s)&SEG_UD))
#define OP(verbs, code, imm, s)                                                                    \
	[verbs] = {.opcode = MLX4_BE32(code),                                                      \
		   .segs = (s),                                                                    \
		   .ds = DS(s),                                                                    \
		   .data_at = 16 * (DS(s) - 1),                                                    \
		   .imm_mask = (imm)}

#define CONNECTED_OPS(x)                                                                           \
	{                                                                                          \
		OP(IBV_WR_RDMA_WRITE, MLX4_OPCODE_RDMA_WRITE, 0, SEG_RADDR | (x)),                 \
			OP(IBV_WR_RDMA_WRITE_WITH_IMM, MLX4_OPCODE_RDMA_WRITE_IMM, -1,             \
			   SEG_RADDR | (x)),                                                       \
			OP(IBV_WR_SEND, MLX4_OPCODE_SEND, 0, (x)),                                 \
			OP(IBV_WR_SEND_WITH_IMM, MLX4_OPCODE_SEND_IMM, -1, (x)),                   \
			OP(IBV_WR_RDMA_READ, MLX4_OPCODE_RDMA_READ, 0, SEG_RADDR | OP_READ | (x)), \
			OP(IBV_WR_ATOMIC_CMP_AND_SWP, MLX4_OPCODE_ATOMIC_CS, 0,                    \
			   SEG_RADDR | SEG_CS | (x)),                                              \
			OP(IBV_WR_ATOMIC_FETCH_AND_ADD, MLX4_OPCODE_ATOMIC_FA, 0,                  \
			   SEG_RADDR | SEG_FA | (x)),                                              \
	}

static const struct mlx4_send_op rc_ops[MLX4_SEND_OPCODES] = CONNECTED_OPS(0);
static const struct mlx4_send_op xrc_ops[MLX4_SEND_OPCODES] = CONNECTED_OPS(SEG_XRC);

/* Opcodes that UC does not have are passed on to the device, which completes them with an error. */
static const struct mlx4_send_op uc_ops[MLX4_SEND_OPCODES] = {
	OP(IBV_WR_RDMA_WRITE, MLX4_OPCODE_RDMA_WRITE, 0, SEG_RADDR),
	OP(IBV_WR_RDMA_WRITE_WITH_IMM, MLX4_OPCODE_RDMA_WRITE_IMM, -1, SEG_RADDR),
	OP(IBV_WR_SEND, MLX4_OPCODE_SEND, 0, 0),
	OP(IBV_WR_SEND_WITH_IMM, MLX4_OPCODE_SEND_IMM, -1, 0),
	OP(IBV_WR_RDMA_READ, MLX4_OPCODE_RDMA_READ, 0, 0),
	OP(IBV_WR_ATOMIC_CMP_AND_SWP, MLX4_OPCODE_ATOMIC_CS, 0, 0),
	OP(IBV_WR_ATOMIC_FETCH_AND_ADD, MLX4_OPCODE_ATOMIC_FA, 0, 0),
};

static const struct mlx4_send_op ud_ops[MLX4_SEND_OPCODES] = {
	OP(IBV_WR_RDMA_WRITE, MLX4_OPCODE_RDMA_WRITE, 0, SEG_UD),
	OP(IBV_WR_RDMA_WRITE_WITH_IMM, MLX4_OPCODE_RDMA_WRITE_IMM, -1, SEG_UD),
	OP(IBV_WR_SEND, MLX4_OPCODE_SEND, 0, SEG_UD),
	OP(IBV_WR_SEND_WITH_IMM, MLX4_OPCODE_SEND_IMM, -1, SEG_UD),
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

#define FLAGS(signaled, solicited, fence_)                                                         \
	{                                                                                          \
		.ctrl = MLX4_BE32(((signaled) ? MLX4_WQE_CQ_UPDATE : 0) |                          \
				  ((solicited) ? MLX4_WQE_SOLICITED : 0)),                         \
		.fence = (fence_) ? MLX4_WQE_FENCE : 0,                                            \
	}

static const struct mlx4_send_flags some_signaled[MLX4_PLAIN_FLAGS + 1] = {
	FLAGS(0, 0, 0), FLAGS(0, 0, 1), FLAGS(1, 0, 0), FLAGS(1, 0, 1),
	FLAGS(0, 1, 0), FLAGS(0, 1, 1), FLAGS(1, 1, 0), FLAGS(1, 1, 1),
};

static const struct mlx4_send_flags all_signaled[MLX4_PLAIN_FLAGS + 1] = {
	FLAGS(1, 0, 0), FLAGS(1, 0, 1), FLAGS(1, 0, 0), FLAGS(1, 0, 1),
	FLAGS(1, 1, 0), FLAGS(1, 1, 1), FLAGS(1, 1, 0), FLAGS(1, 1, 1),
};
_Static_assert(IBV_SEND_FENCE == 1 && IBV_SEND_SIGNALED == 2 && IBV_SEND_SOLICITED == 4,
	       "index of the tables above");

const struct mlx4_send_flags *mlx4_send_flags(int sq_sig_all)
{
	return sq_sig_all ? all_signaled : some_signaled;
}
