/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A send WQE, copied out of its queue and taken apart. The copy is on the stack of the thread that runs the
 * requester; nothing in it refers to the queue any more.
 */
#ifndef SOFTHCA_DEVICE_WQE_H
#define SOFTHCA_DEVICE_WQE_H

#include "packet.h"
#include "mlx4-format.h"

struct sh_wqe {
	uint32_t index;			/* free-running */
	uint8_t opcode;			/* enum mlx4_opcode */
	uint8_t bad;			/* a syndrome: the WQE is not legal */
	uint8_t fence, strong, signaled, solicited, grh, sl;
	uint8_t gid_index, hop_limit, traffic_class, path_bits, av_port;
	uint8_t is_inline;
	uint16_t dlid;
	uint32_t srqn, imm_be;
	uint32_t rkey;
	uint64_t raddr, swap_add, compare;
	uint32_t av_pd, flow_label, dqpn, qkey;
	const uint8_t *dgid;		/* into raw */
	uint64_t length;		/* of the data */
	unsigned int nsge;
	struct sh_sge sge[SH_MAX_SEGS];	/* inline data: addresses within raw */
	uint8_t raw[1 << MLX4_MAX_SQ_SHIFT] __attribute__((aligned(16)));
};

/* Copy WQE number index out and parse it: 0 (also when it is illegal, see bad), -ENOENT when it has not been
 * posted yet, -EFAULT when the queue's memory is gone. */
int sh_wqe_fetch(struct sh_dev *dev, const struct sh_qp *qp, uint32_t index, struct sh_wqe *wqe);
/* Only whether it has been posted: 1, 0, -EFAULT. */
int sh_wqe_posted(struct sh_dev *dev, const struct sh_qp *qp, uint32_t index);

static inline bool sh_wqe_is_atomic(const struct sh_wqe *wqe)
{
	return wqe->opcode == MLX4_OPCODE_ATOMIC_CS || wqe->opcode == MLX4_OPCODE_ATOMIC_FA;
}

/* Waits for a response with data: READ and atomics. */
static inline bool sh_wqe_is_fetch(const struct sh_wqe *wqe)
{
	return wqe->opcode == MLX4_OPCODE_RDMA_READ || sh_wqe_is_atomic(wqe);
}

/* PSNs that it takes. */
static inline uint32_t sh_wqe_packets(const struct sh_qp *qp, const struct sh_wqe *wqe)
{
	if (wqe->bad || wqe->opcode == MLX4_OPCODE_NOP)
		return 0;
	if (qp->type == SH_QPT_UD || sh_wqe_is_atomic(wqe))
		return 1;
	return sh_packets(wqe->length, sh_qp_mtu(qp));
}

#endif
