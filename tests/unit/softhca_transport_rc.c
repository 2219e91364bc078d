// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: RC and XRC carry every operation at every size that matters, with the right contents
 * and completions.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_pair.h"
#include "softhca/device/memory/mr.h"

static const uint32_t types[] = {SH_QPT_RC, SH_QPT_XRC, SH_QPT_XRC_INI};
static const uint32_t sizes[] = {0,	   1,	     28,	TMTU - 1,      TMTU,
				 TMTU + 1, 3 * TMTU, 16 * TMTU, 17 * TMTU + 5, TMEM / 2};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void received(struct tpair *p, uint8_t opcode, uint16_t index, uint32_t len, uint32_t imm)
{
	struct mlx4_cqe cqe;

	assert_true(tcq_poll(&p->bcq[1], &cqe));
	assert_int_equal(cqe.owner_sr_opcode & 0x7f, opcode);
	assert_int_equal(be32toh((uint32_t)cqe.vlan_my_qpn), p->b.qpn);
	assert_int_equal(be16toh((uint16_t)cqe.wqe_index), index);
	assert_int_equal(be32toh((uint32_t)cqe.byte_cnt), len);
	assert_int_equal(be32toh((uint32_t)cqe.immed_rss_invalid), imm);
	assert_int_equal(be32toh((uint32_t)cqe.g_mlpath_rqpn),
			 p->b.type == SH_QPT_RC ? 0 : p->srq.srqn);
}

static void sent(struct tpair *p, uint8_t opcode, uint16_t index, uint32_t count)
{
	struct mlx4_cqe cqe;

	assert_true(tcq_poll(&p->acq[0], &cqe));
	assert_int_equal(cqe.owner_sr_opcode & 0x7f, opcode | 0x40);
	assert_int_equal(be32toh((uint32_t)cqe.vlan_my_qpn), p->a.qpn);
	assert_int_equal(be16toh((uint16_t)cqe.wqe_index), index);
	assert_int_equal(be32toh((uint32_t)cqe.byte_cnt), count);
	assert_int_equal((uint32_t)cqe.g_mlpath_rqpn, 0);
}

/*
 * How much of device memory the process has mapped: all; none at first; or none, and it cannot map
 * more.
 */
enum reach { REACH_ALL, REACH_GROWS, REACH_NONE };

static void every_op_reaching(const struct tpair_opts *o, enum reach reach)
{
	struct tpair p;
	uint16_t n = 0, r = 0;

	tpair_open(&p, o);
	if (reach != REACH_ALL) {
		p.m->dev.pool_end = p.m->dev.pool_off;
		p.m->dev.shared_end = p.m->dev.shared_off;
	}
	p.m->no_room = reach == REACH_NONE;
	p.m->extends = 0;
	for (unsigned int s = 0; s < COUNT(sizes); s++) {
		uint32_t len = sizes[s];
		struct twr wr;

		tfill(p.amem, TMEM, s + 1);
		memset(p.bmem, 0xaa, TMEM);
		tpair_recv(&p, 4096, len + 8);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, len);
		tqp_send(&p.a, &wr);
		sent(&p, MLX4_OPCODE_SEND, n++, 0);
		received(&p, MLX4_CQE_RECV_SEND, r++, len, 0);
		assert_memory_equal(p.bmem + 4096, p.amem, len);
		assert_int_equal(p.bmem[4096 + len], 0xaa);

		tpair_recv(&p, 100, len);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND_IMM, len);
		wr.imm = 0xcafe0000 + s;
		tqp_send(&p.a, &wr);
		sent(&p, MLX4_OPCODE_SEND_IMM, n++, 0);
		received(&p, MLX4_CQE_RECV_SEND_IMM, r++, len, 0xcafe0000 + s);
		assert_memory_equal(p.bmem + 100, p.amem, len);

		memset(p.bmem, 0xaa, TMEM);
		wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, len);
		wr.raddr += 3;
		tqp_send(&p.a, &wr);
		sent(&p, MLX4_OPCODE_RDMA_WRITE, n++, 0);
		assert_memory_equal(p.bmem + 3, p.amem, len);
		assert_int_equal(p.bmem[2], 0xaa);
		assert_int_equal(p.bmem[3 + len], 0xaa);
		texpect_none(&p.bcq[1]);

		memset(p.bmem, 0xaa, TMEM);
		tpair_recv(&p, TMEM - 16, 16);
		wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE_IMM, len);
		wr.imm = 77 + s;
		tqp_send(&p.a, &wr);
		sent(&p, MLX4_OPCODE_RDMA_WRITE_IMM, n++, 0);
		received(&p, MLX4_CQE_RECV_RDMA_WRITE_IMM, r++, len, 77 + s);
		assert_memory_equal(p.bmem, p.amem, len);
		assert_int_equal(p.bmem[TMEM - 1], 0xaa);

		tfill(p.bmem, TMEM, s + 1000);
		memset(p.amem, 0x55, TMEM);
		wr = tpair_wr(&p, MLX4_OPCODE_RDMA_READ, len);
		wr.raddr += 7;
		tqp_send(&p.a, &wr);
		sent(&p, MLX4_OPCODE_RDMA_READ, n++, len);
		assert_memory_equal(p.amem, p.bmem + 7, len);
		assert_int_equal(p.amem[len], 0x55);
	}
	texpect_none(&p.acq[0]);
	texpect_none(&p.acq[1]);
	texpect_none(&p.bcq[0]);
	texpect_none(&p.bcq[1]);
	assert_int_equal(p.m->extends > 0, reach == REACH_GROWS && !o->private_memory);
	p.m->no_room = false;
	tpair_close(&p);
}

static void every_op(const struct tpair_opts *o)
{
	every_op_reaching(o, REACH_ALL);
}

/*
 * The queues and the memory of peers are in device memory that this process has not mapped yet, or
 * cannot map.
 */
static void test_reach(void **state)
{
	(void)state;
	for (unsigned int t = 0; t < COUNT(types); t++)
		for (enum reach reach = REACH_GROWS; reach <= REACH_NONE; reach++)
			every_op_reaching(&(struct tpair_opts){.type = types[t]}, reach);
	every_op_reaching(&(struct tpair_opts){.type = SH_QPT_RC, .srq = true}, REACH_NONE);
}

static void test_every_op(void **state)
{
	(void)state;
	for (unsigned int t = 0; t < COUNT(types); t++)
		for (int how = 0; how < 4; how++) {
			struct tpair_opts o = {
				.type = types[t], .same_hca = how & 1, .private_memory = how & 2};

			every_op(&o);
		}
	every_op(&(struct tpair_opts){.type = SH_QPT_RC, .srq = true});
}

/* The PSN wraps at 2^24 in the middle of a message. */
static void test_psn_wrap(void **state)
{
	(void)state;
	for (unsigned int t = 0; t < COUNT(types); t++)
		for (uint32_t before = 0; before < 4; before++)
			every_op(&(struct tpair_opts){.type = types[t], .psn = 0xffffff - before});
}

static void test_atomics(void **state)
{
	(void)state;
	for (unsigned int t = 0; t < COUNT(types); t++) {
		struct tpair p;
		uint64_t *target, *result;
		struct twr wr;

		tpair_open(&p, &(struct tpair_opts){.type = types[t]});
		target = (uint64_t *)(p.bmem + 64);
		result = (uint64_t *)(p.amem + 8);
		*target = 0xfffffffffffffff0;
		wr = tpair_wr(&p, MLX4_OPCODE_ATOMIC_FA, 8);
		wr.sge[0].addr = result;
		wr.raddr += 64;
		wr.swap_add = 0x20;
		tqp_send(&p.a, &wr);
		sent(&p, MLX4_OPCODE_ATOMIC_FA, 0, 8);
		assert_int_equal(*target, 0x10);
		assert_int_equal(*result, 0xfffffffffffffff0);

		wr.opcode = MLX4_OPCODE_ATOMIC_CS;
		wr.compare = 0x11;
		wr.swap_add = 5;
		tqp_send(&p.a, &wr);
		sent(&p, MLX4_OPCODE_ATOMIC_CS, 1, 8);
		assert_int_equal(*target, 0x10);
		assert_int_equal(*result, 0x10);

		wr.compare = 0x10;
		tqp_send(&p.a, &wr);
		sent(&p, MLX4_OPCODE_ATOMIC_CS, 2, 8);
		assert_int_equal(*target, 5);
		assert_int_equal(*result, 0x10);
		tpair_close(&p);
	}
}

static void test_gather_scatter(void **state)
{
	struct tpair p;
	struct twr wr;
	struct tsge sge[4];
	uint8_t *b;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	b = p.bmem;
	tfill(p.amem, TMEM, 9);
	for (int i = 0; i < 4; i++)
		sge[i] = (struct tsge){b + 10000 * i, i == 1 ? 0 : 700 * (i + 1), p.bkey};
	tqp_recv(&p.b, sge, 4);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 1);
	wr.nsge = 5;
	for (int i = 0; i < 5; i++)
		wr.sge[i] = (struct tsge){p.amem + 5000 * i, i == 2 ? 0 : 333 * (i + 1), p.akey};
	tqp_send(&p.a, &wr);
	sent(&p, MLX4_OPCODE_SEND, 0, 0);
	received(&p, MLX4_CQE_RECV_SEND, 0, 333 + 666 + 1332 + 1665, 0);
	/* 700 bytes, then 2100, then the rest */
	assert_memory_equal(b, p.amem, 333);
	assert_memory_equal(b + 333, p.amem + 5000, 367);
	assert_memory_equal(b + 20000, p.amem + 5000 + 367, 299);
	assert_memory_equal(b + 20000 + 299, p.amem + 15000, 1332);
	assert_memory_equal(b + 20000 + 299 + 1332, p.amem + 20000, 469);
	assert_memory_equal(b + 30000, p.amem + 20000 + 469, 1665 - 469);
	assert_int_equal(b[10000], 0);

	wr.opcode = MLX4_OPCODE_RDMA_READ;
	wr.raddr = (uintptr_t)b + 20000;
	tqp_send(&p.a, &wr);
	sent(&p, MLX4_OPCODE_RDMA_READ, 1, 333 + 666 + 1332 + 1665);
	assert_memory_equal(p.amem, b + 20000, 333);
	assert_memory_equal(p.amem + 20000, b + 20000 + 333 + 666 + 1332, 1665);
	tpair_close(&p);
}

static void test_inline(void **state)
{
	(void)state;
	for (uint32_t len = 0; len <= 220; len++) {
		struct tpair p;
		struct twr wr;

		tpair_open(&p, &(struct tpair_opts){.type = len & 1 ? SH_QPT_RC : SH_QPT_XRC});
		tfill(p.amem, 512, len);
		tpair_recv(&p, 0, 512);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, len);
		wr.inlined = true;
		wr.sge[0].key = 0xbad;
		if (len > 3) {
			wr.nsge = 2;
			wr.sge[0].len = 3;
			wr.sge[1] = (struct tsge){p.amem + 3, len - 3, 0};
		}
		tqp_post(&p.a, &wr);
		memset(wr.sge[0].addr, 0, wr.sge[0].len);
		tqp_ring(&p.a);
		sent(&p, MLX4_OPCODE_SEND, 0, 0);
		received(&p, MLX4_CQE_RECV_SEND, 0, len, 0);
		tfill(p.amem, 512, len);
		assert_memory_equal(p.bmem, p.amem, len);
		tpair_close(&p);
	}
}

/*
 * One doorbell for several WQEs, some of them unsignaled, with NOPs between them. There are more
 * than the queue has slots.
 */
static void test_many(void **state)
{
	struct tpair p;
	uint32_t n = 0;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	for (int round = 0; round < 40; round++) {
		struct twr wr = tpair_wr(&p, MLX4_OPCODE_SEND, 64),
			   nop = {.opcode = MLX4_OPCODE_NOP};

		for (int i = 0; i < 8; i++) {
			tpair_recv(&p, i * 64, 64);
			wr.signaled = i % 3 == 0;
			wr.sge[0].addr = p.amem + i * 64;
			tqp_post(&p.a, &wr);
			nop.signaled = i == 5;
			tqp_post(&p.a, &nop);
		}
		tfill(p.amem, 512, round);
		tqp_ring(&p.a);
		for (int i = 0; i < 8; i++) {
			if (i % 3 == 0)
				sent(&p, MLX4_OPCODE_SEND, n, 0);
			if (i == 5)
				sent(&p, MLX4_OPCODE_NOP, n + 1, 0);
			received(&p, MLX4_CQE_RECV_SEND, round * 8 + i, 64, 0);
			n += 2;
		}
		assert_memory_equal(p.bmem, p.amem, 512);
	}
	texpect_none(&p.acq[0]);
	tpair_close(&p);
}

/* Both ends of OFED's XRC QPs send and receive. */
static void test_bidirectional_xrc(void **state)
{
	struct mock_config cfg = {.hcas_per_host = 2};
	struct mock *m = mock_new(&cfg);
	struct tcq cq[2];
	struct tsrq srq[2];
	struct tqp qp[2];
	uint32_t ctx[2];
	static uint8_t mem[2][4096] __attribute__((aligned(4096)));
	struct mlx4_cqe cqe;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct topts o = {.no_rq = true, .xrcd = 3 + i};

		ctx[i] = mock_ctx(m, i);
		tcq_open(&cq[i], m, i, ctx[i], 0x80, 4);
		tsrq_open(&srq[i], m, i, ctx[i], 4, 0x70 + i, 3 + i, 0x80);
		tqp_open(&qp[i], m, i, ctx[i], 4, SH_QPT_XRC, 0x800048 + i, &cq[i], &cq[i], &o);
		mock_map(m, ctx[i], mem[i], 4096);
		assert_int_equal(sh_mr_create(&m->daemon, i, 0x1000, ctx[i], 4, (uintptr_t)mem[i],
					      4096, 0xf),
				 0);
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct sh_qp_attr attr = tqp_attr(tlid(m, !i), qp[!i].qpn);

		tqp_up(&qp[i], &attr);
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct tsge to = {mem[!i] + 2048, 100, 0x1000};
		struct twr wr = {.opcode = MLX4_OPCODE_SEND,
				 .signaled = true,
				 .srqn = srq[!i].srqn,
				 .nsge = 1,
				 .sge = {{mem[i], 100, 0x1000}}};

		tfill(mem[i], 100, i);
		tsrq_post(&srq[!i], &to, 1);
		tqp_send(&qp[i], &wr);
		texpect(&cq[i], MLX4_OPCODE_SEND, true, 0);
		assert_true(tcq_poll(&cq[!i], &cqe));
		assert_int_equal(be32toh((uint32_t)cqe.vlan_my_qpn), qp[!i].qpn);
		assert_int_equal(be32toh((uint32_t)cqe.g_mlpath_rqpn), srq[!i].srqn);
		assert_memory_equal(mem[!i] + 2048, mem[i], 100);
	}
	mock_free(m);
}

/* The event comes with the solicited message, and not before. */
static void test_solicited(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	tcq_arm(&p.bcq[1], true);
	for (int i = 0; i < 4; i++)
		tpair_recv(&p, 0, 16);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 16);
	tqp_send(&p.a, &wr);
	assert_int_equal(mock_records(p.m, p.bcq[1].evq), 0);
	wr.solicited = true;
	wr.opcode = MLX4_OPCODE_RDMA_WRITE;
	tqp_send(&p.a, &wr);
	assert_int_equal(mock_records(p.m, p.bcq[1].evq), 0);
	wr.opcode = MLX4_OPCODE_RDMA_WRITE_IMM;
	tqp_send(&p.a, &wr);
	assert_int_equal(mock_records(p.m, p.bcq[1].evq), 1);
	tcq_arm(&p.bcq[1], true);
	wr.opcode = MLX4_OPCODE_SEND;
	tqp_send(&p.a, &wr);
	assert_int_equal(mock_records(p.m, p.bcq[1].evq), 2);
	tpair_close(&p);
}

/* Two SRQs behind one receive QP. The WQE's SRQ number chooses between them. */
static void test_two_srqs(void **state)
{
	struct tpair p;
	struct tsrq other;
	struct tcq cq;
	struct mlx4_cqe cqe;
	struct tsge to;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_XRC});
	tcq_open(&cq, p.m, p.b.hca, p.b.ctx, 0x99, 4);
	tsrq_open(&other, p.m, p.b.hca, p.b.ctx, p.b.pdn, 0x61, 9, 0x99);
	to = (struct tsge){p.bmem + 8192, 64, p.bkey};
	for (int i = 0; i < 10; i++) {
		struct twr wr = tpair_wr(&p, MLX4_OPCODE_SEND, 64);
		struct tcq *to_cq = i % 3 ? &cq : &p.bcq[1];

		tfill(p.amem, 64, i);
		if (i % 3)
			tsrq_post(&other, &to, 1);
		else
			tpair_recv(&p, 0, 64);
		wr.srqn = i % 3 ? 0x61 : 0x60;
		tqp_send(&p.a, &wr);
		assert_true(tcq_poll(to_cq, &cqe));
		assert_int_equal(be32toh((uint32_t)cqe.g_mlpath_rqpn), wr.srqn);
		assert_memory_equal(p.bmem + (i % 3 ? 8192 : 0), p.amem, 64);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, i);
		texpect_none(&cq);
		texpect_none(&p.bcq[1]);
	}
	tpair_close(&p);
}

/* A QP that is connected to itself. */
static void test_self(void **state)
{
	struct tpair p;
	struct twr wr;
	struct sh_qp_attr attr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC, .unconnected = true});
	attr = tqp_attr(tlid(p.m, 0), p.a.qpn);
	tqp_up(&p.a, &attr);
	tfill(p.amem, 4096, 1);
	tqp_recv(&p.a, &(struct tsge){p.amem + 8192, 4096, p.akey}, 1);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 4096);
	tqp_send(&p.a, &wr);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	texpect(&p.acq[1], MLX4_CQE_RECV_SEND, false, 0);
	assert_memory_equal(p.amem + 8192, p.amem, 4096);
	wr.opcode = MLX4_OPCODE_RDMA_READ;
	wr.raddr = (uintptr_t)p.amem;
	wr.rkey = p.akey;
	wr.sge[0].addr = p.amem + 20000;
	tqp_send(&p.a, &wr);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_READ, true, 1);
	assert_memory_equal(p.amem + 20000, p.amem, 4096);
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_op),       cmocka_unit_test(test_reach),
		cmocka_unit_test(test_psn_wrap),       cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_gather_scatter), cmocka_unit_test(test_inline),
		cmocka_unit_test(test_many),	       cmocka_unit_test(test_bidirectional_xrc),
		cmocka_unit_test(test_solicited),      cmocka_unit_test(test_two_srqs),
		cmocka_unit_test(test_self),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
