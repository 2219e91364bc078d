// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: threads have announced that they doze until a CQE comes. A thread that writes a CQE
 * to a CQ of their context wakes them, once, and while it holds no lock. Threads that have not
 * announced it are not woken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca/device/memory/tables.h"
#include "softhca_pair.h"

static struct tpair p;

static void dozes(uint32_t ctx)
{
	__atomic_store_n(&sh_ctx(&p.m->dev, ctx)->dozing, 1, __ATOMIC_SEQ_CST);
}

static bool announced(uint32_t ctx)
{
	return sh_ctx(&p.m->dev, ctx)->dozing;
}

/* Both contexts belong to process 1. */
static unsigned int woken(void)
{
	unsigned int n = p.m->shared->rouses[1];

	/* The word that the sleepers watch changes before they are woken. */
	assert_int_equal(sh_proc(&p.m->dev, 1)->roused, n);
	return n;
}

/* A message from a to b wakes b's threads, and a's own if it is signaled. */
static void message(const struct tpair_opts *opts, uint8_t opcode, uint32_t len)
{
	struct twr wr;

	tpair_open(&p, opts);
	for (uint32_t i = 0; i < 8; i++)
		tpair_recv(&p, 4096 * (i + 1), 4096);
	wr = tpair_wr(&p, opcode, len);
	wr.signaled = false;
	tqp_send(&p.a, &wr);
	assert_int_equal(woken(), 0);

	dozes(p.b.ctx);
	tqp_send(&p.a, &wr);
	assert_int_equal(woken(), 1);
	assert_false(announced(p.b.ctx));
	tqp_send(&p.a, &wr);
	assert_int_equal(woken(), 1);

	/* CQEs of another context do not wake these threads. */
	dozes(p.a.ctx);
	tqp_send(&p.a, &wr);
	assert_int_equal(woken(), 1);
	assert_true(announced(p.a.ctx));
	wr.signaled = true;
	tqp_send(&p.a, &wr);
	assert_int_equal(woken(), 2);
	assert_false(announced(p.a.ctx));

	/* A chain wakes them once. */
	dozes(p.b.ctx);
	wr.signaled = false;
	for (int i = 0; i < 3; i++)
		tqp_post(&p.a, &wr);
	tqp_ring(&p.a);
	assert_int_equal(woken(), 3);
	tpair_close(&p);
}

static void test_messages(void **state)
{
	static const uint32_t type[] = {SH_QPT_RC, SH_QPT_UC, SH_QPT_XRC};

	(void)state;
	for (size_t i = 0; i < sizeof(type) / sizeof(type[0]); i++)
		for (int private = 0; private < 2; private ++) {
			struct tpair_opts opts = {.type = type[i], .private_memory = private};

			message(&opts, MLX4_OPCODE_SEND, 8);
			message(&opts, MLX4_OPCODE_SEND, 3000);
			message(&opts, MLX4_OPCODE_RDMA_WRITE_IMM, 100);
			message(&opts, MLX4_OPCODE_SEND, 0);
		}
	message(&(struct tpair_opts){.type = SH_QPT_RC, .srq = true}, MLX4_OPCODE_SEND, 8);
	message(&(struct tpair_opts){.type = SH_QPT_RC, .same_hca = true}, MLX4_OPCODE_SEND, 8);
}

/* These requests complete at the sender only. */
static void test_fetch(void **state)
{
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_READ, 500);
	dozes(p.a.ctx);
	dozes(p.b.ctx);
	tqp_send(&p.a, &wr);
	assert_int_equal(woken(), 1);
	assert_false(announced(p.a.ctx));
	assert_true(announced(p.b.ctx));
	tpair_close(&p);
}

/* The daemon moves a QP to ERR. It holds no slot of a thread, and wakes the threads at once. */
static void test_flush(void **state)
{
	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	tpair_recv(&p, 4096, 4096);
	dozes(p.b.ctx);
	assert_int_equal(tqp_to(&p.b, SH_QPS_ERR), 0);
	assert_int_equal(woken(), 1);
	assert_false(announced(p.b.ctx));
	tpair_close(&p);
}

/*
 * If a client has overwritten the word in device memory that leads to them, the device still reads
 * within its tables.
 */
static void test_damage(void **state)
{
	struct sh_cq *cq;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	tpair_recv(&p, 4096, 4096);
	cq = sh_cq_get(&p.m->dev, p.bcq[1].hca, p.bcq[1].cqn);
	cq->ctx = UINT32_MAX;
	sh_ctx(&p.m->dev, p.b.ctx)->proc = UINT32_MAX;
	dozes(p.b.ctx);
	dozes(UINT32_MAX % SH_MAX_CTX);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	tqp_send(&p.a, &wr);
	assert_int_equal(p.m->shared->rouses[1], 0);
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_fetch),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
