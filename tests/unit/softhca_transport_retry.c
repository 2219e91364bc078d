// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: waits and retries: receivers that are not ready; packets that are lost, delayed,
 * duplicated or corrupted; peers that are absent. Counters, limits and order; fences and draining
 * meanwhile.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_pair.h"
#include "softhca/device/memory/tables.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/queues/transitions.h"

#define MS UINT64_C(1000000)

enum { SQ_DRAINED = 5, PATH_MIG = 6 };

static void fault(struct mock *m, enum sh_fault_kind kind, uint32_t count, uint32_t rate)
{
	m->inst->faults.rule[kind].count = count;
	m->inst->faults.rule[kind].rate = rate;
	m->inst->faults.rule[SH_FAULT_DELAY].delay_ns = 100000;
	m->inst->faults.active = 1;
}

/* ---- receiver not ready ---- */

static void test_rnr_wait(void **state)
{
	static const uint32_t types[] = {SH_QPT_RC, SH_QPT_XRC};
	static const uint8_t ops[] = {MLX4_OPCODE_SEND, MLX4_OPCODE_RDMA_WRITE_IMM};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct tpair p;
		struct twr wr;

		tpair_open(&p, &(struct tpair_opts){.type = types[i & 1], .rnr_retry = 3});
		tfill(p.amem, 4096, 1);
		wr = tpair_wr(&p, ops[i >> 1], 3000);
		tqp_send(&p.a, &wr);
		tqp_send(&p.a, &wr);
		texpect_none(&p.acq[0]);
		/* Code 12 is 0.64 ms. The requester does nothing before that. */
		tpair_recv(&p, 0, 4096);
		mock_advance(p.m, 639999);
		texpect_none(&p.acq[0]);
		mock_advance(p.m, 2);
		texpect(&p.acq[0], ops[i >> 1], true, 0);
		assert_memory_equal(p.bmem, p.amem, 3000);
		/* Progress resets the counter: the second message may wait three times again. */
		mock_advance(p.m, 640000 * 2 + 10);
		texpect_none(&p.acq[0]);
		tpair_recv(&p, 0, 4096);
		mock_advance(p.m, 640000);
		texpect(&p.acq[0], ops[i >> 1], true, 1);
		mock_advance(p.m, 1000 * MS);
		texpect_none(&p.acq[0]);
		assert_int_equal(tqp_state(&p.a), SH_QPS_RTS);
		tpair_close(&p);
	}
}

static void test_rnr_exceeded(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 7; n++) {
		struct tpair p;
		struct twr wr;

		tpair_open(&p, &(struct tpair_opts){
				       .type = SH_QPT_RC, .rnr_retry = n, .no_rnr_retry = !n});
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 10);
		tqp_send(&p.a, &wr);
		if (n) {
			mock_advance(p.m, 640000 * n - 10);
			texpect_none(&p.acq[0]);
			mock_advance(p.m, 20);
		}
		texpect_error(&p.acq[0], MLX4_SYNDROME_RNR_RETRY_EXC, true, 0);
		assert_int_equal(p.m->inst->faults.active, 0);
		assert_int_equal(sh_hca(&p.m->dev, 1)->counters.rnr_naks_sent, n + 1);
		assert_int_equal(tqp_state(&p.b), SH_QPS_RTS);
		tpair_close(&p);
	}
}

static void test_rnr_forever(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 10);
	tqp_send(&p.a, &wr);
	mock_advance(p.m, 640000 * 1000);
	texpect_none(&p.acq[0]);
	/* 640 ms: up to 128 ms an eighth later each time, then each 16 ms. */
	assert_in_range(sh_hca(&p.m->dev, 1)->counters.rnr_naks_sent, 60, 70);
	tpair_recv(&p, 0, 10);
	mock_advance(p.m, 16 * MS);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	tpair_close(&p);
}

/*
 * A receiver that becomes ready after any time gets its message an eighth of that later, or in the
 * time that it asks for, if that is longer; and never more than 16 ms later.
 */
static void test_rnr_late(void **state)
{
	const uint64_t rnr = 640000;

	(void)state;
	for (uint64_t ready = 100000; ready < 1000 * MS; ready += ready / 5) {
		uint64_t most = ready / 8 + ready / 80 < rnr ? rnr : ready / 8 + ready / 80;
		struct tpair p;
		struct twr wr;

		tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 10);
		tqp_send(&p.a, &wr);
		mock_advance(p.m, ready);
		texpect_none(&p.acq[0]);
		tpair_recv(&p, 0, 10);
		mock_advance(p.m, most < 16 * MS ? most : 16 * MS);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
		/* The next message begins with the responder's time again. */
		tqp_send(&p.a, &wr);
		tpair_recv(&p, 0, 10);
		mock_advance(p.m, rnr);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 1);
		tpair_close(&p);
	}
}

/* However long the responder asks the requester to wait, and however often, it waits that long. */
static void test_rnr_long(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	sh_qp_get(&p.m->dev, p.b.hca, p.b.qpn)->min_rnr_timer = 0; /* 655.36 ms */
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 10);
	tqp_send(&p.a, &wr);
	for (int i = 1; i < 300; i++) {
		mock_advance(p.m, 655 * MS);
		assert_int_equal(sh_hca(&p.m->dev, 1)->counters.rnr_naks_sent, i);
		mock_advance(p.m, 360000);
		assert_int_equal(sh_hca(&p.m->dev, 1)->counters.rnr_naks_sent, i + 1);
	}
	tpair_close(&p);
}

/* ---- absent peers ---- */

static void silent(struct tpair *p, uint32_t retries)
{
	struct twr wr = tpair_wr(p, MLX4_OPCODE_SEND, 10),
		   rd = tpair_wr(p, MLX4_OPCODE_RDMA_READ, 10);
	uint64_t t = UINT64_C(4096) << 14;

	tqp_post(&p->a, &wr);
	tqp_post(&p->a, &rd);
	tqp_ring(&p->a);
	mock_advance(p->m, t * (retries + 1) - 10);
	texpect_none(&p->acq[0]);
	mock_advance(p->m, 20);
	texpect_error(&p->acq[0], MLX4_SYNDROME_RETRY_EXC, true, 0);
	texpect_error(&p->acq[0], MLX4_SYNDROME_WR_FLUSH, true, 1);
	assert_int_equal(tqp_state(&p->a), SH_QPS_ERR);
}

static void test_absent(void **state)
{
	(void)state;
	for (int how = 0; how < 9; how++) {
		struct tpair p;
		struct sh_qp_attr attr;

		tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC,
						    .retry = how,
						    .no_retry = !how,
						    .unconnected = true});
		attr = p.aattr;
		if (how == 8)
			attr.retry_cnt = 3;
		tqp_init(&p.b, &p.battr);
		if (how != 5) {
			tqp_rtr(&p.b, &p.battr);
			tqp_recv(&p.b, &(struct tsge){p.bmem, 100, p.bkey}, 1);
		}
		switch (how) {
		case 0:
			attr.dest_qp_num = 0x7777;
			break;
		case 1:
			attr.dest_qp_num += 1u << SH_LOG_QPS; /* the same slot, another number */
			break;
		case 2:
			attr.path.dlid = 999;
			break;
		case 3:
			sh_hca(&p.m->dev, 1)->port[0].state = 1;
			break;
		case 4:
			sh_hca(&p.m->dev, 0)->port[0].pkey[0] = 0x8123;
			break;
		case 6:
			assert_int_equal(sh_qp_silence(&p.m->daemon, p.b.hca, p.b.qpn), 0);
			break;
		case 7:
			sh_ctx(&p.m->dev, p.b.ctx)->state = SH_CTX_GONE;
			break;
		case 8: /* the peer is connected to another QP */
			assert_int_equal(tqp_to(&p.b, SH_QPS_RESET), 0);
			tqp_init(&p.b, &p.battr);
			p.battr.path.dlid = tlid(p.m, 1);
			tqp_rtr(&p.b, &p.battr);
			break;
		}
		tqp_up(&p.a, &attr);
		silent(&p, attr.retry_cnt);
		texpect_none(&p.bcq[1]);
		tpair_close(&p);
	}
}

/* With timeout 0 the requester waits for ever. It still accepts an answer that comes later. */
static void test_no_timeout(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC, .no_timeout = true});
	tpair_recv(&p, 0, 100);
	tpair_recv(&p, 0, 100);
	fault(p.m, SH_FAULT_DROP, 1, 0);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 10);
	tqp_send(&p.a, &wr);
	mock_advance(p.m, 3600 * UINT64_C(1000000000));
	texpect_none(&p.acq[0]);
	assert_int_equal(p.m->ndefers, 0);
	/* The responder finds the gap when the next message comes. */
	tqp_send(&p.a, &wr);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 1);
	tpair_close(&p);
}

/* ---- faults ---- */

/*
 * A request or a response of each kind of operation is lost once. Then the test looks at how often
 * each was executed.
 */
static void test_single_loss(void **state)
{
	static const uint8_t ops[] = {MLX4_OPCODE_SEND, MLX4_OPCODE_RDMA_WRITE,
				      MLX4_OPCODE_RDMA_READ, MLX4_OPCODE_ATOMIC_FA,
				      MLX4_OPCODE_RDMA_WRITE_IMM};

	(void)state;
	for (unsigned int i = 0; i < sizeof(ops); i++)
		for (int skip = 0; skip < 2; skip++)
			for (int kind = 0; kind < SH_FAULT_LIMIT; kind++) {
				struct tpair p;
				struct twr wr;
				uint64_t *target;

				tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
				target = (uint64_t *)p.bmem;
				for (int k = 0; k < 3; k++)
					tpair_recv(&p, 4096, 100);
				wr = tpair_wr(&p, ops[i], 8);
				wr.swap_add = 1;
				/* an earlier operation, which does not use the fault up */
				if (skip) {
					tqp_send(&p.a, &wr);
					texpect(&p.acq[0], ops[i], true, 0);
				}
				fault(p.m, kind, 1, 0);
				tqp_send(&p.a, &wr);
				mock_advance(p.m, 1000 * MS);
				texpect(&p.acq[0], ops[i], true, skip);
				texpect_none(&p.acq[0]);
				assert_int_equal(p.m->inst->faults.active, 0);
				assert_int_equal(p.m->inst->faults.rule[kind].done, 1);
				if (ops[i] == MLX4_OPCODE_ATOMIC_FA)
					assert_int_equal(*target, 1 + skip);
				if (ops[i] == MLX4_OPCODE_SEND) {
					for (int k = 0; k <= skip; k++)
						texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, k);
					texpect_none(&p.bcq[1]);
				}
				tpair_close(&p);
			}
}

/*
 * Faults hit a tenth of the packets in either direction. Every message still arrives once and in
 * order.
 */
static void storm(uint32_t type, uint32_t seed, bool reads)
{
	struct tpair p;
	uint32_t posted = 0, done = 0, got = 0, steps = 0;
	struct mlx4_cqe cqe;
	uint64_t *sum;

	tpair_open(&p, &(struct tpair_opts){.type = type, .psn = 0xfffff0, .timeout = 10});
	sum = (uint64_t *)(p.bmem + TMEM - 64);
	for (int k = 0; k < SH_FAULT_LIMIT; k++)
		p.m->inst->faults.rule[k].seed = seed;
	for (int k = 0; k < SH_FAULT_LIMIT; k++)
		fault(p.m, k, 0, 50000);
	tfill(p.amem, TMEM / 2, seed);
	memset(p.bmem, 0, TMEM);
	while (done < 400) {
		assert_true(++steps < 100000);
		while (posted < 400 && posted - done < 12) {
			uint32_t len = (posted * 7919) % 5000, at = posted * 1000;
			struct twr wr = tpair_wr(&p, MLX4_OPCODE_SEND, len);

			wr.sge[0].addr = p.amem + at;
			if (posted % 4 == 0 || !reads)
				tpair_recv(&p, at, 5000);
			if (reads && posted % 4 == 1) {
				wr.opcode = MLX4_OPCODE_ATOMIC_FA;
				wr.raddr += TMEM - 64;
				wr.swap_add = 1;
				wr.nsge = 1;
				wr.sge[0].len = 8;
				wr.sge[0].addr = p.amem + TMEM - 4096 + posted * 8;
			} else if (reads && posted % 4 == 2) {
				wr.opcode = MLX4_OPCODE_RDMA_READ;
				wr.raddr += (posted - 2) * 1000;
				wr.sge[0].addr = p.amem + TMEM / 2 + at;
				wr.fence = true;
			} else if (reads && posted % 4 == 3) {
				wr.opcode = MLX4_OPCODE_RDMA_WRITE;
				wr.raddr += at;
			}
			wr.fence = posted % 8 == 0;
			tqp_post(&p.a, &wr);
			posted++;
		}
		tqp_ring(&p.a);
		mock_advance(p.m, 1 * MS);
		while (tcq_poll(&p.acq[0], &cqe)) {
			assert_int_not_equal(cqe.owner_sr_opcode & 0x1f, MLX4_CQE_ERROR);
			assert_int_equal(be16toh((uint16_t)cqe.wqe_index), done);
			done++;
		}
		while (tcq_poll(&p.bcq[1], &cqe)) {
			uint32_t n = reads ? got * 4 : got, len = (n * 7919) % 5000;

			assert_int_equal(cqe.owner_sr_opcode & 0x1f, MLX4_CQE_RECV_SEND);
			assert_int_equal(be32toh((uint32_t)cqe.byte_cnt), len);
			got++;
			/*
			 * Messages posted since then overlap its end, but the first 1000 bytes are
			 * only this message's.
			 */
			assert_memory_equal(p.bmem + n * 1000, p.amem + n * 1000,
					    len < 1000 ? len : 1000);
		}
	}
	assert_int_equal(got, reads ? 100 : 400);
	if (reads) {
		assert_int_equal(*sum, 100);
		for (uint32_t i = 1; i < 400; i += 4)
			assert_int_equal(*(uint64_t *)(p.amem + TMEM - 4096 + i * 8), i / 4);
	}
	for (int k = 0; k < SH_FAULT_LIMIT; k++)
		assert_true(p.m->inst->faults.rule[k].done > 10);
	assert_int_equal(tqp_state(&p.a), SH_QPS_RTS);
	assert_int_equal(tqp_state(&p.b), SH_QPS_RTS);
	p.m->inst->faults.active = 0;
	mock_advance(p.m, 1000 * MS);
	texpect_none(&p.acq[0]);
	texpect_none(&p.bcq[1]);
	tpair_close(&p);
}

static void test_storm(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 10; seed++) {
		storm(SH_QPT_RC, seed, false);
		storm(SH_QPT_RC, seed * 77, true);
		storm(SH_QPT_XRC, seed * 13, seed & 1);
	}
}

/*
 * The first packet that answers a READ is lost, and the others are late: a fabric holds them back,
 * or the thread that delivers them had no processor. They all arrive at once. The requester goes
 * back once for them.
 */
static void test_late_read(void **state)
{
	struct tpair p;
	struct twr rd;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	tfill(p.bmem, 32768, 5);
	rd = tpair_wr(&p, MLX4_OPCODE_RDMA_READ, 32768);
	fault(p.m, SH_FAULT_DELAY, 0, 1000000);
	tqp_send(&p.a, &rd);
	fault(p.m, SH_FAULT_DROP, 1, 0);
	mock_advance(p.m, 1 * MS);
	assert_int_equal(p.m->inst->faults.rule[SH_FAULT_DROP].done, 1);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_READ, true, 0);
	assert_memory_equal(p.amem, p.bmem, 32768);
	assert_int_equal(tqp_ctx(&p.a)->retries, 1);
	assert_int_equal(tqp_state(&p.a), SH_QPS_RTS);
	tpair_close(&p);
}

/* Likewise the one answer to a READ is lost, and those to what follows it are late. */
static void test_late_acks(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	tfill(p.bmem, 8, 5);
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_READ, 8);
	fault(p.m, SH_FAULT_DELAY, 0, 1000000);
	tqp_post(&p.a, &wr);
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 8);
	wr.raddr += 4096;
	for (int i = 0; i < 12; i++)
		tqp_post(&p.a, &wr);
	tqp_ring(&p.a);
	fault(p.m, SH_FAULT_DROP, 1, 0);
	mock_advance(p.m, 1 * MS);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_READ, true, 0);
	for (int i = 0; i < 12; i++)
		texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, i + 1);
	assert_memory_equal(p.amem, p.bmem, 8);
	assert_int_equal(tqp_ctx(&p.a)->retries, 1);
	tpair_close(&p);
}

/* ---- ordering ---- */

/* Responses to READs are lost. Some requests wait for them, and others do not. */
static void test_fence_and_depth(void **state)
{
	struct tpair p;
	struct twr rd, wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC, .rd_atomic = 2});
	rd = tpair_wr(&p, MLX4_OPCODE_RDMA_READ, 8);
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 8);
	memset(p.amem, 0x11, 8);
	wr.sge[0].addr = p.amem + 8;
	memset(p.amem + 8, 0x22, 8);
	wr.raddr += 4096;
	fault(p.m, SH_FAULT_DROP, 0, 1000000);
	tqp_post(&p.a, &rd);
	tqp_post(&p.a, &rd);
	tqp_post(&p.a, &rd); /* one more than the depth allows */
	tqp_post(&p.a, &wr);
	tqp_ring(&p.a);
	assert_int_equal(tqp_ctx(&p.a)->sq_next, 2);
	assert_int_equal(p.m->inst->faults.rule[SH_FAULT_DROP].done, 2);
	p.m->inst->faults.rule[SH_FAULT_DROP].rate = 0;
	p.m->inst->faults.active = 0;
	mock_advance(p.m, 1000 * MS);
	for (int i = 0; i < 3; i++)
		texpect(&p.acq[0], MLX4_OPCODE_RDMA_READ, true, i);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 3);
	assert_int_equal(p.bmem[4096], 0x22);

	/* A fenced WRITE waits for the unanswered READ. A plain WRITE does not. */
	p.bmem[4096] = 0;
	for (int fenced = 0; fenced < 3; fenced++) {
		uint32_t base = tqp_ctx(&p.a)->sq_next;

		fault(p.m, SH_FAULT_DROP, 0, 1000000);
		tqp_send(&p.a, &rd);
		p.m->inst->faults.rule[SH_FAULT_DROP].rate = 0;
		fault(p.m, SH_FAULT_DROP, 0, 1000000);
		wr.fence = fenced == 1;
		wr.strong = fenced == 2;
		tqp_send(&p.a, &wr);
		assert_int_equal(tqp_ctx(&p.a)->sq_next, base + (fenced ? 1 : 2));
		p.m->inst->faults.active = 0;
		mock_advance(p.m, 1000 * MS);
		texpect(&p.acq[0], MLX4_OPCODE_RDMA_READ, true, base);
		texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, base + 1);
	}
	tpair_close(&p);
}

/* ---- draining ---- */

static void test_drain(void **state)
{
	struct tpair p;
	struct twr wr;
	struct sh_qp_attr attr = {.qp_state = SH_QPS_SQD, .en_sqd_async_notify = 1}, seen;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	for (int i = 0; i < 3; i++)
		tpair_recv(&p, 0, 10);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 10);
	/* An idle QP is drained at once. */
	assert_int_equal(tqp_modify(&p.a, &attr, SH_QPA_STATE | SH_QPA_EN_SQD_ASYNC_NOTIFY), 0);
	assert_int_equal(tasync(p.m, p.a.ctx, SQ_DRAINED), 1);
	tqp_send(&p.a, &wr);
	texpect_none(&p.acq[0]);
	assert_int_equal(tqp_to(&p.a, SH_QPS_RTS), 0);
	tqp_ring(&p.a);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	/*
	 * A message is on its way: the QP is drained when it is acknowledged, and sends nothing new
	 * before.
	 */
	fault(p.m, SH_FAULT_DROP, 1, 0);
	tqp_send(&p.a, &wr);
	assert_int_equal(tqp_modify(&p.a, &attr, SH_QPA_STATE | SH_QPA_EN_SQD_ASYNC_NOTIFY), 0);
	assert_int_equal(sh_qp_query(&p.m->daemon, 0, p.a.qpn, &seen), 0);
	assert_int_equal(seen.sq_draining, 1);
	tqp_send(&p.a, &wr);
	assert_int_equal(tasync(p.m, p.a.ctx, SQ_DRAINED), 1);
	mock_advance(p.m, 1000 * MS);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 1);
	texpect_none(&p.acq[0]);
	assert_int_equal(tasync(p.m, p.a.ctx, SQ_DRAINED), 2);
	assert_int_equal(sh_qp_query(&p.m->daemon, 0, p.a.qpn, &seen), 0);
	assert_int_equal(seen.sq_draining, 0);
	assert_int_equal(tqp_to(&p.a, SH_QPS_RTS), 0);
	tqp_ring(&p.a);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 2);
	tpair_close(&p);
}

/* ---- migration ---- */

/* a sends to nobody by a path that has another one beside it, which leads to b. */
static void open_broken(struct tpair *p, struct sh_qp_attr *attr)
{
	struct twr wr;

	tpair_open(p, &(struct tpair_opts){.type = SH_QPT_RC, .retry = 1});
	tpair_recv(p, 0, 10);
	*attr = p->aattr;
	attr->qp_state = SH_QPS_RTS;
	attr->path_mig_state = 1;
	attr->alt_path = attr->path;
	attr->alt_port_num = 1;
	attr->alt_timeout = 14;
	assert_int_equal(
		tqp_modify(&p->a, attr, SH_QPA_STATE | SH_QPA_ALT_PATH | SH_QPA_PATH_MIG_STATE), 0);
	tqp_ctx(&p->a)->path.dlid = 999;
	wr = tpair_wr(p, MLX4_OPCODE_SEND, 10);
	tqp_send(&p->a, &wr);
}

static void arrives_by_other_path(struct tpair *p)
{
	mock_advance(p->m, 1000 * MS);
	texpect(&p->acq[0], MLX4_OPCODE_SEND, true, 0);
	assert_int_equal(tasync(p->m, p->a.ctx, PATH_MIG), 1);
	tpair_close(p);
}

static void test_migration(void **state)
{
	struct sh_qp_attr attr;
	struct tpair p;

	(void)state;
	open_broken(&p, &attr);
	arrives_by_other_path(&p);
}

/*
 * A QP whose retries are used up on the old path has all of them on the new one, whoever has moved
 * it: two QPs that send to each other come to the end of their retries at the same time, and one
 * of them moves the other one.
 */
static void test_moved_by_others(void **state)
{
	struct sh_qp_attr attr;
	struct tpair p;

	(void)state;
	open_broken(&p, &attr);
	for (int ms = 0; SH_RETRY_LEFT(tqp_ctx(&p.a)->retry_left); ms++) {
		assert_true(ms < 1000);
		mock_advance(p.m, MS);
	}
	attr.path_mig_state = 0;
	assert_int_equal(tqp_modify(&p.a, &attr, SH_QPA_STATE | SH_QPA_PATH_MIG_STATE), 0);
	arrives_by_other_path(&p);
}

/* A QP is reset while its packets are on their way. Their answers change nothing in it. */
static void test_reset_in_between(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	tpair_recv(&p, 0, 10);
	fault(p.m, SH_FAULT_DELAY, 2, 0);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 10);
	tqp_send(&p.a, &wr);
	mock_advance(p.m, 100001); /* the request has arrived, and its answer is delayed */
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	texpect_none(&p.acq[0]);
	assert_int_equal(tqp_to(&p.a, SH_QPS_RESET), 0);
	mock_advance(p.m, 1000 * MS);
	texpect_none(&p.acq[0]);
	assert_int_equal(p.m->ndefers, 0);
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rnr_wait),	cmocka_unit_test(test_rnr_exceeded),
		cmocka_unit_test(test_rnr_forever),	cmocka_unit_test(test_rnr_late),
		cmocka_unit_test(test_rnr_long),	cmocka_unit_test(test_absent),
		cmocka_unit_test(test_no_timeout),	cmocka_unit_test(test_single_loss),
		cmocka_unit_test(test_storm),		cmocka_unit_test(test_late_read),
		cmocka_unit_test(test_late_acks),	cmocka_unit_test(test_fence_and_depth),
		cmocka_unit_test(test_drain),		cmocka_unit_test(test_migration),
		cmocka_unit_test(test_moved_by_others), cmocka_unit_test(test_reset_in_between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
