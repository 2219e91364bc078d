// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Remembers the pages that the program does not want fork() to inherit. The kernel tells this only
 * in /proc/self/smaps, which takes longer to read the more memory the process has. It suffices to
 * remember the latest requests: a provider makes the request for a queue's pages just before it
 * registers them. madvise() may be called from anywhere, so no thread waits for the lock; a thread
 * that does not get it notes that a request is missing.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "dontfork.h"
#include "memory.h"

#define REMEMBERED 64

static struct range {
	uint64_t start, end;		/* both 0: unused */
} range[REMEMBERED];
static unsigned int next;
static atomic_flag busy = ATOMIC_FLAG_INIT;
static atomic_bool forgot;		/* there may be other such pages */

/* The child has not inherited these pages. */
void shim_dontfork_forked(void)
{
	for (unsigned int i = 0; i < REMEMBERED; i++)
		range[i] = (struct range){0, 0};
	atomic_store(&forgot, false);
	atomic_flag_clear(&busy);
}

static void remember(uint64_t start, uint64_t end)
{
	struct range *r = &range[next++ % REMEMBERED];

	if (r->end)
		atomic_store(&forgot, true);
	*r = (struct range){start, end};
}

static void forget(uint64_t start, uint64_t end)
{
	for (struct range *r = range; r < range + REMEMBERED; r++) {
		if (r->end <= start || r->start >= end)
			continue;
		if (r->start < start || r->end > end)
			atomic_store(&forgot, true);
		*r = (struct range){0, 0};
	}
}

void shim_dontfork_note(uint64_t addr, uint64_t len, int advice)
{
	uint64_t end = addr + ((len + SHIM_PAGE - 1) & ~(uint64_t)(SHIM_PAGE - 1));

	if ((advice != MADV_DONTFORK && advice != MADV_DOFORK) || end <= addr)
		return;
	if (atomic_flag_test_and_set(&busy)) {
		atomic_store(&forgot, true);
		return;
	}
	forget(addr, end);
	if (advice == MADV_DONTFORK)
		remember(addr, end);
	atomic_flag_clear(&busy);
}

int shim_dontfork_known(uint64_t addr)
{
	int known = atomic_load(&forgot) ? -1 : 0;

	if (atomic_flag_test_and_set(&busy))
		return -1;
	for (struct range *r = range; r < range + REMEMBERED && known != 1; r++)
		if (addr >= r->start && addr < r->end)
			known = 1;
	atomic_flag_clear(&busy);
	return known;
}
