// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: with SO_KEEPALIVE a program learns that its peer cannot be reached, in whatever call
 * it waits. The arguments are the name of a test and a command that lets nothing arrive from now
 * on.
 */
#include <netinet/tcp.h>

#include "rsocket_pair.h"

static const char *stop_traffic;
static int ends[2];

static void lose_peer(void)
{
	alarm(2 * LONG_MS / 1000);
	pair(ends);
	set_int(ends[0], SOL_SOCKET, SO_KEEPALIVE, 1);
	set_int(ends[0], IPPROTO_TCP, TCP_KEEPIDLE, 1);
	CHECK(!system(stop_traffic));
}

static void learned(void)
{
	char data;

	FAILS(rrecv(ends[0], &data, 1, 0), ECONNRESET);
	exit(0);
}

static void test_read(void)
{
	lose_peer();
	learned();
}

static void test_poll(void)
{
	struct pollfd fd;

	lose_peer();
	fd = (struct pollfd){.fd = ends[0], .events = POLLIN};
	CHECK(rpoll(&fd, 1, -1) == 1);
	CHECK(fd.revents & POLLERR);
	learned();
}

static void test_select(void)
{
	fd_set reads;

	lose_peer();
	FD_ZERO(&reads);
	FD_SET(ends[0], &reads);
	CHECK(rselect(ends[0] + 1, &reads, NULL, NULL, NULL) == 1);
	learned();
}

/* There is always something else to do. */
static void test_busy(void)
{
	struct pollfd fds[2];
	int pipes[2];
	char data;

	CHECK(!pipe(pipes));
	lose_peer();
	do {
		fds[0] = (struct pollfd){.fd = ends[0], .events = POLLIN};
		fds[1] = (struct pollfd){.fd = pipes[0], .events = POLLIN};
		CHECK(write(pipes[1], "x", 1) == 1);
		CHECK(rpoll(fds, 2, -1) > 0);
		CHECK(read(pipes[0], &data, 1) == 1);
		usleep(1000);
	} while (!fds[0].revents);
	learned();
}

/* It never sleeps. */
static void test_tries(void)
{
	char data;

	lose_peer();
	while (rrecv(ends[0], &data, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN)
		usleep(1000);
	CHECK(errno == ECONNRESET);
	exit(0);
}

static const struct rsocket_test tests[] = {
	{"read", test_read}, {"poll", test_poll},   {"select", test_select},
	{"busy", test_busy}, {"tries", test_tries},
};

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	stop_traffic = argv[2];
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argv[1]);
}
