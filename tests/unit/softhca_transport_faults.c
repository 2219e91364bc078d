// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a fault that names hosts or a QP hits their packets and no others, in the direction
 * that it names. Which packets a rule hits depends only on its seed and on its own packets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softhca/device/queues/qp.h"
#include "softhca/device/transport/fault.h"
#include "softhca/device/transport/mcast.h"
#include "softhca_pair.h"

#define ANY   SH_FAULT_ANY
#define AQPN  0x48
#define BQPN  0x51
#define FIRST SH_FAULT_KINDS /* the first rule that may have a scope */

/* QP a on host 0, QP b on host 1. */
static void open_hosts(struct tpair *p, uint32_t type)
{
	tpair_open(p, &(struct tpair_opts){.type = type});
	assert_int_equal(p->a.qpn, AQPN);
	assert_int_equal(p->b.qpn, BQPN);
	sh_hca(&p->m->dev, 1)->host = 1;
}

static struct sh_fault_rule *set(struct tpair *p, uint32_t at, struct sh_fault_scope scope,
				 uint32_t rate, uint32_t count)
{
	struct sh_fault_rule *rule = &p->m->inst->faults.rule[at];

	rule->scope = sh_fault_pack(&scope);
	rule->rate = rate;
	rule->count = count;
	rule->delay_ns = 100000;
	sh_faults_settle(&p->m->inst->faults);
	return rule;
}

static struct sh_counters counters(struct tpair *p, uint32_t hca)
{
	struct sh_counters c;

	sh_counters(&p->m->daemon, hca, &c);
	return c;
}

/* Packets that came to host 1 as they were sent. */
static uint64_t arrived(struct tpair *p)
{
	return counters(p, 1).rcv_packets - counters(p, 1).drops_icrc;
}

/* A message and its acknowledgement: which of the two, if any, does the rule drop? */
static void test_direction(void **state)
{
	enum lost { NONE, REQUEST, ACK };
	static const struct {
		struct sh_fault_scope scope;
		enum lost lost;
	} cases[] = {
		{{SH_FAULT_DROP, 0, ANY, ANY}, REQUEST},
		{{SH_FAULT_DROP, 1, ANY, ANY}, ACK},
		{{SH_FAULT_DROP, ANY, 1, ANY}, REQUEST},
		{{SH_FAULT_DROP, ANY, 0, ANY}, ACK},
		{{SH_FAULT_DROP, 0, 1, ANY}, REQUEST},
		{{SH_FAULT_DROP, 1, 0, ANY}, ACK},
		{{SH_FAULT_DROP, 0, 0, ANY}, NONE},
		{{SH_FAULT_DROP, 1, 1, ANY}, NONE},
		{{SH_FAULT_DROP, 2, ANY, ANY}, NONE},
		{{SH_FAULT_DROP, ANY, 2, ANY}, NONE},
		{{SH_FAULT_DROP, ANY, ANY, AQPN}, REQUEST},
		{{SH_FAULT_DROP, ANY, ANY, BQPN}, REQUEST},
		{{SH_FAULT_DROP, ANY, ANY, 0x52}, NONE},
		{{SH_FAULT_DROP, ANY, ANY, 0}, NONE},
		{{SH_FAULT_DROP, 1, ANY, AQPN}, ACK},
		{{SH_FAULT_DROP, 0, 1, BQPN}, REQUEST},
		{{SH_FAULT_DROP, 0, 1, 0x52}, NONE},
		{{SH_FAULT_DROP, 1, 1, AQPN}, NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sh_fault_rule *rule;
		struct tpair p;
		struct twr wr;

		open_hosts(&p, SH_QPT_RC);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
		rule = set(&p, FIRST, cases[i].scope, 0, 1);
		tpair_recv(&p, 0, 100);
		tqp_send(&p.a, &wr);
		/*
		 * The request arrives now, unless it was lost: then it arrives when it is sent
		 * again.
		 */
		if (cases[i].lost == REQUEST)
			texpect_none(&p.bcq[1]);
		else
			texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
		if (cases[i].lost != NONE)
			texpect_none(&p.acq[0]);
		mock_advance(p.m, 1000000000);
		if (cases[i].lost == REQUEST)
			texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
		texpect_none(&p.bcq[1]);
		assert_int_equal(counters(&p, 0).drops_fault, cases[i].lost == ACK);
		assert_int_equal(counters(&p, 1).drops_fault, cases[i].lost == REQUEST);
		assert_int_equal(counters(&p, 0).retries, cases[i].lost != NONE);
		assert_int_equal(counters(&p, 1).duplicates, cases[i].lost == ACK);
		assert_int_equal(rule->done, cases[i].lost != NONE);
		assert_int_equal(p.m->inst->faults.active, cases[i].lost == NONE);
		tpair_close(&p);
	}
}

/* A rule with a scope does to its packets what a rule of that kind for the whole fabric does. */
static void test_kinds(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < SH_FAULT_LIMIT; kind++) {
		bool late = kind == SH_FAULT_DELAY || kind == SH_FAULT_JITTER ||
			    kind == SH_FAULT_REORDER;
		struct tpair p;
		struct twr wr;

		open_hosts(&p, SH_QPT_UC);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
		set(&p, FIRST, (struct sh_fault_scope){kind, 1, ANY, ANY}, 0, 1);
		set(&p, FIRST + 1, (struct sh_fault_scope){kind, 0, 1, AQPN}, 0, 1);
		tpair_recv(&p, 0, 100);
		tqp_send(&p.a, &wr);
		assert_int_equal(counters(&p, 1).drops_fault, kind == SH_FAULT_DROP);
		assert_int_equal(counters(&p, 1).drops_icrc, kind == SH_FAULT_CORRUPT);
		assert_int_equal(arrived(&p), kind == SH_FAULT_DUPLICATE ? 2 : 0);
		mock_advance(p.m, 100000);
		assert_int_equal(arrived(&p), kind == SH_FAULT_DUPLICATE ? 2 : late ? 1 : 0);
		/* The rule for packets from host 1 still waits for one. */
		assert_int_equal(p.m->inst->faults.rule[FIRST].count, 1);
		assert_int_equal(p.m->inst->faults.rule[FIRST + 1].done, 1);
		tpair_close(&p);
	}
}

struct rules {
	struct sh_fault_scope scope[2];
	uint32_t rate[2], at[2], seed;
	uint32_t others; /* packets of b between those of a */
};

/* Returns which of 50 packets of a are lost, a bit for each. */
static uint64_t losses(const struct rules *r)
{
	uint64_t lost = 0;
	struct tpair p;
	struct twr wr, back;

	open_hosts(&p, SH_QPT_UC);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
	back = wr;
	back.sge[0] = (struct tsge){p.bmem, 100, p.bkey};
	for (int i = 0; i < 2; i++)
		if (r->rate[i])
			set(&p, r->at[i], r->scope[i], r->rate[i], 0)->seed = r->seed;
	for (int i = 0; i < 50; i++) {
		uint64_t before = arrived(&p);
		struct mlx4_cqe cqe;

		tqp_send(&p.a, &wr);
		assert_true(tcq_poll(&p.acq[0], &cqe));
		lost |= (uint64_t)(arrived(&p) == before) << i;
		for (uint32_t n = 0; n < r->others; n++) {
			tqp_send(&p.b, &back);
			assert_true(tcq_poll(&p.bcq[0], &cqe));
		}
	}
	if (r->others)
		assert_int_equal(counters(&p, 0).drops_fault, 0);
	tpair_close(&p);
	return lost;
}

static void test_seed(void **state)
{
	const struct sh_fault_scope drop_a = {SH_FAULT_DROP, 0, ANY, ANY};
	const struct sh_fault_scope drop_qp = {SH_FAULT_DROP, ANY, ANY, AQPN};
	const struct sh_fault_scope all = {SH_FAULT_CORRUPT, ANY, ANY, ANY};
	struct rules r = {{drop_a}, {400000}, {FIRST, SH_FAULT_CORRUPT}, 7, 0};
	uint64_t one = losses(&r), both, other;

	(void)state;
	assert_in_range(__builtin_popcountll(one), 5, 40);
	assert_true(losses(&r) == one);
	/* The place of the rule and the other packets do not matter. */
	r.at[0] = FIRST + 9;
	r.others = 3;
	assert_true(losses(&r) == one);
	r.others = 0;
	/* Another seed, and another scope, choose other packets. */
	r.seed = 8;
	assert_true(losses(&r) != one);
	r.seed = 7;
	r.scope[0] = drop_qp;
	other = losses(&r);
	assert_true(other != one);
	/* Two rules together hit what each of them hits alone. */
	r = (struct rules){{drop_a, drop_qp}, {400000, 400000}, {FIRST, FIRST + 1}, 7, 0};
	assert_true(losses(&r) == (one | other));
	r = (struct rules){{all}, {300000}, {SH_FAULT_CORRUPT}, 7, 0};
	other = losses(&r);
	r = (struct rules){{drop_a, all}, {400000, 300000}, {FIRST, SH_FAULT_CORRUPT}, 7, 0};
	both = losses(&r);
	assert_true(both == (one | other) && both != one && both != other);
}

/*
 * A QP's own rule takes the QP's next packets, although another rule drops every packet of the
 * fabric.
 */
static void test_scope_first(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	open_hosts(&p, SH_QPT_UC);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
	set(&p, SH_FAULT_DROP, (struct sh_fault_scope){SH_FAULT_DROP, ANY, ANY, ANY}, 1000000, 0);
	set(&p, FIRST + 15, (struct sh_fault_scope){SH_FAULT_CORRUPT, ANY, ANY, BQPN}, 0, 2);
	for (int i = 0; i < 3; i++) {
		tqp_send(&p.a, &wr);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, i);
		assert_int_equal(counters(&p, 1).drops_icrc, i < 2 ? i + 1 : 2);
		assert_int_equal(counters(&p, 1).drops_fault, i < 2 ? 0 : 1);
		assert_int_equal(p.m->inst->faults.active, 1);
	}
	tpair_close(&p);
}

/*
 * A group is not a host: a rule for packets to a host does not hit its packets, a rule for their
 * sender does.
 */
static void test_multicast(void **state)
{
	static const struct {
		struct sh_fault_scope scope;
		bool lost;
	} cases[] = {
		{{SH_FAULT_DROP, 0, ANY, ANY}, true},  {{SH_FAULT_DROP, ANY, ANY, AQPN}, true},
		{{SH_FAULT_DROP, ANY, 1, ANY}, false}, {{SH_FAULT_DROP, ANY, 0, ANY}, false},
		{{SH_FAULT_DROP, 1, ANY, ANY}, false},
	};
	uint8_t gid[16] = {0xff, 0x12, [15] = 1};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mlx4_cqe cqe;
		struct tpair p;
		struct twr wr;

		open_hosts(&p, SH_QPT_UD);
		assert_int_equal(sh_mcast_attach(&p.m->daemon, 1, gid, p.b.qpn), 0);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
		wr.dqpn = 0xffffff;
		wr.dlid = 0xc001;
		wr.grh = true;
		memcpy(wr.dgid, gid, sizeof(gid));
		tpair_recv(&p, 0, 200);
		set(&p, FIRST, cases[i].scope, 0, 1);
		tqp_send(&p.a, &wr);
		assert_int_equal(tcq_poll(&p.bcq[1], &cqe), !cases[i].lost);
		tpair_close(&p);
	}
}

/*
 * A client has overwritten the rules with arbitrary hosts, QPs and times. Requests still complete.
 */
static void test_overwritten(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	open_hosts(&p, SH_QPT_UC);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
	for (uint32_t i = 0; i < SH_FAULT_RULES; i++)
		memset(&p.m->inst->faults.rule[i], 0xff, sizeof(p.m->inst->faults.rule[i]));
	p.m->inst->faults.active = UINT32_MAX;
	for (int i = 0; i < 10; i++) {
		tqp_send(&p.a, &wr);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, i);
	}
	/* A delay lasts a minute at most. */
	for (uint32_t i = 0; i < SH_FAULT_RULES; i++)
		p.m->inst->faults.rule[i].scope = 0;
	set(&p, FIRST, (struct sh_fault_scope){SH_FAULT_DELAY, ANY, ANY, ANY}, 0, 1)->delay_ns =
		UINT64_MAX;
	tpair_recv(&p, 0, 100);
	tqp_send(&p.a, &wr);
	texpect_none(&p.bcq[1]);
	mock_advance(p.m, SH_FAULT_DELAY_MAX);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	tpair_close(&p);
}

/* ---- kinds with rules of their own ---- */

#define MS UINT64_C(1000000)

static struct sh_met meet(struct tpair *p, uint32_t from, uint32_t to, uint32_t bytes)
{
	const struct sh_way way = {from, to, AQPN, BQPN, bytes, false, false};
	struct sh_met met;

	sh_fate(&p->m->dev, &way, &met);
	return met;
}

/* Each packet waits for a time that the seed chooses. */
static void test_jitter(void **state)
{
	struct sh_fault_rule *rule;
	uint64_t first[50];
	uint32_t differ = 0;
	struct tpair p;

	(void)state;
	open_hosts(&p, SH_QPT_RC);
	for (uint32_t seed = 1; seed <= 3; seed++) {
		uint64_t sum = 0;

		rule = set(&p, FIRST, (struct sh_fault_scope){SH_FAULT_JITTER, 0, ANY, ANY},
			   SH_FAULT_MILLION, 0);
		rule->seed = seed == 2 ? 1 : seed;
		rule->drawn = 0;
		for (int i = 0; i < 50; i++) {
			struct sh_met met = meet(&p, 0, 1, 100);

			assert_int_equal(met.fate, SH_FAULT_DELAY);
			assert_true(met.delay_ns < rule->delay_ns);
			sum += met.delay_ns;
			if (seed == 1)
				first[i] = met.delay_ns;
			else if (seed == 2)
				assert_int_equal(met.delay_ns, first[i]);
			else
				differ += met.delay_ns != first[i];
		}
		assert_in_range(sum, 50 * rule->delay_ns / 4, 50 * rule->delay_ns * 3 / 4);
	}
	assert_true(differ > 25);
	/* The next packets, too. */
	set(&p, FIRST, (struct sh_fault_scope){SH_FAULT_JITTER, 0, ANY, ANY}, 0, 2);
	assert_int_equal(meet(&p, 0, 1, 100).fate, SH_FAULT_DELAY);
	assert_int_equal(meet(&p, 0, 1, 100).fate, SH_FAULT_DELAY);
	assert_int_equal(meet(&p, 0, 1, 100).fate, SH_FAULT_KINDS);
	tpair_close(&p);
}

/* A packet that is held back goes when the next one has passed, or when its time is over. */
static void test_reorder(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	for (int alone = 0; alone < 2; alone++) {
		struct sh_counters c;

		open_hosts(&p, SH_QPT_RC);
		set(&p, FIRST, (struct sh_fault_scope){SH_FAULT_REORDER, 0, ANY, ANY}, 0, 1)
			->delay_ns = 3 * MS;
		tfill(p.amem, 4096, 1);
		tpair_recv(&p, 0, 1000);
		tpair_recv(&p, 1000, 1000);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 1000);
		tqp_send(&p.a, &wr);
		texpect_none(&p.acq[0]);
		if (!alone) {
			wr.sge[0].addr = p.amem + 1000;
			tqp_send(&p.a, &wr);
		}
		mock_advance(p.m, 3 * MS - 1);
		if (alone) {
			texpect_none(&p.acq[0]);
			mock_advance(p.m, 1);
			texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
		} else {
			for (uint16_t i = 0; i < 2; i++) {
				struct mlx4_cqe cqe;

				assert_true(tcq_poll(&p.acq[0], &cqe));
				assert_int_equal(be16toh((uint16_t)cqe.wqe_index), i);
			}
			assert_memory_equal(p.bmem, p.amem, 2000);
		}
		c = counters(&p, 1);
		assert_int_equal(c.out_of_sequence, !alone);
		assert_int_equal(p.m->inst->faults.rule[FIRST].done, 1);
		mock_advance(p.m, 1000 * MS);
		assert_int_equal(tqp_state(&p.a), SH_QPS_RTS);
		tpair_close(&p);
	}
}

/* 10 Mbit/s are a millisecond for 1250 bytes. */
static void test_limit(void **state)
{
	struct sh_fault_rule *rule;
	struct sh_met met;
	struct tpair p;

	(void)state;
	open_hosts(&p, SH_QPT_RC);
	rule = set(&p, FIRST, (struct sh_fault_scope){SH_FAULT_LIMIT, 0, 1, ANY}, SH_FAULT_MILLION,
		   0);
	rule->bits = 10000000;
	rule->delay_ns = 3 * MS;
	assert_int_equal(meet(&p, 0, 1, 1250).fate, SH_FAULT_KINDS);
	for (uint64_t i = 1; i <= 3; i++) {
		met = meet(&p, 0, 1, 1250);
		assert_int_equal(met.fate, SH_FAULT_DELAY);
		assert_int_equal(met.delay_ns, i * MS);
	}
	/* The queue is full. Another link is not slowed. */
	assert_int_equal(meet(&p, 0, 1, 1250).fate, SH_FAULT_DROP);
	assert_int_equal(meet(&p, 1, 0, 1250).fate, SH_FAULT_KINDS);
	mock_advance(p.m, MS);
	met = meet(&p, 0, 1, 12);
	assert_int_equal(met.fate, SH_FAULT_DELAY);
	assert_int_equal(met.delay_ns, 3 * MS);
	mock_advance(p.m, 10 * MS);
	assert_int_equal(meet(&p, 0, 1, 1250).fate, SH_FAULT_KINDS);
	/* What is delayed anyway, waits here first. */
	set(&p, FIRST + 1, (struct sh_fault_scope){SH_FAULT_DELAY, 0, 1, ANY}, 0, 1);
	met = meet(&p, 0, 1, 1250);
	assert_int_equal(met.fate, SH_FAULT_DELAY);
	assert_int_equal(met.delay_ns, MS + 100000);
	assert_int_equal(rule->done, 6);
	tpair_close(&p);
}

/* What has arrived: the lengths of messages, in this order, and nothing else. */
static void expect_lengths(struct tpair *p, const uint32_t *len, unsigned int n)
{
	struct mlx4_cqe cqe;

	for (unsigned int i = 0; i < n; i++) {
		assert_true(tcq_poll(&p->bcq[1], &cqe));
		assert_int_equal(be32toh(cqe.byte_cnt), len[i]);
	}
	assert_false(tcq_poll(&p->bcq[1], &cqe));
}

static void send_length(struct tpair *p, uint32_t len)
{
	struct twr wr = tpair_wr(p, MLX4_OPCODE_SEND, len);

	if (!len)
		wr.nsge = 0;
	tqp_send(&p->a, &wr);
}

/*
 * No packet overtakes another one on a link with a limit: neither while the one before it is being
 * copied, nor when the link is free again but the helper thread has not sent that one yet, nor when
 * a new rate frees the link.
 */
static void test_limit_order(void **state)
{
	enum { SLOW_COPY, LATE_HELPER, NEW_RATE };
	static const uint32_t len[] = {1000, 100, 0};

	(void)state;
	for (int kind = SLOW_COPY; kind <= NEW_RATE; kind++) {
		struct sh_fault_rule *rule;
		struct tpair p;

		open_hosts(&p, SH_QPT_UC);
		rule = set(&p, FIRST, (struct sh_fault_scope){SH_FAULT_LIMIT, 0, 1, ANY},
			   SH_FAULT_MILLION, 0);
		rule->bits = 10000000;
		rule->delay_ns = 20 * MS;
		for (int i = 0; i < 3; i++)
			tpair_recv(&p, (uint32_t)i * 1000, 1000);
		send_length(&p, len[0]);
		expect_lengths(&p, len, 1);
		/*
		 * The second one leaves after 835 us, and then the link is free after another 115.
		 */
		p.m->copy_ns = kind == SLOW_COPY ? MS / 2 : 0;
		send_length(&p, len[1]);
		p.m->copy_ns = 0;
		if (kind == LATE_HELPER)
			p.m->shared->now += 10 * MS;
		if (kind == NEW_RATE)
			rule->free_at = 0;
		send_length(&p, len[2]);
		expect_lengths(&p, NULL, 0);
		mock_advance(p.m, kind == LATE_HELPER ? 0 : 10 * MS);
		expect_lengths(&p, len + 1, 2);
		assert_int_equal(counters(&p, 1).out_of_sequence, 0);
		assert_int_equal(rule->done, kind == SLOW_COPY ? 2 : 1);
		/* Then nothing waits, and the next one goes at once. */
		mock_advance(p.m, MS);
		tpair_recv(&p, 0, 1000);
		send_length(&p, len[0]);
		expect_lengths(&p, len, 1);
		tpair_close(&p);
	}
}

/*
 * A packet that leaves twice waits behind those before it, and takes the link's time twice. A
 * message of one packet arrives twice over UC.
 */
static void test_limit_twice(void **state)
{
	static const uint32_t len[] = {1000, 100, 80, 80, 60};
	struct sh_fault_rule *rule;
	struct tpair p;

	(void)state;
	open_hosts(&p, SH_QPT_UC);
	rule = set(&p, FIRST, (struct sh_fault_scope){SH_FAULT_LIMIT, 0, 1, ANY}, SH_FAULT_MILLION,
		   0);
	rule->bits = 10000000;
	rule->delay_ns = 20 * MS;
	for (int i = 0; i < 5; i++)
		tpair_recv(&p, (uint32_t)i * 1000, 1000);
	send_length(&p, len[0]);
	send_length(&p, len[1]);
	set(&p, FIRST + 1, (struct sh_fault_scope){SH_FAULT_DUPLICATE, 0, 1, ANY}, 0, 1);
	send_length(&p, len[2]);
	send_length(&p, len[4]);
	expect_lengths(&p, len, 1);
	mock_advance(p.m, 10 * MS);
	expect_lengths(&p, len + 1, 4);
	/* The packet that is doubled has been sent once, and is received twice. */
	assert_int_equal(sh_hca(&p.m->dev, 0)->traffic[0].xmit_packets, 4);
	assert_int_equal(sh_hca(&p.m->dev, 1)->traffic[0].rcv_packets, 5);
	tpair_close(&p);
}

/*
 * Two limits: a packet waits for both links, and none overtakes one that has waited longer for the
 * other.
 */
static void test_two_limits(void **state)
{
	struct sh_fault_rule *slow, *busy;
	struct tpair p;
	uint64_t last;

	(void)state;
	open_hosts(&p, SH_QPT_UC);
	slow = set(&p, FIRST, (struct sh_fault_scope){SH_FAULT_LIMIT, 0, 1, ANY}, SH_FAULT_MILLION,
		   0);
	busy = set(&p, FIRST + 1, (struct sh_fault_scope){SH_FAULT_LIMIT, ANY, 1, ANY},
		   SH_FAULT_MILLION, 0);
	slow->bits = 10000000;
	busy->bits = 10000000000;
	slow->delay_ns = busy->delay_ns = 20 * MS;
	slow->free_at = busy->free_at = p.m->shared->now + 10 * MS;
	last = p.m->shared->now + meet(&p, 0, 1, 12).delay_ns;
	assert_int_equal(last, p.m->shared->now + 10 * MS);
	p.m->shared->now += 9 * MS;
	assert_true(p.m->shared->now + meet(&p, 0, 1, 12).delay_ns > last);
	tpair_close(&p);
}

static void test_partition(void **state)
{
	static const struct {
		uint32_t from, to; /* of the rule */
		uint32_t a, b;	   /* of the packet, and the way back */
		bool cut;
	} cases[] = {
		{0, 1, 0, 1, true},
		{1, 0, 0, 1, true},
		{0, ANY, 0, 1, true},
		{ANY, 1, 0, 1, true},
		{ANY, ANY, 0, 1, true},
		{ANY, ANY, 1, 1, false},
		{0, ANY, 0, 0, false},
		{2, ANY, 0, 1, false},
		{0, 2, 0, 1, false},
		{0, SH_FAULT_FAR | 7, 0, SH_FAULT_FAR | 7, true},
		{ANY, SH_FAULT_FAR | 7, 0, SH_FAULT_FAR | 8, false},
		{0, ANY, 0, SH_FAULT_FAR | 1000, true},
	};
	struct tpair p;

	(void)state;
	open_hosts(&p, SH_QPT_RC);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t fate = cases[i].cut ? SH_FAULT_DROP : SH_FAULT_KINDS;
		struct sh_met met;

		set(&p, FIRST,
		    (struct sh_fault_scope){SH_FAULT_PARTITION, cases[i].from, cases[i].to, ANY},
		    SH_FAULT_MILLION, 0);
		assert_int_equal(meet(&p, cases[i].a, cases[i].b, 9).fate, fate);
		assert_int_equal(meet(&p, cases[i].b, cases[i].a, 9).fate, fate);
		assert_int_equal(sh_partitioned(&p.m->dev, cases[i].a, cases[i].b), cases[i].cut);
		/* What has come over the wire, too. */
		assert_int_equal(sh_fate(&p.m->dev,
					 &(struct sh_way){cases[i].b, cases[i].a, AQPN, BQPN, 9,
							  true, false},
					 &met),
				 fate);
	}
	tpair_close(&p);
}

/* Ends on the wire. What comes meets the rules that name its sender, and no others. */
static void test_far(void **state)
{
	const struct sh_fault_scope old = {SH_FAULT_DELAY, 3, 255, 0x4b};
	struct sh_met met;
	struct tpair p;

	(void)state;
	/* Seeds choose by this word: what earlier versions could say has the same one. */
	assert_int_equal(sh_fault_pack(&old),
			 UINT64_C(1) << 63 | 0x4c << 20 | 256 << 11 | 4 << 2 | 1);
	for (uint32_t lid = 0; lid < 1024; lid++)
		for (uint32_t kind = 0; kind < SH_FAULT_KINDS; kind++) {
			const struct sh_fault_scope a = {kind, SH_FAULT_FAR | lid, lid % 256, 5};
			const struct sh_fault_scope b = {kind, ANY, SH_FAULT_FAR | lid, ANY};
			struct sh_fault_scope c = sh_fault_unpack(sh_fault_pack(&a));
			struct sh_fault_scope d = sh_fault_unpack(sh_fault_pack(&b));

			assert_memory_equal(&a, &c, sizeof(a));
			assert_memory_equal(&b, &d, sizeof(b));
		}
	open_hosts(&p, SH_QPT_RC);
	set(&p, FIRST, (struct sh_fault_scope){SH_FAULT_DROP, 0, SH_FAULT_FAR | 513, ANY},
	    SH_FAULT_MILLION, 0);
	assert_int_equal(meet(&p, 0, SH_FAULT_FAR | 513, 9).fate, SH_FAULT_DROP);
	assert_int_equal(meet(&p, 0, SH_FAULT_FAR | 1, 9).fate, SH_FAULT_KINDS);
	assert_int_equal(meet(&p, 0, 1, 9).fate, SH_FAULT_KINDS);
	for (int named = 0; named < 2; named++) {
		const struct sh_way came = {SH_FAULT_FAR | 7, 0, ANY, BQPN, 9, true, false};

		set(&p, FIRST,
		    (struct sh_fault_scope){SH_FAULT_DROP, named ? SH_FAULT_FAR | 7 : ANY, 0, ANY},
		    SH_FAULT_MILLION, 0);
		assert_int_equal(sh_fate(&p.m->dev, &came, &met),
				 named ? SH_FAULT_DROP : SH_FAULT_KINDS);
	}
	tpair_close(&p);
}

/* A NAK that a rule drops is lost: the receiver is in ERR, and does not answer once more. */
static void test_nak_dropped(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	open_hosts(&p, SH_QPT_RC);
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100);
	wr.rkey++;
	set(&p, FIRST, (struct sh_fault_scope){SH_FAULT_DROP, 1, ANY, ANY}, 0, 1);
	tqp_send(&p.a, &wr);
	assert_int_equal(tqp_state(&p.b), SH_QPS_ERR);
	mock_advance(p.m, UINT64_C(10000000000));
	texpect_error(&p.acq[0], MLX4_SYNDROME_RETRY_EXC, true, 0);
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_direction),   cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_seed),	    cmocka_unit_test(test_scope_first),
		cmocka_unit_test(test_multicast),   cmocka_unit_test(test_overwritten),
		cmocka_unit_test(test_jitter),	    cmocka_unit_test(test_reorder),
		cmocka_unit_test(test_limit),	    cmocka_unit_test(test_limit_order),
		cmocka_unit_test(test_limit_twice), cmocka_unit_test(test_two_limits),
		cmocka_unit_test(test_partition),   cmocka_unit_test(test_far),
		cmocka_unit_test(test_nak_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
