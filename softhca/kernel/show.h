/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What `softhca show` prints.
 */
#ifndef SOFTHCA_KERNEL_SHOW_H
#define SOFTHCA_KERNEL_SHOW_H

struct kernel;

int show_make(struct kernel *k); /* a memfd with JSON, or -errno */

#endif
