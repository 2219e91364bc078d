// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: calls that wait for their time come in the order of their deadlines, and those with
 * the same deadline in the order in which they were made, also while others come and go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "softhca/host/calls.h"

#define MOST 600

static uint32_t next(uint32_t *x)
{
	*x = *x * UINT32_C(1664525) + UINT32_C(1013904223);
	return *x >> 16;
}

/* a: the deadline, b: how many were made before. */
static void put(struct sh_calls *s, uint64_t deadline, uint64_t b)
{
	sh_calls_put(s, &(struct sh_call){.deadline = deadline, .a = deadline, .b = b});
}

static void test_same(void **state)
{
	struct sh_call room[MOST];
	struct sh_calls s = {.call = room};

	(void)state;
	for (uint64_t i = 0; i < MOST; i++)
		put(&s, 7, i);
	for (uint64_t i = 0; i < MOST; i++)
		assert_int_equal(sh_calls_take(&s).b, i);
	assert_int_equal(s.used, 0);
}

static void test_mixed(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 20; seed++) {
		struct sh_call room[MOST], last = {0}, c;
		struct sh_calls s = {.call = room};
		uint32_t x = seed;
		uint64_t made = 0, taken = 0, now = 0;

		while (made < MOST || s.used) {
			if (made < MOST && (!s.used || next(&x) % 3)) {
				put(&s, now + next(&x) % 8, made++);
				continue;
			}
			c = sh_calls_take(&s);
			assert_int_equal(c.a, c.deadline);
			assert_true(c.deadline >= last.deadline);
			if (taken++ && c.deadline == last.deadline)
				assert_true(c.b > last.b);
			last = c;
			now = c.deadline;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_mixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
