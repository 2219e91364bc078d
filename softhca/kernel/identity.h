/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Names of the hosts of an instance.
 */
#ifndef SOFTHCA_KERNEL_IDENTITY_H
#define SOFTHCA_KERNEL_IDENTITY_H

#include <stdint.h>

struct kernel;

/*
 * What an HCA calls itself: the name of its host, and which HCA of it. On a wire the host's is that
 * of its address, since each instance there has a host0. At most 63 characters.
 */
#define IDENTITY_TEXT 64
void identity_describe(const struct kernel *k, uint32_t hca, char text[IDENTITY_TEXT]);

int identity_make(struct kernel *k); /* names of hosts, and the directory of runs */

#endif
