// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Description: where instances live, what may be their name, when one is dead, and that its removal leaves nothing. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "softhca/host/paths.h"

static char tmp[64];

static int setup(void **state)
{
	(void)state;
	strcpy(tmp, "/tmp/softhca-paths-XXXXXX");
	unsetenv("SOFTHCA_DIR");
	unsetenv("XDG_RUNTIME_DIR");
	unsetenv("TMPDIR");
	return mkdtemp(tmp) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return sh_instance_remove(tmp);
}

static char *in_tmp(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", tmp, name);
	return path;
}

static void base_by_hand(void **state)
{
	char path[PATH_MAX];
	struct stat st;

	(void)state;
	setenv("SOFTHCA_DIR", in_tmp("base"), 1);
	assert_int_equal(sh_base_dir(path, false), -ENOENT);
	assert_int_equal(sh_base_dir(path, true), 0);
	assert_string_equal(path, in_tmp("base"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(sh_base_dir(path, true), 0);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(sh_base_dir(path, true), -EPERM);
}

static void base_of_session(void **state)
{
	char path[PATH_MAX];

	(void)state;
	setenv("XDG_RUNTIME_DIR", tmp, 1);
	assert_int_equal(sh_base_dir(path, true), 0);
	assert_string_equal(path, in_tmp("softhca"));
	/* Somebody else's session directory is not ours. */
	setenv("XDG_RUNTIME_DIR", "/proc/1", 1);
	if (sh_base_dir(path, false) != -EPERM)
		assert_null(strstr(path, "/proc/1/softhca/"));
}

static void base_is_a_file(void **state)
{
	char path[PATH_MAX];

	(void)state;
	close(open(in_tmp("file"), O_CREAT | O_WRONLY, 0600));
	setenv("SOFTHCA_DIR", in_tmp("file"), 1);
	assert_int_equal(sh_base_dir(path, true), -ENOTDIR);
}

static void names(void **state)
{
	char path[PATH_MAX], longest[66];

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[65] = '\0';
	assert_false(sh_name_valid(longest));
	longest[64] = '\0';
	assert_true(sh_name_valid(longest));
	assert_true(sh_name_valid("run-17"));
	assert_true(sh_name_valid("A.b_c-1"));
	assert_false(sh_name_valid(""));
	assert_false(sh_name_valid(".."));
	assert_false(sh_name_valid("-x"));
	assert_false(sh_name_valid("a b"));
	assert_false(sh_name_valid("a/b"));

	setenv("SOFTHCA_DIR", tmp, 1);
	assert_int_equal(sh_instance_dir(path, "one"), 0);
	assert_string_equal(path, in_tmp("one"));
	assert_int_equal(sh_instance_dir(path, "/some/where/"), 0);
	assert_string_equal(path, "/some/where");
	assert_int_equal(sh_instance_dir(path, "a b"), -EINVAL);
}

static void life(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(mkdir(in_tmp("i"), 0700), 0);
	assert_int_equal(sh_instance_alive(in_tmp("i")), 0);
	fd = open(in_tmp("i/lock"), O_CREAT | O_RDWR, 0600);
	assert_int_equal(sh_instance_alive(in_tmp("i")), 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(sh_instance_alive(in_tmp("i")), 1);
	close(fd);
	assert_int_equal(sh_instance_alive(in_tmp("i")), 0);
}

/* Links are removed, not followed. */
static void removal(void **state)
{
	(void)state;
	assert_int_equal(mkdir(in_tmp("keep"), 0700), 0);
	close(open(in_tmp("keep/file"), O_CREAT | O_WRONLY, 0600));
	assert_int_equal(mkdir(in_tmp("d"), 0700), 0);
	assert_int_equal(mkdir(in_tmp("d/e"), 0700), 0);
	assert_int_equal(mkfifo(in_tmp("d/e/fifo"), 0600), 0);
	assert_int_equal(symlink("../keep", in_tmp("d/link")), 0);
	assert_int_equal(sh_instance_remove(in_tmp("d")), 0);
	assert_int_equal(access(in_tmp("d"), F_OK), -1);
	assert_int_equal(access(in_tmp("keep/file"), F_OK), 0);
	assert_int_equal(sh_instance_remove(in_tmp("d")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(base_by_hand, setup, teardown),
		cmocka_unit_test_setup_teardown(base_of_session, setup, teardown),
		cmocka_unit_test_setup_teardown(base_is_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(names, setup, teardown),
		cmocka_unit_test_setup_teardown(life, setup, teardown),
		cmocka_unit_test_setup_teardown(removal, setup, teardown),
	};

	return cmocka_run_group_tests_name("softhca_paths", tests, NULL, NULL);
}
