/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Locks that dead threads held.
 */
#ifndef SOFTHCA_KERNEL_ORPHANS_H
#define SOFTHCA_KERNEL_ORPHANS_H

struct kernel;

/* Frees them, so that the threads which sleep for them go on. */

void orphans_free(struct kernel *k);

#endif
