// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Finds out from /proc/self/smaps whether fork() copies a page to children. */
#ifndef LIBIBVERBS_SMAPS_H
#define LIBIBVERBS_SMAPS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Returns 1: not copied on fork; 0: copied; -1: nothing is mapped there. */
static inline int page_is_dontcopy(const void *page)
{
	unsigned long long from, to;
	char line[512], *flags;
	int inside = 0, found = -1;
	FILE *f = fopen("/proc/self/smaps", "r");

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx ", &from, &to) == 2) {
			inside = (uintptr_t)page >= from && (uintptr_t)page < to;
		} else if (inside && !strncmp(line, "VmFlags:", 8)) {
			flags = strstr(line, " dc");
			found = flags && (flags[3] == ' ' || flags[3] == '\n');
		}
	}
	fclose(f);
	return found;
}

#endif
