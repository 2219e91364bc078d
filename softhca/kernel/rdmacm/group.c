// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The groups of the subnet.
 */
#include <stdlib.h>
#include <string.h>

#include "softhca/kernel/lists.h"
#include "softhca/kernel/room.h"
#include "group.h"
#include "rdmacm.h"

#define FIRST_MLID 0xc000u
#define LAST_MLID  0xfffeu
_Static_assert(LAST_MLID - FIRST_MLID < CM_MLIDS, "a bit for each");
#define SCOPE 2 /* of the broadcast group */

/* The lowest one that no group has; 0: none is left. */
static uint16_t take_mlid(struct rdmacm *cm)
{
	for (uint32_t word = 0; word < CM_MLIDS / 64; word++) {
		uint64_t unused = ~cm->mlids[word];
		uint32_t bit;

		if (!unused)
			continue;
		bit = (uint32_t)__builtin_ctzll(unused);
		if (FIRST_MLID + word * 64 + bit > LAST_MLID)
			return 0;
		cm->mlids[word] |= UINT64_C(1) << bit;
		return (uint16_t)(FIRST_MLID + word * 64 + bit);
	}
	return 0;
}

static void return_mlid(struct rdmacm *cm, uint16_t mlid)
{
	uint32_t number = mlid - FIRST_MLID;

	cm->mlids[number / 64] &= ~(UINT64_C(1) << number % 64);
}

struct cm_group *cm_group_find(struct rdmacm *cm, const uint8_t mgid[16])
{
	struct cm_group *g;

	DL_FOREACH(cm->groups, g)
	if (!memcmp(g->mgid, mgid, 16))
		return g;
	return NULL;
}

static void name(struct cm_group *g)
{
	g->mgid[0] = 0xff;
	g->mgid[1] = 0x10 | SCOPE;
	g->mgid[2] = 0xa0;
	g->mgid[3] = 0x1b;
	g->mgid[14] = (uint8_t)(g->mlid >> 8);
	g->mgid[15] = (uint8_t)g->mlid;
}

struct cm_group *cm_group_new(struct rdmacm *cm, const uint8_t mgid[16])
{
	static const uint8_t zero[16];
	struct cm_group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->mlid = take_mlid(cm);
	if (!g->mlid) {
		free(g);
		return NULL;
	}
	memcpy(g->mgid, mgid, 16);
	if (!memcmp(mgid, zero, 16))
		name(g);
	DL_APPEND(cm->groups, g);
	ROOMS(group, cm->k, g->mgid, true);
	return g;
}

struct cm_group_port *cm_group_port(struct cm_group *g, uint32_t hca, uint32_t port)
{
	struct cm_group_port *p;

	DL_FOREACH(g->ports, p)
	if (p->hca == hca && p->port == port)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->hca = hca;
	p->port = port;
	DL_APPEND(g->ports, p);
	return p;
}

void cm_group_put(struct rdmacm *cm, struct cm_group *g)
{
	struct cm_group_port *p, *tmp;

	if (!g)
		return;
	DL_FOREACH_SAFE(g->ports, p, tmp)
	if (!p->ids && !p->join) {
		DL_DELETE(g->ports, p);
		free(p);
	}
	if (g->ports)
		return;
	DL_DELETE(cm->groups, g);
	ROOMS(group, cm->k, g->mgid, false);
	return_mlid(cm, g->mlid);
	free(g);
}

void cm_groups_free(struct rdmacm *cm)
{
	struct cm_group_port *p;

	while (cm->groups) {
		DL_FOREACH(cm->groups->ports, p)
		p->ids = p->join = 0;
		cm_group_put(cm, cm->groups);
	}
}

/* ---- by record ---- */

void cm_groups_each(struct rdmacm *cm, void (*fn)(void *arg, const struct cm_group *g), void *arg)
{
	const struct cm_group *g;

	DL_FOREACH(cm->groups, g)
	fn(arg, g);
}

const struct cm_group *cm_groups_find(struct rdmacm *cm, const uint8_t mgid[16])
{
	return cm_group_find(cm, mgid);
}

uint32_t cm_groups_joined(struct rdmacm *cm, uint32_t hca, uint32_t port)
{
	const struct cm_group_port *p;
	const struct cm_group *g;
	uint32_t n = 0;

	DL_FOREACH(cm->groups, g)
	DL_FOREACH(g->ports, p)
	n += p->hca == hca && p->port == port && p->join;
	return n;
}

static struct cm_group *made_like(struct rdmacm *cm, const struct cm_group *like)
{
	struct cm_group *g = cm_group_new(cm, like->mgid);

	if (!g)
		return NULL;
	g->mtu = like->mtu;
	g->rate = like->rate;
	g->qkey = like->qkey;
	g->pkey = like->pkey;
	g->route = like->route;
	g->traffic_class = like->traffic_class;
	return g;
}

const struct cm_group *cm_groups_join(struct rdmacm *cm, const struct cm_group *like, uint32_t hca,
				      uint32_t port, uint8_t join, const struct cm_group_port **p)
{
	struct cm_group *g = cm_group_find(cm, like->mgid);
	struct cm_group_port *its;

	if (!g)
		g = made_like(cm, like);
	its = g ? cm_group_port(g, hca, port) : NULL;
	if (!its) {
		cm_group_put(cm, g);
		return NULL;
	}
	its->join |= join;
	*p = its;
	return g;
}

bool cm_groups_leave(struct rdmacm *cm, const uint8_t mgid[16], uint32_t hca, uint32_t port,
		     uint8_t join, struct cm_group *g, struct cm_group_port *p)
{
	struct cm_group *its = cm_group_find(cm, mgid);
	struct cm_group_port *member;

	if (!its)
		return false;
	DL_FOREACH(its->ports, member)
	if (member->hca == hca && member->port == port)
		break;
	if (!member || (member->join & join) != join)
		return false;
	member->join &= (uint8_t)~join;
	*g = *its;
	*p = *member;
	cm_group_put(cm, its);
	return true;
}

void cm_groups_port_gone(struct rdmacm *cm, uint32_t hca, uint32_t port)
{
	struct cm_group *g, *tmp;
	struct cm_group_port *p;

	DL_FOREACH_SAFE(cm->groups, g, tmp)
	{
		DL_FOREACH(g->ports, p)
		if (p->hca == hca && p->port == port)
			p->join = 0;
		cm_group_put(cm, g);
	}
}
