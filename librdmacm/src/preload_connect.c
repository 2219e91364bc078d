// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections of rsockets, and those that have to be plain sockets: where the peer cannot be
 * reached by RDMA.
 */

#define _GNU_SOURCE
/* With it the C library's headers define some of these names, too. */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "preload.h"

PUBLIC int bind(int fd, const struct sockaddr *addr, socklen_t addrlen)
{
	struct pl_socket *known = pl_find(fd);
	socklen_t len = sizeof(known->bound);
	int ret;

	if (!known)
		return PL_REAL(bind)(fd, addr, addrlen);
	ret = IN(rbind(known->rs, addr, addrlen));
	/* With the port that it was given. */
	if (!ret && !IN(rgetsockname(known->rs, (struct sockaddr *)&known->bound, &len)))
		known->bound_len = len;
	return ret;
}

PUBLIC int listen(int fd, int backlog)
{
	int rs = pl_get(fd), ret;

	if (rs >= 0)
		return IN(rlisten(rs, backlog));
	ret = PL_REAL(listen)(fd, backlog);
	if (!ret)
		pl_fork_listens(fd);
	return ret;
}

PUBLIC int accept(int fd, struct sockaddr *addr, socklen_t *addrlen)
{
	struct pl_socket *listener = pl_find(fd);
	int rs;

	if (!listener) {
		rs = PL_REAL(accept)(fd, addr, addrlen);
		pl_fork_accepted(fd, rs);
		return rs;
	}
	rs = IN(raccept(listener->rs, addr, addrlen));
	return rs < 0 ? rs : pl_make(rs, listener->domain, listener->type, listener->protocol);
}

PUBLIC int accept4(int fd, struct sockaddr *addr, socklen_t *addrlen, int flags)
{
	struct pl_socket *listener = pl_find(fd);
	int rs, made;

	if (!listener) {
		made = PL_REAL(accept4)(fd, addr, addrlen, flags);
		pl_fork_accepted(fd, made);
		return made;
	}
	if (flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) {
		errno = EINVAL;
		return -1;
	}
	rs = IN(raccept(listener->rs, addr, addrlen));
	if (rs < 0)
		return rs;
	(void)IN(rfcntl(rs, F_SETFL, flags & SOCK_NONBLOCK ? O_NONBLOCK : 0));
	made = pl_make(rs, listener->domain, listener->type, listener->protocol);
	if (made >= 0 && flags & SOCK_CLOEXEC)
		pl_set_cloexec(made, true);
	return made;
}

/* ---- Sockets that become plain ones ---- */

/* What the program has set stays. */
static int plain_like(const struct pl_socket *old)
{
	int flags = IN(rfcntl(old->rs, F_GETFL));
	int fd = PL_REAL(socket)(old->domain, old->type | (flags & O_NONBLOCK), old->protocol);

	if (fd < 0)
		return -1;
	pl_give_options(old, fd);
	if (old->bound_len &&
	    PL_REAL(bind)(fd, (const struct sockaddr *)&old->bound, old->bound_len)) {
		PL_REAL(close)(fd);
		return -1;
	}
	return fd;
}

/* The peer cannot be reached by RDMA: makes the number a plain socket's. */
static int become_plain(int fd, const struct pl_socket *old)
{
	bool cloexec = pl_cloexec(fd);
	int plain;

	if (old->refs > 1)
		return -1;
	plain = plain_like(old);
	if (plain < 0)
		return -1;
	pl_forget(fd);
	if (PL_REAL(dup3)(plain, fd, cloexec ? O_CLOEXEC : 0) < 0) {
		PL_REAL(close)(plain);
		return -1;
	}
	PL_REAL(close)(plain);
	return 0;
}

PUBLIC int connect(int fd, const struct sockaddr *addr, socklen_t addrlen)
{
	struct pl_socket *known = pl_find(fd);
	int ret, saved;

	if (!known) {
		ret = PL_REAL(connect)(fd, addr, addrlen);
		if (!ret || errno == EINPROGRESS || errno == EINTR)
			pl_fork_connects(fd);
		return ret;
	}
	__atomic_store_n(&known->error, 0, __ATOMIC_RELAXED);
	ret = IN(rconnect(known->rs, addr, addrlen));
	saved = errno;
	if (ret && known->type == SOCK_STREAM &&
	    (saved == ENODEV || saved == ENETUNREACH || saved == EHOSTUNREACH ||
	     saved == EADDRNOTAVAIL || saved == ECONNREFUSED || saved == ETIMEDOUT) &&
	    !become_plain(fd, known))
		return PL_REAL(connect)(fd, addr, addrlen);
	errno = saved;
	return ret;
}

PUBLIC int shutdown(int fd, int how)
{
	int rs = pl_get(fd);

	return rs < 0 ? PL_REAL(shutdown)(fd, how) : IN(rshutdown(rs, how));
}
