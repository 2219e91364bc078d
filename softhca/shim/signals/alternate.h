/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Threads that run a handler of the program on an alternate stack (sigaltstack()). */
#ifndef SOFTHCA_SHIM_ALTERNATE_H
#define SOFTHCA_SHIM_ALTERNATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A handler of the program is about to run, with this context of the kernel's, on the caller's
 * stack.
 * True: that is an alternate one, and alternate_end() is due when the handler has returned.
 */
bool alternate_begin(const void *context);
void alternate_end(void);
/* Does this thread run on such a stack? In a thread that has left it by a jump, forgets it. */
bool alternate_here(void);
/* In a forked child: what shim_unusual has of its thread. */
uint32_t alternate_forked(void);

#endif
