// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the kernel says of mappings in /proc/self/smaps, which takes longer to read the more memory
 * the process has. Owns nothing and allocates no memory.
 */
#include <stdio.h>
#include <string.h>

#include "softhca/host/sys.h"
#include "maps.h"
#include "marks.h"

static const char *const flag[MARKS] = {
	[MARK_DONTFORK] = " dc",   [MARK_DONTDUMP] = " dd", [MARK_WIPEONFORK] = " wf",
	[MARK_HUGE] = " hg",	   [MARK_NOHUGE] = " nh",   [MARK_MERGE] = " mg",
	[MARK_SEQUENTIAL] = " sr", [MARK_RANDOM] = " rr",   [MARK_NORESERVE] = " nr",
};

/* The lines of a mapping end with its flags. */
static bool read_line(const char *line, unsigned int *marks)
{
	unsigned int key;

	if (sscanf(line, "ProtectionKey: %u", &key) == 1 && key)
		*marks |= SMAPS_KEY;
	if (strncmp(line, "VmFlags:", 8))
		return false;
	if (strstr(line, " gd"))
		*marks |= SMAPS_GROWS;
	for (unsigned int i = 0; i < MARKS; i++)
		if (strstr(line, flag[i]))
			*marks |= MARK_BIT(i);
	return true;
}

bool smaps_each(uint64_t start, uint64_t end,
		bool (*fn)(uint64_t start, uint64_t end, unsigned int marks, void *arg), void *arg)
{
	struct maps m = {.fd = sh_open_own("/proc/thread-self/smaps", O_RDONLY)};
	unsigned long from = 0, to = 0, low, high;
	unsigned int marks = 0;
	bool going = true;
	char *line;

	if (m.fd < 0)
		return false;
	while (going && (line = maps_line(&m))) {
		/* Other lines begin with letters that are digits, too. */
		if (sscanf(line, "%lx-%lx ", &low, &high) == 2) {
			if (low >= end)
				break;
			from = low;
			to = high;
			marks = 0;
		} else if (to > start && read_line(line, &marks)) {
			going = fn(from > start ? from : start, to < end ? to : end, marks, arg);
		}
	}
	maps_close(&m);
	return going;
}
