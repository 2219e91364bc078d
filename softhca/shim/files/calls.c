// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The remaining redirected calls: commands, which are write() on a device file, and the RDMA
 * netlink socket; of umad files also read(), readv() and ioctl(), of rdma_cm files read() and
 * readv(), of event files reads of odd sizes; of those that are FIFOs the flags. A context's file
 * answers ENOTTY by itself. Reads and writes are cancellation points, as libc's are, also those
 * that do not wait: a thread may do nothing else, and another one wait for its end.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "softhca/host/sys.h"
#include "softhca/protocol.h"
#include "softhca/shim/attach.h"
#include "command.h"
#include "context.h"
#include "events.h"
#include "softhca/shim/interpose.h"
#include "rdmacm.h"
#include "softhca/shim/sandbox.h"
#include "softhca/shim/memory/still.h"
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

/* Is it open for writing? Where that cannot be asked, it is. */
static bool may_write(int file, int fd, const struct shim_fifo *cm)
{
	int flags;

	if (file != SHIM_UVERBS_FILE)
		return shim_fifo_writes(cm);
	flags = sandbox_told() ? -EPERM : sh_fcntl(fd, F_GETFL, 0);
	return flags < 0 || (flags & O_ACCMODE) != O_RDONLY;
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
	if (file == SHIM_OTHER_FILE)
		return REAL(write)(fd, buf, len);
	pthread_testcancel();
	/* This includes short and odd writes: no write may reach the file itself. */
	RETURN_ERRNO(may_write(file, fd, &cm) ? command(file, fd, ctx, &cm, buf, len) : -EBADF);
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
	pthread_testcancel();
	if (!may_write(file, fd, &cm))
		RETURN_ERRNO(-EBADF);
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

/*
 * A file that read() must not go to: one of umad or rdma_cm, or an event file if the read does not
 * fit its records.
 */
struct reading {
	int is;	       /* enum shim_file */
	size_t record; /* of the event file, or 0 */
	struct shim_fifo fifo;
};

static bool to_read(int fd, size_t len, struct reading *r)
{
	r->record = shim_event_to_read(fd, len);
	if (r->record)
		return true;
	r->is = shim_file_to_read(fd, &r->fifo);
	return r->is != SHIM_OTHER_FILE;
}

static long do_read(int fd, const struct reading *r, void *buf, size_t len)
{
	if (r->record)
		return shim_event_read(fd, r->record, buf, len);
	if (r->is == SHIM_UMAD_FILE)
		return shim_umad_read(fd, &r->fifo, buf, len);
	return shim_cm_read(&r->fifo);
}

/*
 * After read(), with what it has returned and the first byte that it has read: was that such a file
 * after all, which this process has got by dup(), by exec() or from another process? Then the byte
 * stands for a datagram or an event. The daemon has that, and puts back a byte that was taken
 * without a request (kernel/fifo.c). If nothing was read, which is the end of most files, it was
 * such a file only if its daemon has ended.
 */
static bool was_read(int fd, ssize_t n, const void *buf, struct reading *r)
{
	if (likely(n && (n < 0 || *(const unsigned char *)buf != SH_FIFO_BYTE)))
		return false;
	r->record = 0;
	r->is = shim_file_read(fd, &r->fifo);
	return r->is != SHIM_OTHER_FILE;
}

static ssize_t take(int fd, void *buf, size_t len)
{
	struct reading r;
	ssize_t n;

	if (!shim_active())
		return REAL(read)(fd, buf, len);
	if (to_read(fd, len, &r)) {
		pthread_testcancel();
		RETURN_ERRNO(do_read(fd, &r, buf, len));
	}
	n = REAL(read)(fd, buf, len);
	if (!was_read(fd, n, buf, &r))
		return n;
	RETURN_ERRNO(do_read(fd, &r, buf, len));
}

EXPORT ssize_t read(int fd, void *buf, size_t len)
{
	return take(fd, buf, len);
}

/*
 * A device without vectored reads gets one read for each element, up to the first short one. The
 * first element may have been read already.
 */
static ssize_t read_each(int fd, const struct reading *r, const struct iovec *iov, int n)
{
	ssize_t total = 0;

	for (int i = 0; i < n; i++) {
		long done;

		if (!iov[i].iov_len)
			continue;
		done = do_read(fd, r, iov[i].iov_base, iov[i].iov_len);
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

EXPORT ssize_t readv(int fd, const struct iovec *iov, int n)
{
	struct reading r;
	ssize_t total;
	int first = 0;

	if (!shim_active())
		return REAL(readv)(fd, iov, n);
	if (to_read(fd, SIZE_MAX, &r)) {
		pthread_testcancel();
		return read_each(fd, &r, iov, n);
	}
	total = REAL(readv)(fd, iov, n);
	while (total > 0 && !iov[first].iov_len)
		first++;
	if (total < 0 || !was_read(fd, total, total ? iov[first].iov_base : NULL, &r))
		return total;
	return read_each(fd, &r, iov, n);
}

EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t room)
{
	return len > room ? REAL(__read_chk)(fd, buf, len, room) : take(fd, buf, len);
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
	if (unlikely((uint32_t)request == UFFDIO_REGISTER) && still_lend_range(arg)) {
		errno = ENOMEM;
		return -1;
	}
	if (_IOC_TYPE(request) != UMAD_IOCTLS || !shim_active() || !shim_umad_of_fd(fd, &file))
		return REAL(ioctl)(fd, request, arg);
	RETURN_ERRNO(shim_umad_ioctl(&file, request, arg));
}

/* What the program has opened, where its end is open for less. */
static int flags_of(int fd, int flags)
{
	struct shim_fifo file;
	struct stat st;

	if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY || !shim_active() || sandbox_told() ||
	    sh_fstat(fd, &st) < 0)
		return flags;
	if (shim_umad_of_stat(fd, &st, &file) || shim_cm_of_stat(fd, &st, &file))
		flags |= (int)file.mode;
	return flags;
}

#define FCNTL(name)                                                                                \
	EXPORT int name(int fd, int cmd, ...)                                                      \
	{                                                                                          \
		va_list ap;                                                                        \
		void *arg;                                                                         \
		int ret;                                                                           \
                                                                                                   \
		va_start(ap, cmd);                                                                 \
		arg = va_arg(ap, void *);                                                          \
		va_end(ap);                                                                        \
		ret = REAL(name)(fd, cmd, arg);                                                    \
		return cmd == F_GETFL ? flags_of(fd, ret) : ret;                                   \
	}

FCNTL(fcntl)
FCNTL(fcntl64)

EXPORT int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA && shim_active()) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return REAL(socket)(domain, type, protocol);
}
