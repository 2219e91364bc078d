// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Hash tables that grow: see table.h. */

#include <stdlib.h>
#include <string.h>

#include "table.h"

/* The multiplication spreads keys that come in steps, such as addresses, over all buckets. */
static struct table_link **bucket_of(const struct table *table, uint64_t key)
{
	return &table->bucket[(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & table->mask];
}

void table_init(struct table *table)
{
	memset(table, 0, sizeof(*table));
	table->bucket = table->first;
	table->mask = TABLE_FIRST - 1;
}

void table_destroy(struct table *table)
{
	if (table->bucket != table->first)
		free(table->bucket);
}

static void put(struct table *table, struct table_link *link)
{
	struct table_link **bucket = bucket_of(table, link->key);

	link->next = *bucket;
	*bucket = link;
}

static void grow(struct table *table)
{
	struct table bigger = {.mask = table->mask * 2 + 1, .used = table->used};
	struct table_link *link;
	unsigned int i;

	bigger.bucket = calloc((size_t)bigger.mask + 1, sizeof(*bigger.bucket));
	if (!bigger.bucket)
		return;
	for (i = 0; i <= table->mask; ++i)
		while ((link = table->bucket[i])) {
			table->bucket[i] = link->next;
			put(&bigger, link);
		}
	table_destroy(table);
	table->bucket = bigger.bucket;
	table->mask = bigger.mask;
}

void table_add(struct table *table, struct table_link *link, uint64_t key)
{
	if (table->used > table->mask && table->mask < UINT32_MAX / 4)
		grow(table);
	link->key = key;
	put(table, link);
	++table->used;
}

void table_del(struct table *table, struct table_link *link)
{
	struct table_link **at = bucket_of(table, link->key);

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	--table->used;
}

static struct table_link *with_key(struct table_link *link, uint64_t key)
{
	while (link && link->key != key)
		link = link->next;
	return link;
}

struct table_link *table_find(const struct table *table, uint64_t key)
{
	return with_key(*bucket_of(table, key), key);
}

struct table_link *table_find_next(const struct table_link *link)
{
	return with_key(link->next, link->key);
}

struct table_link *table_take_all(struct table *table)
{
	struct table_link *all = NULL, *link;
	unsigned int i;

	for (i = 0; i <= table->mask; ++i)
		while ((link = table->bucket[i])) {
			table->bucket[i] = link->next;
			link->next = all;
			all = link;
		}
	table->used = 0;
	return all;
}
