// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The daemon as a process: how it begins and ends, and that it leaves nothing behind. Waits are
 * bounded by alarm().
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca_daemon.h"

static void life(void **state)
{
	struct sh_status st;
	struct stat s;
	pid_t first, second;
	int status;

	(void)state;
	first = daemon_start();
	assert_int_equal(stat(daemon_dir, &s), 0);
	assert_int_equal(s.st_mode & 0777, 0700);
	/* Its name is taken, with words about what to do. */
	second = daemon_launch(false, &st);
	assert_int_equal(st.error, EEXIST);
	assert_non_null(strstr(st.text, "softhca stop instance"));
	assert_int_equal(waitpid(second, &status, 0), second);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	/* Killed, it leaves its directory, and the next one takes that over. */
	kill(first, SIGKILL);
	waitpid(first, &status, 0);
	assert_int_equal(stat(daemon_dir, &s), 0);
	daemon_stop(daemon_start());
	/* A signal is as good as a message. */
	first = daemon_start();
	kill(first, SIGTERM);
	assert_int_equal(waitpid(first, &status, 0), first);
	assert_int_equal(status, 0);
	assert_int_equal(stat(daemon_dir, &s), -1);
}

/* A descriptor that the daemon inherits would keep a pipe or a terminal of its starter's open. */
static void keeps_nothing(void **state)
{
	int low[2], high, byte;
	struct sh_status st;
	pid_t pid;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pipe(low), 0);
		high = fcntl(low[1], F_DUPFD, 700);
		assert_true(high >= 700);
		daemon_old_kernel = i;
		pid = daemon_launch(false, &st);
		daemon_old_kernel = false;
		assert_int_equal(st.error, 0);
		close(low[1]);
		close(high);
		/*
		 * It has told that it is ready, on the descriptor that it kept, and has closed the
		 * rest.
		 */
		assert_int_equal(fcntl(low[0], F_SETFL, O_NONBLOCK), 0);
		assert_int_equal(read(low[0], &byte, 1), 0);
		close(low[0]);
		daemon_stop(pid);
	}
}

static void lease(void **state)
{
	struct sh_status st;
	char path[128];
	pid_t pid = daemon_launch(true, &st);
	struct stat s;
	int fd, status;
	void *map;

	(void)state;
	assert_int_equal(st.error, 0);
	snprintf(path, sizeof(path), "%s/lease", daemon_dir);
	fd = open(path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	close(fd);
	/* The mapping holds it, longer than two looks take. */
	sleep(4);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	munmap(map, 4096);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(stat(daemon_dir, &s), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(life),
		cmocka_unit_test(keeps_nothing),
		cmocka_unit_test(lease),
	};

	return cmocka_run_group_tests(tests, daemon_make_base, daemon_remove_base);
}
