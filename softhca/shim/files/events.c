// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reads of completion channels and async files that do not ask for one record. A descriptor that
 * was duplicated, inherited over exec or passed is not noted: its reads go to the FIFO.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "softhca/device/memory/dev.h"
#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "events.h"
#include "softhca/shim/interpose.h"
#include "fifo.h"
#include "softhca/shim/sandbox.h"

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

/*
 * As a kernel does, waits for a record, and leaves it there: a read() to memory that cannot be
 * written takes nothing from the FIFO. It knows O_NONBLOCK and the FIFO's end, and after a signal
 * it goes on if the handler has SA_RESTART, which poll() never does. It takes no descriptors, which
 * the program would see, and might close.
 */
static long too_short(int fd)
{
	static const char read_only[1];
	ssize_t n = REAL(read)(fd, (void *)(uintptr_t)read_only, 1);

	if (n < 0)
		return errno == EFAULT ? -EINVAL : -errno;
	return n;
}

long shim_event_read(int fd, size_t record, void *buf, size_t len)
{
	ssize_t n;

	if (len < record)
		return too_short(fd);
	n = REAL(read)(fd, buf, record);
	return n < 0 ? -errno : n;
}
