// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: memory keys admit exactly the accesses that were registered, and gather lists are
 * cut at the bytes asked for.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "softhca_mock.h"
#include "softhca/device/memory/mr.h"

#define KEY   0x1100u /* index 17 */
#define PD    4
#define START UINT64_C(0x7f0000001000)

static void checks_key_domain_bounds_and_rights(void **state)
{
	struct mock *m = mock_new(NULL);
	uint32_t ctx = mock_ctx(m, 0), out = 0;
	struct sh_dev *d = &m->dev;

	(void)state;
	assert_int_equal(sh_mr_check(d, 0, KEY, PD, START, 1, 0, &out), -ENOENT);
	assert_int_equal(sh_mr_create(&m->daemon, 0, KEY, ctx, PD, START, 4096,
				      SH_LOCAL_WRITE | SH_REMOTE_READ),
			 0);
	assert_int_equal(sh_mr_create(&m->daemon, 0, KEY, ctx, PD, START, 1, 0), -EEXIST);
	assert_int_equal(sh_mr_create(&m->daemon, 0, 0, ctx, PD, START, 1, 0), -EINVAL);
	assert_int_equal(sh_mr_create(&m->daemon, 3, KEY, ctx, PD, START, 1, 0), -EINVAL);
	assert_int_equal(sh_mr_check(d, 0, KEY, PD, START, 4096, 0, &out), 0);
	assert_int_equal(out, ctx);
	assert_int_equal(sh_mr_check(d, 0, KEY, PD, START + 4095, 1, SH_LOCAL_WRITE, &out), 0);
	/*
	 * Every bit of the key counts. These are another number for the same entry, a key without
	 * an entry, and key 0.
	 */
	assert_int_equal(sh_mr_check(d, 0, KEY ^ (1u << 27), PD, START, 1, 0, &out), -ENOENT);
	assert_int_equal(sh_mr_check(d, 0, KEY + 1, PD, START, 1, 0, &out), -ENOENT);
	assert_int_equal(sh_mr_check(d, 0, KEY + 0x100, PD, START, 1, 0, &out), -ENOENT);
	assert_int_equal(sh_mr_check(d, 0, 0, PD, START, 1, 0, &out), -ENOENT);
	assert_int_equal(sh_mr_check(d, 1, KEY, PD, START, 1, 0, &out), -ENOENT);
	assert_int_equal(sh_mr_check(d, 0, KEY, PD + 1, START, 1, 0, &out), -EPERM);
	assert_int_equal(sh_mr_check(d, 0, KEY, PD, START, 1, SH_REMOTE_WRITE, &out), -EPERM);
	assert_int_equal(
		sh_mr_check(d, 0, KEY, PD, START, 1, SH_REMOTE_READ | SH_REMOTE_ATOMIC, &out),
		-EPERM);
	assert_int_equal(sh_mr_check(d, 0, KEY, PD, START, 4097, 0, &out), -ERANGE);
	assert_int_equal(sh_mr_check(d, 0, KEY, PD, START - 1, 1, 0, &out), -ERANGE);
	assert_int_equal(sh_mr_check(d, 0, KEY, PD, START + 4096, 1, 0, &out), -ERANGE);
	assert_int_equal(sh_mr_check(d, 0, KEY, PD, START + 1, UINT64_MAX, 0, &out), -ERANGE);
	assert_int_equal(sh_mr_check(d, 0, KEY, PD, UINT64_MAX, 2, 0, &out), -ERANGE);
	assert_int_equal(sh_mr_check(d, 0, KEY, PD, 0, 0, 0, &out), 0); /* no bytes, no bounds */
	assert_int_equal(sh_mr_destroy(&m->daemon, 0, KEY + 1), -ENOENT);
	assert_int_equal(sh_mr_destroy(&m->daemon, 0, KEY), 0);
	assert_int_equal(sh_mr_destroy(&m->daemon, 0, KEY), -ENOENT);
	assert_int_equal(sh_mr_check(d, 0, KEY, PD, START, 1, 0, &out), -ENOENT);
	mock_free(m);
}

static void high_key_bits_select_the_entry_too(void **state)
{
	struct mock *m = mock_new(NULL);
	uint32_t ctx = mock_ctx(m, 0), out;
	/* index 0x20011 */
	const uint32_t key = 0x02001100;

	(void)state;
	assert_int_equal(sh_mr_create(&m->daemon, 0, KEY, ctx, PD, START, 10, 0), 0);
	assert_int_equal(sh_mr_create(&m->daemon, 0, key, ctx, PD, START, 20, 0), 0);
	assert_int_equal(sh_mr_check(&m->dev, 0, KEY, PD, START, 20, 0, &out), -ERANGE);
	assert_int_equal(sh_mr_check(&m->dev, 0, key, PD, START, 20, 0, &out), 0);
	/* Another high part of the key still means the same entry, which is taken. */
	assert_int_equal(sh_mr_create(&m->daemon, 0, KEY | 0x10000000, ctx, PD, START, 20, 0),
			 -EEXIST);
	assert_int_equal(sh_mr_create(&m->daemon, 0, KEY | 1, ctx, PD, START, 20, 0), -EEXIST);
	mock_free(m);
}

static void dead_contexts_have_no_keys(void **state)
{
	struct mock *m = mock_new(NULL);
	uint32_t ctx = mock_ctx(m, 0), out;

	(void)state;
	assert_int_equal(sh_mr_create(&m->daemon, 0, KEY, ctx, PD, START, 10, 0), 0);
	sh_ctx(&m->dev, ctx)->state = SH_CTX_GONE;
	assert_int_equal(sh_mr_check(&m->dev, 0, KEY, PD, START, 1, 0, &out), -ENOENT);
	assert_int_equal(sh_mr_create(&m->daemon, 0, KEY + 0x100, 0, PD, START, 10, 0), 0);
	assert_int_equal(sh_mr_check(&m->dev, 0, KEY + 0x100, PD, START, 1, 0, &out), -ENOENT);
	mock_free(m);
}

static void slices_lists(void **state)
{
	struct mock *m = mock_new(NULL);
	uint32_t ctx = mock_ctx(m, 0), other = mock_ctx(m, 0), out = 0;
	struct sh_sge list[4] = {{START, 100, KEY},
				 {START + 1000, 0, 0xdead},
				 {START + 2000, 50, KEY},
				 {START + 4090, 7, KEY}};
	struct sh_seg seg[4];
	struct sh_dev *d = &m->dev;

	(void)state;
	assert_int_equal(sh_mr_create(&m->daemon, 0, KEY, ctx, PD, START, 4096, SH_LOCAL_WRITE), 0);
	assert_int_equal(sh_mr_slice(d, sh_hca(d, 0), PD, 0, list, 4, 0, 150, seg, 4, &out), 2);
	assert_int_equal(out, ctx);
	assert_true(seg[0].addr == START && seg[0].len == 100 && seg[1].addr == START + 2000 &&
		    seg[1].len == 50);
	assert_int_equal(
		sh_mr_slice(d, sh_hca(d, 0), PD, SH_LOCAL_WRITE, list, 4, 99, 3, seg, 4, &out), 2);
	assert_true(seg[0].addr == START + 99 && seg[0].len == 1 && seg[1].addr == START + 2000 &&
		    seg[1].len == 2);
	assert_int_equal(sh_mr_slice(d, sh_hca(d, 0), PD, 0, list, 4, 100, 50, seg, 4, &out), 1);
	assert_int_equal(sh_mr_slice(d, sh_hca(d, 0), PD, 0, list, 4, 150, 0, seg, 4, &out), 0);
	/* Only the entries that the bytes lie in are checked. */
	assert_int_equal(sh_mr_slice(d, sh_hca(d, 0), PD, 0, list, 4, 0, 156, seg, 4, &out), 3);
	assert_int_equal(sh_mr_slice(d, sh_hca(d, 0), PD, 0, list, 4, 0, 157, seg, 4, &out),
			 -ERANGE);
	assert_int_equal(sh_mr_slice(d, sh_hca(d, 0), PD, 0, list, 4, 0, 158, seg, 4, &out),
			 -ERANGE);
	assert_int_equal(sh_mr_slice(d, sh_hca(d, 0), PD, 0, list, 3, 0, 151, seg, 4, &out),
			 -EMSGSIZE);
	assert_int_equal(sh_mr_slice(d, sh_hca(d, 0), PD, 0, list, 3, 400, 1, seg, 4, &out),
			 -EMSGSIZE);
	assert_int_equal(
		sh_mr_slice(d, sh_hca(d, 0), PD, SH_REMOTE_READ, list, 4, 0, 1, seg, 4, &out),
		-EPERM);
	/* All regions of a message must belong to one context. */
	assert_int_equal(sh_mr_create(&m->daemon, 0, KEY + 0x100, other, PD, START, 4096, 0), 0);
	list[2].key = KEY + 0x100;
	assert_int_equal(sh_mr_slice(d, sh_hca(d, 0), PD, 0, list, 4, 0, 101, seg, 4, &out),
			 -EPERM);
	mock_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checks_key_domain_bounds_and_rights),
		cmocka_unit_test(high_key_bits_select_the_entry_too),
		cmocka_unit_test(dead_contexts_have_no_keys),
		cmocka_unit_test(slices_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
