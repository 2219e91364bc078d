// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what is left to the wire's engine, packets of strangers, faults of the links to
 * other instances, and ports that go down.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_wire_rig.h"
#include "softhca/device/memory/fault_rule.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/transport/fault.h"
#include "softhca/device/transport/timer.h"

/* A process that is not the engine sends nothing, and asks the engine to go on. */
static void test_left(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	p.m->dev.wire = NULL;
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 3000);
	tfill(p.amem, TMEM, 9);
	/* The engine has not come yet. */
	tqp_send(&p.a, &wr);
	assert_int_equal(queue.sent, 0);
	p.m->inst->wire.proc = 5;
	tqp_ring(&p.a);
	assert_int_equal(queue.sent, 0);
	assert_int_equal(p.m->shared->wakes[5], 1);
	mock_advance(p.m, 3000 * MS);
	texpect_none(&p.acq[0]);
	p.m->dev.wire = &ops;
	p.m->dev.proc = 5;
	assert_true(sh_enter(&p.m->dev));
	sh_wire_begin(&p.m->dev);
	sh_leave(&p.m->dev);
	assert_int_equal(queue.sent, 3);
	pump(&p);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
	assert_memory_equal(p.bmem, p.amem, 3000);
	p.m->dev.proc = 1;
	tpair_close(&p);
}

static const struct sh_host_ops *host;
static const struct sh_qp *watched;
static unsigned int copies, unknown;

static enum sh_copy watch_copy(void *h, uint32_t dst_ctx, const struct sh_seg *dst,
			       unsigned int ndst, uint32_t src_ctx, const struct sh_seg *src,
			       unsigned int nsrc, uint64_t len)
{
	copies++;
	unknown += watched->engine && watched->engine != watched->wire_engine;
	return host->copy(h, dst_ctx, dst, ndst, src_ctx, src, nsrc, len);
}

/*
 * Whenever the wire's engine is killed, the QP says that the engine had it. Here it has a datagram
 * that stays in the instance, in front of one that leaves.
 */
static void test_token(void **state)
{
	struct sh_host_ops with;
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_UD, .private_memory = true});
	host = p.m->dev.ops;
	with = *host;
	with.copy = watch_copy;
	p.m->dev.ops = &with;
	watched = tqp_ctx(&p.a);
	copies = unknown = 0;
	tpair_recv(&p, 0, 4096);
	tpair_recv(&p, 4096, 4096);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 1000);
	tqp_post(&p.a, &wr);
	wr.dlid = B_FAR;
	tqp_post(&p.a, &wr);
	tqp_ring(&p.a);
	pump(&p);
	assert_true(copies > 0);
	assert_int_equal(unknown, 0);
	p.m->dev.ops = host;
	tpair_close(&p);
}

/* Only the peer is heard and answered. */
static void test_strangers(void **state)
{
	struct sh_counters *c;
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	c = &sh_hca(&p.m->dev, 1)->counters;
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100);
	tfill(p.amem, TMEM, 1);
	tqp_send(&p.a, &wr);
	assert_int_equal(queue.sent, 1);
	deliver(&p, queue.packet[0].bytes, queue.packet[0].n, B_FAR, A_FAR + 5);
	assert_int_equal(queue.sent, 1);
	assert_int_equal(c->drops_path, 1);
	deliver_one(&p);
	assert_int_equal(queue.sent, 2);
	/* The same of an answer. */
	deliver(&p, queue.packet[1].bytes, queue.packet[1].n, A_FAR, B_FAR + 5);
	texpect_none(&p.acq[0]);
	assert_int_equal(sh_hca(&p.m->dev, 0)->counters.drops_path, 1);
	deliver_one(&p);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
	tpair_close(&p);
}

/* Faults of one link: what leaves for one port, or comes from it. */
static void test_faults_of_links(void **state)
{
	static const struct sh_fault_scope scopes[] = {
		{SH_FAULT_DROP, 0, SH_FAULT_FAR | B_FAR, SH_FAULT_ANY},
		{SH_FAULT_DROP, SH_FAULT_FAR | A_FAR, SH_FAULT_ANY, SH_FAULT_ANY},
		{SH_FAULT_CORRUPT, SH_FAULT_FAR | A_FAR, SH_FAULT_ANY, SH_FAULT_ANY},
		{SH_FAULT_PARTITION, SH_FAULT_ANY, SH_FAULT_FAR | A_FAR, SH_FAULT_ANY},
		{SH_FAULT_DROP, 0, SH_FAULT_FAR | (B_FAR + 1), SH_FAULT_ANY},
		{SH_FAULT_DROP, SH_FAULT_FAR | (A_FAR + 5), SH_FAULT_ANY, SH_FAULT_ANY},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		bool lost = i < 4;
		struct sh_fault_rule *rule;
		struct tpair p;
		struct twr wr;

		open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
		rule = &p.m->inst->faults.rule[SH_FAULT_KINDS];
		rule->scope = sh_fault_pack(&scopes[i]);
		rule->rate = SH_FAULT_MILLION;
		p.m->inst->faults.active = SH_ACTIVE_FAULTS;
		wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100);
		tfill(p.amem, TMEM, 1);
		tqp_send(&p.a, &wr);
		pump(&p);
		assert_int_equal(rule->done > 0, lost);
		assert_int_equal(memcmp(p.amem, p.bmem, 100) != 0, lost);
		rule->rate = 0;
		p.m->inst->faults.active = 0;
		mock_advance(p.m, 300 * MS);
		pump(&p);
		texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
		tpair_close(&p);
	}
}

/* The seed by which a rule lets its first packet through, and hits the second one. */
static uint32_t seed_for(const struct sh_fault_rule *rule)
{
	for (uint32_t seed = 0;; seed++) {
		struct sh_fault_rule r = {.seed = seed};

		if (sh_fault_draw(&r, rule->scope) >= rule->rate &&
		    sh_fault_draw(&r, rule->scope) < rule->rate)
			return seed;
	}
}

/* A thread that is thrown while it executes a packet does not draw what becomes of it once more. */
static void test_fate_of_thrown(void **state)
{
	const struct sh_fault_scope scope = {SH_FAULT_DROP, SH_FAULT_FAR | A_FAR, SH_FAULT_ANY,
					     SH_FAULT_ANY};
	struct sh_fault_rule *rule;
	unsigned int before = thrown;
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	rule = &p.m->inst->faults.rule[SH_FAULT_KINDS];
	rule->scope = sh_fault_pack(&scope);
	rule->rate = SH_FAULT_MILLION / 2;
	rule->seed = seed_for(rule);
	p.m->inst->faults.active = SH_ACTIVE_FAULTS;
	/* The first packet is the request, the second one its answer. */
	queue.throw = 2;
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100);
	tfill(p.amem, TMEM, 1);
	tqp_send(&p.a, &wr);
	deliver_one(&p);
	if (sh_self.catches)
		assert_int_equal(thrown, before + 1);
	assert_int_equal(rule->drawn, 1);
	assert_int_equal(rule->done, 0);
	assert_int_equal(sh_hca(&p.m->dev, 1)->counters.drops_fault, 0);
	p.m->inst->faults.active = 0;
	pump(&p);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
	assert_memory_equal(p.amem, p.bmem, 100);
	tpair_close(&p);
}

/*
 * One message of each operation, whose packets arrive out of order, late, or one after the other.
 */
static void test_late_links(void **state)
{
	static const uint32_t kinds[] = {SH_FAULT_JITTER, SH_FAULT_REORDER, SH_FAULT_LIMIT};

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		for (unsigned int k = 0; k < 3; k++) {
			struct sh_fault_rule *rule;
			struct tpair p;
			struct twr wr;

			open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
			rule = &p.m->inst->faults.rule[kinds[k]];
			rule->seed = 7;
			rule->bits = 100000000;
			rule->rate = kinds[k] == SH_FAULT_LIMIT ? SH_FAULT_MILLION : 300000;
			p.m->inst->faults.active = SH_ACTIVE_FAULTS;
			tfill(i == 3 ? p.bmem : p.amem, TMEM, 7);
			tpair_recv(&p, 0, TMEM);
			wr = tpair_wr(&p, opcodes[i], 100000);
			tqp_send(&p.a, &wr);
			for (int step = 0; step < 4000; step++) {
				pump(&p);
				mock_advance(p.m, MS / 4);
			}
			texpect(&p.acq[0], opcodes[i], true, 0);
			assert_memory_equal(p.amem, p.bmem, 100000);
			assert_true(rule->done > 5);
			assert_int_equal(tqp_state(&p.a), SH_QPS_RTS);
			p.m->inst->faults.active = 0;
			tpair_close(&p);
		}
}

static void set_delay(struct tpair *p, uint64_t us)
{
	struct sh_fault_rule *rule = &p->m->inst->faults.rule[SH_FAULT_DELAY];

	rule->delay_ns = us * 1000;
	rule->rate = us ? SH_FAULT_MILLION : 0;
	p->m->inst->faults.active = us ? SH_ACTIVE_FAULTS : 0;
}

/*
 * What a fault holds back, a request or an answer, does not leave a port that is down meanwhile,
 * and is counted as what does not.
 */
static void test_port_goes_down(void **state)
{
	(void)state;
	for (unsigned int answer = 0; answer < 2; answer++) {
		struct sh_counters *c;
		struct tpair p;
		struct twr wr;

		open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
		c = &sh_hca(&p.m->dev, answer)->counters;
		wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100);
		tfill(p.amem, TMEM, 1);
		if (!answer)
			set_delay(&p, 2000);
		tqp_send(&p.a, &wr);
		if (answer) {
			set_delay(&p, 2000);
			deliver_one(&p);
		}
		assert_int_equal(queue.sent, answer);
		sh_hca(&p.m->dev, answer)->port[0].state = 1;
		mock_advance(p.m, 3 * MS);
		assert_int_equal(queue.sent, answer);
		assert_int_equal(c->drops_port, 1);
		sh_hca(&p.m->dev, answer)->port[0].state = 4;
		set_delay(&p, 0);
		mock_advance(p.m, 300 * MS);
		pump(&p);
		texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
		assert_memory_equal(p.amem, p.bmem, 100);
		tpair_close(&p);
	}
}

/* What comes to a port that is down is dropped, whatever its QP could do with it. */
static void test_port_is_down(void **state)
{
	struct sh_counters *c;
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	c = &sh_hca(&p.m->dev, 1)->counters;
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100);
	tfill(p.amem, TMEM, 1);
	tfill(p.bmem, TMEM, 2);
	tqp_send(&p.a, &wr);
	sh_hca(&p.m->dev, 1)->port[0].state = 1;
	deliver_one(&p);
	assert_int_equal(c->drops_port, 1);
	assert_int_equal(queue.sent, 1);
	assert_memory_not_equal(p.amem, p.bmem, 100);
	sh_hca(&p.m->dev, 1)->port[0].state = 4;
	mock_advance(p.m, 300 * MS);
	pump(&p);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
	assert_memory_equal(p.amem, p.bmem, 100);
	tpair_close(&p);
}

/* A packet that finds no room beside those that are held back is lost, and comes again later. */
static void test_no_room_to_hold(void **state)
{
	const size_t all = (size_t)256 << 20;
	struct sh_counters *c;
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	c = &sh_hca(&p.m->dev, 0)->counters;
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100);
	tfill(p.amem, TMEM, 1);
	set_delay(&p, 2000);
	assert_true(sh_held_take(all));
	tqp_send(&p.a, &wr);
	assert_int_equal(c->drops_fault, 1);
	sh_held_give(all);
	mock_advance(p.m, 3 * MS);
	assert_int_equal(queue.sent, 0);
	mock_advance(p.m, 300 * MS);
	pump(&p);
	mock_advance(p.m, 3 * MS);
	pump(&p);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
	assert_memory_equal(p.amem, p.bmem, 100);
	/* All has been given back. */
	set_delay(&p, 0);
	assert_true(sh_held_take(all));
	sh_held_give(all);
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_token),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_faults_of_links),
		cmocka_unit_test(test_fate_of_thrown),
		cmocka_unit_test(test_late_links),
		cmocka_unit_test(test_port_goes_down),
		cmocka_unit_test(test_port_is_down),
		cmocka_unit_test(test_no_room_to_hold),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
