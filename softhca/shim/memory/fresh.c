// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Exchanges pages that were never touched, beside other threads. Such pages have no contents to
 * lose, the kernel has not pinned them, and no thread sleeps on a word in them: each of these would
 * have made the page present. What remains is to be certain that no page becomes present during the
 * exchange. A userfaultfd for missing pages gives that certainty. fresh_run() registers the range
 * with it and then looks at the page map. From the registration on each fault, of a system call or
 * of another process, too, waits until the descriptor is closed, and then finds what is mapped
 * there now.
 *
 * Without the privilege a userfaultfd holds off user code only, and a read() into the range would
 * fail. So it is not used then.
 */
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include "softhca/host/descriptors.h"
#include "softhca/host/sys.h"
#include "fresh.h"
#include "maps.h"
#include "memory.h"
#include "softhca/shim/sandbox.h"
#include "still.h"

#define SOFT_DIRTY (UINT64_C(1) << 55) /* of the page map: may be set for an absent page */

/* Of Linux 6.1: the headers may be older than the kernel. */
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

/* From the file, which only root can open by default, where the system call may end the program. */
static int uffd_by_file(void)
{
	int dev = sh_open_own("/dev/userfaultfd", O_RDWR), fd;

	if (dev < 0)
		return dev;
	fd = sh_sys(syscall(SYS_ioctl, dev, USERFAULTFD_IOC_NEW, (long)(O_CLOEXEC | O_NONBLOCK)));
	sh_close(dev);
	return fd;
}

static int open_uffd(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd;

	sh_section_begin();
	fd = sandboxed() ? uffd_by_file()
			 : (int)sh_sys(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
	if (fd >= 0)
		fd = sh_fd_high(fd);
	sh_section_end();
	if (fd >= 0 && sh_sys(syscall(SYS_ioctl, fd, UFFDIO_API, &api)) < 0) {
		sh_close(fd);
		return -ENOSYS;
	}
	return fd;
}

/* No page of the range is present, on the swap device, or marked in any other way. */
static bool untouched(uint64_t addr, uint64_t len)
{
	uint64_t entry[PAGEMAP_MOST];
	int fd = pagemap_open();
	bool none = fd >= 0;

	while (none && len) {
		size_t n = pagemap_read(fd, addr, len, entry);

		none = n > 0;
		for (size_t i = 0; none && i < n; i++)
			none = !(entry[i] & ~SOFT_DIRTY);
		addr += n * SHIM_PAGE;
		len -= n * SHIM_PAGE;
	}
	if (fd >= 0)
		sh_close(fd);
	return none;
}

bool fresh_likely(uint64_t addr, uint64_t len)
{
	static int may = -1;

	if (may < 0) {
		int fd = open_uffd();

		may = fd >= 0;
		if (fd >= 0)
			sh_close(fd);
	}
	return may && untouched(addr, len);
}

static struct {
	uint64_t addr, len;
	int (*fn)(void);
} job;

static int run(void *arg)
{
	struct uffdio_register reg = {
		.range = {job.addr, job.len},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = open_uffd(), err = -EBUSY;

	(void)arg;
	if (fd < 0)
		return -EBUSY;
	if (sh_sys(syscall(SYS_ioctl, fd, UFFDIO_REGISTER, &reg)) == 0 &&
	    untouched(job.addr, job.len))
		err = job.fn();
	sh_close(fd);
	return err;
}

int fresh_run(uint64_t addr, uint64_t len, int (*fn)(void))
{
	job.addr = addr;
	job.len = len;
	job.fn = fn;
	/* The caller's own stack may be about to grow into the range. */
	return still_on_own_stack(run, NULL);
}
