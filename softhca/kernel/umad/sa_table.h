/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Records that a query asks for. Each owner of records offers them one by one; the table keeps
 * those that match the query.
 */
#ifndef SOFTHCA_KERNEL_UMAD_SA_TABLE_H
#define SOFTHCA_KERNEL_UMAD_SA_TABLE_H

#include "fabric.h"

/*
 * A component that a query may name: its bit in the mask, and its place in the record, in bits. A
 * list of components ends with one of 0 bits.
 */
struct sa_component {
	uint8_t bit;
	uint16_t at, bits;
};

struct sa_table {
	struct umad *u;
	const struct mad_way *way;
	const uint8_t *asked; /* the MAD */
	const struct sa_component *components;
	size_t size; /* of a record, with its padding */
	uint8_t *data;
	size_t n, room;
	bool failed; /* no memory */
};

/* Does the query name that component? */
bool sa_names(const struct sa_table *t, unsigned int bit);
/* Keeps the record if it matches the query. */
void sa_offer(struct sa_table *t, const uint8_t *record);

/*
 * The end ports that a subnet manager has found, from 0 to fabric_ports(): those with a link, and
 * last the switch. False: this one has no link.
 */
bool sa_end_port(struct umad *u, uint32_t i, struct mad_node *n);

/* Collects the records that the query asks for. False: its attribute is none that has records. */
bool sa_collect(struct sa_table *t);

#endif
