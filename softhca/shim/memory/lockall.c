// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * mlockall() means the memory of the program. Device memory is gigabytes of address space, of which
 * each process uses little. To lock it would take all of that memory, and more than limits allow.
 * So this file locks the present mappings one by one without device memory, and fails as the kernel
 * would for all of them. The kernel locks what is mapped later. softhca makes its own mappings so
 * that the kernel does not lock them (sh_mmap_unlocked() in host/sys.h).
 */
#include <linux/capability.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "softhca/host/memory.h"
#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/files/command.h"
#include "softhca/shim/interpose.h"
#include "maps.h"

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif
#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

static bool future; /* the kernel locks what will be mapped */

EXPORT int mlockall(int flags);
EXPORT int munlockall(void);

/* This process's mapping of all of device memory, by which device code reaches it. */
static bool is_base(const struct mapping *m)
{
	return shim_memory_is(m->dev, m->ino) && sh_memory_is_base(&shim_dev, m->start, m->off);
}

/* The bytes that the kernel would count; 0: that cannot be told. */
static uint64_t program_size(void)
{
	struct mapping m;
	struct maps maps;
	uint64_t sum = 0;

	if (maps_open(&maps))
		return 0;
	while (maps_next(&maps, &m))
		if (!is_base(&m))
			sum += m.end - m.start;
	maps_close(&maps);
	return sum;
}

/*
 * Pages that have no contents, or cannot be touched, are marked all the same: mlockall() does not
 * report them either.
 */
static void lock_program(bool onfault)
{
	struct mapping m;
	struct maps maps;

	if (maps_open(&maps))
		return;
	while (maps_next(&maps, &m))
		if (!is_base(&m))
			sh_sys(syscall(SYS_mlock2, m.start, m.end - m.start,
				       (long)(onfault ? MLOCK_ONFAULT : 0)));
	maps_close(&maps);
}

static int check_limit(uint64_t size)
{
	struct rlimit limit;

	if (shim_has_cap(CAP_IPC_LOCK) || getrlimit(RLIMIT_MEMLOCK, &limit) < 0 ||
	    limit.rlim_cur == RLIM_INFINITY)
		return 0;
	return !limit.rlim_cur ? -EPERM : size > limit.rlim_cur ? -ENOMEM : 0;
}

EXPORT int mlockall(int flags)
{
	int before = errno, ret;
	uint64_t size;

	if (!shim_active() || !shim_dev.inst || !(flags & MCL_CURRENT) ||
	    flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) || !(size = program_size())) {
		ret = REAL(mlockall)(flags);
		if (!ret)
			future = flags & MCL_FUTURE;
		return ret;
	}
	ret = check_limit(size);
	if (ret)
		RETURN_ERRNO(ret);
	/* No other call tells the kernel to lock future mappings no longer. */
	if (future && !(flags & MCL_FUTURE))
		REAL(munlockall)();
	if (flags & MCL_FUTURE && REAL(mlockall)(flags & ~MCL_CURRENT) < 0)
		return -1;
	future = flags & MCL_FUTURE;
	lock_program(flags & MCL_ONFAULT);
	errno = before;
	return 0;
}

EXPORT int munlockall(void)
{
	int ret = REAL(munlockall)();

	if (!ret)
		future = false;
	return ret;
}
