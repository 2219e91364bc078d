/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the daemon does with SH_CHANGED_REVOKE, where there is none any more. */
#ifndef SOFTHCA_SHIM_REVOKE_H
#define SOFTHCA_SHIM_REVOKE_H

#include <stdint.h>

struct ranges;

/*
 * Takes the pages of all regions that overlap the range off their keys, and waits until no thread
 * can be using them by what it has looked up before. Returns 0; -EBUSY: a thread has stayed in
 * device code for two seconds; -ENOTCONN: the keys cannot be found. The control connection is held.
 */
int revoke_here(const struct ranges *regions, uint64_t addr, uint64_t len);

#endif
