/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A send WQE, copied out of its queue and taken apart. The copy is on the stack of the thread that
 * runs the requester. Nothing in it refers to the queue any more.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_WQE_H
#define SOFTHCA_DEVICE_QUEUES_WQE_H

#include "mlx4-bytes.h"
#include "mlx4-format.h"
#include "softhca/device/memory/mr.h"
#include "softhca/device/memory/umem.h"

#define SH_MAX_SEGS 64 /* gather entries of the largest WQE, and then some */

struct sh_wqe {
	uint32_t index; /* free-running */
	uint8_t opcode; /* enum mlx4_opcode */
	uint8_t bad;	/* a syndrome: the WQE is not legal */
	uint8_t fence, strong, signaled, solicited, grh, sl;
	uint8_t gid_index, hop_limit, traffic_class, path_bits, av_port;
	uint8_t is_inline;
	uint16_t dlid;
	uint32_t srqn;
	__be32 imm_be;
	uint32_t rkey;
	uint64_t raddr, swap_add, compare;
	uint32_t av_pd, flow_label, dqpn, qkey;
	const uint8_t *dgid; /* into raw */
	uint64_t length;     /* of the data */
	unsigned int nsge;
	struct sh_sge sge[SH_MAX_SEGS]; /* inline data: addresses within raw */
	uint8_t raw[1 << MLX4_MAX_SQ_SHIFT] __attribute__((aligned(16)));
};

/* Has it been posted? 1, 0 or -EFAULT. */
int sh_wqe_posted(struct sh_dev *dev, const struct sh_qp *qp, uint32_t index);

/*
 * Where the WQE is in the QP's buffer. With the masks, an overwritten context leads only to wrong
 * answers; bounds are checked with the memory.
 */
static inline uint64_t sh_wqe_off(const struct sh_qp *qp, uint32_t index)
{
	uint32_t slots = 1u << (qp->log_sq_size & 15);

	return qp->sq_off + ((uint64_t)(index & (slots - 1)) << (qp->sq_shift & 15));
}

/*
 * Has the WQE been posted? word_be: the word of its control segment that has the owner bit, as it
 * is in memory.
 */
static inline bool sh_wqe_owned(const struct sh_qp *qp, uint32_t index, __be32 word_be)
{
	return !(word_be & to_be32(MLX4_WQE_OWNER)) == !(index & 1u << (qp->log_sq_size & 15));
}

/*
 * The two ways of sh_wqe_fetch(). sh_wqe_take() reads a posted WQE in a slot of that many bytes of
 * device memory; sh_wqe_read() any WQE, wherever the queue is.
 */
void sh_wqe_take(const struct sh_qp *qp, uint32_t index, const void *at, unsigned int slot,
		 struct sh_wqe *wqe);
int sh_wqe_read(struct sh_dev *dev, const struct sh_qp *qp, uint32_t index, struct sh_wqe *wqe);

/*
 * Copies WQE number index out and parses it. 0 (also if it is illegal: see bad); -ENOENT: it has
 * not been posted yet; -EFAULT: the memory of the queue is gone.
 */
static inline int sh_wqe_fetch(struct sh_dev *dev, const struct sh_qp *qp, uint32_t index,
			       struct sh_wqe *wqe)
{
	unsigned int slot = 1u << (qp->sq_shift & 15);
	const uint32_t *at = sh_umem_in_place(dev, &qp->buf, sh_wqe_off(qp, index), slot);

	if (__builtin_expect(!at || !qp->sq_present || slot < sizeof(struct mlx4_wqe_ctrl), 0))
		return sh_wqe_read(dev, qp, index, wqe);
	if (!sh_wqe_owned(qp, index, (MLX4_FORCE __be32)__atomic_load_n(at, __ATOMIC_RELAXED)))
		return -ENOENT;
	/*
	 * Pairs with the write barrier between the body of a WQE and its owner bit: all of the WQE
	 * is read again after it.
	 */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	sh_wqe_take(qp, index, at, slot, wqe);
	return 0;
}

static inline bool sh_wqe_is_atomic(const struct sh_wqe *wqe)
{
	return wqe->opcode == MLX4_OPCODE_ATOMIC_CS || wqe->opcode == MLX4_OPCODE_ATOMIC_FA;
}

/* Does it wait for a response with data? READ and atomics do. */
static inline bool sh_wqe_is_fetch(const struct sh_wqe *wqe)
{
	return wqe->opcode == MLX4_OPCODE_RDMA_READ || sh_wqe_is_atomic(wqe);
}

/* How many PSNs it takes. */
static inline uint32_t sh_wqe_packets(const struct sh_qp *qp, const struct sh_wqe *wqe)
{
	if (wqe->bad || wqe->opcode == MLX4_OPCODE_NOP)
		return 0;
	if (qp->type == SH_QPT_UD || sh_wqe_is_atomic(wqe))
		return 1;
	return sh_packets(wqe->length, sh_qp_mtu(qp));
}

#endif
