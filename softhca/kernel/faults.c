// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Faults of the fabric as the command asks for them. Only this file sets and ends rules; senders
 * follow them (device/transport/fault.c). Names of hosts and QPs are checked here, because the
 * daemon knows what exists.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "softhca/device/transport/fault.h"
#include "softhca/wire/address.h"
#include "faults.h"
#include "kern.h"
#include "out.h"
#include "ports.h"
#include "room.h"
#include "wire_engine.h"

const char *fault_name(uint32_t kind)
{
	static const char *const name[SH_FAULT_KINDS] = {
		[SH_FAULT_DROP] = "drop",	    [SH_FAULT_DELAY] = "delay",
		[SH_FAULT_DUPLICATE] = "duplicate", [SH_FAULT_CORRUPT] = "corrupt",
		[SH_FAULT_JITTER] = "jitter",	    [SH_FAULT_REORDER] = "reorder",
		[SH_FAULT_LIMIT] = "rate",	    [SH_FAULT_PARTITION] = "partition",
	};

	return kind < SH_FAULT_KINDS ? name[kind] : NULL;
}

static bool read_ip(const char *text, struct sh_ip *ip)
{
	struct in6_addr in6;
	struct in_addr in;

	if (inet_pton(AF_INET, text, &in) == 1)
		*ip = sh_ip4(ntohl(in.s_addr));
	else if (inet_pton(AF_INET6, text, &in6) == 1)
		*ip = sh_ip_get(&in6);
	else
		return false;
	return true;
}

/*
 * The end of a link that an address names: a host of this instance, if it is one of the instance's
 * own, or a port elsewhere on the wire.
 */
static bool find_end(struct kernel *k, char *address, uint32_t *end, struct sh_status *st)
{
	uint32_t hca, port;
	struct sh_ip ip;
	uint16_t lid;

	address[SH_FAULT_ADDRESS - 1] = '\0';
	if (!*address)
		return true;
	if (!k->cfg.device.wire.n) {
		status_say(st, EINVAL,
			   "%s is no end of a link here: the instance has no wire, so name its "
			   "hosts (host0)",
			   address);
		return false;
	}
	if (!read_ip(address, &ip)) {
		status_say(st, EINVAL, "\"%s\" is no address: write it as 10.1.2.7 or fd00:1::7",
			   address);
		return false;
	}
	if (wire_own(k, ip, &hca, &port)) {
		*end = k->hcas[hca].host;
		return true;
	}
	lid = wire_lid(k, ip);
	if (!lid)
		status_say(
			st, ENOENT,
			"%s is neither in the network of the instance's wire nor a peer: softhca "
			"show prints both",
			address);
	*end = SH_FAULT_FAR | lid;
	return lid;
}

/* What a fault of packets that come over the wire can be: they are not held back here. */
static bool sender_ok(const struct sh_fault_msg *m, struct sh_status *st)
{
	if (!sh_fault_is_far(m->from))
		return true;
	if (sh_fault_is_far(m->to))
		status_say(st, EINVAL, "one end of the link has to be in this instance");
	else if (m->kind == SH_FAULT_CM_DROP)
		status_say(st, EINVAL,
			   "messages of rdma_cm that come over the wire are not lost here: set the "
			   "fault in the instance that sends them, or name that with --to");
	else if (m->kind < SH_FAULT_KINDS && m->kind != SH_FAULT_DROP &&
		 m->kind != SH_FAULT_CORRUPT && m->kind != SH_FAULT_PARTITION)
		status_say(st, EINVAL,
			   "packets that come over the wire can be dropped, corrupted and "
			   "partitioned here: set the fault in the instance that sends them, or "
			   "name that with --to");
	return !st->error;
}

static bool host_exists(struct kernel *k, uint32_t host, struct sh_status *st)
{
	uint32_t hosts = k->cfg.device.hosts;

	if (host == SH_FAULT_ANY || sh_fault_is_far(host) || host < hosts)
		return true;
	if (hosts == 1)
		status_say(st, ENOENT, "there is no host%u: the instance has one host, host0",
			   host);
	else
		status_say(st, ENOENT, "there is no host%u: the instance has host0 to host%u", host,
			   hosts - 1);
	return false;
}

/* Can the rule be about packets of this host? */
static bool host_in(uint32_t host, const struct sh_fault_msg *m)
{
	return m->from == SH_FAULT_ANY || m->to == SH_FAULT_ANY || host == m->from || host == m->to;
}

/* One room alone makes QPs. */
static bool next_qp(struct kernel *k, uint32_t hca, const void **at, uint32_t *qpn)
{
	for (uint32_t i = 0; rooms[i]; i++)
		if (rooms[i]->next_qp)
			return rooms[i]->next_qp(k, hca, at, qpn);
	return false;
}

/*
 * Lists the QPs that exist and could be meant, as far as there is room. If there are several HCAs,
 * names the HCA behind its QPs: " 0x48 0x49 (host0 mlx4_0) 0x48 (host1 mlx4_0) ...". Returns how
 * many there are.
 */
static uint32_t list_qps(struct kernel *k, const struct sh_fault_msg *m, char *text, size_t room)
{
	static const char more[] = " ...";
	size_t at = 0, last = room - sizeof(more);
	uint32_t n = 0;

	for (uint32_t i = 0; i < k->dev.hcas; i++) {
		const struct khca *h = &k->hcas[i];
		const void *qp = NULL;
		char hca[32] = "";
		uint32_t qpn, next;
		bool left;

		if (!host_in(h->host, m))
			continue;
		if (k->dev.hcas > 1)
			snprintf(hca, sizeof(hca), " (host%u mlx4_%u)", h->host, h->unit);
		for (left = next_qp(k, i, &qp, &next); left; n++) {
			char one[48];
			size_t len;

			qpn = next;
			left = next_qp(k, i, &qp, &next);
			len = (size_t)snprintf(one, sizeof(one), " 0x%06x%s", qpn, left ? "" : hca);
			if (at + len > last) {
				strcpy(text + at, more);
				last = 0;
			} else {
				memcpy(text + at, one, len + 1);
				at += len;
			}
		}
	}
	return n;
}

static bool hca_has(struct kernel *k, uint32_t hca, uint32_t qpn)
{
	const void *at = NULL;
	uint32_t found;

	while (next_qp(k, hca, &at, &found))
		if (found == qpn)
			return true;
	return false;
}

static bool qp_exists(struct kernel *k, const struct sh_fault_msg *m, struct sh_status *st)
{
	char list[200] = "";

	if (m->qpn == SH_FAULT_ANY)
		return true;
	for (uint32_t i = 0; i < k->dev.hcas; i++)
		if (host_in(k->hcas[i].host, m) && hca_has(k, i, m->qpn))
			return true;
	if (list_qps(k, m, list, sizeof(list)))
		status_say(st, ENOENT, "there is no QP 0x%06x%s: there are%s", m->qpn,
			   m->from != SH_FAULT_ANY && m->to != SH_FAULT_ANY ? " on these hosts"
									    : "",
			   list);
	else
		status_say(st, ENOENT,
			   "there is no QP 0x%06x, and no other QP: set the fault when the program "
			   "has created it",
			   m->qpn);
	return false;
}

static bool valid(struct kernel *k, const struct sh_fault_msg *m, struct sh_status *st)
{
	if (m->delay_ns > SH_FAULT_DELAY_MAX)
		status_say(st, EINVAL, "a packet can be delayed by at most a minute");
	else if (m->rate > SH_FAULT_MILLION)
		status_say(st, EINVAL, "a rate can be at most 1 (every packet)");
	else if (m->qpn != SH_FAULT_ANY && m->qpn > 0xffffff)
		status_say(st, EINVAL, "a QP number has at most 24 bits");
	else if (m->kind == SH_FAULT_LIMIT && m->rate && !m->bits)
		status_say(st, EINVAL, "a limit is more than 0 bits a second");
	return !st->error && sender_ok(m, st) && host_exists(k, m->from, st) &&
	       host_exists(k, m->to, st);
}

static bool is_set(const struct sh_fault_rule *rule)
{
	return rule->rate || rule->count;
}

/* Whether it had been set. */
static bool rule_end(struct sh_fault_rule *rule)
{
	bool was = is_set(rule);

	__atomic_store_n(&rule->rate, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&rule->count, 0, __ATOMIC_RELEASE);
	return was;
}

/*
 * A rule of the whole fabric has a place of its own. Any other gets the place of the rule with the
 * same scope, else an unused one, else that of a rule that has ended.
 */
static struct sh_fault_rule *find(struct sh_faults *f, const struct sh_fault_scope *scope)
{
	struct sh_fault_rule *free = NULL, *over = NULL;
	uint64_t word = sh_fault_pack(scope);

	for (uint32_t i = 0; i < SH_FAULT_RULES; i++) {
		struct sh_fault_rule *rule = &f->rule[i];

		if (rule->scope == word)
			return rule;
		if (i < SH_FAULT_KINDS)
			continue;
		if (!free && !(rule->scope & SH_FAULT_USED))
			free = rule;
		if (!over && !is_set(rule))
			over = rule;
	}
	return free ? free : over;
}

static void rule_set(struct kernel *k, const struct sh_fault_msg *m, struct sh_status *st)
{
	const struct sh_fault_scope scope = {m->kind, m->from, m->to, m->qpn};
	struct sh_faults *f = &k->dev.inst->faults;
	uint64_t word = sh_fault_pack(&scope);
	struct sh_fault_rule *rule = find(f, &scope);

	if (!rule) {
		status_say(st, ENOSPC,
			   "%u faults with --from, --to or --qp are set, and an instance cannot "
			   "have more: "
			   "end one with off (softhca show lists them)",
			   SH_FAULT_SCOPED);
		return;
	}
	rule_end(rule);
	if (rule->scope != word) {
		__atomic_store_n(&rule->scope, word, __ATOMIC_RELEASE);
		__atomic_store_n(&rule->done, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&rule->delay_ns, f->rule[m->kind].delay_ns, __ATOMIC_RELAXED);
	}
	if (m->delay_ns)
		__atomic_store_n(&rule->delay_ns, m->delay_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&rule->bits, m->bits, __ATOMIC_RELAXED);
	__atomic_store_n(&rule->free_at, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&rule->seed, m->seeded ? m->seed : k->fault_seed, __ATOMIC_RELAXED);
	__atomic_store_n(&rule->drawn, 0, __ATOMIC_RELAXED);
	/*
	 * Pairs with the loads in sh_fate(): a sender that sees what a rule does sees all that it
	 * is about.
	 */
	__atomic_store_n(&rule->rate, m->rate, __ATOMIC_RELEASE);
	__atomic_store_n(&rule->count, m->count, __ATOMIC_RELEASE);
}

static bool no_scope(const struct sh_fault_msg *m)
{
	return m->from == SH_FAULT_ANY && m->to == SH_FAULT_ANY && m->qpn == SH_FAULT_ANY;
}

/*
 * Ends every kind with exactly this scope; without a scope, everything. Returns how many had been
 * set.
 */
static unsigned int end(struct sh_faults *f, const struct sh_fault_msg *m)
{
	unsigned int ended = 0;

	for (uint32_t i = 0; i < SH_FAULT_RULES; i++) {
		struct sh_fault_scope s = sh_fault_unpack(f->rule[i].scope);

		if (no_scope(m) || (s.from == m->from && s.to == m->to && s.qpn == m->qpn))
			ended += rule_end(&f->rule[i]);
	}
	return ended;
}

/*
 * No failure, since the faults are as they were to be, and scripts end faults without knowing
 * whether any are set. But the caller may have named another kind or scope than that of the fault.
 */
static void say_in_vain(const struct sh_fault_msg *m, struct sh_status *st)
{
	const char *kind = m->kind == SH_FAULT_OFF	 ? "fault"
			   : m->kind == SH_FAULT_CM_DROP ? "cm-drop"
							 : fault_name(m->kind);

	if (m->kind == SH_FAULT_OFF && no_scope(m))
		status_say(st, 0, "nothing was ended: no fault is set");
	else
		status_say(st, 0,
			   "nothing was ended: no %s is set %s --from, --to and --qp; softhca show "
			   "lists the faults that are set",
			   kind, no_scope(m) ? "without" : "with exactly these");
}

/* The seed counts for future rules and for those that are set already. */
static void seed(struct kernel *k, uint32_t value)
{
	struct sh_faults *f = &k->dev.inst->faults;

	k->fault_seed = value;
	for (uint32_t i = 0; i < SH_FAULT_RULES; i++) {
		__atomic_store_n(&f->rule[i].seed, value, __ATOMIC_RELAXED);
		__atomic_store_n(&f->rule[i].drawn, 0, __ATOMIC_RELAXED);
	}
}

static bool is_of_room(struct kernel *k, const struct sh_fault_msg *m, unsigned int *ended,
		       struct sh_status *st)
{
	bool is = false;

	for (uint32_t i = 0; rooms[i]; i++)
		is |= rooms[i]->fault && rooms[i]->fault(k, m, ended, st);
	return is;
}

void fault_set(struct kernel *k, const struct sh_fault_msg *asked, struct sh_status *st)
{
	struct sh_fault_msg own = *asked, *m = &own;
	bool ends = m->kind != SH_FAULT_SEED && !m->rate && !m->count;
	unsigned int ended = 0;

	memset(st, 0, sizeof(*st));
	if (!find_end(k, own.from_address, &own.from, st) ||
	    !find_end(k, own.to_address, &own.to, st))
		return;
	if (m->kind >= SH_FAULT_KINDS && m->kind != SH_FAULT_OFF && m->kind != SH_FAULT_SEED &&
	    m->kind != SH_FAULT_CM_DROP) {
		status_say(st, EINVAL,
			   "unknown fault: drop, delay, jitter, reorder, duplicate, corrupt, rate, "
			   "partition and cm-drop are known");
		return;
	}
	if (m->kind != SH_FAULT_SEED && !valid(k, m, st))
		return;
	if (m->kind >= SH_FAULT_KINDS && is_of_room(k, m, &ended, st)) {
		if (ends && !ended && !st->error)
			say_in_vain(m, st);
		return;
	}
	if (m->kind == SH_FAULT_SEED) {
		seed(k, m->seed);
		return;
	}
	if (m->kind == SH_FAULT_OFF) {
		ended += end(&k->dev.inst->faults, m);
	} else if (ends) {
		/*
		 * A QP that has ended can still be named. A rule is never set for a QP that does
		 * not exist.
		 */
		const struct sh_fault_scope scope = {m->kind, m->from, m->to, m->qpn};
		struct sh_fault_rule *rule = find(&k->dev.inst->faults, &scope);

		if (rule && rule->scope == sh_fault_pack(&scope))
			ended += rule_end(rule);
	} else if (qp_exists(k, m, st)) {
		rule_set(k, m, st);
	}
	if (!ended && (ends || m->kind == SH_FAULT_OFF))
		say_in_vain(m, st);
	sh_faults_settle(&k->dev.inst->faults);
}

static void show_end(struct kernel *k, struct out *o, const char *name, uint32_t host)
{
	char text[SH_WIRE_TEXT];

	if (host == SH_FAULT_ANY) {
		out_word(o, name, "null");
		return;
	}
	if (sh_fault_is_far(host))
		sh_wire_text(text, wire_address_of(k, (uint16_t)(host & ~SH_FAULT_FAR)));
	else
		snprintf(text, sizeof(text), "host%u", host);
	out_text(o, name, text);
}

void fault_show(struct kernel *k, const struct sh_fault_rule *rule, const char *name, struct out *o)
{
	struct sh_fault_scope scope = sh_fault_unpack(rule->scope);

	if (!is_set(rule) && !rule->done)
		return;
	out_begin_object(o, NULL);
	out_text(o, "fault", name);
	show_end(k, o, "from", scope.from);
	show_end(k, o, "to", scope.to);
	if (scope.qpn == SH_FAULT_ANY)
		out_word(o, "qp", "null");
	else
		out_int(o, "qp", scope.qpn);
	out_int(o, "rate_per_million", rule->rate);
	out_int(o, "count", rule->count);
	if (scope.kind == SH_FAULT_DELAY || scope.kind == SH_FAULT_JITTER ||
	    scope.kind == SH_FAULT_REORDER || scope.kind == SH_FAULT_LIMIT)
		out_int(o, "delay_us", rule->delay_ns / 1000);
	else
		out_word(o, "delay_us", "null");
	if (scope.kind == SH_FAULT_LIMIT)
		out_int(o, "bits_per_second", rule->bits);
	else
		out_word(o, "bits_per_second", "null");
	out_int(o, "seed", rule->seed);
	out_int(o, "done", rule->done);
	out_end_object(o);
}
