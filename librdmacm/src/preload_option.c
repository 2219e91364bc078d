// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Names, options and flags of sockets. What the program has set is kept for a plain socket in the
 * rsocket's place, and taken from one in whose place an rsocket comes.
 */

#define _GNU_SOURCE
/* With it the C library's headers define some of these names, too. */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/rsocket.h>

#include "preload.h"

static const struct {
	int level, name;
} option_names[PL_OPTIONS] = {
	{SOL_SOCKET, SO_REUSEADDR},  {SOL_SOCKET, SO_KEEPALIVE},   {SOL_SOCKET, SO_LINGER},
	{SOL_SOCKET, SO_OOBINLINE},  {SOL_SOCKET, SO_RCVBUF},	   {SOL_SOCKET, SO_SNDBUF},
	{SOL_SOCKET, SO_RCVTIMEO},   {SOL_SOCKET, SO_SNDTIMEO},	   {IPPROTO_TCP, TCP_NODELAY},
	{IPPROTO_TCP, TCP_KEEPIDLE}, {IPPROTO_TCP, TCP_KEEPINTVL}, {IPPROTO_TCP, TCP_KEEPCNT},
	{IPPROTO_IPV6, IPV6_V6ONLY},
};

void pl_keep_option(struct pl_socket *known, int level, int name, const void *value, socklen_t len)
{
	struct pl_option *o;

	for (int i = 0; i < PL_OPTIONS; i++) {
		if (option_names[i].level != level || option_names[i].name != name)
			continue;
		o = &known->options[i];
		o->len = len < sizeof(o->value) ? len : sizeof(o->value);
		memcpy(o->value, value, o->len);
	}
}

void pl_give_options(const struct pl_socket *old, int fd)
{
	for (int i = 0; i < PL_OPTIONS; i++)
		if (old->options[i].len)
			(void)PL_REAL(setsockopt)(fd, option_names[i].level, option_names[i].name,
						  old->options[i].value, old->options[i].len);
}

/* Those that say something of a connection that stands. */
void pl_take_options(int fd, int rs)
{
	struct pl_option o;

	for (int i = 0; i < PL_OPTIONS; i++) {
		if (option_names[i].name == SO_REUSEADDR || option_names[i].name == SO_RCVBUF ||
		    option_names[i].name == SO_SNDBUF || option_names[i].level == IPPROTO_IPV6)
			continue;
		o.len = sizeof(o.value);
		if (!PL_REAL(getsockopt)(fd, option_names[i].level, option_names[i].name, o.value,
					 &o.len))
			(void)IN(rsetsockopt(rs, option_names[i].level, option_names[i].name,
					     o.value, o.len));
	}
}

PUBLIC int getpeername(int fd, struct sockaddr *addr, socklen_t *addrlen)
{
	int rs = pl_get(fd);

	return rs < 0 ? PL_REAL(getpeername)(fd, addr, addrlen)
		      : IN(rgetpeername(rs, addr, addrlen));
}

PUBLIC int getsockname(int fd, struct sockaddr *addr, socklen_t *addrlen)
{
	int rs = pl_get(fd);

	return rs < 0 ? PL_REAL(getsockname)(fd, addr, addrlen)
		      : IN(rgetsockname(rs, addr, addrlen));
}

PUBLIC int setsockopt(int fd, int level, int optname, const void *optval, socklen_t optlen)
{
	struct pl_socket *known = pl_find(fd);
	int ret;

	if (!known)
		return PL_REAL(setsockopt)(fd, level, optname, optval, optlen);
	ret = IN(rsetsockopt(known->rs, level, optname, optval, optlen));
	if (!ret)
		pl_keep_option(known, level, optname, optval, optlen);
	return ret;
}

PUBLIC int getsockopt(int fd, int level, int optname, void *optval, socklen_t *optlen)
{
	struct pl_socket *known = pl_find(fd);
	int rs, ret, saved = errno;

	if (!known)
		return PL_REAL(getsockopt)(fd, level, optname, optval, optlen);
	rs = known->rs;
	ret = IN(rgetsockopt(rs, level, optname, optval, optlen));
	if (!ret && level == SOL_SOCKET && optname == SO_ERROR && *optlen == sizeof(int) &&
	    pl_take_error(known, rs)) {
		*(int *)optval = errno;
		errno = saved;
	}
	return ret;
}

static int control(int fd, int cmd, long arg)
{
	struct pl_socket *known = pl_find(fd);
	int made;

	switch (cmd) {
	case F_GETFL:
	case F_SETFL:
		return IN(rfcntl(known->rs, cmd, arg));
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		made = PL_REAL(fcntl)(fd, cmd, arg);
		if (made < 0 || pl_is_borrowed(known))
			return made;
		made = pl_share(made, known);
		if (made >= 0 && cmd == F_DUPFD_CLOEXEC)
			pl_set_cloexec(made, true);
		return made;
	case F_GETFD:
		/* A process that shares the memory has its own. */
		if (pl_is_borrowed(known))
			return PL_REAL(fcntl)(fd, cmd);
		return pl_cloexec(fd) ? FD_CLOEXEC : 0;
	case F_SETFD:
		if (!pl_is_borrowed(known))
			pl_set_cloexec(fd, arg & FD_CLOEXEC);
		return PL_REAL(fcntl)(fd, cmd, arg);
	default:
		/* Flags of the number itself */
		return PL_REAL(fcntl)(fd, cmd, arg);
	}
}

static int either(int fd, int cmd, long arg)
{
	/* A copy would stay behind when the number becomes an rsocket's. */
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
		(void)pl_use(fd);
	return pl_find(fd) ? control(fd, cmd, arg) : PL_REAL(fcntl)(fd, cmd, arg);
}

PUBLIC int fcntl(int fd, int cmd, ...)
{
	va_list args;
	long arg;

	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	return either(fd, cmd, arg);
}

/* What programs with 64-bit file offsets call. */
PUBLIC int fcntl64(int fd, int cmd, ...)
{
	va_list args;
	long arg;

	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	return either(fd, cmd, arg);
}
