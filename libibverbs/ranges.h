// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How often each address is covered: a map from addresses to counts, kept as a balanced tree of ranges of
 * equal count. Knows nothing of fork or madvise; locking is the caller's. */

#ifndef IBVERBS_RANGES_H
#define IBVERBS_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct range;

struct ranges {
	struct range *root;	/* by start */
	struct range *first;	/* the one from 0 on; all are linked in order */
	uint64_t seed;
};

/* Called for each part of a change in which the count leaves or reaches 0. -errno refuses the change. */
typedef int (*ranges_edge)(uintptr_t start, uintptr_t last, bool covered);

/* All counts 0. 0, or -ENOMEM. */
int ranges_init(struct ranges *ranges);

void ranges_destroy(struct ranges *ranges);

/* Adds 1 to (cover) or takes 1 from the counts of [start, last], where they are not 0. On failure, -ENOMEM
 * or what edge returned, nothing has changed: edge has been called the other way, its result ignored, for
 * every part for which it had been called. */
int ranges_change(struct ranges *ranges, uintptr_t start, uintptr_t last, bool cover, ranges_edge edge);

/* The count of an address. */
unsigned int ranges_count(const struct ranges *ranges, uintptr_t address);

/* How many ranges there are: 1 when all counts are equal. */
unsigned int ranges_size(const struct ranges *ranges);

#endif /* IBVERBS_RANGES_H */
