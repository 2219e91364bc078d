/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Receive WQEs of a responder. Both locks of the QP are held.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_RECEIVE_H
#define SOFTHCA_DEVICE_TRANSPORT_RECEIVE_H

#include "softhca/device/memory/mr.h"
#include "softhca/device/memory/txn.h"
#include "softhca/device/queues/cqe.h"

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
/* Read its scatter list. -errno */
int sh_recv_scatter(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, struct sh_sge *sge,
		    unsigned int max);
/* Add the CQE for its WQE. Fields of cqe that name QP, SRQ and index are filled here. -ENOSPC: overrun. */
int sh_recv_cqe(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, struct sh_cqe *cqe);
/* Commit, and let go of the locks. */
void sh_recv_commit(struct sh_recv *r, struct sh_dev *dev);
/* Let go of everything and change nothing. */
void sh_recv_drop(struct sh_recv *r, struct sh_dev *dev);

#endif
