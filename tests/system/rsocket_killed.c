// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: an rsocket whose peer is killed says so: to calls that sleep, and to those of
 * programs that never do.
 */
#include <signal.h>
#include <stdbool.h>

#include "rsocket_pair.h"

/* How this end learns that the other one has been killed. */
static void sleeping_reader(int rs)
{
	char data;
	int ret;

	errno = 0;
	ret = (int)rrecv(rs, &data, 1, 0);
	CHECK(ret == 0 || (ret == -1 && errno == ECONNRESET));
}

static void trying_reader(int rs)
{
	char data;
	int ret;

	do
		ret = (int)rrecv(rs, &data, 1, MSG_DONTWAIT);
	while (ret == -1 && errno == EAGAIN);
	CHECK(ret == 0 || (ret == -1 && errno == ECONNRESET));
}

static void polling_reader(int rs)
{
	struct pollfd fd = {.fd = rs, .events = POLLIN};

	while (!rpoll(&fd, 1, 0))
		;
	CHECK(fd.revents & POLLIN);
	sleeping_reader(rs);
}

static void sleeping_writer(int rs)
{
	char data[4096] = {0};

	FAILS(rsend(rs, data, sizeof(data), 0), ECONNRESET);
	FAILS(rsend(rs, data, sizeof(data), 0), EPIPE);
}

static void trying_writer(int rs)
{
	char data[4096] = {0};

	while (rsend(rs, data, sizeof(data), MSG_DONTWAIT) == -1 && errno == EAGAIN)
		;
	CHECK(errno == ECONNRESET || errno == EPIPE);
}

/* A child has the other end, and is killed. It forks before the parent has a device. */
static void killed(bool fill, void (*learn)(int rs))
{
	struct sockaddr_in addr;
	char data[4096] = {0};
	int pipes[2], rs, one;
	pid_t child;

	CHECK(!pipe(pipes));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		rs = listener(&addr);
		CHECK(write(pipes[1], &addr, sizeof(addr)) == sizeof(addr));
		one = raccept(rs, NULL, NULL);
		CHECK(rsend(one, "x", 1, 0) == 1);
		pause();
	}
	CHECK(read(pipes[0], &addr, sizeof(addr)) == sizeof(addr));
	rs = (int)(intptr_t)connect_there(&addr);
	CHECK(rrecv(rs, data, 1, 0) == 1);
	if (fill) {
		while (rsend(rs, data, sizeof(data), MSG_DONTWAIT) > 0)
			;
		CHECK(errno == EAGAIN);
		/*
		 * So long that all that was sent has arrived: no completion will tell of the end.
		 */
		usleep(20000);
		CHECK(rsend(rs, data, sizeof(data), MSG_DONTWAIT) == -1 && errno == EAGAIN);
	}
	CHECK(!kill(child, SIGKILL));
	learn(rs);
	CHECK(rrecv(rs, data, 1, 0) == 0);
	CHECK(wait_for(rs, POLLIN) & POLLHUP);
	CHECK(!rclose(rs));
	CHECK(waitpid(child, NULL, 0) == child);
	close(pipes[0]);
	close(pipes[1]);
}

static void test_sleeping_reader(void)
{
	killed(false, sleeping_reader);
}

static void test_trying_reader(void)
{
	killed(false, trying_reader);
}

static void test_polling_reader(void)
{
	killed(false, polling_reader);
}

static void test_sleeping_writer(void)
{
	killed(true, sleeping_writer);
}

static void test_trying_writer(void)
{
	killed(true, trying_writer);
}

static const struct rsocket_test tests[] = {
	{"sleeping_reader", test_sleeping_reader}, {"trying_reader", test_trying_reader},
	{"polling_reader", test_polling_reader},   {"sleeping_writer", test_sleeping_writer},
	{"trying_writer", test_trying_writer},
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
