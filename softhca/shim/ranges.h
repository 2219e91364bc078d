/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Ranges of this process's addresses that are device memory: sorted, without overlaps. Not locked:
 * see share.c. */
#ifndef SOFTHCA_SHIM_RANGES_H
#define SOFTHCA_SHIM_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t uaddr, len, shm; /* shm: where uaddr is in device memory */
};

struct ranges {
	struct range *at; /* by address */
	size_t count;
	size_t head, room; /* free places before at, and all places there are */
	uint64_t lowest, highest; /* of what was ever in it; highest 0: nothing was */
};

/* The first that ends after addr; count when there is none. */
size_t ranges_find(const struct ranges *t, uint64_t addr);
bool ranges_overlap(const struct ranges *t, uint64_t addr, uint64_t len);
/* Whether it is in one of them, with its shm. */
bool ranges_hold(const struct ranges *t, struct range r);
/* Make sure that one more has room: false, no memory. Comes before ranges_insert() and ranges_join(). */
bool ranges_room(struct ranges *t);
/* There is room, and nothing overlaps it. */
void ranges_insert(struct ranges *t, struct range r);
/* The same, as one with its neighbours where it continues them: in both spaces, or where neither has a shm. */
void ranges_join(struct ranges *t, struct range r);
/* [addr, addr + len) is in none any more. */
void ranges_remove(struct ranges *t, uint64_t addr, uint64_t len);

#endif
