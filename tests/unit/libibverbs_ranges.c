// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: over long random histories the tree of counted ranges agrees with a plain array,
 * even if the edge function refuses some changes. The test compares the counts and what the tree
 * tells the edge function, and checks that no two adjacent ranges have the same count.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ranges.c"

#define CELLS 64
#define STEPS 20000

static unsigned int count[CELLS];
static int edged[CELLS];       /* what edge was last told of each cell: covered or not */
static int calls, refuse_call; /* which call of edge refuses; 0: none */
static uint64_t seed = 12345;

static unsigned int rnd(unsigned int n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % n;
}

static int edge(uintptr_t start, uintptr_t last, bool covered)
{
	uintptr_t i;

	if (refuse_call && ++calls == refuse_call)
		return -EAGAIN;
	/* The test covers nothing outside the cells. */
	assert_true(last < CELLS);
	for (i = start; i <= last; ++i)
		edged[i] = covered;
	return 0;
}

static void check_all(const struct ranges *ranges)
{
	unsigned int i, different = 1;

	for (i = 0; i < CELLS; ++i) {
		assert_int_equal(ranges_count(ranges, i), count[i]);
		assert_int_equal(edged[i], !!count[i]);
		different += count[i] != (i ? count[i - 1] : count[0]);
	}
	different += count[CELLS - 1] != 0;
	assert_int_equal(ranges_size(ranges), different);
	assert_int_equal(ranges_count(ranges, UINTPTR_MAX), 0);
}

static void random_histories(void **state)
{
	struct ranges ranges;
	int step, i, ret;

	(void)state;
	assert_int_equal(ranges_init(&ranges), 0);
	check_all(&ranges);
	for (step = 0; step < STEPS; ++step) {
		unsigned int a = rnd(CELLS), b = rnd(CELLS);
		unsigned int start = a < b ? a : b, last = a < b ? b : a;
		/* At times most changes cover, so that counts go beyond 1. */
		bool cover = rnd(100) < (step / 200 % 2 ? 65 : 40);

		calls = 0;
		refuse_call = rnd(5) ? 0 : 1 + (int)rnd(3);
		ret = ranges_change(&ranges, start, last, cover, edge);
		if (ret) {
			assert_int_equal(ret, -EAGAIN);
			/*
			 * The tree has told edge the opposite of the refused change. So each cell
			 * is as it was before.
			 */
			for (i = 0; i < CELLS; ++i)
				edged[i] = !!count[i];
		} else {
			for (i = start; i <= (int)last; ++i)
				if (cover)
					++count[i];
				else if (count[i])
					--count[i];
		}
		check_all(&ranges);
	}
	ranges_destroy(&ranges);
}

static int told;

static int edge_whole(uintptr_t start, uintptr_t last, bool covered)
{
	assert_true(start == 0 && last == UINTPTR_MAX);
	told = covered ? 1 : 2;
	return 0;
}

static void whole_address_space(void **state)
{
	struct ranges ranges;

	(void)state;
	assert_int_equal(ranges_init(&ranges), 0);
	assert_int_equal(ranges_change(&ranges, 0, UINTPTR_MAX, true, edge_whole), 0);
	assert_int_equal(told, 1);
	assert_int_equal(ranges_count(&ranges, UINTPTR_MAX), 1);
	assert_int_equal(ranges_size(&ranges), 1);
	assert_int_equal(ranges_change(&ranges, 0, UINTPTR_MAX, false, edge_whole), 0);
	assert_int_equal(told, 2);
	ranges_destroy(&ranges);
}

static int no_edge(uintptr_t start, uintptr_t last, bool covered)
{
	(void)start;
	(void)last;
	(void)covered;
	return 0;
}

static unsigned int depth(const struct range *range)
{
	unsigned int l, r;

	if (!range)
		return 0;
	l = depth(range->left);
	r = depth(range->right);
	return 1 + (l > r ? l : r);
}

/*
 * Ranges often come in the order of their addresses. An unbalanced tree would then become a list.
 */
static void stays_balanced(void **state)
{
	struct ranges ranges;
	unsigned int i;

	(void)state;
	assert_int_equal(ranges_init(&ranges), 0);
	for (i = 0; i < 50000; ++i)
		assert_int_equal(ranges_change(&ranges, 4096ull * (2 * i + 1),
					       4096ull * (2 * i + 2) - 1, true, no_edge),
				 0);
	assert_int_equal(ranges_size(&ranges), 100001);
	assert_true(depth(ranges.root) < 100);
	for (i = 0; i < 50000; ++i)
		assert_int_equal(ranges_change(&ranges, 4096ull * (2 * i + 1),
					       4096ull * (2 * i + 2) - 1, false, no_edge),
				 0);
	assert_int_equal(ranges_size(&ranges), 1);
	ranges_destroy(&ranges);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_histories),
		cmocka_unit_test(whole_address_space),
		cmocka_unit_test(stays_balanced),
	};

	return cmocka_run_group_tests_name("ranges", tests, NULL, NULL);
}
