/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Receives that are taken from an SRQ, whose lock is held. Whether any can be is inline for nearly every message over XRC.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_SRQ_RECEIVES_H
#define SOFTHCA_DEVICE_QUEUES_SRQ_RECEIVES_H

#include "mlx4-bytes.h"
#include "mlx4-format.h"
#include "softhca/device/memory/mr.h"

#define SH_SRQ_MAX_LOG_SIZE	16
#define SH_SRQ_MAX_WQE_SHIFT	11

/* In use, and not overwritten by somebody. */
static inline bool sh_srq_whole(const struct sh_srq *srq)
{
	return srq->live == SH_LIVE && srq->log_size <= SH_SRQ_MAX_LOG_SIZE && srq->wqe_shift >= MLX4_MIN_SRQ_SHIFT &&
	       srq->wqe_shift <= SH_SRQ_MAX_WQE_SHIFT && srq->head >> srq->log_size == 0;
}

/* Is it the SRQ of this number, whole, and may this QP take receives from it? Changes nothing. */
static inline bool sh_srq_usable(const struct sh_dev *dev, const struct sh_qp *qp, const struct sh_srq *srq, uint32_t srqn)
{
	return sh_srq_whole(srq) && srq->srqn == srqn && sh_ctx_live(dev, srq->ctx) &&
	       (!sh_qp_is_xrc(qp) || (srq->cqn && srq->xrcd == qp->xrcd));
}

/* WQEs posted and not taken. Lock held. */
int sh_srq_available(struct sh_dev *dev, struct sh_srq *srq);
/*
 * Take the head WQE inside an open transaction (lock held and covered): *index and its scatter list. The limit
 * event is queued in the transaction when the watermark is crossed. -ENOENT: empty; -EFAULT: queue memory gone.
 */
int sh_srq_take(struct sh_txn_open *t, struct sh_hca *hca, struct sh_srq *srq, uint32_t *index);
/* Read the scatter list of a WQE: segments (lkey per segment) up to max; returns how many, -errno. */
int sh_srq_scatter(struct sh_dev *dev, struct sh_srq *srq, uint32_t index, struct sh_sge *sge, unsigned int max);

#endif
