/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a responder asks about a request before it executes the request: each rule once, inline. The
 * ordinary responders (responder.c, responder_rdma.c, ud.c) also decide what becomes of a request
 * that breaks a rule. express_way.h asks the same, and leaves such a request to them.
 *
 * The functions above "it was executed" change nothing. The caller of any function here holds the
 * lock of the QP's responder.
 *
 * Other rules: on receives in rq_receives.h and srq_receives.h, on their completions in receive.h
 * and cqe.h, on the receiver's memory in place.h, on keys in mr.h.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_RULES_H
#define SOFTHCA_DEVICE_TRANSPORT_RULES_H

#include "mlx4-format.h"
#include "fabric.h"

#define SH_MAX_MESSAGE (UINT64_C(1) << 31)

/* Does a requester of this service wait for answers? */
static inline bool sh_is_acknowledged(uint8_t service)
{
	return service != SH_SVC_UC && service != SH_SVC_UD;
}

/* ---- is it for this QP? ---- */

static inline bool sh_service_fits(const struct sh_qp *qp, uint8_t service)
{
	if (service == SH_SVC_RC)
		return qp->type == SH_QPT_RC;
	if (service == SH_SVC_XRC)
		return qp->type == SH_QPT_XRC || qp->type == SH_QPT_XRC_TGT;
	return service == SH_SVC_UC ? qp->type == SH_QPT_UC
				    : service == SH_SVC_UD && qp->type == SH_QPT_UD;
}

/*
 * Is this the QP that the packet names, of the packet's service, and does its owner live? Another
 * QP may have the slot by now.
 */
SH_INLINE bool sh_is_for(const struct sh_dev *dev, const struct sh_qp *qp,
			 const struct sh_packet *p)
{
	return (qp->qpn == p->dqpn || p->dqpn == MLX4_MULTICAST_QPN) && !qp->silent &&
	       sh_service_fits(qp, p->service) && (!qp->ctx || sh_ctx_live(dev, qp->ctx));
}

/* Does a QP receive in this state? */
static inline bool sh_state_receives(const struct sh_qp *qp)
{
	return qp->state == SH_QPS_RTS || (qp->state >= SH_QPS_RTR && qp->state < SH_QPS_ERR);
}

/* The first packet that a QP in RTR receives raises COMM_EST. */
static inline bool sh_establishes(const struct sh_qp *qp)
{
	return qp->state == SH_QPS_RTR && !qp->comm_est;
}

/*
 * Did the packet come in at the port where this path of the QP ends, and from the port where it
 * begins? LIDs of one port may differ in their path bits. at: the port of the path; port: that of
 * the packet.
 */
static inline bool sh_on_path(const struct sh_dev *dev, const struct sh_qp *qp, uint32_t at,
			      uint32_t port, const struct sh_packet *p, const struct sh_path *path)
{
	return at == port && (p->slid == path->dlid || qp->type == SH_QPT_UD ||
			      sh_lid_same_port(dev, p->slid, path->dlid));
}

/*
 * Are these P_Keys of one partition, and is one end a full member of it? 0 is no partition's key.
 */
static inline bool sh_pkey_match(uint16_t a, uint16_t b)
{
	return !((a ^ b) & 0x7fff) && (a & 0x7fff) && ((a | b) & 0x8000);
}

/* ---- is it in turn? ---- */

/*
 * By how many PSNs the packet is ahead of the expected one. 0: it is the next one; negative: it is
 * a duplicate. held_back: packets that the QP has taken in but not committed yet.
 */
static inline int32_t sh_ahead(const struct sh_qp *qp, uint32_t held_back,
			       const struct sh_packet *p)
{
	return sh_psn_diff(p->psn, qp->e_psn + held_back);
}

/* Is no message in progress? Then any packet that begins one is in turn. */
static inline bool sh_between_messages(const struct sh_qp *qp)
{
	return qp->cur_op == SH_RECV_NONE;
}

/*
 * Does the packet follow in the order of opcodes? The first packet of a SEND may come again if its
 * copy was cut short; its WQE is taken already.
 */
static inline bool sh_in_turn(const struct sh_qp *qp, const struct sh_packet *p)
{
	if (p->op != SH_PKT_SEND && p->op != SH_PKT_WRITE)
		return sh_between_messages(qp);
	if (p->flags & SH_PKT_FIRST)
		return sh_between_messages(qp) ||
		       (p->op == SH_PKT_SEND && qp->cur_op == SH_RECV_SEND && !qp->cur_done);
	return qp->cur_op == (p->op == SH_PKT_SEND ? SH_RECV_SEND : SH_RECV_WRITE);
}

/* Is the packet both the first and the last of its message? */
static inline bool sh_is_whole(const struct sh_packet *p)
{
	return (p->flags & (SH_PKT_FIRST | SH_PKT_LAST)) == (SH_PKT_FIRST | SH_PKT_LAST);
}

/* Does the packet have a length that a First, Middle, Last or Only packet may have? */
static inline bool sh_length_fits(const struct sh_qp *qp, const struct sh_packet *p)
{
	uint64_t mtu = sh_qp_mtu(qp), len = p->payload.len, full;

	if (sh_is_whole(p) && p->npackets == 1)
		return len <= mtu;
	full = p->npackets * mtu;
	return p->flags & SH_PKT_LAST ? len <= full && len > full - mtu : len == full;
}

/* ---- may it do that? ---- */

/* May the peer make this request, of this length? Whether the key allows it is asked in mr.h. */
static inline bool sh_op_allowed(const struct sh_qp *qp, const struct sh_packet *p)
{
	switch (p->op) {
	case SH_PKT_SEND:
		return true;
	case SH_PKT_WRITE:
		return qp->access & SH_REMOTE_WRITE && p->dmalen <= SH_MAX_MESSAGE;
	case SH_PKT_READ:
		return qp->access & SH_REMOTE_READ && qp->max_dest_rd_atomic &&
		       p->dmalen <= SH_MAX_MESSAGE;
	case SH_PKT_CS:
	case SH_PKT_FA:
		return qp->access & SH_REMOTE_ATOMIC && qp->max_dest_rd_atomic;
	default:
		return false;
	}
}

/* ---- it was executed ---- */

/* Makes a step that needs no transaction, since it is one store to one word. */
static inline void sh_step_psn(struct sh_qp *qp, uint32_t messages, uint32_t e_psn)
{
	__atomic_store_n((uint64_t *)&qp->msn, sh_two(sh_psn_add(qp->msn, messages), e_psn),
			 __ATOMIC_RELAXED);
}

/* The same in a transaction. */
SH_INLINE void sh_txn_psn(struct sh_txn_open *t, struct sh_qp *qp, uint32_t messages,
			  uint32_t e_psn)
{
	sh_txn_store_two(t, &qp->msn, sh_psn_add(qp->msn, messages), e_psn);
}

/* The PSN after a request. */
static inline uint32_t sh_psn_after(const struct sh_packet *p)
{
	return sh_psn_add(p->psn, p->npackets);
}

/*
 * UC: what comes next follows this packet, whatever was expected. The sender does not hear of it.
 */
static inline void sh_expect_after(struct sh_qp *qp, const struct sh_packet *p)
{
	qp->e_psn = sh_psn_after(p);
}

#endif
