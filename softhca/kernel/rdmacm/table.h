/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Numbers that name something, from 0 upwards, lowest free first.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_TABLE_H
#define SOFTHCA_KERNEL_RDMACM_TABLE_H

#include <stdint.h>

struct cm_table {
	void **slot;		  /* NULL where a number is free */
	uint32_t size, used, low; /* no number below low is free */
};

int cm_table_add(struct cm_table *t, void *what, uint32_t *number); /* 0 or -ENOMEM */
void *cm_table_get(const struct cm_table *t, uint32_t number);	    /* or NULL */
void cm_table_del(struct cm_table *t, uint32_t number);
void cm_table_exit(struct cm_table *t);

#endif
