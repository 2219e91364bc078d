// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a thread that needs more of device memory mapped, while another thread of the
 * process is at that, sleeps meanwhile. If it only gave way, one with a real-time policy would keep
 * the other from its processor.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "softhca/host/memory.c"

static int waiter;

static void *waits(void *arg)
{
	__atomic_store_n(&waiter, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	if (!take_growing())
		return arg;
	pthread_mutex_unlock(&growing);
	return NULL;
}

/* How often that thread has slept. */
static unsigned long sleeps(int tid)
{
	unsigned long n = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) &&
	       sscanf(line, "voluntary_ctxt_switches: %lu", &n) != 1)
		;
	fclose(f);
	return n;
}

static void test_sleeps(void **state)
{
	pthread_t thread;
	void *ret;

	(void)state;
	alarm(50);
	pthread_mutex_lock(&growing);
	assert_int_equal(pthread_create(&thread, NULL, waits, &waiter), 0);
	while (!__atomic_load_n(&waiter, __ATOMIC_ACQUIRE))
		usleep(1000);
	while (sleeps(waiter) < 20)
		usleep(1000);
	pthread_mutex_unlock(&growing);
	assert_int_equal(pthread_join(thread, &ret), 0);
	assert_null(ret);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleeps),
	};

	return cmocka_run_group_tests_name("softhca_memory", tests, NULL, NULL);
}
