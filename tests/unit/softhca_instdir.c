// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the directory of an instance. The test kills the process that makes and removes it
 * before each of its system calls, and the next sweep leaves nothing. A directory that is not an
 * instance, is in use or has foreign contents is not touched.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "softhca/host/instdir.h"
#include "softhca_tmp.h"
#include "softhca/kernel/uverbs/command.h"

static unsigned int told;
static bool poor; /* a file system without unnamed files and without RENAME_NOREPLACE */

int __real_openat(int dirfd, const char *path, int flags, ...);
int __wrap_openat(int dirfd, const char *path, int flags, ...);
int __wrap_openat(int dirfd, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (poor && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return __real_openat(dirfd, path, flags, mode);
}

int __real_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned int flags);
int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned int flags);
int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned int flags)
{
	if (poor && flags) {
		errno = EINVAL;
		return -1;
	}
	return __real_renameat2(from_fd, from, to_fd, to, flags);
}

static int setup(void **state)
{
	(void)state;
	alarm(240);
	told = 0;
	poor = false;
	return tmp_make("softhca-instdir");
}

static int teardown(void **state)
{
	(void)state;
	return tmp_remove(tmp);
}

static void tell(const char *dir, const struct sh_left *left)
{
	(void)dir;
	(void)left;
	told++;
}

static bool empty(const char *dir)
{
	/* Only an empty directory can be removed. */
	return rmdir(dir) == 0 && mkdir(dir, 0700) == 0;
}

/* Makes something of each kind that an instance directory may hold. */
static bool fill(int dirfd)
{
	return mkdirat(dirfd, "files", 0700) == 0 && mkdirat(dirfd, "events", 0700) == 0 &&
	       mkdirat(dirfd, "host0", 0755) == 0 && mkdirat(dirfd, "host0/sys", 0755) == 0 &&
	       mkdirat(dirfd, "host0/sys/class", 0755) == 0 &&
	       mkdirat(dirfd, "host0/sys/class/infiniband", 0755) == 0 &&
	       symlinkat("/nowhere", dirfd, "host0/sys/class/infiniband/mlx4_0") == 0 &&
	       mknodat(dirfd, "files/c1.4294967295", S_IFREG | 0600, 0) == 0 &&
	       mknodat(dirfd, "lease", S_IFREG | 0600, 0) == 0 &&
	       mkfifoat(dirfd, "events/1.1", 0600) == 0;
}

static int whole_life(void)
{
	struct sh_instdir d;
	struct sh_left left;

	return sh_instdir_make(&d, tmp) || !fill(d.dir_fd) || sh_instdir_publish(&d, "name") ||
	       sh_instdir_end(&d, &left);
}

/*
 * Lets a child make and remove an instance, and kills it at the entry of system call number CALL,
 * counted from 1. Returns false if the child makes fewer calls.
 */
static bool killed_at(unsigned int call)
{
	pid_t pid = fork();
	unsigned int stops = 0;
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		raise(SIGSTOP);
		_exit(whole_life());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_true(WIFSTOPPED(status));
	/* Each call stops the child twice: at its entry and at its exit. */
	while (stops < 2 * call - 1) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status)) {
			assert_int_equal(WEXITSTATUS(status), 0);
			return false;
		}
		stops++;
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return true;
}

static void killed(void **state)
{
	unsigned int call, seen = 0;

	(void)state;
	for (call = 1; killed_at(call); call++) {
		seen += !empty(tmp);
		sh_instance_sweep(tmp, tell);
		if (!empty(tmp))
			fail_msg("killed at system call %u, and the sweep left something", call);
	}
	assert_true(empty(tmp));
	assert_int_equal(told, 0);
	/* Many of the killed children have left something. */
	assert_true(seen > 20);
}

/* While the maker of an instance lives, neither a sweep nor a removal takes anything of it away. */
static void maker_alive(void **state)
{
	struct sh_instdir d;
	struct sh_left left;

	(void)state;
	assert_int_equal(sh_instdir_make(&d, tmp), 0);
	assert_true(fill(d.dir_fd));
	sh_instance_sweep(tmp, tell);
	assert_int_equal(faccessat(d.dir_fd, "host0/sys/class/infiniband", F_OK, 0), 0);
	assert_int_equal(sh_instdir_publish(&d, "one"), 0);
	sh_instance_sweep(tmp, tell);
	assert_int_equal(sh_instance_remove(in_tmp("one"), &left), -EBUSY);
	assert_int_equal(access(in_tmp("one/files/c1.4294967295"), F_OK), 0);
	assert_int_equal(sh_instdir_end(&d, &left), 0);
	assert_true(empty(tmp));
	assert_int_equal(told, 0);
}

static void name_taken(void **state)
{
	static const char *const kinds[] = {"an instance", "a directory", "a file", "a link"};
	struct sh_instdir d, other;
	struct sh_left left;

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		assert_int_equal(sh_instdir_make(&d, tmp), 0);
		if (i == 0) {
			assert_int_equal(sh_instdir_make(&other, tmp), 0);
			assert_int_equal(sh_instdir_publish(&other, "one"), 0);
		} else if (i == 1) {
			assert_int_equal(mkdir(in_tmp("one"), 0700), 0);
		} else if (i == 2) {
			close(open(in_tmp("one"), O_CREAT | O_WRONLY, 0600));
		} else {
			assert_int_equal(symlink("nowhere", in_tmp("one")), 0);
		}
		if (sh_instdir_publish(&d, "one") != -EEXIST)
			fail_msg("sh_instdir_publish() took the name of %s", kinds[i]);
		assert_int_equal(sh_instdir_end(&d, &left), 0);
		if (i == 0)
			assert_int_equal(sh_instdir_end(&other, &left), 0);
		else
			assert_int_equal(remove(in_tmp("one")), 0);
	}
	assert_true(empty(tmp));
}

static void poor_file_system(void **state)
{
	poor = true;
	name_taken(state);
	assert_int_equal(whole_life(), 0);
	assert_true(empty(tmp));
}

/* Makes an instance that has no daemon any more. */
static void make_dead(const char *name)
{
	struct sh_instdir d;

	assert_int_equal(sh_instdir_make(&d, tmp), 0);
	assert_true(fill(d.dir_fd));
	assert_int_equal(sh_instdir_publish(&d, name), 0);
	close(d.dir_fd);
	close(d.lock_fd);
	close(d.base_fd);
}

static void unmarked(void **state)
{
	static const char *const kinds[] = {"none",	 "empty",	  "forged", "longer",
					    "hard link", "symbolic link", "FIFO",   "directory"};
	struct sh_left left;
	char text[128];
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		make_dead("one");
		if (i == 3) {
			fd = open(in_tmp("one/lock"), O_WRONLY | O_APPEND);
			assert_int_equal(write(fd, "\n", 1), 1);
			close(fd);
		} else if (i == 4) {
			snprintf(text, sizeof(text), "%s/copy", tmp);
			assert_int_equal(link(in_tmp("one/lock"), text), 0);
		} else if (i == 5) {
			snprintf(text, sizeof(text), "%s/copy", tmp);
			assert_int_equal(rename(in_tmp("one/lock"), text), 0);
			assert_int_equal(symlink("../copy", in_tmp("one/lock")), 0);
		} else {
			assert_int_equal(unlink(in_tmp("one/lock")), 0);
			if (i == 6)
				assert_int_equal(mkfifo(in_tmp("one/lock"), 0600), 0);
			if (i == 7)
				assert_int_equal(mkdir(in_tmp("one/lock"), 0700), 0);
			if (i == 1 || i == 2) {
				fd = open(in_tmp("one/lock"), O_CREAT | O_WRONLY, 0600);
				if (i == 2)
					assert_true(write(fd, "softhca instance, inode 1\n", 26) ==
						    26);
				close(fd);
			}
		}
		sh_instance_sweep(tmp, tell);
		if (sh_instance_remove(in_tmp("one"), &left) != -ENODATA)
			fail_msg("a directory was taken for an instance; its lock: %s", kinds[i]);
		assert_int_equal(access(in_tmp("one/files/c1.4294967295"), F_OK), 0);
		assert_int_equal(access(in_tmp("one/lease"), F_OK), 0);
		assert_int_equal(tmp_remove(in_tmp("one")), 0);
		remove(in_tmp("copy"));
	}
	assert_int_equal(told, 0);
}

static void link_to_instance(void **state)
{
	struct sh_left left;

	(void)state;
	make_dead("one");
	assert_int_equal(symlink("one", in_tmp("two")), 0);
	assert_int_equal(sh_instance_remove(in_tmp("two"), &left), -ENODATA);
	assert_int_equal(access(in_tmp("one/files/c1.4294967295"), F_OK), 0);
	assert_int_equal(sh_instance_remove(in_tmp("one"), &left), 0);
	assert_int_equal(sh_instance_remove(in_tmp("one"), &left), 0);
	assert_int_equal(unlink(in_tmp("two")), 0);
	assert_true(empty(tmp));
}

/* Names that resemble those that an instance directory may hold. */
static void similar_names(void **state)
{
	static const char *const names[] = {
		"locks",
		"files/c",
		"files/c1",
		"files/c1.",
		"files/c1.1.1",
		"files/c1.1~",
		"files/x1.1",
		"files/.c1.1",
		"files/c12345678901.1",
		"events/c1.1",
		"host",
		"host0x",
		"host0/etc",
		"host0/sys/class/net",
		"hosts",
		"pid.old",
	};
	struct sh_left left;
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		make_dead("one");
		snprintf(path, sizeof(path), "one/%s", names[i]);
		if (mknod(in_tmp(path), i % 2 ? S_IFREG | 0600 : S_IFIFO | 0600, 0) < 0)
			fail_msg("%s: %s", path, strerror(errno));
		assert_int_equal(sh_instance_remove(in_tmp("one"), &left), -ENOTEMPTY);
		assert_string_equal(left.path, names[i]);
		assert_int_equal(access(in_tmp(path), F_OK), 0);
		assert_int_equal(access(in_tmp("one/lease"), F_OK), -1);
		assert_int_equal(unlink(in_tmp(path)), 0);
		assert_int_equal(sh_instance_remove(in_tmp("one"), &left), 0);
		assert_true(empty(tmp));
	}
}

/* A process that holds the lease uses the instance, even if its daemon is dead. */
static void lease_held(void **state)
{
	struct sh_left left;
	int fd;

	(void)state;
	make_dead("one");
	fd = open(in_tmp("one/lease"), O_RDWR);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	sh_instance_sweep(tmp, tell);
	assert_int_equal(sh_instance_remove(in_tmp("one"), &left), -ETXTBSY);
	assert_int_equal(access(in_tmp("one/files/c1.4294967295"), F_OK), 0);
	close(fd);
	sh_instance_sweep(tmp, tell);
	assert_true(empty(tmp));
}

/* What another maker left when it died, with something added that no maker can have made. */
static void foreign_contents(void **state)
{
	char lock[128];

	(void)state;
	make_dead(".new-0123456789abcdef");
	assert_int_equal(mkdir(in_tmp(".new-0123456789abcdef/precious"), 0700), 0);
	sh_instance_sweep(tmp, tell);
	assert_int_equal(told, 1);
	assert_int_equal(access(in_tmp(".new-0123456789abcdef/precious"), F_OK), 0);
	snprintf(lock, sizeof(lock), "%s/.new-0123456789abcdef.lock", tmp);
	assert_int_equal(rename(in_tmp(".new-0123456789abcdef/lock"), lock), 0);
	sh_instance_sweep(tmp, tell);
	assert_int_equal(told, 2);
	assert_int_equal(access(in_tmp(".new-0123456789abcdef/precious"), F_OK), 0);
	assert_int_equal(rmdir(in_tmp(".new-0123456789abcdef/precious")), 0);
	sh_instance_sweep(tmp, tell);
	assert_true(empty(tmp));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(killed, setup, teardown),
		cmocka_unit_test_setup_teardown(maker_alive, setup, teardown),
		cmocka_unit_test_setup_teardown(name_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(poor_file_system, setup, teardown),
		cmocka_unit_test_setup_teardown(unmarked, setup, teardown),
		cmocka_unit_test_setup_teardown(link_to_instance, setup, teardown),
		cmocka_unit_test_setup_teardown(similar_names, setup, teardown),
		cmocka_unit_test_setup_teardown(lease_held, setup, teardown),
		cmocka_unit_test_setup_teardown(foreign_contents, setup, teardown),
	};

	return cmocka_run_group_tests_name("softhca_instdir", tests, NULL, NULL);
}
