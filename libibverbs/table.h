// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Look-up by number at constant cost: a hash table of links that the callers embed in their
 * structs. The table grows with its content. Without memory it keeps its size, so adding never
 * fails. The caller does the locking. */

#ifndef IBVERBS_TABLE_H
#define IBVERBS_TABLE_H

#include <stdint.h>

#define TABLE_FIRST 16

struct table_link {
	struct table_link *next;
	uint64_t key;
};

struct table {
	struct table_link **bucket;
	unsigned int mask; /* buckets - 1 */
	unsigned int used;
	struct table_link *first[TABLE_FIRST];
};

void table_init(struct table *table);

/* Frees the table. The links belong to the callers. */
void table_destroy(struct table *table);

/* Several links may have the same key. */
void table_add(struct table *table, struct table_link *link, uint64_t key);

/* The link must be in the table. */
void table_del(struct table *table, struct table_link *link);

/* Return a link with this key, or NULL; and the next link with the key of this one, or NULL. */
struct table_link *table_find(const struct table *table, uint64_t key);
struct table_link *table_find_next(const struct table_link *link);

/* Empties the table and returns its links as a list. */
struct table_link *table_take_all(struct table *table);

#endif /* IBVERBS_TABLE_H */
