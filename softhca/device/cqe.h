/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A CQE into an open transaction, inline for who knows at compile time most of what is in it. cq.c has the rest of what
 * becomes of completion queues, and sh_cq_put() for everybody else.
 */
#ifndef SOFTHCA_DEVICE_CQE_H
#define SOFTHCA_DEVICE_CQE_H

#include <endian.h>
#include <string.h>

#include "mlx4-format.h"
#include "objects.h"

#define SH_CQ_MAX_LOG_SIZE	22

static inline uint32_t sh_cqe_size(const struct sh_dev *dev)
{
	return dev->inst->cqe_size == MLX4_CQE_SIZE_LARGE ? MLX4_CQE_SIZE_LARGE : MLX4_CQE_SIZE;
}

/* Of the valid 32 bytes of entry n: the second half of a large one. */
static inline uint64_t sh_cqe_at(const struct sh_dev *dev, uint32_t n, uint32_t entries)
{
	uint32_t size = sh_cqe_size(dev);

	return (uint64_t)(n & (entries - 1)) * size + (size - MLX4_CQE_SIZE);
}

static inline uint8_t sh_cqe_owner(uint32_t n, uint32_t entries)
{
	return n & entries ? MLX4_CQE_OWNER : 0;
}

/* The 32 bytes, composed in registers: pieces read back as larger ones stall the processor. */
static inline void sh_cqe_format(uint8_t out[32], const struct sh_cqe *cqe, uint8_t owner)
{
	bool error = cqe->opcode == MLX4_CQE_ERROR;
	uint8_t last = (cqe->opcode & MLX4_CQE_OPCODE_MASK) | (cqe->send ? MLX4_CQE_IS_SEND : 0) | owner;
	uint32_t tail = (uint32_t)cqe->wqe_index << 16 | (error ? (uint32_t)cqe->vendor << 8 | cqe->syndrome : 0);
	uint64_t word[4] = {
		sh_two(htobe32(cqe->qpn), cqe->imm_be),
		sh_two(htobe32(cqe->srqn_srcqp), htobe32((uint32_t)cqe->sl_vid << 16 | cqe->slid)),
		sh_two(0, htobe32(cqe->byte_cnt)),
		sh_two(htobe32(tail), htobe32(last)),
	};

	memcpy(out, word, sizeof(word));
}

/* Whether the CQ takes another one, in every case that is not the usual one: as sh_cq_put(). */
int sh_cq_room(struct sh_txn_open *t, struct sh_hca *hca, struct sh_cq *cq);
/* Its place is not in the buffer: -ENODEV. */
int sh_cq_outside(struct sh_txn_open *t, struct sh_hca *hca, struct sh_cq *cq);

/* As sh_cq_put(). */
static inline __attribute__((always_inline)) int sh_cqe_add(struct sh_txn_open *t, struct sh_hca *hca, struct sh_cq *cq,
							    const struct sh_cqe *cqe)
{
	struct sh_dev *dev = t->dev;
	uint32_t entries = 1u << (cq->log_size & 31), producer = cq->producer;
	bool solicited;

	if (__builtin_expect(cq->live != SH_LIVE || cq->log_size > SH_CQ_MAX_LOG_SIZE || !sh_ctx_live(dev, cq->ctx) ||
			     cq->overrun || producer - cq->consumer_seen >= entries, 0)) {
		int err = sh_cq_room(t, hca, cq);

		if (err)
			return err;
	}
	if (__builtin_expect(sh_txn_cqe_place(t, &cq->buf, sh_cqe_at(dev, producer, entries)), 0))
		return sh_cq_outside(t, hca, cq);
	sh_cqe_format(t->log->cqe, cqe, sh_cqe_owner(producer, entries));
	solicited = cqe->solicited || cqe->opcode == MLX4_CQE_ERROR;
	sh_txn_store_two(t, &cq->producer, producer + 1, solicited ? producer + 1 : cq->solicited_producer);
	if (cq->armed == SH_ARM_ANY || (cq->armed == SH_ARM_SOLICITED && solicited)) {
		sh_txn_store_two(t, &cq->armed, SH_ARM_NONE, producer + 1);
		sh_txn_comp_event(t, hca->index, cq->cqn);
	}
	return 0;
}

#endif
