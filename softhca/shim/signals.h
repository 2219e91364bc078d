/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * SIGBUS belongs to the trap; this library keeps what the application sets and asks about it.
 * Shared by trap.c, signals.c and handlers.c.
 */
#ifndef SOFTHCA_SHIM_SIGNALS_H
#define SOFTHCA_SHIM_SIGNALS_H

#include <signal.h>

/*
 * Makes handler the real one for SIGBUS and keeps the previous action as the application's. A
 * second call changes nothing. Returns 0 or -errno.
 */
int shim_signals_own(void (*handler)(int, siginfo_t *, void *));

/* For a SIGBUS that is not the trap's: does what the application arranged for it. */
void shim_signals_chain(int sig, siginfo_t *info, void *uc);

/* ---- handlers of the application (handlers.c) ---- */

/* sigaction() of any signal but SIGBUS. */
int shim_handlers_change(int sig, const struct sigaction *act, struct sigaction *old);
/*
 * The C library has just changed the action and returned old: puts this library's handler in front.
 * Returns what old means to the application.
 */
sighandler_t shim_handlers_adopt(int sig, sighandler_t old);
void shim_handlers_forked(void);

#endif
