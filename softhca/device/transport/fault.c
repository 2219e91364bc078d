// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Decides what becomes of a packet, by the rules of fault.h. Owns the choices that rates make.
 * Holds no lock, and never touches the packet itself.
 */
#include "fault.h"

/*
 * The n-th choice of a rule. It depends on seed, scope and n alone, so neither other rules nor
 * packets that the rule is not about change it.
 */
uint32_t sh_fault_draw(struct sh_fault_rule *rule, uint64_t scope)
{
	uint32_t n = __atomic_fetch_add(&rule->drawn, 1, __ATOMIC_RELAXED);
	uint64_t x = (uint64_t)__atomic_load_n(&rule->seed, __ATOMIC_RELAXED) << 32 | n;

	x ^= scope * UINT64_C(0x9e3779b97f4a7c15);
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	x ^= x >> 31;
	return (x >> 32) % SH_FAULT_MILLION;
}

static bool concerns(const struct sh_fault_scope *s, const struct sh_way *way)
{
	return (s->from == SH_FAULT_ANY || s->from == way->from) &&
	       (s->to == SH_FAULT_ANY || s->to == way->to) &&
	       (s->qpn == SH_FAULT_ANY || s->qpn == way->src_qpn || s->qpn == way->dst_qpn);
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

/*
 * Each rule that is about the packet makes its choice, even if an earlier rule has hit. So the
 * rates of several rules add up, and no rule changes which packets another one hits. The first hit
 * counts. Rules with a scope come first, so that "the next three packets of that QP" are exactly
 * these.
 */
uint32_t sh_fate(struct sh_dev *dev, const struct sh_way *way, uint64_t *delay_ns)
{
	struct sh_faults *f = &dev->inst->faults;
	uint32_t met = SH_FAULT_KINDS;

	for (uint32_t i = 0; i < SH_FAULT_RULES; i++) {
		struct sh_fault_rule *rule = &f->rule[(i + SH_FAULT_KINDS) % SH_FAULT_RULES];
		uint64_t word = __atomic_load_n(&rule->scope, __ATOMIC_ACQUIRE);
		struct sh_fault_scope scope = sh_fault_unpack(word);
		uint32_t rate, count;
		bool hit;

		if (!(word & SH_FAULT_USED) || !concerns(&scope, way))
			continue;
		/* pairs with the release stores in rule_set() of the daemon, which ends the old rule first */
		rate = __atomic_load_n(&rule->rate, __ATOMIC_ACQUIRE);
		count = __atomic_load_n(&rule->count, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&rule->scope, __ATOMIC_RELAXED) != word)
			continue;
		hit = rate && sh_fault_draw(rule, word) < rate;
		if (met != SH_FAULT_KINDS || scope.kind >= SH_FAULT_KINDS)
			continue;
		if (!hit && !take(f, rule, count))
			continue;
		__atomic_fetch_add(&rule->done, 1, __ATOMIC_RELAXED);
		met = scope.kind;
		*delay_ns = __atomic_load_n(&rule->delay_ns, __ATOMIC_RELAXED);
		if (*delay_ns > SH_FAULT_DELAY_MAX)
			*delay_ns = SH_FAULT_DELAY_MAX;
	}
	return met;
}
