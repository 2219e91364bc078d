// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Calls that rsockets have no counterpart of: several messages at once, and ioctl(). They are made
 * of the calls of preload_data.c and preload_option.c.
 */

#define _GNU_SOURCE
/* With it the C library's headers define some of these names, too. */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "preload.h"

enum { MOST = 1024 }; /* messages that the kernel takes in one call */

/* ---- Several messages ---- */

/*
 * Keeps the end of a connection for the next call, which would not meet it again: an rsocket tells
 * it only once.
 */
static void keep_error(int fd)
{
	struct pl_socket *known = pl_find(fd);

	if (known && (errno == ECONNRESET || errno == EPIPE || errno == ETIMEDOUT))
		__atomic_store_n(&known->error, errno, __ATOMIC_RELAXED);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/*
 * As in the kernel, the call looks at the clock after each message, and no message ends in between.
 */
static int receive_many(int fd, struct mmsghdr *messages, unsigned int len, int flags,
			struct timespec *timeout)
{
	int64_t end = 0, left = 1;
	unsigned int n;

	if (timeout) {
		if (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec > 999999999) {
			errno = EINVAL;
			return -1;
		}
		end = now_ns() +
		      (timeout->tv_sec > INT32_MAX ? INT32_MAX * INT64_C(1000000000)
						   : timeout->tv_sec * INT64_C(1000000000)) +
		      timeout->tv_nsec;
	}
	for (n = 0; n < len && left > 0; n++) {
		ssize_t done = recvmsg(fd, &messages[n].msg_hdr, flags & ~MSG_WAITFORONE);

		if (done < 0) {
			if (!n)
				return -1;
			keep_error(fd);
			break;
		}
		messages[n].msg_len = (unsigned int)done;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (timeout)
			left = end - now_ns();
	}
	if (timeout) {
		left = left > 0 ? end - now_ns() : 0;
		timeout->tv_sec = left > 0 ? left / 1000000000 : 0;
		timeout->tv_nsec = left > 0 ? left % 1000000000 : 0;
	}
	return (int)n;
}

PUBLIC int recvmmsg(int fd, struct mmsghdr *messages, unsigned int len, int flags,
		    struct timespec *timeout)
{
	if (!pl_use(fd))
		return PL_REAL(recvmmsg)(fd, messages, len, flags, timeout);
	return receive_many(fd, messages, len > MOST ? MOST : len, flags, timeout);
}

static size_t length(const struct msghdr *msg)
{
	size_t sum = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		sum += msg->msg_iov[i].iov_len;
	return sum;
}

PUBLIC int sendmmsg(int fd, struct mmsghdr *messages, unsigned int len, int flags)
{
	unsigned int n;

	if (!pl_use(fd))
		return PL_REAL(sendmmsg)(fd, messages, len, flags);
	if (len > MOST)
		len = MOST;
	for (n = 0; n < len; n++) {
		ssize_t done = sendmsg(fd, &messages[n].msg_hdr, flags);

		if (done < 0 && !n)
			return -1;
		if (done < 0) {
			keep_error(fd);
			break;
		}
		messages[n].msg_len = (unsigned int)done;
		/* Nothing may follow a message that has gone in part. */
		if ((size_t)done < length(&messages[n].msg_hdr)) {
			n++;
			break;
		}
	}
	return (int)n;
}

/* ---- ioctl() ---- */

static int set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -1;
	return fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

/* A copy tells how much a stream has. For a datagram it is the length of the next one. */
static int count_bytes(int fd, const struct pl_socket *known, int *bytes)
{
	socklen_t optlen = sizeof(int);
	int room = 0, listens = 0, saved = errno;
	ssize_t n;
	void *buf;

	if (!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &optlen) && listens) {
		errno = EINVAL;
		return -1;
	}
	optlen = sizeof(room);
	if (known->type == SOCK_STREAM &&
	    (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, &optlen) || room < 0))
		return -1;
	buf = malloc((size_t)room + 1);
	if (!buf)
		return -1;
	n = recv(fd, buf, known->type == SOCK_STREAM ? (size_t)room : 0,
		 MSG_PEEK | MSG_DONTWAIT | (known->type == SOCK_STREAM ? 0 : MSG_TRUNC));
	free(buf);
	if (n < 0 && errno == EBADF)
		return -1;
	if (n < 0)
		keep_error(fd);
	*bytes = n > 0 ? (int)n : 0;
	errno = saved;
	return 0;
}

static int control(int fd, const struct pl_socket *known, unsigned long request, void *arg)
{
	if (request != FIONBIO && request != FIONREAD) {
		/* About the number itself. /dev/null has no other. */
		if (request == FIOCLEX || request == FIONCLEX)
			return PL_REAL(ioctl)(fd, request, arg);
		errno = ENOTTY;
		return -1;
	}
	if (!arg) {
		errno = EFAULT;
		return -1;
	}
	return request == FIONBIO ? set_nonblock(fd, *(const int *)arg)
				  : count_bytes(fd, known, arg);
}

PUBLIC int ioctl(int fd, unsigned long request, ...)
{
	const struct pl_socket *known = pl_find(fd);
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	return known ? control(fd, known, request, arg) : PL_REAL(ioctl)(fd, request, arg);
}
