/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Copies between this process and another, for device code: a thread that is stopped in one can be
 * thrown out of it (device/memory/life.h). The program's own calls and the shim's, which may run in
 * a signal handler on top of device code, take sys.h's.
 */
#ifndef SOFTHCA_HOST_REACH_H
#define SOFTHCA_HOST_REACH_H

#include "softhca/device/memory/life.h"
#include "sys.h"

static inline long sh_reach_readv(int pid, const struct iovec *local, unsigned long nlocal,
				  const struct iovec *remote, unsigned long nremote)
{
	return sh_self.armed
		       ? sh_reach_call(SYS_process_vm_readv, pid, local, nlocal, remote, nremote)
		       : sh_vm_readv(pid, local, nlocal, remote, nremote);
}

static inline long sh_reach_writev(int pid, const struct iovec *local, unsigned long nlocal,
				   const struct iovec *remote, unsigned long nremote)
{
	return sh_self.armed
		       ? sh_reach_call(SYS_process_vm_writev, pid, local, nlocal, remote, nremote)
		       : sh_vm_writev(pid, local, nlocal, remote, nremote);
}

#endif
