// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what the preloaded library knows of the application's mappings is right after a part
 * of one was unmapped unseen and mapped again, and counts for nothing once somebody has overwritten
 * the functions by which it knows, and it does not hear of calls any more.
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

/* Functions whose first instructions a test can change. */
static char ours_now[OWN_SOURCES][32], libcs_now[OWN_SOURCES][32];
static bool hears;
static int looks;

void *own_source(int i)
{
	return ours_now[i];
}

void *own_libc_source(int i)
{
	return libcs_now[i];
}

bool own_hears(void)
{
	looks++;
	return hears;
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

/* As they are at the start. */
static int fresh(void **state)
{
	(void)state;
	memset(ours_now, 0, sizeof(ours_now));
	memset(libcs_now, 0, sizeof(libcs_now));
	atomic_store(&blind, false);
	own_init();
	usual_heap = true;
	looks = 0;
	return 0;
}

/* Code that reports all calls may stand in any of the functions, and be changed again. */
static void test_heard(void **state)
{
	(void)state;
	own_look();
	assert_false(own_blind());
	assert_int_equal(looks, 0);
	for (int i = 0; i < 2 * OWN_SOURCES; i++) {
		ours_now[i % OWN_SOURCES][15]++;
		assert_true(own_blind()); /* it is not known yet */
		hears = true;
		own_look();
		assert_false(own_blind());
		assert_int_equal(looks, i + 1);
		own_look();
		assert_int_equal(looks, i + 1);
	}
}

/* Restored or not: what was unmapped meanwhile is not known. */
static void test_unheard(void **state)
{
	(void)state;
	ours_now[OWN_MREMAP][0] = 1;
	hears = false;
	own_look();
	assert_true(own_blind());
	ours_now[OWN_MREMAP][0] = 0;
	hears = true;
	own_look();
	assert_true(own_blind());
	assert_int_equal(looks, 1);
}

/* The C library's own calls would be taken for the application's. */
static void test_libc(void **state)
{
	(void)state;
	hears = true;
	libcs_now[OWN_MMAP][3] = 1;
	assert_true(own_blind());
	own_look();
	assert_true(own_blind());
	libcs_now[OWN_MMAP][3] = 0;
	own_look();
	assert_true(own_blind());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unseen),
		cmocka_unit_test_setup(test_heard, fresh),
		cmocka_unit_test_setup(test_unheard, fresh),
		cmocka_unit_test_setup(test_libc, fresh),
	};

	return cmocka_run_group_tests_name("softhca_shim_own", tests, NULL, NULL);
}
