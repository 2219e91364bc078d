// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Which records match a query. */
#include <stdlib.h>
#include <string.h>

#include "sa.h"
#include "sa_table.h"

bool sa_names(const struct sa_table *t, unsigned int bit)
{
	return mad64(t->asked, AT_MASK) >> bit & 1;
}

static unsigned int bit_of(const uint8_t *r, size_t at)
{
	return r[at / 8] >> (7 - at % 8) & 1;
}

static bool same(const uint8_t *a, const uint8_t *b, const struct sa_component *c)
{
	if (!(c->at % 8) && !(c->bits % 8))
		return !memcmp(a + c->at / 8, b + c->at / 8, c->bits / 8);
	for (size_t i = c->at; i < (size_t)c->at + c->bits; i++)
		if (bit_of(a, i) != bit_of(b, i))
			return false;
	return true;
}

static bool fits(const struct sa_table *t, const uint8_t *record)
{
	for (const struct sa_component *c = t->components; c->bits; c++)
		if (sa_names(t, c->bit) && !same(record, t->asked + AT_SA, c))
			return false;
	return true;
}

void sa_offer(struct sa_table *t, const uint8_t *record)
{
	size_t room;
	uint8_t *more;

	if (t->failed || !fits(t, record))
		return;
	if (t->n == t->room) {
		room = t->room ? t->room * 2 : 16;
		more = realloc(t->data, room * t->size);
		if (!more) {
			t->failed = true;
			return;
		}
		t->data = more;
		t->room = room;
	}
	memcpy(t->data + t->n++ * t->size, record, t->size);
}

bool sa_end_port(struct umad *u, uint32_t i, struct mad_node *n)
{
	if (i == fabric_ports(u)) {
		*n = (struct mad_node){.is_switch = true};
		return true;
	}
	*n = (struct mad_node){0};
	fabric_end_of(u, i + 1, &n->hca, &n->port);
	n->in = n->port;
	return fabric_link(u, n->hca, n->port);
}
