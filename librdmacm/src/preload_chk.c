// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The other names under which programs call what preload_data.c and preload_poll.c stand before. A
 * program compiled with _FORTIFY_SOURCE calls them where the compiler knows the size of the buffer,
 * but not how much of it the call may use. They check that, as the C library's do, and call the
 * plain name.
 */

#define _GNU_SOURCE
/* With it the C library's headers define some of these names, too. */
#undef _FORTIFY_SOURCE
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "preload.h"

/* The C library's: ends the program, and says why. */
void __chk_fail(void) __attribute__((noreturn));

PUBLIC ssize_t __read_chk(int fd, void *buf, size_t count, size_t room)
{
	if (count > room)
		__chk_fail();
	return read(fd, buf, count);
}

PUBLIC ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags)
{
	if (len > room)
		__chk_fail();
	return recv(fd, buf, len, flags);
}

PUBLIC ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags,
			      struct sockaddr *addr, socklen_t *addrlen)
{
	if (len > room)
		__chk_fail();
	return recvfrom(fd, buf, len, flags, addr, addrlen);
}

PUBLIC int __poll_chk(struct pollfd *fds, nfds_t nfds, int timeout, size_t room)
{
	if (room / sizeof(*fds) < nfds)
		__chk_fail();
	return poll(fds, nfds, timeout);
}

PUBLIC int __ppoll_chk(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
		       const sigset_t *mask, size_t room)
{
	if (room / sizeof(*fds) < nfds)
		__chk_fail();
	return ppoll(fds, nfds, timeout, mask);
}
