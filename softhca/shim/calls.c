// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The remaining redirected calls: commands, which are write() on a device file, and the RDMA
 * netlink socket. ioctl() needs no redirection: a context's file answers ENOTTY by itself.
 */
#include <sys/socket.h>
#include <sys/uio.h>

#include "attach.h"
#include "command.h"
#include "context.h"
#include "interpose.h"

#define NETLINK_RDMA 20

EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
	struct shim_ctx *ctx;

	/* This includes short and odd writes: no write may reach the file itself. */
	if (shim_active() && (ctx = shim_ctx_of_fd(fd)))
		RETURN_ERRNO(shim_command(ctx, buf, len));
	return REAL(write)(fd, buf, len);
}

/* A device without vectored writes gets one write for each element. */
EXPORT ssize_t writev(int fd, const struct iovec *iov, int n)
{
	struct shim_ctx *ctx;
	ssize_t total = 0;

	if (!shim_active() || !(ctx = shim_ctx_of_fd(fd)))
		return REAL(writev)(fd, iov, n);
	for (int i = 0; i < n; i++) {
		long done = shim_command(ctx, iov[i].iov_base, iov[i].iov_len);

		if (done < 0 && total)
			break;
		if (done < 0)
			RETURN_ERRNO(done);
		total += done;
	}
	return total;
}

EXPORT int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA && shim_active()) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return REAL(socket)(domain, type, protocol);
}
