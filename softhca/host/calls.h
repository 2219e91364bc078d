/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Calls that wait for their time, in the order of their deadlines: a heap. Two with the same
 * deadline stay in the order in which they came, since packets of a QP must not overtake each
 * other. The caller owns the memory, and has a lock.
 */
#ifndef SOFTHCA_HOST_CALLS_H
#define SOFTHCA_HOST_CALLS_H

#include <stdbool.h>
#include <stdint.h>

struct sh_dev;

struct sh_call {
	uint64_t deadline;
	uint64_t number; /* counts all that came */
	void (*fn)(struct sh_dev *, uint64_t, uint64_t);
	uint64_t a, b;
};

struct sh_calls {
	struct sh_call *call; /* none is due before the one at (i - 1) / 2 */
	unsigned int used;
	uint64_t came;
};

/* There is room for it. */
void sh_calls_put(struct sh_calls *s, const struct sh_call *c);
/* Is a call with the same function and arguments there, whatever its deadline? */
bool sh_calls_has(const struct sh_calls *s, const struct sh_call *c);
/* Takes the next one out; there is one. */
struct sh_call sh_calls_take(struct sh_calls *s);

#endif
