/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The receiving half of a QP: who may send to it, and what becomes of requests. Functions whose comment
 * does not say otherwise want both locks of the QP.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_RESPONDER_H
#define SOFTHCA_DEVICE_TRANSPORT_RESPONDER_H

#include "packet.h"

#define SH_SHORT	(8u << 10)	/* what is copied while an SRQ and a CQ are locked */

/* These take the locks themselves. */
void sh_respond_reliable(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
			 const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg);
void sh_respond_uc(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		   const struct sh_packet *p, struct sh_packet *resp);
void sh_respond_ud(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		   const struct sh_packet *p, struct sh_packet *resp);

/* The PD that a packet's R_Key is checked against: the QP's, for XRC that of the SRQ named. -EINVAL */
int sh_rkey_pd(struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p, uint32_t *pdn);
/*
 * Check a READ and answer it in *resp; take the step, unless it is a duplicate (behind the expected PSN). Otherwise the syndrome of
 * the NAK that it earns, and nothing has changed. The responder's lock is enough.
 */
uint8_t sh_execute_read(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p, struct sh_packet *resp,
		struct sh_seg *resp_seg, bool duplicate);
/* READ and atomics, whatever becomes of them. They fill *resp. */
void sh_respond_read(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p,
		     struct sh_packet *resp, struct sh_seg *resp_seg, bool duplicate);
void sh_respond_atomic(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p,
		       struct sh_packet *resp, bool duplicate);

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
void sh_nak(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, struct sh_packet *resp, uint8_t syndrome);

/* May this QP take a packet at all: state, peer, port, P_Key. Both locked. */
bool sh_receive_ok(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		   const struct sh_packet *p);

/* The P_Key that a port has now at an index; and the one that a QP sends and receives with. */
static inline uint16_t sh_pkey_at(const struct sh_hca *hca, uint32_t port, uint32_t index)
{
	return hca->port[(port - 1u) % SH_MAX_PORTS].pkey[index % SH_PKEYS];
}
static inline uint16_t sh_qp_pkey(const struct sh_hca *hca, const struct sh_qp *qp)
{
	return sh_pkey_at(hca, qp->port, qp->pkey_index);
}

#endif
