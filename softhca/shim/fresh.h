/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Pages that nobody has touched yet, exchanged beside other threads. */
#ifndef SOFTHCA_SHIM_FRESH_H
#define SOFTHCA_SHIM_FRESH_H

#include <stdbool.h>
#include <stdint.h>

/* Is it worth trying? There may be other threads: this can have changed when the answer comes. */
bool fresh_likely(uint64_t addr, uint64_t len);
/*
 * Runs fn(), which maps something else there, while no page of the range is there and nobody can
 * make one be: whoever touches one waits, in a system call, too. Returns what fn does; -EBUSY:
 * there are pages, or the kernel does not let us (it takes a privilege), and fn was not called. The
 * control connection is held.
 */
int fresh_run(uint64_t addr, uint64_t len, int (*fn)(void));

#endif
