// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Calls that take descriptors away. Programs close all that they do not know, and other threads may
 * be using the device meanwhile. To such a program a descriptor of this library is no open file:
 * it stays, and close() says EBADF. dup2() to its number succeeds, and this library goes on under
 * another one.
 */
#include <limits.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "softhca/host/descriptors.h"
#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "closing.h"
#include "softhca/shim/interpose.h"
#include "softhca/shim/sandbox.h"

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

#define NOWHERE UINT_MAX /* no descriptor has that number */
#define TURNS	300	 /* of sh_give_way(): some 20 ms */

static bool is_own(int fd)
{
	return fd >= 0 && sh_number_own_from((unsigned int)fd) == fd;
}

EXPORT int close(int fd)
{
	int before = errno;
	bool theirs;

	if (!shim_active())
		return REAL(close)(fd);
	/* A program that has confined itself may not be allowed to ask whether a number is free. */
	theirs = sandbox_told() ? !is_own(fd) : sh_number_is(fd) == SH_NUMBER_OTHER;
	errno = before;
	if (theirs)
		return REAL(close)(fd);
	pthread_testcancel();
	RETURN_ERRNO(-EBADF);
}

/* The C library has them since 2.34. */
int close_range(unsigned int first, unsigned int last, int flags);
void closefrom(int first);

static int close_piece(unsigned int first, unsigned int last, int flags)
{
	__typeof__(&close_range) next = REAL(close_range);

	/* A library behind this one may want to know, as librspreload does. */
	return next ? next(first, last, flags) : (int)syscall(SYS_close_range, first, last, flags);
}

int closing_range(unsigned int first, unsigned int last, int flags)
{
	unsigned int at = first;
	int kept, ret = 0, before = errno;

	/*
	 * With other flags all numbers stay, or the call fails. This library's close on exec
	 * anyway.
	 */
	if (!shim_active() || first > last || flags & ~(int)CLOSE_RANGE_UNSHARE)
		return close_piece(first, last, flags);
	sh_sweep_begin();
	while (!ret && at <= last && (kept = sh_number_own_from(at)) >= 0 &&
	       (unsigned int)kept <= last) {
		if ((unsigned int)kept > at)
			ret = close_piece(at, (unsigned int)kept - 1, flags);
		at = (unsigned int)kept + 1;
	}
	if (!ret && at <= last)
		ret = close_piece(at, last, flags);
	else if (!ret && flags)
		ret = close_piece(NOWHERE, NOWHERE, flags);
	sh_sweep_end();
	return shim_kept(ret, before);
}

/* Linux has close_range() since 5.9. */
static void close_each(unsigned int first, unsigned int last)
{
	if (!close_piece(first, last, 0))
		return;
	for (; first <= last; first++)
		(void)REAL(close)((int)first);
}

EXPORT void closefrom(int first)
{
	int kept, before = errno;

	if (first < 0)
		first = 0;
	if (shim_active()) {
		sh_sweep_begin();
		while ((kept = sh_number_own_from((unsigned int)first)) >= 0) {
			if (kept > first)
				close_each((unsigned int)first, (unsigned int)kept - 1);
			first = kept + 1;
		}
	}
	if (REAL(closefrom))
		REAL(closefrom)(first);
	sh_sweep_end();
	errno = before;
}

/* What has the number gets another one. What is open for a moment only is waited for, once. */
static void make_room(int fd, bool *waited)
{
	if (shim_control_move(fd) || *waited)
		return;
	*waited = true;
	for (unsigned int turn = 0; turn < TURNS && is_own(fd); turn++)
		sh_give_way(turn);
}

/*
 * Before another file gets the number. True: it was free, and this library does not take it before
 * sh_sweep_end().
 */
static bool take(int old, int fd)
{
	bool swept = false, waited = false;
	int before = errno;

	for (int i = 0; i < 3 && !swept; i++) {
		enum sh_number is = sh_number_is(fd);

		/* The call may also be about to fail: nothing is there to take the number. */
		if (is == SH_NUMBER_OTHER || sh_fcntl(old, F_GETFD, 0) < 0)
			break;
		if (is == SH_NUMBER_OWN)
			make_room(fd, &waited);
		sh_sweep_begin();
		swept = !is_own(fd);
		if (!swept)
			sh_sweep_end();
	}
	errno = before;
	return swept;
}

EXPORT int dup2(int old, int fd)
{
	bool swept = shim_active() && old != fd && !sandbox_told() && take(old, fd);
	int ret = REAL(dup2)(old, fd);

	if (swept)
		sh_sweep_end();
	return ret;
}

EXPORT int dup3(int old, int fd, int flags)
{
	bool swept = shim_active() && old != fd && !sandbox_told() && take(old, fd);
	int ret = REAL(dup3)(old, fd, flags);

	if (swept)
		sh_sweep_end();
	return ret;
}
