/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef SOFTHCA_SHIM_TIMERS_H
#define SOFTHCA_SHIM_TIMERS_H

#include <signal.h>

/*
 * What the C library is to do for a timer whose notification runs in a thread: ev, or *copy, which
 * has the function called with SIGBUS unblocked.
 */
struct sigevent *timers_event(struct sigevent *ev, struct sigevent *copy);
void timers_forked(void);

#endif
