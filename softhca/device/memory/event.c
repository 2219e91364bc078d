// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Event queues: counting and writing the records of completion and asynchronous events. The lock of
 * the queue that an object's records go to protects the object's counter. A thread that raises an
 * event never waits for a reader: it spills what does not fit into the pipe, and the daemon moves
 * that later.
 */
#include <errno.h>
#include <string.h>

#include "event.h"
#include "exec.h"
#include "instance.h"
#include "tables.h"

#define RETRY_NS UINT64_C(20000000)
/*
 * A log's `raised` is 1 more than the place of the record that was raised last: its event's number
 * times this, and which record of that event it is. An event of an XRC receive QP with more
 * registrations tells those behind again after a death.
 */
#define RECORDS	     16000
#define XRC_QP_EVENT 0x80000000u
_Static_assert((SH_TXN_ASYNC + 1) * RECORDS <= UINT16_MAX, "a log's `raised` counts all records");

enum { EV_CQ_ERR = 0, EV_SRQ_ERR = 14, EV_SRQ_LIMIT = 15 };

/* Records as the kernel writes them. A completion record is only the first word. */
struct record {
	uint64_t element;
	uint32_t type;
	uint32_t reserved;
};
_Static_assert(sizeof(struct record) == 16, "asynchronous event record");

/*
 * The object that a record is about: its counter (NULL: the record is not counted), and the word
 * that says whether the object still exists (NULL: it does).
 */
struct subject {
	uint32_t *counter;
	const uint32_t *live;
	uint32_t expect; /* what *live must be; 0: anything but 0 */
};

/* Which record of a transaction it is. log NULL: it is of none. */
struct origin {
	struct sh_txn *log;
	uint32_t place;
};

static bool is_live(const struct subject *s)
{
	uint32_t word;

	if (!s->live)
		return true;
	word = __atomic_load_n(s->live, __ATOMIC_RELAXED);
	return s->expect ? word == s->expect : word != 0;
}

static void mark_spilled(struct sh_dev *dev, uint32_t evq)
{
	__atomic_fetch_or(&dev->inst->evq_spilled[evq / 64], UINT64_C(1) << evq % 64,
			  __ATOMIC_SEQ_CST);
}

static void wake_daemon(struct sh_dev *dev)
{
	__atomic_fetch_add(&sh_proc(dev, 0)->attention, 1, __ATOMIC_SEQ_CST);
	dev->ops->wake(dev->host, 0);
}

/* ---- the lock ---- */

/*
 * The record in flight was raised. Its transaction is still the log's: a recovery that raises the
 * record needs this queue's lock.
 */
static void note_flight(struct sh_dev *dev, const struct sh_evq *q)
{
	uint64_t off = q->flight_log;
	struct sh_txn *log;

	if (off % 8 || off < SH_HCA_OFF || off > dev->pool_off - sizeof(*log))
		return;
	log = sh_at(dev, off);
	if (__atomic_load_n(&log->commit, __ATOMIC_ACQUIRE) &&
	    __atomic_load_n(&log->seq, __ATOMIC_RELAXED) == q->flight_seq)
		__atomic_store_n(&log->raised, (uint16_t)q->flight_raised, __ATOMIC_RELAXED);
}

/*
 * Did the pipe, or the spill, get the record in flight? If it was not to go into the pipe, the host
 * would tell of an older one.
 */
static bool has_landed(struct sh_dev *dev, uint32_t evq, const struct sh_evq *q)
{
	return q->spilled > q->flight_spilled ||
	       (q->flight_piped && q->tells && dev->ops->event_written(dev->host, evq));
}

/*
 * A thread may have died between counting a record and writing it: layout.h has the rule. The
 * thread that settles it may die here as well: the next one finds the same.
 */
static void settle(struct sh_dev *dev, uint32_t evq, struct sh_evq *q)
{
	uint64_t off = q->flight_off;
	bool landed;

	if (!off)
		return;
	landed = has_landed(dev, evq, q);
	if (off % 4 == 0 && off >= SH_XRC_REG_OFF && off < dev->pool_off) {
		uint32_t *counter = sh_at(dev, off);

		*counter = q->flight_count + landed;
	} else if (off != SH_FLIGHT_UNCOUNTED) {
		dev->ops->complain(dev->host, "a damaged event queue", 0, 0);
	}
	if (landed)
		note_flight(dev, q);
	/* The thread has marked the queue, but may not have told the daemon. */
	if (q->spilled)
		wake_daemon(dev);
	if (!landed)
		q->uncounted = 1;
	__atomic_store_n(&q->flight_off, 0, __ATOMIC_RELEASE);
}

static void check(struct sh_dev *dev, uint32_t evq, struct sh_evq *q)
{
	settle(dev, evq, q);
	if (q->spilled > SH_EVQ_SPILL) {
		dev->ops->complain(dev->host, "a damaged event queue", 0, 0);
		q->spilled = 0;
	}
}

static struct sh_evq *made_evq(const struct sh_dev *dev, uint32_t evq)
{
	struct sh_evq *q = sh_evq(dev, evq);

	return q && sh_lock_made(&q->lock) ? q : NULL;
}

int sh_evq_hold(struct sh_dev *dev, uint32_t evq)
{
	struct sh_evq *q = made_evq(dev, evq);
	int err = q ? sh_lock_soon(dev, &q->lock) : 0;

	if (q && !err)
		check(dev, evq, q);
	return err;
}

void sh_evq_release(struct sh_dev *dev, uint32_t evq)
{
	struct sh_evq *q = made_evq(dev, evq);

	if (q)
		sh_unlock(dev, &q->lock);
}

/* Takes the lock to raise an event. 0, or -EINPROGRESS: what sh_lock_mine() says. */
static int hold_to_raise(struct sh_dev *dev, uint32_t evq, struct sh_evq *q)
{
	if (sh_lock_mine(dev, &q->lock, SH_WAIT_BRIEFLY)) {
		if (!dev->proc)
			sh_lock_suspect(dev, &q->lock);
		return -EINPROGRESS;
	}
	check(dev, evq, q);
	return 0;
}

/*
 * Reads the number once, and returns no more than there is room for: other processes can write to
 * it at any time.
 */
static uint32_t spilled_in(const struct sh_evq *q)
{
	uint32_t n = __atomic_load_n(&q->spilled, __ATOMIC_RELAXED);

	return n < SH_EVQ_SPILL ? n : SH_EVQ_SPILL;
}

/* ---- raising ---- */

/* From here on a death is settled as layout.h says. */
static void take_off(struct sh_dev *dev, struct sh_evq *q, uint32_t spilled, bool piped,
		     const struct subject *s, const struct origin *from)
{
	const char *inst = (const char *)dev->inst;

	q->flight_spilled = spilled;
	q->flight_piped = piped;
	q->flight_count = s->counter ? *s->counter : 0;
	q->flight_log = 0;
	if (from->log) {
		q->flight_log = (uint64_t)((const char *)from->log - inst);
		q->flight_seq = from->log->seq;
		q->flight_raised = from->place + 1;
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&q->flight_off,
			 s->counter ? (uint64_t)((const char *)s->counter - inst)
				    : SH_FLIGHT_UNCOUNTED,
			 __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (s->counter)
		++*s->counter;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/*
 * Pinned where a recovery could not tell whether the record was written, and would write it again:
 * the program would read one event more than the daemon reports, and wait for ever when it destroys
 * the object.
 */
static void write_record(struct sh_dev *dev, uint32_t evq, struct sh_evq *q,
			 const struct record *rec, const struct subject *s,
			 const struct origin *from)
{
	uint32_t spilled = spilled_in(q);
	struct sh_door *door = q->tells ? NULL : sh_pin();
	/* A record must not overtake those that were spilled. */
	int err = spilled ? -EAGAIN : dev->ops->event_begin(dev->host, evq);

	take_off(dev, q, spilled, !err, s, from);
	if (!err)
		err = dev->ops->event(dev->host, evq, rec, q->record_size == 8 ? 8 : 16);
	if (err == -EAGAIN && spilled < SH_EVQ_SPILL) {
		/* First, because after a death the daemon looks at the marks. */
		mark_spilled(dev, evq);
		memcpy(q->spill[spilled], rec, sizeof(*rec));
		__atomic_store_n(&q->spilled, spilled + 1, __ATOMIC_RELEASE);
		err = 0;
		wake_daemon(dev);
	}
	if (err) {
		q->lost++;
		if (s->counter)
			--*s->counter;
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (from->log)
		__atomic_store_n(&from->log->raised, (uint16_t)(from->place + 1), __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&q->flight_off, 0, __ATOMIC_RELEASE);
	sh_unpin(door);
}

/*
 * Has this record of the transaction been raised? The caller holds the queue's lock: if a thread
 * died while it wrote the record, that is settled.
 */
static bool raised(const struct origin *from)
{
	return from->log && __atomic_load_n(&from->log->raised, __ATOMIC_RELAXED) > from->place;
}

/* 0, also if there is no event queue. -EINPROGRESS: the caller must come back later. */
static int raise_one(struct sh_dev *dev, uint32_t evq, const struct record *rec,
		     const struct subject *s, const struct origin *from)
{
	struct sh_evq *q = made_evq(dev, evq);

	if (!q)
		return 0;
	if (hold_to_raise(dev, evq, q))
		return -EINPROGRESS;
	/*
	 * The thread that ends the object clears its live word, then takes this lock, and then
	 * reads the counter.
	 */
	if (q->generation && is_live(s) && !raised(from))
		write_record(dev, evq, q, rec, s, from);
	sh_unlock(dev, &q->lock);
	return 0;
}

/* ---- events that are owed ---- */

/*
 * An event that could not be raised, because a thread that stands has the queue's lock, is one
 * word. It names the object and, if several are to be told of the event, which of them.
 */
#define OWED	 (UINT64_C(1) << 63)
#define OF_CQE	 (UINT64_C(1) << 58) /* a completion event; else an asynchronous one */
#define OWED_BIT 50		     /* of its type */
#define REG_BIT	 32 /* of the registration that is to be told; 0: the object's owner */
#define HCA_BIT	 24
_Static_assert(SH_MAX_HCAS <= 1 << 8 && SH_MAX_XRC_REG <= 1 << 18, "an event in a word");

static inline uint64_t owed(uint32_t hca, uint32_t obj, uint32_t type, uint32_t reg)
{
	return OWED | (uint64_t)(type & 0xff) << OWED_BIT | (uint64_t)reg << REG_BIT |
	       (uint64_t)hca << HCA_BIT | obj;
}

/* False: there is no room. An event that is owed already is owed once. */
static bool note_owed(struct sh_dev *dev, uint64_t event)
{
	uint64_t *word = dev->inst->evs_owed;

	for (unsigned int i = 0; i < SH_EVS_OWED; i++)
		if (__atomic_load_n(&word[i], __ATOMIC_SEQ_CST) == event)
			return true;
	for (unsigned int i = 0; i < SH_EVS_OWED; i++) {
		uint64_t none = 0;

		if (__atomic_compare_exchange_n(&word[i], &none, event, false, __ATOMIC_SEQ_CST,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}

static void raise_owed(struct sh_dev *dev, uint64_t event, uint64_t unused);

/*
 * The daemon raises it, because this process may end before the lock is free. Only if a great many
 * are owed, or if this is the daemon, the process keeps it in mind itself.
 */
static void owe(struct sh_dev *dev, uint64_t event, const struct origin *from)
{
	if (!dev->proc || !note_owed(dev, event)) {
		sh_defer_once(dev, dev->ops->now(dev->host) + RETRY_NS, raise_owed, event, 0);
		return;
	}
	/* A recovery of this transaction need not raise it. */
	if (from->log)
		__atomic_store_n(&from->log->raised, (uint16_t)(from->place + 1), __ATOMIC_RELAXED);
	wake_daemon(dev);
}

static void raise_or_owe(struct sh_dev *dev, uint32_t evq, const struct record *rec,
			 const struct subject *s, const struct origin *from, uint64_t event)
{
	if (raise_one(dev, evq, rec, s, from))
		owe(dev, event, from);
}

void sh_comp_event(struct sh_dev *dev, uint32_t hca, uint32_t cqn)
{
	sh_comp_event_of(dev, hca, cqn, NULL);
}

void sh_comp_event_of(struct sh_dev *dev, uint32_t hca, uint32_t cqn, struct sh_txn *log)
{
	const struct origin from = {log, 0};
	struct sh_cq *cq = sh_cq_get(dev, hca, cqn);
	struct record rec = {0};
	struct subject s;

	if (!cq || !cq->live)
		return;
	rec.element = cq->user_handle;
	s = (struct subject){&cq->comp_events, &cq->live, 0};
	raise_or_owe(dev, cq->comp_evq, &rec, &s, &from, owed(hca, cqn, 0, 0) | OF_CQE);
}

static uint32_t async_evq_of(const struct sh_dev *dev, uint32_t ctx)
{
	struct sh_ctx *c = ctx ? sh_ctx(dev, ctx) : NULL;

	return c && c->state != SH_CTX_FREE ? c->async_evq : 0;
}

/*
 * Tells each context that is registered with an XRC receive QP, or each handle of a target QP;
 * only: that registration alone, if it is still there, and 0 all of them. Only the records of
 * handles are counted.
 */
static void tell_registered(struct sh_dev *dev, uint32_t head, uint32_t only,
			    const struct record *rec, bool handles, struct origin from,
			    uint64_t event)
{
	struct sh_xrc_reg *regs = sh_at(dev, SH_XRC_REG_OFF);
	struct subject s = {0};
	struct record r = *rec;
	unsigned int steps = 0;

	for (; head && head < SH_MAX_XRC_REG && steps < SH_MAX_XRC_REG;
	     head = regs[head].next, steps++) {
		if (handles) {
			r.element = regs[head].user_handle;
			s.counter = &regs[head].events;
		}
		if (!only || only == head)
			raise_or_owe(dev, async_evq_of(dev, regs[head].ctx), &r, &s, &from,
				     event | (uint64_t)head << REG_BIT);
		if (steps + 1 < RECORDS)
			from.place++;
		else
			from.log = NULL;
	}
}

static void affiliated(struct sh_dev *dev, uint32_t hca, uint32_t type, uint32_t obj, uint32_t only,
		       const struct origin *from)
{
	struct record rec = {.type = type};
	struct subject s;
	uint32_t ctx, head = 0;
	bool handles = false;
	uint64_t event = owed(hca, obj, type, 0);

	if (type == EV_CQ_ERR) {
		struct sh_cq *cq = sh_cq_get(dev, hca, obj);

		if (!cq)
			return;
		ctx = cq->ctx;
		rec.element = cq->user_handle;
		s = (struct subject){&cq->async_events, &cq->live, 0};
	} else if (type == EV_SRQ_ERR || type == EV_SRQ_LIMIT) {
		struct sh_srq *srq = sh_srq_get(dev, hca, obj);

		if (!srq)
			return;
		ctx = srq->ctx;
		rec.element = srq->user_handle;
		s = (struct subject){&srq->async_events, &srq->live, 0};
	} else {
		struct sh_qp *qp = sh_qp_get(dev, hca, obj);

		if (!qp)
			return;
		ctx = qp->ctx;
		rec.element = qp->user_handle;
		s = (struct subject){&qp->async_events, &qp->qpn, qp->qpn};
		if (!ctx) {
			handles = qp->type == SH_QPT_XRC_TGT;
			head = qp->regs;
			rec.element = qp->qpn;
			rec.type |= handles ? 0 : XRC_QP_EVENT;
		}
	}
	if (head)
		tell_registered(dev, head, only, &rec, handles, *from, event);
	else
		raise_or_owe(dev, async_evq_of(dev, ctx), &rec, &s, from, event);
}

void sh_affiliated_event(struct sh_dev *dev, uint32_t hca, uint32_t type, uint32_t obj)
{
	sh_affiliated_event_of(dev, hca, type, obj, NULL, 0);
}

void sh_affiliated_event_of(struct sh_dev *dev, uint32_t hca, uint32_t type, uint32_t obj,
			    struct sh_txn *log, uint32_t number)
{
	const struct origin from = {log, number * RECORDS};

	affiliated(dev, hca, type, obj, 0, &from);
}

static void raise_owed(struct sh_dev *dev, uint64_t event, uint64_t unused)
{
	const uint32_t hca = event >> HCA_BIT & 0xff, obj = event & 0xffffff;
	const struct origin from = {0};
	bool entered = dev->proc && sh_enter(dev);

	(void)unused;
	if (event & OF_CQE)
		sh_comp_event(dev, hca, obj);
	else
		affiliated(dev, hca, event >> OWED_BIT & 0xff, obj,
			   event >> REG_BIT & (SH_MAX_XRC_REG - 1), &from);
	if (entered)
		sh_leave(dev);
}

int sh_async_event(struct sh_dev *dev, uint32_t ctx, uint64_t element, uint32_t type)
{
	struct record rec = {.element = element, .type = type};
	const struct origin from = {0};
	struct subject nobody = {0};

	if (!ctx || ctx >= SH_MAX_CTX)
		return -EINVAL;
	return raise_one(dev, async_evq_of(dev, ctx), &rec, &nobody, &from);
}

/* ---- the daemon's side ---- */

void sh_evs_owed(struct sh_dev *dev)
{
	for (unsigned int i = 0; i < SH_EVS_OWED; i++) {
		uint64_t *word = &dev->inst->evs_owed[i];

		/*
		 * The word is free before the event is raised: from then on it can be owed again.
		 */
		if (__atomic_load_n(word, __ATOMIC_RELAXED))
			raise_owed(dev, __atomic_exchange_n(word, 0, __ATOMIC_SEQ_CST), 0);
	}
}

static bool about(const uint64_t spilled[2], uint64_t element, enum sh_event_kind kind)
{
	struct record rec;

	memcpy(&rec, spilled, sizeof(rec));
	if (rec.element != element)
		return false;
	switch (kind) {
	case SH_EV_COMP:
		return true;
	case SH_EV_CQ:
		return rec.type == EV_CQ_ERR;
	case SH_EV_SRQ:
		return rec.type == EV_SRQ_ERR || rec.type == EV_SRQ_LIMIT;
	case SH_EV_QP:
		return rec.type != EV_CQ_ERR && rec.type != EV_SRQ_ERR && rec.type != EV_SRQ_LIMIT;
	}
	return false;
}

uint32_t sh_evq_end(struct sh_dev *dev, uint32_t evq, uint32_t *counter, uint64_t element,
		    enum sh_event_kind kind)
{
	struct sh_evq *q = made_evq(dev, evq);
	uint32_t i, kept = 0, dropped, spilled;

	if (!q)
		return 0;
	spilled = spilled_in(q);
	for (i = 0; i < spilled; i++)
		if (!about(q->spill[i], element, kind))
			memmove(q->spill[kept++], q->spill[i], sizeof(q->spill[0]));
	dropped = spilled - kept;
	q->spilled = kept;
	*counter -= dropped < *counter ? dropped : *counter;
	return *counter;
}

int sh_evq_flush(struct sh_dev *dev, uint32_t evq)
{
	struct sh_evq *q = made_evq(dev, evq);
	uint32_t i, left, spilled;
	int err;

	if (!q)
		return 0;
	__atomic_fetch_and(&dev->inst->evq_spilled[evq / 64], ~(UINT64_C(1) << evq % 64),
			   __ATOMIC_SEQ_CST);
	err = hold_to_raise(dev, evq, q);
	if (err) {
		mark_spilled(dev, evq);
		return err;
	}
	spilled = spilled_in(q);
	for (i = 0; i < spilled; i++)
		if (dev->ops->event_begin(dev->host, evq) ||
		    dev->ops->event(dev->host, evq, q->spill[i], q->record_size == 8 ? 8 : 16))
			break;
	left = spilled - i;
	if (i)
		memmove(q->spill[0], q->spill[i], left * sizeof(q->spill[0]));
	q->spilled = left;
	if (left)
		mark_spilled(dev, evq);
	sh_unlock(dev, &q->lock);
	return (int)left;
}

uint32_t sh_evq_spilled(struct sh_dev *dev, uint32_t from)
{
	uint32_t i = from / 64;
	uint64_t word;

	if (from >= SH_MAX_EVQ)
		return 0;
	word = __atomic_load_n(&dev->inst->evq_spilled[i], __ATOMIC_RELAXED) & ~UINT64_C(0)
										       << from % 64;
	while (!word) {
		if (++i == SH_MAX_EVQ / 64)
			return 0;
		word = __atomic_load_n(&dev->inst->evq_spilled[i], __ATOMIC_RELAXED);
	}
	return i * 64 + (uint32_t)__builtin_ctzll(word);
}

int sh_evq_init(struct sh_dev *dev, uint32_t evq, uint32_t ctx, uint32_t record_size,
		uint32_t generation)
{
	struct sh_evq *q = sh_evq(dev, evq);
	struct sh_ctx *c = sh_ctx(dev, ctx);
	int err;

	if (!q || !c || (generation && record_size != 8 && record_size != 16))
		return -EINVAL;
	err = sh_promise(dev, q, sizeof(*q));
	if (err)
		return err;
	sh_lock_init(&q->lock);
	err = sh_evq_hold(dev, evq);
	if (err)
		return err;
	q->ctx = ctx;
	q->host = c->host;
	q->record_size = record_size;
	q->spilled = 0;
	q->lost = 0;
	q->uncounted = 0;
	q->generation = generation;
	sh_unlock(dev, &q->lock);
	__atomic_fetch_and(&dev->inst->evq_spilled[evq / 64], ~(UINT64_C(1) << evq % 64),
			   __ATOMIC_SEQ_CST);
	return 0;
}
