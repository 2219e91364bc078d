/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Is this process still: can its pages be exchanged unnoticed? Shared by share.c, fork.c, threads.c
 * and still.c.
 */
#ifndef SOFTHCA_SHIM_STILL_H
#define SOFTHCA_SHIM_STILL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * True if there is no thread but the caller and softhca's helper, and the kernel has been lent no
 * memory of the process.
 */
bool still_alone(void);

/*
 * Runs fn(arg) while only this thread of the process can store to its memory: every signal but
 * SIGSYS is blocked, and fn runs on a stack of the shim's, so that the caller's can be exchanged,
 * too. Returns what fn returns. -EBUSY: the process is not still, and fn was not called. The
 * control connection is held.
 */
int still_run(int (*fn)(void *), void *arg);
/*
 * For fn, before it exchanges these pages: from now on processes of the instance wait with
 * process_vm_writev() there, until the next piece or the end of fn. Those that wait have their turn
 * between two pieces, so a piece should take no more than milliseconds. -EBUSY: another process
 * copies from or to this one for long, and the piece is to stay as it is.
 */
int still_piece(uint64_t start, uint64_t end);

/*
 * For fn, around the moment in which the contents of pages are in two places: what a handler stored
 * there could be lost. Elsewhere a handler for SIGSYS runs: a filter of system calls (seccomp) may
 * have one answer in place of the kernel (SECCOMP_RET_TRAP), and ends the process where it is
 * blocked.
 */
void still_hush(void);
void still_unhush(void);

/*
 * As still_run(), but without regard to other threads and processes, and SIGSYS is blocked as well.
 * Returns -ENOMEM, or what fn returns.
 */
int still_on_own_stack(int (*fn)(void *), void *arg);

/*
 * Does the range overlap memory that fn itself, or the helper, writes meanwhile? Its pages must not
 * be exchanged.
 */
bool still_writes(uint64_t start, uint64_t end);

void still_init(void);
/*
 * Before a fork, with signals blocked, and in the child: a ring of asynchronous I/O may be that of
 * both from then on.
 */
void still_fork(void);
void still_forked(void);

/*
 * The kernel will reach this process's pages by a way that the shim does not see: from now on all
 * of its memory is private. Returns 0, or -EAGAIN: another process reaches into this one for long,
 * and the call must not go on.
 */
int still_lend(void);
/* Has it been called, or has a child got a ring? */
bool still_lent(void);
/*
 * The same for the range of a struct uffdio_register. Also -ENOMEM: memory there cannot become
 * private.
 */
int still_lend_range(const void *uffdio_register);

#endif
