// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: in a chain of sends two messages share a cache line of the receiver's CQ and a
 * transaction. The only effect is the moment at which the first of them becomes visible; all else
 * keeps its order with it.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca_pair.h"
#include "softhca_step.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/tables.h"
#include "softhca/device/transport/doorbell.h"

/* bytes for each receive in b's memory; the first ones stay free for RDMA */
#define SLOT 4096
#define LONG 3000 /* bytes, of three packets */

static struct tpair p;
static uint32_t received, sent;

static void open_pair(uint32_t type, bool srq)
{
	tpair_open(&p, &(struct tpair_opts){.type = type, .srq = srq});
	tfill(p.amem, TMEM / 2, 1);
	received = sent = 0;
}

static uint32_t slot(uint32_t n)
{
	return SLOT * (n % 32 + 1);
}

static void post_receives(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		tpair_recv(&p, slot(received + i), SLOT);
}

/* Some messages are longer than a packet. */
static uint32_t length(uint32_t n)
{
	return n % 5 == 3 ? LONG : 8 + n % 3 * 50;
}

static struct twr message(uint32_t n)
{
	struct twr wr = tpair_wr(&p, MLX4_OPCODE_SEND, length(n));

	wr.sge[0].addr = p.amem + n % 64 * 16;
	wr.signaled = false;
	return wr;
}

static void arrive(uint32_t n)
{
	uint32_t slots = p.srq.srqn ? 1u << p.srq.log_size : 65536;

	for (uint32_t i = 0; i < n; i++, received++) {
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, (uint16_t)(received % slots));
		assert_memory_equal(p.bmem + slot(received), p.amem + received % 64 * 16,
				    length(received));
	}
}

static void post_chain(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++, sent++) {
		struct twr wr = message(sent);

		tqp_post(&p.a, &wr);
	}
}

static void nothing_is_left(void)
{
	struct sh_qp *b = tqp_ctx(&p.b);

	texpect_none(&p.bcq[1]);
	assert_int_equal(b->msn, received);
	assert_int_equal(b->e_psn, tqp_ctx(&p.a)->next_psn);
	assert_int_equal(tqp_ctx(&p.a)->sq_una, p.a.head);
	assert_int_equal(sh_trylock(&p.m->dev, &b->rlock), 0);
	sh_unlock(&p.m->dev, &b->rlock);
	assert_int_equal(sh_trylock(&p.m->dev, &sh_cq_get(&p.m->dev, 1, p.bcq[1].cqn)->lock), 0);
	sh_unlock(&p.m->dev, &sh_cq_get(&p.m->dev, 1, p.bcq[1].cqn)->lock);
}

static const struct {
	uint32_t type;
	bool srq;
} kinds[] = {{SH_QPT_RC, false}, {SH_QPT_RC, true}, {SH_QPT_XRC, false}};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Chains of every length begin and end at every entry of a cache line. */
static void test_any_length(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < KINDS; k++) {
		open_pair(kinds[k].type, kinds[k].srq);
		for (uint32_t round = 0; round < 40; round++) {
			uint32_t n = round % 9 + 1;

			post_receives(n);
			post_chain(n);
			tqp_ring(&p.a);
			arrive(n);
			nothing_is_left();
		}
		assert_int_equal(tqp_ctx(&p.b)->messages_received, received);
		tpair_close(&p);
	}
}

/*
 * The receives end anywhere in a chain. Messages that have a receive arrive; the rest arrives when
 * there are more receives.
 */
static void test_receives_end(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < KINDS; k++) {
		for (uint32_t there = 1; there < 7; there++) {
			open_pair(kinds[k].type, kinds[k].srq);
			/*
			 * Goes round each queue, so that code that took a receive that is not
			 * posted would find an old one.
			 */
			for (uint32_t n = 0; n < 64; n += 16) {
				post_receives(16);
				post_chain(16);
				tqp_ring(&p.a);
				arrive(16);
			}
			post_receives(there);
			post_chain(8);
			tqp_ring(&p.a);
			arrive(there);
			texpect_none(&p.bcq[1]);
			post_receives(8 - there);
			mock_advance(p.m, 10000000);
			arrive(8 - there);
			nothing_is_left();
			tpair_close(&p);
		}
	}
}

/*
 * One message of a chain does not fit into its receive. Those before it have arrived; it fails at
 * both ends.
 */
static void test_one_is_refused(void **state)
{
	(void)state;
	for (uint32_t bad = 1; bad < 6; bad++) {
		open_pair(SH_QPT_RC, false);
		post_receives(8);
		for (uint32_t i = 0; i < 8; i++, sent++) {
			struct twr wr = message(sent);

			if (i == bad)
				wr.sge[0].len = SLOT + 1;
			tqp_post(&p.a, &wr);
		}
		tqp_ring(&p.a);
		arrive(bad);
		texpect_error(&p.bcq[1], MLX4_SYNDROME_LOC_LEN, false, (uint16_t)bad);
		texpect_error(&p.acq[0], MLX4_SYNDROME_REM_INVAL_REQ, true, (uint16_t)bad);
		tpair_close(&p);
	}
}

/* The messages of one chain go to two SRQs, in any order. */
static void test_two_srqs(void **state)
{
	(void)state;
	for (uint32_t which = 0; which < 64; which++) {
		struct tsrq other;
		uint32_t taken[2] = {0, 0};

		open_pair(SH_QPT_XRC, false);
		tsrq_open(&other, p.m, 1, p.b.ctx, p.b.pdn, 0x61, 9, p.bcq[1].cqn);
		for (uint32_t i = 0; i < 6; i++) {
			tpair_recv(&p, slot(i), SLOT);
			tsrq_post(&other, &(struct tsge){p.bmem + slot(i + 10), SLOT, p.bkey}, 1);
		}
		for (uint32_t i = 0; i < 6; i++) {
			struct twr wr = message(i);

			wr.srqn += which >> i & 1;
			tqp_post(&p.a, &wr);
		}
		tqp_ring(&p.a);
		for (uint32_t i = 0; i < 6; i++) {
			uint32_t to = which >> i & 1, index = taken[to]++;
			struct mlx4_cqe cqe;

			assert_true(tcq_poll(&p.bcq[1], &cqe));
			assert_int_equal(be32toh((uint32_t)cqe.g_mlpath_rqpn), 0x60 + to);
			assert_int_equal(be16toh((uint16_t)cqe.wqe_index), index);
			assert_memory_equal(p.bmem + slot(index + 10 * to), p.amem + i * 16,
					    length(i));
		}
		received = 6;
		nothing_is_left();
		tpair_close(&p);
	}
}

/*
 * A solicited message anywhere in a chain raises one event, whether the CQ was armed before or is
 * armed afterwards.
 */
static void test_solicited(void **state)
{
	(void)state;
	for (uint32_t which = 0; which <= 6; which++) {
		for (unsigned int before = 0; before < 2; before++) {
			open_pair(SH_QPT_RC, false);
			post_receives(6);
			if (before)
				tcq_arm(&p.bcq[1], true);
			for (uint32_t i = 0; i < 6; i++, sent++) {
				struct twr wr = message(sent);

				wr.solicited = i == which;
				tqp_post(&p.a, &wr);
			}
			tqp_ring(&p.a);
			if (!before)
				tcq_arm(&p.bcq[1], true);
			assert_int_equal(mock_records(p.m, p.bcq[1].evq), which < 6);
			arrive(6);
			nothing_is_left();
			tpair_close(&p);
		}
	}
}

/* The sender believes that the CQ is full, at either entry of a cache line. The CQ wraps, too. */
static void test_cq_is_read_again(void **state)
{
	struct mlx4_cqe cqe;

	(void)state;
	for (uint32_t early = 100; early < 104; early++) {
		uint32_t entries, n;

		open_pair(SH_QPT_RC, false);
		entries = 1u << p.bcq[1].log_size;
		for (n = entries; n; n -= 32) {
			post_receives(32);
			post_chain(32);
			tqp_ring(&p.a);
			received += 32;
		}
		/*
		 * The CQ is full, so the next message makes the sender read the consumer index. It
		 * does not read it again for as many CQEs as that allows.
		 */
		for (n = 0; n < early; n++)
			assert_true(tcq_poll(&p.bcq[1], &cqe));
		received = sent;
		post_receives(1);
		post_chain(1);
		tqp_ring(&p.a);
		for (n = early; n < entries; n++)
			assert_true(tcq_poll(&p.bcq[1], &cqe));
		arrive(1);
		for (n = 0; n < 8; n++) {
			post_receives(31);
			post_chain(31);
			tqp_ring(&p.a);
			arrive(31);
			nothing_is_left();
		}
		assert_int_equal(sh_cq_get(&p.m->dev, 1, p.bcq[1].cqn)->overrun, 0);
		tpair_close(&p);
	}
}

/*
 * Every kind of request that changes something at the receiver follows a message that waits for its
 * neighbour.
 */
static void test_mixed(void **state)
{
	enum { NOTHING = 0xff };
	static const struct {
		uint8_t opcode, cqe; /* the opcode, and the receiver's CQE */
		uint32_t len;
	} chain[] = {
		{MLX4_OPCODE_SEND, MLX4_CQE_RECV_SEND, 40},
		{MLX4_OPCODE_SEND, MLX4_CQE_RECV_SEND, 40},
		{MLX4_OPCODE_SEND, MLX4_CQE_RECV_SEND, 40},
		{MLX4_OPCODE_RDMA_WRITE_IMM, MLX4_CQE_RECV_RDMA_WRITE_IMM, 40},
		{MLX4_OPCODE_SEND_IMM, MLX4_CQE_RECV_SEND_IMM, 40},
		{MLX4_OPCODE_RDMA_READ, NOTHING, 40},
		{MLX4_OPCODE_SEND, MLX4_CQE_RECV_SEND, 40},
		{MLX4_OPCODE_RDMA_WRITE_IMM, MLX4_CQE_RECV_RDMA_WRITE_IMM, 40},
		{MLX4_OPCODE_RDMA_WRITE_IMM, MLX4_CQE_RECV_RDMA_WRITE_IMM, 40},
		{MLX4_OPCODE_ATOMIC_FA, NOTHING, 8},
		{MLX4_OPCODE_SEND, MLX4_CQE_RECV_SEND, 0},
		{MLX4_OPCODE_SEND, MLX4_CQE_RECV_SEND, LONG},
		{MLX4_OPCODE_SEND, MLX4_CQE_RECV_SEND, 40},
		{MLX4_OPCODE_NOP, NOTHING, 0},
		{MLX4_OPCODE_SEND, MLX4_CQE_RECV_SEND, 40},
		{MLX4_OPCODE_SEND, MLX4_CQE_RECV_SEND, 40},
	};
	const uint32_t n = sizeof(chain) / sizeof(chain[0]);

	(void)state;
	for (unsigned int k = 0; k < KINDS; k++) {
		uint64_t counter, fetched;
		struct mlx4_cqe cqe;
		uint16_t index = 0;

		open_pair(kinds[k].type, kinds[k].srq);
		post_receives(16);
		memcpy(&counter, p.bmem + 2048, sizeof(counter));
		for (uint32_t i = 0; i < n; i++) {
			struct twr wr = tpair_wr(&p, chain[i].opcode, chain[i].len);

			wr.signaled = i == n - 1;
			wr.swap_add = 5;
			if (chain[i].opcode == MLX4_OPCODE_RDMA_READ ||
			    chain[i].opcode == MLX4_OPCODE_ATOMIC_FA) {
				wr.sge[0].addr = p.amem + TMEM / 2 + 64 * i;
				wr.raddr += 2048;
			}
			tqp_post(&p.a, &wr);
		}
		tqp_ring(&p.a);
		for (uint32_t i = 0; i < n; i++) {
			if (chain[i].cqe == NOTHING)
				continue;
			assert_true(tcq_poll(&p.bcq[1], &cqe));
			assert_int_equal(cqe.owner_sr_opcode & 0x1f, chain[i].cqe);
			assert_int_equal(be16toh((uint16_t)cqe.wqe_index), index);
			assert_int_equal(be32toh((uint32_t)cqe.byte_cnt), chain[i].len);
			if (chain[i].cqe != MLX4_CQE_RECV_RDMA_WRITE_IMM)
				assert_memory_equal(p.bmem + slot(index), p.amem, chain[i].len);
			index++;
		}
		assert_memory_equal(p.bmem, p.amem, 40);
		memcpy(&fetched, p.amem + TMEM / 2 + 64 * 9, sizeof(fetched));
		assert_true(fetched == counter);
		memcpy(&fetched, p.bmem + 2048, sizeof(fetched));
		assert_true(fetched == counter + 5);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, (uint16_t)(n - 1));
		received = n - 1;
		nothing_is_left();
		tpair_close(&p);
	}
}

/* ---- what becomes visible, and when ---- */

struct seen {
	unsigned int recv[8], send, data; /* after how many instructions; 0: never */
};

static bool valid(const struct tcq *cq, uint32_t n)
{
	return !(((const uint8_t *)mock_ptr(&cq->buf))[32 * n + 31] & 0x80);
}

/*
 * Another process rings and is single-stepped. The test watches the CQEs, and the last byte of an
 * RDMA WRITE.
 */
static void watch(struct seen *seen, uint32_t len)
{
	pid_t pid = fork();
	unsigned int steps;
	int status;

	assert_true(pid >= 0);
	memset(seen, 0, sizeof(*seen));
	if (!pid) {
		if (!sh_enter(&p.m->dev))
			_exit(3);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		sh_ring(&p.m->dev, p.a.ctx, p.a.qpn);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL);
	for (steps = 1; single_step(pid); steps++) {
		for (uint32_t i = 0; i < 8; i++)
			if (!seen->recv[i] && valid(&p.bcq[1], i))
				seen->recv[i] = steps;
		if (!seen->send && valid(&p.acq[0], 0))
			seen->send = steps;
		if (!seen->data && len && p.bmem[len - 1] == p.amem[len - 1])
			seen->data = steps;
	}
}

/*
 * The two CQEs of the second line appear together. The first message of a chain does not wait for
 * another, nor does the last.
 */
static void test_together(void **state)
{
	struct seen s;

	(void)state;
	for (unsigned int k = 0; k < KINDS; k++) {
		/* Twice, because symbols are bound in the first run. */
		for (unsigned int twice = 0; twice < 2; twice++) {
			open_pair(kinds[k].type, kinds[k].srq);
			post_receives(5);
			for (uint32_t i = 0; i < 5; i++) {
				struct twr wr = message(i);

				wr.sge[0].len = 8;
				tqp_post(&p.a, &wr);
			}
			watch(&s, 0);
			tpair_close(&p);
		}
		assert_true(s.recv[0] > 0);
		assert_true(s.recv[1] > s.recv[0] + 100);
		assert_true(s.recv[2] > s.recv[1] + 100);
		/*
		 * The distance is next to nothing beside that of a whole message, whatever the
		 * compiler adds to each.
		 */
		assert_in_range(s.recv[3], s.recv[2] + 1, s.recv[2] + (s.recv[2] - s.recv[1]) / 8);
		assert_true(s.recv[4] > s.recv[3] + 100);
		assert_int_equal(s.recv[5], 0);
	}
}

/* A request that follows a message that waits does not become visible before it. */
static void test_order(void **state)
{
	struct seen s;
	struct twr wr;

	(void)state;
	open_pair(SH_QPT_RC, false);
	post_receives(3);
	p.bmem[99] = (uint8_t)~p.amem[99];
	post_chain(3);
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100);
	wr.signaled = false;
	tqp_post(&p.a, &wr);
	watch(&s, 100);
	assert_true(s.recv[2] > s.recv[1]);
	assert_true(s.data > s.recv[2]);
	tpair_close(&p);

	open_pair(SH_QPT_RC, false);
	post_receives(3);
	post_chain(2);
	wr = message(2);
	wr.signaled = true;
	tqp_post(&p.a, &wr);
	watch(&s, 0);
	assert_true(s.recv[2] > s.recv[1]);
	assert_true(s.send > s.recv[2]);
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_length),     cmocka_unit_test(test_receives_end),
		cmocka_unit_test(test_one_is_refused), cmocka_unit_test(test_two_srqs),
		cmocka_unit_test(test_solicited),      cmocka_unit_test(test_cq_is_read_again),
		cmocka_unit_test(test_mixed),	       cmocka_unit_test(test_together),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
