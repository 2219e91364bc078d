// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what the preloaded library knows of the application's mappings is right after a part
 * of one was unmapped by a direct system call and mapped again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "softhca/shim/memory/own.c"
#include "softhca/shim/memory/ranges.c"

#define PAGE  UINT64_C(4096)
#define AREA  UINT64_C(0x10000000)
#define PAGES 16

void shim_handlers_wait(void)
{
}

void shim_handlers_go_on(void)
{
}

const void *own_source(int i)
{
	(void)i;
	return (const void *)own_init;
}

static void test_unseen(void **state)
{
	(void)state;
	usual_heap = true; /* also where a sanitizer has another */
	own_mapped(AREA, PAGES * PAGE);
	assert_true(own_has(AREA, PAGES * PAGE));
	own_mapped(AREA + 4 * PAGE, 4 * PAGE);
	assert_true(own_has(AREA, PAGES * PAGE));
	own_unmapped(AREA + 4 * PAGE, 4 * PAGE);
	for (uint64_t i = 0; i < PAGES; i++)
		assert_int_equal(own_has(AREA + i * PAGE, PAGE), i < 4 || i >= 8);
	own_mapped(AREA + 2 * PAGE, 4 * PAGE);
	assert_true(own_has(AREA, 6 * PAGE));
	own_unmapped(AREA, PAGES * PAGE);
	for (uint64_t i = 0; i < PAGES; i++)
		assert_false(own_has(AREA + i * PAGE, PAGE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unseen),
	};

	return cmocka_run_group_tests_name("softhca_shim_own", tests, NULL, NULL);
}
