// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the preloaded library's table of ranges agrees with a plain array over long random
 * histories. When memory is short, a removal loses nothing that is to stay.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "softhca/host/sys.h"

static bool short_of_memory;

#define sh_pages(len) (short_of_memory ? NULL : sh_pages(len))
#include "softhca/shim/memory/ranges.c"
#undef sh_pages

#define CELLS 512
#define STEPS 20000

static uint64_t seed = 4711;

static unsigned int rnd(unsigned int n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)(seed >> 33) % n;
}

/* Returns where a cell is in device memory; 0: it is in no range. */
static uint64_t at(const struct ranges *t, uint64_t addr)
{
	size_t i = ranges_find(t, addr);

	return i < t->count && t->at[i].uaddr <= addr ? t->at[i].shm + (addr - t->at[i].uaddr) : 0;
}

static void check_all(const struct ranges *t, const uint64_t *cell)
{
	for (uint64_t i = 0; i < CELLS; i++)
		assert_int_equal(at(t, i), cell[i]);
	for (size_t i = 1; i < t->count; i++)
		assert_true(t->at[i - 1].uaddr + t->at[i - 1].len <= t->at[i].uaddr);
}

static void random_histories(void **state)
{
	static uint64_t cell[CELLS];
	struct ranges t = {0};

	(void)state;
	for (int step = 0; step < STEPS; step++) {
		uint64_t from = rnd(CELLS), len = 1 + rnd(12), shm = 1000 + rnd(100000);

		if (from + len > CELLS)
			len = CELLS - from;
		assert_true(ranges_remove(&t, from, len));
		for (uint64_t i = from; i < from + len; i++)
			cell[i] = 0;
		if (rnd(2)) {
			assert_true(ranges_room(&t));
			ranges_join(&t, (struct range){from, len, shm});
			for (uint64_t i = from; i < from + len; i++)
				cell[i] = shm + (i - from);
		}
		check_all(&t, cell);
	}
}

/* Fills the table's array, so that the next range needs memory. */
static uint64_t fill_up(struct ranges *t)
{
	uint64_t next = 1 << 20;

	do {
		assert_true(ranges_room(t));
		ranges_insert(t, (struct range){next, 10, next});
		next += 100;
	} while (t->head && t->head + t->count < t->room);
	return next;
}

static void nothing_is_lost(void **state)
{
	struct ranges t = {0};
	uint64_t all = 0, left = 0;

	(void)state;
	assert_true(ranges_room(&t));
	ranges_insert(&t, (struct range){1000, 100, 5000});
	fill_up(&t);
	for (size_t i = 0; i < t.count; i++)
		all += t.at[i].len;
	short_of_memory = true;
	/* Cutting the middle out of a range takes memory. Without it the range stays as it was. */
	assert_false(ranges_remove(&t, 1040, 20));
	for (uint64_t i = 1000; i < 1100; i++)
		assert_int_equal(at(&t, i), 4000 + i);
	for (size_t i = 0; i < t.count; i++)
		left += t.at[i].len;
	assert_int_equal(left, all);
	/* Removals that take no memory succeed. */
	assert_true(ranges_remove(&t, 1000, 10));
	assert_true(ranges_remove(&t, 1090, 10));
	assert_int_equal(at(&t, 1009), 0);
	assert_int_equal(at(&t, 1010), 5010);
	assert_int_equal(at(&t, 1089), 5089);
	assert_int_equal(at(&t, 1090), 0);
	short_of_memory = false;
	assert_true(ranges_remove(&t, 1040, 20));
	assert_int_equal(at(&t, 1039), 5039);
	assert_int_equal(at(&t, 1050), 0);
	assert_int_equal(at(&t, 1060), 5060);
	assert_int_equal(at(&t, 1089), 5089);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_histories),
		cmocka_unit_test(nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
