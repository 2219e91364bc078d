// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See sandbox.h. The answer comes from /proc, because a filter may end the process for
 * prctl(PR_GET_SECCOMP), too. Allocates no memory.
 */
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include "softhca/host/status.h"
#include "attach.h"
#include "softhca/shim/files/context.h"
#include "interpose.h"
#include "sandbox.h"

static atomic_bool told;

bool sandbox_told(void)
{
	return atomic_load_explicit(&told, memory_order_relaxed);
}

EXPORT int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list ap;
	int ret;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (option == PR_SET_SECCOMP && shim_active() && !sandbox_told())
		shim_files_note();
	ret = REAL(prctl)(option, arg[0], arg[1], arg[2], arg[3]);
	if (option == PR_SET_SECCOMP && !ret)
		atomic_store_explicit(&told, true, memory_order_relaxed);
	return ret;
}

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
