// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A thread that waits for an event of rdma_cm: a signal, O_NONBLOCK, cancellation, commands of
 * other threads, and the event itself reach it as the kernel says. Nothing can be read from the
 * file. Exits 1 and names what does not.
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
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
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

/* ---- read() ---- */

/* What read() is in a program that was compiled with _FORTIFY_SOURCE. */
ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);

static void refuses(int from, const char *what)
{
	char bytes[8];
	struct iovec iov = {bytes, sizeof(bytes)};

	must(read(from, bytes, sizeof(bytes)) == -1 && errno == EINVAL, what);
	must(read(from, bytes, 0) == -1 && errno == EINVAL, "read nothing");
	must(readv(from, &iov, 1) == -1 && errno == EINVAL, "readv");
	must(__read_chk(from, bytes, 8, 8) == -1 && errno == EINVAL, "__read_chk");
	must(pread(from, bytes, sizeof(bytes), 0) == -1 && errno == ESPIPE, "pread");
	must(recv(from, bytes, sizeof(bytes), 0) == -1 && errno == ENOTSOCK, "recv");
}

/* A thread that reads does not sleep, and takes no event away. */
static void has_no_read(void)
{
	int only_writes = open("/dev/infiniband/rdma_cm", O_WRONLY);
	char byte;

	refuses(fd, "read");
	must(read(only_writes, &byte, 1) == -1 && errno == EBADF, "read, O_WRONLY");
	close(only_writes);
}

/* Other descriptors of the file, with an event: a duplicate, and that of another program. */
static void copies_have_no_read(char *program)
{
	char byte, text[16];
	pid_t child;
	int status, copy = dup(fd);

	must(read(copy, &byte, 1) == -1 && errno == EINVAL, "read of a duplicate");
	snprintf(text, sizeof(text), "%d", copy);
	child = fork();
	must(child >= 0, "fork");
	if (!child) {
		execl(program, program, text, NULL);
		_exit(1);
	}
	must(waitpid(child, &status, 0) == child && !status, "another program");
	close(copy);
}

/* It finds the event that the program before it has left there. */
static int other_program(int inherited)
{
	struct pollfd p = {.fd = inherited, .events = POLLIN};
	struct iovec iov;
	char byte;

	iov = (struct iovec){&byte, 1};
	must(poll(&p, 1, -1) == 1, "the event, elsewhere");
	must(read(inherited, &byte, 1) == -1 && errno == EINVAL, "read after exec");
	must(poll(&p, 1, -1) == 1, "the event, elsewhere");
	must(readv(inherited, &iov, 1) == -1 && errno == EINVAL, "readv after exec");
	return 0;
}

/* ---- Sleeping ---- */

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

static void resolve_route(void)
{
	struct {
		uint32_t number;
		uint16_t in, out;
		uint32_t id, timeout_ms;
	} cmd = {.number = 4, .in = 8, .timeout_ms = 100};

	must(write(fd, &cmd, sizeof(cmd)) == sizeof(cmd), "resolve the route");
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

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct pollfd p = {.events = POLLIN | POLLOUT};
	pthread_t thread;
	void *result;

	alarm(60);
	if (argc > 1)
		return other_program(atoi(argv[1]));
	fd = p.fd = open("/dev/infiniband/rdma_cm", O_RDWR);
	must(fd >= 0, "open");
	has_no_read();
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
	resolve_route();
	must(poll(&p, 1, -1) == 1, "another event");
	has_no_read();
	must(poll(&p, 1, 0) == 1, "it is still there");
	copies_have_no_read(argv[0]);
	must(poll(&p, 1, -1) == 1 && get_event() == 0, "it is there again");
	must(poll(&p, 1, 0) == 0, "nothing is left");
	closed_meanwhile();
	return 0;
}
