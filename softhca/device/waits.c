// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reads which thread waits for what: waits.h. Owns nothing, takes no lock, writes nothing. Indices
 * found in device memory are checked where they are used, as everywhere.
 */
#include <string.h>

#include "softhca/device/queues/wqe.h"
#include "softhca/device/transport/wire.h"
#include "waits.h"

/* ---- threads ---- */

static struct sh_exec *slots(const struct sh_dev *dev)
{
	return sh_at(dev, SH_EXEC_OFF);
}

static bool thread_at(const struct sh_dev *dev, uint32_t slot, struct sh_thread *t)
{
	const struct sh_exec *e = slots(dev) + slot;

	*t = (struct sh_thread){.slot = slot};
	/* pairs with the release in sh_wait_begin() */
	t->waits = __atomic_load_n(&e->waits, __ATOMIC_ACQUIRE);
	t->tid = __atomic_load_n(&e->tid, __ATOMIC_RELAXED);
	t->proc = __atomic_load_n(&e->proc, __ATOMIC_RELAXED);
	t->inside = __atomic_load_n(&e->epoch, __ATOMIC_RELAXED);
	t->since = e->waits_since;
	t->a = e->waits_a;
	t->b = e->waits_b;
	return t->tid && t->proc < SH_MAX_PROC;
}

void sh_each_thread(const struct sh_dev *dev, void (*fn)(void *arg, const struct sh_thread *t),
		    void *arg)
{
	uint32_t used = __atomic_load_n(&dev->inst->exec_used, __ATOMIC_RELAXED);
	struct sh_thread t;

	for (uint32_t i = 0; i < used && i < SH_MAX_EXEC; i++)
		if (thread_at(dev, i, &t))
			fn(arg, &t);
}

/* ---- locks ---- */

static void held(const struct sh_dev *dev, const struct sh_lock *lock, struct sh_held *h)
{
	uint64_t owner = __atomic_load_n(&lock->owner, __ATOMIC_RELAXED),
		 slot = owner & SH_OWNER_SLOT;

	h->owner = owner;
	h->sleepers = owner & SH_OWNER_SLEEPERS;
	h->dead = owner;
	if (slot && slot <= SH_MAX_EXEC && thread_at(dev, (uint32_t)slot - 1, &h->holder))
		h->dead = slots(dev)[slot - 1].generation != owner >> SH_OWNER_GENERATION;
}

/* Is the offset in this table? Gives the index of its entry, and the rest within the entry. */
static bool in_table(uint64_t off, uint64_t table, uint64_t entry, uint64_t entries,
		     uint64_t *index, uint64_t *rest)
{
	if (off < table || (off - table) / entry >= entries)
		return false;
	*index = (off - table) / entry;
	*rest = (off - table) % entry;
	return true;
}

static void in_hca(const struct sh_dev *dev, uint64_t off, struct sh_held *h)
{
	uint64_t hca = (off - SH_HCA_OFF) / SH_HCA_SPAN, in = (off - SH_HCA_OFF) % SH_HCA_SPAN, i,
		 rest;

	h->hca = (uint32_t)hca;
	if (in_table(in, offsetof(struct sh_hca, atomic_lock), sizeof(struct sh_lock),
		     SH_ATOMIC_LOCKS, &i, &rest) &&
	    !rest) {
		h->number = (uint32_t)(i * sizeof(uint64_t));
		h->kind = SH_LOCK_ATOMICS;
	} else if (in == offsetof(struct sh_hca, mcg_lock)) {
		h->kind = SH_LOCK_MULTICAST;
	} else if (in == offsetof(struct sh_hca, port_lock)) {
		h->kind = SH_LOCK_PORTS;
	} else if (in_table(in, SH_HCA_QPS, sizeof(struct sh_qp), 1u << SH_LOG_QPS, &i, &rest)) {
		h->number = sh_qp_slot(dev, h->hca, (uint32_t)i)->qpn;
		h->kind = rest == offsetof(struct sh_qp, lock)	  ? SH_LOCK_REQUESTER
			  : rest == offsetof(struct sh_qp, rlock) ? SH_LOCK_RESPONDER
								  : SH_LOCK_UNKNOWN;
	} else if (in_table(in, SH_HCA_CQS, sizeof(struct sh_cq), 1u << SH_LOG_CQS, &i, &rest) &&
		   !rest) {
		h->number = (uint32_t)i;
		h->kind = SH_LOCK_CQ;
	} else if (in_table(in, SH_HCA_SRQS, sizeof(struct sh_srq), 1u << SH_LOG_SRQS, &i, &rest) &&
		   !rest) {
		h->number = (uint32_t)i;
		h->kind = SH_LOCK_SRQ;
	}
}
_Static_assert(!offsetof(struct sh_cq, lock) && !offsetof(struct sh_srq, lock) &&
		       !offsetof(struct sh_evq, lock),
	       "a lock begins its object");

void sh_lock_at(const struct sh_dev *dev, uint64_t off, struct sh_held *h)
{
	uint64_t i, rest;

	*h = (struct sh_held){.kind = SH_LOCK_UNKNOWN};
	if (off == offsetof(struct sh_instance, recovery)) {
		h->kind = SH_LOCK_RECOVERY;
	} else if (in_table(off, SH_EVQ_OFF, sizeof(struct sh_evq), SH_MAX_EVQ, &i, &rest) &&
		   !rest) {
		h->number = (uint32_t)i;
		h->kind = SH_LOCK_EVQ;
	} else if (off >= SH_HCA_OFF && (off - SH_HCA_OFF) / SH_HCA_SPAN < dev->hcas) {
		in_hca(dev, off, h);
	}
	if (h->kind != SH_LOCK_UNKNOWN)
		held(dev, sh_at(dev, off), h);
}

struct visit_held {
	const struct sh_dev *dev;
	void (*fn)(void *arg, const struct sh_held *h);
	void *arg;
};

static void visit(const struct visit_held *v, const struct sh_lock *lock)
{
	struct sh_held h;

	if (!__atomic_load_n(&lock->owner, __ATOMIC_RELAXED))
		return;
	sh_lock_at(v->dev, (uint64_t)((const char *)lock - (const char *)v->dev->inst), &h);
	v->fn(v->arg, &h);
}

/* Does a process have the HCA open? The tables of other HCAs contain nothing, and are large. */
static bool in_use(const struct sh_dev *dev, uint32_t hca)
{
	for (uint32_t i = 1; i < SH_MAX_CTX; i++)
		if (sh_ctx_live(dev, i) && sh_ctx(dev, i)->hca == hca)
			return true;
	return false;
}

void sh_each_held(const struct sh_dev *dev, void (*fn)(void *arg, const struct sh_held *h),
		  void *arg)
{
	const struct visit_held v = {dev, fn, arg};

	visit(&v, &dev->inst->recovery);
	for (uint32_t i = 1; i < SH_MAX_EVQ; i++)
		visit(&v, &sh_evq(dev, i)->lock);
	for (uint32_t n = 0; n < dev->hcas; n++) {
		struct sh_hca *hca = sh_hca(dev, n);
		const struct sh_cq *cq = sh_table_of(hca, SH_HCA_CQS);
		const struct sh_srq *srq = sh_table_of(hca, SH_HCA_SRQS);

		if (!in_use(dev, n))
			continue;
		for (uint32_t i = 0; i < SH_ATOMIC_LOCKS; i++)
			visit(&v, &hca->atomic_lock[i]);
		visit(&v, &hca->mcg_lock);
		visit(&v, &hca->port_lock);
		for (uint32_t i = 0; i < hca->qp_used && i < 1u << SH_LOG_QPS; i++) {
			visit(&v, &sh_qp_slot(dev, n, i)->lock);
			visit(&v, &sh_qp_slot(dev, n, i)->rlock);
		}
		for (uint32_t i = 0; i < 1u << SH_LOG_CQS; i++)
			visit(&v, &cq[i].lock);
		for (uint32_t i = 0; i < 1u << SH_LOG_SRQS; i++)
			visit(&v, &srq[i].lock);
	}
}

/* ---- what is under way ---- */

struct process {
	uint32_t inside; /* threads in device code */
	bool helper,
		dozes;	/* the helper thread sleeps; a thread dozes in poll_cq, not roused yet */
	uint64_t until; /* when the timer of the helper thread is due */
	uint64_t seen;
};

struct look {
	const struct sh_dev *dev;
	void (*fn)(void *arg, const struct sh_due *due);
	void *arg;
	uint32_t inside;  /* in the whole instance */
	uint32_t *unseen; /* queues that cannot be looked into */
	struct process process[SH_MAX_PROC];
};

static void note_thread(void *arg, const struct sh_thread *t)
{
	struct look *l = arg;
	struct process *p = &l->process[t->proc];
	const struct sh_proc *proc = sh_proc(l->dev, t->proc);

	p->inside += t->inside;
	l->inside += t->inside;
	if (t->waits == SH_WAITS_HELPER) {
		p->helper = true;
		p->until = t->a;
		p->seen = t->b;
	}
	if (t->waits == SH_WAITS_DOZE && proc->roused == (uint32_t)t->a)
		p->dozes = true;
}

/* Reads a big-endian word of a client's queue. False: it is not in device memory. */
static bool word(const struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, uint32_t *val)
{
	const uint32_t *at = mem->shm_off ? sh_umem_in_place(dev, mem, off, sizeof(*at)) : NULL;

	if (at)
		*val = from_be32((MLX4_FORCE __be32)__atomic_load_n(at, __ATOMIC_RELAXED));
	return at;
}

static uint32_t proc_of(const struct sh_dev *dev, uint32_t ctx)
{
	const struct sh_ctx *c = sh_ctx(dev, ctx);

	return ctx && sh_ctx_live(dev, ctx) && c->proc < SH_MAX_PROC ? c->proc : 0;
}

static struct sh_qp *peer_of(const struct sh_dev *dev, const struct sh_qp *qp, uint32_t *hca)
{
	uint32_t to = qp->path.dlid < SH_MAX_LIDS ? dev->inst->lid_port[qp->path.dlid] : 0;

	*hca = to ? (to - 1) >> 8 : 0;
	return to && qp->type != SH_QPT_UD ? sh_qp_get(dev, *hca, qp->dest_qpn) : NULL;
}

/* How many WQEs of the send queue the device has not begun. */
static uint32_t untaken(const struct sh_dev *dev, const struct sh_qp *qp)
{
	uint32_t n = 0, size = 1u << (qp->log_sq_size & 15), first;

	/* Before INIT the provider has not marked its queue yet. */
	if (!qp->sq_present || qp->state == SH_QPS_RESET)
		return 0;
	while (n < size && word(dev, &qp->buf, sh_wqe_off(qp, qp->sq_next + n), &first) &&
	       sh_wqe_owned(qp, qp->sq_next + n, to_be32(first)))
		n++;
	return n;
}

static uint32_t receives(const struct sh_dev *dev, const struct sh_qp *qp)
{
	uint32_t posted;

	return qp->rq_present && word(dev, &qp->rq_db, 0, &posted)
		       ? (uint16_t)(posted - qp->rq_consumed)
		       : 0;
}

static uint32_t srq_receives(const struct sh_dev *dev, const struct sh_srq *srq)
{
	uint32_t posted;

	return srq->live == SH_LIVE && word(dev, &srq->db, 0, &posted)
		       ? (uint16_t)(posted - srq->consumed)
		       : 0;
}

/* Has the helper thread been asked to look at this QP, or at more than its ring has room for? */
static bool asked_for(const struct sh_dev *dev, uint32_t proc, uint32_t hca, uint32_t qpn)
{
	const struct sh_proc *p = sh_proc(dev, proc);

	for (int i = 0; i < SH_ATTENTION_RING; i++)
		if (p->ring[i] == ((uint64_t)hca << 32 | qpn) + 1)
			return true;
	return p->ring_lost;
}

/* The wire's engine; 0: there is none. */
static uint32_t engine_of(const struct sh_dev *dev)
{
	uint32_t proc = __atomic_load_n(&dev->inst->wire.proc, __ATOMIC_ACQUIRE);

	return proc < SH_MAX_PROC ? proc : 0;
}

/* Whose threads carry on with the send queue: the wire's engine, if requests leave the instance. */
static uint32_t carrier_of(const struct look *l, const struct sh_qp *qp, uint32_t proc)
{
	if (qp->type == SH_QPT_UD || !sh_wire_leads(l->dev, qp->path.dlid))
		return proc;
	return engine_of(l->dev);
}

/* Is a thread in device code that may serve a send queue of this process? */
static bool served(const struct look *l, uint32_t proc)
{
	uint32_t engine = engine_of(l->dev);

	return l->process[proc].inside || (engine && l->process[engine].inside);
}

/*
 * The same, or has a thread been asked to? The engine of the wire takes over where requests leave.
 */
static bool seen_to(const struct look *l, uint32_t proc, uint32_t hca, uint32_t qpn)
{
	uint32_t engine = engine_of(l->dev);

	return served(l, proc) || asked_for(l->dev, proc, hca, qpn) ||
	       (engine && asked_for(l->dev, engine, hca, qpn));
}

static enum sh_lost timer_lost(const struct look *l, const struct sh_qp *qp, uint32_t proc)
{
	uint32_t carrier = carrier_of(l, qp, proc);
	const struct process *p = &l->process[carrier];

	/* Without the engine the card has failed, or has only begun. */
	if (qp->engine || !carrier || served(l, proc))
		return SH_LOST_NOT;
	if (!qp->deadline || !qp->timer_at || qp->timer_at > qp->deadline)
		return SH_LOST_TIMER;
	return p->helper && p->until > qp->timer_at ? SH_LOST_HELPER : SH_LOST_NOT;
}

static void send_side(const struct look *l, uint32_t hca, const struct sh_qp *qp, struct sh_due *d)
{
	uint32_t flight = qp->sq_next - qp->sq_una;
	const struct sh_qp *peer = peer_of(l->dev, qp, &d->peer_hca);
	const struct sh_srq *srq;
	uint32_t index;

	/* A long message is begun before its WQE counts as taken. */
	if (!flight && qp->next_psn != qp->ack_psn && sh_qp_is_reliable(qp))
		flight = 1;
	d->untaken = untaken(l->dev, qp);
	if (!flight && !d->untaken && !qp->engine)
		return;
	d->has_peer = peer;
	d->peer_qpn = qp->dest_qpn;
	d->peer_proc = peer ? proc_of(l->dev, peer->ctx) : 0;
	d->engine = qp->engine;
	d->until = qp->deadline;
	d->progress = (uint64_t)qp->sq_una << 32 ^ (uint64_t)qp->ack_psn << 8 ^ qp->state;
	d->count = flight;
	d->carrier = carrier_of(l, qp, d->proc);
	if (qp->engine && !served(l, d->proc))
		d->lost = SH_LOST_ENGINE;
	if (qp->state != SH_QPS_RTS && qp->state != SH_QPS_SQD) {
		d->kind = SH_DUE_STATE;
		d->state = qp->state;
		d->count = d->untaken + flight;
	} else if (qp->rnr_waiting) {
		d->put_off = (qp->rnr_waiting & SH_PUT_OFF) != 0;
		d->kind = d->put_off ? SH_DUE_ACK : SH_DUE_RNR;
		d->left = sh_rnr_left(qp);
		/* The requester has gone back, and will send it again. */
		if (!flight && d->untaken) {
			d->count = 1;
			d->untaken--;
		}
		if (!d->lost)
			d->lost = timer_lost(l, qp, d->proc);
		d->peer_has = peer ? receives(l->dev, peer) : 0;
		if (sh_qp_is_xrc(qp) &&
		    word(l->dev, &qp->buf,
			 sh_wqe_off(qp, qp->sq_una) + offsetof(struct mlx4_wqe_ctrl, flags),
			 &index))
			d->srqn = index >> MLX4_WQE_SRQN_SHIFT;
		else if (peer)
			d->srqn = peer->srqn;
		srq = d->srqn && peer ? sh_srq_get(l->dev, d->peer_hca, d->srqn) : NULL;
		if (srq) {
			d->peer_has = srq_receives(l->dev, srq);
			d->peer_proc = proc_of(l->dev, srq->ctx);
		}
	} else if (flight) {
		d->kind = SH_DUE_ACK;
		d->left = SH_RETRY_LEFT(qp->retry_left);
		d->forever = !qp->timeout;
		if (!d->lost && (!d->forever || qp->ack_psn == qp->next_psn))
			d->lost = timer_lost(l, qp, d->proc);
	} else {
		d->kind = SH_DUE_SEND;
		d->count = d->untaken;
		if (!d->lost && !qp->engine && d->carrier && qp->state == SH_QPS_RTS &&
		    !seen_to(l, d->proc, hca, qp->qpn))
			d->lost = SH_LOST_DOORBELL;
	}
	l->fn(l->arg, d);
}

static void receive_side(const struct look *l, const struct sh_qp *qp, struct sh_due *d)
{
	const struct sh_qp *peer = peer_of(l->dev, qp, &d->peer_hca);

	d->count = receives(l->dev, qp);
	if (!d->count ||
	    (qp->state != SH_QPS_RTR && qp->state != SH_QPS_RTS && qp->state != SH_QPS_SQD))
		return;
	d->kind = SH_DUE_RECEIVE;
	d->has_peer = peer;
	d->peer_qpn = qp->dest_qpn;
	d->peer_proc = peer ? proc_of(l->dev, peer->ctx) : 0;
	d->peer_has = peer && peer->ctx ? peer->sq_next - peer->sq_una + untaken(l->dev, peer) : 0;
	d->progress = qp->msn;
	l->fn(l->arg, d);
}

static void look_at_qp(const struct look *l, uint32_t hca, const struct sh_qp *qp)
{
	struct sh_due d = {.hca = hca, .number = qp->qpn, .proc = proc_of(l->dev, qp->ctx)};

	if (!qp->qpn || !d.proc || qp->silent)
		return;
	*l->unseen += (qp->sq_present && !qp->buf.shm_off) + (qp->rq_present && !qp->rq_db.shm_off);
	send_side(l, hca, qp, &d);
	d = (struct sh_due){.hca = hca, .number = qp->qpn, .proc = d.proc};
	receive_side(l, qp, &d);
}

static void look_at_srq(const struct look *l, uint32_t hca, const struct sh_srq *srq)
{
	struct sh_due d = {.kind = SH_DUE_RECEIVE,
			   .hca = hca,
			   .srqn = srq->srqn,
			   .proc = proc_of(l->dev, srq->ctx)};

	if (srq->live != SH_LIVE || !d.proc)
		return;
	*l->unseen += !srq->db.shm_off;
	d.count = srq_receives(l->dev, srq);
	d.progress = srq->consumed;
	if (d.count)
		l->fn(l->arg, &d);
}

static void look_at_cq(const struct look *l, uint32_t hca, const struct sh_cq *cq)
{
	struct sh_due d = {.hca = hca, .number = cq->cqn, .proc = proc_of(l->dev, cq->ctx)};
	uint32_t ci, arm, from, last, producer;

	if (cq->live != SH_LIVE || !d.proc)
		return;
	*l->unseen += !cq->db.shm_off;
	if (!word(l->dev, &cq->db, offsetof(struct mlx4_cq_dbrec, set_ci), &ci))
		return;
	/*
	 * Read last: a program that polls at this moment must not seem to have polled more than
	 * came.
	 */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	producer = __atomic_load_n(&cq->producer, __ATOMIC_RELAXED);
	d.progress = (uint64_t)producer << 32 | ci;
	d.count = (producer - ci) & MLX4_CQ_DB_CI_MASK;
	if (d.count > 1u << cq->log_size)
		d.count = 0;
	ci = producer - d.count;
	if (d.count) {
		d.kind = SH_DUE_POLL;
		l->fn(l->arg, &d);
	}
	if (word(l->dev, &cq->db, offsetof(struct mlx4_cq_dbrec, arm), &arm) &&
	    arm != cq->arm_acted) {
		d.kind = SH_DUE_ARM;
		d.lost = l->process[d.proc].inside ? SH_LOST_NOT : SH_LOST_DOORBELL;
		l->fn(l->arg, &d);
	}
	/* Entries that were polled or announced need no event. */
	from = (int32_t)(cq->last_notified - ci) > 0 ? cq->last_notified : ci;
	last = cq->armed == SH_ARM_ANY ? producer : cq->solicited_producer;
	if (cq->armed != SH_ARM_NONE && (int32_t)(last - from) > 0) {
		d.kind = SH_DUE_EVENT;
		d.count = last - from;
		d.lost = l->inside ? SH_LOST_NOT : SH_LOST_EVENT;
		l->fn(l->arg, &d);
	}
}

static void look_at_hca(const struct look *l, uint32_t n)
{
	struct sh_hca *hca = sh_hca(l->dev, n);
	const struct sh_cq *cq = sh_table_of(hca, SH_HCA_CQS);
	const struct sh_srq *srq = sh_table_of(hca, SH_HCA_SRQS);

	/* A card that has failed carries nothing on, as it should. */
	if (!in_use(l->dev, n) || hca->fatal)
		return;
	for (uint32_t i = 0; i < hca->qp_used && i < 1u << SH_LOG_QPS; i++)
		look_at_qp(l, n, sh_qp_slot(l->dev, n, i));
	for (uint32_t i = 0; i < 1u << SH_LOG_SRQS; i++)
		look_at_srq(l, n, &srq[i]);
	for (uint32_t i = 0; i < 1u << SH_LOG_CQS; i++)
		look_at_cq(l, n, &cq[i]);
}

static void look_at_process(const struct look *l, uint32_t n)
{
	const struct process *p = &l->process[n];
	const struct sh_proc *proc = sh_proc(l->dev, n);
	struct sh_due d = {.proc = n};

	if (!proc->pid)
		return;
	for (int i = 0; i < SH_ATTENTION_RING; i++)
		d.count += !!proc->ring[i];
	d.count += !!proc->ring_lost;
	d.progress = proc->attention;
	if (d.count) {
		d.kind = SH_DUE_LOOK;
		/* The helper thread would have served it before it went to sleep. */
		d.lost = p->helper && p->seen == proc->attention ? SH_LOST_ATTENTION : SH_LOST_NOT;
		l->fn(l->arg, &d);
	}
	if (p->helper && (uint32_t)p->seen != proc->attention) {
		d.kind = SH_DUE_ATTENTION;
		d.count = proc->attention - (uint32_t)p->seen;
		d.lost = SH_LOST_ATTENTION;
		l->fn(l->arg, &d);
	}
	if (!p->dozes)
		return;
	/*
	 * A sender has taken an announcement that is gone. It changes the word before it leaves
	 * device code.
	 */
	for (uint32_t i = 1; i < SH_MAX_CTX; i++)
		if (proc_of(l->dev, i) == n && !sh_ctx(l->dev, i)->dozing) {
			d.kind = SH_DUE_ROUSE;
			d.count = 1;
			d.progress = proc->roused;
			d.lost = l->inside ? SH_LOST_NOT : SH_LOST_ROUSE;
			l->fn(l->arg, &d);
			return;
		}
}

/* All of these are the daemon's to do. */
static void look_at_copies(const struct look *l)
{
	const struct sh_ferries *all = sh_at(l->dev, SH_FERRIES_OFF);

	for (uint32_t i = 0; i < SH_MAX_EXEC; i++) {
		const struct sh_ferry *f = &all->ferry[i];
		struct sh_due d = {.kind = SH_DUE_COPY,
				   .number = i,
				   .count = f->len,
				   .peer_proc = f->proc < SH_MAX_PROC ? f->proc : 0,
				   .progress = f->addr ^ f->asker};

		if (f->state == SH_FERRY_ASKED)
			l->fn(l->arg, &d);
	}
}

uint32_t sh_each_due(const struct sh_dev *dev, void (*fn)(void *arg, const struct sh_due *due),
		     void *arg)
{
	static struct look l;
	uint32_t unseen = 0;

	l = (struct look){.dev = dev, .fn = fn, .arg = arg, .unseen = &unseen};
	sh_each_thread(dev, note_thread, &l);
	for (uint32_t i = 0; i < dev->hcas; i++)
		look_at_hca(&l, i);
	for (uint32_t i = 1; i < SH_MAX_PROC; i++)
		look_at_process(&l, i);
	look_at_copies(&l);
	for (uint32_t i = 1; i < SH_MAX_EVQ; i++) {
		const struct sh_evq *q = sh_evq(dev, i);
		struct sh_due d = {.kind = SH_DUE_SPILL,
				   .number = i,
				   .count = q->spilled,
				   .proc = proc_of(dev, q->ctx)};

		if (q->generation && d.count && d.proc)
			fn(arg, &d);
	}
	return unseen;
}
