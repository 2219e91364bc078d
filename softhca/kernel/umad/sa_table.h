/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Records that a question asks for. Who has records offers each of them; those that fit the question
 * are kept.
 */
#ifndef SOFTHCA_KERNEL_UMAD_SA_TABLE_H
#define SOFTHCA_KERNEL_UMAD_SA_TABLE_H

#include "fabric.h"

/*
 * A component that a question may name: its bit in the mask, its place in the record, in bits. A
 * list of them ends with one of no bits.
 */
struct sa_component {
	uint8_t bit;
	uint16_t at, bits;
};

struct sa_table {
	struct kernel *k;
	const struct mad_way *way;
	const uint8_t *asked; /* the MAD */
	const struct sa_component *components;
	size_t size; /* of a record, with its padding */
	uint8_t *data;
	size_t n, room;
	bool failed; /* no memory */
};

/* Does the question name that component? */
bool sa_names(const struct sa_table *t, unsigned int bit);
/* Keeps the record if it fits. */
void sa_offer(struct sa_table *t, const uint8_t *record);

/*
 * The end ports that a subnet manager has found, from 0 to fabric_ports(): those with a link, and
 * last the switch. False: this one has no link.
 */
bool sa_end_port(struct kernel *k, uint32_t i, struct mad_node *n);

/* Which records an attribute has: false, none are known. */
bool sa_collect(struct sa_table *t);

#endif
