// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: rclose() of an rsocket whose data cannot arrive waits as long as SO_LINGER says. The
 * argument is a command that lets nothing arrive from now on.
 */
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

static const struct rsocket_test tests[] = {{"linger", test_linger}};

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	stop_traffic = argv[1];
	return run_tests(tests, 1, NULL);
}
