// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Servers that fork: with RDMAV_FORK_SAFE=1 at both ends, a stream is a socket of the system until
 * one end sends or receives. Only then, in the process that does, it becomes an rsocket; so a
 * parent that accepts, forks and closes never touches the device, which its children could not use
 * then.
 *
 * The two ends agree over that socket, as with the library of OFED and rdma-core: the end that has
 * accepted listens at the same port by RDMA, and says so with four bytes of zero. The other one,
 * which sends nothing before, connects and takes them as no data. The children of a server take
 * turns at the port. Data that come first instead are those of an end that knows nothing of this;
 * then the socket stays what it is.
 *
 * No lock is held meanwhile. Of several threads that use a number one does it, and the others wait
 * for it.
 */

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "preload.h"

enum state { PLAIN, NEW, LISTENING, ACTIVE, PASSIVE, BUSY };

enum { AGAIN_US = 2000 };

static uint8_t states[PL_NUMBERS];
static pid_t
	owner; /* of the states: after vfork() a child has its parent's memory, and leaves them alone */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
	owner = getpid();
}

static void watch_forks(void)
{
	owner = getpid();
	pthread_atfork(NULL, NULL, in_child);
}

static bool forks;
static pthread_once_t asked = PTHREAD_ONCE_INIT;

static void ask(void)
{
	const char *value = getenv("RDMAV_FORK_SAFE");

	forks = value && atoi(value);
}

bool pl_forks(void)
{
	pthread_once(&asked, ask);
	return forks;
}

static enum state state_of(int fd)
{
	return fd < 0 || fd >= PL_NUMBERS ? PLAIN : __atomic_load_n(&states[fd], __ATOMIC_ACQUIRE);
}

static void set_state(int fd, enum state state)
{
	if (fd >= 0 && fd < PL_NUMBERS)
		__atomic_store_n(&states[fd], state, __ATOMIC_RELEASE);
}

int pl_fork_socket(int domain, int type, int protocol)
{
	int fd = PL_REAL(socket)(domain, type, protocol);

	pthread_once(&once, watch_forks);
	/* Datagrams have no beginning at which a child could come in. */
	if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
	    !access("/dev/infiniband/rdma_cm", R_OK | W_OK))
		set_state(fd, NEW);
	return fd;
}

void pl_fork_listens(int fd)
{
	if (state_of(fd) == NEW)
		set_state(fd, LISTENING);
}

void pl_fork_accepted(int listener, int fd)
{
	if (state_of(listener) == LISTENING)
		set_state(fd, PASSIVE);
}

void pl_fork_connects(int fd)
{
	if (state_of(fd) == NEW)
		set_state(fd, ACTIVE);
}

void pl_fork_forget(int fd)
{
	if (state_of(fd) != PLAIN && owner == getpid())
		set_state(fd, PLAIN);
}

/* Whether something has come: data, or the end. */
static bool has_come(int fd, int timeout)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return PL_REAL(poll)(&p, 1, timeout) == 1;
}

/* An rsocket that has accepted the peer; or -1. */
static int take(int fd, int listener)
{
	struct pollfd p[2] = {{.fd = listener, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
	uint32_t message = 0;

	if (PL_REAL(send)(fd, &message, sizeof(message), MSG_NOSIGNAL) != sizeof(message))
		return -1;
	do {
		p[0].revents = p[1].revents = 0;
		if (IN(rpoll(p, 2, -1)) < 0 && errno != EINTR)
			return -1;
		/* The peer has nothing to say here any more: it has ended. */
	} while (!p[0].revents && !p[1].revents);
	return p[0].revents ? IN(raccept(listener, NULL, NULL)) : -1;
}

/* At the address that is any: which of the host's the peer uses, it knows. */
static int listen_at_port_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} at;
	socklen_t len = sizeof(at);
	uint16_t port;
	int rs;

	if (PL_REAL(getsockname)(fd, &at.any, &len) ||
	    (at.any.sa_family != AF_INET && at.any.sa_family != AF_INET6))
		return -1;
	port = at.any.sa_family == AF_INET ? at.in.sin_port : at.in6.sin6_port;
	rs = IN(rsocket(at.any.sa_family, SOCK_STREAM, 0));
	if (rs < 0)
		return -1;
	len = at.any.sa_family == AF_INET ? sizeof(at.in) : sizeof(at.in6);
	memset((uint8_t *)&at + sizeof(at.any.sa_family), 0, sizeof(at) - sizeof(at.any.sa_family));
	if (at.any.sa_family == AF_INET)
		at.in.sin_port = port;
	else
		at.in6.sin6_port = port;
	/* Another child may have the port, as long as its peer takes to come. */
	while (IN(rbind(rs, &at.any, len))) {
		if ((errno != EADDRINUSE && errno != EADDRNOTAVAIL) || has_come(fd, 0))
			goto failed;
		usleep(AGAIN_US);
	}
	if (!IN(rlisten(rs, 1)))
		return rs;
failed:
	IN(rclose(rs));
	return -1;
}

static int passive(int fd)
{
	int listener, rs;

	if (has_come(fd, 0))
		return -1;
	listener = listen_at_port_of(fd);
	if (listener < 0)
		return -1;
	rs = take(fd, listener);
	IN(rclose(listener));
	return rs;
}

static int active(int fd)
{
	struct sockaddr_storage to;
	socklen_t len = sizeof(to);
	uint32_t message = 1;
	ssize_t n;
	int rs;

	do {
		(void)has_come(fd, -1);
		n = PL_REAL(recv)(fd, &message, sizeof(message), MSG_PEEK | MSG_DONTWAIT);
		/* Part of it is under way. */
		if (n > 0 && n < (ssize_t)sizeof(message) && !message)
			usleep(AGAIN_US);
	} while ((n < 0 && (errno == EAGAIN || errno == EINTR)) ||
		 (n > 0 && n < (ssize_t)sizeof(message) && !(message & 0xff)));
	if (n != sizeof(message) || message ||
	    PL_REAL(getpeername)(fd, (struct sockaddr *)&to, &len))
		return -1;
	rs = IN(rsocket(to.ss_family, SOCK_STREAM, 0));
	if (rs >= 0 && IN(rconnect(rs, (struct sockaddr *)&to, len))) {
		IN(rclose(rs));
		return -1;
	}
	return rs;
}

static void convert(int fd, enum state was)
{
	int flags = PL_REAL(fcntl)(fd, F_GETFL), saved = errno;
	/* A child of a process that has used the device cannot use it. */
	int rs = pl_is_child() ? -1 : was == ACTIVE ? active(fd) : passive(fd);

	if (rs >= 0) {
		pl_take_options(fd, rs);
		(void)IN(rfcntl(rs, F_SETFL, flags));
		/* The parent may still have it. */
		PL_REAL(shutdown)(fd, SHUT_RDWR);
		(void)pl_make_at(fd, rs);
	}
	set_state(fd, PLAIN);
	errno = saved;
}

void pl_fork_begin(int fd)
{
	uint8_t was;

	if (pl_inside)
		return;
	was = state_of(fd);
	if (was != PLAIN && owner != getpid())
		return;
	while (was == ACTIVE || was == PASSIVE || was == BUSY) {
		if (was == BUSY)
			usleep(AGAIN_US);
		else if (__atomic_compare_exchange_n(&states[fd], &was, BUSY, false,
						     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			convert(fd, was);
		was = state_of(fd);
	}
}
