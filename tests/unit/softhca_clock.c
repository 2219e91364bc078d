// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: device code and what a process lends to it ask no function for the time that the
 * program may have replaced: clock_gettime() and time(), which the test has taken the place of.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/mr.h"
#include "softhca/host/process.h"
#include "softhca_mock.h"

static volatile int asked;

int clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	asked++;
	*ts = (struct timespec){.tv_sec = 1};
	return 0;
}

time_t time(time_t *t)
{
	asked++;
	if (t)
		*t = 1;
	return 1;
}

static uint64_t kernels_time(void)
{
	struct timespec ts;

	assert_int_equal(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void the_time_is_the_kernels(void **state)
{
	uint64_t before, now, after;

	(void)state;
	for (int prepared = 0; prepared < 2; prepared++) {
		asked = 0;
		before = kernels_time();
		now = sh_now();
		after = kernels_time();
		assert_true(before <= now && now <= after);
		assert_int_equal(asked, 0);
		sh_process_prepare();
	}
}

static struct sh_srq *object(struct mock *m)
{
	struct sh_srq *srq = (struct sh_srq *)sh_hca_table(&m->dev, 0, SH_HCA_SRQS) + 100;

	sh_lock_init(&srq->lock);
	return srq;
}

static void *waits_for_it(void *arg)
{
	struct mock *m = arg;
	struct sh_srq *o = (struct sh_srq *)sh_hca_table(&m->dev, 0, SH_HCA_SRQS) + 100;

	assert_int_equal(sh_hold(&m->dev, &o->lock, SH_WAIT_BOUNDED), -EBUSY);
	assert_int_equal(sh_hold(&m->dev, &o->lock, SH_WAIT_EVER), 0);
	sh_let_go(&o->lock);
	sh_exec_release();
	return NULL;
}

static void a_sleeper_for_a_lock_does_not_ask(void **state)
{
	struct mock *m = mock_new(NULL);
	struct sh_srq *o = object(m);
	pthread_t t;

	(void)state;
	assert_int_equal(sh_hold(&m->dev, &o->lock, SH_WAIT_EVER), 0);
	asked = 0;
	assert_int_equal(pthread_create(&t, NULL, waits_for_it, m), 0);
	while (!(__atomic_load_n(&o->lock.owner, __ATOMIC_SEQ_CST) & SH_OWNER_SLEEPERS))
		usleep(100);
	sh_let_go(&o->lock);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(asked, 0);
	mock_free(m);
}

static void *enters(void *arg)
{
	struct mock *m = arg;

	assert_true(sh_enter(&m->dev));
	sh_leave(&m->dev);
	return NULL;
}

/* With no slot free, a thread that enters waits for the one that all the others use. */
static void a_sleeper_for_the_shared_slot_does_not_ask(void **state)
{
	struct mock *m = mock_new(NULL);
	struct sh_exec *e = sh_at(&m->dev, SH_EXEC_OFF);
	static bool taken[SH_MAX_EXEC];
	pthread_t t;

	(void)state;
	/* This thread may have one already. */
	for (uint32_t i = 0; i < SH_MAX_EXEC; i++)
		taken[i] = !pthread_mutex_trylock(&e[i].owner);
	assert_true(taken[SH_MAX_EXEC - 1]);
	asked = 0;
	assert_int_equal(pthread_create(&t, NULL, enters, m), 0);
	/* Long enough to look again. Whatever it has done by then is right. */
	usleep(250000);
	for (uint32_t i = 0; i < SH_MAX_EXEC; i++)
		if (taken[i])
			assert_int_equal(pthread_mutex_unlock(&e[i].owner), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(asked, 0);
	mock_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_time_is_the_kernels),
		cmocka_unit_test(a_sleeper_for_a_lock_does_not_ask),
		cmocka_unit_test(a_sleeper_for_the_shared_slot_does_not_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
