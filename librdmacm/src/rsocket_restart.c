// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * SA_RESTART. poll() ends with EINTR whatever the flags of the signal's handler are, and nothing tells which signal it
 * was. What may have come are signals that have a handler and that this thread does not block. If all these handlers
 * have SA_RESTART, the call goes on. If there are some of either kind, it ends: a program whose timer is to end a
 * call would otherwise wait for ever, while one that has any handler without SA_RESTART knows EINTR.
 */

#include <signal.h>

#include "rs.h"

/* These come to a thread for what it does itself, and one that sleeps does nothing. */
static bool is_fault(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
	       signal == SIGTRAP || signal == SIGABRT || signal == SIGSYS;
}

bool rs_restarts(void)
{
	struct sigaction action;
	bool some = false;
	sigset_t blocked;
	int i;

	if (pthread_sigmask(SIG_BLOCK, NULL, &blocked))
		return false;
	for (i = 1; i <= SIGRTMAX; i++) {
		/* The C library keeps some for itself. */
		if (is_fault(i) || sigismember(&blocked, i) || sigaction(i, NULL, &action))
			continue;
		if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
			continue;
		if (!(action.sa_flags & SA_RESTART))
			return false;
		some = true;
	}
	return some;
}
