// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: kernels with pages of another size than 4096 bytes are refused, with a reason.
 * tests/system/limits.sh shows that the daemon and programs ask, and end if they are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "softhca/host/process.h"

static void test_sizes(void **state)
{
	static const long others[] = {-1, 0, 1024, 8192, 16384, 65536, 2 << 20};
	char text[512] = "", number[32];

	(void)state;
	assert_true(sh_page_size_known(4096, text, sizeof(text)));
	assert_string_equal(text, "");
	for (unsigned int i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(number, sizeof(number), " %ld:", others[i]);
		assert_false(sh_page_size_known(others[i], text, sizeof(text)));
		assert_non_null(strstr(text, number));
		assert_non_null(strstr(text, "4096"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
