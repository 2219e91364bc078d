// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Subscriptions to notices, each of one LID and queue pair. One ends when its subscriber cancels
 * it, when the subscriber's port goes down, or when the built-in subnet manager gives way.
 *
 *	OCTET	OF AN INFORMINFO
 *	0	GID, or 0; first LID (0xffff: all), last LID; 2 reserved
 *	22	generic, subscribe (0: cancel)
 *	24	type (0xffff: all), number (0xffff: all)
 *	28	queue pair (24 bits) whose subscription is cancelled; response time
 *	33	producer's type, of three octets (0xffffff: all)
 *
 *	OCTET	OF A RECORD
 *	0	subscriber's GID, number; 6 reserved; InformInfo
 */
#include <stdlib.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/transport/fabric.h"
#include "softhca/kernel/lists.h"
#include "sa.h"
#include "sa_inform.h"

#define SUBSCRIPTIONS 4096 /* of all ports */
#define OF_A_PORT     64   /* of one port */
#define INFORM_SIZE   36
#define RECORD_INFORM 24 /* offset of the InformInfo in a record */

enum inform_at {
	FIRST_LID = 16,
	LAST_LID = 18,
	GENERIC = 22,
	SUBSCRIBE = 23,
	TYPE = 24,
	NUMBER = 26,
	QPN = 28,
	PRODUCER = 32,
};
#define ALL 0xffff

const struct sa_component sa_inform_components[] = {{0, 0, 128}, {1, 128, 16}, {0, 0, 0}};

struct inform {
	struct inform *prev, *next;
	uint16_t number;
	struct mad_way way; /* back to the subscriber */
	uint32_t hca, port; /* of the subscriber: its LID may change */
	uint8_t asked[INFORM_SIZE];
};

/* The subscription that a request is about? A cancellation may come from another queue pair. */
static bool same(const struct inform *i, const struct mad_way *w, const uint8_t *asked)
{
	uint32_t qpn = mad32(asked, QPN) >> 8;

	return i->way.dlid == w->slid &&
	       (i->way.to_qpn == w->qpn || (!asked[SUBSCRIBE] && i->way.to_qpn == qpn)) &&
	       !memcmp(i->asked, asked, SUBSCRIBE) &&
	       !memcmp(i->asked + TYPE, asked + TYPE, QPN - TYPE) &&
	       !memcmp(i->asked + PRODUCER + 1, asked + PRODUCER + 1, 3);
}

static struct inform *find(struct umad *u, const struct mad_way *w, const uint8_t *asked)
{
	struct inform *i;

	DL_FOREACH(u->informs, i)
	if (same(i, w, asked))
		return i;
	return NULL;
}

static void drop(struct umad *u, struct inform *i)
{
	DL_DELETE(u->informs, i);
	u->ninforms--;
	free(i);
}

/* How many subscriptions a port has, over all of its programs. */
static uint32_t count(struct umad *u, uint32_t hca, uint32_t port)
{
	const struct inform *i;
	uint32_t n = 0;

	DL_FOREACH(u->informs, i)
	n += i->hca == hca && i->port == port;
	return n;
}

static int subscribe(struct umad *u, const struct mad_way *w, const struct mad_node *n,
		     const uint8_t *asked)
{
	uint32_t hca, port;
	struct inform *i;

	if (find(u, w, asked))
		return 0;
	if (!sh_lid_lookup(u->dev, (uint16_t)w->slid, &hca, &port))
		return SA_STATUS(SA_INVALID);
	/* A limit for each port, so that the programs of one leave room for those of others. */
	if (count(u, hca, port) >= OF_A_PORT || u->ninforms >= SUBSCRIPTIONS)
		return SA_STATUS(SA_NO_RESOURCES);
	i = calloc(1, sizeof(*i));
	if (!i)
		return SA_STATUS(SA_NO_RESOURCES);
	i->number = ++u->inform_number;
	i->hca = hca;
	i->port = port;
	i->way = (struct mad_way){.hca = n->hca,
				  .port = n->port,
				  .slid = w->dlid,
				  .dlid = w->slid,
				  .qpn = 1,
				  .to_qpn = w->qpn,
				  .sl = w->sl,
				  .pkey = fabric_pkey(u, n, w)};
	memcpy(i->asked, asked, INFORM_SIZE);
	mad_put32(i->asked, QPN, w->qpn << 8 | i->asked[QPN + 3]);
	DL_APPEND(u->informs, i);
	u->ninforms++;
	return 0;
}

int sa_inform_set(struct umad *u, const struct mad_way *w, const struct mad_node *n, uint8_t *mad)
{
	uint8_t *asked = mad + AT_SA;
	struct inform *i;
	int status = 0;

	/* Nothing here sends notices that vendors define. */
	if (asked[SUBSCRIBE] > 1 || asked[GENERIC] != 1)
		return SA_STATUS(SA_INVALID);
	if (asked[SUBSCRIBE]) {
		status = subscribe(u, w, n, asked);
	} else {
		i = find(u, w, asked);
		if (i)
			drop(u, i);
		else
			status = SA_STATUS(SA_INVALID);
	}
	memset(asked + INFORM_SIZE, 0, MAD_SIZE - AT_SA - INFORM_SIZE);
	return status;
}

static bool gid_of_lid(struct umad *u, uint16_t lid, uint8_t gid[16])
{
	uint32_t hca, port;

	if (sh_lid_is_switch(u->dev, lid)) {
		memcpy(gid, sh_hca(u->dev, 0)->port[0].gid[0], 8);
		mad_put64(gid, 8, fabric_switch_guid());
		return true;
	}
	if (!sh_lid_lookup(u->dev, lid, &hca, &port))
		return false;
	memcpy(gid, sh_hca(u->dev, hca)->port[port - 1].gid[0], 16);
	return true;
}

void sa_informs(struct sa_table *t)
{
	const struct inform *i;

	DL_FOREACH(t->u->informs, i)
	{
		uint8_t r[INFORM_RECORD_SIZE] = {0};

		(void)gid_of_lid(t->u, i->way.dlid, r);
		mad_put16(r, 16, i->number);
		memcpy(r + RECORD_INFORM, i->asked, INFORM_SIZE);
		sa_offer(t, r);
	}
}

/* The GID asked for may be the issuer's, or the one that the notice is about. */
static bool wants(const struct inform *i, const uint8_t *notice)
{
	static const uint8_t zero[16];
	uint32_t first = mad16(i->asked, FIRST_LID), last = mad16(i->asked, LAST_LID),
		 lid = mad16(notice, 6), producer = mad32(i->asked, PRODUCER) & 0xffffff,
		 number = mad16(i->asked, NUMBER);

	if (mad16(i->asked, TYPE) != ALL && mad16(i->asked, TYPE) != (notice[0] & 0x7f))
		return false;
	if (number != ALL && number != mad16(notice, 4))
		return false;
	if (producer != 0xffffff && producer != (mad32(notice, 0) & 0xffffff))
		return false;
	if (memcmp(i->asked, zero, 16) != 0)
		return !memcmp(i->asked, notice + NOTICE_ISSUER, 16) ||
		       !memcmp(i->asked, notice + 16, 16);
	return first == ALL || (lid >= first && lid <= (last ? last : first));
}

void sa_inform(struct umad *u, uint8_t notice[NOTICE_SIZE])
{
	struct inform *i, *tmp;

	(void)gid_of_lid(u, mad16(notice, 6), notice + NOTICE_ISSUER);
	DL_FOREACH_SAFE(u->informs, i, tmp)
	if (wants(i, notice))
		notice_report(u, &i->way, notice);
}

void sa_inform_gone(struct umad *u, uint32_t hca, uint32_t port)
{
	struct inform *i, *tmp;

	DL_FOREACH_SAFE(u->informs, i, tmp)
	if (i->hca == hca && i->port == port)
		drop(u, i);
}

void sa_inform_forget(struct umad *u)
{
	while (u->informs)
		drop(u, u->informs);
}
