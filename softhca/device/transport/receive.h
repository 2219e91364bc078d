/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Receive WQEs, which a responder takes and completes under both locks of its QP; and, inline, what
 * the CQE of a receive says, for which express_way.h needs the responder's lock alone. The rules on
 * queues are in rq_receives.h and srq_receives.h.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_RECEIVE_H
#define SOFTHCA_DEVICE_TRANSPORT_RECEIVE_H

#include "softhca/device/memory/mr.h"
#include "softhca/device/memory/txn.h"
#include "softhca/device/queues/cqe.h"
#include "packet.h"

/* The receive side of one packet: what the thread has taken and locked for it. */
struct sh_recv {
	struct sh_txn_open txn;
	/* Locked, or NULL: also while a receive of it is kept (sh_recv_keep()) or resumed. */
	struct sh_srq *srq;
	struct sh_cq *cq; /* locked, or NULL */
	uint32_t srqn;	  /* where the WQE is from: 0 = the RQ */
	uint32_t srq_gen; /* which SRQ of this number */
	uint32_t index;
	uint32_t pdn; /* the PD that its buffers must be of */
	uint32_t cqn; /* the CQ that its CQE goes to */
	bool have;
};
/*
 * Begins: locks the SRQ, if the QP has one, and takes no WQE yet. For XRC, srqn names the SRQ. 0;
 * -EINVAL: this QP may not use that SRQ; -ENODEV: the SRQ's owner has ended; -EINPROGRESS: the lock
 * is not to be had now (sh_lock_mine()). After an error the SRQ is not locked.
 */
int sh_recv_begin(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		  uint32_t srqn);
/*
 * Takes a WQE inside r->txn. 0; -ENOENT: none is posted; -EFAULT: the queue's memory is gone, or
 * the queue is damaged.
 */
int sh_recv_take(struct sh_recv *r, struct sh_hca *hca, struct sh_qp *qp);
/*
 * Commits the WQE as that of the message in progress, releases the SRQ, begins a new transaction.
 */
void sh_recv_keep(struct sh_recv *r, struct sh_hca *hca, struct sh_qp *qp);
/* Adds to r->txn that the WQE is that of the message in progress, and how much of it is placed. */
void sh_recv_progress(struct sh_recv *r, struct sh_qp *qp, uint64_t done);
/*
 * Goes on with the WQE of the message in progress. If the SRQ that it was taken from is destroyed,
 * the message can no longer be placed, and gets no CQE.
 */
void sh_recv_resume(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);
/*
 * Places a payload in the WQE's list, from byte skip on. Returns enum sh_placed, or the syndrome
 * that the WQE fails with (place.h).
 */
int sh_recv_place(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		  uint64_t skip, const struct sh_payload *data);
/*
 * Locks the SRQ, if it is not locked, and the CQ, and adds the CQE of the WQE. 0; -ENOSPC: the CQ
 * has overrun; -ENOENT: the SRQ is destroyed, so there is no CQE; -EINPROGRESS: a lock is not to be
 * had now, and the receive is to be given up.
 */
int sh_recv_cqe(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, const struct sh_qp *qp,
		const struct sh_cqe *cqe);
/* Commits, and releases the CQ and the SRQ. */
void sh_recv_commit(struct sh_recv *r, struct sh_dev *dev);
/*
 * The same, and does the last of the payload (sh_txn_commit_last()). If that fails, the receive is
 * still to be given up.
 */
enum sh_copy sh_recv_commit_last(struct sh_recv *r, struct sh_dev *dev, const struct sh_last *last);
/* Releases the CQ and the SRQ, and changes nothing. */
void sh_recv_give_up(struct sh_recv *r, struct sh_dev *dev);

/*
 * The CQE of a message of len bytes whose last packet is p. op: its operation. Connected services.
 */
SH_INLINE struct sh_cqe sh_cqe_received(const struct sh_qp *qp, uint32_t srqn, uint32_t index,
					uint8_t op, const struct sh_packet *p, uint64_t len)
{
	bool imm = p->flags & SH_PKT_IMM;

	return (struct sh_cqe){
		.qpn = qp->qpn,
		.imm_be = imm ? p->imm_be : 0,
		.srqn_srcqp = sh_qp_is_xrc(qp) ? srqn : 0,
		.byte_cnt = (uint32_t)len,
		.wqe_index = (uint16_t)index,
		.opcode = op == SH_PKT_WRITE ? MLX4_CQE_RECV_RDMA_WRITE_IMM
			  : imm		     ? MLX4_CQE_RECV_SEND_IMM
					     : MLX4_CQE_RECV_SEND,
		.solicited = !!(p->flags & SH_PKT_SE),
	};
}

#endif
