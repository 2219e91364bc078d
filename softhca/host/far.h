/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Addresses at random, in parts of the address space where kernels put neither programs nor heaps,
 * libraries nor stacks by themselves. What is mapped there has nothing beside it.
 *
 *	FROM		TO		WHAT
 *	0x610000000000	0x680000000000	the witness of the address space (witness.c)
 *	0x680000000000	0x700000000000	device memory (memory.c), and the room that it may grow into
 *
 * and where that is not to be had, in address spaces of 39 bits and under tools that leave a program
 * the lower part only:
 *
 *	0x000800000000	0x002000000000	device memory
 *	0x002000000000	0x005000000000	the witness
 */
#ifndef SOFTHCA_HOST_FAR_H
#define SOFTHCA_HOST_FAR_H

#include <stdint.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

struct sh_far {
	uint64_t from, to;
};

/* The first byte of size bytes of the part, on a page; another one each time. 0: it has less room. */
uint64_t sh_far_pick(const struct sh_far *part, uint64_t size);

#endif
