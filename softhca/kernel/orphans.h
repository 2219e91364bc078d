/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Locks that dead threads held.
 */
#ifndef SOFTHCA_KERNEL_ORPHANS_H
#define SOFTHCA_KERNEL_ORPHANS_H

#include <stdbool.h>

struct kernel;

/*
 * Frees them, so that the threads which sleep for them go on. While a thread is in the middle of a
 * recovery it frees none, and orphans_left() stays true.
 */
void orphans_free(struct kernel *k);
/* Has a thread died in device code since orphans_free() freed locks? */
bool orphans_left(const struct kernel *k);

#endif
