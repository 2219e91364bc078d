// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Attributes that a program has given its memory, and that an exchange of pages would lose: huge or
 * merged pages, MADV_DONTDUMP, MADV_WIPEONFORK, a protection key, a NUMA policy. Such memory stays
 * private. Only /proc/self/smaps tells most of them, which takes longer to read the more memory the
 * process has. So it is read only in programs that have asked for such an attribute.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "softhca/host/sys.h"
#include "maps.h"
#include "marks.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MPOL_DEFAULT
#define MPOL_DEFAULT 0
#endif
#ifndef MPOL_F_ADDR
#define MPOL_F_ADDR (1 << 1)
#endif

static atomic_bool noted;

bool marks_is(int advice)
{
	return advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE || advice == MADV_MERGEABLE ||
	       advice == MADV_DONTDUMP || advice == MADV_WIPEONFORK;
}

void marks_note(void)
{
	atomic_store_explicit(&noted, true, memory_order_relaxed);
}

/* One line of a mapping in smaps. */
static bool tells_mark(const char *line)
{
	static const char *const flag[] = {" hg", " nh", " mg", " dd", " wf"};
	unsigned int key;

	if (sscanf(line, "ProtectionKey: %u", &key) == 1)
		return key != 0;
	for (size_t i = 0; !strncmp(line, "VmFlags:", 8) && i < sizeof(flag) / sizeof(flag[0]); i++)
		if (strstr(line, flag[i]))
			return true;
	return false;
}

bool marks_any(uint64_t start, uint64_t end)
{
	struct maps m = {.fd = -1};
	bool inside = false, any = false;
	unsigned long from, to;
	char *line;

	if (!atomic_load_explicit(&noted, memory_order_relaxed))
		return false;
	m.fd = sh_open("/proc/thread-self/smaps", O_RDONLY | O_CLOEXEC);
	if (m.fd < 0)
		return true;
	while (!any && (line = maps_line(&m))) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
			if (from >= end)
				break;
			inside = to > start;
		} else if (inside) {
			any = tells_mark(line);
		}
	}
	maps_close(&m);
	return any;
}

/* MPOL_DEFAULT: the mapping has no policy. The kernel does not answer with the thread's own then. */
bool marks_policy(uint64_t addr)
{
	int mode = MPOL_DEFAULT;

	return sh_sys(syscall(SYS_get_mempolicy, &mode, NULL, 0UL, addr, (long)MPOL_F_ADDR)) >= 0 &&
	       mode != MPOL_DEFAULT;
}
