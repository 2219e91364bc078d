// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Decides what becomes of a packet, by the rules of fault.h. Owns the choices that rates make, and
 * the packets of this process that wait for another one to pass. Holds no lock, and never touches
 * the packet itself.
 */
#include "softhca/device/memory/life.h"
#include "fault.h"

/*
 * The n-th choice of a rule. It depends on seed, scope and n alone, so neither other rules nor
 * packets that the rule is not about change it.
 */
static uint64_t choice(struct sh_fault_rule *rule, uint64_t scope)
{
	uint32_t n = __atomic_fetch_add(&rule->drawn, 1, __ATOMIC_RELAXED);
	uint64_t x = (uint64_t)__atomic_load_n(&rule->seed, __ATOMIC_RELAXED) << 32 | n;

	x ^= scope * UINT64_C(0x9e3779b97f4a7c15);
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	x ^= x >> 31;
	return x;
}

uint32_t sh_fault_draw(struct sh_fault_rule *rule, uint64_t scope)
{
	return (uint32_t)((choice(rule, scope) >> 32) % SH_FAULT_MILLION);
}

static bool is_link(uint32_t rule_from, uint32_t rule_to, uint32_t from, uint32_t to)
{
	return (rule_from == SH_FAULT_ANY || rule_from == from) &&
	       (rule_to == SH_FAULT_ANY || rule_to == to);
}

/* In either direction; but no host is cut off from itself. */
static bool parts(const struct sh_fault_scope *s, uint32_t from, uint32_t to)
{
	return from != to &&
	       (is_link(s->from, s->to, from, to) || is_link(s->to, s->from, from, to));
}

static bool takes_away(uint32_t kind)
{
	return kind == SH_FAULT_DROP || kind == SH_FAULT_CORRUPT || kind == SH_FAULT_PARTITION;
}

static bool concerns(const struct sh_fault_scope *s, const struct sh_way *way)
{
	if (way->at_once && !takes_away(s->kind))
		return false;
	if (s->qpn != SH_FAULT_ANY && s->qpn != way->src_qpn && s->qpn != way->dst_qpn)
		return false;
	if (s->kind == SH_FAULT_PARTITION)
		return parts(s, way->from, way->to);
	return is_link(s->from, s->to, way->from, way->to) && (!way->came || s->from == way->from);
}

static bool any_set(struct sh_faults *f)
{
	for (uint32_t i = 0; i < SH_FAULT_RULES; i++)
		if (__atomic_load_n(&f->rule[i].rate, __ATOMIC_RELAXED) ||
		    __atomic_load_n(&f->rule[i].count, __ATOMIC_RELAXED))
			return true;
	return false;
}

/*
 * A sender that has used up the last count must not undo what the daemon sets at that moment. So
 * after it has cleared the word, it looks at the rules again. The stores and loads of both are in
 * one order: either this thread sees the daemon's rule, or the daemon stores to active later.
 */
void sh_faults_settle(struct sh_faults *f)
{
	if (!any_set(f))
		__atomic_fetch_and(&f->active, ~SH_ACTIVE_FAULTS, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (any_set(f))
		__atomic_fetch_or(&f->active, SH_ACTIVE_FAULTS, __ATOMIC_SEQ_CST);
}

/* Takes this packet as one of the rule's next packets. False: none of them is left. */
static bool take(struct sh_faults *f, struct sh_fault_rule *rule, uint32_t left)
{
	while (left) {
		if (!__atomic_compare_exchange_n(&rule->count, &left, left - 1, false,
						 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		if (left == 1)
			sh_faults_settle(f);
		return true;
	}
	return false;
}

static uint64_t delay_of(const struct sh_fault_rule *rule)
{
	uint64_t ns = __atomic_load_n(&rule->delay_ns, __ATOMIC_RELAXED);

	return ns < SH_FAULT_DELAY_MAX ? ns : SH_FAULT_DELAY_MAX;
}

/*
 * Which packets of this process wait because of a limit: for each rule the process, << 32, and how
 * many of its packets there are. A child of fork() has its parent's word, but none of its packets.
 */
static uint64_t queued[SH_FAULT_RULES];
/* When the last one of them may leave. The daemon may free the link before, by a new rate. */
static uint64_t queued_until[SH_FAULT_RULES];

static uint32_t queued_by(const struct sh_dev *dev, uint64_t word)
{
	return word >> 32 == dev->proc ? (uint32_t)word : 0;
}

/* limits: bits of the rules. more: 1 or -1. */
static void count_queued(const struct sh_dev *dev, uint32_t limits, uint32_t more)
{
	for (uint32_t i = 0; limits >> i; i++) {
		uint64_t was = __atomic_load_n(&queued[i], __ATOMIC_RELAXED), is;

		if (!(limits >> i & 1))
			continue;
		do {
			is = (uint64_t)dev->proc << 32 | (queued_by(dev, was) + more);
		} while (!__atomic_compare_exchange_n(&queued[i], &was, is, false, __ATOMIC_ACQ_REL,
						      __ATOMIC_RELAXED));
	}
}

/* When a packet may leave that its link lets go at `start`: not before those that wait. */
static uint64_t stay_behind(uint32_t rule, bool behind, uint64_t start)
{
	uint64_t last = __atomic_load_n(&queued_until[rule], __ATOMIC_RELAXED);

	do {
		if (behind && last >= start)
			return last;
	} while (!__atomic_compare_exchange_n(&queued_until[rule], &last, start, false,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return start;
}

/*
 * A link that carries so many bits a second: when those before the packet have left, which is now
 * or later, or UINT64_MAX: the queue is full.
 */
static uint64_t queue(struct sh_fault_rule *rule, uint64_t now, uint32_t bytes)
{
	uint64_t bits = __atomic_load_n(&rule->bits, __ATOMIC_RELAXED);
	uint64_t most = delay_of(rule);
	uint64_t free_at = __atomic_load_n(&rule->free_at, __ATOMIC_RELAXED), start;

	if (!bits)
		return now;
	do {
		start = free_at > now ? free_at : now;
		if (start - now > most)
			return UINT64_MAX;
	} while (!__atomic_compare_exchange_n(&rule->free_at, &free_at,
					      start + bytes * UINT64_C(8000000000) / bits, false,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return start;
}

/*
 * What gets through so far meets the limits, and waits until all of their links are free. limits:
 * their bits. The helper thread may be late with packets that could leave by now. So a packet that
 * need not wait for its link still queues behind those of this process.
 */
static void meet_limits(struct sh_dev *dev, const struct sh_way *way, uint32_t limits, uint64_t now,
			struct sh_met *met)
{
	uint64_t latest = now;
	bool behind, any = false;

	for (uint32_t i = 0; limits >> i; i++) {
		struct sh_fault_rule *rule = &dev->inst->faults.rule[i];
		uint64_t start;

		if (!(limits >> i & 1))
			continue;
		behind = queued_by(dev, __atomic_load_n(&queued[i], __ATOMIC_ACQUIRE));
		any |= behind;
		start = queue(rule, now,
			      met->fate == SH_FAULT_DUPLICATE ? 2 * way->bytes : way->bytes);
		if (start != now)
			__atomic_fetch_add(&rule->done, 1, __ATOMIC_RELAXED);
		if (start == UINT64_MAX) {
			met->fate = SH_FAULT_DROP;
			return;
		}
		start = stay_behind(i, behind, start);
		if (start > latest)
			latest = start;
	}
	if (met->fate == SH_FAULT_DELAY)
		met->delay_ns += latest - now;
	else if (latest > now || any)
		met->delay_ns = latest - now;
	else
		return;
	met->twice = met->fate == SH_FAULT_DUPLICATE;
	met->fate = SH_FAULT_DELAY;
	met->limits = limits;
}

/* A rule hits a packet: what this comes down to. chosen: the rule's choice. */
static void hit_by(struct sh_fault_rule *rule, uint32_t index, uint32_t kind, uint64_t chosen,
		   struct sh_met *met)
{
	uint64_t ns = delay_of(rule);

	met->fate = kind == SH_FAULT_JITTER	 ? SH_FAULT_DELAY
		    : kind == SH_FAULT_PARTITION ? SH_FAULT_DROP
						 : kind;
	met->rule = index;
	met->delay_ns =
		kind == SH_FAULT_JITTER ? ((chosen & UINT32_MAX) * (ns / 1000) >> 32) * 1000 : ns;
	__atomic_fetch_add(&rule->done, 1, __ATOMIC_RELAXED);
}

/*
 * Each rule that is about the packet makes its choice, even if an earlier rule has hit. So the
 * rates of several rules add up, and no rule changes which packets another one hits. The first hit
 * counts. Rules with a scope come first, so that "the next three packets of that QP" are exactly
 * these.
 */
uint32_t sh_fate(struct sh_dev *dev, const struct sh_way *way, struct sh_met *met)
{
	struct sh_faults *f = &dev->inst->faults;
	uint32_t limits = 0;
	uint64_t now;

	*met = (struct sh_met){.fate = SH_FAULT_KINDS};
	for (uint32_t i = 0; i < SH_FAULT_RULES; i++) {
		uint32_t index = (i + SH_FAULT_KINDS) % SH_FAULT_RULES;
		struct sh_fault_rule *rule = &f->rule[index];
		uint64_t word = __atomic_load_n(&rule->scope, __ATOMIC_ACQUIRE);
		struct sh_fault_scope scope = sh_fault_unpack(word);
		uint64_t chosen = 0;
		uint32_t rate, count;
		bool hit;

		if (!(word & SH_FAULT_USED) || !concerns(&scope, way))
			continue;
		/*
		 * pairs with the release stores in rule_set() of the daemon, which ends the old
		 * rule first
		 */
		rate = __atomic_load_n(&rule->rate, __ATOMIC_ACQUIRE);
		count = __atomic_load_n(&rule->count, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&rule->scope, __ATOMIC_RELAXED) != word)
			continue;
		if (scope.kind == SH_FAULT_LIMIT) {
			limits |= (uint32_t) !!rate << index;
			continue;
		}
		if (scope.kind == SH_FAULT_PARTITION)
			hit = rate;
		else if (rate || (scope.kind == SH_FAULT_JITTER && count))
			chosen = choice(rule, word);
		if (scope.kind != SH_FAULT_PARTITION)
			hit = (chosen >> 32) % SH_FAULT_MILLION < rate;
		if (met->fate == SH_FAULT_KINDS && (hit || take(f, rule, count)))
			hit_by(rule, index, scope.kind, chosen, met);
		else if (scope.kind == SH_FAULT_REORDER)
			met->passes |= 1u << index;
	}
	if (!limits && met->fate != SH_FAULT_DELAY && met->fate != SH_FAULT_REORDER)
		return met->fate;
	/*
	 * One look at the clock, before the packet is copied: so those of a QP leave in their
	 * order.
	 */
	now = dev->ops->now(dev->host);
	if (limits && (met->fate == SH_FAULT_KINDS || met->fate == SH_FAULT_DELAY ||
		       met->fate == SH_FAULT_DUPLICATE))
		meet_limits(dev, way, limits, now, met);
	met->at = now + met->delay_ns;
	return met->fate;
}

bool sh_partitioned(struct sh_dev *dev, uint32_t from, uint32_t to)
{
	struct sh_faults *f = &dev->inst->faults;

	for (uint32_t i = 0; i < SH_FAULT_RULES; i++) {
		struct sh_fault_scope scope =
			sh_fault_unpack(__atomic_load_n(&f->rule[i].scope, __ATOMIC_ACQUIRE));

		if (scope.kind == SH_FAULT_PARTITION && scope.qpn == SH_FAULT_ANY &&
		    __atomic_load_n(&f->rule[i].rate, __ATOMIC_RELAXED) && parts(&scope, from, to))
			return true;
	}
	return false;
}

/* ---- packets that are held back ---- */

/* Timers need room beside them; and a rule may hold packets back for a minute. */
#define HELD_MAX   (1u << 18)
#define HELD_BYTES (UINT64_C(256) << 20)

static struct {
	uint32_t packets;
	uint64_t bytes;
} held;

bool sh_held_take(size_t bytes)
{
	uint32_t packets = __atomic_add_fetch(&held.packets, 1, __ATOMIC_RELAXED);
	uint64_t all = __atomic_add_fetch(&held.bytes, bytes, __ATOMIC_RELAXED);

	if (packets <= HELD_MAX && all <= HELD_BYTES)
		return true;
	sh_held_give(bytes);
	return false;
}

void sh_held_give(size_t bytes)
{
	__atomic_sub_fetch(&held.packets, 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&held.bytes, bytes, __ATOMIC_RELAXED);
}

/* For each rule the packet of this process that the next one overtakes. */
static struct sh_held_back *waiting[SH_FAULT_RULES];
_Static_assert(SH_FAULT_RULES <= 32, "a bit for each rule");

/* A child of fork() has what its parent holds, and the parent sends it. */
static void release(struct sh_dev *dev, struct sh_held_back *h)
{
	if (!h || h->proc != dev->proc)
		return;
	if (sh_defer(dev, dev->ops->now(dev->host), h->go, (uintptr_t)h, 0))
		h->go(dev, (uintptr_t)h, 0);
}

/*
 * Nothing has passed it in time. If it has gone, another one may be at its address, and goes early.
 */
static void expired(struct sh_dev *dev, uint64_t held, uint64_t rule)
{
	struct sh_held_back *h = (struct sh_held_back *)(uintptr_t)held;

	if (__atomic_compare_exchange_n(&waiting[rule], &h, NULL, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		h->go(dev, (uintptr_t)h, 0);
}

/* It counts until it has arrived. */
static void delayed_goes(struct sh_dev *dev, uint64_t held, uint64_t limits)
{
	struct sh_held_back *h = (struct sh_held_back *)(uintptr_t)held;

	h->go(dev, held, 0);
	count_queued(dev, (uint32_t)limits, (uint32_t)-1);
}

bool sh_hold_back(struct sh_dev *dev, const struct sh_met *met, struct sh_held_back *h)
{
	h->proc = dev->proc;
	if (met->fate == SH_FAULT_DELAY) {
		count_queued(dev, met->limits, 1);
		if (!sh_defer(dev, met->at, delayed_goes, (uintptr_t)h, met->limits))
			return true;
		count_queued(dev, met->limits, (uint32_t)-1);
		return false;
	}
	release(dev, __atomic_exchange_n(&waiting[met->rule], h, __ATOMIC_ACQ_REL));
	if (!sh_defer(dev, met->at, expired, (uintptr_t)h, met->rule))
		return true;
	/* Without a timer it does not stay. If it has gone already, it was sent. */
	return !__atomic_compare_exchange_n(&waiting[met->rule], &h, NULL, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
}

void sh_pass(struct sh_dev *dev, const struct sh_met *met)
{
	for (uint32_t i = 0; met->passes >> i; i++)
		if (met->passes >> i & 1)
			release(dev, __atomic_exchange_n(&waiting[i], NULL, __ATOMIC_ACQ_REL));
}
