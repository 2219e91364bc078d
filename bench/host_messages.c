// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the machine itself offers two processes on a core each, to compare messages of verbs with
 * (bench/messages): TCP over the loopback, and the time it takes to wake a sleeping process.
 *
 * Usage: host_messages TEST SIZE ITERATIONS CPU CPU. Prints one number: microseconds, or
 * million messages a second.
 *	tcp		half round trip over TCP, both sides polling
 *	tcp-sleep	the same, both sides sleeping in recv()
 *	tcp-rate	one send() per message, the other side takes all that has arrived
 *	pipe, futex	half round trip of a wake-up, both sides sleeping; SIZE is ignored
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define PATIENCE 120 /* seconds; a run that takes longer has failed */

enum test { TCP, TCP_SLEEP, TCP_RATE, PIPE, FUTEX };
static const char *const names[] = {"tcp", "tcp-sleep", "tcp-rate", "pipe", "futex"};

static enum test test;
static size_t size;
static int side, in_fd, out_fd;
static char *buf;
static uint32_t *words; /* shared; each side sleeps on one of them */

static void die(const char *what)
{
	fprintf(stderr, "host_messages: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void put(void)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write(out_fd, buf + done, size - done);

		if (n > 0)
			done += n;
		else if (errno != EAGAIN)
			die("write");
	}
}

static void get(void)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = test == PIPE || test == FUTEX ? read(in_fd, buf + done, size - done)
							  : recv(in_fd, buf + done, size - done,
								 test == TCP ? MSG_DONTWAIT : 0);

		if (n > 0)
			done += n;
		else if (n == 0 || errno != EAGAIN)
			die("read");
	}
}

static void round_trip(void)
{
	if (side == 0)
		put();
	get();
	if (side == 1)
		put();
}

static void take_rate(void)
{
	static char room[65536];
	static size_t got;

	while (got < size) {
		ssize_t n = recv(in_fd, room, sizeof(room), MSG_DONTWAIT);

		if (n > 0)
			got += n;
		else if (n == 0 || errno != EAGAIN)
			die("read");
	}
	got -= size;
}

static void wake_other(uint32_t number)
{
	__atomic_store_n(&words[!side], number, __ATOMIC_SEQ_CST);
	if (syscall(SYS_futex, &words[!side], FUTEX_WAKE, 1, NULL, NULL, 0) < 0)
		die("futex wake");
}

static void wait_for(uint32_t number)
{
	while (__atomic_load_n(&words[side], __ATOMIC_SEQ_CST) != number)
		if (syscall(SYS_futex, &words[side], FUTEX_WAIT, number - 1, NULL, NULL, 0) &&
		    errno != EAGAIN && errno != EINTR)
			die("futex wait");
}

static void futex_round_trip(void)
{
	static uint32_t number;

	number++;
	if (side == 0)
		wake_other(number);
	wait_for(number);
	if (side == 1)
		wake_other(number);
}

static void connect_tcp(int fds[2])
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (listener < 0 || bind(listener, (void *)&addr, len) || listen(listener, 1) ||
	    getsockname(listener, (void *)&addr, &len))
		die("listen");
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (fds[0] < 0 || connect(fds[0], (void *)&addr, len))
		die("connect");
	fds[1] = accept(listener, NULL, NULL);
	if (fds[1] < 0)
		die("accept");
	for (int i = 0; i < 2; i++)
		if (setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
			die("TCP_NODELAY");
	close(listener);
}

int main(int argc, char **argv)
{
	int fds[2], there[2], back[2], cpus[2], iterations, status;
	void (*step)(void) = round_trip;
	struct timing t;
	pid_t child;

	while (argc > 1 && test < sizeof(names) / sizeof(*names) && strcmp(argv[1], names[test]))
		test++;
	if (argc != 6 || test == sizeof(names) / sizeof(*names)) {
		fputs("Usage: host_messages tcp|tcp-sleep|tcp-rate|pipe|futex SIZE ITERATIONS CPU "
		      "CPU\n",
		      stderr);
		return 2;
	}
	size = test == PIPE ? 1 : strtoul(argv[2], NULL, 0);
	iterations = atoi(argv[3]);
	cpus[0] = atoi(argv[4]);
	cpus[1] = atoi(argv[5]);
	buf = calloc(1, size);
	words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!buf || words == MAP_FAILED)
		die("memory");
	if (test <= TCP_RATE)
		connect_tcp(fds);
	else if (pipe(there) || pipe(back))
		die("pipe");
	child = fork();
	if (child < 0)
		die("fork");
	side = child == 0;
	alarm(PATIENCE);
	if (test <= TCP_RATE) {
		in_fd = out_fd = fds[side];
		close(fds[!side]);
	} else {
		in_fd = side ? there[0] : back[0];
		out_fd = side ? back[1] : there[1];
		close(side ? back[0] : there[0]);
		close(side ? there[1] : back[1]);
	}
	pin_to(cpus[side]);
	if (test == TCP_RATE)
		step = side == 0 ? put : take_rate;
	else if (test == FUTEX)
		step = futex_round_trip;
	t = time_of(step, iterations);
	if (side == 1) {
		/* The receiver measures the rate. */
		if (test == TCP_RATE)
			printf("%.4f\n", 1 / t.mean);
		return fflush(stdout) ? 1 : 0;
	}
	if (test != TCP_RATE)
		printf("%.4f\n", t.median / 2);
	return fflush(stdout) || waitpid(child, &status, 0) < 0 || status ? 1 : 0;
}
