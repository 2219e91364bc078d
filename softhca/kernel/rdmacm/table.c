// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Numbers that name something. A search begins at the lowest number that may be free. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

#define FIRST_SIZE 64
#define LAST_SIZE  (1u << 20)

int cm_table_add(struct cm_table *t, void *what, uint32_t *number)
{
	uint32_t i, size;
	void **grown;

	for (i = t->low; i < t->size && t->slot[i]; i++)
		;
	if (i == t->size) {
		size = t->size ? t->size * 2 : FIRST_SIZE;
		grown = size > LAST_SIZE ? NULL : realloc(t->slot, size * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + t->size, 0, (size - t->size) * sizeof(*grown));
		t->slot = grown;
		t->size = size;
	}
	t->slot[i] = what;
	t->low = i + 1;
	t->used++;
	*number = i;
	return 0;
}

void *cm_table_get(const struct cm_table *t, uint32_t number)
{
	return number < t->size ? t->slot[number] : NULL;
}

void cm_table_del(struct cm_table *t, uint32_t number)
{
	if (number >= t->size || !t->slot[number])
		return;
	t->slot[number] = NULL;
	t->used--;
	if (number < t->low)
		t->low = number;
}

void cm_table_exit(struct cm_table *t)
{
	free(t->slot);
	memset(t, 0, sizeof(*t));
}
