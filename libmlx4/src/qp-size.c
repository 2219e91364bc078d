// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Computes the sizes of a QP's queues and their places in its buffer. The device and the kernel
 * repeat some of this arithmetic, so every formula here is an interface. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>

#include "mlx4.h"

enum {
	CTRL = sizeof(struct mlx4_wqe_ctrl),
	DATA = sizeof(struct mlx4_wqe_data),
	INLINE_HEADER = sizeof(struct mlx4_wqe_inline),
};

/* Size of the segment between the control segment and the data. */
static uint32_t header_size(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD ? sizeof(struct mlx4_wqe_datagram)
				  : sizeof(struct mlx4_wqe_raddr);
}

/* The maximum number of inline headers that this many bytes can need. */
static uint32_t inline_segs(uint32_t bytes, enum ibv_qp_type type)
{
	const uint32_t payload = MLX4_CHUNK - INLINE_HEADER;

	/* Other segments take part of the first chunk. The data of a datagram WQE begins on a
	 * boundary. */
	if (type != IBV_QPT_UD)
		bytes += CTRL + sizeof(struct mlx4_wqe_raddr);
	return (bytes + payload - 1) / payload;
}

/* Returns 0, or -EINVAL if cap exceeds what a WQE or the device can hold. */
int mlx4_size_sq(struct mlx4_context *ctx, const struct ibv_qp_cap *cap, enum ibv_qp_type type,
		 struct mlx4_sq *sq)
{
	uint32_t header = header_size(type);
	uint32_t sges, size, space, slots;

	if (cap->max_send_wr > ctx->max_qp_wr || cap->max_send_sge > ctx->max_sge ||
	    cap->max_inline_data > MLX4_MAX_WQE_SIZE)
		return -EINVAL;
	space = MLX4_MAX_WQE_SIZE - CTRL - header -
		INLINE_HEADER * inline_segs(cap->max_inline_data, type);
	if (cap->max_inline_data > space)
		return -EINVAL;

	sges = mlx4_align(cap->max_inline_data +
				  INLINE_HEADER * inline_segs(cap->max_inline_data, type),
			  DATA) /
	       DATA;
	if (sges < cap->max_send_sge)
		sges = cap->max_send_sge;

	size = sges * DATA + header;
	/* An atomic needs two segments and one entry; a bind needs a segment of its own. */
	if ((type == IBV_QPT_RC || type == IBV_QPT_XRC) &&
	    size < sizeof(struct mlx4_wqe_raddr) + sizeof(struct mlx4_wqe_atomic) + DATA)
		size = sizeof(struct mlx4_wqe_raddr) + sizeof(struct mlx4_wqe_atomic) + DATA;
	if (size < sizeof(struct mlx4_wqe_bind))
		size = sizeof(struct mlx4_wqe_bind);

	sq->shift = mlx4_ceil_shift(size + CTRL, MLX4_MIN_SQ_SHIFT);
	sq->stride = (uint64_t)1 << sq->shift;
	sq->spare = (MLX4_SQ_HEADROOM >> sq->shift) + 1;
	slots = mlx4_ceil_pow2(cap->max_send_wr + sq->spare);
	sq->mask = slots - 1;

	space = 1u << sq->shift;
	if (space > MLX4_MAX_WQE_SIZE)
		space = MLX4_MAX_WQE_SIZE;
	space -= CTRL + header;
	sq->max_gs = space / DATA;
	sq->max_inline = space - INLINE_HEADER * ((space + MLX4_CHUNK - 1) / MLX4_CHUNK);
	sq->max_post = slots - sq->spare;
	if (sq->max_post > ctx->max_qp_wr)
		sq->max_post = ctx->max_qp_wr;
	return 0;
}

/* For a QP with a receive queue. Returns 0, or -EINVAL if cap exceeds what the device can hold. */
int mlx4_size_rq(struct mlx4_context *ctx, const struct ibv_qp_cap *cap, struct mlx4_rq *rq)
{
	if (cap->max_recv_wr > ctx->max_qp_wr || cap->max_recv_sge > ctx->max_sge)
		return -EINVAL;

	rq->slots = mlx4_ceil_pow2(cap->max_recv_wr);
	rq->mask = rq->slots - 1;
	rq->shift = mlx4_ceil_shift(cap->max_recv_sge * DATA, MLX4_MIN_RQ_SHIFT);
	return 0;
}

/* The queue with the larger stride comes first; if they are equal, the send queue. */
void mlx4_lay_out_qp(struct mlx4_qp *qp)
{
	size_t sq_size = (size_t)(qp->sq.mask + 1) << qp->sq.shift;
	char *base = qp->buf.addr;

	if (qp->rq.shift > qp->sq.shift) {
		qp->rq.wqes = base;
		qp->sq.wqes = base + ((size_t)qp->rq.slots << qp->rq.shift);
	} else {
		qp->sq.wqes = base;
		qp->rq.wqes = base + sq_size;
	}
	qp->sq.end = qp->sq.wqes + sq_size;
}
