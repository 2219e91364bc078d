// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the headers declare every exported function with the prototype of the table, and the
 * library has each function.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <infiniband/driver.h>
#include <infiniband/marshall.h>
#include <infiniband/verbs.h>

/* Declared again: the compiler refuses a prototype other than the header's. */
#define P(result, name, parameters) result(name) parameters;
#include "prototypes.tbl"
#undef P

typedef void (*any_function)(void);

static const struct {
	const char *name;
	any_function function;
} functions[] = {
#define P(result, name, parameters) {#name, (any_function)(name)},
#include "prototypes.tbl"
#undef P
};

static void every_function_is_there(void **state)
{
	size_t i;

	(void)state;
	assert_int_equal(sizeof(functions) / sizeof(functions[0]), 97);
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i)
		if (!functions[i].function)
			fail_msg("%s does not resolve", functions[i].name);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_function_is_there),
	};

	return cmocka_run_group_tests_name("prototypes", tests, NULL, NULL);
}
