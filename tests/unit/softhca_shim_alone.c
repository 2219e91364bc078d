// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the preloaded library waits for a thread that is about to end, and after two seconds
 * no longer, however long each look takes: the caller holds the connection to the daemon. A
 * debugger can delay that end for as long as it likes.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "softhca/host/process.h"
#include "softhca/host/procstat.h"

/* Looks at the clock, and how much later each of them is. */
static unsigned int looks;
static uint64_t later;
/* Looks at the other thread, which is said to end. */
static unsigned int stats;

static uint64_t clock_of_test(void)
{
	return looks++ * later;
}

static const char *ending(const char *path, char *text, size_t size, int *err)
{
	(void)path;
	(void)text;
	(void)size;
	*err = 0;
	stats++;
	return " S 1 1 1 0 -1 4 ";
}

#define sh_now	     clock_of_test
#define sh_proc_stat ending
#include "softhca/shim/memory/alone.c"
#undef sh_now
#undef sh_proc_stat

static void *lives(void *end)
{
	char byte;

	return read(*(int *)end, &byte, 1) ? end : NULL;
}

static void test_bounded(void **state)
{
	pthread_t thread;
	int end[2];
	void *ret;

	(void)state;
	assert_int_equal(pipe(end), 0);
	assert_int_equal(pthread_create(&thread, NULL, lives, end), 0);
	later = 600000000;
	assert_false(alone());
	/* Each wait takes two looks at the other thread at most. */
	assert_in_range(stats, 1, 12);
	close(end[1]);
	assert_int_equal(pthread_join(thread, &ret), 0);
	assert_null(ret);
	close(end[0]);
	later = 0;
	assert_true(alone());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests_name("softhca_shim_alone", tests, NULL, NULL);
}
