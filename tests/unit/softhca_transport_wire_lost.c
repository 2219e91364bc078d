// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the wire's engine is killed, and the daemon with it. Each process finds that out,
 * and takes its requesters back: those that the engine had not begun, and those that it was in the
 * midst of. Their requests run out of retries, as without a cable. What was lost of UC has been
 * sent. So it is if the lock of a QP is not to be had at that moment. A process leaves alone what
 * it runs itself, what stays in the instance, QPs of others, and a card that has failed.
 */
#include <unistd.h>

#include "softhca_wire_rig.h"

#define SECOND	     UINT64_C(1000000000)
#define ENGINE	     5	   /* its process */
#define ENGINE_TOKEN 70001 /* of one of its threads */

/* The engine is another process, which this one only hears of. */
static void open_client(struct tpair *p, uint32_t type)
{
	static uint64_t later;

	open_pair(p, &(struct tpair_opts){.type = type});
	p->m->dev.wire = NULL;
	p->m->inst->wire.proc = ENGINE;
	/* The process does not wait for a look of the instance before. */
	mock_advance(p->m, later += 100 * SECOND);
}

/* The kernel marks the mutex when the thread that has it ends. */
static void be_engine(void *alive)
{
	if (pthread_mutex_lock(alive))
		_exit(1);
}

static pid_t engine(struct tpair *p)
{
	return mock_child(be_engine, &p->m->inst->wire.alive);
}

static void leave_one(struct tpair *p)
{
	struct twr wr = tpair_wr(p, MLX4_OPCODE_SEND, 100);

	tqp_send(&p->a, &wr);
	texpect_none(&p->acq[0]);
	assert_int_equal(queue.sent, 0);
}

/* Stops the requester as an engine's thread does that is killed when it has built its packet. */
static void begun_by_engine(struct tpair *p)
{
	struct sh_qp *qp = tqp_ctx(&p->a);

	qp->engine = qp->wire_engine = ENGINE_TOKEN;
	qp->sq_next = qp->sq_begun = qp->sq_una + 1;
	qp->next_psn = qp->next_wqe_psn = qp->sent_psn = qp->wire_psn = sh_psn_add(qp->una_psn, 1);
	/* The timer was the engine's. */
	qp->deadline = qp->timer_at = p->m->shared->now + SECOND;
}

enum begun { NOT_BEGUN, BEGUN };

static void taken_back(uint32_t type, enum begun begun)
{
	struct tpair p;
	pid_t pid;

	open_client(&p, type);
	pid = engine(&p);
	leave_one(&p);
	if (begun)
		begun_by_engine(&p);
	mock_advance(p.m, 3 * SECOND);
	/* As long as the engine lives, it is its business. */
	texpect_none(&p.acq[0]);
	assert_int_equal(p.m->inst->wire.lost, 0);
	mock_kill(pid);
	mock_advance(p.m, 5 * SECOND);
	assert_int_equal(p.m->inst->wire.lost, 1);
	if (type == SH_QPT_RC)
		texpect_error(&p.acq[0], MLX4_SYNDROME_RETRY_EXC, true, 0);
	else
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	assert_int_equal(tqp_ctx(&p.a)->engine, 0);
	assert_int_equal(queue.sent, 0);
	tpair_close(&p);
}

static void test_taken_back(void **state)
{
	(void)state;
	for (enum begun begun = NOT_BEGUN; begun <= BEGUN; begun++) {
		taken_back(SH_QPT_RC, begun);
		taken_back(SH_QPT_UC, begun);
	}
}

/* ---- the lock of the QP is not to be had ---- */

static struct sh_host_ops slow;

static uint64_t passing_now(void *h)
{
	struct mock *m = h;

	return __atomic_add_fetch(&m->shared->now, 700 * MS, __ATOMIC_SEQ_CST);
}

static void have_slot(void *dev)
{
	if (!sh_enter(dev))
		_exit(1);
}

static uint64_t word_of_child(struct mock *m, pid_t pid)
{
	const struct sh_exec *e = sh_at(&m->dev, SH_EXEC_OFF);

	for (uint64_t i = 0; i < SH_MAX_EXEC; i++)
		if (e[i].tid == (uint32_t)pid)
			return (uint64_t)e[i].life << SH_OWNER_GENERATION | (i + 1);
	fail_msg("the child has no slot");
	return 0;
}

static void test_lock_gone(void **state)
{
	const struct sh_host_ops *host;
	struct sh_qp *qp;
	struct tpair p;
	pid_t pid, holder;

	(void)state;
	open_client(&p, SH_QPT_RC);
	qp = tqp_ctx(&p.a);
	pid = engine(&p);
	leave_one(&p);
	begun_by_engine(&p);
	holder = mock_child(have_slot, &p.m->dev);
	mock_kill(pid);
	host = p.m->dev.ops;
	slow = *host;
	slow.divert = NULL;
	slow.now = passing_now;
	p.m->dev.ops = &slow;
	qp->lock.owner = word_of_child(p.m, holder);
	alarm(60);
	mock_advance(p.m, 1);
	mock_advance(p.m, SECOND + 1);
	alarm(0);
	p.m->dev.ops = host;
	assert_int_equal(p.m->inst->wire.lost, 1);
	assert_int_equal(qp->engine, ENGINE_TOKEN);
	texpect_none(&p.acq[0]);
	__atomic_store_n(&qp->lock.owner, 0, __ATOMIC_SEQ_CST);
	mock_advance(p.m, 30 * SECOND);
	texpect_error(&p.acq[0], MLX4_SYNDROME_RETRY_EXC, true, 0);
	mock_kill(holder);
	tpair_close(&p);
}

/* ---- what is left alone ---- */

static void fails(struct tpair *p)
{
	sh_hca(&p->m->dev, 0)->fatal = 1;
}

static void of_another(struct tpair *p)
{
	sh_ctx(&p->m->dev, p->a.ctx)->proc = 2;
}

/* A thread of this process runs it, and goes on. */
static void of_own_thread(struct tpair *p)
{
	tqp_ctx(&p->a)->engine = ENGINE_TOKEN + 1;
}

static void stays_inside(struct tpair *p)
{
	tqp_ctx(&p->a)->path.dlid = tlid(p->m, 1);
}

static void test_left_alone(void **state)
{
	void (*const why[])(struct tpair *) = {fails, of_another, of_own_thread, stays_inside};

	(void)state;
	for (unsigned int i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
		uint32_t token;
		struct tpair p;
		pid_t pid;

		print_message("# %u\n", i);
		open_client(&p, SH_QPT_RC);
		pid = engine(&p);
		leave_one(&p);
		begun_by_engine(&p);
		why[i](&p);
		token = tqp_ctx(&p.a)->engine;
		mock_kill(pid);
		mock_advance(p.m, 5 * SECOND);
		assert_int_equal(p.m->inst->wire.lost, 1);
		assert_int_equal(tqp_ctx(&p.a)->engine, token);
		texpect_none(&p.acq[0]);
		texpect_none(&p.bcq[1]);
		tpair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken_back),
		cmocka_unit_test(test_lock_gone),
		cmocka_unit_test(test_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
