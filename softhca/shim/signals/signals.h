/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * SIGBUS belongs to the trap; this library keeps what the application sets and asks about it.
 */
#ifndef SOFTHCA_SHIM_SIGNALS_H
#define SOFTHCA_SHIM_SIGNALS_H

#include <signal.h>

/*
 * Makes handler the real one for SIGBUS and keeps the previous action as the application's. A
 * second call changes nothing. Returns 0 or -errno.
 */
int shim_signals_own(void (*handler)(int, siginfo_t *, void *));

/* A handler of the application has ended. It may have given the interrupted code another mask. */
void shim_signals_handled(void *uc);

/* In a thread that the C library has made with every signal blocked: SIGBUS is not. */
void shim_signals_open(void);

/* What the kernel gets of a mask. */
sigset_t shim_signals_without_bus(const sigset_t *set);
/* The mask of a call that waits: set, or what the kernel gets of it, in *room. */
const sigset_t *shim_signals_open_mask(const sigset_t *set, sigset_t *room);

/* For a SIGBUS that is not the trap's: does what the application arranged for it. */
void shim_signals_chain(int sig, siginfo_t *info, void *uc);

void shim_signals_init(void);
void shim_signals_forked(void);

#endif
