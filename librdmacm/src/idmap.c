// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Ids by the number that the kernel gave them. The kernel gives the lowest free number, so a table
 * that grows is dense enough. A lock protects it; a caller that looks an id up must know
 * that it lives.
 */

#include <string.h>

#include "cm.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cm_id **table;
static size_t size;

int cm_map_add(struct cm_id *id)
{
	struct cm_id **larger;
	size_t wanted;
	int ret = 0;

	pthread_mutex_lock(&lock);
	if (id->handle >= size) {
		wanted = size ? size : 64;
		while (wanted <= id->handle)
			wanted *= 2;
		larger = realloc(table, wanted * sizeof(*table));
		if (larger) {
			memset(larger + size, 0, (wanted - size) * sizeof(*table));
			table = larger;
			size = wanted;
		} else {
			ret = -ENOMEM;
		}
	}
	if (!ret)
		table[id->handle] = id;
	pthread_mutex_unlock(&lock);
	return ret;
}

void cm_map_remove(struct cm_id *id)
{
	pthread_mutex_lock(&lock);
	/* The kernel may have given the number again already. */
	if (id->handle < size && table[id->handle] == id)
		table[id->handle] = NULL;
	pthread_mutex_unlock(&lock);
}

struct cm_id *cm_map_find(uint32_t handle)
{
	struct cm_id *id;

	pthread_mutex_lock(&lock);
	id = handle < size ? table[handle] : NULL;
	pthread_mutex_unlock(&lock);
	return id;
}
