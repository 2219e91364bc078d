// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A program that knows of sockets alone: what it has set stays, where the peer cannot be reached by
 * RDMA and the socket becomes a plain one.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "preload.h"

/*
 * In a child, whose sockets are plain: says where it listens, and an address that is free, and
 * echoes what two clients send.
 */
static void echo_plainly(int to)
{
	struct sockaddr_in at[2];
	int fd[2], on = 1, client;
	socklen_t len = sizeof(at[0]);
	char data[4];

	alarm(40); /* the parent may fail */
	for (int i = 0; i < 2; i++) {
		at[i] = (struct sockaddr_in){.sin_family = AF_INET};
		at[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		fd[i] = socket(AF_INET, SOCK_STREAM, 0);
		CHECK(fd[i] >= 0 && !is_rsocket(fd[i]));
		/* So that the parent can have the second one, and no other program can. */
		CHECK(!setsockopt(fd[i], SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
		CHECK(!bind(fd[i], (struct sockaddr *)&at[i], sizeof(at[i])));
		CHECK(!getsockname(fd[i], (struct sockaddr *)&at[i], &len));
	}
	CHECK(!listen(fd[0], 2));
	CHECK(write(to, at, sizeof(at)) == sizeof(at));
	for (int i = 0; i < 2; i++) {
		client = accept(fd[0], NULL, NULL);
		CHECK(client >= 0 && recv(client, data, 4, MSG_WAITALL) == 4);
		CHECK(write(client, data, 4) == 4);
		CHECK(!close(client));
	}
	exit(0);
}

static int int_option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	CHECK(!getsockopt(fd, level, name, &value, &len));
	return value;
}

static void echoes(int fd, const struct sockaddr_in *to)
{
	char data[4];

	CHECK(is_rsocket(fd));
	CHECK(!connect(fd, (const struct sockaddr *)to, sizeof(*to)));
	CHECK(!is_rsocket(fd));
	CHECK(write(fd, "echo", 4) == 4);
	CHECK(recv(fd, data, 4, MSG_WAITALL) == 4 && !memcmp(data, "echo", 4));
}

int main(void)
{
	const struct timeval given = {.tv_sec = 33};
	const struct linger lingers = {.l_onoff = 1, .l_linger = 7};
	struct sockaddr_in at[2], own;
	struct linger l;
	struct timeval tv;
	socklen_t len;
	int fd, on = 1, size = 50000, idle = 77, ports[2];
	pid_t child;

	CHECK(!pipe(ports));
	/* Only children of a process that has rsockets get plain ones. */
	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(is_rsocket(fd));
	child = fork();
	if (!child)
		echo_plainly(ports[1]);
	CHECK(!close(fd));
	CHECK(read(ports[0], at, sizeof(at)) == sizeof(at));

	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
	CHECK(!setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle)));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &given, sizeof(given)));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &lingers, sizeof(lingers)));
	CHECK(!bind(fd, (struct sockaddr *)&at[1], sizeof(at[1])));
	CHECK(!fcntl(fd, F_SETFD, FD_CLOEXEC));
	echoes(fd, &at[0]);
	CHECK(int_option(fd, IPPROTO_TCP, TCP_NODELAY) == 1);
	CHECK(int_option(fd, IPPROTO_TCP, TCP_KEEPIDLE) == idle);
	CHECK(int_option(fd, SOL_SOCKET, SO_KEEPALIVE) == 1);
	CHECK(int_option(fd, SOL_SOCKET, SO_REUSEADDR) == 1);
	/* Linux doubles it. */
	CHECK(int_option(fd, SOL_SOCKET, SO_SNDBUF) == 2 * size);
	len = sizeof(tv);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, &len) && tv.tv_sec == given.tv_sec);
	len = sizeof(l);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &len));
	CHECK(l.l_onoff && l.l_linger == lingers.l_linger);
	len = sizeof(own);
	CHECK(!getsockname(fd, (struct sockaddr *)&own, &len));
	CHECK(own.sin_port == at[1].sin_port && own.sin_addr.s_addr == at[1].sin_addr.s_addr);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(!close(fd));

	/* What the program has not set, the system decides. */
	fd = socket(AF_INET, SOCK_STREAM, 0);
	echoes(fd, &at[0]);
	CHECK(!fcntl(fd, F_GETFD) && !(fcntl(fd, F_GETFL) & O_NONBLOCK));
	CHECK(!int_option(fd, IPPROTO_TCP, TCP_NODELAY));
	CHECK(!int_option(fd, SOL_SOCKET, SO_KEEPALIVE));
	CHECK(int_option(fd, SOL_SOCKET, SO_SNDBUF) != 2 * size);
	CHECK(!close(fd));
	ended_well(child);
	return 0;
}
