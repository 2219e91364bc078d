// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * unshare(), setns() and close_range(CLOSE_RANGE_UNSHARE): calls by which a process parts with what
 * its threads share. The kernel refuses some of them beside another thread. Others it carries out
 * for the caller alone: softhca's helper would go on with descriptors and directories that the
 * program has left. So the helper of a program without threads ends before such a call, and a new
 * one starts after it. Timers wait meanwhile. Handlers do too: one that needed the helper would
 * start it.
 */
#include <errno.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "softhca/host/process.h"
#include "alone.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/files/closing.h"
#include "softhca/shim/interpose.h"

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* Afterwards the process can create no thread, so these come when the helper runs again. */
#define NO_THREADS (CLONE_NEWPID | CLONE_NEWTIME)

/*
 * The process that has made such a call: its helper would not come back, and stays. Its children
 * are in the new namespace, and can create threads.
 */
static pid_t threadless;

/* Whether the helper has been ended; *mask is for after(). */
static bool before(uint64_t *mask)
{
	uint64_t all = ~UINT64_C(0);

	/* Its own child by vfork() has none, but this memory. */
	if (!shim_active() || !sh_process_threads() || sh_process.pid != getpid() ||
	    threadless == getpid() || !alone())
		return false;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, mask, sizeof(all));
	sh_process_stop();
	/* The kernel counts it for a moment longer. */
	(void)alone();
	return true;
}

static void after(const uint64_t *mask)
{
	int saved = errno;

	/* Where no thread is to be had, the first timer tries again. */
	(void)sh_process_helper();
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, mask, NULL, sizeof(*mask));
	errno = saved;
}

/* Remembers a call that has succeeded. Returns what it returned. */
static int parted(int ret, int flags)
{
	if (!ret && flags & NO_THREADS)
		threadless = getpid();
	return ret;
}

EXPORT int unshare(int flags)
{
	uint64_t mask;
	int ret;

	if (!(flags & ~NO_THREADS) || !before(&mask))
		return parted(REAL(unshare)(flags), flags);
	ret = REAL(unshare)(flags & ~NO_THREADS);
	after(&mask);
	return ret || !(flags & NO_THREADS) ? ret
					    : parted(REAL(unshare)(flags & NO_THREADS), flags);
}

EXPORT int setns(int fd, int type)
{
	uint64_t mask;
	int types = type ? type : ioctl(fd, NS_GET_NSTYPE), ret;
	bool ended = types > 0 && !(types & NO_THREADS) && before(&mask);

	ret = REAL(setns)(fd, type);

	if (ended)
		after(&mask);
	return types > 0 ? parted(ret, types) : ret;
}

/* The C library has it since 2.34. */
EXPORT int close_range(unsigned int first, unsigned int last, int flags);
EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
	uint64_t mask;
	bool ended = flags & (int)CLOSE_RANGE_UNSHARE && before(&mask);
	int ret = closing_range(first, last, flags);

	if (ended)
		after(&mask);
	return ret;
}
