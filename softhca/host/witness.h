/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory of another address space, and never of the one that follows it in the same process or
 * under the same process number. A process that connects maps one page, its witness, at an address
 * drawn at random from a part of the address space in which the kernel places nothing by itself.
 * Each copy from or to the process names the witness first. The kernel looks the address space up
 * once for a whole call, takes the pieces in their order and ends at the first that it cannot
 * reach; so in a program that has no such page the call ends before it touches anything. Page
 * protection counts, as in every call of that kind.
 *
 * The witness is not inherited by fork(). It holds SH_WITNESS for those who read, and a byte for
 * those who write.
 */
#ifndef SOFTHCA_HOST_WITNESS_H
#define SOFTHCA_HOST_WITNESS_H

#include "sys.h"

#define SH_WITNESS	UINT64_C(0x736f66746863610a)
#define SH_WITNESS_BYTE 64 /* away from what is read */

/*
 * The address of this address space's own, made at the first call; 0 and *err: there is none to be
 * had (-ENOMEM). The caller holds a lock against other threads that call it, as it writes what it
 * finds again at the next call.
 */
uint64_t sh_witness(int *err);

/*
 * As process_vm_readv() and process_vm_writev(); the arrays have one element more than n at their
 * beginning, for the witness. A result >= 0 counts the caller's bytes. -ESRCH: it is not that
 * address space any more. -EPERM: this process may not look (the other has made itself undumpable,
 * has changed its user, or began such a program), and cannot tell whether it is.
 */
long sh_witness_readv(int pid, uint64_t witness, struct iovec *local, unsigned long nlocal,
		      struct iovec *remote, unsigned long nremote);
long sh_witness_writev(int pid, uint64_t witness, struct iovec *local, unsigned long nlocal,
		       struct iovec *remote, unsigned long nremote);

#endif
