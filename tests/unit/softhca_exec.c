// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a grace is over when each thread that was in device code has left it, and not
 * before. Dead threads do not count. A doorbell that a signal handler rings while its thread is in
 * device code is served when the thread leaves.
 */
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mlx4-format.h"
#include "softhca_mock.h"
#include "softhca_step.h"
#include "softhca/device/memory/mr.h"
#include "softhca/device/queues/cq.h"
#include "softhca/device/queues/cqe.h"
#include "softhca/device/transport/doorbell.h"

#define KEY 0x1100u
#define CQN 200

static unsigned int taken(struct mock *m)
{
	struct sh_exec *e = sh_at(&m->dev, SH_EXEC_OFF);
	unsigned int i, n = 0;

	for (i = 0; i < m->inst->exec_used; i++)
		n += e[i].proc != 0;
	return n;
}

static void entering_twice_is_refused(void **state)
{
	struct mock *m = mock_new(NULL);

	(void)state;
	assert_true(sh_enter(&m->dev));
	assert_false(sh_enter(&m->dev));
	sh_leave(&m->dev);
	assert_true(sh_enter(&m->dev));
	sh_leave(&m->dev);
	assert_int_equal(taken(m), 1);
	assert_true(sh_grace_over(&m->daemon, 0, sh_grace_begin(&m->daemon)));
	mock_free(m);
}

struct visitor {
	struct mock *m;
	pthread_barrier_t in;
	int go[2];
	uint32_t left;
};

static void *visit(void *arg)
{
	struct visitor *v = arg;
	char c;

	sh_enter(&v->m->dev);
	pthread_barrier_wait(&v->in);
	if (read(v->go[0], &c, 1) != 1)
		abort();
	__atomic_store_n(&v->left, 1, __ATOMIC_SEQ_CST);
	sh_leave(&v->m->dev);
	return NULL;
}

static void wait_for_grace(struct mock *m)
{
	uint64_t moment = sh_grace_begin(&m->daemon);

	while (!sh_grace_over(&m->daemon, 0, moment))
		usleep(100);
}

static void *destroy(void *arg)
{
	struct visitor *v = arg;

	if (sh_mr_destroy(&v->m->daemon, 0, KEY))
		return (void *)1;
	wait_for_grace(v->m);
	/* No thread that could have found the key is in device code any more. */
	return __atomic_load_n(&v->left, __ATOMIC_SEQ_CST) ? NULL : (void *)2;
}

static void removal_waits_for_threads_inside(void **state)
{
	struct visitor v = {0};
	pthread_t visitor, destroyer;
	struct sh_dev *d;
	uint32_t ctx, out;
	void *ret;

	(void)state;
	v.m = mock_new(NULL);
	d = &v.m->dev;
	ctx = mock_ctx(v.m, 0);
	assert_int_equal(sh_mr_create(&v.m->daemon, 0, KEY, ctx, 4, 0, 100, 0), 0);
	pthread_barrier_init(&v.in, NULL, 2);
	assert_int_equal(pipe(v.go), 0);
	assert_int_equal(pthread_create(&visitor, NULL, visit, &v), 0);
	pthread_barrier_wait(&v.in);
	assert_int_equal(pthread_create(&destroyer, NULL, destroy, &v), 0);
	/*
	 * A thread that looks the key up now does not find it, whether the destroyer waits or not.
	 */
	while (!sh_mr_check(d, 0, KEY, 4, 0, 1, 0, &out))
		usleep(100);
	assert_int_equal(write(v.go[1], "x", 1), 1);
	assert_int_equal(pthread_join(destroyer, &ret), 0);
	assert_null(ret);
	assert_int_equal(pthread_join(visitor, &ret), 0);
	assert_int_equal(taken(v.m), 1); /* this thread's; ended threads have none */
	pthread_barrier_destroy(&v.in);
	close(v.go[0]);
	close(v.go[1]);
	mock_free(v.m);
}

static void go_in(void *arg)
{
	struct mock *m = arg;

	if (!sh_enter(&m->dev))
		_exit(1);
}

static void dead_threads_are_not_waited_for(void **state)
{
	struct mock *m = mock_new(NULL);
	uint32_t ctx = mock_ctx(m, 0);
	pid_t pid;

	(void)state;
	assert_true(sh_enter(&m->dev)); /* the child gets a slot of its own, not this one */
	pid = mock_child(go_in, m);
	sh_leave(&m->dev);
	assert_int_equal(taken(m), 2);
	assert_int_equal(sh_mr_create(&m->daemon, 0, KEY, ctx, 4, 0, 100, 0), 0);
	mock_kill(pid);
	assert_int_equal(sh_mr_destroy(&m->daemon, 0, KEY), 0);
	wait_for_grace(m);
	assert_int_equal(taken(m), 1);
	pid = mock_child(go_in, m);
	mock_kill(pid);
	assert_int_equal(taken(m), 2);
	sh_proc_gone(&m->daemon, 1, false);
	assert_int_equal(taken(m), 1);
	mock_free(m);
}

/*
 * A key becomes invalid at once, even if a thread is stopped in device code. A caller that asks for
 * a grace can leave out the threads that were in device code before an earlier moment.
 */
static void stopped_threads_hold_up_only_a_grace(void **state)
{
	struct mock *m = mock_new(NULL);
	uint32_t ctx = mock_ctx(m, 0), out;
	uint64_t before, moment, later;
	pid_t pid;

	(void)state;
	assert_int_equal(sh_mr_create(&m->daemon, 0, KEY, ctx, 4, 0, 100, 0), 0);
	before = sh_grace_begin(&m->daemon);
	pid = mock_child(go_in, m);
	kill(pid, SIGSTOP);
	assert_int_equal(sh_mr_destroy(&m->daemon, 0, KEY), 0);
	assert_int_equal(sh_mr_check(&m->dev, 0, KEY, 4, 0, 1, 0, &out), -ENOENT);
	moment = sh_grace_begin(&m->daemon);
	later = sh_grace_begin(&m->daemon);
	assert_true(sh_grace_over(&m->daemon, 0, before));
	assert_false(sh_grace_over(&m->daemon, 0, moment));
	assert_false(sh_grace_over(&m->daemon, before, moment));
	assert_false(sh_grace_over(&m->daemon, 0, later));
	assert_true(sh_grace_over(&m->daemon, moment, later));
	sh_proc_gone(&m->daemon, 1, false);
	assert_false(sh_grace_over(&m->daemon, 0, moment));
	mock_kill(pid);
	assert_true(sh_grace_over(&m->daemon, 0, moment));
	mock_free(m);
}

static struct mock *interrupted;
static uint32_t interrupted_ctx;
static volatile sig_atomic_t refused;

static void handler(int sig)
{
	(void)sig;
	if (sh_enter(&interrupted->dev)) {
		sh_arm(&interrupted->dev, interrupted_ctx, CQN, 0, 0);
		sh_leave(&interrupted->dev);
		return;
	}
	refused = 1;
	sh_arm_later(&interrupted->dev, interrupted_ctx, CQN, 0, 0);
	sh_arm_later(&interrupted->dev, interrupted_ctx, CQN, 0, 0);
}

static void a_handlers_doorbell_is_served_on_the_way_out(void **state)
{
	struct sh_cq_init init = {.log_size = 4, .user_handle = 1};
	struct sigaction act = {.sa_handler = handler};
	struct mock *m = mock_new(NULL);
	struct sh_cqe cqe = {.opcode = 1};
	struct sh_txn_open t;
	struct sh_cq *cq;
	unsigned int i;

	(void)state;
	interrupted = m;
	init.ctx = interrupted_ctx = mock_ctx(m, 0);
	init.comp_evq = mock_evq(m, init.ctx, 8);
	init.buf = mock_umem(m, init.ctx, 512, true);
	init.db = mock_umem(m, init.ctx, 8, true);
	assert_int_equal(sh_cq_create(&m->daemon, 0, CQN, &init), 0);
	cq = sh_cq_get(&m->dev, 0, CQN);
	sigaction(SIGUSR1, &act, NULL);
	((struct mlx4_cq_dbrec *)mock_ptr(&init.db))->arm =
		htobe32(1u << 28 | MLX4_CQ_ARM_NEXT << 24);

	assert_true(sh_enter(&m->dev));
	sh_lock(&m->dev, &cq->lock);
	sh_txn_begin(&t, &m->dev, &cq->txn, &cq->lock);
	assert_int_equal(sh_cq_put(&t, sh_hca(&m->dev, 0), cq, &cqe), 0);
	raise(SIGUSR1); /* the handler must not wait for this lock */
	assert_int_equal(refused, 1);
	sh_txn_commit(&t);
	sh_unlock(&m->dev, &cq->lock);
	assert_int_equal(mock_records(m, init.comp_evq), 0);
	sh_leave(&m->dev);
	assert_int_equal(mock_records(m, init.comp_evq), 1);

	/* Outside device code a handler enters it by itself. */
	refused = 0;
	((struct mlx4_cq_dbrec *)mock_ptr(&init.db))->arm =
		htobe32(2u << 28 | MLX4_CQ_ARM_NEXT << 24 | 1);
	raise(SIGUSR1);
	assert_int_equal(refused, 0);
	assert_int_equal(cq->armed, SH_ARM_ANY);

	/*
	 * There are more doorbells than the list has room for. So the helper thread is told to look
	 * at the QPs of the others.
	 */
	assert_true(sh_enter(&m->dev));
	for (i = 0; i < 200; i++)
		sh_ring_later(&m->dev, interrupted_ctx, 0x100 + i);
	sh_leave(&m->dev);
	assert_int_equal(sh_proc(&m->dev, 1)->ring_lost, 1);
	assert_true(m->shared->wakes[1] > 0);
	signal(SIGUSR1, SIG_DFL);
	mock_free(m);
}

static struct mock *nested;
static unsigned int rung[128];
static volatile sig_atomic_t handled;

static void count(struct sh_dev *dev, uint32_t ctx, uint32_t number, uint32_t dw0, uint32_t dw1)
{
	(void)dev, (void)ctx, (void)dw0, (void)dw1;
	rung[number]++;
}

static void nested_handler(int sig)
{
	(void)sig;
	handled = 1;
	if (sh_enter(&nested->dev)) {
		count(&nested->dev, 0, 0, 0, 0);
		sh_leave(&nested->dev);
		return;
	}
	sh_later(count, 0, 0, 0, 0);
}

/* Rings 64 doorbells, all of which are served. Then it stops, and rings another one. */
static pid_t ring_twice(struct mock *m)
{
	pid_t pid = fork();
	int status;

	if (pid) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSTOPPED(status));
		ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL);
		return pid;
	}
	signal(SIGUSR1, nested_handler);
	for (uint32_t i = 0; i < 64;) {
		sh_enter(&m->dev);
		do
			sh_later(count, 0, i++, 0, 0);
		while (i % 32);
		sh_leave(&m->dev);
	}
	sh_enter(&m->dev);
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	sh_later(count, 0, 100, 0, 0);
	sh_leave(&m->dev);
	while (!handled)
		usleep(10);
	_exit(rung[100] == 1 && rung[0] == 2 ? 0 : 1);
}

/*
 * A handler rings a doorbell while its thread, or a handler below it, is at any instruction of the
 * recording of another one. The place in the list has held the handler's doorbell before.
 */
static void a_doorbell_on_top_of_another_is_served(void **state)
{
	struct mock *m = mock_new(NULL);
	int status;

	(void)state;
	nested = m;
	for (unsigned int at = 0; at < 400; at++) {
		pid_t pid = ring_twice(m);

		for (unsigned int i = 0; i < at; i++)
			assert_true(single_step(pid));
		ptrace(PTRACE_DETACH, pid, NULL, SIGUSR1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	mock_free(m);
}

static void *come_and_go(void *arg)
{
	struct mock *m = arg;
	unsigned int i;

	for (i = 0; i < 2000; i++) {
		if (!sh_enter(&m->dev))
			return (void *)1;
		sh_leave(&m->dev);
	}
	return NULL;
}

static void many_threads_come_and_go(void **state)
{
	struct mock *m = mock_new(NULL);
	pthread_t t[8];
	unsigned int i, round;
	void *ret;

	(void)state;
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 8; i++)
			assert_int_equal(pthread_create(&t[i], NULL, come_and_go, m), 0);
		for (i = 0; i < 20; i++)
			wait_for_grace(m);
		for (i = 0; i < 8; i++) {
			assert_int_equal(pthread_join(t[i], &ret), 0);
			assert_null(ret);
		}
	}
	assert_int_equal(taken(m), 1);
	assert_true(m->inst->exec_used <= 9);
	mock_free(m);
}

/* All slots are made, but a store to each would take a page fault for each of their pages. */
static void a_new_instance_touches_few_pages(void **state)
{
	struct rusage before, after;
	struct mock *m;
	struct sh_exec *e;

	(void)state;
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	m = mock_new(NULL);
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	assert_true((uint64_t)(after.ru_minflt - before.ru_minflt) <
		    SH_MAX_EXEC * sizeof(*e) / 4096);
	e = sh_at(&m->dev, SH_EXEC_OFF);
	for (uint32_t i = 1; i < SH_MAX_EXEC; i++) {
		assert_int_equal(pthread_mutex_trylock(&e[i].owner), 0);
		assert_int_equal(pthread_mutex_trylock(&e[i].owner), EBUSY);
		assert_int_equal(pthread_mutex_unlock(&e[i].owner), 0);
	}
	mock_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entering_twice_is_refused),
		cmocka_unit_test(removal_waits_for_threads_inside),
		cmocka_unit_test(dead_threads_are_not_waited_for),
		cmocka_unit_test(stopped_threads_hold_up_only_a_grace),
		cmocka_unit_test(a_handlers_doorbell_is_served_on_the_way_out),
		cmocka_unit_test(a_doorbell_on_top_of_another_is_served),
		cmocka_unit_test(many_threads_come_and_go),
		cmocka_unit_test(a_new_instance_touches_few_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
