// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Calls that send or receive data, from files, too; and the error that the next one is to have.
 */

#define _GNU_SOURCE
/* With it the C library's headers define some of these names, too. */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "preload.h"

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
