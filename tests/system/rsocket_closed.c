// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: rclose() of an rsocket in which other threads of the program are: those that sleep
 * there wake and leave, also where its number belongs to another rsocket by then.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdbool.h>

#include <rdma/rdma_cma.h>

#include "rsocket_pair.h"

static int closed; /* the rsocket that a thread sleeps in */
static struct sockaddr_in nobody;

static void *receives(void *arg)
{
	char data;
	ssize_t n = rrecv(closed, &data, 1, 0);

	(void)arg;
	/* rclose() says first that no more data come. */
	CHECK(n >= 0 || errno == EBADF);
	return NULL;
}

static void *sends(void *arg)
{
	static char data[65536];

	(void)arg;
	while (rsend(closed, data, sizeof(data), 0) >= 0)
		;
	CHECK(errno == EBADF || errno == EPIPE);
	return NULL;
}

static void *polls(void *arg)
{
	struct pollfd fds[40];
	int n = arg ? 40 : 1;

	for (int i = 0; i < n; i++)
		fds[i] = (struct pollfd){.fd = closed, .events = POLLIN};
	CHECK(rpoll(fds, n, -1) > 0);
	for (int i = 0; i < n; i++)
		CHECK(!fds[i].revents || fds[i].revents & (POLLNVAL | POLLIN));
	return NULL;
}

static void *polls_many(void *arg)
{
	(void)arg;
	return polls(&closed);
}

static void *selects(void *arg)
{
	fd_set reads;
	int n;

	(void)arg;
	FD_ZERO(&reads);
	FD_SET(closed, &reads);
	n = rselect(closed + 1, &reads, NULL, NULL, NULL);
	CHECK(n == 1 || (n < 0 && errno == EBADF));
	return NULL;
}

static void *accepts(void *arg)
{
	(void)arg;
	FAILS(raccept(closed, NULL, NULL), EBADF);
	return NULL;
}

static void *connects(void *arg)
{
	(void)arg;
	CHECK(rconnect(closed, (struct sockaddr *)&nobody, sizeof(nobody)) < 0);
	/* It may take a slow machine longer than the connection to fail. */
	CHECK(errno == EBADF || errno == ETIMEDOUT);
	return NULL;
}

static void *closes(void *arg)
{
	(void)arg;
	CHECK(!rclose(closed) || errno == EBADF);
	return NULL;
}

enum { THREADS = 3 };

static void start(pthread_t threads[THREADS], void *(*call)(void *))
{
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, call, NULL));
	/* Threads that do not sleep yet find that the number is nobody's. */
	usleep(50000);
}

static void all_leave(pthread_t threads[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

static void test_streams(void)
{
	static void *(*const calls[])(void *) = {receives, sends, polls, polls_many, selects};

	for (unsigned int i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		pthread_t threads[THREADS];
		int ends[2], again[2];

		pair(ends);
		closed = ends[0];
		start(threads, calls[i]);
		if (calls[i] == sends)
			CHECK(!rclose(ends[1]));
		CHECK(!rclose(ends[0]));
		all_leave(threads);
		if (calls[i] != sends)
			CHECK(!rclose(ends[1]));
		/* What they left is whole. */
		pair(again);
		CHECK(rsend(again[0], "x", 1, 0) == 1);
		CHECK(wait_for(again[1], POLLIN) & POLLIN);
		close_pair(again);
	}
}

static void test_listener(void)
{
	static void *(*const calls[])(void *) = {accepts, accepts, polls, polls_many, selects};
	struct sockaddr_in addr;
	pthread_t threads[THREADS];
	int other;

	for (unsigned int i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		closed = listener(&addr);
		start(threads, calls[i]);
		CHECK(!rclose(closed));
		all_leave(threads);
	}
	/* The port is free. */
	other = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK(!rbind(other, (struct sockaddr *)&addr, sizeof(addr)));
	CHECK(!rclose(other));
}

static void test_connecting(void)
{
	pthread_t threads[1];

	nobody.sin_family = AF_INET;
	nobody.sin_port = htons(7471);
	CHECK(inet_pton(AF_INET, "127.128.9.1", &nobody.sin_addr) == 1);
	closed = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK(closed >= 0);
	CHECK(!pthread_create(&threads[0], NULL, connects, NULL));
	usleep(50000);
	CHECK(!rclose(closed));
	CHECK(!pthread_join(threads[0], NULL));
}

/* The number, and the memory, are another rsocket's while they are on their way. */
static void test_datagrams(void)
{
	static void *(*const calls[])(void *) = {receives, polls, polls_many, selects};

	for (unsigned int i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		pthread_t threads[THREADS];
		struct sockaddr_in addr, mine;
		char data;
		int other, sender;

		closed = bound(SOCK_DGRAM, &addr);
		start(threads, calls[i]);
		CHECK(!rclose(closed));
		other = bound(SOCK_DGRAM, &mine);
		CHECK(other == closed);
		sender = bound(SOCK_DGRAM, &addr);
		if (calls[i] == receives) {
			/* One that comes so late that it asks by number receives from the other. */
			for (int n = 0; n <= THREADS; n++)
				CHECK(rsendto(sender, "x", 1, 0, (struct sockaddr *)&mine,
					      sizeof(mine)) == 1);
		} else {
			CHECK(rsendto(sender, "x", 1, 0, (struct sockaddr *)&mine, sizeof(mine)) ==
			      1);
		}
		all_leave(threads);
		CHECK(rrecv(other, &data, 1, 0) == 1 && data == 'x');
		CHECK(!rclose(other));
		CHECK(!rclose(sender));
	}
}

static void *uses(void *arg)
{
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	char data;

	for (;;) {
		if (rrecv(closed, &data, 1, MSG_DONTWAIT) < 0 && errno == EBADF)
			return NULL;
		if (rgetsockname(closed, (struct sockaddr *)&addr, &len) && errno == EBADF)
			return NULL;
		*(volatile int *)arg = 1;
	}
}

/* At each moment of a call that does not sleep. */
static void test_any_moment(void)
{
	for (int i = 0; i < 60; i++) {
		struct sockaddr_in addr;
		volatile int begun = 0;
		pthread_t thread;

		closed = bound(i % 2 ? SOCK_DGRAM : SOCK_STREAM, &addr);
		CHECK(!pthread_create(&thread, NULL, uses, (void *)&begun));
		while (!begun)
			sched_yield();
		for (volatile int spin = 0; spin < i * 50; spin++)
			;
		CHECK(!rclose(closed));
		CHECK(!pthread_join(thread, NULL));
	}
}

/* One of them closes it, whatever the others are at. */
static void test_closed_twice(void)
{
	pthread_t threads[THREADS];
	int ends[2];

	for (int i = 0; i < 20; i++) {
		pair(ends);
		closed = ends[0];
		for (int n = 0; n < THREADS; n++)
			CHECK(!pthread_create(&threads[n], NULL, closes, NULL));
		all_leave(threads);
		FAILS(rclose(closed), EBADF);
		CHECK(!rclose(ends[1]));
	}
}

enum { NOT_YET, AWAITS_END, POLLS_NUMBER };

static pthread_t late;
static volatile bool is_late;
static __thread bool is_thread_late;
static int late_does; /* atomic */

/*
 * Comes before the C library's: librdmacm sleeps in it. Without a descriptor it awaits that the
 * number is free.
 */
int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	int (*next)(struct pollfd *, nfds_t, int) = dlsym(RTLD_NEXT, "poll");

	if (is_thread_late && !__atomic_load_n(&late_does, __ATOMIC_SEQ_CST))
		__atomic_store_n(&late_does, n ? POLLS_NUMBER : AWAITS_END, __ATOMIC_SEQ_CST);
	return next(fds, n, timeout);
}

static void *polls_late(void *arg)
{
	is_thread_late = true;
	return polls(arg);
}

/*
 * Comes before the library's: rclose() calls it when the number is nobody's any more, but open
 * still.
 */
int rdma_disconnect(struct rdma_cm_id *id)
{
	int (*next)(struct rdma_cm_id * id) = dlsym(RTLD_NEXT, "rdma_disconnect");

	if (is_late) {
		is_late = false;
		CHECK(!pthread_create(&late, NULL, polls_late, NULL));
		while (!__atomic_load_n(&late_does, __ATOMIC_SEQ_CST))
			sched_yield();
		CHECK(late_does == AWAITS_END);
	}
	return next(id);
}

static void test_while_it_ends(void)
{
	int ends[2];

	pair(ends);
	closed = ends[0];
	is_late = true;
	CHECK(!rclose(ends[0]));
	CHECK(!is_late);
	CHECK(!pthread_join(late, NULL));
	CHECK(!rclose(ends[1]));
}

static const struct rsocket_test tests[] = {
	{"streams", test_streams},
	{"listener", test_listener},
	{"connecting", test_connecting},
	{"datagrams", test_datagrams},
	{"any_moment", test_any_moment},
	{"closed_twice", test_closed_twice},
	{"while_it_ends", test_while_it_ends},
};

int main(int argc, char **argv)
{
	alarm(LONG_MS / 1000 * 2);
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
