// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Description: datagram rsockets behave as UDP sockets do. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

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

/* ---- A thread that sleeps while another one sends ---- */

/*
 * On one processor the thread that sends runs on, while the one that sleeps waits for its turn to
 * look at what woke it.
 */
static cpu_set_t one_cpu;

static void choose_cpu(void)
{
	cpu_set_t all;
	int i = 0;

	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	while (!CPU_ISSET(i, &all))
		i++;
	CPU_ZERO(&one_cpu);
	CPU_SET(i, &one_cpu);
}

static void run_on(const cpu_set_t *cpus)
{
	CHECK(!sched_setaffinity(0, sizeof(*cpus), cpus));
}

static pid_t sleeper_tid; /* atomic */

static void *sleeps(void *arg)
{
	char data[8];

	run_on(&one_cpu);
	__atomic_store_n(&sleeper_tid, gettid(), __ATOMIC_RELEASE);
	CHECK(rrecv(*(int *)arg, data, sizeof(data), 0) == 1);
	return (void *)(intptr_t)data[0];
}

/* A thread that sleeps in rrecv(). */
static pthread_t sleeper(int *rs)
{
	pthread_t thread;
	pid_t tid;

	alarm(LONG_MS / 1000); /* a thread that sleeps on ends the test */
	sleeper_tid = 0;
	CHECK(!pthread_create(&thread, NULL, sleeps, rs));
	while (!(tid = __atomic_load_n(&sleeper_tid, __ATOMIC_ACQUIRE)))
		usleep(1000);
	until_asleep(tid);
	return thread;
}

static void has_got(pthread_t thread, char what)
{
	void *got;

	CHECK(!pthread_join(thread, &got));
	alarm(0);
	CHECK((intptr_t)got == what);
}

/* The socket of a program that knows nothing of rsockets, and never answers. */
static int mute(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(fd >= 0);
	*addr = (struct sockaddr_in){.sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	CHECK(!bind(fd, (struct sockaddr *)addr, sizeof(*addr)));
	CHECK(!getsockname(fd, (struct sockaddr *)addr, &len));
	return fd;
}

static void send_to(int rs, const char *data, const struct sockaddr_in *to)
{
	CHECK(rsendto(rs, data, 1, 0, (const struct sockaddr *)to, sizeof(*to)) == 1);
}

static struct {
	int rs;
	struct sockaddr_in to;
	int stop; /* atomic */
} busy;

/* Each send looks for an answer of the peer, and finds what is for the thread that sleeps. */
static void *sends(void *unused)
{
	run_on(&one_cpu);
	while (!__atomic_load_n(&busy.stop, __ATOMIC_RELAXED))
		rsendto(busy.rs, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&busy.to,
			sizeof(busy.to));
	return unused;
}

static void test_taken_by_a_sender(void)
{
	struct sockaddr_in addr, unused;
	int i, fd = mute(&busy.to);

	choose_cpu();
	for (i = 0; i < 60; i++) {
		int other = bound(SOCK_DGRAM, &unused);
		pthread_t sending, thread;

		busy.rs = bound(SOCK_DGRAM, &addr);
		busy.stop = 0;
		CHECK(!pthread_create(&sending, NULL, sends, NULL));
		thread = sleeper(&busy.rs);
		send_to(other, "y", &addr);
		has_got(thread, 'y');
		__atomic_store_n(&busy.stop, 1, __ATOMIC_RELAXED);
		CHECK(!pthread_join(sending, NULL));
		CHECK(!rclose(other) && !rclose(busy.rs));
	}
	close(fd);
}

/* Sends "2" back, and nothing else. */
static void *echoes(void *arg)
{
	int rs = *(int *)arg;
	struct sockaddr_in from;
	char data = 0;

	while (data != '3') {
		socklen_t len = sizeof(from);

		CHECK(rrecvfrom(rs, &data, 1, 0, (struct sockaddr *)&from, &len) == 1);
		if (data == '2')
			send_to(rs, &data, &from);
	}
	return NULL;
}

/* The QP is made while the thread sleeps, and the sender reads the peer's answer by UDP. */
static void test_first_qp(void)
{
	struct sockaddr_in addr;
	int i, j, rs = bound(SOCK_DGRAM, &addr), one = -1;
	pthread_t echo, thread;
	char data;

	choose_cpu();
	CHECK(!pthread_create(&echo, NULL, echoes, &rs));
	run_on(&one_cpu);
	for (i = 0; i < 20; i++) {
		one = rsocket(AF_INET, SOCK_DGRAM, 0);
		CHECK(one >= 0);
		thread = sleeper(&one);
		send_to(one, "1", &addr);
		/* The thread that sleeps may be faster. */
		for (j = 0; i % 2 && j < 10000; j++)
			if (recv(one, &data, 1, MSG_PEEK | MSG_DONTWAIT) >= 0)
				break;
		send_to(one, "1", &addr);
		send_to(one, "2", &addr);
		has_got(thread, '2');
		if (i < 19)
			CHECK(!rclose(one));
	}
	send_to(one, "3", &addr);
	CHECK(!pthread_join(echo, NULL));
	CHECK(!rclose(one) && !rclose(rs));
}

/* ---- Many of them ---- */

/* As many as the receiver's buffer holds are kept, also of those that have no data. */
static void test_empty_ones(void)
{
	const uint8_t header[] = {0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 0, 0, 77, 127, 0, 0, 1};
	struct sockaddr_in addr, away;
	int rs = bound(SOCK_DGRAM, &addr), fd = mute(&away), other = mute(&away), i, j, kept = 0;
	char data;

	for (i = 0; i < 200; i++) {
		for (j = 0; j < 100; j++)
			CHECK(sendto(fd, header, sizeof(header), 0, (struct sockaddr *)&addr,
				     sizeof(addr)) == (ssize_t)sizeof(header));
		send_to(rs, "x", &away);
	}
	while (rrecv(rs, &data, 1, MSG_DONTWAIT) == 0)
		kept++;
	printf("%d datagrams without data in a buffer of %d bytes\n", kept,
	       get_int(rs, SOL_SOCKET, SO_RCVBUF));
	CHECK(kept > 100 && kept <= get_int(rs, SOL_SOCKET, SO_RCVBUF) / 16);
	CHECK(!rclose(rs));
	close(other);
	close(fd);
}

/* More than a socket remembers. Those that it has given up hear of it again. */
static void test_many_peers(void)
{
	struct sockaddr_in addr, own, from, port;
	int rs = bound(SOCK_DGRAM, &own), other = bound(SOCK_DGRAM, &addr), fd = mute(&port), i, j;
	socklen_t len;
	char data;

	alarm(2 * LONG_MS / 1000);
	for (i = 0; i < 2; i++) {
		for (j = 0; j < 10; j++) {
			data = (char)('a' + j);
			send_to(rs, &data, &addr);
			len = sizeof(from);
			CHECK(rrecvfrom(other, &data, 1, 0, (struct sockaddr *)&from, &len) == 1);
			CHECK(data == 'a' + j);
			CHECK(from.sin_port == own.sin_port);
			send_to(other, "b", &from);
			CHECK(rrecv(rs, &data, 1, 0) == 1);
		}
		for (j = 1; j <= 1100 && !i; j++) {
			port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
			port.sin_port = htons((uint16_t)(20000 + j));
			send_to(rs, "x", &port);
		}
	}
	CHECK(!rclose(rs) && !rclose(other));
	close(fd);
}

static const struct rsocket_test tests[] = {
	{"datagrams", test_datagrams},	 {"taken_by_a_sender", test_taken_by_a_sender},
	{"first_qp", test_first_qp},	 {"empty_ones", test_empty_ones},
	{"many_peers", test_many_peers},
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
