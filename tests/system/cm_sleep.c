// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A thread that waits for an event of rdma_cm: a signal, O_NONBLOCK, cancellation, commands of other threads, and the event
 * itself reach it as the kernel says. Exits 1 and names what does not.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fd;
static uint32_t event[84]; /* the type is at 3 */
static volatile sig_atomic_t hits;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static int get_event(void)
{
	struct {
		uint32_t number;
		uint16_t in, out;
		uint64_t response;
	} cmd = {.number = 12, .in = 8, .out = sizeof(event), .response = (uintptr_t)event};

	return write(fd, &cmd, sizeof(cmd)) == sizeof(cmd) ? 0 : errno;
}

static void *waiter(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)get_event();
}

static void on_signal(int number)
{
	(void)number;
	hits++;
}

/* Signals a thread until its handler has run that often, and then some. */
static void signal_until(pthread_t thread, int wanted)
{
	while (hits < wanted) {
		pthread_kill(thread, SIGUSR1);
		usleep(10000);
	}
}

static void create_id(void)
{
	uint32_t id = 99;
	struct {
		uint32_t number;
		uint16_t in, out;
		uint64_t uid, response;
		uint16_t ps;
		uint8_t qp_type, reserved[5];
	} cmd = {.in = 24, .out = 4, .response = (uintptr_t)&id, .ps = 0x106, .qp_type = 2};

	must(write(fd, &cmd, sizeof(cmd)) == sizeof(cmd) && id == 0, "create while a thread waits");
}

static void resolve(void)
{
	struct {
		uint32_t number;
		uint16_t in, out;
		struct sockaddr_in6 src, dst;
		uint32_t id, timeout_ms;
	} cmd = {.number = 3, .in = 64, .timeout_ms = 100};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(7471)};

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memcpy(&cmd.dst, &in, sizeof(in));
	must(write(fd, &cmd, sizeof(cmd)) == sizeof(cmd), "resolve");
}

static volatile bool begun;

static void *one_event(void *arg)
{
	(void)arg;
	begun = true;
	return (void *)(intptr_t)get_event();
}

/*
 * A thread that waits holds the file: it goes on waiting when another thread closes the descriptor.
 * If the descriptor is closed before it is in the call, it gets EBADF.
 */
static void closed_meanwhile(void)
{
	for (int i = 0; i < 300; i++) {
		pthread_t thread;
		void *result;
		int ended;

		fd = open("/dev/infiniband/rdma_cm", O_RDWR);
		must(fd >= 0, "open");
		begun = false;
		must(!pthread_create(&thread, NULL, one_event, NULL), "thread");
		while (!begun)
			sched_yield();
		for (volatile int spin = 0; spin < i * 100; spin++)
			;
		close(fd);
		usleep(1000);
		ended = pthread_tryjoin_np(thread, &result);
		if (ended == EBUSY) {
			pthread_cancel(thread);
			pthread_join(thread, NULL);
		} else {
			must((intptr_t)result == EBADF, "a closed descriptor");
		}
	}
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct pollfd p = {.events = POLLIN | POLLOUT};
	pthread_t thread;
	void *result;

	alarm(60);
	fd = p.fd = open("/dev/infiniband/rdma_cm", O_RDWR);
	must(fd >= 0, "open");
	fcntl(fd, F_SETFL, O_NONBLOCK);
	must(get_event() == EAGAIN && poll(&p, 1, 0) == 0, "nothing, not blocking");
	fcntl(fd, F_SETFL, 0);
	/* A signal that comes before the thread sleeps is followed by others. */
	sigaction(SIGUSR1, &action, NULL);
	must(!pthread_create(&thread, NULL, waiter, NULL), "thread");
	while (pthread_tryjoin_np(thread, &result) == EBUSY) {
		pthread_kill(thread, SIGUSR1);
		usleep(10000);
	}
	must((intptr_t)result == EINTR, "EINTR");
	action.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &action, NULL);
	must(!pthread_create(&thread, NULL, waiter, NULL), "thread");
	signal_until(thread, hits + 20);
	must(pthread_tryjoin_np(thread, NULL) == EBUSY, "SA_RESTART");
	create_id();
	pthread_cancel(thread);
	pthread_join(thread, &result);
	must(result == PTHREAD_CANCELED, "cancellation");
	must(!pthread_create(&thread, NULL, waiter, NULL), "thread");
	resolve();
	pthread_join(thread, &result);
	must(!result && event[3] == 0, "the event");
	must(poll(&p, 1, 0) == 0, "nothing is left");
	closed_meanwhile();
	return 0;
}
