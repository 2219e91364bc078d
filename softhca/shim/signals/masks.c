// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Other calls by which a program sets signal masks: waits that have a mask of their own, attributes
 * of threads, and the calls of System V and BSD. In the C library they do not pass through
 * sigprocmask() and sigaction(). SIGBUS stays unblocked here, too: the program's handler may ring a
 * doorbell during such a wait (signals.c). The waits for descriptors are in ready.c and epoll.c.
 * Owns nothing.
 */
#include <pthread.h>
#include <signal.h>

#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"
#include "signals.h"

/* ---- waits ---- */

EXPORT int sigsuspend(const sigset_t *set);
EXPORT int sigsuspend(const sigset_t *set)
{
	sigset_t room;

	return REAL(sigsuspend)(shim_signals_open_mask(set, &room));
}

/* ---- threads ---- */

/* Of glibc 2.32. */
int pthread_attr_setsigmask_np(pthread_attr_t *attr, const sigset_t *set);
EXPORT int pthread_attr_setsigmask_np(pthread_attr_t *attr, const sigset_t *set)
{
	sigset_t room;

	if (!REAL(pthread_attr_setsigmask_np))
		return ENOSYS;
	return REAL(pthread_attr_setsigmask_np)(attr, shim_signals_open_mask(set, &room));
}

/* ---- BSD ---- */

int sigblock(int mask);
int sigsetmask(int mask);

/* The signals that have a bit in an int. */
static int change_old(int how, int mask)
{
	sigset_t set, old;
	int was = 0;

	sigemptyset(&set);
	for (int sig = 1; sig <= 32; sig++)
		if ((unsigned int)mask & 1U << (sig - 1))
			sigaddset(&set, sig);
	if (sigprocmask(how, &set, &old) < 0)
		return -1;
	for (int sig = 1; sig <= 32; sig++)
		if (sigismember(&old, sig) == 1)
			was |= (int)(1U << (sig - 1));
	return was;
}

EXPORT int sigblock(int mask)
{
	return change_old(SIG_BLOCK, mask);
}

EXPORT int sigsetmask(int mask)
{
	return change_old(SIG_SETMASK, mask);
}

/* ---- System V ---- */

static int change_one(int how, int sig, sigset_t *old)
{
	sigset_t set;

	sigemptyset(&set);
	if (sigaddset(&set, sig) < 0)
		return -1;
	return sigprocmask(how, &set, old);
}

EXPORT int sighold(int sig)
{
	return change_one(SIG_BLOCK, sig, NULL);
}

EXPORT int sigrelse(int sig)
{
	return change_one(SIG_UNBLOCK, sig, NULL);
}

EXPORT int sigignore(int sig)
{
	const struct sigaction act = {.sa_handler = SIG_IGN};

	return sigaction(sig, &act, NULL);
}

EXPORT sighandler_t sigset(int sig, sighandler_t disposition)
{
	struct sigaction act = {.sa_handler = disposition}, old;
	sigset_t before;

	if (disposition == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (disposition == SIG_HOLD) {
		if (change_one(SIG_BLOCK, sig, &before) < 0 || sigaction(sig, NULL, &old) < 0)
			return SIG_ERR;
	} else {
		if (sigaction(sig, &act, &old) < 0 || change_one(SIG_UNBLOCK, sig, &before) < 0)
			return SIG_ERR;
	}
	return sigismember(&before, sig) == 1 ? SIG_HOLD : old.sa_handler;
}
