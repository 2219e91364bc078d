/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Files of sysfs that say how much went through a port.
 */
#ifndef SOFTHCA_SHIM_COUNTERS_H
#define SOFTHCA_SHIM_COUNTERS_H

#include <stdbool.h>
#include <string.h>

/*
 * Is the redirected path one of them, or cap_mask, which says whether issm is open? The daemon
 * hears of closes before it answers a request.
 */
static inline bool shim_counters(const char *redirected)
{
	const char *name = strrchr(redirected, '/');

	return strstr(redirected, "counters/") || (name && !strcmp(name, "/cap_mask"));
}
/* Has the daemon write them anew. Without it they are some seconds old at most. Keeps errno. */
void shim_counters_refresh(void);

#endif
