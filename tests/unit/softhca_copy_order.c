// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the copy for processors that make stores visible in any order is right: for every
 * length, from and to any alignment, with nothing stored beside it.
 */
#define SH_WEAKLY_ORDERED 1
#define sh_copy_forward	  sh_copy_weak
#include "softhca/device/memory/copy.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define ROOM 512

/* The file also commits, which this test does not. */
__thread struct sh_self sh_self;

static void test_copy(void **state)
{
	static unsigned char from[ROOM + 16], to[ROOM + 48] __attribute__((aligned(16)));
	unsigned char expected[sizeof(to)];

	(void)state;
	for (unsigned int i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 7 + i / 256);
	for (unsigned int len = 0; len <= 300; len++)
		for (unsigned int at = 0; at < 16; at++)
			for (unsigned int src = 0; src < 16; src += 5) {
				memset(to, 0xee, sizeof(to));
				memset(expected, 0xee, sizeof(expected));
				memcpy(expected + 16 + at, from + src, len);
				sh_copy_weak(to + 16 + at, from + src, len);
				assert_memory_equal(to, expected, sizeof(to));
			}
}

/* Copies that go in steps: lengths just below and above one, two, three and eight of them. */
static void test_steps(void **state)
{
	static unsigned char from[9 * STEP], to[9 * STEP + 48], expected[sizeof(to)];

	(void)state;
	for (unsigned int i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 7 + i / 256);
	for (unsigned int steps = 1; steps <= 8; steps = steps < 3 ? steps + 1 : steps + 5)
		for (uint64_t len = steps * STEP - 70; len <= steps * STEP + 70; len++) {
			memset(to, 0xee, sizeof(to));
			memset(expected, 0xee, sizeof(expected));
			memcpy(expected + 16 + len % 16, from, len);
			sh_copy_weak(to + 16 + len % 16, from, len);
			assert_memory_equal(to, expected, sizeof(to));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_copy),
					   cmocka_unit_test(test_steps)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
