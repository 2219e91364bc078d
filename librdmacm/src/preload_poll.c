// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Calls that wait for several descriptors: rsockets among them have other numbers inside librdmacm.
 * A sleep there lets through the signals that the call lets through.
 */

#define _GNU_SOURCE
/* With it the C library's headers define some of these names, too. */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/select.h>

#include <rdma/rsocket.h>

#include "preload.h"

/* Of a thread in ppoll() or pselect(): the signals that its sleep inside librdmacm blocks. */
static __thread const sigset_t *asleep_with;

/* fds is not const: gcc 12 at -O0 takes what poll() gets for uninitialized, and would warn. */
static bool has_rsocket(struct pollfd *fds, nfds_t nfds)
{
	nfds_t i;

	for (i = 0; i < nfds; i++)
		if (pl_get(fds[i].fd) >= 0)
			return true;
	return false;
}

static int poll_rsockets(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct pollfd few[16], *own = few;
	nfds_t i;
	int ret;

	if (nfds > sizeof(few) / sizeof(few[0])) {
		own = malloc(nfds * sizeof(*own));
		if (!own) {
			errno = ENOMEM;
			return -1;
		}
	}
	for (i = 0; i < nfds; i++) {
		int rs = pl_get(fds[i].fd);

		own[i] = fds[i];
		if (rs >= 0)
			own[i].fd = rs;
	}
	ret = IN(rpoll(own, nfds, timeout));
	for (i = 0; ret >= 0 && i < nfds; i++)
		fds[i].revents = own[i].revents;
	if (own != few)
		free(own);
	return ret;
}

/*
 * A sleep of librdmacm for ppoll() or pselect(): signals end it that they let through. Their
 * handlers are the program's, which is not inside librdmacm.
 */
static int sleep_inside(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct timespec left = {timeout / 1000, timeout % 1000 * 1000000L};
	const sigset_t *mask = asleep_with;
	unsigned int was = pl_inside;
	int ret;

	asleep_with = NULL;
	pl_inside = 0;
	ret = PL_REAL(ppoll)(fds, nfds, timeout < 0 ? NULL : &left, mask);
	pl_inside = was;
	asleep_with = mask;
	return ret;
}

/*
 * What ppoll() and pselect() return if they have found nothing: a signal that the mask lets through
 * ends them.
 */
static int after_nothing(const sigset_t *mask)
{
	const struct timespec none = {0};

	return mask ? PL_REAL(ppoll)(NULL, 0, &none, mask) : 0;
}

PUBLIC int poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	/*
	 * A look does not sleep: librdmacm may hold locks then, and would not see that a signal
	 * came.
	 */
	if (pl_inside && asleep_with && timeout)
		return sleep_inside(fds, nfds, timeout);
	return pl_inside || !has_rsocket(fds, nfds) ? PL_REAL(poll)(fds, nfds, timeout)
						    : poll_rsockets(fds, nfds, timeout);
}

/* Rounded up; -1: for ever, -2: not a time. */
static int milliseconds(const struct timespec *timeout)
{
	if (!timeout)
		return -1;
	if (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec > 999999999)
		return -2;
	if (timeout->tv_sec >= INT_MAX / 1000)
		return INT_MAX;
	return (int)timeout->tv_sec * 1000 + (int)((timeout->tv_nsec + 999999) / 1000000);
}

PUBLIC int ppoll(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
		 const sigset_t *mask)
{
	int ms = milliseconds(timeout), ret;

	if (pl_inside || ms == -2 || !has_rsocket(fds, nfds))
		return PL_REAL(ppoll)(fds, nfds, timeout, mask);
	asleep_with = mask;
	ret = poll_rsockets(fds, nfds, ms);
	asleep_with = NULL;
	return ret ? ret : after_nothing(mask);
}

/* Between the program's numbers and those of the library. */
static int translate(int nfds, fd_set *from, fd_set *to)
{
	int fd, rs, top = 0;

	FD_ZERO(to);
	for (fd = 0; from && fd < nfds; fd++) {
		if (!FD_ISSET(fd, from))
			continue;
		rs = pl_get(fd);
		if (rs < 0)
			rs = fd;
		if (rs >= FD_SETSIZE)
			return -1;
		FD_SET(rs, to);
		if (rs >= top)
			top = rs + 1;
	}
	return top;
}

static void translate_back(int nfds, fd_set *to, const fd_set *from)
{
	int fd, rs;

	for (fd = 0; to && fd < nfds; fd++) {
		rs = pl_get(fd);
		if (!FD_ISSET(rs < 0 ? fd : rs, from))
			FD_CLR(fd, to);
	}
}

static bool sets_rsocket(int nfds, fd_set *sets[3])
{
	int fd, i;

	for (fd = 0; fd < nfds && fd < FD_SETSIZE; fd++)
		for (i = 0; i < 3; i++)
			if (sets[i] && FD_ISSET(fd, sets[i]) && pl_get(fd) >= 0)
				return nfds <= FD_SETSIZE;
	return false;
}

static int select_rsockets(int nfds, fd_set *theirs[3], struct timeval *timeout)
{
	fd_set ours[3];
	int top = 0, i, n, ret;

	for (i = 0; i < 3; i++) {
		n = translate(nfds, theirs[i], &ours[i]);
		if (n < 0) {
			errno = EINVAL;
			return -1;
		}
		if (n > top)
			top = n;
	}
	ret = IN(rselect(top, &ours[0], &ours[1], &ours[2], timeout));
	for (i = 0; ret >= 0 && i < 3; i++)
		translate_back(nfds, theirs[i], &ours[i]);
	return ret;
}

PUBLIC int select(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
		  struct timeval *timeout)
{
	fd_set *sets[3] = {readfds, writefds, exceptfds};

	return pl_inside || !sets_rsocket(nfds, sets)
		       ? PL_REAL(select)(nfds, readfds, writefds, exceptfds, timeout)
		       : select_rsockets(nfds, sets, timeout);
}

PUBLIC int pselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
		   const struct timespec *timeout, const sigset_t *mask)
{
	fd_set *sets[3] = {readfds, writefds, exceptfds};
	struct timeval left;
	int ret;

	if (pl_inside || milliseconds(timeout) == -2 || !sets_rsocket(nfds, sets))
		return PL_REAL(pselect)(nfds, readfds, writefds, exceptfds, timeout, mask);
	if (timeout)
		left = (struct timeval){timeout->tv_sec, timeout->tv_nsec / 1000};
	asleep_with = mask;
	ret = select_rsockets(nfds, sets, timeout ? &left : NULL);
	asleep_with = NULL;
	return ret ? ret : after_nothing(mask);
}
