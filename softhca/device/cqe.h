/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A CQE and the commit of its transaction inline, for nearly every message: who calls knows at compile time most of what
 * is in it. cq.c has the rest of what becomes of completion queues, and sh_cq_put() for everything else.
 */
#ifndef SOFTHCA_DEVICE_CQE_H
#define SOFTHCA_DEVICE_CQE_H

#include <endian.h>
#include <string.h>

#include "mlx4-format.h"
#include "objects.h"

#define SH_CQ_MAX_LOG_SIZE	22
#define SH_CQ_SOON		4	/* CQEs ahead: a line of the consumer's comes while so many are written */

static inline uint32_t sh_cqe_size(const struct sh_dev *dev)
{
	return dev->inst->cqe_size == MLX4_CQE_SIZE_LARGE ? MLX4_CQE_SIZE_LARGE : MLX4_CQE_SIZE;
}

/* Of the valid 32 bytes of entry n: the second half of a large one. */
static inline uint64_t sh_cqe_at(const struct sh_dev *dev, uint32_t n, uint32_t entries)
{
	unsigned int large = dev->inst->cqe_size == MLX4_CQE_SIZE_LARGE;

	return ((uint64_t)(n & (entries - 1)) * MLX4_CQE_SIZE << large) + large * MLX4_CQE_SIZE;
}

static inline uint8_t sh_cqe_owner(uint32_t n, uint32_t entries)
{
	return n & entries ? MLX4_CQE_OWNER : 0;
}

/* The 32 bytes, composed in registers: pieces read back as larger ones stall the processor. */
static inline void sh_cqe_format(uint64_t word[4], const struct sh_cqe *cqe, uint8_t owner)
{
	bool error = cqe->opcode == MLX4_CQE_ERROR;
	uint8_t last = (cqe->opcode & MLX4_CQE_OPCODE_MASK) | (cqe->send ? MLX4_CQE_IS_SEND : 0) | owner;
	uint32_t tail = (uint32_t)cqe->wqe_index << 16 | (error ? (uint32_t)cqe->vendor << 8 | cqe->syndrome : 0);

	word[0] = sh_two(htobe32(cqe->qpn), cqe->imm_be);
	word[1] = sh_two(htobe32(cqe->srqn_srcqp), htobe32((uint32_t)cqe->sl_vid << 16 | cqe->slid));
	word[2] = sh_two(0, htobe32(cqe->byte_cnt));
	word[3] = sh_two(htobe32(tail), htobe32(last));
}

/* Have the place of one that comes soon at hand. No bounds: fetching early does nothing to memory, and nothing at all
 * where there is none. Lock held. */
static inline void sh_cq_soon(const struct sh_dev *dev, const struct sh_cq *cq)
{
	uint64_t at = cq->buf.shm_off + sh_cqe_at(dev, cq->producer + SH_CQ_SOON, 1u << (cq->log_size & 31));

	if (cq->buf.shm_off)
		__builtin_prefetch(sh_at(dev, at), 1);
}

/*
 * The place of the next CQE where there is nothing to say about it: the CQ is whole and has room as far as was seen last,
 * nobody waits for an event, its buffer is device memory. NULL: sh_cq_put() knows more. The CQ's lock is held.
 */
static inline uint64_t *sh_cq_usual(const struct sh_dev *dev, const struct sh_cq *cq)
{
	uint32_t entries = 1u << (cq->log_size & 31);

	if (__builtin_expect(cq->live != SH_LIVE || cq->log_size > SH_CQ_MAX_LOG_SIZE || cq->overrun ||
			     cq->armed != SH_ARM_NONE || cq->producer - cq->consumer_seen >= entries ||
			     cq->buf.shm_off % sizeof(uint64_t) || !sh_ctx_live(dev, cq->ctx), 0))
		return NULL;
	return sh_umem_in_place(dev, &cq->buf, sh_cqe_at(dev, cq->producer, entries), MLX4_CQE_SIZE);
}

/* Commit a transaction with a CQE there. */
SH_INLINE void sh_cqe_commit(struct sh_txn_open *t, struct sh_cq *cq, uint64_t *place, const struct sh_cqe *cqe)
{
	uint32_t next = cq->producer + 1;
	uint64_t word[4];

	sh_cqe_format(word, cqe, sh_cqe_owner(cq->producer, 1u << (cq->log_size & 31)));
	sh_txn_store_two(t, &cq->producer, next, cqe->solicited ? next : cq->solicited_producer);
	sh_txn_commit_cqe(t, &cq->buf, place, word);
}

#endif
