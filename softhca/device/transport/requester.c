// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The requester: sends the packets that WQEs make (requester_packets.h). For each QP, one thread of
 * the owning process at a time runs it (the engine). That thread holds the QP's requester lock
 * while it picks work, sends what is short, and takes in responses. While other packets are on
 * their way, it holds no lock. A thread that finds the engine busy sets a flag (again) and goes. A
 * thread that moves the QP to RESET or ERR advances gen, which sends the engine away.
 */
#include <errno.h>

#include "softhca/device/queues/cqe.h"
#include "softhca/device/queues/flush.h"
#include "softhca/device/queues/qp_halves.h"
#include "completer.h"
#include "express.h"
#include "fabric.h"
#include "requester.h"
#include "requester_packets.h"
#include "timer.h"
#include "wire.h"

#define HELD_MAX 32

enum step { STEP_SEND, STEP_AGAIN, STEP_STOP };

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
 * The requester waits for a timer. If none could be set, there is none to wait for: what it was to
 * do, this thread does, once in a run.
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
		__atomic_store_n(&qp->left, sh_two(r->express.hca->index, r->express.cq->cqn),
				 __ATOMIC_RELAXED);
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
 * The thread does not get the lock of the QP back. The helper thread goes on, with the answer that
 * has come: the peer may have moved its QP by the time that it could give it once more. False: this
 * thread has the lock, and goes on.
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
