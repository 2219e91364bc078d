// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Look-up by number, at the same cost however many there are: a hash table of links that their owners embed.
 * It grows with what is in it and never fails: without memory it stays as large as it is. Locking is the
 * caller's. */

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
	unsigned int mask;		/* buckets - 1 */
	unsigned int used;
	struct table_link *first[TABLE_FIRST];
};

void table_init(struct table *table);

/* The links are their owners'. */
void table_destroy(struct table *table);

/* Several may have the same key. */
void table_add(struct table *table, struct table_link *link, uint64_t key);

/* A link that is in the table. */
void table_del(struct table *table, struct table_link *link);

/* One with this key, or NULL; and after one, the next with the same key. */
struct table_link *table_find(const struct table *table, uint64_t key);
struct table_link *table_find_next(const struct table_link *link);

/* All that were in it, as a list; it is empty then. */
struct table_link *table_take_all(struct table *table);

#endif /* IBVERBS_TABLE_H */
