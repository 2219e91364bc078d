/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Receive WQEs of a responder, under both locks of its QP; what the completion of one says, once and inline: express.c needs the
 * responder's lock alone for that. The rules on queues are in rq_receives.h and srq_receives.h.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_RECEIVE_H
#define SOFTHCA_DEVICE_TRANSPORT_RECEIVE_H

#include "softhca/device/memory/mr.h"
#include "softhca/device/memory/txn.h"
#include "softhca/device/queues/cqe.h"
#include "packet.h"

/* The receive side of one packet: what it took and has to give back. */
struct sh_recv {
	struct sh_txn_open txn;
	struct sh_srq *srq;		/* locked, or NULL */
	struct sh_cq *cq;		/* locked, or NULL */
	uint32_t srqn;			/* where the WQE is from: 0 = the RQ */
	uint32_t index;
	uint32_t pdn;			/* its buffers are checked against */
	uint32_t cqn;			/* its CQE goes to */
	bool have;
};
/* Begin: no WQE yet. For XRC, srqn names the SRQ; -EINVAL: not one this QP may use. -ENODEV: its owner
 * has ended. Nothing is held then. */
int sh_recv_begin(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t srqn);
/* Take a WQE in r->txn: 0, -ENOENT none is posted, -EFAULT queue memory gone. */
int sh_recv_take(struct sh_recv *r, struct sh_hca *hca, struct sh_qp *qp);
/* Commit what was taken as the message in progress and start a new transaction; the SRQ is free for others. */
void sh_recv_keep(struct sh_recv *r, struct sh_hca *hca, struct sh_qp *qp);
/* Go on with the WQE of the message in progress. */
void sh_recv_resume(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);
/* Place a payload where its list says, from byte skip on: enum sh_placed, or the syndrome that the WQE fails with (place.h). */
int sh_recv_place(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint64_t skip,
		  const struct sh_payload *data);
/* Add the CQE for its WQE. -ENOSPC: overrun. */
int sh_recv_cqe(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, const struct sh_cqe *cqe);
/* Commit, and let go of the locks. */
void sh_recv_commit(struct sh_recv *r, struct sh_dev *dev);
/* Let go of everything and change nothing. */
void sh_recv_give_up(struct sh_recv *r, struct sh_dev *dev);

/* The CQE of a message that ends with this packet, of operation op and with len bytes in all; connected services. */
SH_INLINE struct sh_cqe sh_cqe_received(const struct sh_qp *qp, uint32_t srqn, uint32_t index, uint8_t op,
					const struct sh_packet *p, uint64_t len)
{
	bool imm = p->flags & SH_PKT_IMM;

	return (struct sh_cqe){
		.qpn = qp->qpn,
		.imm_be = imm ? p->imm_be : 0,
		.srqn_srcqp = sh_qp_is_xrc(qp) ? srqn : 0,
		.byte_cnt = (uint32_t)len,
		.wqe_index = (uint16_t)index,
		.opcode = op == SH_PKT_WRITE ? MLX4_CQE_RECV_RDMA_WRITE_IMM :
			  imm ? MLX4_CQE_RECV_SEND_IMM : MLX4_CQE_RECV_SEND,
		.solicited = !!(p->flags & SH_PKT_SE),
	};
}

#endif
