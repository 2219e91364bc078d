/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Ids in the order in which something of them is due: a heap.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_DUE_H
#define SOFTHCA_KERNEL_RDMACM_DUE_H

#include <stdint.h>

struct cm_id;

struct cm_due {
	struct cm_id **heap; /* no id is due before the one at (i - 1) / 2 */
	uint32_t used, room;
};

/*
 * Makes room for so many ids, so that cm_due_set() never fails. 0 or -ENOMEM.
 */
int cm_due_reserve(struct cm_due *d, uint32_t ids);
/* due 0: nothing is due. */
void cm_due_set(struct cm_due *d, struct cm_id *id, uint64_t due);
struct cm_id *cm_due_first(const struct cm_due *d); /* or NULL */
void cm_due_exit(struct cm_due *d);

#endif
