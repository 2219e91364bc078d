// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a packet that is dropped is counted once, under the reason for it, at the HCA that
 * it was for. If there is no such HCA, the sender's counts it. A packet that cannot be delayed
 * leaves nothing behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softhca/device/queues/qp.h"
#include "softhca/device/transport/mcast.h"
#include "softhca_pair.h"

#define REASONS(name)                                                                              \
	name(no_qp) name(state) name(pkey) name(qkey) name(icrc) name(no_wqe) name(lid) name(port) \
		name(path) name(mcast) name(memory) name(fault)

enum reason {
#define NAME(reason) DROP_##reason,
	REASONS(NAME)
#undef NAME
		REASONS_END
};

struct drops {
	uint64_t n[2][REASONS_END]; /* by HCA */
};

static struct drops drops_of(struct mock *m)
{
	struct drops d;

	for (uint32_t hca = 0; hca < 2; hca++) {
		struct sh_counters c;

		sh_counters(&m->daemon, hca, &c);
#define NAME(reason) d.n[hca][DROP_##reason] = c.drops_##reason;
		REASONS(NAME)
#undef NAME
	}
	return d;
}

/* Asserts that exactly this has been counted since then. */
static void expect(struct mock *m, struct drops before, uint32_t hca, enum reason reason,
		   uint64_t n)
{
	struct drops now = drops_of(m);

	before.n[hca][reason] += n;
	assert_memory_equal(&before, &now, sizeof(now));
}

enum what {
	NO_LID,
	MY_PORT,
	PEER_PORT,
	NO_QP,
	STATE,
	PATH,
	PKEY,
	NO_WQE,
	WRONG_KEY,
	FORBIDDEN,
	TOO_LONG,
	FAULT_DROP,
	FAULT_CORRUPT,
	CASES
};

static void fault(struct mock *m, enum sh_fault_kind kind, uint32_t count)
{
	m->inst->faults.rule[kind].count = count;
	m->inst->faults.active = 1;
}

/* UC sends its packets once, and its responder does not answer. */
static void test_connected(void **state)
{
	static const struct {
		uint32_t hca;
		enum reason reason;
	} expected[CASES] = {
		[NO_LID] = {0, DROP_lid},	  [MY_PORT] = {0, DROP_port},
		[PEER_PORT] = {1, DROP_port},	  [NO_QP] = {1, DROP_no_qp},
		[STATE] = {1, DROP_state},	  [PATH] = {1, DROP_path},
		[PKEY] = {1, DROP_pkey},	  [NO_WQE] = {1, DROP_no_wqe},
		[WRONG_KEY] = {1, DROP_memory},	  [FORBIDDEN] = {1, DROP_memory},
		[TOO_LONG] = {1, DROP_memory},	  [FAULT_DROP] = {1, DROP_fault},
		[FAULT_CORRUPT] = {1, DROP_icrc},
	};

	(void)state;
	for (enum what what = 0; what < CASES; what++) {
		bool write = what == WRONG_KEY || what == FORBIDDEN;
		struct drops before;
		struct tpair p;
		struct twr wr;

		tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UC});
		wr = tpair_wr(&p, write ? MLX4_OPCODE_RDMA_WRITE : MLX4_OPCODE_SEND, 100);
		if (what != NO_WQE)
			tpair_recv(&p, 0, what == TOO_LONG ? 99 : 100);
		before = drops_of(p.m);
		if (what == NO_LID)
			tqp_ctx(&p.a)->path.dlid = 999;
		if (what == MY_PORT)
			sh_hca(&p.m->dev, 0)->port[0].state = 1;
		if (what == PEER_PORT)
			sh_hca(&p.m->dev, 1)->port[0].state = 1;
		if (what == NO_QP)
			tqp_ctx(&p.a)->dest_qpn = 0x4711;
		if (what == STATE)
			assert_int_equal(tqp_to(&p.b, SH_QPS_RESET), 0);
		if (what == PATH)
			tqp_ctx(&p.b)->path.dlid = 77;
		if (what == PKEY)
			sh_hca(&p.m->dev, 1)->port[0].pkey[0] = 0x8001;
		if (what == WRONG_KEY)
			wr.rkey = p.akey + 0x100;
		if (what == FORBIDDEN)
			tqp_ctx(&p.b)->access = 0;
		if (what == FAULT_DROP)
			fault(p.m, SH_FAULT_DROP, 1);
		if (what == FAULT_CORRUPT)
			fault(p.m, SH_FAULT_CORRUPT, 1);
		tqp_send(&p.a, &wr);
		texpect(&p.acq[0], wr.opcode, true, 0);
		texpect_none(&p.bcq[1]);
		expect(p.m, before, expected[what].hca, expected[what].reason, 1);
		tpair_close(&p);
	}
}

static void test_datagrams(void **state)
{
	uint8_t gid[16] = {0xff, 0x12, [15] = 1};

	(void)state;
	for (int how = 0; how < 6; how++) {
		struct drops before;
		struct tpair p;
		struct twr wr;

		tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UD});
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
		before = drops_of(p.m);
		if (how >= 2) {
			wr.dqpn = 0xffffff;
			wr.dlid = how == 3 ? 1 : 0xc001;
			wr.grh = how != 4;
			memcpy(wr.dgid, gid, sizeof(gid));
		}
		if (how >= 3)
			assert_int_equal(sh_mcast_attach(&p.m->daemon, 1, gid, p.b.qpn), 0);
		if (how == 0)
			wr.qkey++;
		if (how == 5)
			sh_hca(&p.m->dev, 1)->port[0].state = 1;
		tqp_send(&p.a, &wr);
		if (how == 0)
			expect(p.m, before, 1, DROP_qkey, 1);
		else if (how == 1)
			expect(p.m, before, 1, DROP_no_wqe, 1);
		else if (how < 5)
			expect(p.m, before, 0, DROP_mcast, 1);
		else
			expect(p.m, before, 1, DROP_port, 1);
		tpair_close(&p);
	}
}

/* ---- packets that cannot be delayed ---- */

static long in_use; /* blocks of malloc() that were not freed */

void *__real_malloc(size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void __wrap_free(void *p);

void *__wrap_malloc(size_t size)
{
	void *p = __real_malloc(size);

	in_use += p != NULL;
	return p;
}

void __wrap_free(void *p)
{
	in_use -= p != NULL;
	__real_free(p);
}

static void test_no_timers(void **state)
{
	struct drops before;
	struct tpair p;
	struct twr wr;
	long used;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UC});
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
	tpair_recv(&p, 0, 100);
	before = drops_of(p.m);
	fault(p.m, SH_FAULT_DELAY, 1);
	used = in_use;
	p.m->no_timers = true;
	tqp_send(&p.a, &wr);
	expect(p.m, before, 1, DROP_fault, 1);
	assert_int_equal(in_use, used);
	/*
	 * When there is room, the packet is delayed and then arrives. After that nothing is left
	 * either.
	 */
	p.m->no_timers = false;
	before = drops_of(p.m);
	fault(p.m, SH_FAULT_DELAY, 1);
	tqp_send(&p.a, &wr);
	texpect_none(&p.bcq[1]);
	assert_int_equal(in_use, used + 1);
	mock_advance(p.m, 1000000000);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	assert_int_equal(in_use, used);
	expect(p.m, before, 1, DROP_fault, 0);
	tpair_close(&p);
}

/*
 * If the timer of a QP could not be set, the QP goes on at the next doorbell instead of waiting for
 * ever.
 */
static void test_timer_again(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
	tpair_recv(&p, 0, 100);
	tpair_recv(&p, 0, 100);
	fault(p.m, SH_FAULT_DROP, 1);
	p.m->no_timers = true;
	tqp_send(&p.a, &wr);
	texpect_none(&p.acq[0]);
	p.m->no_timers = false;
	tqp_ring(&p.a);
	mock_advance(p.m, 1000000000);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	tpair_close(&p);
}

/* Returns which of the packets arrive, a bit for each. */
static uint64_t arrivals(uint32_t seed)
{
	uint64_t set = 0;
	struct tpair p;
	struct twr wr;

	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UC});
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
	p.m->inst->faults.rule[SH_FAULT_DROP].seed = seed;
	p.m->inst->faults.rule[SH_FAULT_DROP].rate = 400000;
	p.m->inst->faults.active = 1;
	for (int i = 0; i < 50; i++) {
		struct mlx4_cqe cqe;

		tpair_recv(&p, 0, 100);
		tqp_send(&p.a, &wr);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, i);
		set |= (uint64_t)tcq_poll(&p.bcq[1], &cqe) << i;
	}
	tpair_close(&p);
	return set;
}

/* The same seed chooses the same packets. */
static void test_seed(void **state)
{
	uint64_t one = arrivals(1), two = arrivals(2);

	(void)state;
	assert_true(one != two);
	assert_true(one == arrivals(1));
	assert_true(two == arrivals(2));
	assert_in_range(__builtin_popcountll(one), 10, 45);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connected), cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_no_timers), cmocka_unit_test(test_timer_again),
		cmocka_unit_test(test_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
