// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Runs the tests, each in a process with a time limit, and reports in TAP. */

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "guest.h"

#define TIME_LIMIT 60 /* seconds, on a machine that is emulated and may be busy */

static const struct guest_test *const subjects[] = {
	device_tests, memory_tests, completion_tests, srq_tests,       qp_tests,  ah_tests,
	rc_tests,     ud_tests,	    pingpong_tests,   multicast_tests, xrc_tests, event_tests,
};

#define NSUBJECTS (sizeof(subjects) / sizeof(subjects[0]))

const char *volatile guest_where = "the start", *volatile guest_from = "the start";

_Noreturn void guest_fail(const char *text)
{
	printf("# %s (%s): %s\n", guest_where, guest_from, text);
	fflush(stdout);
	_exit(1);
}

_Noreturn void guest_fail_value(const char *text, long long value, long long expected)
{
	printf("# %s (%s): %s is %lld, expected %lld\n", guest_where, guest_from, text, value,
	       expected);
	fflush(stdout);
	_exit(1);
}

/* Async-signal-safe. */
static void say(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(2);
}

static void out_of_time(int signal)
{
	(void)signal;
	say("# out of time after ");
	say(guest_where);
	say(" (");
	say(guest_from);
	say(")\n");
	_exit(1);
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGALRM, out_of_time);
		alarm(TIME_LIMIT);
	}

	return pid;
}

struct peer peer_start(void (*run)(int fd))
{
	struct peer peer;
	int fds[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	peer.pid = start_child();
	if (!peer.pid) {
		close(fds[0]);
		run(fds[1]);
		exit(0);
	}

	close(fds[1]);
	peer.fd = fds[0];
	return peer;
}

void peer_finish(struct peer *peer)
{
	int status;

	CHECK_EQ(waitpid(peer->pid, &status, 0), peer->pid);
	CHECK_EQ(status, 0);
	close(peer->fd);
}

uint32_t peer_exchange(int fd, uint32_t value)
{
	uint32_t theirs;

	CHECK_EQ(write(fd, &value, sizeof(value)), sizeof(value));
	CHECK_EQ(read(fd, &theirs, sizeof(theirs)), sizeof(theirs));
	return theirs;
}

static bool run(const struct guest_test *test)
{
	int status;
	pid_t pid;

	pid = start_child();
	if (!pid) {
		test->run();
		exit(0);
	}

	if (waitpid(pid, &status, 0) != pid)
		return false;
	if (WIFSIGNALED(status))
		printf("# killed by signal %d: %s\n", WTERMSIG(status),
		       strsignal(WTERMSIG(status)));

	return !status;
}

/* Arguments, if any, are names of tests: only those run. */
static bool selected(const struct guest_test *test, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; ++i)
		if (!strcmp(argv[i], test->name))
			return true;

	return argc == 1;
}

int main(int argc, char **argv)
{
	const struct guest_test *test;
	int number = 0, failures = 0;
	bool passed;
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < NSUBJECTS; ++i)
		for (test = subjects[i]; test->name; ++test) {
			if (!selected(test, argc, argv))
				continue;
			passed = run(test);
			failures += !passed;
			printf("%s %d - %s\n", passed ? "ok" : "not ok", ++number, test->name);
		}
	printf("1..%d\n", number);

	return failures || !number;
}
