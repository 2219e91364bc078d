// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a field of /proc/PID/status is found wherever it is, behind a line of groups that is
 * longer than any buffer, and a file that lacks it says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/host/status.h"

enum { STATE, SLEPT, FORCED, GROUPS, LACKING, FIELDS };

static const struct sh_status_field wanted[FIELDS] = {
	{.name = "State:"},
	{.name = "voluntary_ctxt_switches:"},
	{.name = "nonvoluntary_ctxt_switches:"},
	{.name = "Groups:"},
	{.name = "Seccomp:"},
};

static void behind_many_groups(void **state)
{
	struct sh_status_field field[FIELDS];
	char path[] = "/tmp/softhca-status.XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");

	(void)state;
	assert_non_null(f);
	for (int groups = 0; groups <= 65536; groups = groups ? groups * 4 : 1) {
		memcpy(field, wanted, sizeof(field));
		assert_int_equal(ftruncate(fd, 0), 0);
		rewind(f);
		fprintf(f, "Name:\tState: R\nUmask:\t0022\nState:\tT (stopped)\nGroups:\t");
		for (int i = 0; i < groups; i++)
			fprintf(f, "%d ", 1000000 + i);
		fprintf(f, "\nvoluntary_ctxt_switches:\t4711\nnonvoluntary_ctxt_switches:\t12\n");
		fflush(f);
		assert_int_equal(sh_status_read(path, field, FIELDS), 0);
		assert_string_equal(field[STATE].value, "T (stopped)");
		assert_string_equal(field[SLEPT].value, "4711");
		assert_string_equal(field[FORCED].value, "12");
		assert_int_equal(strncmp(field[GROUPS].value, "1000000 100000", groups ? 8 : 0), 0);
		assert_string_equal(field[LACKING].value, "");
	}
	fclose(f);
	unlink(path);
	assert_int_equal(sh_status_read(path, field, FIELDS), -ENOENT);
}

static void of_this_process(void **state)
{
	struct sh_status_field field[FIELDS];

	(void)state;
	memcpy(field, wanted, sizeof(field));
	assert_int_equal(sh_status_read("/proc/self/status", field, FIELDS), 0);
	assert_int_equal(field[STATE].value[0], 'R');
	assert_true(field[SLEPT].value[0] >= '0' && field[SLEPT].value[0] <= '9');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(behind_many_groups),
		cmocka_unit_test(of_this_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
