// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what a thread of the wire's engine sends in one turn leaves together, in the order
 * of each QP, and whoever interrupts it.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <ucontext.h>
#include <cmocka.h>

#include "softhca_wire_rig.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/queues/modify.h"
#include "softhca/device/queues/qp_halves.h"
#include "softhca/device/transport/doorbell.h"

/* Two threads of the engine, which this one plays in turn. */
static struct sh_wire_turn turn[2];
static unsigned int thread;
static struct {
	struct sh_packet p;
	uint16_t dlid;
	unsigned char payload[4096];
} waits[2][64];
static unsigned int nwaits[2], flushes;

/*
 * Throws the thread at an instruction: the kernel stops it after each, for a while from each time
 * on that it asks for its turn.
 */
#define STEPS_EACH 150
static struct {
	unsigned int at; /* at which one, 0: at none */
	unsigned int taken, left;
	bool on;
} steps;

/* A thread that is thrown leaves AddressSanitizer's marks of its frames on the stack. */
#ifdef __SANITIZE_ADDRESS__
#define THROWS_ARE_SEEN true
#else
#define THROWS_ARE_SEEN false
#endif

#ifdef __x86_64__
#define TRAP_FLAG 0x100

static void stepped(int sig, siginfo_t *info, void *context)
{
	greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig, (void)info;
	if (sh_self.armed && ++steps.taken == steps.at) {
		reg[REG_RIP] = (greg_t)sh_self.armed->abort_ip;
		thrown++;
		steps.on = false;
	}
	if (!steps.on || !--steps.left)
		reg[REG_EFL] &= ~TRAP_FLAG;
}

static void step_from_here(void)
{
	steps.left = STEPS_EACH;
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orl $0x100, (%%rsp); popfq; lea "
			 "128(%%rsp), %%rsp" ::
				 : "memory", "cc");
}
#endif

static struct sh_wire_turn *turn_of(struct sh_dev *dev)
{
	(void)dev;
#ifdef __x86_64__
	if (steps.on)
		step_from_here();
#endif
	return &turn[thread];
}

/* What a program does meanwhile. */
static struct {
	struct tpair *pair;
	struct twr wr;
	unsigned int left; /* how many it still posts */
	bool when_sent;	   /* one whenever packets leave, not whenever one is built */
	bool held;	   /* packets left while the thread had a QP's lock */
} program;

static void post_more(bool sent)
{
	struct sh_qp *qp = program.pair ? tqp_ctx(&program.pair->a) : NULL;

	if (!qp)
		return;
	if (sent)
		program.held |= __atomic_load_n(&qp->lock.owner, __ATOMIC_RELAXED) != 0;
	if (sent != program.when_sent || !program.left || !qp->engine)
		return;
	program.left--;
	tqp_post(&program.pair->a, &program.wr);
	/* As another thread leaves it, which has looked at the QP. */
	if (sent)
		qp->again = 1;
}

static void begin(struct sh_dev *dev)
{
	(void)dev;
	nwaits[thread] = 0;
}

static void flush(struct sh_dev *dev)
{
	unsigned int n = nwaits[thread];

	flushes += n > 0;
	nwaits[thread] = 0;
	if (n)
		post_more(true);
	for (unsigned int i = 0; i < n; i++)
		send_packet(dev, &waits[thread][i].p, waits[thread][i].dlid,
			    waits[thread][i].payload, SH_WIRE_WHOLE);
}

static void gather(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
		   const unsigned char *payload)
{
	unsigned int n;

	post_more(false);
	if (nwaits[thread] == 64)
		flush(dev);
	n = nwaits[thread]++;
	waits[thread][n].p = *p;
	waits[thread][n].dlid = dlid;
	if (p->payload.len)
		memcpy(waits[thread][n].payload, payload, p->payload.len);
}

static unsigned int packets; /* that were about to be put together */

/* The thread is thrown before a packet waits; while it is made to wait, it cannot be. */
static unsigned char *room(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid)
{
	(void)dev, (void)p, (void)dlid;
	if (++packets == throw_at)
		be_thrown();
	return NULL;
}

static const struct sh_wire_ops turns = {.send = send_packet,
					 .begin = begin,
					 .gather = gather,
					 .flush = flush,
					 .room = room,
					 .turn = turn_of,
					 .mad = take_mad};

static void open_turns(struct tpair *p, uint32_t type)
{
	memset(turn, 0, sizeof(turn));
	memset(nwaits, 0, sizeof(nwaits));
	memset(&program, 0, sizeof(program));
	memset(&steps, 0, sizeof(steps));
	thread = flushes = 0;
	open_pair(p, &(struct tpair_opts){.type = type});
	p->m->dev.wire = &turns;
}

static void begin_turn(struct tpair *p)
{
	sh_wire_begin_turn(&p->m->dev);
}

static void end_turn(struct tpair *p)
{
	assert_true(sh_enter(&p->m->dev));
	sh_wire_end_turn(&p->m->dev);
	sh_leave(&p->m->dev);
}

static struct twr to_b(struct tpair *p, uint8_t opcode, uint32_t len)
{
	struct twr wr = tpair_wr(p, opcode, len);

	wr.dlid = B_FAR;
	return wr;
}

/* A chain of short messages; the doorbells of several posts, and what one QP sends in two runs. */
static void test_together(void **state)
{
	static const uint32_t types[] = {SH_QPT_RC, SH_QPT_XRC, SH_QPT_UC, SH_QPT_UD};

	(void)state;
	for (unsigned int i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct mlx4_cqe cqe;
		struct tpair p;
		struct twr wr;

		open_turns(&p, types[i]);
		wr = to_b(&p, MLX4_OPCODE_SEND, 8);
		for (unsigned int n = 0; n < 20; n++)
			tpair_recv(&p, 64 * n, 64);
		begin_turn(&p);
		for (unsigned int n = 0; n < 10; n++)
			tqp_post(&p.a, &wr);
		tqp_ring(&p.a);
		for (unsigned int n = 10; n < 20; n++)
			tqp_send(&p.a, &wr);
		assert_int_equal(queue.sent, 0);
		end_turn(&p);
		assert_int_equal(queue.sent, 20);
		assert_int_equal(flushes, 1);
		assert_int_equal(tqp_ctx(&p.a)->engine, 0);
		/* The answers, too. */
		begin_turn(&p);
		pump(&p);
		assert_int_equal(queue.sent, 20);
		end_turn(&p);
		if (types[i] == SH_QPT_RC || types[i] == SH_QPT_XRC) {
			assert_int_equal(flushes, 2);
			assert_int_equal(queue.sent, 40);
		}
		pump(&p);
		for (unsigned int n = 0; n < 20; n++) {
			assert_true(tcq_poll(&p.acq[0], &cqe));
			assert_int_equal(cqe.owner_sr_opcode & 0x1f, MLX4_OPCODE_SEND);
			assert_true(tcq_poll(&p.bcq[1], &cqe));
		}
		assert_int_equal(tqp_ctx(&p.a)->retries, 0);
		tpair_close(&p);
	}
}

/* wr, the other way: from b's memory to a's. */
static struct twr from_b(const struct tpair *p, const struct twr *wr)
{
	struct twr back = *wr;

	back.raddr = (uintptr_t)p->amem + 4096;
	back.rkey = p->akey;
	back.sge[0].addr = p->bmem + 8192;
	back.sge[0].key = p->bkey;
	return back;
}

/* Both QPs send; a long message leaves when it is much. */
static void test_several(void **state)
{
	struct tpair p;
	struct twr wr, back;

	(void)state;
	open_turns(&p, SH_QPT_RC);
	wr = to_b(&p, MLX4_OPCODE_RDMA_WRITE, 8);
	back = from_b(&p, &wr);
	begin_turn(&p);
	tqp_send(&p.a, &wr);
	tqp_send(&p.b, &back);
	tqp_send(&p.a, &wr);
	assert_int_equal(queue.sent, 0);
	end_turn(&p);
	assert_int_equal(queue.sent, 3);
	assert_int_equal(flushes, 1);
	wr = to_b(&p, MLX4_OPCODE_RDMA_WRITE, 64 * TMTU);
	begin_turn(&p);
	tqp_send(&p.a, &wr);
	pump(&p);
	assert_true(queue.sent > 3 && queue.sent <= 3 + 3 + 64);
	end_turn(&p);
	pump(&p);
	assert_int_equal(tqp_ctx(&p.a)->retries + tqp_ctx(&p.b)->retries, 0);
	assert_int_equal(tqp_ctx(&p.a)->sq_una, 3);
	assert_int_equal(tqp_ctx(&p.b)->sq_una, 1);
	tpair_close(&p);
}

/* While what one thread has built of a QP waits, the other thread leaves that QP to it. */
static void test_order(void **state)
{
	struct mlx4_cqe cqe;
	struct tpair p;
	struct twr wr;

	(void)state;
	open_turns(&p, SH_QPT_UC);
	wr = to_b(&p, MLX4_OPCODE_SEND, 3000);
	for (unsigned int n = 0; n < 4; n++)
		tpair_recv(&p, 4096 * n, 4096);
	begin_turn(&p);
	tqp_send(&p.a, &wr);
	thread = 1;
	begin_turn(&p);
	tqp_send(&p.a, &wr);
	assert_int_equal(nwaits[1], 0);
	end_turn(&p);
	assert_int_equal(queue.sent, 0);
	thread = 0;
	tqp_send(&p.a, &wr);
	assert_int_equal(nwaits[0], 9);
	end_turn(&p);
	thread = 1;
	tqp_send(&p.a, &wr);
	assert_int_equal(queue.sent, 12);
	pump(&p);
	for (unsigned int n = 0; n < 4; n++)
		assert_true(tcq_poll(&p.bcq[1], &cqe));
	/* Nothing of the other thread's is left undone when nobody comes again. */
	thread = 0;
	begin_turn(&p);
	tqp_send(&p.a, &wr);
	thread = 1;
	tqp_send(&p.a, &wr);
	thread = 0;
	end_turn(&p);
	assert_int_equal(queue.sent, 18);
	assert_int_equal(tqp_ctx(&p.a)->engine, 0);
	tpair_close(&p);
}

/* A QP that is reset, or ends, while its packets wait. */
static void test_reset(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	open_turns(&p, SH_QPT_RC);
	wr = to_b(&p, MLX4_OPCODE_RDMA_WRITE, 8);
	begin_turn(&p);
	tqp_send(&p.a, &wr);
	assert_int_equal(tqp_to(&p.a, SH_QPS_ERR), 0);
	assert_int_equal(tqp_ctx(&p.a)->engine, 0);
	end_turn(&p);
	assert_int_equal(queue.sent, 1);
	assert_int_equal(tqp_ctx(&p.a)->engine, 0);
	pump(&p);
	tpair_close(&p);
}

/*
 * The thread is thrown at some packet of its turn. Each message of RC arrives once, and a datagram
 * at most once: that one may be lost. The other ones wait on.
 */
static void test_thrown_in_turn(void **state)
{
	bool can_be_thrown = false;

	(void)state;
	if (THROWS_ARE_SEEN)
		return;
	thrown = 0;
	for (throw_at = 1; throw_at <= 8; throw_at++)
		for (unsigned int i = 0; i < 2; i++) {
			unsigned int took = 0;
			struct mlx4_cqe cqe;
			struct tpair p;
			struct twr wr;

			open_turns(&p, i ? SH_QPT_UD : SH_QPT_RC);
			queue.throw = packets = 0;
			wr = to_b(&p, MLX4_OPCODE_SEND, 8);
			for (unsigned int n = 0; n < 16; n++)
				tpair_recv(&p, 64 * n, 64);
			begin_turn(&p);
			for (unsigned int n = 0; n < 8; n++)
				tqp_send(&p.a, &wr);
			assert_int_equal(queue.sent, 0);
			end_turn(&p);
			assert_int_equal(tqp_ctx(&p.a)->engine, 0);
			pump(&p);
			mock_advance(p.m, 10 * MS);
			pump(&p);
			while (tcq_poll(&p.bcq[1], &cqe))
				took++;
			assert_in_range(took, i ? 7 : 8, 8);
			can_be_thrown |= sh_self.catches != NULL;
			tpair_close(&p);
		}
	throw_at = 0;
	if (can_be_thrown)
		assert_int_equal(thrown, 2 * 8);
}

static struct sh_host_ops throwing;
static const struct sh_host_ops *usual;
static unsigned int events_left; /* until the thread is thrown */

static int event_and_throw(void *host, uint32_t evq, const void *record, size_t len)
{
	int err = usual->event(host, evq, record, len);

	if (events_left && !--events_left)
		be_thrown();
	return err;
}

/*
 * The thread is thrown while it raises the event of a message that has just come, and takes the packet in anew.
 * Nothing tells that it is no other message: a message of UD or UC comes once all the same, and so does its event.
 */
static void test_thrown_with_event(void **state)
{
	(void)state;
	if (THROWS_ARE_SEEN)
		return;
	for (unsigned int i = 0; i < 3; i++) {
		static const uint32_t type[] = {SH_QPT_UD, SH_QPT_UC, SH_QPT_RC};
		unsigned int took = 0;
		struct mlx4_cqe cqe;
		struct tpair p;
		struct twr wr;

		open_pair(&p, &(struct tpair_opts){.type = type[i]});
		usual = p.m->dev.ops;
		throwing = *usual;
		throwing.event = event_and_throw;
		wr = to_b(&p, MLX4_OPCODE_SEND, 8);
		for (unsigned int n = 0; n < 4; n++)
			tpair_recv(&p, 64 * n, 64);
		tcq_arm(&p.bcq[1], false);
		tqp_send(&p.a, &wr);
		thrown = 0;
		events_left = 1;
		p.m->dev.ops = &throwing;
		pump(&p);
		p.m->dev.ops = usual;
		assert_int_equal(thrown, sh_self.catches ? 1 : 0);
		/* The next message finds what the thread has left. */
		tqp_send(&p.a, &wr);
		for (unsigned int n = 0; n < 3; n++) {
			pump(&p);
			mock_advance(p.m, 10 * MS);
		}
		while (tcq_poll(&p.bcq[1], &cqe))
			took++;
		assert_int_equal(took, 2);
		assert_int_equal(mock_records(p.m, p.bcq[1].evq), 1);
		tpair_close(&p);
	}
}

/*
 * The thread that is awake sends what was left to the helper thread, which finds nothing more to
 * do, but looks.
 */
static void test_ahead(void **state)
{
	struct sh_proc *proc;
	unsigned int entries = 0;
	struct tpair p;
	struct twr wr;

	(void)state;
	open_turns(&p, SH_QPT_RC);
	p.m->inst->wire.proc = 5;
	proc = sh_proc(&p.m->dev, 5);
	p.m->dev.wire = NULL;
	wr = to_b(&p, MLX4_OPCODE_RDMA_WRITE, 8);
	tqp_send(&p.a, &wr);
	p.m->dev.wire = &turns;
	p.m->dev.proc = 5;
	assert_true(sh_enter(&p.m->dev));
	sh_attention_ahead(&p.m->dev);
	assert_int_equal(queue.sent, 1);
	for (unsigned int i = 0; i < SH_ATTENTION_RING; i++)
		entries += proc->ring[i] != 0;
	assert_int_equal(entries, 1);
	sh_attention(&p.m->dev);
	for (unsigned int i = 0; i < SH_ATTENTION_RING; i++)
		assert_true(!proc->ring[i]);
	assert_int_equal(queue.sent, 1);
	sh_leave(&p.m->dev);
	p.m->dev.proc = 1;
	pump(&p);
	tpair_close(&p);
}

static unsigned int entries_of(const struct sh_proc *proc)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < SH_ATTENTION_RING; i++)
		n += proc->ring[i] != 0;
	return n;
}

/* Serves what was left to the helper thread. */
static void help(struct tpair *p)
{
	assert_true(sh_enter(&p->m->dev));
	sh_attention(&p->m->dev);
	sh_leave(&p->m->dev);
}

/*
 * The thread is thrown at any instruction while its turn ends, and what it has sent is lost: it
 * comes again.
 */
static void test_thrown_at_end(void **state)
{
#ifdef __x86_64__
	struct sigaction action = {.sa_sigaction = stepped, .sa_flags = SA_SIGINFO}, old;
	unsigned int at = 0, was;
	struct tpair p;

	(void)state;
	if (THROWS_ARE_SEEN)
		return;
	assert_int_equal(sigaction(SIGTRAP, &action, &old), 0);
	open_turns(&p, SH_QPT_RC);
	program.pair = &p;
	program.wr = to_b(&p, MLX4_OPCODE_RDMA_WRITE, 8);
	program.wr.signaled = false;
	program.when_sent = true;
	do {
		queue.lose_all = true;
		was = thrown;
		begin_turn(&p);
		tqp_send(&p.a, &program.wr);
		program.left = 1;
		steps.taken = 0;
		steps.at = ++at;
		steps.on = sh_self.catches != NULL;
		end_turn(&p);
		steps.on = false;
		queue.lose_all = false;
		assert_int_equal(program.left, 0);
		assert_int_equal(tqp_ctx(&p.a)->engine, 0);
		for (unsigned int i = 0; i < 3; i++) {
			pump(&p);
			mock_advance(p.m, 10 * MS);
		}
		help(&p);
		pump(&p);
		if (tqp_ctx(&p.a)->sq_una != 2 * at)
			print_message("# thrown at instruction %u\n", at);
		assert_int_equal(tqp_ctx(&p.a)->sq_una, 2 * at);
	} while (thrown > was);
	tpair_close(&p);
	assert_int_equal(sigaction(SIGTRAP, &old, NULL), 0);
#else
	(void)state;
#endif
}

/* A turn has no room for one more QP: that of others is made, with no lock. */
static void test_full(void **state)
{
	struct tpair p;
	struct twr wr, back;

	(void)state;
	open_turns(&p, SH_QPT_RC);
	wr = to_b(&p, MLX4_OPCODE_RDMA_WRITE, 8);
	back = from_b(&p, &wr);
	program.pair = &p;
	begin_turn(&p);
	tqp_send(&p.b, &back);
	assert_int_equal(turn[0].n, 1);
	for (unsigned int i = 1; i < SH_WIRE_KEPT; i++) {
		turn[0].kept[i] = turn[0].kept[0];
		turn[0].kept[i].token += i;
	}
	turn[0].n = SH_WIRE_KEPT;
	/* The other thread leaves something to this one. */
	tqp_post(&p.b, &back);
	tqp_ctx(&p.b)->again = 1;
	for (unsigned int i = 0; i < 3; i++)
		tqp_post(&p.a, &wr);
	tqp_ring(&p.a);
	assert_false(program.held);
	assert_true(sh_wire_keeps(&p.m->dev, tqp_ctx(&p.a)));
	assert_int_equal(queue.sent, 1);
	end_turn(&p);
	assert_false(program.held);
	help(&p);
	assert_int_equal(queue.sent, 1 + 3 + 1);
	pump(&p);
	assert_int_equal(tqp_ctx(&p.a)->sq_una, 3);
	assert_int_equal(tqp_ctx(&p.b)->sq_una, 2);
	tpair_close(&p);
}

/*
 * A program posts as fast as the thread sends. The thread has other things to do: its turn ends,
 * and the helper thread is asked to go on.
 */
static void test_stream(void **state)
{
	const unsigned int many = 3000;

	(void)state;
	for (unsigned int when_sent = 0; when_sent < 2; when_sent++) {
		struct tpair p;
		unsigned int turns = 0;

		open_turns(&p, SH_QPT_UC);
		p.m->inst->wire.proc = p.m->dev.proc;
		program.pair = &p;
		program.wr = to_b(&p, MLX4_OPCODE_RDMA_WRITE, 8);
		program.wr.signaled = false;
		program.when_sent = when_sent;
		program.left = many;
		begin_turn(&p);
		tqp_send(&p.a, &program.wr);
		end_turn(&p);
		assert_true(queue.sent < 1000);
		/* Who destroys the QP now waits for the rest. */
		assert_true(sh_qp_is_leaving(&p.m->dev, tqp_ctx(&p.a)));
		assert_int_equal(entries_of(sh_proc(&p.m->dev, p.m->dev.proc)), 1);
		while (entries_of(sh_proc(&p.m->dev, p.m->dev.proc)) && turns++ < many)
			help(&p);
		assert_true(when_sent || turns < many / 200);
		assert_int_equal(program.left, 0);
		assert_int_equal(queue.sent, many + 1);
		assert_int_equal(tqp_ctx(&p.a)->engine, 0);
		assert_false(sh_qp_is_leaving(&p.m->dev, tqp_ctx(&p.a)));
		pump(&p);
		tpair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_together),       cmocka_unit_test(test_several),
		cmocka_unit_test(test_order),	       cmocka_unit_test(test_reset),
		cmocka_unit_test(test_thrown_in_turn), cmocka_unit_test(test_thrown_with_event),
		cmocka_unit_test(test_ahead),	       cmocka_unit_test(test_thrown_at_end),
		cmocka_unit_test(test_full),	       cmocka_unit_test(test_stream),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
