/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The rules on receives, each once and inline: which queue has them, which CQ their completions go to; in a QP's own queue, where
 * a WQE is and what taking it changes. The lock of the QP's responder is held, an SRQ's for its words.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_RQ_RECEIVES_H
#define SOFTHCA_DEVICE_QUEUES_RQ_RECEIVES_H

#include "srq_receives.h"

/* ---- which queue ---- */

/* The SRQ that receives for a packet come from, 0 = the RQ. For XRC the packet has to name one, or it is invalid. */
static inline bool sh_recv_srqn(const struct sh_qp *qp, uint32_t named, uint32_t *srqn)
{
	if (!sh_qp_is_xrc(qp)) {
		*srqn = qp->srqn;
		return true;
	}
	*srqn = named;
	return named;
}

/* The PD that a receive's buffers are checked against. srq NULL: the RQ. */
static inline uint32_t sh_recv_pdn(const struct sh_qp *qp, const struct sh_srq *srq)
{
	return srq ? srq->pdn : qp->pdn;
}

/* The CQ that its completion goes to, 0 = none. srq NULL: the RQ. */
static inline uint32_t sh_recv_cqn(const struct sh_qp *qp, const struct sh_srq *srq)
{
	return srq && sh_qp_is_xrc(qp) ? srq->cqn : qp->recv_cqn;
}

/* ---- the queue of a QP (an SRQ's: srq_receives.h); the masks are for contexts that were overwritten ---- */

static inline uint32_t sh_rq_size(const struct sh_qp *qp)
{
	return 1u << (qp->log_rq_size & 15);
}

/* Entries of each WQE's list; 0: damage. */
static inline unsigned int sh_rq_list(const struct sh_qp *qp)
{
	unsigned int shift = qp->rq_shift & 15;

	return shift < MLX4_MIN_RQ_SHIFT ? 0 : 1u << (shift - MLX4_MIN_RQ_SHIFT);
}

static inline uint32_t sh_rq_slot(const struct sh_qp *qp, uint32_t index)
{
	return index & (sh_rq_size(qp) - 1);
}

/* Where a WQE is in the QP's buffer. */
static inline uint64_t sh_rq_at(const struct sh_qp *qp, uint32_t index)
{
	return qp->rq_off + ((uint64_t)sh_rq_slot(qp, index) << (qp->rq_shift & 15));
}

/* A WQE's number as completions say it. */
static inline uint32_t sh_rq_index(uint32_t consumed)
{
	return consumed & MLX4_RQ_DB_MASK;
}

/* n of them are taken, of those that the record read last has announced. */
static inline void sh_txn_rq(struct sh_txn_open *t, struct sh_qp *qp, uint32_t n)
{
	sh_txn_store_two(t, &qp->rq_consumed, qp->rq_consumed + n, qp->rq_seen);
}

#endif
