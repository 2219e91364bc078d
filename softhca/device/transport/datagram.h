/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What UD adds to a message: the Q_Key, the 40 bytes in front of the payload, and what a completion
 * says about the sender. Each once and inline, for ud.c and express_way.h. The caller holds the
 * lock of the QP's responder.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_DATAGRAM_H
#define SOFTHCA_DEVICE_TRANSPORT_DATAGRAM_H

#include <string.h>

#include "mlx4-bytes.h"
#include "mlx4-format.h"
#include "receive.h"

#define SH_GRH_VERSION	(6u << 28)
#define SH_GRH_NEXT_IBA 0x1b
#define SH_BTH_LEN	12
#define SH_DETH_LEN	8
#define SH_IMM_LEN	4
#define SH_ICRC_LEN	4

struct sh_wire_grh {
	__be32 version_class_flow;
	__be16 payload_len;
	__u8 next_header;
	__u8 hop_limit;
	__u8 sgid[16];
	__u8 dgid[16];
} __attribute__((packed)); /* a receive's buffer may begin anywhere */
_Static_assert(sizeof(struct sh_wire_grh) == SH_GRH_LEN, "global route header");

/* Does the datagram have the Q_Key of the QP? */
static inline bool sh_qkey_match(const struct sh_qp *qp, const struct sh_packet *p)
{
	return qp->qkey == p->qkey;
}

/* The global route header of a datagram that has one. It is placed in front of the payload. */
static inline void sh_make_grh(const struct sh_packet *p, struct sh_wire_grh *g)
{
	uint32_t len = SH_BTH_LEN + SH_DETH_LEN + (p->flags & SH_PKT_IMM ? SH_IMM_LEN : 0) +
		       ((p->payload.len + 3) & ~3u) + SH_ICRC_LEN;

	g->version_class_flow = to_be32(SH_GRH_VERSION | (uint32_t)p->grh.traffic_class << 20 |
					(p->grh.flow_label & 0xfffff));
	g->payload_len = to_be16(len);
	g->next_header = SH_GRH_NEXT_IBA;
	g->hop_limit = p->grh.hop_limit;
	memcpy(g->sgid, p->grh.sgid, 16);
	memcpy(g->dgid, p->grh.dgid, 16);
}

/* The CQE of a datagram. hca: the receiver's. */
SH_INLINE struct sh_cqe sh_cqe_datagram(const struct sh_hca *hca, const struct sh_qp *qp,
					uint32_t srqn, uint32_t index, const struct sh_packet *p)
{
	const struct sh_port *port = &hca->port[(qp->port - 1u) % SH_MAX_PORTS];
	struct sh_cqe cqe =
		sh_cqe_received(qp, srqn, index, SH_PKT_SEND, p, SH_GRH_LEN + p->payload.len);

	cqe.srqn_srcqp = p->srcqp & MLX4_QPN_MASK;
	cqe.sl_vid = p->sl << MLX4_CQE_SL_SHIFT;
	cqe.slid = p->slid;
	if (p->flags & SH_PKT_GRH)
		cqe.srqn_srcqp |= MLX4_CQE_GRH;
	if (p->dqpn != MLX4_MULTICAST_QPN)
		cqe.srqn_srcqp |= (p->dlid & ((1u << (port->lmc & 7)) - 1)) << MLX4_CQE_PATH_SHIFT;
	return cqe;
}

#endif
