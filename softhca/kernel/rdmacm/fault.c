// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Faults of CM messages. A rule has the same members as one of packets, and makes its choices in
 * the same way: the same seed loses the same messages again.
 */
#include <errno.h>
#include <string.h>

#include "softhca/device/transport/fault.h"
#include "softhca/kernel/faults.h"
#include "softhca/kernel/ports.h"
#include "softhca/protocol.h"
#include "fault.h"
#include "rdmacm.h"

static uint64_t scope_of(uint32_t from, uint32_t to)
{
	return sh_fault_pack(&(struct sh_fault_scope){.from = from, .to = to, .qpn = SH_FAULT_ANY});
}

/* The rule with that scope, else one that was never used or has ended, else NULL. */
static struct sh_fault_rule *find(struct cm_faults *f, uint64_t scope)
{
	struct sh_fault_rule *over = NULL;

	for (int i = 0; i < CM_FAULTS; i++) {
		if (f->rule[i].scope == scope)
			return &f->rule[i];
		if (!over && !f->rule[i].rate && !f->rule[i].count)
			over = &f->rule[i];
	}
	return over;
}

static void set(struct rdmacm *cm, const struct sh_fault_msg *m, uint32_t own_seed,
		struct sh_status *st)
{
	uint64_t scope = scope_of(m->from, m->to);
	struct sh_fault_rule *rule = find(&cm->faults, scope);

	if (!rule) {
		status_say(st, ENOSPC,
			   "%d faults of CM messages are set, and an instance cannot have more: "
			   "end one with off (softhca show lists them)",
			   CM_FAULTS);
		return;
	}
	if (rule->scope != scope)
		rule->done = 0;
	rule->scope = scope;
	rule->rate = m->rate;
	rule->count = m->count;
	rule->seed = m->seeded ? m->seed : own_seed;
	rule->drawn = 0;
}

/* Those of one scope; all of them if it names nothing. Returns how many had been set. */
static unsigned int end(struct cm_faults *f, const struct sh_fault_msg *m)
{
	bool all = m->kind == SH_FAULT_OFF && m->from == SH_FAULT_ANY && m->to == SH_FAULT_ANY;
	unsigned int ended = 0;

	for (int i = 0; i < CM_FAULTS; i++) {
		struct sh_fault_rule *rule = &f->rule[i];

		if (!all && rule->scope != scope_of(m->from, m->to))
			continue;
		ended += rule->rate || rule->count;
		rule->rate = rule->count = 0;
	}
	return ended;
}

static void seed(struct cm_faults *f, uint32_t value)
{
	for (int i = 0; i < CM_FAULTS; i++) {
		f->rule[i].seed = value;
		f->rule[i].drawn = 0;
	}
}

bool cm_fault_set(struct rdmacm *cm, const struct sh_fault_msg *m, uint32_t own_seed,
		  unsigned int *ended, struct sh_status *st)
{
	struct cm_faults *f = &cm->faults;

	if (m->kind == SH_FAULT_SEED)
		seed(f, m->seed);
	else if (m->qpn != SH_FAULT_ANY && m->kind == SH_FAULT_CM_DROP)
		status_say(st, EINVAL, "leave --qp out: CM messages belong to no QP of a program");
	else if (m->qpn != SH_FAULT_ANY)
		return false;
	else if (m->kind == SH_FAULT_OFF || (m->kind == SH_FAULT_CM_DROP && !m->rate && !m->count))
		*ended += end(f, m);
	else if (m->kind == SH_FAULT_CM_DROP)
		set(cm, m, own_seed, st);
	return m->kind == SH_FAULT_CM_DROP;
}

void cm_fault_show(struct rdmacm *cm, struct out *o)
{
	for (int i = 0; i < CM_FAULTS; i++)
		fault_show(cm->k, &cm->faults.rule[i], "cm-drop", o);
}

bool cm_fault_hits(struct rdmacm *cm, uint32_t from, uint32_t to)
{
	bool lost = sh_partitioned(cm->dev, from, to);

	for (int i = 0; i < CM_FAULTS; i++) {
		struct sh_fault_rule *rule = &cm->faults.rule[i];
		struct sh_fault_scope s = sh_fault_unpack(rule->scope);
		bool hit;

		if ((!rule->rate && !rule->count) || (s.from != SH_FAULT_ANY && s.from != from) ||
		    (s.to != SH_FAULT_ANY && s.to != to))
			continue;
		/* The choice is made even if an earlier rule has hit. */
		hit = rule->rate && sh_fault_draw(rule, rule->scope) < rule->rate;
		if (lost || (!hit && !rule->count))
			continue;
		rule->count -= !hit;
		rule->done++;
		lost = true;
	}
	return lost;
}
