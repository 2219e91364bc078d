/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* SIGBUS belongs to the trap; what the application sets and asks about it is kept here. Between trap.c and signals.c. */
#ifndef SOFTHCA_SHIM_SIGNALS_H
#define SOFTHCA_SHIM_SIGNALS_H

#include <signal.h>

/* Make handler the real one for SIGBUS, keeping what was there as the application's. Again is free. 0 or -errno. */
int shim_signals_own(void (*handler)(int, siginfo_t *, void *));

/* A SIGBUS that is not ours: do what the application arranged for it. */
void shim_signals_chain(int sig, siginfo_t *info, void *uc);

#endif
