// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what the preloaded library knows of the application's mappings is right after a part
 * of one was unmapped by a direct system call and mapped again. It sees that an object calls a
 * function elsewhere, also an object that was loaded later.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/shim/memory/own.c"
#include "softhca/shim/memory/ranges.c"
#include "softhca/shim/memory/slots.c"

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

/* Where the slot of this program leads, for a function that it calls. */
static const void **slot_of(const void *fn)
{
	for (unsigned int i = 0; i < slots; i++)
		if (*slot[i].at == fn && (uintptr_t)slot[i].at >= slot[i].begin &&
		    (uintptr_t)slot[i].at < slot[i].end && (uintptr_t)slot_of >= slot[i].begin &&
		    (uintptr_t)slot_of < slot[i].end)
			return (const void **)slot[i].at;
	return NULL;
}

static void test_slots(void **state)
{
	static const char *const name[] = {"getppid"};
	const void *fn[] = {dlsym(RTLD_DEFAULT, "getppid")}, **at;
	uintptr_t page;

	(void)state;
	assert_true(getppid() > 0);
	assert_false(slots_lead_elsewhere(name, fn, 1));
	at = slot_of(fn[0]);
	assert_non_null(at);
	page = (uintptr_t)at & ~(PAGE - 1);
	assert_int_equal(mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE), 0);
	*at = dlsym(RTLD_DEFAULT, "getpid");
	assert_true(slots_lead_elsewhere(name, fn, 1));
	*at = fn[0];
	assert_false(slots_lead_elsewhere(name, fn, 1));
	/*
	 * What was noted before says nothing of objects that come later, nor of those that have
	 * gone.
	 */
	for (int i = 0; i < 3; i++) {
		unsigned long long before = adds;
		void *other = dlopen("libresolv.so.2", RTLD_NOW);

		assert_non_null(other);
		assert_false(slots_lead_elsewhere(name, fn, 1));
		assert_true(adds > before || i);
		assert_int_equal(dlclose(other), 0);
		assert_false(slots_lead_elsewhere(name, fn, 1));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_slots),
	};

	return cmocka_run_group_tests_name("softhca_shim_own", tests, NULL, NULL);
}
