/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Addresses at random, in parts of the address space where the kernel by itself puts neither
 * programs nor heaps, libraries or stacks. What is mapped there has no neighbours.
 *
 *	FROM		TO		WHAT
 *	0x610000000000	0x680000000000	the witness of the address space (witness.c)
 *	0x680000000000	0x700000000000	device memory (memory.c), and the room that it may grow into
 *
 * Where those are not available, in address spaces of 39 bits and under tools that leave a program
 * only the lower part:
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

/*
 * Picks a place for size bytes in the part, on a page; a different one each time. 0: the part is
 * too small.
 */
uint64_t sh_far_pick(const struct sh_far *part, uint64_t size);

#endif
