// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Calls that change mappings, where a program makes them by syscall() (syscall.S). UCX and Open MPI
 * do, in code with which they overwrite the functions of these names. To the program such a call is
 * the same as that of the function.
 */
#include <errno.h>

#include "by_number.h"

long shim_by_number(long number, long a, long b, long c, long d, long e, long f);
long shim_syscall_failed(long result);

/* The arguments have the widths that the kernel gives them. */
long shim_by_number(long number, long a, long b, long c, long d, long e, long f)
{
	void *at = (void *)a;
	size_t len = (size_t)b;

	switch (number) {
	case SYS_mmap:
		return (long)shim_mmap(BY_NUMBER, at, len, (int)c, (int)d, (int)e, f);
	case SYS_munmap:
		return shim_munmap(BY_NUMBER, at, len);
	case SYS_mremap:
		return (long)shim_mremap(BY_NUMBER, at, len, (size_t)c, (int)d, (void *)e);
	case SYS_mprotect:
		return shim_mprotect(BY_NUMBER, at, len, (int)c);
	case SYS_pkey_mprotect:
		return shim_pkey_mprotect(BY_NUMBER, at, len, (int)c, (int)d);
	case SYS_madvise:
		return shim_madvise(BY_NUMBER, at, len, (int)c);
	case SYS_remap_file_pages:
		return shim_remap_file_pages(BY_NUMBER, at, len, (int)c, (size_t)d, (int)e);
	case SYS_process_madvise:
		return shim_process_madvise(BY_NUMBER, (int)a, (const struct iovec *)b, (size_t)c,
					    (int)d, (unsigned int)e);
	}
	errno = ENOSYS; /* syscall.S sends no other */
	return -1;
}

/* The kernel has answered with -errno. */
long shim_syscall_failed(long result)
{
	errno = (int)-result;
	return -1;
}
