/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The rules on receives, each once and inline: which queue they come from, and which CQ their
 * completions go to; of a QP's own queue also where a WQE is and what taking it changes. The caller
 * holds the lock of the QP's responder. The words of an SRQ are under the SRQ's lock.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_RQ_RECEIVES_H
#define SOFTHCA_DEVICE_QUEUES_RQ_RECEIVES_H

#include "srq_receives.h"

/* ---- which queue ---- */

/*
 * *srqn: the SRQ that a packet's receive comes from, 0 = the RQ. An XRC packet must name its SRQ;
 * false: it names none, and is invalid.
 */
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

/* ---- a QP's own queue; the masks keep what was overwritten within bounds ---- */

static inline uint32_t sh_rq_size(const struct sh_qp *qp)
{
	return 1u << (qp->log_rq_size & 15);
}

/* How many entries each WQE's list has; 0: the QP is damaged. */
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

/* The number of a WQE, as completions report it. */
static inline uint32_t sh_rq_index(uint32_t consumed)
{
	return consumed & MLX4_RQ_DB_MASK;
}

/* Adds to a transaction that n receives are taken, and what the doorbell record said last. */
static inline void sh_txn_rq(struct sh_txn_open *t, struct sh_qp *qp, uint32_t n)
{
	sh_txn_store_two(t, &qp->rq_consumed, qp->rq_consumed + n, qp->rq_seen);
}

#endif
