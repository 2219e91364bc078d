/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A thread that polls a CQ and finds nothing gives way to the processes whose messages it waits
 * for, where there are more of them than processors. The wrapper of poll_cq in kick.c counts polls
 * here; idle.c does everything else.
 */
#ifndef SOFTHCA_SHIM_IDLE_H
#define SOFTHCA_SHIM_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/shim/compiler.h"

/* Polls of this thread, of any CQ and with any result, before the next one is looked at. */
extern TLS int32_t shim_polls_left;

/* The poll that was looked at has found something, or failed: the thread is not idle. */
void shim_idle_ends(void);
/*
 * The poll has found nothing in this CQ. True: time has passed in here, so poll again before
 * returning to the program.
 */
bool shim_idle(const void *cq);

#endif
