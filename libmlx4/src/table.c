// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Tables from QP and SRQ numbers to objects, in two levels. mlx4.h explains who may read and
 * write. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>

#include "mlx4.h"

int mlx4_table_init(struct mlx4_table *table, uint32_t num)
{
	if (!num || num & (num - 1))
		return -EINVAL;
	/* The table may be larger than num: numbers that differ modulo num then differ in the
	 * table, too. */
	if (num < MLX4_TABLE_BUCKETS)
		num = MLX4_TABLE_BUCKETS;

	memset(table->bucket, 0, sizeof(table->bucket));
	table->num_mask = num - 1;
	table->shift = __builtin_ctz(num / MLX4_TABLE_BUCKETS);
	table->mask = num / MLX4_TABLE_BUCKETS - 1;
	return -pthread_mutex_init(&table->mutex, NULL);
}

void mlx4_table_destroy(struct mlx4_table *table)
{
	unsigned int i;

	for (i = 0; i < MLX4_TABLE_BUCKETS; ++i)
		free(table->bucket[i]);
	pthread_mutex_destroy(&table->mutex);
}

int mlx4_table_store(struct mlx4_table *table, uint32_t number, void *object)
{
	uint32_t i = number & table->num_mask;
	void **bucket = table->bucket[i >> table->shift];

	if (!bucket) {
		bucket = calloc(table->mask + 1, sizeof(*bucket));
		if (!bucket)
			return -ENOMEM;
		/* Release: pairs with the acquire in mlx4_table_find(). */
		__atomic_store_n(&table->bucket[i >> table->shift], bucket, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&bucket[i & table->mask], object, __ATOMIC_RELEASE);
	return 0;
}

void mlx4_table_clear(struct mlx4_table *table, uint32_t number)
{
	uint32_t i = number & table->num_mask;
	void **bucket = table->bucket[i >> table->shift];

	if (bucket)
		__atomic_store_n(&bucket[i & table->mask], NULL, __ATOMIC_RELEASE);
}
