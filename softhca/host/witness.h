/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Copies memory of another address space, and never of the one that follows it in the same process
 * or under the same process number. A process that connects maps one page, its witness. Its address
 * is drawn at random from a part of the address space in which the kernel places nothing by itself.
 * Each copy from or to the process names the witness first. The kernel looks the address space up
 * once for a whole call, takes the pieces in their order and ends at the first that it cannot
 * reach. So in a program that has no such page, the call ends before it touches anything. Page
 * protection applies, as in every such call.
 *
 * fork() does not inherit the witness. The page holds SH_WITNESS for copies that read, and a byte
 * for copies that write.
 */
#ifndef SOFTHCA_HOST_WITNESS_H
#define SOFTHCA_HOST_WITNESS_H

#include <stdbool.h>

#include "sys.h"

#define SH_WITNESS	UINT64_C(0x736f66746863610a)
#define SH_WITNESS_BYTE 64 /* apart from what is read */

/*
 * The address of this address space's own witness, which the first call makes. 0 with *err: there
 * cannot be one (-ENOMEM). The caller holds a lock against other threads that call it, because the
 * function keeps the address for the next call.
 */
uint64_t sh_witness(int *err);

/*
 * Like process_vm_readv() and process_vm_writev(). The arrays have one more element at their
 * beginning, for the witness. A result >= 0 counts the caller's bytes. -ESRCH: it is no longer that
 * address space. -EPERM: this process may not look, and cannot tell whether it is (the other
 * process has made itself undumpable, has changed its user, or has begun a program that did).
 */
long sh_witness_readv(int pid, uint64_t witness, struct iovec *local, unsigned long nlocal,
		      struct iovec *remote, unsigned long nremote);
long sh_witness_writev(int pid, uint64_t witness, struct iovec *local, unsigned long nlocal,
		       struct iovec *remote, unsigned long nremote);

/*
 * A descriptor of the memory of that address space, to be opened while this process may look: it
 * leads there whatever becomes of the other process's user, its capabilities and its program. Or
 * -errno; -ESRCH: it is no longer that address space.
 */
int sh_witness_open(int pid, uint64_t witness);
/*
 * Copies len bytes by such a descriptor. Returns how many were copied, or -errno. -ESRCH: the
 * address space has ended; -EFAULT: the first page is not there. Page protection does not apply.
 */
long sh_witness_move(int fd, uint64_t addr, void *buf, size_t len, bool out);

#endif
