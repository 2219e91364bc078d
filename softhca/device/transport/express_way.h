/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The express way, for whole requests that meet nothing unusual, as nearly all do. It has no rules
 * of its own. It asks the same inline functions as the ordinary responders (rules.h, rq_receives.h,
 * srq_receives.h, cqe.h, mr.h), and acts through the same functions (place.h, receive.h,
 * sh_execute_read(), the steps in those headers). Two things make it quick:
 *
 * Its locks. Of the QP that a request is for, the sending thread takes the responder's lock alone,
 * so the process at the other end can send meanwhile. The thread keeps this lock, the SRQ's and the
 * CQ's from one request of a chain to the next. The ordinary responders hold the locks of both
 * halves of the QP, and take and release the other locks for each packet.
 *
 * What it leaves out. In each of these cases the thread releases everything as it found it, and the
 * ordinary responders execute the request from its beginning:
 *
 *	- whatever a rule forbids: refusals, their answers, errors, and the counts of drops;
 *	- changes of a QP's state, events about the QP (COMM_EST), and its alternate path;
 *	- a PSN other than the expected one, a message in progress, a part of a message;
 *	- more than SH_SHORT bytes into a receive; atomic operations; injected faults;
 *	- receives of a queue that this process has not mapped; a doorbell record that cannot be
 *	  right; an SRQ that is damaged or reaches its watermark;
 *	- a CQ that takes no more CQEs.
 *
 * A CQ that is armed, or full by the consumer's position as last read, is not such a case: there
 * sh_cq_put() adds the CQE, instead of the inline code of cqe.h.
 *
 * Only the express way reads receives ahead, and completes two messages of a chain at once.
 *
 * Functions that have a parameter `service` are compiled for each kind of service: SH_SVC_RC stands
 * for XRC, too. Out of line, p->service or the type of the QP says which one it is.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_EXPRESS_WAY_H
#define SOFTHCA_DEVICE_TRANSPORT_EXPRESS_WAY_H

#include <string.h>

#include "softhca/device/queues/cqe.h"
#include "softhca/device/queues/rq_receives.h"
#include "softhca/device/queues/srq_receives.h"
#include "datagram.h"
#include "express.h"
#include "fabric.h"
#include "place.h"
#include "receive.h"
#include "rules.h"

#define AHEAD 4 /* how many receive WQEs of an RQ ahead a prefetch goes */

/* One receive. Valid while the locks of the QP's responder, the SRQ and the CQ are held. */
struct sink {
	const struct mlx4_wqe_data *data; /* its list: in the queue, or in rq_cache */
	const void *following;		  /* a posted WQE to prefetch; NULL: prefetch nothing */
	uint32_t nsge, index, pdn;
	uint32_t next; /* SRQ: the head once this receive is taken; RQ: 0 */
};

/*
 * Is this the QP that the packet is for, in the usual state and with nothing unfinished? The answer
 * holds as long as the caller holds the responder's lock.
 */
SH_INLINE bool usual(struct sh_dev *dev, const struct sh_hca *hca, const struct sh_qp *qp,
		     uint32_t port, const struct sh_packet *p, uint8_t service)
{
	return sh_is_for(dev, qp, p) && sh_state_receives(qp) &&
	       (service == SH_SVC_UD || !sh_establishes(qp)) &&
	       sh_on_path(dev, qp, qp->port, port, p, &qp->path) &&
	       sh_pkey_match(p->pkey, sh_qp_pkey(hca, qp)) && sh_between_messages(qp) &&
	       !qp->cur_wqe;
}

/* How many messages wait for the next one: 0 or 1. Each of them is one packet. */
static inline uint32_t held_back(const struct sh_express *e)
{
	return e->waiting ? 1 : 0;
}

/*
 * Is the packet a whole message, with the expected PSN? It is in turn, since no other message is in
 * progress. UC takes any PSN from a message that begins, and UD has none.
 */
static inline bool fits(const struct sh_express *e, const struct sh_packet *p, uint8_t service)
{
	if (!sh_is_acknowledged(service))
		return sh_is_whole(p) && (service == SH_SVC_UD || sh_length_fits(e->qp, p));
	return !sh_ahead(e->qp, held_back(e), p) && sh_is_whole(p) && sh_length_fits(e->qp, p);
}

/*
 * How many WQEs are posted, at least. Reads the doorbell record only if now is set, or if the WQEs
 * that it announced before are used up. 0 also if the record cannot be right.
 */
static uint32_t posted(struct sh_dev *dev, const struct sh_umem *db, uint32_t *seen,
		       uint32_t consumed, uint32_t size, bool now)
{
	uint32_t n = sh_posted(*seen, consumed);

	if ((!n || n > size || now) && sh_umem_load32(dev, db, 0, seen))
		return 0;
	n = sh_posted(*seen, consumed);
	return n > size ? 0 : n;
}

/*
 * Reads the posted receives of one line of the queue together, once: the owner posts new receives
 * to the same line, which otherwise would travel between the processors for each of them.
 */
static const struct mlx4_wqe_data *read_ahead(struct sh_qp *qp, uint32_t index,
					      const struct mlx4_wqe_data *at, uint32_t n)
{
	uint32_t left = (64 - ((uintptr_t)at & 63)) / sizeof(*at), i;

	if (n > left)
		n = left;
	/* A thread that dies before the last store leaves an empty cache. */
	qp->rq_cached = 0;
	sh_program_order();
	for (i = 0; i < n && i < SH_QP_RECEIVES; i++)
		memcpy(qp->rq_cache[i], at + i, sizeof(*at));
	sh_program_order();
	qp->rq_cached = index << 8 | i;
	return (const void *)qp->rq_cache[0];
}

/* Finds the next receive in the queue itself. */
SH_OUTLINE bool in_rq(struct sink *s, struct sh_dev *dev, struct sh_qp *qp, uint32_t consumed)
{
	uint32_t size = sh_rq_size(qp), slot = sh_rq_slot(qp, consumed);
	uint32_t n = qp->rq_present ? posted(dev, &qp->rq_db, &qp->rq_seen, consumed, size, false)
				    : 0,
		 ahead;

	if (!n)
		return false;
	s->nsge = sh_rq_list(qp);
	if (!s->nsge)
		return false;
	s->data = sh_umem_in_place(dev, &qp->buf, sh_rq_at(qp, consumed),
				   s->nsge * sizeof(s->data[0]));
	if (!s->data)
		return false;
	ahead = n > AHEAD ? AHEAD : n - 1;
	s->following = slot + ahead < size ? s->data + (size_t)ahead * s->nsge : s->data;
	if (s->nsge == 1)
		s->data = read_ahead(qp, s->index, s->data, n < size - slot ? n : size - slot);
	return true;
}

SH_INLINE bool from_rq(struct sink *s, struct sh_dev *dev, struct sh_qp *qp, uint32_t consumed)
{
	uint32_t i;

	s->pdn = sh_recv_pdn(qp, NULL);
	s->next = 0;
	s->index = sh_rq_index(consumed);
	i = (s->index - (qp->rq_cached >> 8)) & MLX4_RQ_DB_MASK;
	if (i < SH_QP_RECEIVES && i < (qp->rq_cached & 0xff)) {
		/* It was posted when it was read ahead, so there is nothing else to check. */
		s->data = (const void *)qp->rq_cache[i];
		s->nsge = 1;
		s->following = NULL;
	} else if (!in_rq(s, dev, qp, consumed)) {
		return false;
	}
	return true;
}

SH_INLINE bool from_srq(struct sink *s, struct sh_dev *dev, struct sh_qp *qp, struct sh_srq *srq,
			uint32_t consumed, uint32_t head)
{
	const struct mlx4_wqe_srq_next *wqe;
	unsigned int nsge = sh_srq_list(srq);
	uint32_t n, next;

	n = posted(dev, &srq->db, &srq->seen, consumed, sh_srq_size(srq), srq->limit);
	if (!nsge || !n || sh_srq_limit_reached(srq, n))
		return false;
	wqe = sh_umem_in_place(dev, &srq->buf, sh_srq_at(srq, head), (nsge + 1) * sizeof(*wqe));
	if (!wqe)
		return false;
	next = from_be16(wqe->next_wqe_index);
	if (!sh_srq_has(srq, next))
		return false;
	s->pdn = sh_recv_pdn(qp, srq);
	s->index = head;
	s->next = next;
	s->data = (const void *)(wqe + 1);
	s->nsge = nsge;
	s->following =
		n > 1 ? sh_umem_in_place(dev, &srq->buf, sh_srq_at(srq, next), sizeof(*wqe)) : wqe;
	return true;
}

/*
 * Adds n messages' steps of the QP, and of the queue that its receives come from, to a transaction.
 * head and e_psn are the values after these steps.
 */
static inline void step_on(struct sh_txn_open *t, const struct sh_express *e, uint32_t n,
			   uint32_t head, uint32_t e_psn, uint8_t service)
{
	struct sh_qp *qp = e->qp;

	if (e->srq)
		sh_txn_srq(t, e->srq, head, n);
	else
		sh_txn_rq(t, qp, n);
	if (sh_is_acknowledged(service))
		sh_txn_psn(t, qp, n, e_psn);
}

static uint8_t service_of(const struct sh_qp *qp)
{
	return qp->type == SH_QPT_UC ? SH_SVC_UC : qp->type == SH_QPT_UD ? SH_SVC_UD : SH_SVC_RC;
}

/* Commits the waiting message alone: no message follows that can share its transaction. */
SH_OUTLINE void commit_alone(struct sh_express *e, struct sh_dev *dev)
{
	struct sh_cq *cq = e->cq;
	struct sh_txn_open t;
	uint64_t cqe[4];

	sh_txn_again(&t, dev, &e->qp->txn);
	step_on(&t, e, 1, e->head, sh_psn_add(e->qp->e_psn, 1), service_of(e->qp));
	sh_txn_cq(&t, cq, cq->producer + 1, false);
	memcpy(cqe, t.log->cqe[0], sizeof(cqe));
	sh_txn_commit_cqe(&t, &cq->buf, e->waiting, cqe, false, NULL);
	e->waiting = NULL;
}

/* Commits the message that waits, if there is one, and releases the CQ and the SRQ. */
static void close_sink(struct sh_express *e, struct sh_dev *dev)
{
	if (e->waiting)
		commit_alone(e, dev);
	if (e->cq)
		sh_cq_let_go(dev, e->cq);
	if (e->srq)
		sh_unlock(dev, &e->srq->lock);
	e->cq = NULL;
	e->srq = NULL;
	e->begun = false;
}

/* What a thread that stands holds, the ordinary responders find held, too. */
SH_INLINE bool lock(struct sh_dev *dev, struct sh_lock *lock, uint8_t service)
{
	return !sh_lock_within(dev, lock,
			       sh_is_acknowledged(service) ? SH_WAIT_BRIEFLY : SH_WAIT_PATIENTLY);
}

/* Locks the SRQ and the CQ, and finds the next receive. What it locks stays locked if it fails. */
SH_INLINE bool open_sink(struct sh_express *e, struct sink *s, struct sh_dev *dev, uint32_t srqn,
			 uint8_t service)
{
	struct sh_qp *qp = e->qp;

	if (!sh_recv_srqn(qp, srqn, &srqn))
		return false;
	if (e->cq && e->srqn != srqn)
		close_sink(e, dev);
	if (!e->cq) {
		struct sh_srq *srq = srqn ? sh_srq_of(e->hca, srqn) : NULL;
		struct sh_cq *cq;
		uint32_t cqn;

		if (srqn && !srq)
			return false;
		if (srq) {
			if (!lock(dev, &srq->lock, service))
				return false;
			e->srq = srq;
			if (!sh_srq_whole(srq) || !sh_srq_serves(qp, srq, srqn) ||
			    !sh_ctx_live(dev, srq->ctx))
				return false;
		}
		cqn = sh_recv_cqn(qp, srq);
		cq = cqn ? sh_cq_of(e->hca, cqn) : NULL;
		if (!cq)
			return false;
		if (!lock(dev, &cq->lock, service))
			return false;
		e->cq = cq;
		e->srqn = srqn;
	}
	if (e->srq)
		return from_srq(s, dev, qp, e->srq, e->srq->consumed + held_back(e),
				e->waiting ? e->head : e->srq->head);
	return from_rq(s, dev, qp, qp->rq_consumed + held_back(e));
}

/* Places the payload as the WQE's list says, from byte skip on. */
SH_OUTLINE bool scatter_list(const struct sink *s, struct sh_dev *dev, struct sh_hca *hca,
			     uint32_t skip, const struct sh_payload *data)
{
	struct sh_sge sge[MLX4_MAX_SGE];
	unsigned int n = sh_sge_list(s->data, s->nsge < MLX4_MAX_SGE ? s->nsge : MLX4_MAX_SGE, sge);

	return !sh_place_list(dev, hca, s->pdn, sge, n, skip, data);
}

/* The same. Nearly always the first entry of the list has room for the whole payload. */
SH_INLINE bool scatter(const struct sink *s, struct sh_dev *dev, struct sh_hca *hca, uint32_t skip,
		       const struct sh_payload *data)
{
	struct sh_sge first;

	if (!skip && !data->len)
		return true;
	first = sh_sge_of(s->data);
	if (!sh_sge_has_room(&first, skip + data->len))
		return scatter_list(s, dev, hca, skip, data);
	first.addr += skip;
	first.len = (uint32_t)data->len;
	return !sh_place_at(dev, hca, s->pdn, SH_LOCAL_WRITE, &first, data);
}

/*
 * Places a datagram and the GRH in front of it with one look-up of the key, and makes the GRH where
 * it belongs. Nearly always the first entry of the list has room for both, in device memory. False:
 * this is another case, and nothing is placed.
 */
SH_INLINE bool place_with_grh(const struct sink *s, struct sh_dev *dev, struct sh_hca *hca,
			      const struct sh_packet *p)
{
	const struct sh_payload *data = &p->payload;
	struct sh_sge first = sh_sge_of(s->data);
	struct sh_seg seg, behind;
	struct sh_wire_grh *grh;
	uint32_t ctx;

	if (!sh_sge_has_room(&first, SH_GRH_LEN + data->len))
		return false;
	first.len = SH_GRH_LEN + (uint32_t)data->len;
	if (sh_mr_locate(dev, hca, s->pdn, SH_LOCAL_WRITE, &first, &seg, &ctx))
		return false;
	grh = sh_shared_at(dev, &seg);
	behind = (struct sh_seg){seg.addr + SH_GRH_LEN, data->len};
	if (!grh || (data->len && (data->nseg != 1 ||
				   !sh_copy_one(dev, &behind, data->ctx, data->seg, data->len))))
		return false;
	sh_make_grh(p, grh);
	return true;
}

/*
 * The same as scatter() of a message. A datagram leaves 40 bytes in front of its payload, for a GRH
 * if it has one.
 */
SH_INLINE bool place_message(const struct sink *s, struct sh_dev *dev, struct sh_hca *hca,
			     const struct sh_packet *p, uint8_t service)
{
	struct sh_wire_grh grh;
	struct sh_seg src = {(uintptr_t)&grh, sizeof(grh)};
	const struct sh_payload head = {.nseg = 1, .seg = &src, .len = sizeof(grh)};

	if (service != SH_SVC_UD)
		return scatter(s, dev, hca, 0, &p->payload);
	if (p->flags & SH_PKT_GRH && place_with_grh(s, dev, hca, p))
		return true;
	if (!scatter(s, dev, hca, SH_GRH_LEN, &p->payload))
		return false;
	if (!(p->flags & SH_PKT_GRH))
		return true;
	sh_make_grh(p, &grh);
	return scatter(s, dev, hca, 0, &head);
}

static inline struct sh_cqe received(const struct sh_express *e, const struct sink *s,
				     const struct sh_packet *p, uint8_t op, uint8_t service)
{
	if (service == SH_SVC_UD)
		return sh_cqe_datagram(e->hca, e->qp, e->srqn, s->index, p);
	return sh_cqe_received(e->qp, e->srqn, s->index, op, p, p->payload.len);
}

SH_OUTLINE bool finish_unusual(struct sh_express *e, const struct sink *s, struct sh_dev *dev,
			       const struct sh_packet *p, uint8_t op, const struct sh_last *last)
{
	struct sh_cqe cqe = received(e, s, p, op, p->service);
	struct sh_txn_open t;

	sh_txn_begin(&t, dev, &e->qp->txn, &e->qp->rlock);
	sh_txn_covers(&t, &e->cq->lock);
	if (e->srq)
		sh_txn_covers(&t, &e->srq->lock);
	if (sh_cq_put(&t, e->hca, e->cq, &cqe))
		return false;
	step_on(&t, e, 1, s->next, sh_psn_after(p), p->service);
	if (last && sh_txn_commit_last(&t, last))
		return false;
	if (!last)
		sh_txn_commit(&t);
	e->begun = false;
	return true;
}

/*
 * Commits the step of the QP, the receive and the CQE as one transaction, or leaves the message
 * waiting for the next one. first: this is the first message since the locks were taken. No message
 * waits then, so the compiler leaves out the code for chains, and a message that comes alone does
 * not pay for it. last: of what a WRITE changes; NULL for a SEND.
 */
SH_INLINE bool finish_as(struct sh_express *e, const struct sink *s, struct sh_dev *dev,
			 const struct sh_packet *p, uint8_t op, bool first,
			 const struct sh_last *last, uint8_t service)
{
	uint32_t n = first ? 0 : held_back(e), entry = e->cq->producer + n;
	uint64_t *place = sh_cq_usual(dev, e->cq, entry), word[4];
	struct sh_cqe cqe = received(e, s, p, op, service);
	struct sh_txn_open t;

	if (n && place != e->waiting + 4) {
		commit_alone(e, dev);
		n = 0;
	}
	if (!place)
		return finish_unusual(e, s, dev, p, op, last);
	sh_cqe_words(word, &cqe, e->cq, entry);
	if (first) {
		sh_txn_begin(&t, dev, &e->qp->txn, &e->qp->rlock);
		sh_txn_joins(&t, &e->cq->lock);
		if (e->srq)
			sh_txn_joins(&t, &e->srq->lock);
		e->begun = true;
	} else {
		sh_txn_again(&t, dev, &e->qp->txn);
		/*
		 * To get a line that the receiver polls takes longer than all the rest. So the
		 * thread gets it once for two CQEs.
		 */
		if (op == SH_PKT_SEND && sh_cqe_begins_line(dev, entry) && p->npackets == 1 &&
		    !sh_cqe_solicits(&cqe)) {
			sh_txn_log_cqe(&t, 0, word);
			e->waiting = place;
			e->head = s->next;
			return true;
		}
	}
	step_on(&t, e, n + 1, s->next, sh_psn_after(p), service);
	sh_txn_cq(&t, e->cq, entry + 1, sh_cqe_solicits(&cqe));
	if (sh_txn_commit_cqe(&t, &e->cq->buf, place, word, n, last))
		return false;
	if (!first)
		e->waiting = NULL;
	return true;
}

/* The same, for a later message of a chain. sh_catch() armed the thread for the first one. */
SH_OUTLINE bool finish_next(struct sh_express *e, const struct sink *s, struct sh_dev *dev,
			    const struct sh_packet *p, uint8_t service)
{
	sh_rearm();
	return finish_as(e, s, dev, p, SH_PKT_SEND, false, NULL, service);
}

SH_INLINE bool finish(struct sh_express *e, const struct sink *s, struct sh_dev *dev,
		      const struct sh_packet *p, uint8_t service)
{
	return e->begun ? finish_next(e, s, dev, p, service)
			: finish_as(e, s, dev, p, SH_PKT_SEND, true, NULL, service);
}

/* The same for a WRITE. No message waits for it. */
SH_INLINE bool finish_write(struct sh_express *e, const struct sink *s, struct sh_dev *dev,
			    const struct sh_packet *p, const struct sh_last *last, uint8_t service)
{
	return finish_as(e, s, dev, p, SH_PKT_WRITE, !e->begun, last, service);
}

SH_INLINE bool express_send(struct sh_express *e, struct sh_dev *dev, const struct sh_packet *p,
			    uint8_t service)
{
	struct sink s;

	if (p->payload.len > SH_SHORT || !open_sink(e, &s, dev, p->srqn, service))
		return false;
	sh_cq_expect(dev, e->cq);
	if (!place_message(&s, dev, e->hca, p, service) || !finish(e, &s, dev, p, service))
		return false;
	/* It is in the cache of its owner's processor. Fetched now, it delays no later message. */
	if (s.following)
		__builtin_prefetch(s.following);
	return true;
}

SH_INLINE bool begin(struct sh_express *e, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
		     uint32_t port, const struct sh_packet *p, uint8_t service)
{
	if (!lock(dev, &qp->rlock, service)) {
		e->qp = NULL;
		return false;
	}
	sh_rearm();
	*e = (struct sh_express){.qp = qp, .hca = hca};
	return usual(dev, hca, qp, port, p, service);
}

/* Finds the destination QP, as a fabric without faults does, and locks its responder. */
static inline bool find(struct sh_express *e, struct sh_dev *dev, struct sh_hca *src,
			const struct sh_packet *p, uint8_t service)
{
	uint32_t hca, port;
	struct sh_hca *dst;
	struct sh_qp *qp;

	if (!sh_port_active(src, p->src_port) || !sh_lid_exact(dev, p->dlid, &hca, &port))
		return false;
	dst = sh_hca_table(dev, hca, 0);
	if (!dst || !sh_port_active(dst, port))
		return false;
	qp = sh_qp_of(dst, p->dqpn);
	return qp && begin(e, dev, dst, qp, port, p, service);
}

static inline void count(const struct sh_express *e, const struct sh_packet *p)
{
	e->qp->rcv_packets += p->npackets;
	e->qp->rcv_data += p->payload.len;
}

#endif
