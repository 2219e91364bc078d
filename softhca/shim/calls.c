// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The remaining redirected calls: commands, which are write() on a device file, and the RDMA
 * netlink socket; of umad files also read(), readv() and ioctl(). A context's file answers ENOTTY by itself.
 */
#include <linux/userfaultfd.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "attach.h"
#include "command.h"
#include "context.h"
#include "interpose.h"
#include "rdmacm.h"
#include "still.h"
#include "umad.h"

#define NETLINK_RDMA 20

static long command(int file, int fd, struct shim_ctx *ctx, const struct shim_fifo *cm,
		    const void *buf, size_t len)
{
	if (file == SHIM_UMAD_FILE)
		return shim_umad_write(cm, buf, len);
	return file == SHIM_UVERBS_FILE ? shim_command(ctx, buf, len)
					: shim_cm_write(fd, cm, buf, len);
}

EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
	struct shim_ctx *ctx = NULL;
	struct shim_fifo cm = {0};
	int file;

	if (!shim_active())
		return REAL(write)(fd, buf, len);
	file = shim_file_to_write(fd, &ctx, &cm);
	if (file < 0)
		RETURN_ERRNO(file);
	/* This includes short and odd writes: no write may reach the file itself. */
	if (file != SHIM_OTHER_FILE)
		RETURN_ERRNO(command(file, fd, ctx, &cm, buf, len));
	return REAL(write)(fd, buf, len);
}

/* A device without vectored writes gets one write for each element. */
EXPORT ssize_t writev(int fd, const struct iovec *iov, int n)
{
	struct shim_ctx *ctx = NULL;
	struct shim_fifo cm = {0};
	ssize_t total = 0;
	int file;

	if (!shim_active())
		return REAL(writev)(fd, iov, n);
	file = shim_file_to_write(fd, &ctx, &cm);
	if (file < 0)
		RETURN_ERRNO(file);
	if (file == SHIM_OTHER_FILE)
		return REAL(writev)(fd, iov, n);
	for (int i = 0; i < n; i++) {
		long done = command(file, fd, ctx, &cm, iov[i].iov_base, iov[i].iov_len);

		if (done < 0 && total)
			break;
		if (done < 0)
			RETURN_ERRNO(done);
		total += done;
	}
	return total;
}

EXPORT ssize_t read(int fd, void *buf, size_t len)
{
	struct shim_fifo file;

	if (!shim_active() || !shim_umad_to_read(fd, &file))
		return REAL(read)(fd, buf, len);
	RETURN_ERRNO(shim_umad_read(fd, &file, buf, len));
}

/* A device without vectored reads gets one read for each element, up to the first short one. */
EXPORT ssize_t readv(int fd, const struct iovec *iov, int n)
{
	struct shim_fifo file;
	ssize_t total = 0;

	if (!shim_active() || !shim_umad_to_read(fd, &file))
		return REAL(readv)(fd, iov, n);
	for (int i = 0; i < n; i++) {
		long done;

		if (!iov[i].iov_len)
			continue;
		done = shim_umad_read(fd, &file, iov[i].iov_base, iov[i].iov_len);
		if (done < 0 && total)
			break;
		if (done < 0)
			RETURN_ERRNO(done);
		total += done;
		if ((size_t)done < iov[i].iov_len)
			break;
	}
	return total;
}

EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t room)
{
	struct shim_fifo file;

	if (len > room || !shim_active() || !shim_umad_to_read(fd, &file))
		return REAL(__read_chk)(fd, buf, len, room);
	RETURN_ERRNO(shim_umad_read(fd, &file, buf, len));
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct shim_fifo file;
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	/*
	 * A page that is not present there does not hold zeroes: the process that reads the
	 * descriptor fills it, and could not if the mapping were exchanged.
	 */
	if (unlikely((uint32_t)request == UFFDIO_REGISTER))
		still_lend();
	if (_IOC_TYPE(request) != UMAD_IOCTLS || !shim_active() || !shim_umad_of_fd(fd, &file))
		return REAL(ioctl)(fd, request, arg);
	RETURN_ERRNO(shim_umad_ioctl(&file, request, arg));
}

EXPORT int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA && shim_active()) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return REAL(socket)(domain, type, protocol);
}
