// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * madvise() and its like: what is said of device memory means what it means for private memory.
 * What a fork or an exchange of pages is to keep is noted (marks.h).
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "softhca/host/descriptors.h"
#include "softhca/host/far.h"
#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"
#include "softhca/shim/signals/handlers.h"
#include "fork.h"
#include "mapcalls.h"
#include "marks.h"
#include "memory.h"
#include "share.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef PIDFD_SELF_THREAD /* of Linux 6.15 */
#define PIDFD_SELF_THREAD	-10000
#define PIDFD_SELF_THREAD_GROUP -20000
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

/*
 * Does this kernel know guards, in memory of that kind? It does in private memory since Linux 6.13,
 * and in shared memory since 6.15.
 */
static bool knows_guards(int kind)
{
	bool knows = false;
	int err;
	void *page =
		sh_mmap(NULL, SHIM_PAGE, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0, &err);

	if (page) {
		knows = !sh_madvise((uintptr_t)page, SHIM_PAGE, MADV_GUARD_INSTALL);
		sh_munmap(page, SHIM_PAGE);
	}
	return knows;
}

/*
 * Guards take contents away, so they are for private pages that are not exchanged back. Nothing is
 * taken away if the kernel refuses the guards.
 */
static int before_guards(void *addr, size_t len)
{
	if (knows_guards(MAP_SHARED)) {
		if (REAL(madvise)(addr, len, MADV_GUARD_INSTALL))
			return 0;
	} else if (!knows_guards(MAP_PRIVATE)) {
		return 0;
	}
	return mapcall_renew(addr, len);
}

/* Is that advice one that joins or divides mappings of a region, with no other effect on it? */
static bool is_order(int advice)
{
	return advice == MADV_NORMAL || advice == MADV_RANDOM || advice == MADV_SEQUENTIAL;
}

/* The kernel has been given that advice, and has answered with that errno, or 0. */
static void advised(void *addr, size_t len, int advice, int err)
{
	if (!err)
		marks_advised((uintptr_t)addr, len, advice);
	else if (err == ENOMEM || err == EAGAIN)
		marks_maybe_advised((uintptr_t)addr, len, advice);
	if (is_order(advice) && mapcall_begin(addr, len)) {
		shim_share_split((uintptr_t)addr, mapcall_whole(len));
		shim_control_put();
	}
}

/*
 * What a child gets is listed before a fork, and the kernel told, by advice of this kind too. So it
 * does not change until the child is made.
 */
static int advise_of_forks(void *addr, size_t len, int advice)
{
	int err, saved;

	/* A handler that jumped away would keep every later fork waiting. */
	shim_handlers_wait();
	shim_fork_hold_off();
	err = REAL(madvise)(addr, len, advice);
	saved = errno;
	advised(addr, len, advice, err ? saved : 0);
	shim_fork_let();
	shim_handlers_go_on();
	errno = saved;
	return err;
}

EXPORT int madvise(void *addr, size_t len, int advice)
{
	int err = 0, before = errno, saved;

	switch (advice) {
	case MADV_DONTFORK:
	case MADV_DOFORK:
		if (shim_active() && shim_dev.inst)
			return shim_kept(advise_of_forks(addr, len, advice), before);
		break;
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_FREE:
		if ((uintptr_t)addr % SHIM_PAGE == 0 && mapcall_begin(addr, len)) {
			err = advice != MADV_DONTNEED_LOCKED && mapcall_refused(addr, len)
				      ? -EINVAL
				      : mapcall_renew(addr, len);
			shim_control_put();
		}
		break;
	case MADV_GUARD_INSTALL:
		if ((uintptr_t)addr % SHIM_PAGE == 0 && mapcall_begin(addr, len)) {
			err = before_guards(addr, len);
			shim_control_put();
		}
		break;
	case MADV_WIPEONFORK:
		if (mapcall_begin(addr, len)) {
			err = shim_privatize((uintptr_t)addr, len);
			shim_control_put();
		}
		break;
	case MADV_DONTDUMP:
	case MADV_HUGEPAGE:
	case MADV_NOHUGEPAGE:
	case MADV_MERGEABLE:
		/* Beside threads the pages stay shared, and have the attribute then as well. */
		if (mapcall_begin(addr, len)) {
			(void)shim_privatize((uintptr_t)addr, len);
			shim_control_put();
		}
		break;
	case MADV_REMOVE: /* to the caller this is private memory, which the call refuses */
		if (mapcall_begin(addr, len)) {
			err = -EINVAL;
			shim_control_put();
		}
		break;
	}
	if (err)
		RETURN_ERRNO(err == -EINVAL ? err : -ENOMEM);
	err = REAL(madvise)(addr, len, advice);
	saved = errno;
	advised(addr, len, advice, err ? saved : 0);
	errno = saved;
	return shim_kept(err, before);
}

/* POSIX_MADV_DONTNEED leaves contents alone: the C library makes no call of it. */
EXPORT int posix_madvise(void *addr, size_t len, int advice)
{
	int saved = errno, err = REAL(posix_madvise)(addr, len, advice);

	if (is_order(advice))
		advised(addr, len, advice, err);
	errno = saved;
	return err;
}

_Static_assert(POSIX_MADV_NORMAL == MADV_NORMAL && POSIX_MADV_RANDOM == MADV_RANDOM &&
		       POSIX_MADV_SEQUENTIAL == MADV_SEQUENTIAL,
	       "for is_order() and the marks");

/* Is that a descriptor of this process, or one of the constants that mean this process? */
static bool is_this_process(int pidfd)
{
	char path[64], text[512];
	const char *pid;
	long got;
	int fd;

	if (pidfd < 0)
		return pidfd == PIDFD_SELF_THREAD || pidfd == PIDFD_SELF_THREAD_GROUP;
	snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%d", pidfd);
	fd = sh_open_own(path, O_RDONLY);
	if (fd < 0)
		return false;
	got = sh_read(fd, text, sizeof(text) - 1);
	sh_close(fd);
	text[got > 0 ? got : 0] = '\0';
	pid = strstr(text, "Pid:");
	return pid && atoi(pid + strlen("Pid:")) == getpid();
}

/* The kernel reads the whole array first. */
static bool readable(const struct iovec *iov, size_t n)
{
	struct iovec part[16];

	for (size_t i = 0, some; i < n; i += some) {
		some = n - i < 16 ? n - i : 16;
		if (sh_peek(part, (uintptr_t)&iov[i], some * sizeof(part[0])))
			return false;
	}
	return true;
}

/* Of glibc 2.36. */
ssize_t process_madvise(int pidfd, const struct iovec *iov, size_t n, int advice,
			unsigned int flags);
EXPORT ssize_t process_madvise(int pidfd, const struct iovec *iov, size_t n, int advice,
			       unsigned int flags)
{
	int before = errno;
	ssize_t done = 0;

	if (!REAL(process_madvise))
		RETURN_ERRNO(-ENOSYS);
	/* What the kernel refuses with nothing to do it refuses altogether. */
	if (!shim_shares_any() || !n || n > IOV_MAX || !is_this_process(pidfd) ||
	    REAL(process_madvise)(pidfd, iov, 0, advice, flags) < 0 || !readable(iov, n))
		return REAL(process_madvise)(pidfd, iov, n, advice, flags);
	for (size_t i = 0; i < n; i++) {
		if (madvise(iov[i].iov_base, iov[i].iov_len, advice)) {
			if (!done)
				return -1;
			break;
		}
		done += (ssize_t)iov[i].iov_len;
	}
	errno = before;
	return done;
}
