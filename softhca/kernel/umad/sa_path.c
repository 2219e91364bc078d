// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Paths, as rdma_cm gives them; the switch's port 0 is an end, too. A query may name attributes
 * that the path is to have. Those of the real path are limits: a query may get a smaller MTU or
 * rate, or a longer packet lifetime. Two ports without a P_Key in common have no path.
 *
 *	OCTET	OF A RECORD			COMPONENT
 *	0	service				0, 1
 *	8	destination GID, source GID	2, 3
 *	40	destination LID, source LID	4, 5
 *	44	flow label, hop limit, class	8 to 10
 *	49	reversible, number		11, 12
 *	50	P_Key				13
 *	52	QoS class, service level	14, 15
 *	54	MTU, rate, life, with selectors	16 to 21
 */
#include <endian.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/kernel/rdmacm/group.h"
#include "softhca/kernel/rdmacm/id.h"
#include "softhca/kernel/rdmacm/path.h"
#include "sa.h"
#include "sa_path.h"

enum path_at {
	DGID = 8,
	SGID = 24,
	DLID = 40,
	SLID = 42,
	PKEY = 50,
	QOS_SL = 52,
	MTU = 54,
	RATE,
	LIFE
};
enum selector { GREATER, LESS, EXACTLY, LARGEST };

const struct sa_component sa_path_components[] = {{PATH_DGID, 64, 128},
						  {PATH_SGID, 192, 128},
						  {PATH_DLID, 320, 16},
						  {PATH_SLID, 336, 16},
						  {0, 0, 0}};

/* Codes of rates, from slow to fast. */
static const uint8_t rates[] = {2, 5, 3, 6, 4, 7, 8, 9, 10};

unsigned int sa_rate_rank(uint8_t rate)
{
	for (unsigned int i = 0; i < sizeof(rates); i++)
		if (rates[i] == rate)
			return i;
	return sizeof(rates);
}

uint8_t sa_rate_of_rank(unsigned int rank)
{
	return rank < sizeof(rates) ? rates[rank] : 0;
}

bool sa_limit(unsigned int *own, unsigned int asked, unsigned int selector, bool most)
{
	switch (selector) {
	case GREATER:
		if (!most && asked >= *own)
			*own = asked + 1;
		return *own > asked;
	case LESS:
		if (most && asked && asked <= *own)
			*own = asked - 1;
		return *own < asked;
	case EXACTLY:
		if (most ? asked > *own : asked < *own)
			return false;
		*own = asked;
		return true;
	default:
		return true;
	}
}

static bool limits(const struct sa_table *t, struct cm_path *p)
{
	static const struct {
		uint8_t bit, at;
	} all[] = {
		{PATH_MTU_SELECTOR, MTU}, {PATH_RATE_SELECTOR, RATE}, {PATH_LIFE_SELECTOR, LIFE}};
	unsigned int own[3] = {p->mtu, sa_rate_rank(p->rate), p->life};

	for (unsigned int i = 0; i < 3; i++) {
		uint8_t asked = t->asked[AT_SA + all[i].at];
		unsigned int value = all[i].at == RATE ? sa_rate_rank(asked & 0x3f) : asked & 0x3f;
		unsigned int selector = sa_names(t, all[i].bit) ? asked >> 6 : EXACTLY;

		if ((sa_names(t, all[i].bit + 1u) || selector == LARGEST) &&
		    !sa_limit(&own[i], value, selector, all[i].at != LIFE))
			return false;
	}
	if (!own[0] || own[1] >= sizeof(rates) || own[2] > 0x1f)
		return false;
	p->mtu = (uint8_t)own[0];
	p->rate = rates[own[1]];
	p->life = (uint8_t)own[2];
	return true;
}

static const struct sh_port *port_of(struct umad *u, const struct mad_node *n)
{
	return n->is_switch ? NULL : &sh_hca(u->dev, n->hca)->port[n->port - 1];
}

static void gid_of(struct umad *u, const struct mad_node *n, uint8_t gid[16])
{
	if (!n->is_switch) {
		memcpy(gid, port_of(u, n)->gid[0], 16);
		return;
	}
	mad_put64(gid, 0, FABRIC_PREFIX);
	mad_put64(gid, 8, fabric_switch_guid());
}

/* The LID that is asked for, of those that a port has by its LMC. */
static uint16_t lid_among(const struct sa_table *t, const struct mad_node *n, unsigned int bit,
			  size_t at)
{
	uint32_t lid = fabric_lid_of(t->u, n), asked = mad16(t->asked, AT_SA + at);
	const struct sh_port *p = port_of(t->u, n);

	return (uint16_t)(p && sa_names(t, bit) && asked - lid < 1u << (p->lmc & 7) ? asked : lid);
}

/*
 * Finds the P_Key by which one node sends to another. wanted: only one of this partition will do,
 * unless it is 0.
 */
static bool pkey_with(struct umad *u, const struct mad_node *from, const struct mad_node *to,
		      uint16_t wanted, uint16_t *pkey)
{
	const struct sh_port *a = port_of(u, from), *b = port_of(u, to);
	static const uint16_t of_switch[1] = {0xffff};
	uint32_t na = a ? SH_PKEYS : 1, nb = b ? SH_PKEYS : 1;

	for (uint32_t i = 0; i < na; i++) {
		uint16_t mine = a ? (uint16_t)a->pkey[i] : of_switch[0];

		if (!(mine & 0x7fff) || (wanted & 0x7fff && (mine ^ wanted) & 0x7fff))
			continue;
		for (uint32_t j = 0; j < nb; j++) {
			uint16_t its = b ? (uint16_t)b->pkey[j] : of_switch[0];

			/* Two limited members do not talk to each other. */
			if (!((mine ^ its) & 0x7fff) && (mine | its) & 0x8000) {
				*pkey = mine;
				return true;
			}
		}
	}
	return false;
}

static void offer(struct sa_table *t, struct cm_path *p)
{
	union {
		struct cm_path_record record;
		uint8_t bytes[64];
	} r;
	uint16_t asked = mad16(t->asked, AT_SA + QOS_SL), qos_sl;

	_Static_assert(sizeof(r.record) == sizeof(r.bytes), "PathRecord");
	if (!limits(t, p))
		return;
	cm_path_record(p, &r.record);
	/* All services are on all levels. */
	qos_sl = (uint16_t)((sa_names(t, PATH_QOS_CLASS) ? asked & 0xfff0 : 0) |
			    (sa_names(t, PATH_SL) ? asked & 15 : 0));
	mad_put16(r.bytes, QOS_SL, qos_sl);
	sa_offer(t, r.bytes);
}

static void pair(struct sa_table *t, const struct mad_node *from, const struct mad_node *to)
{
	uint16_t wanted = sa_names(t, PATH_PKEY) ? mad16(t->asked, AT_SA + PKEY) : 0;
	struct cm_path p = {0};

	/* The attributes of the path between any two ports are those between a port and itself. */
	if (from->is_switch || to->is_switch)
		cm_path_between(t->u->cm, 0, 1, 0, 1, &p);
	else
		cm_path_between(t->u->cm, from->hca, from->port, to->hca, to->port, &p);
	gid_of(t->u, from, p.sgid);
	gid_of(t->u, to, p.dgid);
	p.slid = lid_among(t, from, PATH_SLID, SLID);
	p.dlid = lid_among(t, to, PATH_DLID, DLID);
	if (pkey_with(t->u, from, to, wanted, &p.pkey))
		offer(t, &p);
}

static const struct cm_group *group_asked(const struct sa_table *t)
{
	const uint8_t *dgid = t->asked + AT_SA + DGID;

	return sa_names(t, PATH_DGID) && dgid[0] == 0xff ? cm_groups_find(t->u->cm, dgid) : NULL;
}

static void to_group(struct sa_table *t, const struct mad_node *from, const struct cm_group *g)
{
	uint16_t wanted = sa_names(t, PATH_PKEY) ? mad16(t->asked, AT_SA + PKEY) : g->pkey;
	struct cm_path p = {0};

	if (from->is_switch || (wanted ^ g->pkey) & 0x7fff)
		return;
	cm_path_between(t->u->cm, from->hca, from->port, from->hca, from->port, &p);
	memcpy(p.dgid, g->mgid, 16);
	p.slid = lid_among(t, from, PATH_SLID, SLID);
	p.dlid = g->mlid;
	p.pkey = g->pkey;
	offer(t, &p);
}

void sa_paths(struct sa_table *t)
{
	bool own = mad_is_get(t->asked) && !sa_names(t, PATH_SGID) && !sa_names(t, PATH_SLID);
	const struct cm_group *g = group_asked(t);
	struct mad_node from, to;

	for (uint32_t i = 0; i <= fabric_ports(t->u); i++) {
		if (!sa_end_port(t->u, i, &from) ||
		    (own &&
		     (from.is_switch || from.hca != t->way->hca || from.port != t->way->port)))
			continue;
		if (g)
			to_group(t, &from, g);
		for (uint32_t j = 0; !g && j <= fabric_ports(t->u); j++)
			if (sa_end_port(t->u, j, &to))
				pair(t, &from, &to);
	}
}

static bool gid_known(struct umad *u, const uint8_t gid[16])
{
	struct mad_node n;
	uint8_t its[16];

	for (uint32_t i = 0; i <= fabric_ports(u); i++) {
		if (!sa_end_port(u, i, &n))
			continue;
		gid_of(u, &n, its);
		if (!memcmp(its, gid, 16))
			return true;
	}
	return false;
}

bool sa_path_stranger(const struct sa_table *t)
{
	return (sa_names(t, PATH_DGID) && !group_asked(t) &&
		!gid_known(t->u, t->asked + AT_SA + DGID)) ||
	       (sa_names(t, PATH_SGID) && !gid_known(t->u, t->asked + AT_SA + SGID));
}
