// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Whole requests that find everything as it should be: nearly all of them. They need the responder's half of the QP that
 * they are for, so the process at the other end can send meanwhile. Nothing here refuses, reports an error or changes a
 * state: at the first thing that is not as usual everything is let go as it was found, and the ordinary responders, which
 * hold both halves, execute the request from its beginning.
 */
#include <string.h>

#include "softhca/device/queues/cqe.h"
#include "softhca/device/queues/srq_receives.h"
#include "express.h"
#include "fabric.h"

#define AHEAD	4		/* receive WQEs of an RQ are fetched so far ahead */

/* A receive: all under the locks of the QP's responder, the SRQ and the CQ. */
struct sink {
	const struct mlx4_wqe_data *data;
	const void *following;		/* a WQE after it, when that is posted already; NULL: it is not to be fetched now */
	uint32_t nsge, index, pdn;
	uint32_t next;			/* SRQ: the head when it is taken; RQ: 0 */
};

static inline bool service_fits(const struct sh_qp *qp, uint8_t service)
{
	if (service == SH_SVC_RC)
		return qp->type == SH_QPT_RC;
	return service == SH_SVC_XRC && (qp->type == SH_QPT_XRC || qp->type == SH_QPT_XRC_TGT);
}

/* A QP that is where the packet is to go, and has nothing unfinished. Holds as long as the lock is held. */
SH_INLINE bool usual(struct sh_dev *dev, const struct sh_hca *hca, const struct sh_qp *qp, uint32_t port,
		     const struct sh_packet *p)
{
	return qp->qpn == p->dqpn && !qp->silent && service_fits(qp, p->service) &&
	       (qp->state == SH_QPS_RTS || qp->state == SH_QPS_SQD || (qp->state == SH_QPS_RTR && qp->comm_est)) &&
	       (!qp->ctx || sh_ctx_live(dev, qp->ctx)) && port == qp->port && p->slid == qp->path.dlid &&
	       qp->cur_op == SH_RECV_NONE && !qp->cur_wqe && sh_pkey_match(p->pkey, sh_qp_pkey(hca, qp));
}

/* Messages that wait for the next one, each of one packet: 0 or 1. */
static inline uint32_t held_back(const struct sh_express *e)
{
	return e->waiting ? 1 : 0;
}

/* A whole message, and the next one. */
static inline bool fits(const struct sh_express *e, const struct sh_packet *p)
{
	const uint8_t whole = SH_PKT_FIRST | SH_PKT_LAST;
	uint64_t mtu = sh_qp_mtu(e->qp), full = p->npackets * mtu;

	return p->psn == sh_psn_add(e->qp->e_psn, held_back(e)) && (p->flags & whole) == whole && p->payload.len <= full &&
	       (p->npackets == 1 || p->payload.len > full - mtu);
}

/* How many WQEs are posted, at least: the record is read when those seen before are used up. 0 also for nonsense. */
static uint32_t posted(struct sh_dev *dev, const struct sh_umem *db, uint32_t *seen, uint32_t consumed, uint32_t size,
		       bool now)
{
	uint32_t n = (uint16_t)(*seen - consumed);

	if ((!n || n > size || now) && sh_umem_load32(dev, db, 0, seen))
		return 0;
	n = (uint16_t)(*seen - consumed);
	return n > size ? 0 : n;
}

/*
 * The owner posts new receives on the line of the queue that the next ones are read from. So those on it that are posted
 * are read together, once.
 */
static const struct mlx4_wqe_data *read_ahead(struct sh_qp *qp, uint32_t index, const struct mlx4_wqe_data *at, uint32_t n)
{
	uint32_t left = (64 - ((uintptr_t)at & 63)) / sizeof(*at), i;

	if (n > left)
		n = left;
	/* Whoever dies in here leaves none. */
	qp->rq_cached = 0;
	sh_program_order();
	for (i = 0; i < n && i < SH_QP_RECEIVES; i++)
		memcpy(qp->rq_cache[i], at + i, sizeof(*at));
	sh_program_order();
	qp->rq_cached = index << 8 | i;
	return (const void *)qp->rq_cache[0];
}

/* The next receive, where the queue has it. */
SH_OUTLINE bool in_rq(struct sink *s, struct sh_dev *dev, struct sh_qp *qp, uint32_t consumed)
{
	uint32_t size = 1u << (qp->log_rq_size & 15), shift = qp->rq_shift & 15, slot = consumed & (size - 1);
	uint32_t n = qp->rq_present ? posted(dev, &qp->rq_db, &qp->rq_seen, consumed, size, false) : 0, ahead;

	if (!n || shift < MLX4_MIN_RQ_SHIFT)
		return false;
	s->nsge = 1u << (shift - MLX4_MIN_RQ_SHIFT);
	s->data = sh_umem_in_place(dev, &qp->buf, qp->rq_off + ((uint64_t)slot << shift), s->nsge * sizeof(s->data[0]));
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

	s->pdn = qp->pdn;
	s->next = 0;
	s->index = consumed & MLX4_RQ_DB_MASK;
	i = (s->index - (qp->rq_cached >> 8)) & MLX4_RQ_DB_MASK;
	if (i < SH_QP_RECEIVES && i < (qp->rq_cached & 0xff)) {
		/* It was posted when it was read ahead, and that is all there is to know. */
		s->data = (const void *)qp->rq_cache[i];
		s->nsge = 1;
		s->following = NULL;
	} else if (!in_rq(s, dev, qp, consumed)) {
		return false;
	}
	return true;
}

SH_INLINE bool from_srq(struct sink *s, struct sh_dev *dev, struct sh_srq *srq, uint32_t consumed, uint32_t head)
{
	/* It was whole when it was locked; the masks are for who overwrites it meanwhile. */
	uint32_t size = 1u << (srq->log_size & 31), shift = srq->wqe_shift & 15, n, next;
	const struct mlx4_wqe_srq_next *wqe;

	n = posted(dev, &srq->db, &srq->seen, consumed, size, srq->limit);
	if (!n || n <= srq->limit || shift < MLX4_MIN_SRQ_SHIFT)
		return false;
	wqe = sh_umem_in_place(dev, &srq->buf, (uint64_t)head << shift, UINT64_C(1) << shift);
	if (!wqe)
		return false;
	next = from_be16(wqe->next_wqe_index);
	if (next >= size)
		return false;
	s->pdn = srq->pdn;
	s->index = head;
	s->next = next;
	s->data = (const void *)(wqe + 1);
	s->nsge = (1u << shift) / sizeof(s->data[0]) - 1;
	s->following = n > 1 ? sh_umem_in_place(dev, &srq->buf, (uint64_t)next << shift, sizeof(*wqe)) : wqe;
	return true;
}

/* The steps of the QP and of the queue that receives come from, n messages on; what they lead to. */
static inline void step_on(struct sh_txn_open *t, const struct sh_express *e, uint32_t n, uint32_t head, uint32_t e_psn)
{
	struct sh_qp *qp = e->qp;

	if (e->srq)
		sh_txn_store_two(t, &e->srq->head, head, e->srq->consumed + n);
	else
		sh_txn_store_two(t, &qp->rq_consumed, qp->rq_consumed + n, qp->rq_seen);
	sh_txn_store_two(t, &qp->msn, sh_psn_add(qp->msn, n), e_psn);
}

/* A message waits, and there is no next one, or it is no company. */
SH_OUTLINE void commit_alone(struct sh_express *e, struct sh_dev *dev)
{
	struct sh_cq *cq = e->cq;
	struct sh_txn_open t;
	uint64_t cqe[4];

	sh_txn_again(&t, dev, &e->qp->txn);
	step_on(&t, e, 1, e->head, sh_psn_add(e->qp->e_psn, 1));
	sh_txn_store_two(&t, &cq->producer, cq->producer + 1, cq->solicited_producer);
	memcpy(cqe, t.log->cqe[0], sizeof(cqe));
	sh_txn_commit_cqe(&t, &cq->buf, e->waiting, cqe, false);
	e->waiting = NULL;
}

/* Let the SRQ and the CQ go. */
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

/* Have them, and the next receive. What is locked stays so whatever is returned. */
SH_INLINE bool open_sink(struct sh_express *e, struct sink *s, struct sh_dev *dev, uint32_t srqn)
{
	struct sh_qp *qp = e->qp;
	uint32_t cqn = qp->recv_cqn;

	if (!sh_qp_is_xrc(qp))
		srqn = qp->srqn;
	else if (!srqn)
		return false;
	if (e->cq && e->srqn != srqn)
		close_sink(e, dev);
	if (!e->cq) {
		struct sh_srq *srq = srqn ? sh_srq_of(e->hca, srqn) : NULL;
		struct sh_cq *cq;

		if (srqn && !srq)
			return false;
		if (srq) {
			sh_lock(dev, &srq->lock);
			e->srq = srq;
			if (!sh_srq_usable(dev, qp, srq, srqn))
				return false;
			if (sh_qp_is_xrc(qp))
				cqn = srq->cqn;
		}
		cq = cqn ? sh_cq_of(e->hca, cqn) : NULL;
		if (!cq)
			return false;
		sh_lock(dev, &cq->lock);
		e->cq = cq;
		e->srqn = srqn;
	}
	if (e->srq)
		return from_srq(s, dev, e->srq, e->srq->consumed + held_back(e), e->waiting ? e->head : e->srq->head);
	return from_rq(s, dev, qp, qp->rq_consumed + held_back(e));
}

/* To where a key was just found good for. */
SH_INLINE bool copy_to(struct sh_dev *dev, uint32_t ctx, const struct sh_seg *seg, const struct sh_payload *data)
{
	return (data->nseg == 1 && sh_copy_one(dev, seg, data->ctx, data->seg, data->len)) ||
	       !dev->ops->copy(dev->host, ctx, seg, 1, data->ctx, data->seg, data->nseg, data->len);
}

/* Place the payload where the WQE's list says. */
SH_OUTLINE bool scatter_list(const struct sink *s, struct sh_dev *dev, struct sh_hca *hca,
			     const struct sh_payload *data)
{
	struct sh_sge sge[MLX4_MAX_SGE];
	struct sh_seg seg[MLX4_MAX_SGE];
	uint64_t room = 0;
	uint32_t ctx, n;
	int nseg;

	for (n = 0; n < s->nsge && n < MLX4_MAX_SGE && room < data->len; n++) {
		sge[n].len = from_be32(s->data[n].byte_count);
		sge[n].key = from_be32(s->data[n].lkey);
		sge[n].addr = from_be64(s->data[n].addr);
		if (sge[n].key == MLX4_INVALID_LKEY)
			return false;
		room += sge[n].len;
	}
	if (room < data->len)
		return false;
	nseg = sh_mr_slice(dev, hca, s->pdn, SH_LOCAL_WRITE, sge, n, 0, data->len, seg, MLX4_MAX_SGE, &ctx);
	return nseg > 0 && !dev->ops->copy(dev->host, ctx, seg, nseg, data->ctx, data->seg, data->nseg, data->len);
}

/* The same; nearly always the first entry has room for all of it. */
SH_INLINE bool scatter(const struct sink *s, struct sh_dev *dev, struct sh_hca *hca, const struct sh_payload *data)
{
	struct sh_sge first;
	struct sh_seg seg;
	uint32_t ctx;

	if (!data->len)
		return true;
	first.key = from_be32(s->data->lkey);
	if (from_be32(s->data->byte_count) < data->len || first.key == MLX4_INVALID_LKEY)
		return scatter_list(s, dev, hca, data);
	first.addr = from_be64(s->data->addr);
	first.len = (uint32_t)data->len;
	return !sh_mr_locate(dev, hca, s->pdn, SH_LOCAL_WRITE, &first, &seg, &ctx) && copy_to(dev, ctx, &seg, data);
}

static inline struct sh_cqe received(const struct sh_express *e, const struct sink *s, const struct sh_packet *p,
				     uint8_t opcode)
{
	return (struct sh_cqe){
		.qpn = e->qp->qpn,
		.imm_be = p->flags & SH_PKT_IMM ? p->imm_be : 0,
		.srqn_srcqp = sh_qp_is_xrc(e->qp) ? e->srqn : 0,
		.byte_cnt = (uint32_t)p->payload.len,
		.wqe_index = s->index,
		.opcode = opcode,
		.solicited = !!(p->flags & SH_PKT_SE),
	};
}

SH_OUTLINE bool finish_unusual(struct sh_express *e, const struct sink *s, struct sh_dev *dev, const struct sh_packet *p,
			       uint8_t opcode)
{
	struct sh_cqe cqe = received(e, s, p, opcode);
	struct sh_txn_open t;

	sh_txn_begin(&t, dev, &e->qp->txn, &e->qp->rlock);
	sh_txn_covers(&t, &e->cq->lock);
	if (e->srq)
		sh_txn_covers(&t, &e->srq->lock);
	if (sh_cq_put(&t, e->hca, e->cq, &cqe))
		return false;
	step_on(&t, e, 1, s->next, sh_psn_add(p->psn, p->npackets));
	sh_txn_commit(&t);
	e->begun = false;
	return true;
}

/*
 * The step of the QP, its receive and its CQE: all or nothing. first: of those since the locks were taken. Nothing waits then,
 * and a message that comes alone is not slowed down by what is for chains.
 */
SH_INLINE bool finish_as(struct sh_express *e, const struct sink *s, struct sh_dev *dev, const struct sh_packet *p,
			 uint8_t opcode, bool first)
{
	uint32_t n = first ? 0 : held_back(e), entry = e->cq->producer + n;
	uint64_t *place = sh_cq_usual(dev, e->cq, entry), word[4];
	struct sh_cqe cqe = received(e, s, p, opcode);
	struct sh_txn_open t;

	if (n && place != e->waiting + 4) {
		commit_alone(e, dev);
		n = 0;
	}
	if (!place)
		return finish_unusual(e, s, dev, p, opcode);
	sh_cqe_words(word, &cqe, e->cq, entry);
	if (first) {
		sh_txn_begin(&t, dev, &e->qp->txn, &e->qp->rlock);
		sh_txn_joins(&t, &e->cq->lock);
		if (e->srq)
			sh_txn_joins(&t, &e->srq->lock);
		e->begun = true;
	} else {
		sh_txn_again(&t, dev, &e->qp->txn);
		/* To get a line that its reader waits for takes longer than all the rest: once for two CQEs. */
		if (sh_cqe_begins_line(dev, entry) && p->npackets == 1 && !cqe.solicited) {
			sh_txn_log_cqe(&t, 0, word);
			e->waiting = place;
			e->head = s->next;
			return true;
		}
	}
	step_on(&t, e, n + 1, s->next, sh_psn_add(p->psn, p->npackets));
	sh_txn_store_two(&t, &e->cq->producer, entry + 1, cqe.solicited ? entry + 1 : e->cq->solicited_producer);
	sh_txn_commit_cqe(&t, &e->cq->buf, place, word, n);
	if (!first)
		e->waiting = NULL;
	return true;
}

SH_OUTLINE bool finish_next(struct sh_express *e, const struct sink *s, struct sh_dev *dev, const struct sh_packet *p,
			    uint8_t opcode)
{
	/* sh_catch() has armed the first message of a chain. */
	sh_rearm();
	return finish_as(e, s, dev, p, opcode, false);
}

SH_INLINE bool finish(struct sh_express *e, const struct sink *s, struct sh_dev *dev, const struct sh_packet *p,
		      uint8_t opcode)
{
	return e->begun ? finish_next(e, s, dev, p, opcode) : finish_as(e, s, dev, p, opcode, true);
}

SH_INLINE bool express_send(struct sh_express *e, struct sh_dev *dev, const struct sh_packet *p)
{
	uint8_t opcode = p->flags & SH_PKT_IMM ? MLX4_CQE_RECV_SEND_IMM : MLX4_CQE_RECV_SEND;
	struct sink s;

	if (p->payload.len > SH_SHORT || !open_sink(e, &s, dev, p->srqn))
		return false;
	sh_cq_expect(dev, e->cq);
	if (!scatter(&s, dev, e->hca, &p->payload) || !finish(e, &s, dev, p, opcode))
		return false;
	/* Its owner has it in another processor's cache: a later message does not wait for it. */
	if (s.following)
		__builtin_prefetch(s.following);
	return true;
}

/* One word, so one store: no transaction. Nothing waits. */
static inline void next_psn(struct sh_qp *qp, const struct sh_packet *p, uint32_t npackets)
{
	__atomic_store_n((uint64_t *)&qp->msn, sh_two(sh_psn_add(qp->msn, 1), sh_psn_add(p->psn, npackets)),
			 __ATOMIC_RELAXED);
}

SH_OUTLINE bool express_write(struct sh_express *e, struct sh_dev *dev, const struct sh_packet *p)
{
	const struct sh_sge place = { p->va, p->dmalen, p->rkey };
	bool notify = p->flags & SH_PKT_IMM, done;
	uint32_t pdn, ctx = 0;
	struct sh_door *door;
	struct sh_seg seg;
	struct sink s;

	if (!(e->qp->access & SH_REMOTE_WRITE) || p->payload.len != place.len || sh_rkey_pd(e->hca, e->qp, p, &pdn))
		return false;
	if (place.len && sh_mr_locate(dev, e->hca, pdn, SH_REMOTE_WRITE, &place, &seg, &ctx))
		return false;
	if (notify && (place.len > SH_SHORT || !open_sink(e, &s, dev, p->srqn)))
		return false;
	/* The receiver may see it, and store there, before the commit: it must not be sent again then. */
	door = sh_pin();
	done = !place.len || copy_to(dev, ctx, &seg, &p->payload);
	if (done && notify)
		done = finish(e, &s, dev, p, MLX4_CQE_RECV_RDMA_WRITE_IMM);
	else if (done)
		next_psn(e->qp, p, p->npackets);
	sh_unpin(door);
	return done;
}

SH_OUTLINE bool express_read(struct sh_express *e, struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp,
			    struct sh_seg *resp_seg)
{
	uint32_t npackets = sh_packets(p->dmalen, sh_qp_mtu(e->qp)), pdn, ctx = 0;
	const struct sh_sge place = { p->va, p->dmalen, p->rkey };

	if (!(e->qp->access & SH_REMOTE_READ) || !e->qp->max_dest_rd_atomic || !p->dmalen ||
	    p->dmalen > UINT64_C(1) << 31 || sh_rkey_pd(e->hca, e->qp, p, &pdn) ||
	    sh_mr_locate(dev, e->hca, pdn, SH_REMOTE_READ, &place, resp_seg, &ctx))
		return false;
	next_psn(e->qp, p, npackets);
	sh_aeth(resp, p->psn, SH_AETH_ACK, e->qp->msn);
	SH_COUNT(e->hca, xmit_packets, npackets);
	SH_COUNT(e->hca, xmit_data, p->dmalen);
	resp->op = SH_PKT_READ_RESP;
	resp->flags = SH_PKT_FIRST | SH_PKT_LAST;
	resp->npackets = npackets;
	resp->mtu = sh_qp_mtu(e->qp);
	resp->payload = (struct sh_payload){ .ctx = ctx, .nseg = 1, .seg = resp_seg, .len = p->dmalen };
	return true;
}

void sh_express_end(struct sh_express *e, struct sh_dev *dev)
{
	if (!e->qp)
		return;
	close_sink(e, dev);
	sh_unlock(dev, &e->qp->rlock);
	e->qp = NULL;
}

SH_INLINE bool begin(struct sh_express *e, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		     const struct sh_packet *p)
{
	sh_lock(dev, &qp->rlock);
	*e = (struct sh_express){ .qp = qp, .hca = hca };
	return usual(dev, hca, qp, port, p);
}

SH_INLINE bool execute(struct sh_express *e, struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp,
		       struct sh_seg *resp_seg)
{
	bool done = false;

	if (!fits(e, p))
		return false;
	if (p->op != SH_PKT_SEND && e->waiting)
		commit_alone(e, dev);
	if (p->op == SH_PKT_SEND)
		done = express_send(e, dev, p);
	else if (p->op == SH_PKT_WRITE)
		done = express_write(e, dev, p);
	else if (p->op == SH_PKT_READ)
		done = express_read(e, dev, p, resp, resp_seg);
	if (!done)
		return false;
	e->qp->nak_sent = 0;
	e->qp->messages_received++;
	return true;
}

bool sh_respond_express(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
			const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg)
{
	struct sh_express e;
	bool done = begin(&e, dev, hca, qp, port, p) && execute(&e, dev, p, resp, resp_seg);

	if (done && p->op != SH_PKT_READ)
		sh_express_ack(resp, p, qp->msn);
	sh_express_end(&e, dev);
	return done;
}

/* The way through a fabric without faults. */
static bool find(struct sh_express *e, struct sh_dev *dev, struct sh_hca *src, const struct sh_packet *p)
{
	struct sh_hca *dst;
	uint32_t entry, port;
	struct sh_qp *qp;

	if (p->dlid >= SH_MAX_LIDS || !sh_port_active(src, p->src_port))
		return false;
	entry = __atomic_load_n(&dev->inst->lid_port[p->dlid], __ATOMIC_RELAXED);
	if (!entry)
		return false;
	entry--;
	port = entry & 0xff;
	dst = sh_hca_table(dev, entry >> 8, 0);
	if (!dst || !sh_port_active(dst, port))
		return false;
	qp = sh_qp_of(dst, p->dqpn);
	return qp && begin(e, dev, dst, qp, port, p);
}

bool sh_express(struct sh_express *e, struct sh_dev *dev, struct sh_hca *src, const struct sh_packet *p,
		struct sh_packet *resp, struct sh_seg *resp_seg)
{
	if (!__atomic_load_n(&dev->inst->faults.active, __ATOMIC_RELAXED) && (e->qp || find(e, dev, src, p)) &&
	    execute(e, dev, p, resp, resp_seg)) {
		e->qp->rcv_packets += p->npackets;
		e->qp->rcv_data += p->payload.len;
		return true;
	}
	sh_express_end(e, dev);
	return false;
}
