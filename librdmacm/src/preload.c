// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * librspreload.so: LD_PRELOAD makes the sockets of a program rsockets. Each call that has such a number
 * goes to the rsocket, every other one to the library behind. A thread that is inside librdmacm gets
 * plain sockets, which rsockets use themselves.
 */

#define _GNU_SOURCE
/* With it the C library's headers define some of these names, too. */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "preload.h"

__thread unsigned int pl_inside;
/* Of a thread in ppoll() or pselect(): the signals that its sleep inside librdmacm blocks. */
static __thread const sigset_t *asleep_with;

void *pl_next(void **known, const char *name)
{
	void *f = __atomic_load_n(known, __ATOMIC_RELAXED);

	if (!f) {
		f = dlsym(RTLD_NEXT, name);
		if (!f)
			abort();
		__atomic_store_n(known, f, __ATOMIC_RELAXED);
	}
	return f;
}

/* ---- Connections ---- */

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

/* ---- Data ---- */

bool pl_take_error(struct pl_socket *known, int rs)
{
	int error;

	/* Closed meanwhile, and the structure is another socket's */
	if (known->rs != rs)
		return false;
	error = __atomic_exchange_n(&known->error, 0, __ATOMIC_RELAXED);
	if (error)
		errno = error;
	return error;
}

/* Data come before an error that is kept. */
static ssize_t received(struct pl_socket *known, int rs, ssize_t ret)
{
	return ret <= 0 && pl_take_error(known, rs) ? -1 : ret;
}

PUBLIC ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	struct pl_socket *known = pl_use(fd);
	int rs;

	if (!known)
		return PL_REAL(recv)(fd, buf, len, flags);
	rs = known->rs;
	return received(known, rs, IN(rrecv(rs, buf, len, flags)));
}

PUBLIC ssize_t recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *addr,
			socklen_t *addrlen)
{
	struct pl_socket *known = pl_use(fd);
	int rs;

	if (!known)
		return PL_REAL(recvfrom)(fd, buf, len, flags, addr, addrlen);
	rs = known->rs;
	return received(known, rs, IN(rrecvfrom(rs, buf, len, flags, addr, addrlen)));
}

PUBLIC ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct pl_socket *known = pl_use(fd);
	int rs;

	if (!known)
		return PL_REAL(recvmsg)(fd, msg, flags);
	rs = known->rs;
	return received(known, rs, IN(rrecvmsg(rs, msg, flags)));
}

PUBLIC ssize_t read(int fd, void *buf, size_t count)
{
	struct pl_socket *known = pl_use(fd);
	int rs;

	if (!known)
		return PL_REAL(read)(fd, buf, count);
	rs = known->rs;
	return received(known, rs, IN(rread(rs, buf, count)));
}

PUBLIC ssize_t readv(int fd, const struct iovec *iov, int iovcnt)
{
	struct pl_socket *known = pl_use(fd);
	int rs;

	if (!known)
		return PL_REAL(readv)(fd, iov, iovcnt);
	rs = known->rs;
	return received(known, rs, IN(rreadv(rs, iov, iovcnt)));
}

PUBLIC ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	struct pl_socket *known = pl_use(fd);
	int rs;

	if (!known)
		return PL_REAL(send)(fd, buf, len, flags);
	rs = known->rs;
	return pl_take_error(known, rs) ? -1 : IN(rsend(rs, buf, len, flags));
}

PUBLIC ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr,
		      socklen_t addrlen)
{
	struct pl_socket *known = pl_use(fd);
	int rs;

	if (!known)
		return PL_REAL(sendto)(fd, buf, len, flags, addr, addrlen);
	rs = known->rs;
	return pl_take_error(known, rs) ? -1 : IN(rsendto(rs, buf, len, flags, addr, addrlen));
}

PUBLIC ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct pl_socket *known = pl_use(fd);
	int rs;

	if (!known)
		return PL_REAL(sendmsg)(fd, msg, flags);
	rs = known->rs;
	return pl_take_error(known, rs) ? -1 : IN(rsendmsg(rs, msg, flags));
}

PUBLIC ssize_t write(int fd, const void *buf, size_t count)
{
	struct pl_socket *known = pl_use(fd);
	int rs;

	if (!known)
		return PL_REAL(write)(fd, buf, count);
	rs = known->rs;
	return pl_take_error(known, rs) ? -1 : IN(rwrite(rs, buf, count));
}

PUBLIC ssize_t writev(int fd, const struct iovec *iov, int iovcnt)
{
	struct pl_socket *known = pl_use(fd);
	int rs;

	if (!known)
		return PL_REAL(writev)(fd, iov, iovcnt);
	rs = known->rs;
	return pl_take_error(known, rs) ? -1 : IN(rwritev(rs, iov, iovcnt));
}

enum { FILE_PIECE = 1 << 16 };

/*
 * Reads the file and does not map it: the file may become shorter meanwhile, and to touch a page
 * that it no longer has would end the program. As with the system's call, what could be read has
 * been sent then.
 */
static ssize_t copy_file(int rs, int in_fd, off64_t at, size_t count)
{
	uint8_t *data = malloc(FILE_PIECE);
	ssize_t got, ret = 0;
	size_t done = 0;

	if (!data) {
		errno = ENOMEM;
		return -1;
	}
	while (done < count) {
		got = pread64(in_fd, data, count - done < FILE_PIECE ? count - done : FILE_PIECE,
			      at + (off64_t)done);
		ret = got > 0 ? IN(rwrite(rs, data, (size_t)got)) : got;
		if (ret <= 0)
			break;
		done += (size_t)ret;
		if (ret < got)
			break;
	}
	free(data);
	return ret < 0 && !done ? -1 : (ssize_t)done;
}

static ssize_t send_file(int rs, int in_fd, off64_t *offset, size_t count)
{
	off64_t at = offset ? *offset : lseek64(in_fd, 0, SEEK_CUR);
	ssize_t ret = -1;

	if (at >= 0)
		ret = copy_file(rs, in_fd, at, count);
	/* As the system says of pipes and sockets. */
	if (ret < 0 && errno == ESPIPE)
		errno = EINVAL;
	if (ret > 0 && offset)
		*offset = at + ret;
	else if (ret > 0)
		lseek64(in_fd, at + ret, SEEK_SET);
	return ret;
}

PUBLIC ssize_t sendfile(int out_fd, int in_fd, off_t *offset, size_t count)
{
	off64_t at = offset ? *offset : 0;
	const struct pl_socket *known = pl_use(out_fd);
	ssize_t ret;

	if (!known)
		return PL_REAL(sendfile)(out_fd, in_fd, offset, count);
	ret = send_file(known->rs, in_fd, offset ? &at : NULL, count);
	if (ret > 0 && offset)
		*offset = (off_t)at;
	return ret;
}

/* What programs with 64-bit file offsets call. */
PUBLIC ssize_t sendfile64(int out_fd, int in_fd, off64_t *offset, size_t count)
{
	const struct pl_socket *known = pl_use(out_fd);

	return known ? send_file(known->rs, in_fd, offset, count)
		     : PL_REAL(sendfile64)(out_fd, in_fd, offset, count);
}

/* ---- Waiting ---- */

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
 * A sleep of librdmacm for ppoll() or pselect(): signals end it that they let through. Their handlers
 * are the program's, which is not inside librdmacm.
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
	/* A look does not sleep: librdmacm may hold locks then, and would not see that a signal came. */
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

/* ---- Names and options ---- */

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

PUBLIC int fcntl(int fd, int cmd, ...)
{
	va_list args;
	long arg;

	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	/* A copy would stay behind when the number becomes an rsocket's. */
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
		(void)pl_use(fd);
	return pl_find(fd) ? control(fd, cmd, arg) : PL_REAL(fcntl)(fd, cmd, arg);
}

/* What programs with 64-bit file offsets call. */
PUBLIC int fcntl64(int fd, int cmd, ...)
{
	va_list args;
	long arg;

	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	/* A copy would stay behind when the number becomes an rsocket's. */
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
		(void)pl_use(fd);
	return pl_find(fd) ? control(fd, cmd, arg) : PL_REAL(fcntl)(fd, cmd, arg);
}
