/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Writes to the BlueFlame register. mlx4.c maps its page; post-send-short.c and post-send-any.c
 * decide which WQEs go there. mlx4-format.h describes the register. */
#ifndef MLX4_BLUEFLAME_H
#define MLX4_BLUEFLAME_H

#include "mlx4-wqe.h"

static inline __be32 mlx4_blueflame_index(uint32_t index)
{
	return to_be32((index & MLX4_WQE_INDEX_MASK) << MLX4_WQE_INDEX_SHIFT);
}

/* Copies the WQE to the BlueFlame register as doorbell and payload. The WQE in memory already
 * contains the index and the doorbell value. The caller holds the lock of the register, which this
 * function releases. A thread that does not get the lock may ring the plain doorbell instead. */
static inline void mlx4_write_blueflame(struct mlx4_context *ctx, const struct mlx4_wqe_ctrl *ctrl,
					uint32_t bytes)
{
	udma_to_device_barrier(); /* the WQE is in memory before the register has it */
	mmio_copy_chunks((char *)ctx->blueflame + ctx->blueflame_offset, ctrl, bytes);
	mmio_flush_writes(); /* this buffer leaves before the next user of the register fills the
				other */
	ctx->blueflame_offset ^= ctx->blueflame_size;
	mlx4_unlock(&ctx->blueflame_lock);
}

#endif
