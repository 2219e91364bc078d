/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Number spaces as the mlx4 kernel driver hands numbers out: one bitmap each, searched from where
 * the last number was found. When the search wraps, the high part of the numbers rolls on, so that
 * a number comes back late. Plain private memory of the daemon; no lock.
 */
#ifndef SOFTHCA_KERNEL_NUMBERS_H
#define SOFTHCA_KERNEL_NUMBERS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

struct sh_numbers {
	uint32_t bits; /* entries, a power of two */
	uint32_t mask; /* of a whole number, high part included */
	uint32_t last, top;
	uint32_t reserved, used; /* used: without the reserved */
	bool rewind; /* a freed number's entry is used again at once, with the next high part */
	uint64_t *words;
	uint64_t *full; /* a bit for each word that has no 0 left */
};

/*
 * Entries [0, reserved) are never given out. mask >= bits - 1, one less than a power of two; bits
 * >= 64. 0, -EINVAL or -ENOMEM.
 */
int sh_numbers_init(struct sh_numbers *n, uint32_t bits, uint32_t mask, uint32_t reserved,
		    bool rewind);
void sh_numbers_fini(struct sh_numbers *n);
/* 0 and *number, or -ENOSPC. */
int sh_numbers_get(struct sh_numbers *n, uint32_t *number);
/*
 * Twice as many. Only where numbers have no high part (mask is bits - 1, and becomes so again). 0,
 * -EINVAL or -ENOMEM.
 */
int sh_numbers_grow(struct sh_numbers *n);
/* A number that is not out is ignored. */
void sh_numbers_put(struct sh_numbers *n, uint32_t number);

static inline int num_get(struct sh_numbers *n, uint32_t *number)
{
	return sh_numbers_get(n, number) < 0 ? -ENOMEM : 0;
}

static inline void num_put(struct sh_numbers *n, uint32_t number)
{
	sh_numbers_put(n, number);
}

#endif
