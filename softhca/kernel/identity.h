/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Names of the hosts of an instance.
 */
#ifndef SOFTHCA_KERNEL_IDENTITY_H
#define SOFTHCA_KERNEL_IDENTITY_H

struct kernel;

int identity_make(struct kernel *k); /* names of hosts, and the directory of runs */

#endif
