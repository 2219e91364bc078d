/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The short way of a request that meets nothing unusual.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_EXPRESS_H
#define SOFTHCA_DEVICE_TRANSPORT_EXPRESS_H

#include "responder.h"

/* The other end of a QP, and what is locked there from one message of a chain to the next. */
struct sh_express {
	struct sh_qp *qp;		/* its responder is locked, or NULL: nothing is */
	struct sh_hca *hca;
	struct sh_srq *srq;		/* locked, or NULL */
	struct sh_cq *cq;		/* locked, or NULL */
	uint32_t srqn;			/* with cq: where receives come from, 0 = the RQ */
	bool begun;			/* their words name the responder's log */
	uint32_t head;			/* with waiting: of the SRQ, when that is committed */
	uint64_t *waiting;		/* a message is done but for its commit, and its CQE goes here; or NULL */
};
/*
 * Execute a whole request if nothing about it is out of the ordinary: *resp (and *resp_seg) is the positive answer then,
 * as far as it is read. false: nothing has changed. Takes no requester's lock.
 */
bool sh_respond_express(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
			const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg);
/*
 * The same from the sender's end, whose requester lock is held. *resp is filled for READ only: the answer to anything else is
 * sh_ack(). After true, e goes on holding what it has for the next request of this QP: meanwhile the caller takes
 * no lock, and calls sh_express_end() soon. The receiver may hear of the message only then, or with the next one; so the
 * sender's user hears of it after that. After false nothing is held, and of this request nothing has changed.
 */
bool sh_express(struct sh_express *e, struct sh_dev *dev, struct sh_hca *src, const struct sh_packet *p,
		struct sh_packet *resp, struct sh_seg *resp_seg);
void sh_express_end(struct sh_express *e, struct sh_dev *dev);

#endif
