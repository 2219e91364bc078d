/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the calls that change mappings do of device memory beside the system's call: those of
 * mapcalls.c, mremap() and madvise(). For these alone.
 */
#ifndef SOFTHCA_SHIM_MAPCALLS_H
#define SOFTHCA_SHIM_MAPCALLS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "softhca/protocol.h"
#include "memory.h"
#include "share.h"

/* True: the range has shared pages, and the control connection is held. */
bool mapcall_begin(void *addr, size_t len);
/*
 * Makes the shared pages of the range fresh private ones. Other memory that is mapped there by now
 * stays. What a thread that is stopped in the device (-EBUSY) still stores goes to the old pages.
 */
int mapcall_renew(void *addr, size_t len);
/*
 * Does the kernel refuse to take contents away, because memory is locked? Shared pages keep theirs,
 * and private ones are to lose them.
 */
bool mapcall_refused(void *addr, size_t len);
/* mremap() itself (remap.c), wherever the program's symbol of this name leads. */
extern __typeof__(mremap) this_mremap __attribute__((visibility("hidden")));

static inline size_t mapcall_whole(size_t len)
{
	return (len + SHIM_PAGE - 1) & ~(SHIM_PAGE - 1);
}

static inline void mapcall_gone(void *addr, size_t len)
{
	(void)shim_share_forget((uintptr_t)addr, mapcall_whole(len));
	shim_changed(SH_CHANGED_GONE, (uintptr_t)addr, mapcall_whole(len));
}

/* As shim_kept(). */
static inline void *mapcall_kept(void *ret, int before)
{
	if (ret != MAP_FAILED)
		errno = before;
	return ret;
}

#endif
