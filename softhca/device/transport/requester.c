// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The requester: turns WQEs into packets. For each QP, one thread of the owning process at a time
 * runs it (the engine). That thread holds the QP's requester lock while it picks work, sends what
 * is short, and takes in responses. While other packets are on their way, it holds no lock. A
 * thread that finds the engine busy sets a flag (again) and goes. A thread that moves the QP to
 * RESET or ERR advances gen, which sends the engine away.
 */
#include <errno.h>
#include <string.h>

#include "softhca/device/queues/cqe.h"
#include "softhca/device/queues/flush.h"
#include "softhca/device/queues/path.h"
#include "softhca/device/queues/qp_halves.h"
#include "completer.h"
#include "express.h"
#include "fabric.h"
#include "requester.h"
#include "timer.h"
#include "wire.h"

#define RUN_BYTES   (8u << 20) /* the longest run, so that a lock is not held for too long */
#define PSN_WINDOW  (1 << 22)  /* PSNs in flight; must stay far below half the circle */
#define MAX_MESSAGE (UINT64_C(1) << 30)
#define HELD_MAX    32

enum step { STEP_SEND, STEP_AGAIN, STEP_STOP };

struct run {
	struct sh_dev *dev;
	struct sh_hca *hca;
	struct sh_qp *qp;
	uint32_t token, gen;
	struct sh_packet p, resp;
	struct sh_seg seg[SH_MAX_SEGS], resp_seg[SH_MAX_SEGS];
	struct sh_wqe wqe; /* its index is valid while cached is */
	bool cached;
	unsigned int held; /* messages since the lock was last released */
	struct sh_express express;
	unsigned int unusual; /* RUN_LEFT, RUN_ON_WIRE, RUN_LATE */
	uint64_t waited;      /* what had waited in this turn before (wire.h) */
};

#define RUN_LEFT    1u /* the wire's engine goes on with this queue */
#define RUN_ON_WIRE 2u /* this is the wire's engine */
#define RUN_LATE    4u /* what a timer was to do has been done */

/* Commits what was held back. */
static inline void end_express(struct run *r)
{
	sh_express_end(&r->express, r->dev);
	sh_program_order();
	r->qp->has_floor = 0;
}

void sh_requester_rewind(struct sh_qp *qp)
{
	qp->sq_next = qp->sq_una;
	qp->next_wqe_psn = qp->una_psn;
	qp->next_psn = qp->ack_psn;
	qp->rd_out = 0;
}

static bool reliable(const struct run *r)
{
	return sh_qp_is_reliable(r->qp);
}

/* May the WQE at sq_next start now? If ordering or depth forbid it, that is no error. */
static bool may_start(const struct sh_qp *qp, const struct sh_wqe *wqe)
{
	uint32_t depth = qp->max_rd_atomic ? qp->max_rd_atomic : 1;

	if (wqe->fence && qp->rd_out)
		return false;
	if (wqe->strong && qp->sq_una != qp->sq_next)
		return false;
	if (sh_wqe_is_fetch(wqe) && qp->rd_out >= depth)
		return false;
	return qp->sq_una == qp->sq_next ||
	       sh_psn_diff(qp->next_psn, qp->ack_psn) + (int32_t)sh_wqe_packets(qp, wqe) <
		       PSN_WINDOW;
}

/* Is the address of a datagram one of the QP's PD, for the QP's port? Other services have none. */
static inline bool address_fits(const struct sh_qp *qp, const struct sh_wqe *wqe)
{
	return qp->type != SH_QPT_UD || (wqe->av_pd == qp->pdn && wqe->av_port == qp->port);
}

/* What is wrong with a WQE, in its form (wqe->bad) or otherwise: a syndrome, 0 = nothing is. */
static uint8_t check_wqe(const struct sh_qp *qp, const struct sh_wqe *wqe)
{
	if (wqe->bad)
		return wqe->bad;
	if (!address_fits(qp, wqe))
		return MLX4_SYNDROME_LOC_QP_OP;
	if (wqe->is_inline && sh_wqe_is_fetch(wqe))
		return MLX4_SYNDROME_LOC_QP_OP;
	if (wqe->length > (qp->type == SH_QPT_UD ? sh_qp_mtu(qp) : MAX_MESSAGE))
		return MLX4_SYNDROME_LOC_LEN;
	if (sh_wqe_is_atomic(wqe) && wqe->length != sizeof(uint64_t))
		return MLX4_SYNDROME_LOC_LEN;
	return 0;
}

/* Locates the pieces of a list. Returns what locate() returns. */
SH_OUTLINE uint8_t locate_list(struct run *r, uint64_t off, uint64_t len, uint32_t access,
			       struct sh_payload *out)
{
	const struct sh_wqe *wqe = &r->wqe;
	int n;

	if (wqe->is_inline) {
		struct sh_seg all[SH_MAX_SEGS];
		struct sh_payload data = {.nseg = wqe->nsge, .seg = all, .len = wqe->length};

		for (unsigned int i = 0; i < wqe->nsge; i++) {
			all[i].addr = wqe->sge[i].addr;
			all[i].len = wqe->sge[i].len;
		}
		sh_payload_slice(&data, off, len, out, r->seg);
		return 0;
	}
	n = sh_mr_slice(r->dev, r->hca, r->qp->pdn, access, wqe->sge, wqe->nsge, off, len, r->seg,
			SH_MAX_SEGS, &out->ctx);
	if (n < 0)
		return MLX4_SYNDROME_LOC_PROT;
	out->nseg = n;
	return 0;
}

/* Finds where the bytes [off, off+len) of the WQE's data are. Returns a syndrome, 0 = found. */
static inline uint8_t locate(struct run *r, uint64_t off, uint64_t len, uint32_t access,
			     struct sh_payload *out)
{
	const struct sh_wqe *wqe = &r->wqe;

	out->ctx = 0;
	out->nseg = 0;
	out->seg = r->seg;
	out->len = len;
	if (!len)
		return 0;
	if (wqe->nsge != 1 || off || len != wqe->sge[0].len)
		return locate_list(r, off, len, access, out);
	out->nseg = 1;
	if (wqe->is_inline)
		r->seg[0] = (struct sh_seg){wqe->sge[0].addr, len};
	else if (sh_mr_locate(r->dev, r->hca, r->qp->pdn, access, &wqe->sge[0], &r->seg[0],
			      &out->ctx))
		return MLX4_SYNDROME_LOC_PROT;
	return 0;
}

SH_OUTLINE void address_datagram(struct run *r, const struct sh_port *port)
{
	struct sh_packet *p = &r->p;
	const struct sh_wqe *wqe = &r->wqe;

	p->slid = port->lid | wqe->path_bits;
	p->dlid = wqe->dlid;
	p->sl = wqe->sl;
	p->dqpn = wqe->dqpn;
	p->qkey = wqe->qkey & 0x80000000u ? r->qp->qkey : wqe->qkey;
	if (wqe->grh) {
		p->flags |= SH_PKT_GRH;
		memcpy(p->grh.sgid, port->gid[wqe->gid_index % SH_GIDS], 16);
		memcpy(p->grh.dgid, wqe->dgid, 16);
		if (p->dlid < SH_LID_GROUPS)
			p->dlid = sh_wire_dlid(r->dev, p->dlid, wqe->dgid);
		p->grh.flow_label = wqe->flow_label;
		p->grh.traffic_class = wqe->traffic_class;
		p->grh.hop_limit = wqe->hop_limit;
	}
}

static inline void address(struct run *r)
{
	struct sh_packet *p = &r->p;
	const struct sh_qp *qp = r->qp;
	const struct sh_port *port = &r->hca->port[(qp->port - 1u) % SH_MAX_PORTS];

	p->src_hca = r->hca->index;
	p->srcqp = qp->qpn;
	p->src_gen = qp->gen;
	p->src_port = qp->port;
	p->pkey = sh_qp_pkey(r->hca, qp);
	if (qp->type == SH_QPT_UD) {
		address_datagram(r, port);
		return;
	}
	p->slid = port->lid | qp->path.src_path_bits;
	p->dlid = qp->path.dlid;
	p->sl = qp->path.sl;
	p->dqpn = qp->dest_qpn;
	p->srqn = r->wqe.srqn;
}

static uint8_t service_of(const struct sh_qp *qp)
{
	switch (qp->type) {
	case SH_QPT_RC:
		return SH_SVC_RC;
	case SH_QPT_UC:
		return SH_SVC_UC;
	case SH_QPT_UD:
		return SH_SVC_UD;
	default:
		return SH_SVC_XRC;
	}
}

static uint8_t packet_op(uint8_t opcode)
{
	switch (opcode) {
	case MLX4_OPCODE_RDMA_WRITE:
	case MLX4_OPCODE_RDMA_WRITE_IMM:
		return SH_PKT_WRITE;
	case MLX4_OPCODE_RDMA_READ:
		return SH_PKT_READ;
	case MLX4_OPCODE_ATOMIC_CS:
		return SH_PKT_CS;
	case MLX4_OPCODE_ATOMIC_FA:
		return SH_PKT_FA;
	default:
		return SH_PKT_SEND;
	}
}

/* Is the WQE in order, and one packet of a SEND or WRITE? Nearly all are. */
static inline bool is_one_packet(const struct sh_qp *qp, const struct sh_wqe *wqe)
{
	const uint32_t opcodes = 1u << MLX4_OPCODE_SEND | 1u << MLX4_OPCODE_SEND_IMM |
				 1u << MLX4_OPCODE_RDMA_WRITE | 1u << MLX4_OPCODE_RDMA_WRITE_IMM;

	return !wqe->bad && opcodes >> wqe->opcode & 1 && wqe->length <= sh_qp_mtu(qp) &&
	       address_fits(qp, wqe);
}

/* Does what this thread builds go over the wire, whose other end places it? */
static bool leaves_now(const struct run *r)
{
	return r->dev->wire && sh_wire_leads(r->dev, r->qp->path.dlid);
}

/*
 * Makes the next packets of the WQE at sq_next one run in r->p, and sets the state as if they were
 * sent. A syndrome, 0 = ok. one: the caller knows by is_one_packet() that it is one packet, which
 * makes this a third of the work.
 */
SH_INLINE uint8_t build_as(struct run *r, bool one)
{
	struct sh_qp *qp = r->qp;
	const struct sh_wqe *wqe = &r->wqe;
	struct sh_packet *p = &r->p;
	uint32_t mtu = sh_qp_mtu(qp), npkt, first, n;
	bool last = true, fetch = !one && sh_wqe_is_fetch(wqe);
	uint64_t off, left, len;
	uint8_t bad;

	sh_packet_init(p);
	p->op = packet_op(wqe->opcode);
	p->service = service_of(qp);
	p->mtu = mtu;
	p->psn = qp->next_psn;
	npkt = one ? 1 : sh_wqe_packets(qp, wqe);
	first = one ? 0 : sh_psn_diff(qp->next_psn, qp->next_wqe_psn);
	off = (uint64_t)first * mtu;
	left = wqe->length > off ? wqe->length - off : 0;
	n = npkt - first;
	len = left;
	if (fetch) {
		bad = locate(r, off, len, SH_LOCAL_WRITE, &p->payload);
		if (bad)
			return bad;
		memset(&p->payload, 0, sizeof(p->payload));
		p->npackets = 1;
		p->flags = SH_PKT_FIRST | SH_PKT_LAST | SH_PKT_ACKREQ;
		p->dmalen = left;
		p->swap_add = wqe->swap_add;
		p->compare = wqe->compare;
	} else {
		if (!one && left > RUN_BYTES) {
			n = RUN_BYTES / mtu;
			len = RUN_BYTES;
			last = false;
		} else if (!one && n > 1 && left > SH_SHORT && p->op == SH_PKT_WRITE &&
			   sh_qp_is_reliable(qp) && !leaves_now(r)) {
			/*
			 * The last packet travels alone: if the receiver's memory is not device
			 * memory, this thread copies it pinned (life.h).
			 */
			n--;
			len = (uint64_t)n * mtu;
			last = false;
		}
		bad = locate(r, off, len, 0, &p->payload);
		if (bad)
			return bad;
		p->npackets = n;
		p->dmalen = wqe->length;
		p->flags = SH_PKT_ACKREQ | (off ? 0 : SH_PKT_FIRST);
		if (last) {
			p->flags |= SH_PKT_LAST;
			if (wqe->opcode == MLX4_OPCODE_SEND_IMM ||
			    wqe->opcode == MLX4_OPCODE_RDMA_WRITE_IMM) {
				p->flags |= SH_PKT_IMM;
				p->imm_be = wqe->imm_be;
			}
			if (wqe->solicited && wqe->opcode != MLX4_OPCODE_RDMA_WRITE)
				p->flags |= SH_PKT_SE;
		}
	}
	p->va = wqe->raddr + (p->op == SH_PKT_READ ? off : 0);
	p->rkey = wqe->rkey;
	address(r);

	if (fetch)
		qp->rd_out++;
	if ((int32_t)(qp->sq_begun - qp->sq_next) <= 0)
		qp->sq_begun = qp->sq_next + 1;
	qp->next_psn = sh_psn_add(qp->next_psn, n);
	if (sh_psn_diff(qp->next_psn, qp->sent_psn) > 0)
		qp->sent_psn = qp->next_psn;
	if (last) {
		qp->sq_next++;
		qp->next_wqe_psn = qp->next_psn;
	}
	return 0;
}

SH_OUTLINE uint8_t build(struct run *r)
{
	sh_rearm();
	return build_as(r, false);
}

static uint8_t vendor_of(uint8_t syndrome)
{
	switch (syndrome) {
	case MLX4_SYNDROME_LOC_LEN:
		return SH_VENDOR_LOC_LEN;
	case MLX4_SYNDROME_LOC_QP_OP:
		return SH_VENDOR_LOC_QP_OP;
	default:
		return SH_VENDOR_NONE;
	}
}

/*
 * A WQE that cannot be sent fails when it is the oldest. Until then it waits for those before it.
 */
static enum step failed(struct run *r, uint8_t syndrome)
{
	end_express(r);
	if (r->qp->sq_una == r->qp->sq_next)
		sh_fail_oldest(r->dev, r->hca, r->qp, syndrome, vendor_of(syndrome));
	return STEP_STOP;
}

/* The memory of the queue is gone, or the context of the QP has been overwritten. */
SH_OUTLINE enum step broken(struct run *r)
{
	struct sh_qp *qp = r->qp;

	end_express(r);
	if (sh_lock_within(r->dev, &qp->rlock, SH_WAIT_BRIEFLY)) {
		sh_put_off(r->dev, r->hca, qp);
		return STEP_STOP;
	}
	sh_qp_error(r->dev, r->hca, qp, SH_QPE_FATAL, MLX4_SYNDROME_WR_FLUSH, SH_VENDOR_FLUSH_RQ);
	sh_unlock(r->dev, &qp->rlock);
	return STEP_STOP;
}

/*
 * The requester waits for a timer. If none could be set, there is none to wait for: what it was to do,
 * this thread does, once in a run.
 */
SH_OUTLINE enum step waits(struct run *r)
{
	if (r->qp->deadline || r->unusual & RUN_LATE)
		return STEP_STOP;
	r->unusual |= RUN_LATE;
	end_express(r);
	sh_timer_missed(r->dev, r->hca, r->qp);
	return r->qp->rnr_waiting ? STEP_STOP : STEP_AGAIN;
}

static enum step step(struct run *r)
{
	struct sh_qp *qp = r->qp;
	bool only_nops = false;
	uint8_t bad;
	int err;

	if (qp->state == SH_QPS_SQD) {
		if (qp->sq_next == qp->sq_begun)
			return STEP_STOP;
	} else if (qp->state != SH_QPS_RTS) {
		return STEP_STOP;
	}
	if (qp->rnr_waiting)
		return waits(r);
	if (!sh_ctx_live(r->dev, qp->ctx))
		return STEP_STOP;
	/* Of what was sent only NOPs are left: they complete on a second look. */
	if (qp->sq_una != qp->sq_next && qp->ack_psn == qp->next_psn) {
		sh_requester_rewind(qp);
		only_nops = true;
	}
	if (!r->cached || r->wqe.index != qp->sq_next) {
		r->cached = false;
		err = sh_wqe_fetch(r->dev, qp, qp->sq_next, &r->wqe);
		if (err == -ENOENT) {
			/* All that was posted has left once, or was a NOP. */
			if (r->unusual & RUN_ON_WIRE)
				qp->wire_left &= (uint8_t)~SH_WIRE_UNSENT;
			return STEP_STOP;
		}
		if (err)
			return broken(r);
		r->cached = true;
	}
	/*
	 * The counters have been overwritten. Without this end the thread would stay here for ever.
	 */
	if (__builtin_expect(only_nops && r->wqe.opcode != MLX4_OPCODE_NOP, 0)) {
		r->dev->ops->complain(r->dev->host, "a damaged QP", r->hca->index, qp->qpn);
		return broken(r);
	}
	if (qp->next_psn == qp->next_wqe_psn) {
		if (!may_start(qp, &r->wqe))
			return STEP_STOP;
		if (is_one_packet(qp, &r->wqe)) {
			bad = build_as(r, true);
			return bad ? failed(r, bad) : STEP_SEND;
		}
	}
	bad = check_wqe(qp, &r->wqe);
	if (bad)
		return failed(r, bad);
	if (r->wqe.opcode == MLX4_OPCODE_NOP) {
		qp->sq_next++;
		if ((int32_t)(qp->sq_begun - qp->sq_next) < 0)
			qp->sq_begun = qp->sq_next;
		end_express(r);
		if (qp->sq_una + 1 == qp->sq_next)
			sh_complete_wqe(r->dev, r->hca, qp, &r->wqe);
		return STEP_AGAIN;
	}
	bad = build(r);
	return bad ? failed(r, bad) : STEP_SEND;
}

/*
 * A packet was delivered (or lost), and what came back is in r->resp. The QP is locked again, and
 * this thread still runs its engine.
 */
static void sent(struct run *r)
{
	struct sh_qp *qp = r->qp;
	struct sh_wqe *cache = r->cached ? &r->wqe : NULL;

	if (r->resp.op != SH_PKT_NONE || (r->resp.syndrome == SH_BUSY && reliable(r))) {
		sh_complete(r->dev, r->hca, qp, &r->resp, cache);
		return;
	}
	/* It may have been refused before, and sent again. */
	if (reliable(r))
		sh_take_left(r->dev, r->hca, qp);
	else if (r->p.flags & SH_PKT_LAST)
		sh_complete_wqe(r->dev, r->hca, qp, &r->wqe);
}

static inline bool deliver(struct run *r)
{
	return reliable(r) ? sh_express(&r->express, r->dev, r->hca, &r->p, &r->resp, r->resp_seg)
			   : sh_express_lossy(&r->express, r->dev, r->hca, r->qp, &r->p);
}

/* The QPs count only payload, of which most has no pads. */
SH_OUTLINE void count_pads(const struct run *r)
{
	SH_COUNT_PORT(r->hca, r->qp->port, xmit_pads, SH_PADS(r->p.payload.len));
	SH_COUNT_PORT(r->express.hca, r->express.qp->port, rcv_pads, SH_PADS(r->p.payload.len));
}

/*
 * Most messages are short and unexceptional. For these the thread keeps the requester lock, which
 * the responder at the other end does not need, and keeps the locks there for the next message. It
 * releases them now and then for threads that want them.
 */
static bool express(struct run *r)
{
	struct sh_qp *qp = r->qp;

	if (r->p.payload.len > SH_SHORT || ++r->held > HELD_MAX || !deliver(r)) {
		end_express(r);
		r->held = 0;
		return false;
	}
	/*
	 * The receiver's QP may commit this message only with the next one. An unreliable service
	 * never goes back to a message: if the thread is thrown now, the message is lost.
	 */
	if (r->express.waiting && reliable(r)) {
		qp->floor = sh_two(qp->sq_una, qp->una_psn);
		sh_program_order();
		qp->has_floor = 1;
		sh_program_order();
	}
	if (r->express.cq) {
		qp->told_hca = r->express.hca->index;
		qp->told_cqn = r->express.cq->cqn;
	}
	qp->xmit_packets += r->p.npackets;
	qp->xmit_data += r->p.payload.len;
	if (SH_PADS(r->p.payload.len))
		count_pads(r);
	if (!sh_complete_quiet(qp, &r->wqe)) {
		/* A message of UC or UD that was taken is like one that was acknowledged. */
		if (r->p.op != SH_PKT_READ)
			sh_ack(&r->resp, &r->p, 0);
		end_express(r);
		sent(r);
	}
	return true;
}

/*
 * How long the requester waits for an answer. The rules allow up to four times the time-out that
 * the QP was given. A QP on the wire takes all of it, because at the other end a program has to get
 * a processor. But it probes early (timer.c), once. After a needless probe, what is on its way goes
 * once more.
 */
static uint64_t patience(const struct run *r)
{
	const struct sh_qp *qp = r->qp;
	uint64_t ns = sh_ack_ns(qp->timeout), probe;

	if (!r->dev->wire)
		return ns;
	ns *= 4;
	if (qp->probed == qp->ack_psn + 1)
		return ns;
	probe = sh_wire_pace(r->dev, qp);
	return ns < probe ? ns : probe;
}

static void await_answer(struct run *r, uint64_t now)
{
	if (r->dev->wire)
		sh_wire_pace_begin(r->dev, r->hca, r->qp, now);
	sh_timer_arm(r->dev, r->hca, r->qp, now + patience(r));
}

/* The engine stops. Makes sure that a timer wakes it if an answer does not come. */
SH_INLINE void settle(struct run *r)
{
	struct sh_qp *qp = r->qp;

	if (reliable(r) && !qp->rnr_waiting) {
		if (qp->ack_psn == qp->next_psn && qp->sq_una == qp->sq_next)
			qp->deadline = 0;
		else if (!qp->deadline && qp->timeout)
			await_answer(r, r->dev->ops->now(r->dev->host));
	}
	if (qp->state == SH_QPS_SQD && !qp->drained && qp->sq_una == qp->sq_begun) {
		/* Pinned: a thread that was thrown in between would raise the event again. */
		struct sh_door *door = sh_pin();

		if (!qp->sqd_notify) {
			qp->drained = 1;
		} else if (!sh_lock_within(r->dev, &qp->rlock, SH_WAIT_BRIEFLY)) {
			sh_qp_event(r->dev, r->hca, qp, SH_QPE_SQ_DRAINED);
			sh_unlock(r->dev, &qp->rlock);
			qp->drained = 1;
		} else {
			sh_timer_arm(r->dev, r->hca, qp,
				     r->dev->ops->now(r->dev->host) + SH_PUT_OFF_NS);
		}
		sh_unpin(door);
	}
}

/*
 * What was built last goes to another instance. Does this thread send it now? If not, the run has
 * been taken back.
 */
SH_OUTLINE bool admitted(struct run *r)
{
	switch (sh_wire_admit(r->dev, r->hca, r->qp, &r->wqe, &r->p)) {
	case SH_WIRE_SEND:
		return true;
	case SH_WIRE_TOO_LONG:
		failed(r, MLX4_SYNDROME_LOC_LEN);
		return false;
	default:
		if (!r->dev->wire)
			r->unusual |= RUN_LEFT;
		return false;
	}
}

/* Does this thread send what was built last? It always does what stays in the instance. */
static inline bool stays(struct run *r)
{
	return !sh_wire_leads(r->dev, r->p.dlid) || admitted(r);
}

SH_OUTLINE void begin_on_wire(struct run *r)
{
	r->qp->wire_engine = r->token;
	r->unusual = RUN_ON_WIRE;
	r->waited = sh_wire_waits(r->dev);
}

/*
 * This thread stops running the engine, unless another one has sent it away. In the wire's engine,
 * what has been sent may wait until the thread's turn ends. Until then the thread keeps the QP: no
 * other one sends what is to follow before it has left.
 */
SH_OUTLINE void end_unusually(struct run *r)
{
	struct sh_qp *qp = r->qp;

	if (!(r->unusual & RUN_LEFT) && qp->gen == r->gen)
		settle(r);
	if (qp->engine != r->token)
		return;
	if (!(r->unusual & RUN_ON_WIRE) || !sh_wire_keep(r->dev, r->hca, qp, r->token, r->waited))
		qp->engine = 0;
}

/*
 * The thread does not get the lock of the QP back. The helper thread goes on, with the answer that has
 * come: the peer may have moved its QP by the time that it could give it once more. False: this thread
 * has the lock, and goes on.
 */
SH_OUTLINE bool leaves(struct run *r)
{
	const struct sh_packet *resp = &r->resp;
	struct sh_qp *qp = r->qp;
	uint64_t left = 0;

	/* A NAK is left already (sh_refuse()). */
	if (reliable(r) && resp->op == SH_PKT_ACK && !(resp->syndrome & SH_AETH_KIND))
		left = sh_left(r->gen, resp->psn, resp->syndrome);
	else if (!reliable(r) && resp->op == SH_PKT_SRC_FAULT)
		left = sh_left(r->gen, 0, SH_LEFT_NO_DATA);
	if (left && __atomic_load_n(&qp->gen, __ATOMIC_RELAXED) == r->gen)
		__atomic_store_n(&qp->left, left, __ATOMIC_RELAXED);
	if (sh_requester_leave(r->dev, qp, r->token)) {
		sh_self.engine.qp = NULL;
		return true;
	}
	if (left)
		__atomic_store_n(&qp->left, 0, __ATOMIC_RELAXED);
	return false;
}

/*
 * Runs the engine. It has a frame of its own, because it needs kilobytes and sh_requester_run()
 * often returns without it.
 */
static __attribute__((noinline)) void run_engine(struct sh_dev *dev, struct sh_hca *hca,
						 struct sh_qp *qp)
{
	const struct sh_cq *told = qp->told_cqn ? sh_cq_get(dev, qp->told_hca, qp->told_cqn) : NULL;
	struct run r;
	enum step s;

	if (told)
		sh_cq_expect(dev, told);
	r.dev = dev;
	r.hca = hca;
	r.qp = qp;
	r.cached = false;
	r.held = 0;
	r.unusual = 0;
	r.express.qp = NULL;
	if (!++qp->engine_seq)
		qp->engine_seq = 1;
	r.token = qp->engine_seq;
	r.gen = qp->gen;
	/*
	 * Before the QP says that it has an engine: a thread that is thrown must know which QP it
	 * ran.
	 */
	sh_self.engine.qp = qp;
	sh_self.engine.token = r.token;
	/*
	 * Before the token is there: by it a process that outlives the wire's engine knows its QPs
	 * (wire_watch.c).
	 */
	if (__builtin_expect(dev->wire != NULL, 0))
		begin_on_wire(&r);
	sh_program_order();
	qp->engine = r.token;
	do {
		qp->again = 0;
		while ((s = step(&r)) != STEP_STOP) {
			if (s == STEP_SEND && !express(&r)) {
				if (!stays(&r))
					break;
				r.p.retries = qp->retries;
				sh_rearm();
				sh_unlock(dev, &qp->lock);
				sh_errands(dev);
				sh_transmit(dev, &r.p, &r.resp, r.resp_seg);
				if (sh_lock_within(dev, &qp->lock, SH_WAIT_BRIEFLY) && leaves(&r))
					return;
				if (qp->gen == r.gen)
					sent(&r);
			}
			if (qp->gen != r.gen)
				break;
		}
	} while (qp->gen == r.gen && qp->again);
	end_express(&r);
	if (__builtin_expect(r.unusual, 0)) {
		end_unusually(&r);
	} else {
		if (qp->gen == r.gen)
			settle(&r);
		if (qp->engine == r.token)
			qp->engine = 0;
	}
	sh_unlock(dev, &qp->lock);
}

/* The engine runs, or this thread of the wire's engine keeps the QP. */
SH_OUTLINE void run_again(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	if (sh_wire_keeps(dev, qp)) {
		run_engine(dev, hca, qp);
		return;
	}
	qp->again = 1;
	sh_unlock(dev, &qp->lock);
}

void sh_requester_run(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	const struct sh_ctx *ctx = sh_ctx(dev, qp->ctx);

	if (!qp->sq_present || !ctx || (ctx->proc != dev->proc && !dev->wire)) {
		sh_unlock(dev, &qp->lock);
		return;
	}
	if (qp->engine)
		run_again(dev, hca, qp);
	else
		run_engine(dev, hca, qp);
}

void sh_response(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint32_t gen,
		 const struct sh_packet *resp)
{
	struct sh_hca *h = sh_hca(dev, hca);
	struct sh_qp *qp = sh_qp_get(dev, hca, qpn);

	if (!h || !qp)
		return;
	/* Else it is lost, and the requester asks again. */
	if (sh_lock_within(dev, &qp->lock, SH_WAIT_PATIENTLY))
		return;
	if (qp->qpn != qpn || qp->gen != gen) {
		sh_unlock(dev, &qp->lock);
		return;
	}
	sh_complete(dev, h, qp, resp, NULL);
	if (dev->wire)
		sh_wire_pace_end(dev, h, qp);
	sh_requester_run(dev, h, qp);
}
