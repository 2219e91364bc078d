/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Does a filter of system calls (seccomp) watch the calling thread? */
#ifndef SOFTHCA_SHIM_SANDBOX_H
#define SOFTHCA_SHIM_SANDBOX_H

#include <stdbool.h>

/*
 * A filter may end the process for a system call that the program itself does not make. So the shim
 * makes no unusual one (io_uring_enter, userfaultfd, get_mempolicy) where this is true.
 */
bool sandboxed(void);

/*
 * Has this process confined itself by prctl()? Takes no system call. What needs one and can be left
 * out is left out then.
 */
bool sandbox_told(void);

#endif
