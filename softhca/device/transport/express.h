/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The express way: the short way for a request that meets nothing unusual, of each service.
 * express_way.h says what makes it quick.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_EXPRESS_H
#define SOFTHCA_DEVICE_TRANSPORT_EXPRESS_H

#include "responder.h"

/* The other end of a QP, and what is locked there from one message of a chain to the next. */
struct sh_express {
	struct sh_qp *qp; /* its responder is locked; NULL: nothing is locked */
	struct sh_hca *hca;
	struct sh_srq *srq; /* locked, or NULL */
	struct sh_cq *cq;   /* locked, or NULL */
	uint32_t srqn;	    /* valid if cq is set: the SRQ that has the receives; 0: the RQ */
	bool begun;	    /* the locks' words name the responder's log */
	uint32_t head;	    /* valid if waiting is set: the SRQ's head after the commit */
	/* A message is done but for its commit, and its CQE goes here. NULL: no message waits. */
	uint64_t *waiting;
	/* Of a datagram: where the last one was addressed to. */
	uint32_t dqpn;
	uint16_t dlid;
};
/*
 * Executes a whole request if it meets nothing unusual, and fills *resp (for a READ *resp_seg too)
 * with the fields of the positive answer that the caller reads. False: nothing has changed, and the
 * caller takes the ordinary way. Takes no requester's lock.
 */
bool sh_respond_express(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
			const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg);
/*
 * The same for a sender, which holds its requester's lock and may have more requests. Fills *resp
 * for a READ only: the answer to any other request is sh_ack().
 *
 * After true, e still holds the locks at the other end, for the next request of this QP. Until the
 * caller releases them with sh_express_end(), which it does soon, it waits for no other lock. The
 * message may be waiting: then the receiver sees it with the next message, or at sh_express_end().
 * The caller must not report the completion of the send before that.
 *
 * After false, e holds no lock, and this request has changed nothing.
 */
bool sh_express(struct sh_express *e, struct sh_dev *dev, struct sh_hca *src,
		const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg);
/*
 * The same two for the services without acknowledgements. There is no answer. from: the sender's
 * QP.
 */
bool sh_respond_lossy(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		      const struct sh_packet *p);
bool sh_express_lossy(struct sh_express *e, struct sh_dev *dev, struct sh_hca *src,
		      struct sh_qp *from, const struct sh_packet *p);
/* Commits the waiting message, if there is one, and releases the locks at the other end. */
void sh_express_end(struct sh_express *e, struct sh_dev *dev);

#endif
