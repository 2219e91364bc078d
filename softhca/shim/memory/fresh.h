/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Exchanges pages that were never touched, beside other threads. */
#ifndef SOFTHCA_SHIM_FRESH_H
#define SOFTHCA_SHIM_FRESH_H

#include <stdbool.h>
#include <stdint.h>

/* Is an attempt worthwhile? Other threads may have changed the answer by the time it comes. */
bool fresh_likely(uint64_t addr, uint64_t len);
/*
 * Runs fn(), which maps something else there, while no page of the range is present and no access
 * can make one present: a thread or process that touches a page waits, in a system call, too.
 * Returns what fn returns. -EBUSY: pages are present, or the kernel refuses (it takes a privilege);
 * fn was not called. The control connection is held.
 */
int fresh_run(uint64_t addr, uint64_t len, int (*fn)(void));

#endif
