// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Description: where instances are made, which names they may have, and when an instance runs. */
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
#include "softhca/host/places.h"
#include "softhca_tmp.h"

static int setup(void **state)
{
	(void)state;
	unsetenv("SOFTHCA_DIR");
	unsetenv("XDG_RUNTIME_DIR");
	unsetenv("TMPDIR");
	return tmp_make("softhca-paths");
}

static int teardown(void **state)
{
	(void)state;
	return tmp_remove(tmp);
}

static void place_by_hand(void **state)
{
	char path[PATH_MAX], tried[256];
	struct stat st;

	(void)state;
	setenv("SOFTHCA_DIR", in_tmp("base"), 1);
	assert_int_equal(sh_place(0, path), 0);
	assert_string_equal(path, in_tmp("base/softhca"));
	assert_int_equal(sh_place_check(path, tried, sizeof(tried)), -ENOENT);
	assert_int_equal(sh_place(1, path), -ENOENT);
	assert_int_equal(sh_place_make(path, tried, sizeof(tried)), 0);
	assert_string_equal(path, in_tmp("base/softhca"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(sh_place_make(path, tried, sizeof(tried)), 0);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(sh_place_make(path, tried, sizeof(tried)), -EPERM);
	assert_non_null(strstr(tried, in_tmp("base/softhca: it can be written by other users")));
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(chmod(in_tmp("base"), 0777), 0);
	assert_int_equal(sh_place_make(path, tried, sizeof(tried)), -EPERM);
	/* A directory like /tmp: no other user can rename or remove our files. */
	assert_int_equal(chmod(in_tmp("base"), 01777), 0);
	assert_int_equal(sh_place_make(path, tried, sizeof(tried)), 0);
}

static void place_of_session(void **state)
{
	char path[PATH_MAX], tried[256], other[PATH_MAX];
	unsigned int i;

	(void)state;
	setenv("XDG_RUNTIME_DIR", tmp, 1);
	assert_int_equal(sh_place_make(path, tried, sizeof(tried)), 0);
	assert_string_equal(path, in_tmp("softhca"));
	/*
	 * A session directory is not used if it belongs to another user, is not absolute, or does
	 * not exist.
	 */
	for (i = 0; i < 3; i++) {
		setenv("XDG_RUNTIME_DIR",
		       i == 0	? geteuid() ? "/" : in_tmp("not-ours")
			 : i == 1 ? "."
				: in_tmp("nowhere"),
		       1);
		if (i == 0 && !geteuid()) {
			assert_int_equal(mkdir(in_tmp("not-ours"), 0755), 0);
			assert_int_equal(chown(in_tmp("not-ours"), 65533, 65533), 0);
		}
		assert_int_equal(sh_place(0, path), -ENOENT);
	}
	/* The default places come in this order, each of them once. */
	setenv("TMPDIR", tmp, 1);
	snprintf(other, sizeof(other), "/dev/shm/softhca-%u", geteuid());
	assert_int_equal(sh_place(1, path), 0);
	assert_string_equal(path, other);
	snprintf(other, sizeof(other), "%s/softhca-%u", tmp, geteuid());
	assert_int_equal(sh_place(2, path), 0);
	assert_string_equal(path, other);
	snprintf(other, sizeof(other), "/tmp/softhca-%u", geteuid());
	assert_int_equal(sh_place(3, path), 0);
	assert_string_equal(path, other);
	setenv("TMPDIR", "/tmp", 1);
	assert_int_equal(sh_place(3, path), -ENOENT);
}

static void place_is_a_file(void **state)
{
	char path[PATH_MAX], tried[256];

	(void)state;
	close(open(in_tmp("file"), O_CREAT | O_WRONLY, 0600));
	setenv("SOFTHCA_DIR", in_tmp("file"), 1);
	assert_int_equal(sh_place_make(path, tried, sizeof(tried)), -ENOTDIR);
	assert_int_equal(mkdir(in_tmp("base"), 0700), 0);
	setenv("SOFTHCA_DIR", in_tmp("base"), 1);
	close(open(in_tmp("base/softhca"), O_CREAT | O_WRONLY, 0600));
	assert_int_equal(sh_place_make(path, tried, sizeof(tried)), -ENOTDIR);
	assert_int_equal(unlink(in_tmp("base/softhca")), 0);
	assert_int_equal(symlink("..", in_tmp("base/softhca")), 0);
	assert_int_equal(sh_place_make(path, tried, sizeof(tried)), -ENOTDIR);
	assert_non_null(strstr(tried, "symbolic link"));
}

/*
 * A relative directory is relative to the caller's directory at that moment. A link stands for the
 * directory that it leads to.
 */
static void place_is_relative(void **state)
{
	char path[PATH_MAX], tried[256], here[PATH_MAX];

	(void)state;
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(tmp), 0);
	setenv("SOFTHCA_DIR", "there", 1);
	assert_int_equal(sh_place_make(path, tried, sizeof(tried)), 0);
	assert_string_equal(path, in_tmp("there/softhca"));
	assert_int_equal(symlink("there", "link"), 0);
	setenv("SOFTHCA_DIR", "link", 1);
	assert_int_equal(sh_place(0, path), 0);
	assert_string_equal(path, in_tmp("there/softhca"));
	assert_int_equal(chdir(here), 0);
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
	assert_false(sh_name_valid("lock"));

	setenv("SOFTHCA_DIR", tmp, 1);
	assert_int_equal(sh_instance_dir(path, "one"), -ENOENT);
	assert_int_equal(mkdir(in_tmp("softhca"), 0700), 0);
	assert_int_equal(sh_instance_dir(path, "one"), 0);
	assert_string_equal(path, in_tmp("softhca/one"));
	assert_int_equal(sh_instance_dir(path, "/some/where/"), 0);
	assert_string_equal(path, "/some/where");
	assert_int_equal(sh_instance_dir(path, "a b"), -EINVAL);
}

static void life(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(mkdir(in_tmp("i"), 0700), 0);
	/* Without a lock file nothing runs there, whatever the directory is. */
	assert_int_equal(sh_instance_alive(in_tmp("i")), 0);
	fd = open(in_tmp("i/lock"), O_CREAT | O_RDWR, 0600);
	assert_int_equal(sh_instance_alive(in_tmp("i")), 0);
	/* Another process that asks the same question is not a daemon. */
	assert_int_equal(flock(fd, LOCK_SH), 0);
	assert_int_equal(sh_instance_alive(in_tmp("i")), 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(sh_instance_alive(in_tmp("i")), 1);
	close(fd);
	assert_int_equal(sh_instance_alive(in_tmp("i")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(place_by_hand, setup, teardown),
		cmocka_unit_test_setup_teardown(place_of_session, setup, teardown),
		cmocka_unit_test_setup_teardown(place_is_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(place_is_relative, setup, teardown),
		cmocka_unit_test_setup_teardown(names, setup, teardown),
		cmocka_unit_test_setup_teardown(life, setup, teardown),
	};

	return cmocka_run_group_tests_name("softhca_paths", tests, NULL, NULL);
}
