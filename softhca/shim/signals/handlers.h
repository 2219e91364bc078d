/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Handlers of the application wait until their thread is out of device code.
 */
#ifndef SOFTHCA_SHIM_HANDLERS_H
#define SOFTHCA_SHIM_HANDLERS_H

#include <signal.h>

/*
 * Before each request; the first call counts. From then on, handlers of the application do not run
 * in the middle of device code or of a request.
 */
void shim_handlers_begin(void);
/*
 * In between this thread's handlers wait, if a device is open: for what a handler that jumps away
 * would leave behind. Pairs may lie in each other.
 */
void shim_handlers_wait(void);
void shim_handlers_go_on(void);
/* Lets the signals come that were held off meanwhile, if this thread is out of both. */
void shim_signals_release(void);

/* sigaction() of any signal but SIGBUS. */
int shim_handlers_change(int sig, const struct sigaction *act, struct sigaction *old);
/*
 * The C library has just changed the action and returned old: puts this library's handler in front.
 * Returns what old means to the application.
 */
sighandler_t shim_handlers_adopt(int sig, sighandler_t old);
void shim_handlers_forked(void);

#endif
