/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The receiving half of a QP: which packets it accepts, and how it executes requests. The caller
 * holds both locks of the QP, unless the comment of a function says otherwise.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_RESPONDER_H
#define SOFTHCA_DEVICE_TRANSPORT_RESPONDER_H

#include "packet.h"

#define SH_SHORT                                                                                   \
	(8u << 10) /* up to this length, a message is copied while an SRQ and a CQ are locked */

/* These take the locks themselves. */
void sh_respond_reliable(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
			 const struct sh_packet *p, struct sh_packet *resp,
			 struct sh_seg *resp_seg);
void sh_respond_uc(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		   const struct sh_packet *p, struct sh_packet *resp);
void sh_respond_ud(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		   const struct sh_packet *p, struct sh_packet *resp);

/*
 * The PD that a packet's R_Key is checked against: that of the QP, or for XRC that of the SRQ that
 * the packet names. -EINVAL: no such SRQ serves this QP. The responder's lock is enough.
 */
int sh_rkey_pd(struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p, uint32_t *pdn);
/*
 * Checks a READ, and answers it in *resp. Advances the expected PSN, unless the request is a
 * duplicate, that is, behind that PSN. Returns 0, or the syndrome of the NAK to send; then nothing
 * has changed. The caller needs the responder's lock only.
 */
uint8_t sh_execute_read(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
			const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg,
			bool duplicate);
/* Execute or refuse a READ or an atomic operation. They fill *resp in either case. */
void sh_respond_read(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		     const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg,
		     bool duplicate);
void sh_respond_atomic(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		       const struct sh_packet *p, struct sh_packet *resp, bool duplicate);

/*
 * What an ACK may name for a duplicate SEND or WRITE that ends before PSN `after`: the newest PSN
 * that was executed, but none from the first READ or atomic operation behind the duplicate on,
 * whose answer the requester may be waiting for. Linux's Soft-RoCE takes an ACK with that PSN for
 * the answer: a READ succeeds, and its buffer has no data.
 */
uint32_t sh_ack_psn(const struct sh_qp *qp, uint32_t after);

/* The AETH of a response. */
static inline void sh_aeth(struct sh_packet *resp, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	resp->op = SH_PKT_ACK;
	resp->psn = psn & SH_PSN_MASK;
	resp->npackets = 1;
	resp->syndrome = syndrome;
	resp->msn = msn;
}
/* The positive answer to the whole of a request. */
static inline void sh_ack(struct sh_packet *resp, const struct sh_packet *p, uint32_t msn)
{
	sh_aeth(resp, p->psn + p->npackets - 1, SH_AETH_ACK, msn);
}
void sh_nak(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, struct sh_packet *resp,
	    uint8_t syndrome);

/*
 * The answer to a request after which the QP is in ERR, the event, and how a receive in progress
 * fails.
 */
struct sh_refusal {
	uint8_t nak;
	uint32_t event; /* SH_QPE_NONE: none */
	uint8_t syndrome, vendor;
};
/*
 * Answers p so, and moves the QP to ERR. The requester gets the answer even if this thread, which
 * is its own, comes to nothing after the move: it could not get it once more.
 */
void sh_refuse(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p,
	       struct sh_packet *resp, const struct sh_refusal *how);

/*
 * Can this QP take the packet at all? Checks state, peer, port and P_Key, and counts the packet as
 * dropped if not. A packet on the alternate path makes an armed QP migrate.
 */
bool sh_receive_ok(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		   const struct sh_packet *p);

/*
 * The P_Key that a port has at present at an index of its table, and the one that a QP sends and
 * receives with.
 */
static inline uint16_t sh_pkey_at(const struct sh_hca *hca, uint32_t port, uint32_t index)
{
	return hca->port[(port - 1u) % SH_MAX_PORTS].pkey[index % SH_PKEYS];
}
static inline uint16_t sh_qp_pkey(const struct sh_hca *hca, const struct sh_qp *qp)
{
	return sh_pkey_at(hca, qp->port, qp->pkey_index);
}

#endif
