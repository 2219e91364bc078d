// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Counts how often each address is covered: a map from addresses to counts, kept as a balanced tree
 * of ranges with equal count. Knows nothing of fork or madvise. The caller does the locking. */

#ifndef IBVERBS_RANGES_H
#define IBVERBS_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct range;

struct ranges {
	struct range *root;  /* sorted by start */
	struct range *first; /* starts at address 0; a list links all ranges in order */
	uint64_t seed;
};

/* Called for each part of a change where the count leaves 0 or becomes 0. -errno refuses the
 * change. */
typedef int (*ranges_edge)(uintptr_t start, uintptr_t last, bool covered);

/* Sets all counts to 0. Returns 0 or -ENOMEM. */
int ranges_init(struct ranges *ranges);

void ranges_destroy(struct ranges *ranges);

/* Adds 1 to the counts of [start, last] (cover), or subtracts 1 from those that are not 0. Returns
 * 0, -ENOMEM, or the error of edge. On failure nothing has changed: edge has been called in the
 * opposite direction, with its result ignored, for every part for which it had been called. */
int ranges_change(struct ranges *ranges, uintptr_t start, uintptr_t last, bool cover,
		  ranges_edge edge);

/* Returns the count of an address. */
unsigned int ranges_count(const struct ranges *ranges, uintptr_t address);

/* Returns the number of ranges: 1 if all counts are equal. */
unsigned int ranges_size(const struct ranges *ranges);

#endif /* IBVERBS_RANGES_H */
