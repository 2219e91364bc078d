/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* SIGBUS belongs to the trap; what the application sets and asks about it is kept here. Between
 * trap.c, signals.c and handlers.c. */
#ifndef SOFTHCA_SHIM_SIGNALS_H
#define SOFTHCA_SHIM_SIGNALS_H

#include <signal.h>

/* Make handler the real one for SIGBUS, keeping what was there as the application's. Again is free. 0 or -errno. */
int shim_signals_own(void (*handler)(int, siginfo_t *, void *));

/* A SIGBUS that is not ours: do what the application arranged for it. */
void shim_signals_chain(int sig, siginfo_t *info, void *uc);

/* ---- handlers of the application (handlers.c) ---- */

/* sigaction() of any signal but SIGBUS. */
int shim_handlers_change(int sig, const struct sigaction *act, struct sigaction *old);
/* The C library has just changed it, and returned old: put ours in front; what old was to the
 * application. */
sighandler_t shim_handlers_adopt(int sig, sighandler_t old);
void shim_handlers_forked(void);

#endif
