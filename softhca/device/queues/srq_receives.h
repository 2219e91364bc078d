/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Receives of an SRQ: whether one can be taken, where the next one is, and what taking it changes.
 * Each rule once, inline. The caller holds the SRQ's lock.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_SRQ_RECEIVES_H
#define SOFTHCA_DEVICE_QUEUES_SRQ_RECEIVES_H

#include "mlx4-bytes.h"
#include "mlx4-format.h"
#include "softhca/device/memory/mr.h"

#define SH_SRQ_MAX_LOG_SIZE  16
#define SH_SRQ_MAX_WQE_SHIFT 11

/* How many receives of a queue are posted and not taken. The owner's record counts in 16 bits. */
static inline uint32_t sh_posted(uint32_t record, uint32_t taken)
{
	return (uint16_t)(record - taken);
}

/*
 * Is the SRQ in use, with sizes that can be right? They may be overwritten after this check, so the
 * functions below mask them.
 */
static inline bool sh_srq_sound(const struct sh_srq *srq)
{
	return srq->live == SH_LIVE && srq->log_size <= SH_SRQ_MAX_LOG_SIZE &&
	       srq->wqe_shift >= MLX4_MIN_SRQ_SHIFT && srq->wqe_shift <= SH_SRQ_MAX_WQE_SHIFT;
}

static inline uint32_t sh_srq_size(const struct sh_srq *srq)
{
	return 1u << (srq->log_size & 31);
}

static inline bool sh_srq_has(const struct sh_srq *srq, uint32_t index)
{
	return index < sh_srq_size(srq);
}

/* The same; and does the head lie in the queue? */
static inline bool sh_srq_whole(const struct sh_srq *srq)
{
	return sh_srq_sound(srq) && sh_srq_has(srq, srq->head);
}

/* Is it the SRQ of this number, and may this QP use it? Over XRC it must be of the QP's domain. */
static inline bool sh_srq_serves(const struct sh_qp *qp, const struct sh_srq *srq, uint32_t srqn)
{
	return srq->live != SH_NONE && srq->srqn == srqn &&
	       (!sh_qp_is_xrc(qp) || (srq->cqn && srq->xrcd == qp->xrcd));
}

/* Is it still the SRQ that had this gen? Another one may have its number by now. */
static inline bool sh_srq_is_still(const struct sh_srq *srq, uint32_t gen)
{
	return srq->live != SH_NONE && srq->gen == gen;
}

/* Where a WQE is in the SRQ's buffer, and how many bytes each has. */
static inline uint64_t sh_srq_at(const struct sh_srq *srq, uint32_t index)
{
	return (uint64_t)index << (srq->wqe_shift & 15);
}
static inline uint32_t sh_srq_stride(const struct sh_srq *srq)
{
	return 1u << (srq->wqe_shift & 15);
}

/*
 * How many entries each WQE's list has. It follows the link, which is as large as an entry. 0: the
 * SRQ is damaged.
 */
static inline unsigned int sh_srq_list(const struct sh_srq *srq)
{
	unsigned int shift = srq->wqe_shift & 15;

	return shift < MLX4_MIN_SRQ_SHIFT ? 0 : (1u << shift) / sizeof(struct mlx4_wqe_data) - 1;
}
_Static_assert(sizeof(struct mlx4_wqe_srq_next) == sizeof(struct mlx4_wqe_data),
	       "the link's place");

/* If one of n posted receives is taken, do they fall below the watermark? That raises an event. */
static inline bool sh_srq_limit_reached(const struct sh_srq *srq, uint32_t n)
{
	return n <= srq->limit;
}

/* Adds to a transaction that n receives are taken. next: the head after that. */
static inline void sh_txn_srq(struct sh_txn_open *t, struct sh_srq *srq, uint32_t next, uint32_t n)
{
	sh_txn_store_two(t, &srq->head, next, srq->consumed + n);
}

/* How many WQEs are posted and not taken. The caller holds the lock. */
int sh_srq_available(struct sh_dev *dev, struct sh_srq *srq);
/*
 * Takes the head WQE inside an open transaction; the caller holds the lock, and the transaction
 * covers it. *index: that WQE. If the watermark is crossed, the transaction raises the limit event.
 * 0; -ENOENT: the SRQ is empty; -EFAULT: its memory is gone, or it is damaged.
 */
int sh_srq_take(struct sh_txn_open *t, struct sh_hca *hca, struct sh_srq *srq, uint32_t *index);
/*
 * Reads the scatter list of a WQE: up to max segments, each with its lkey. Returns how many, or
 * -errno.
 */
int sh_srq_scatter(struct sh_dev *dev, struct sh_srq *srq, uint32_t index, struct sh_sge *sge,
		   unsigned int max);

#endif
