// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the copy for processors that make stores visible in any order is right: for every
 * length, from and to any alignment, with nothing stored beside it. One barrier stands between the
 * last of the stores and all others, so a receiver that polls the last byte finds the rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void at_barrier(int order);

/* The test looks at what is stored where the copy has its barrier. */
#define __atomic_thread_fence at_barrier
#define SH_WEAKLY_ORDERED     1
#define sh_copy_forward	      sh_copy_weak
#include "softhca/device/memory/copy.c"

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

/* The copy that is going on, into memory that was all 0xee; no byte that is copied is. */
static struct {
	const unsigned char *to;
	uint64_t len;
	unsigned int barriers;
	uint64_t missing; /* at the barrier: so many bytes, the last ones */
} going;

static __attribute__((noinline)) void at_barrier(int order)
{
	uint64_t stored = 0;

	(void)order;
	if (!going.to)
		return;
	while (stored < going.len && going.to[stored] != 0xee)
		stored++;
	going.missing = going.len - stored;
	for (; stored < going.len; stored++)
		assert_int_equal(going.to[stored], 0xee);
	going.barriers++;
}

static void begin(unsigned char *to, uint64_t len)
{
	memset(&going, 0, sizeof(going));
	going.to = to;
	going.len = len;
}

/* What was stored behind the barrier is one store: of one byte, or of one word at its place. */
static void in_order(void)
{
	const uintptr_t end = (uintptr_t)going.to + going.len;

	going.to = NULL;
	assert_int_equal(going.barriers, 1);
	if (going.missing == 1)
		return;
	assert_in_range(going.missing, 2, sizeof(uint64_t));
	assert_int_equal(end % sizeof(uint64_t), 0);
}

static void test_order(void **state)
{
	static unsigned char from[4 * STEP], to[4 * STEP + 16] __attribute__((aligned(16)));

	(void)state;
	for (unsigned int i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i % 200);
	for (uint64_t len = 1; len <= sizeof(from); len += len < 300 ? 1 : 61)
		for (unsigned int at = 0; at < 16; at++) {
			memset(to, 0xee, sizeof(to));
			begin(to + at, len);
			sh_copy_weak(to + at, from, len);
			in_order();
			assert_memory_equal(to + at, from, len);
		}
}

/* Short pieces of device memory go another way. Eight bytes are stored at once. */
static void test_short(void **state)
{
	static unsigned char from[64], to[sizeof(from) + 32] __attribute__((aligned(16)));
	const struct sh_dev dev = {.inst = (void *)to, .shared_end = sizeof(to)};

	(void)state;
	for (unsigned int i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i + 1);
	for (uint64_t len = 1; len <= sizeof(from); len++)
		for (unsigned int at = 0; at < 16; at++) {
			const struct sh_seg src = {(uintptr_t)from, len};
			const struct sh_seg dst = {SH_SEG_SHARED | at, len};

			memset(to, 0xee, sizeof(to));
			begin(to + at, len);
			assert_true(sh_copy_one(&dev, &dst, 0, &src, len));
			if (len == sizeof(uint64_t))
				assert_int_equal(going.barriers, 0);
			else
				in_order();
			going.to = NULL;
			assert_memory_equal(to + at, from, len);
			assert_int_equal(to[at + len], 0xee);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy), cmocka_unit_test(test_steps),
		cmocka_unit_test(test_order), cmocka_unit_test(test_short)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
