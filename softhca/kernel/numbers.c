// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Number spaces: see numbers.h. There are two levels of bits, so that a search past many used
 * entries costs one look per 4096.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

int sh_numbers_init(struct sh_numbers *n, uint32_t bits, uint32_t mask, uint32_t reserved,
		    bool rewind)
{
	uint32_t i, words = bits / 64, fulls = (words + 63) / 64;

	if (bits < 64 || bits & (bits - 1) || mask < bits - 1 || mask & (mask + 1) ||
	    reserved >= bits)
		return -EINVAL;
	memset(n, 0, sizeof(*n));
	n->words = calloc((size_t)words + fulls, sizeof(*n->words));
	if (!n->words)
		return -ENOMEM;
	n->full = n->words + words;
	n->bits = bits;
	n->mask = mask;
	n->reserved = reserved;
	n->last = reserved;
	n->rewind = rewind;
	/* Words that do not exist count as full. */
	if (words % 64)
		n->full[fulls - 1] = ~UINT64_C(0) << words % 64;
	for (i = 0; i < reserved; i++) {
		n->words[i / 64] |= UINT64_C(1) << i % 64;
		if (i % 64 == 63)
			n->full[i / 4096] |= UINT64_C(1) << i / 64 % 64;
	}
	return 0;
}

int sh_numbers_grow(struct sh_numbers *n)
{
	struct sh_numbers bigger;
	uint32_t i;
	int err;

	if (n->mask != n->bits - 1 || n->bits > UINT32_MAX / 2)
		return -EINVAL;
	err = sh_numbers_init(&bigger, n->bits * 2, n->mask * 2 + 1, n->reserved, n->rewind);
	if (err)
		return err;
	for (i = 0; i < n->bits / 64; i++) {
		bigger.words[i] = n->words[i];
		if (!~bigger.words[i])
			bigger.full[i / 64] |= UINT64_C(1) << i % 64;
	}
	bigger.used = n->used;
	bigger.last = n->used + n->reserved == n->bits ? n->bits : n->last;
	free(n->words);
	*n = bigger;
	return 0;
}

void sh_numbers_fini(struct sh_numbers *n)
{
	free(n->words);
	memset(n, 0, sizeof(*n));
}

/* The first free entry at or after from, or bits. */
static uint32_t first_free(const struct sh_numbers *n, uint32_t from)
{
	uint32_t w, f, words = n->bits / 64;
	uint64_t zero;

	if (from >= n->bits)
		return n->bits;
	w = from / 64;
	zero = ~n->words[w] & ~UINT64_C(0) << from % 64;
	if (zero)
		return w * 64 + (uint32_t)__builtin_ctzll(zero);
	if (++w == words)
		return n->bits;
	f = w / 64;
	zero = ~n->full[f] & ~UINT64_C(0) << w % 64;
	while (!zero) {
		if (++f * 64 >= words)
			return n->bits;
		zero = ~n->full[f];
	}
	w = f * 64 + (uint32_t)__builtin_ctzll(zero);
	return w * 64 + (uint32_t)__builtin_ctzll(~n->words[w]);
}

int sh_numbers_get(struct sh_numbers *n, uint32_t *number)
{
	uint32_t i = first_free(n, n->last);

	if (i == n->bits) {
		n->top = (n->top + n->bits) & n->mask;
		i = first_free(n, 0);
		if (i == n->bits)
			return -ENOSPC;
	}
	n->words[i / 64] |= UINT64_C(1) << i % 64;
	if (!~n->words[i / 64])
		n->full[i / 4096] |= UINT64_C(1) << i / 64 % 64;
	n->last = i + 1 == n->bits ? 0 : i + 1;
	n->used++;
	*number = i | n->top;
	return 0;
}

void sh_numbers_put(struct sh_numbers *n, uint32_t number)
{
	uint32_t i = number & (n->bits - 1);

	if (i < n->reserved || !(n->words[i / 64] & UINT64_C(1) << i % 64))
		return;
	n->words[i / 64] &= ~(UINT64_C(1) << i % 64);
	n->full[i / 4096] &= ~(UINT64_C(1) << i / 64 % 64);
	n->used--;
	if (n->rewind) {
		if (i < n->last)
			n->last = i;
		n->top = (n->top + n->bits) & n->mask;
	}
}
