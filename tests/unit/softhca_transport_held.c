// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what a requester has to put off, because a thread that stands has a lock, does not
 * depend on what others do meanwhile. A message that was acknowledged completes although its
 * receiver has gone; data that was read is not read again; an event comes although its sender has
 * ended; a QP goes on although its timer could not be set, or its thread was thrown. What is put
 * off again and again takes no more room.
 */
#include "softhca/device/transport/requester.h"
#include "softhca_stands_rig.h"

static const struct plot rc = {"RC", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200, NULL, 0};

/* A signaled request of p.b, from memory that nothing else uses. */
static struct twr from_b(struct tpair *p, uint8_t opcode, uint64_t len)
{
	struct twr wr = tpair_wr(p, opcode, len);

	wr.sge[0] = (struct tsge){p->bmem + 500000, (uint32_t)len, p->bkey};
	wr.signaled = true;
	return wr;
}

static struct scene *begin(void)
{
	struct scene *s = calloc(1, sizeof(*s));

	scene_open(s, &rc);
	without_ends(s->p.m);
	for (int i = 0; i < 3; i++)
		tqp_recv(&s->p.a, &(struct tsge){s->p.amem + 100000, 65536, s->p.akey}, 1);
	return s;
}

static void finish(struct scene *s)
{
	s->p.m->dev.proc = 1;
	tpair_close(&s->p);
	free(s);
}

/* The receiver's QP forgets all before the sender has its completion. */
static void test_receiver_gone(void **state)
{
	struct scene *s = begin();
	struct tpair *p = &s->p;
	struct twr wr = from_b(p, MLX4_OPCODE_SEND, 100);
	pid_t pid = stand_with(s, lock_of_cq(&p->bcq[0]));

	(void)state;
	for (int i = 0; i < 2; i++)
		tqp_send(&p->b, &wr);
	texpect_none(&p->bcq[0]);
	assert_int_equal(completions(&p->acq[1], MLX4_CQE_RECV_SEND), 1);
	assert_int_equal(tqp_to(&p->a, SH_QPS_RESET), 0);
	go_on_from(s, pid, lock_of_cq(&p->bcq[0]));
	texpect(&p->bcq[0], MLX4_OPCODE_SEND, true, 0);
	/* The second one waited behind the first, and finds no receiver. */
	texpect_error(&p->bcq[0], MLX4_SYNDROME_RETRY_EXC, true, 1);
	finish(s);
}

/* The data of a READ have come, and then the key ends. */
static void test_read_once(void **state)
{
	struct scene *s = begin();
	struct tpair *p = &s->p;
	struct twr wr = from_b(p, MLX4_OPCODE_RDMA_READ, 300000);
	pid_t pid;

	(void)state;
	wr.raddr = (uintptr_t)p->amem;
	wr.rkey = p->akey;
	memset((void *)(uintptr_t)p->amem, 0x5a, 300000);
	pid = stand_with(s, lock_of_cq(&p->bcq[0]));
	tqp_send(&p->b, &wr);
	texpect_none(&p->bcq[0]);
	assert_int_equal(sh_mr_destroy(&p->m->daemon, 0, p->akey), 0);
	memset((void *)(uintptr_t)p->amem, 0, 300000);
	go_on_from(s, pid, lock_of_cq(&p->bcq[0]));
	texpect(&p->bcq[0], MLX4_OPCODE_RDMA_READ, true, 0);
	assert_int_equal(*(uint8_t *)(uintptr_t)(p->bmem + 500000), 0x5a);
	assert_int_equal(*(uint8_t *)(uintptr_t)(p->bmem + 799999), 0x5a);
	finish(s);
}

/* What the sender's process has put off goes with it. */
static void sender_ends(struct scene *s)
{
	s->p.m->ndefers = 0;
}

static void test_event_outlives_sender(void **state)
{
	struct scene *s = begin();
	struct tpair *p = &s->p;
	struct twr wr = from_b(p, MLX4_OPCODE_SEND, 100);
	struct sh_lock *lock = &sh_evq(&p->m->dev, p->acq[1].evq)->lock;
	pid_t pid;

	(void)state;
	tcq_arm(&p->acq[1], false);
	pid = stand_with(s, lock);
	tqp_send(&p->b, &wr);
	texpect(&p->bcq[0], MLX4_OPCODE_SEND, true, 0);
	assert_int_equal(mock_records(p->m, p->acq[1].evq), 0);
	sender_ends(s);
	go_on_from(s, pid, lock);
	assert_int_equal(mock_records(p->m, p->acq[1].evq), 1);
	finish(s);
}

static void test_arms_are_joined(void **state)
{
	struct scene *s = begin();
	struct tpair *p = &s->p;
	pid_t pid = stand_with(s, lock_of_cq(&p->bcq[1]));

	(void)state;
	for (int i = 0; i < 20; i++)
		tcq_arm(&p->bcq[1], false);
	assert_int_equal(p->m->ndefers, 1);
	go_on_from(s, pid, lock_of_cq(&p->bcq[1]));
	finish(s);
}

/* There is no room for a timer at that moment. The next doorbell does its work. */
static void test_without_a_timer(void **state)
{
	struct scene *s = begin();
	struct tpair *p = &s->p;
	struct twr wr = from_b(p, MLX4_OPCODE_SEND, 100);
	pid_t pid = stand_with(s, lock_of_cq(&p->bcq[0]));

	(void)state;
	p->m->no_timers = true;
	tqp_send(&p->b, &wr);
	p->m->no_timers = false;
	go_on_from(s, pid, lock_of_cq(&p->bcq[0]));
	texpect_none(&p->bcq[0]);
	tqp_send(&p->b, &wr);
	assert_int_equal(completions(&p->bcq[0], MLX4_OPCODE_SEND), 2);
	finish(s);
}

/* The thread leaves its engine, and is thrown before the helper thread comes back to it. */
static void test_thrown_after_leaving(void **state)
{
	struct scene *s = begin();
	struct tpair *p = &s->p;
	struct twr wr = from_b(p, MLX4_OPCODE_SEND, SH_SHORT + 1000);
	pid_t pid;
	bool entered;

	(void)state;
	take_while_copying();
	pid = stand_to_take(s, &p->b);
	tqp_send(&p->b, &wr);
	assert_true(taken_next.lock->owner != 0);
	__atomic_store_n(&taken_next.lock->owner, 0, __ATOMIC_SEQ_CST);
	taken_next.lock = NULL;
	entered = sh_enter(&p->m->dev);
	sh_requester_thrown(&p->m->dev);
	if (entered)
		sh_leave(&p->m->dev);
	end_calls(s, pid);
	assert_int_equal(completions(&p->bcq[0], MLX4_OPCODE_SEND), 1);
	assert_int_equal(completions(&p->acq[1], MLX4_CQE_RECV_SEND), 1);
	finish(s);
}

/*
 * The thread is thrown after its data has come and the CQE is put off, and before it notes that:
 * the data is read again, and the timer of another thread has it go on.
 */
static void test_read_again(void **state)
{
	struct scene *s = begin();
	struct tpair *p = &s->p;
	struct twr wr = from_b(p, MLX4_OPCODE_RDMA_READ, 300000);
	struct sh_qp *qp = tqp_ctx(&p->b);
	pid_t pid;

	(void)state;
	wr.raddr = (uintptr_t)p->amem;
	wr.rkey = p->akey;
	memset((void *)(uintptr_t)p->amem, 0x5a, 300000);
	pid = stand_with(s, lock_of_cq(&p->bcq[0]));
	tqp_send(&p->b, &wr);
	assert_true(qp->rnr_waiting & SH_IS_HELD);
	qp->rnr_waiting = SH_PUT_OFF;
	memset((void *)(uintptr_t)p->amem, 0x6b, 300000);
	go_on_from(s, pid, lock_of_cq(&p->bcq[0]));
	texpect(&p->bcq[0], MLX4_OPCODE_RDMA_READ, true, 0);
	assert_int_equal(*(uint8_t *)(uintptr_t)(p->bmem + 500000), 0x6b);
	assert_int_equal(*(uint8_t *)(uintptr_t)(p->bmem + 799999), 0x6b);
	/* The next request has the PSN behind it. */
	wr.raddr += 1000;
	tqp_send(&p->b, &wr);
	texpect(&p->bcq[0], MLX4_OPCODE_RDMA_READ, true, 1);
	finish(s);
}

/*
 * The thread is thrown when it has put off what it had to do, and its engine has not come to its
 * end.
 */
static void thrown_in_engine(struct scene *s, struct tqp *qp)
{
	const uint32_t token = ++tqp_ctx(qp)->engine_seq;
	bool entered = sh_enter(&s->p.m->dev);

	tqp_ctx(qp)->engine = token;
	sh_self.engine.qp = tqp_ctx(qp);
	sh_self.engine.token = token;
	sh_requester_thrown(&s->p.m->dev);
	assert_int_equal(tqp_ctx(qp)->engine, 0);
	if (entered)
		sh_leave(&s->p.m->dev);
}

/*
 * An answer that is held outlives that. The receiver is gone by the time that the sender looks
 * again; or the CQ is to be had already when the thread goes on.
 */
static void held_when_thrown(uint8_t opcode, bool at_once)
{
	struct scene *s = begin();
	struct tpair *p = &s->p;
	struct twr wr = from_b(p, opcode, SH_SHORT + 1000);
	struct sh_lock *lock = lock_of_cq(&p->bcq[0]);
	pid_t pid;

	wr.raddr = (uintptr_t)p->amem;
	wr.rkey = p->akey;
	pid = stand_with(s, lock);
	tqp_send(&p->b, &wr);
	texpect_none(&p->bcq[0]);
	assert_int_equal(tqp_to(&p->a, SH_QPS_RESET), 0);
	if (at_once)
		__atomic_store_n(&lock->owner, 0, __ATOMIC_SEQ_CST);
	thrown_in_engine(s, &p->b);
	if (at_once)
		end_calls(s, pid);
	else
		go_on_from(s, pid, lock);
	texpect(&p->bcq[0], opcode, true, 0);
	finish(s);
}

static void test_held_when_thrown(void **state)
{
	(void)state;
	for (int at_once = 0; at_once < 2; at_once++) {
		held_when_thrown(MLX4_OPCODE_SEND, at_once);
		held_when_thrown(MLX4_OPCODE_RDMA_WRITE, at_once);
		held_when_thrown(MLX4_OPCODE_RDMA_READ, at_once);
	}
}

/* The same, of a message of UC whose memory is gone: it fails then, too. */
static void test_failed_when_thrown(void **state)
{
	static const struct plot uc = {"UC", SH_QPT_UC, false, MLX4_OPCODE_SEND, 200, NULL, 0};
	static uint8_t gone[4096];

	(void)state;
	for (int at_once = 0; at_once < 2; at_once++) {
		struct scene *s = calloc(1, sizeof(*s));
		struct tpair *p = &s->p;
		struct sh_lock *lock;
		struct twr wr;
		pid_t pid;

		scene_open(s, &uc);
		without_ends(p->m);
		tqp_recv(&p->a, &(struct tsge){p->amem + 100000, 65536, p->akey}, 1);
		wr = from_b(p, MLX4_OPCODE_SEND, 100);
		wr.sge[0] = (struct tsge){gone, 100, without_memory(p, gone, sizeof(gone))};
		lock = lock_of_cq(&p->bcq[0]);
		pid = stand_with(s, lock);
		tqp_send(&p->b, &wr);
		texpect_none(&p->bcq[0]);
		if (at_once)
			__atomic_store_n(&lock->owner, 0, __ATOMIC_SEQ_CST);
		thrown_in_engine(s, &p->b);
		if (at_once)
			end_calls(s, pid);
		else
			go_on_from(s, pid, lock);
		texpect_error(&p->bcq[0], MLX4_SYNDROME_LOC_PROT, true, 0);
		finish(s);
	}
}

/*
 * The card fails before the helper thread comes back to an engine that was left: nothing more is
 * sent.
 */
static void test_silent_after_leaving(void **state)
{
	struct scene *s = begin();
	struct tpair *p = &s->p;
	struct twr wr = from_b(p, MLX4_OPCODE_SEND, SH_SHORT + 1000);
	pid_t pid;

	(void)state;
	take_while_copying();
	pid = stand_to_take(s, &p->b);
	tqp_send(&p->b, &wr);
	assert_true(taken_next.lock->owner != 0);
	tqp_post(&p->b, &wr);
	__atomic_store_n(&taken_next.lock->owner, 0, __ATOMIC_SEQ_CST);
	taken_next.lock = NULL;
	assert_int_equal(sh_qp_silence(&p->m->daemon, 1, p->b.qpn), 0);
	end_calls(s, pid);
	texpect_none(&p->bcq[0]);
	assert_int_equal(completions(&p->acq[1], MLX4_CQE_RECV_SEND), 1);
	finish(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_receiver_gone),
		cmocka_unit_test(test_read_once),
		cmocka_unit_test(test_event_outlives_sender),
		cmocka_unit_test(test_arms_are_joined),
		cmocka_unit_test(test_without_a_timer),
		cmocka_unit_test(test_thrown_after_leaving),
		cmocka_unit_test(test_read_again),
		cmocka_unit_test(test_held_when_thrown),
		cmocka_unit_test(test_failed_when_thrown),
		cmocka_unit_test(test_silent_after_leaving),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
