// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: rclose() of an rsocket whose data cannot arrive waits as long as SO_LINGER says, and
 * of one whose data have arrived not at all, with SO_KEEPALIVE either. The argument is a command
 * that lets nothing arrive from now on.
 */
#include <netinet/tcp.h>
#include <time.h>

#include "rsocket_pair.h"

static const char *stop_traffic;

static double now(void)
{
	struct timespec ts;

	CHECK(!clock_gettime(CLOCK_MONOTONIC, &ts));
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Without SO_LINGER it is 10 s, for each end. */
static void test_linger(void)
{
	struct linger linger = {.l_onoff = 1, .l_linger = 1};
	char data[4096] = {0};
	int ends[2];
	double begin;

	pair(ends);
	CHECK(!rsetsockopt(ends[0], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	linger.l_linger = 0;
	CHECK(!rsetsockopt(ends[1], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	CHECK(!system(stop_traffic));
	CHECK(rsend(ends[0], data, sizeof(data), 0) == sizeof(data));
	CHECK(rsend(ends[1], data, sizeof(data), 0) == sizeof(data));
	begin = now();
	CHECK(!rclose(ends[0]));
	CHECK(now() - begin >= 1);
	CHECK(now() - begin < 9);
	begin = now();
	CHECK(!rclose(ends[1]));
	CHECK(now() - begin < 9);
}

/*
 * Where nothing comes for longer than the peer may be silent, and the peer has been told all that
 * there is to tell.
 */
static void test_keep_alive(void)
{
	struct pollfd fd = {.events = 0};
	int ends[2], i;
	double begin;

	pair(ends);
	set_int(ends[0], SOL_SOCKET, SO_KEEPALIVE, 1);
	set_int(ends[0], IPPROTO_TCP, TCP_KEEPIDLE, 1);
	CHECK(!rshutdown(ends[0], SHUT_RDWR));
	fd.fd = ends[0];
	for (i = 0; i < 2; i++) {
		CHECK(rpoll(&fd, 1, 0) >= 0);
		usleep(1100000);
		CHECK(rpoll(&fd, 1, 0) >= 0);
	}
	begin = now();
	CHECK(!rclose(ends[0]));
	CHECK(now() - begin < 5);
	CHECK(!rclose(ends[1]));
}

/* The last one lets nothing arrive. */
static const struct rsocket_test tests[] = {
	{"keep_alive", test_keep_alive},
	{"linger", test_linger},
};

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	stop_traffic = argv[1];
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), NULL);
}
