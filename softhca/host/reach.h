/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * System calls of device code: a thread that is stopped in one can be thrown out of it
 * (device/memory/life.h). The program's own calls and the shim's, which may run in a signal handler
 * on top of device code, take sys.h's. Like those they return -errno.
 */
#ifndef SOFTHCA_HOST_REACH_H
#define SOFTHCA_HOST_REACH_H

#include "softhca/device/memory/life.h"
#include "sys.h"

static inline long sh_reach_readv(int pid, const struct iovec *local, unsigned long nlocal,
				  const struct iovec *remote, unsigned long nremote)
{
	return sh_self.armed ? sh_reach_call(SYS_process_vm_readv, pid, (long)local, (long)nlocal,
					     (long)remote, (long)nremote)
			     : sh_vm_readv(pid, local, nlocal, remote, nremote);
}

static inline long sh_reach_writev(int pid, const struct iovec *local, unsigned long nlocal,
				   const struct iovec *remote, unsigned long nremote)
{
	return sh_self.armed ? sh_reach_call(SYS_process_vm_writev, pid, (long)local, (long)nlocal,
					     (long)remote, (long)nremote)
			     : sh_vm_writev(pid, local, nlocal, remote, nremote);
}

static inline int sh_reach_fstat(int fd, struct stat *st)
{
	return sh_self.armed ? (int)sh_reach_call(SYS_fstat, fd, (long)st, 0, 0, 0)
			     : sh_fstat(fd, st);
}

static inline int sh_reach_stat(const char *path, struct stat *st)
{
	return sh_self.armed
		       ? (int)sh_reach_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)st, 0, 0)
		       : sh_stat(path, st);
}

/* futimens() */
static inline int sh_reach_utimens(int fd, const struct timespec times[2])
{
	return sh_self.armed ? (int)sh_reach_call(SYS_utimensat, fd, 0, (long)times, 0, 0)
			     : sh_utimens(fd, times);
}

/* To a file that does not block: a call that waits may begin anew. */
static inline long sh_reach_write(int fd, const void *buf, size_t len)
{
	return sh_self.armed ? sh_reach_call(SYS_write, fd, (long)buf, (long)len, 0, 0)
			     : sh_write(fd, buf, len);
}

#endif
