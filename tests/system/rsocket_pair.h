// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* For the tests of rsockets: connections within a process, and the frame that runs the tests. */
#ifndef RSOCKET_PAIR_H
#define RSOCKET_PAIR_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "check.h"

/* The call fails with this errno. */
#define FAILS(call, error)                                                                         \
	do {                                                                                       \
		errno = 0;                                                                         \
		CHECK((long)(call) == -1);                                                         \
		CHECK(errno == (error));                                                           \
	} while (0)

/* A wait that is longer than any that succeeds. */
enum { LONG_MS = 30000 };

static inline void set_int(int rs, int level, int name, int value)
{
	CHECK(!rsetsockopt(rs, level, name, &value, sizeof(value)));
}

static inline int get_int(int rs, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	CHECK(!rgetsockopt(rs, level, name, &value, &len));
	CHECK(len == sizeof(value));
	return value;
}

#ifdef SYS_poll
#define POLL_CALL SYS_poll
#else
#define POLL_CALL SYS_ppoll
#endif

/* The number of the system call that the thread is in; -1: none. */
static inline long in_call(pid_t tid)
{
	char path[64];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	file = fopen(path, "re");
	CHECK(file);
	if (fscanf(file, "%ld", &number) != 1)
		number = -1; /* "running" */
	fclose(file);
	return number;
}

/* Waits until that thread of this process sleeps in a call of an rsocket. */
static inline void until_asleep(pid_t tid)
{
	long number;

	do {
		usleep(1000);
		number = in_call(tid);
	} while (number != POLL_CALL && number != SYS_ppoll);
}

/* What both ends of the next pair() have. */
static struct {
	int sndbuf, rcvbuf, sq, rq, in_line, iomap;
} wish;

static inline void apply_wish(int rs)
{
	if (wish.sndbuf)
		set_int(rs, SOL_SOCKET, SO_SNDBUF, wish.sndbuf);
	if (wish.rcvbuf)
		set_int(rs, SOL_SOCKET, SO_RCVBUF, wish.rcvbuf);
	if (wish.sq)
		set_int(rs, SOL_RDMA, RDMA_SQSIZE, wish.sq);
	if (wish.rq)
		set_int(rs, SOL_RDMA, RDMA_RQSIZE, wish.rq);
	if (wish.in_line)
		set_int(rs, SOL_RDMA, RDMA_INLINE, wish.in_line < 0 ? 0 : wish.in_line);
	if (wish.iomap)
		set_int(rs, SOL_RDMA, RDMA_IOMAPSIZE, wish.iomap);
}

/* A socket of this type, bound to a port of the loopback address that the system chooses: *addr. */
static inline int bound(int type, struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int rs = rsocket(AF_INET, type, 0);

	CHECK(rs >= 0);
	memset(addr, 0, sizeof(*addr));
	addr->sin_family = AF_INET;
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!rbind(rs, (struct sockaddr *)addr, sizeof(*addr)));
	CHECK(!rgetsockname(rs, (struct sockaddr *)addr, &len));
	CHECK(len == sizeof(*addr) && addr->sin_port);
	return rs;
}

static inline int listener(struct sockaddr_in *addr)
{
	int rs = bound(SOCK_STREAM, addr);

	apply_wish(rs);
	CHECK(!rlisten(rs, 8));
	return rs;
}

static inline void *connect_there(void *arg)
{
	struct sockaddr_in *addr = arg;
	int rs = rsocket(AF_INET, SOCK_STREAM, 0);

	CHECK(rs >= 0);
	apply_wish(rs);
	CHECK(!rconnect(rs, (struct sockaddr *)addr, sizeof(*addr)));
	return (void *)(intptr_t)rs;
}

static inline void pair(int ends[2])
{
	struct sockaddr_in addr;
	int rs = listener(&addr);
	pthread_t thread;
	void *result;

	CHECK(!pthread_create(&thread, NULL, connect_there, &addr));
	ends[1] = raccept(rs, NULL, NULL);
	CHECK(ends[1] >= 0);
	CHECK(!pthread_join(thread, &result));
	ends[0] = (int)(intptr_t)result;
	CHECK(!rclose(rs));
}

static inline void close_pair(int ends[2])
{
	CHECK(!rclose(ends[0]));
	CHECK(!rclose(ends[1]));
}

static inline short wait_for(int rs, short events)
{
	struct pollfd fd = {.fd = rs, .events = events};

	CHECK(rpoll(&fd, 1, LONG_MS) == 1);
	return fd.revents;
}

struct rsocket_test {
	const char *name;
	void (*run)(void);
};

/*
 * Runs those of this name, or all: each in a process of its own, which opens the device itself.
 * Returns what main() does.
 */
static inline int run_tests(const struct rsocket_test *tests, unsigned int count, const char *name)
{
	unsigned int i, n = 0;
	int status;
	pid_t child;

	for (i = 0; i < count; i++) {
		if (name && strcmp(name, tests[i].name))
			continue;
		child = fork();
		CHECK(child >= 0);
		if (!child) {
			tests[i].run();
			exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child);
		printf("%s: %s\n", tests[i].name, status ? "failed" : "passed");
		fflush(stdout);
		if (status)
			return 1;
		n++;
	}
	return n ? 0 : 2;
}

#endif
