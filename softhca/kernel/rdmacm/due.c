// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A binary heap of ids. Each id knows its place in it, from 1; an id with nothing due has place 0.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "due.h"
#include "id.h"

#define FIRST_ROOM 64

int cm_due_reserve(struct cm_due *d, uint32_t ids)
{
	uint32_t room = d->room ? d->room : FIRST_ROOM;
	struct cm_id **grown;

	if (ids <= d->room)
		return 0;
	while (room < ids)
		room *= 2;
	grown = realloc(d->heap, room * sizeof(struct cm_id *));
	if (!grown)
		return -ENOMEM;
	d->heap = grown;
	d->room = room;
	return 0;
}

static void put(struct cm_due *d, uint32_t place, struct cm_id *id)
{
	d->heap[place - 1] = id;
	id->due_place = place;
}

static void up(struct cm_due *d, struct cm_id *id, uint32_t place)
{
	for (; place > 1 && d->heap[place / 2 - 1]->due > id->due; place /= 2)
		put(d, place, d->heap[place / 2 - 1]);
	put(d, place, id);
}

static void down(struct cm_due *d, struct cm_id *id, uint32_t place)
{
	uint32_t below;

	while ((below = 2 * place) <= d->used) {
		if (below < d->used && d->heap[below]->due < d->heap[below - 1]->due)
			below++;
		if (d->heap[below - 1]->due >= id->due)
			break;
		put(d, place, d->heap[below - 1]);
		place = below;
	}
	put(d, place, id);
}

void cm_due_set(struct cm_due *d, struct cm_id *id, uint64_t due)
{
	uint32_t place = id->due_place;
	struct cm_id *last;

	id->due = due;
	if (due && !place)
		place = ++d->used;
	if (due) {
		up(d, id, place);
		down(d, id, id->due_place);
		return;
	}
	if (!place)
		return;
	id->due_place = 0;
	last = d->heap[--d->used];
	if (last == id)
		return;
	up(d, last, place);
	down(d, last, last->due_place);
}

struct cm_id *cm_due_first(const struct cm_due *d)
{
	return d->used ? d->heap[0] : NULL;
}

void cm_due_exit(struct cm_due *d)
{
	free(d->heap);
	memset(d, 0, sizeof(*d));
}
