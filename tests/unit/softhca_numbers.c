// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a number space gives out every number once, in the order of the kernel driver, with
 * high parts that change from round to round.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "softhca/kernel/numbers.h"

static void refuses_bad_shapes(void **state)
{
	struct sh_numbers n;

	(void)state;
	assert_int_equal(sh_numbers_init(&n, 100, 127, 0, false), -EINVAL);
	assert_int_equal(sh_numbers_init(&n, 32, 31, 0, false), -EINVAL);
	assert_int_equal(sh_numbers_init(&n, 128, 63, 0, false), -EINVAL);
	assert_int_equal(sh_numbers_init(&n, 128, 128, 0, false), -EINVAL);
	assert_int_equal(sh_numbers_init(&n, 128, 127, 128, false), -EINVAL);
}

static void counts_up_from_the_reserved(void **state)
{
	struct sh_numbers n;
	uint32_t v, i;

	(void)state;
	assert_int_equal(sh_numbers_init(&n, 1 << 16, 0xffff, 130, false), 0);
	for (i = 130; i < 400; i++) {
		assert_int_equal(sh_numbers_get(&n, &v), 0);
		assert_int_equal(v, i);
	}
	assert_int_equal(n.used, 270);
	sh_numbers_put(&n, 131);
	sh_numbers_put(&n, 131);
	sh_numbers_put(&n, 5);
	assert_int_equal(n.used, 269);
	/* Round robin: the number just freed is not the next one. */
	assert_int_equal(sh_numbers_get(&n, &v), 0);
	assert_int_equal(v, 400);
	sh_numbers_fini(&n);
}

static void wraps_with_a_new_high_part(void **state)
{
	struct sh_numbers n;
	uint32_t v, i;

	(void)state;
	assert_int_equal(sh_numbers_init(&n, 256, 0x3ff, 72, false), 0);
	for (i = 72; i < 256; i++) {
		assert_int_equal(sh_numbers_get(&n, &v), 0);
		assert_int_equal(v, i);
	}
	assert_int_equal(sh_numbers_get(&n, &v), -ENOSPC);
	sh_numbers_put(&n, 100);
	assert_int_equal(sh_numbers_get(&n, &v), 0);
	assert_int_equal(v & 255, 100);
	assert_true(v > 255 && v <= 0x3ff);
	sh_numbers_put(&n, v);
	/* After five more rounds the mask brings the low numbers back. */
	for (i = 0; i < 5; i++) {
		assert_int_equal(sh_numbers_get(&n, &v), 0);
		assert_int_equal(v & 255, 100);
		assert_true(v <= 0x3ff);
		sh_numbers_put(&n, v);
	}
	sh_numbers_fini(&n);
}

static void rewinds_where_asked(void **state)
{
	struct sh_numbers n;
	uint32_t a, b, c;

	(void)state;
	assert_int_equal(sh_numbers_init(&n, 1 << 18, (1 << 23) - 1, 72, true), 0);
	assert_int_equal(sh_numbers_get(&n, &a), 0);
	assert_int_equal(sh_numbers_get(&n, &b), 0);
	sh_numbers_put(&n, a);
	assert_int_equal(sh_numbers_get(&n, &c), 0);
	assert_int_equal(c, a + (1 << 18));
	sh_numbers_fini(&n);
}

/*
 * Compares the number space with a plain model, over many random takes and returns that fill it and
 * empty it.
 */
static void agrees_with_a_plain_model(void **state)
{
	static uint8_t out[1 << 14];
	static uint32_t live[1 << 14];
	struct sh_numbers n;
	uint32_t count = 0, v, seed = 1, last = 16, i;

	(void)state;
	assert_int_equal(sh_numbers_init(&n, 1 << 14, (1 << 14) - 1, 16, false), 0);
	for (i = 0; i < 400000; i++) {
		uint32_t phase = i / 50000 % 2;

		seed = seed * 1103515245 + 12345;
		if ((seed >> 16) % 4 >= 1 + 2 * phase) {
			int err = sh_numbers_get(&n, &v);
			uint32_t want = last, k;

			for (k = 0; k < 1 << 14 && (want < 16 || out[want]); k++)
				want = (want + 1) & ((1 << 14) - 1);
			if (count == (1 << 14) - 16) {
				assert_int_equal(err, -ENOSPC);
				continue;
			}
			assert_int_equal(err, 0);
			assert_int_equal(v, want);
			out[v] = 1;
			live[count++] = v;
			last = (v + 1) & ((1 << 14) - 1);
		} else if (count) {
			uint32_t at = (seed >> 8) % count;

			v = live[at];
			live[at] = live[--count];
			out[v] = 0;
			sh_numbers_put(&n, v);
		}
		assert_int_equal(n.used, count);
	}
	sh_numbers_fini(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_bad_shapes),
		cmocka_unit_test(counts_up_from_the_reserved),
		cmocka_unit_test(wraps_with_a_new_high_part),
		cmocka_unit_test(rewinds_where_asked),
		cmocka_unit_test(agrees_with_a_plain_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
