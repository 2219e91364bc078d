// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Joining and leaving multicast groups by MCMemberRecord. Such a membership belongs to the port,
 * not to the program that asked for it. It ends when any program of the port sends a Delete, or
 * when the port goes down.
 *
 *	OFFSET	OF A RECORD		COMPONENT
 *	0	MGID			0
 *	16	port GID		1
 *	32	Q_Key			2
 *	36	MLID			3
 *	38	MTU, with selector	4, 5
 *	39	traffic class		6
 *	40	P_Key			7
 *	42	rate, with selector	8, 9
 *	43	life, with selector	10, 11
 *	44	SL, flow label, hops	12 to 14
 *	48	scope, JoinState	15, 16
 */
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/kernel/lists.h"
#include "softhca/kernel/rdmacm/group.h"
#include "sa.h"
#include "sa_group.h"
#include "sa_path.h"

#define PORT_GROUPS 256 /* A port in as many groups cannot create another one. */

const struct sa_component sa_group_components[] = {
	{0, 0, 128},  {1, 128, 128}, {2, 256, 32}, {3, 288, 16}, {6, 312, 8}, {7, 320, 16},
	{12, 352, 4}, {13, 356, 20}, {14, 376, 8}, {15, 384, 4}, {0, 0, 0},
};

enum group_at {
	PORT_GID = 16,
	QKEY = 32,
	MLID = 36,
	MTU = 38,
	CLASS = 39,
	PKEY = 40,
	RATE = 42,
	LIFE = 43,
	ROUTE = 44,
	SCOPE = 48,
};
#define JOIN_COMPONENTS	  (1u << 0 | 1u << 1 | 1u << 16)
#define CREATE_COMPONENTS (1u << 2 | 1u << 6 | 1u << 7 | 1u << 12 | 1u << 13)
#define FULL_MEMBER	  1
#define EXACTLY		  0x80
#define MTU_2048	  4
#define MTU_4096	  5 /* of every port */
#define RATE_40		  7
#define LIFE_67MS	  14
#define OWN_SIGNATURE	  0xa01b /* in the MGIDs that the administrator chooses */
#define LINK_LOCAL	  2
#define TRANSIENT	  1 /* the only flag of an MGID that groups here can have */

void sa_group_record(struct umad *u, const struct cm_group *g, const struct cm_group_port *p,
		     uint8_t r[GROUP_RECORD_SIZE])
{
	memcpy(r, g->mgid, 16);
	if (p)
		memcpy(r + PORT_GID, sh_hca(u->dev, p->hca)->port[p->port - 1].gid[0], 16);
	mad_put32(r, QKEY, g->qkey);
	mad_put16(r, MLID, g->mlid);
	r[MTU] = EXACTLY | (g->mtu ? g->mtu : MTU_2048);
	r[CLASS] = g->traffic_class;
	mad_put16(r, PKEY, g->pkey);
	r[RATE] = EXACTLY | (g->rate ? g->rate : RATE_40);
	r[LIFE] = EXACTLY | LIFE_67MS;
	mad_put32(r, ROUTE, g->route);
	r[SCOPE] = (uint8_t)((g->mgid[1] & 15) << 4);
	if (p)
		r[SCOPE] |= p->join | (p->ids ? FULL_MEMBER : 0);
}

/* An attribute with a selector: above, below or equal. Its component bit follows the selector's. */
static bool attribute_fits(const struct sa_table *t, const uint8_t *r, unsigned int selector,
			   size_t at)
{
	unsigned int own = r[at] & 0x3f, asked = t->asked[AT_SA + at] & 0x3f;

	/* The codes of rates are not in the order of the rates. */
	if (at == RATE) {
		own = sa_rate_rank(own);
		asked = sa_rate_rank(asked);
	}
	if (!sa_names(t, selector + 1))
		return true;
	switch (sa_names(t, selector) ? t->asked[AT_SA + at] >> 6 : EXACTLY >> 6) {
	case 0:
		return own > asked;
	case 1:
		return own < asked;
	case EXACTLY >> 6:
		return own == asked;
	default:
		return true;
	}
}

static bool group_fits(const struct sa_table *t, const uint8_t *r)
{
	return attribute_fits(t, r, 4, MTU) && attribute_fits(t, r, 8, RATE) &&
	       attribute_fits(t, r, 10, LIFE);
}

/* A query with a JoinState matches members that have at least one of its bits. */
static bool member_fits(const struct sa_table *t, const uint8_t *r)
{
	return group_fits(t, r) && (!sa_names(t, 16) || r[SCOPE] & t->asked[AT_SA + SCOPE] & 15);
}

/* Only a requester that knows the key of the subnet manager gets the members of a group. */
static void offer(void *arg, const struct cm_group *g)
{
	uint8_t r[GROUP_RECORD_SIZE] = {0};
	const struct cm_group_port *p;
	struct sa_table *t = arg;

	sa_group_record(t->u, g, NULL, r);
	if (!mad64(t->asked, AT_SM_KEY)) {
		if (group_fits(t, r))
			sa_offer(t, r);
		return;
	}
	DL_FOREACH(g->ports, p)
	{
		memset(r, 0, sizeof(r));
		sa_group_record(t->u, g, p, r);
		if (member_fits(t, r))
			sa_offer(t, r);
	}
}

void sa_groups(struct sa_table *t)
{
	cm_groups_each(t->u->cm, offer, t);
}

static bool port_of_gid(struct umad *u, const uint8_t gid[16], uint32_t *hca, uint32_t *port)
{
	for (uint32_t i = 0; i < fabric_ports(u); i++) {
		fabric_end_of(u, i + 1, hca, port);
		if (fabric_link(u, *hca, *port) &&
		    !memcmp(sh_hca(u->dev, *hca)->port[*port - 1].gid[0], gid, 16))
			return true;
	}
	return false;
}

/* The selector of such an attribute, or -1 if the request does not ask for it. */
static int selector(const uint8_t *mad, unsigned int bit, size_t at)
{
	uint64_t mask = mad64(mad, AT_MASK);

	if (!(mask >> (bit + 1) & 1) || !(mad[AT_SA + at] & 0x3f))
		return -1;
	return mask >> bit & 1 ? mad[AT_SA + at] >> 6 : EXACTLY >> 6;
}

/* A new group gets what the request asks for, if ports support it. */
static bool can_have(const uint8_t *mad, struct cm_group *g)
{
	unsigned int mtu = MTU_4096, rate = sa_rate_rank(RATE_40);
	int select = selector(mad, 4, MTU);

	if (select >= 0) {
		if (!sa_limit(&mtu, mad[AT_SA + MTU] & 0x3f, (unsigned int)select, true) || !mtu)
			return false;
		g->mtu = (uint8_t)mtu;
	}
	select = selector(mad, 8, RATE);
	if (select >= 0) {
		if (!sa_limit(&rate, sa_rate_rank(mad[AT_SA + RATE] & 0x3f), (unsigned int)select,
			      true))
			return false;
		g->rate = sa_rate_of_rank(rate);
	}
	return true;
}

/* Does the group match what the request says of it? */
static bool agrees(struct umad *u, const struct cm_group *g, const uint8_t *mad)
{
	const struct sa_table t = {.u = u, .asked = mad};
	const uint8_t *asked = mad + AT_SA;
	uint64_t mask = mad64(mad, AT_MASK);
	uint8_t r[GROUP_RECORD_SIZE] = {0};

	sa_group_record(u, g, NULL, r);
	return (selector(mad, 4, MTU) < 0 || attribute_fits(&t, r, 4, MTU)) &&
	       (selector(mad, 8, RATE) < 0 || attribute_fits(&t, r, 8, RATE)) &&
	       (!(mask >> 2 & 1) || mad32(asked, QKEY) == g->qkey) &&
	       (!(mask >> 3 & 1) || mad16(asked, MLID) == g->mlid) &&
	       (!(mask >> 7 & 1) || !((mad16(asked, PKEY) ^ g->pkey) & 0x7fff));
}

static void answer(struct umad *u, uint8_t *mad, const struct cm_group *g,
		   const struct cm_group_port *p)
{
	memset(mad + AT_SA, 0, MAD_SIZE - AT_SA);
	sa_group_record(u, g, p, mad + AT_SA);
	mad_put16(mad, AT_OFFSET, GROUP_RECORD_SIZE / 8);
}

/*
 * May a request create a group of this MGID? 0 asks the administrator to choose one; those with its
 * signature and the scope of the subnet are for it alone to choose.
 */
static bool name_ok(const uint8_t mgid[16])
{
	static const uint8_t zero[16];

	if (!memcmp(mgid, zero, 16))
		return true;
	return mgid[0] == 0xff && mgid[1] >> 4 <= TRANSIENT &&
	       (mad16(mgid, 2) != OWN_SIGNATURE || (mgid[1] & 15) != LINK_LOCAL);
}

/* What a group gets that a request makes, but for its MGID. The status: 0, or why it cannot. */
static int make(const uint8_t *mad, struct cm_group *g)
{
	const uint8_t *asked = mad + AT_SA;

	if ((mad64(mad, AT_MASK) & CREATE_COMPONENTS) != CREATE_COMPONENTS)
		return SA_STATUS(SA_INSUFFICIENT);
	if (!(asked[SCOPE] & FULL_MEMBER) || !name_ok(asked))
		return SA_STATUS(SA_INVALID);
	if (!can_have(mad, g))
		return SA_STATUS(SA_INVALID);
	g->qkey = mad32(asked, QKEY);
	g->pkey = mad16(asked, PKEY) | 0x8000;
	g->route = mad32(asked, ROUTE);
	g->traffic_class = asked[CLASS];
	return 0;
}

int sa_group_join(struct umad *u, uint8_t *mad)
{
	uint64_t mask = mad64(mad, AT_MASK);
	const uint8_t *asked = mad + AT_SA;
	const struct cm_group_port *p;
	struct cm_group like = {0};
	const struct cm_group *g;
	uint32_t hca, port;
	int status;

	if ((mask & JOIN_COMPONENTS) != JOIN_COMPONENTS || !(asked[SCOPE] & 15))
		return SA_STATUS(SA_INVALID);
	if (!port_of_gid(u, asked + PORT_GID, &hca, &port))
		return SA_STATUS(SA_INVALID_GID);
	memcpy(like.mgid, asked, 16);
	g = cm_groups_find(u->cm, asked);
	if (g && !agrees(u, g, mad))
		return SA_STATUS(SA_INVALID);
	/*
	 * Without a limit one program could fill the tables of the subnet and slow down every
	 * command.
	 */
	if (!g && cm_groups_joined(u->cm, hca, port) >= PORT_GROUPS)
		return SA_STATUS(SA_NO_RESOURCES);
	if (!g && (status = make(mad, &like)))
		return status;
	g = cm_groups_join(u->cm, &like, hca, port, asked[SCOPE] & 15, &p);
	if (!g)
		return SA_STATUS(SA_NO_RESOURCES);
	answer(u, mad, g, p);
	return 0;
}

int sa_group_leave(struct umad *u, uint8_t *mad)
{
	uint64_t mask = mad64(mad, AT_MASK);
	uint8_t *asked = mad + AT_SA, gone = asked[SCOPE] & 15;
	struct cm_group_port left;
	struct cm_group g;
	uint32_t hca, port;

	if ((mask & JOIN_COMPONENTS) != JOIN_COMPONENTS || !gone)
		return SA_STATUS(SA_INVALID);
	if (!port_of_gid(u, asked + PORT_GID, &hca, &port) ||
	    !cm_groups_leave(u->cm, asked, hca, port, gone, &g, &left))
		return SA_STATUS(SA_INVALID);
	/* The answer says which memberships are left. */
	answer(u, mad, &g, &left);
	return 0;
}

void sa_group_gone(struct umad *u, uint32_t hca, uint32_t port)
{
	cm_groups_port_gone(u->cm, hca, port);
}
