// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Ping-pong over a stream between two processes on a core each: over rsockets, and over what they
 * are compared with (bench/rsockets).
 *
 * Usage: rsocket_messages TEST SIZE ITERATIONS CPU CPU. Prints half a round trip in microseconds.
 *	rsocket		rsend() and rrecv(), which polls for 10 us before it sleeps
 *	tcp		send() and recv() over the loopback
 *	tcp-polling	the same, without sleeping
 *	copies		no message: what rsockets copy for one of SIZE, in one process
 *	copies-apart	the same, by the two processes through shared memory
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "bench.h"

#define PATIENCE 120	 /* seconds; a run that takes longer has failed */
#define RING	 131072u /* SO_SNDBUF and SO_RCVBUF of rsockets */
#define PIECE	 32768u	 /* that they write at once */

enum test { RSOCKET, TCP, TCP_POLLING, COPIES, COPIES_APART };
static const char *const names[] = {"rsocket", "tcp", "tcp-polling", "copies", "copies-apart"};

static enum test test;
static size_t size;
static int side, fd;
static char *buf;

static void die(const char *what)
{
	fprintf(stderr, "rsocket_messages: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void put(void)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = test == RSOCKET ? rsend(fd, buf + done, size - done, 0)
					    : send(fd, buf + done, size - done, 0);

		if (n < 0)
			die("send");
		done += (size_t)n;
	}
}

static void get(void)
{
	int flags = test == TCP_POLLING ? MSG_DONTWAIT : 0;

	for (size_t done = 0; done < size;) {
		ssize_t n = test == RSOCKET ? rrecv(fd, buf + done, size - done, 0)
					    : recv(fd, buf + done, size - done, flags);

		if (n > 0)
			done += (size_t)n;
		else if (!n || errno != EAGAIN)
			die("receive");
	}
}

/* One direction of copies-apart: how much is in the ring and how much has left it, ever. */
static struct way {
	_Alignas(128) size_t in;
	_Alignas(128) size_t out;
	_Alignas(4096) char ring[RING];
} * ways;

/* A piece of it, in one place of the ring. */
static size_t piece_at(size_t at, size_t left)
{
	size_t n = left < PIECE ? left : PIECE;

	return n < RING - at % RING ? n : RING - at % RING;
}

static void put_apart(struct way *way)
{
	static char from[RING];
	size_t at = way->in, end = at + size;

	while (at < end) {
		size_t n = piece_at(at, end - at);

		while (at + n - __atomic_load_n(&way->out, __ATOMIC_ACQUIRE) > RING)
			;
		memcpy(from + at % RING, buf + (size - (end - at)), n);
		memcpy(way->ring + at % RING, from + at % RING, n);
		at += n;
		__atomic_store_n(&way->in, at, __ATOMIC_RELEASE);
	}
}

static void get_apart(struct way *way)
{
	size_t at = way->out, end = at + size;

	while (at < end) {
		size_t n = piece_at(at, __atomic_load_n(&way->in, __ATOMIC_ACQUIRE) - at);

		memcpy(buf + (size - (end - at)), way->ring + at % RING, n);
		at += n;
		__atomic_store_n(&way->out, at, __ATOMIC_RELEASE);
	}
}

static void round_trip_apart(void)
{
	if (!side)
		put_apart(&ways[0]);
	get_apart(&ways[!side]);
	if (side)
		put_apart(&ways[1]);
}

static void round_trip(void)
{
	if (!side)
		put();
	get();
	if (side)
		put();
}

/* Into the ring of the sender, from there into the receiver's, and out of it. */
static void copies(void)
{
	static char from[RING], to[RING];

	for (size_t done = 0; done < size;) {
		size_t at = done % RING, n = size - done < PIECE ? size - done : PIECE;

		memcpy(from + at, buf + done, n);
		memcpy(to + at, from + at, n);
		memcpy(buf + size + done, to + at, n);
		done += n;
	}
}

/* The server tells its port by the pipe. */
static void connect_both(const int ports[2])
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(addr);
	bool rs = test == RSOCKET;
	int one = 1, s = rs ? rsocket(AF_INET, SOCK_STREAM, 0) : socket(AF_INET, SOCK_STREAM, 0);

	if (s < 0)
		die("socket");
	if (side) {
		if ((rs ? rbind : bind)(s, (void *)&addr, len) || (rs ? rlisten : listen)(s, 1) ||
		    (rs ? rgetsockname : getsockname)(s, (void *)&addr, &len))
			die("listen");
		if (write(ports[1], &addr.sin_port, sizeof(addr.sin_port)) < 0)
			die("pipe");
		fd = (rs ? raccept : accept)(s, NULL, NULL);
		if (fd < 0)
			die("accept");
		(rs ? rclose : close)(s);
	} else {
		if (read(ports[0], &addr.sin_port, sizeof(addr.sin_port)) != sizeof(addr.sin_port))
			die("the other side's port");
		fd = s;
		if ((rs ? rconnect : connect)(s, (void *)&addr, len))
			die("connect");
	}
	if ((rs ? rsetsockopt : setsockopt)(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("TCP_NODELAY");
}

int main(int argc, char **argv)
{
	int ports[2], cpus[2], iterations, status = 0;
	struct timing t;
	pid_t child = 0;

	while (argc > 1 && test < sizeof(names) / sizeof(*names) && strcmp(argv[1], names[test]))
		test++;
	if (argc != 6 || test == sizeof(names) / sizeof(*names)) {
		fputs("Usage: rsocket_messages rsocket|tcp|tcp-polling|copies|copies-apart SIZE "
		      "ITERATIONS CPU CPU\n",
		      stderr);
		return 2;
	}
	size = strtoul(argv[2], NULL, 0);
	iterations = atoi(argv[3]);
	cpus[0] = atoi(argv[4]);
	cpus[1] = atoi(argv[5]);
	/* Written once: no page of it is the system's page of zeros. */
	buf = malloc(2 * size);
	if (!buf)
		die("memory");
	memset(buf, 1, 2 * size);
	ways = mmap(NULL, 2 * sizeof(*ways), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		    0);
	if (ways == MAP_FAILED)
		die("memory");
	memset(ways, 0, 2 * sizeof(*ways));
	alarm(PATIENCE);
	if (test != COPIES) {
		if (pipe(ports))
			die("pipe");
		child = fork();
		if (child < 0)
			die("fork");
		side = !child;
		alarm(PATIENCE);
	}
	pin_to(cpus[side]);
	if (test < COPIES)
		connect_both(ports);
	t = time_of(test == COPIES	   ? copies
		    : test == COPIES_APART ? round_trip_apart
					   : round_trip,
		    iterations);
	if (!side)
		printf("%.4f\n", test == COPIES ? t.median : t.median / 2);
	if (test < COPIES)
		(test == RSOCKET ? rclose : close)(fd);
	if (child && (waitpid(child, &status, 0) < 0 || status))
		return 1;
	return fflush(stdout) ? 1 : 0;
}
