// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See sandbox.h. The answer comes from /proc, because a filter may end the process for
 * prctl(PR_GET_SECCOMP), too. Allocates no memory.
 */
#include <stdatomic.h>

#include "softhca/host/status.h"
#include "sandbox.h"

bool sandboxed(void)
{
	/* A thread never gets rid of a filter, and its children have it. */
	static atomic_bool known;
	struct sh_status_field mode = {.name = "Seccomp:"};

	if (atomic_load_explicit(&known, memory_order_relaxed))
		return true;
	/* A process that has no descriptor left may learn it later. */
	if (sh_status_read("/proc/thread-self/status", &mode, 1))
		return true;
	/* A kernel without filters has no such line. */
	if (!mode.value[0] || mode.value[0] == '0')
		return false;
	atomic_store_explicit(&known, true, memory_order_relaxed);
	return true;
}
