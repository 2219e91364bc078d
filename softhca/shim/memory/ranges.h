/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Ranges of this process's addresses: device memory, or memory that own.c knows. Sorted, without
 * overlaps. Not locked: see share.c and own.c.
 */
#ifndef SOFTHCA_SHIM_RANGES_H
#define SOFTHCA_SHIM_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t uaddr, len, shm; /* shm: where uaddr is in device memory */
};

struct ranges {
	struct range *at; /* sorted by address */
	size_t count;
	size_t head, room;	  /* free places before at, and all places */
	uint64_t lowest, highest; /* of what was ever in it; highest 0: nothing was */
};

/* The first range that ends after addr; count if there is none. */
size_t ranges_find(const struct ranges *t, uint64_t addr);
bool ranges_overlap(const struct ranges *t, uint64_t addr, uint64_t len);
/* Is r in one of the ranges, at the same place of device memory? */
bool ranges_hold(const struct ranges *t, struct range r);
/*
 * Makes room for one more. False: there is no memory. Call it before ranges_insert() and
 * ranges_join().
 */
bool ranges_room(struct ranges *t);
/* There must be room, and no range may overlap r. */
void ranges_insert(struct ranges *t, struct range r);
/*
 * The same, but merges r with the neighbours that it continues: in both spaces, or where neither
 * has a shm.
 */
void ranges_join(struct ranges *t, struct range r);
/*
 * Takes [addr, addr + len) out of all ranges. False: a range that is to become two stays whole,
 * since there is no memory for the second part. Nothing that should stay is lost.
 */
bool ranges_remove(struct ranges *t, uint64_t addr, uint64_t len);

#endif
