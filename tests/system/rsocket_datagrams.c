// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Description: datagram rsockets behave as UDP sockets do. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>

#include <rdma/rsocket.h>

#include "rsocket_pair.h"

static void test_datagrams(void)
{
	struct sockaddr_in addr[3], from;
	socklen_t len = sizeof(from);
	char data[4096] = {0};
	int rs[3], i;

	for (i = 0; i < 3; i++)
		rs[i] = bound(SOCK_DGRAM, &addr[i]);
	FAILS(rrecv(rs[0], data, 1, MSG_DONTWAIT), EAGAIN);
	FAILS(rsend(rs[0], data, 1, 0), EDESTADDRREQ);
	/* By UDP first, then from QP to QP. */
	for (i = 0; i < 200; i++) {
		int len_there = i * 9 % 1500;

		memset(data, i, sizeof(data));
		CHECK(rsendto(rs[0], data, len_there, 0, (struct sockaddr *)&addr[1],
			      sizeof(addr[1])) == len_there);
		CHECK(wait_for(rs[1], POLLIN) & POLLIN);
		len = sizeof(from);
		CHECK(rrecvfrom(rs[1], data, sizeof(data), MSG_PEEK, (struct sockaddr *)&from,
				&len) == len_there);
		memset(data, 0, sizeof(data));
		CHECK(rrecvfrom(rs[1], data, sizeof(data), 0, (struct sockaddr *)&from, &len) ==
		      len_there);
		CHECK(!len_there || data[len_there - 1] == (char)i);
		CHECK(from.sin_port == addr[0].sin_port &&
		      from.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
		CHECK(rsendto(rs[1], "back", 4, 0, (struct sockaddr *)&from, len) == 4);
		CHECK(rrecv(rs[0], data, 2, MSG_TRUNC) == 4);
	}
	FAILS(rsendto(rs[0], data, 4096, 0, (struct sockaddr *)&addr[1], sizeof(addr[1])),
	      EMSGSIZE);

	FAILS(rsendto(rs[0], data, 1, MSG_OOB, (struct sockaddr *)&addr[1], sizeof(addr[1])),
	      EOPNOTSUPP);
	FAILS(rrecv(rs[1], data, 1, MSG_ERRQUEUE), EAGAIN);

	/* A connected one takes its peer's alone. */
	CHECK(!rconnect(rs[1], (struct sockaddr *)&addr[2], sizeof(addr[2])));
	CHECK(rsendto(rs[0], "no", 2, 0, (struct sockaddr *)&addr[1], sizeof(addr[1])) == 2);
	CHECK(rsend(rs[1], "ask", 3, 0) == 3);
	CHECK(rrecvfrom(rs[2], data, 8, 0, (struct sockaddr *)&from, &len) == 3);
	CHECK(rsendto(rs[2], "yes", 3, 0, (struct sockaddr *)&from, len) == 3);
	CHECK(rrecv(rs[1], data, 8, 0) == 3 && !memcmp(data, "yes", 3));
	for (i = 0; i < 3; i++)
		CHECK(!rclose(rs[i]));
}

static const struct rsocket_test tests[] = {
	{"datagrams", test_datagrams},
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
