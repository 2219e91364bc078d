// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the rules that `softhca fault` sets. A rule replaces the one of the same kind and
 * scope. `off` ends the rules that it names. If a host or QP does not exist, the command is refused
 * with a message that says which ones do.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "softhca/device/memory/fault_rule.h"
#include "softhca/kernel/faults.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"
#include "softhca_kernel.h"

#define ANY SH_FAULT_ANY

static struct sh_status st;

static int ask(struct kt *t, uint32_t kind, uint32_t from, uint32_t to, uint32_t qpn, uint32_t rate,
	       uint32_t count)
{
	const struct sh_fault_msg m = {.type = SH_MSG_FAULT,
				       .kind = kind,
				       .from = from,
				       .to = to,
				       .qpn = qpn,
				       .rate = rate,
				       .count = count};

	fault_set(&t->k, &m, &st);
	if (st.error)
		assert_true(st.text[0]);
	return st.error;
}

/* Sets or ends faults; whether the answer says that there was nothing to end. */
static bool in_vain(struct kt *t, uint32_t kind, uint32_t from, uint32_t to, uint32_t rate)
{
	assert_int_equal(ask(t, kind, from, to, ANY, rate, 0), 0);
	if (st.text[0])
		assert_non_null(strstr(st.text, "nothing was ended"));
	return st.text[0];
}

/* The one rule of this scope, or NULL. */
static struct sh_fault_rule *rule(struct kt *t, uint32_t kind, uint32_t from, uint32_t to,
				  uint32_t qpn)
{
	const struct sh_fault_scope scope = {kind, from, to, qpn};
	struct sh_fault_rule *found = NULL;

	for (uint32_t i = 0; i < SH_FAULT_RULES; i++) {
		struct sh_fault_rule *r = &t->k.dev.inst->faults.rule[i];

		if (r->scope != sh_fault_pack(&scope))
			continue;
		assert_null(found);
		found = r;
	}
	return found;
}

static void rates(struct kt *t, uint32_t whole, uint32_t from0, uint32_t link)
{
	assert_int_equal(rule(t, SH_FAULT_DROP, ANY, ANY, ANY)->rate, whole);
	assert_int_equal(rule(t, SH_FAULT_DROP, 0, ANY, ANY)->rate, from0);
	assert_int_equal(rule(t, SH_FAULT_DROP, 0, 1, ANY)->rate, link);
	assert_int_equal(t->k.dev.inst->faults.active, whole || from0 || link);
}

static void scopes(void **state)
{
	struct kt *t = kt_start(SH_FACE_MAINLINE, 2, 1);

	(void)state;
	assert_int_equal(ask(t, SH_FAULT_DROP, ANY, ANY, ANY, 1, 0), 0);
	assert_int_equal(ask(t, SH_FAULT_DROP, 0, ANY, ANY, 2, 0), 0);
	assert_int_equal(ask(t, SH_FAULT_DROP, 0, 1, ANY, 3, 0), 0);
	rates(t, 1, 2, 3);
	/* Each rule is replaced, and ended, on its own. */
	assert_int_equal(ask(t, SH_FAULT_DROP, 0, ANY, ANY, 22, 0), 0);
	rates(t, 1, 22, 3);
	assert_int_equal(ask(t, SH_FAULT_DROP, ANY, ANY, ANY, 0, 0), 0);
	rates(t, 0, 22, 3);
	assert_int_equal(ask(t, SH_FAULT_DROP, 0, 1, ANY, 0, 0), 0);
	rates(t, 0, 22, 0);
	/* `off` ends every kind of its scope. */
	assert_int_equal(ask(t, SH_FAULT_CORRUPT, 0, ANY, ANY, 5, 0), 0);
	assert_int_equal(ask(t, SH_FAULT_CORRUPT, 1, ANY, ANY, 5, 0), 0);
	assert_int_equal(ask(t, SH_FAULT_OFF, 0, ANY, ANY, 0, 0), 0);
	assert_int_equal(rule(t, SH_FAULT_DROP, 0, ANY, ANY)->rate, 0);
	assert_int_equal(rule(t, SH_FAULT_CORRUPT, 0, ANY, ANY)->rate, 0);
	assert_int_equal(rule(t, SH_FAULT_CORRUPT, 1, ANY, ANY)->rate, 5);
	/* A rule that is not set can be ended. */
	assert_int_equal(ask(t, SH_FAULT_OFF, 1, 0, ANY, 0, 0), 0);
	assert_int_equal(ask(t, SH_FAULT_DELAY, 1, 0, ANY, 0, 0), 0);
	assert_null(rule(t, SH_FAULT_DELAY, 1, 0, ANY));
	assert_int_equal(t->k.dev.inst->faults.active, 1);
	assert_int_equal(ask(t, SH_FAULT_OFF, ANY, ANY, ANY, 0, 0), 0);
	for (uint32_t i = 0; i < SH_FAULT_RULES; i++)
		assert_false(t->k.dev.inst->faults.rule[i].rate ||
			     t->k.dev.inst->faults.rule[i].count);
	assert_int_equal(t->k.dev.inst->faults.active, 0);
	kt_stop(t);
}

/*
 * Ending what is not set is no failure, since the instance is as it was to be. But it may be a slip
 * of the caller, so the answer says it.
 */
static void nothing_to_end(void **state)
{
	struct kt *t = kt_start(SH_FACE_MAINLINE, 2, 1);

	(void)state;
	assert_true(in_vain(t, SH_FAULT_OFF, ANY, ANY, 0));
	assert_non_null(strstr(st.text, "no fault is set"));
	assert_false(in_vain(t, SH_FAULT_DROP, 0, ANY, 1));
	/* The kind, or the scope, is another one. */
	assert_true(in_vain(t, SH_FAULT_DELAY, 0, ANY, 0));
	assert_non_null(strstr(st.text, "no delay is set with exactly these"));
	assert_true(in_vain(t, SH_FAULT_DROP, ANY, ANY, 0));
	assert_non_null(strstr(st.text, "no drop is set without"));
	assert_true(in_vain(t, SH_FAULT_OFF, 1, ANY, 0));
	assert_non_null(strstr(st.text, "no fault is set with exactly these"));
	assert_true(in_vain(t, SH_FAULT_CM_DROP, 0, ANY, 0));
	assert_non_null(strstr(st.text, "no cm-drop is set"));
	assert_false(in_vain(t, SH_FAULT_DROP, 0, ANY, 0));
	assert_true(in_vain(t, SH_FAULT_DROP, 0, ANY, 0));
	/* off ends faults of all kinds, also where packets have none. */
	assert_false(in_vain(t, SH_FAULT_CM_DROP, 0, 1, 1));
	assert_false(in_vain(t, SH_FAULT_OFF, 0, 1, 0));
	assert_true(in_vain(t, SH_FAULT_OFF, 0, 1, 0));
	assert_false(in_vain(t, SH_FAULT_CM_DROP, ANY, ANY, 1));
	assert_false(in_vain(t, SH_FAULT_CM_DROP, ANY, ANY, 0));
	assert_false(in_vain(t, SH_FAULT_CM_DROP, ANY, ANY, 1));
	assert_false(in_vain(t, SH_FAULT_OFF, ANY, ANY, 0));
	kt_stop(t);
}

static void names(void **state)
{
	struct kt *t = kt_start(SH_FACE_MAINLINE, 2, 1);
	struct kctx *ctx = kt_open(t, 0);
	struct kt_queue cq, qp;
	char list[64];
	uint32_t pd;

	(void)state;
	assert_int_equal(ask(t, SH_FAULT_DROP, 7, ANY, ANY, 1, 0), ENOENT);
	assert_non_null(strstr(st.text, "no host7: the instance has host0 to host1"));
	assert_int_equal(ask(t, SH_FAULT_DROP, 0, 2, ANY, 1, 0), ENOENT);
	assert_int_equal(ask(t, SH_FAULT_OFF, 2, ANY, ANY, 0, 0), ENOENT);
	assert_int_equal(ask(t, SH_FAULT_DROP, ANY, ANY, 0x48, 1, 0), ENOENT);
	assert_int_equal(ask(t, SH_FAULT_DROP, ANY, ANY, 0x1000048, 1, 0), EINVAL);
	assert_int_equal(ask(t, SH_FAULT_KINDS, ANY, ANY, ANY, 1, 0), EINVAL);
	assert_int_equal(ask(t, SH_FAULT_DROP, ANY, ANY, ANY, 1000001, 0), EINVAL);
	assert_int_equal(t->k.dev.inst->faults.active, 0);

	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	assert_int_equal(kt_cq(t, ctx, 10, -1, &cq), 0);
	assert_int_equal(kt_qp(t, ctx, UV_QPT_RC, pd, cq.handle, -1, &qp), 0);
	assert_int_equal(ask(t, SH_FAULT_DROP, ANY, ANY, qp.number, 1, 0), 0);
	assert_int_equal(ask(t, SH_FAULT_DROP, 1, ANY, qp.number, 1, 0), 0);
	assert_int_equal(ask(t, SH_FAULT_DROP, 1, 0, qp.number, 1, 0), 0);
	/* The QP is at neither end: both are host1. */
	assert_int_equal(ask(t, SH_FAULT_DROP, 1, 1, qp.number, 1, 0), ENOENT);
	assert_int_equal(ask(t, SH_FAULT_DROP, ANY, ANY, qp.number + 1, 1, 0), ENOENT);
	snprintf(list, sizeof(list), "there are 0x%06x (host0 mlx4_0)", qp.number);
	assert_string_equal(strstr(st.text, "there are"), list);
	/* A rule can be ended when its QP no longer exists. */
	assert_int_equal(kt_destroy(t, ctx, UV_DESTROY_QP, qp.handle), 0);
	assert_int_equal(ask(t, SH_FAULT_DROP, ANY, ANY, qp.number, 2, 0), ENOENT);
	assert_int_equal(rule(t, SH_FAULT_DROP, ANY, ANY, qp.number)->rate, 1);
	assert_int_equal(ask(t, SH_FAULT_DROP, ANY, ANY, qp.number, 0, 0), 0);
	assert_int_equal(rule(t, SH_FAULT_DROP, ANY, ANY, qp.number)->rate, 0);
	assert_int_equal(ask(t, SH_FAULT_OFF, 1, ANY, qp.number, 0, 0), 0);
	assert_int_equal(rule(t, SH_FAULT_DROP, 1, ANY, qp.number)->rate, 0);
	kt_queue_free(&qp);
	kt_queue_free(&cq);
	kt_stop(t);
}

/*
 * There is room for sixteen rules with a scope. A rule that is used up makes room for another one.
 */
static void room(void **state)
{
	struct kt *t = kt_start(SH_FACE_MAINLINE, 32, 1);
	struct sh_faults *f = &t->k.dev.inst->faults;

	(void)state;
	for (uint32_t host = 0; host < SH_FAULT_SCOPED; host++)
		assert_int_equal(ask(t, SH_FAULT_DROP, host, ANY, ANY, 1, 0), 0);
	assert_int_equal(ask(t, SH_FAULT_DROP, 30, ANY, ANY, 1, 0), ENOSPC);
	assert_non_null(strstr(st.text, "off"));
	/*
	 * Rules for the whole fabric have places of their own, and a rule that is set can be
	 * changed.
	 */
	for (uint32_t kind = 0; kind < SH_FAULT_KINDS; kind++)
		assert_int_equal(ask(t, kind, ANY, ANY, ANY, 1, 0),
				 kind == SH_FAULT_LIMIT ? EINVAL : 0);
	assert_int_equal(ask(t, SH_FAULT_DROP, 3, ANY, ANY, 0, 9), 0);
	assert_int_equal(rule(t, SH_FAULT_DROP, 3, ANY, ANY)->count, 9);
	rule(t, SH_FAULT_DROP, 3, ANY, ANY)->count = 0;
	rule(t, SH_FAULT_DROP, 3, ANY, ANY)->done = 9;
	assert_int_equal(ask(t, SH_FAULT_DROP, 30, ANY, ANY, 1, 0), 0);
	assert_null(rule(t, SH_FAULT_DROP, 3, ANY, ANY));
	assert_int_equal(rule(t, SH_FAULT_DROP, 30, ANY, ANY)->done, 0);
	assert_int_equal(ask(t, SH_FAULT_DROP, 31, ANY, ANY, 1, 0), ENOSPC);
	assert_int_equal(f->active, 1);
	kt_stop(t);
}

static int ask_link(struct kt *t, uint32_t kind, const char *from, const char *to)
{
	struct sh_fault_msg m = {
		.type = SH_MSG_FAULT, .kind = kind, .from = ANY, .to = ANY, .qpn = ANY, .rate = 1};

	strcpy(m.from_address, from);
	strcpy(m.to_address, to);
	fault_set(&t->k, &m, &st);
	assert_int_equal(!!st.error, !!st.text[0]);
	return st.error;
}

/* Ends of a link that are named by their addresses. */
static void addresses(void **state)
{
	struct kt *t = kt_start(SH_FACE_MAINLINE, 1, 1);
	struct sh_fault_msg m = {.type = SH_MSG_FAULT};

	(void)state;
	assert_int_equal(ask_link(t, SH_FAULT_DROP, "", "10.1.2.7"), EINVAL);
	assert_non_null(strstr(st.text, "no wire"));
	t->k.cfg.device.wire = (struct sh_wire_config){.n = 1,
						       .network = sh_ip4(0x0a010200),
						       .prefix = 24,
						       .last_lid = 254,
						       .address = {sh_ip4(0x0a010203)}};
	assert_int_equal(ask_link(t, SH_FAULT_DROP, "", "10.1.2.7"), 0);
	assert_int_equal(rule(t, SH_FAULT_DROP, ANY, SH_FAULT_FAR | 7, ANY)->rate, 1);
	/* The instance's own is its host. */
	assert_int_equal(ask_link(t, SH_FAULT_DELAY, "10.1.2.3", "10.1.2.7"), 0);
	assert_int_equal(rule(t, SH_FAULT_DELAY, 0, SH_FAULT_FAR | 7, ANY)->rate, 1);
	assert_int_equal(ask_link(t, SH_FAULT_DROP, "10.1.2.7", ""), 0);
	assert_int_equal(rule(t, SH_FAULT_DROP, SH_FAULT_FAR | 7, ANY, ANY)->rate, 1);
	assert_int_equal(ask_link(t, SH_FAULT_DROP, "", "10.1.3.7"), ENOENT);
	assert_non_null(strstr(st.text, "10.1.3.7 is neither in the network"));
	assert_int_equal(ask_link(t, SH_FAULT_DROP, "", "10.1.2"), EINVAL);
	/* What comes is not held back, and does not go on elsewhere. */
	assert_int_equal(ask_link(t, SH_FAULT_JITTER, "10.1.2.7", ""), EINVAL);
	assert_int_equal(ask_link(t, SH_FAULT_DUPLICATE, "10.1.2.7", ""), EINVAL);
	assert_int_equal(ask_link(t, SH_FAULT_CM_DROP, "10.1.2.7", ""), EINVAL);
	assert_int_equal(ask_link(t, SH_FAULT_PARTITION, "10.1.2.7", ""), 0);
	assert_int_equal(ask_link(t, SH_FAULT_DROP, "10.1.2.7", "10.1.2.8"), EINVAL);
	t->k.cfg.device.wire = (struct sh_wire_config){.n = 1,
						       .network = {0xfd00000100000000, 0},
						       .prefix = 64,
						       .last_lid = 1022,
						       .address = {{0xfd00000100000000, 3}}};
	assert_int_equal(ask_link(t, SH_FAULT_DROP, "fd00:1::3", "fd00:1::9"), 0);
	assert_int_equal(rule(t, SH_FAULT_DROP, 0, SH_FAULT_FAR | 9, ANY)->rate, 1);
	assert_int_equal(ask_link(t, SH_FAULT_DROP, "", "10.1.2.7"), ENOENT);
	/* Text without an end. */
	memset(m.to_address, '1', sizeof(m.to_address));
	m.from = m.to = m.qpn = ANY;
	fault_set(&t->k, &m, &st);
	assert_int_equal(st.error, EINVAL);
	t->k.cfg.device.wire.n = 0;
	kt_stop(t);
}

static void seeds(void **state)
{
	struct kt *t = kt_start(SH_FACE_MAINLINE, 2, 1);
	struct sh_fault_msg m = {.type = SH_MSG_FAULT,
				 .kind = SH_FAULT_SEED,
				 .from = ANY,
				 .to = ANY,
				 .qpn = ANY,
				 .seed = 4711};
	struct sh_fault_rule *whole, *from1;

	(void)state;
	fault_set(&t->k, &m, &st);
	assert_int_equal(st.error, 0);
	assert_int_equal(ask(t, SH_FAULT_DROP, ANY, ANY, ANY, 1, 0), 0);
	m = (struct sh_fault_msg){.type = SH_MSG_FAULT,
				  .kind = SH_FAULT_DELAY,
				  .from = 1,
				  .to = ANY,
				  .qpn = ANY,
				  .rate = 1,
				  .delay_ns = 5000,
				  .seeded = 1,
				  .seed = 12};
	fault_set(&t->k, &m, &st);
	assert_int_equal(st.error, 0);
	whole = rule(t, SH_FAULT_DROP, ANY, ANY, ANY);
	from1 = rule(t, SH_FAULT_DELAY, 1, ANY, ANY);
	assert_int_equal(whole->seed, 4711);
	assert_int_equal(from1->seed, 12);
	assert_int_equal(from1->delay_ns, 5000);
	assert_int_equal(rule(t, SH_FAULT_DELAY, ANY, ANY, ANY)->delay_ns, 100000);
	/* A rule that is set again starts its random choices anew. Its delay stays. */
	from1->drawn = 33;
	m.delay_ns = 0;
	fault_set(&t->k, &m, &st);
	assert_int_equal(from1->drawn, 0);
	assert_int_equal(from1->delay_ns, 5000);
	/* A seed that is set alone counts for all rules. */
	from1->drawn = whole->drawn = 33;
	m.kind = SH_FAULT_SEED;
	fault_set(&t->k, &m, &st);
	assert_int_equal(whole->seed, 12);
	assert_int_equal(from1->seed, 12);
	assert_int_equal(whole->drawn + from1->drawn, 0);
	kt_stop(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scopes), cmocka_unit_test(nothing_to_end), cmocka_unit_test(names),
		cmocka_unit_test(room),	  cmocka_unit_test(addresses),	    cmocka_unit_test(seeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
