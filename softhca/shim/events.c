// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reads of completion channels and async files that do not ask for one record. A descriptor that
 * was duplicated, inherited over exec or passed is not noted: its reads go to the FIFO.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "softhca/device/memory/dev.h"
#include "softhca/host/sys.h"
#include "attach.h"
#include "events.h"
#include "interpose.h"
#include "fifo.h"
#include "sandbox.h"

uint64_t shim_event_fds[2][SHIM_EVENT_FDS / 64];

static void note(int fd, int of16, int is)
{
	uint64_t bit = UINT64_C(1) << (fd % 64);

	if (is)
		__atomic_fetch_or(&shim_event_fds[of16][fd / 64], bit, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&shim_event_fds[of16][fd / 64], ~bit, __ATOMIC_RELAXED);
}

/* The number of the event queue, or 0. */
static uint32_t queue_of(int fd)
{
	struct shim_fifo name = {0};
	struct stat st;

	return sh_fstat(fd, &st) >= 0 && shim_fifo_of_stat(fd, &st, "events", &name) ? name.index
										     : 0;
}

/* Device memory is there: the command has made the queue. */
void shim_event_note(int fd)
{
	const struct sh_evq *q;

	/* A program that has confined itself may not be allowed the calls that tell. */
	if (fd < 0 || fd >= SHIM_EVENT_FDS || sandbox_told())
		return;
	q = sh_evq(&shim_dev, queue_of(fd));
	note(fd, 0, q && q->record_size == 8);
	note(fd, 1, q && q->record_size == 16);
}

size_t shim_event_of_fd(int fd, int of16)
{
	if (sandbox_told())
		return 0;
	if (queue_of(fd))
		return of16 ? 16 : 8;
	/* It was closed, and the number is another file's. */
	note(fd, of16, 0);
	return 0;
}

static void close_ends(void *ends)
{
	sh_close(((int *)ends)[0]);
	sh_close(((int *)ends)[1]);
}

/*
 * Waits until the FIFO has something: 1, 0 at its end, or -errno. After a signal poll() never goes on, and a read()
 * does if the handler has SA_RESTART. So does tee(), which takes nothing away.
 */
static long wait_for_record(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int ends[2];
	long n;

	if (sh_sys(syscall(SYS_pipe2, ends, O_CLOEXEC)) < 0)
		return poll(&p, 1, -1) < 0 ? -errno : !!(p.revents & POLLIN);
	pthread_cleanup_push(close_ends, ends);
	n = tee(fd, ends[1], 1, 0);
	if (n < 0)
		n = -errno;
	pthread_cleanup_pop(1);
	return n;
}

/* As a kernel does, waits for a record, and leaves it there. */
static long too_short(int fd)
{
	long n;

	struct pollfd p = {.fd = fd, .events = POLLIN};
	long flags = sh_fcntl(fd, F_GETFL, 0);

	if (flags < 0)
		return flags;
	if (!(flags & O_NONBLOCK)) {
		n = wait_for_record(fd);
		return n > 0 ? -EINVAL : n;
	}
	if (poll(&p, 1, 0) < 0)
		return -errno;
	if (p.revents & POLLIN)
		return -EINVAL;
	return p.revents ? 0 : -EAGAIN;
}

long shim_event_read(int fd, size_t record, void *buf, size_t len)
{
	ssize_t n;

	if (len < record)
		return too_short(fd);
	n = REAL(read)(fd, buf, record);
	return n < 0 ? -errno : n;
}
