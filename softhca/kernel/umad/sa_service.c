// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Services. Its ID, GID and P_Key identify a service. It lasts until its Delete, until its lease is
 * over, or until the built-in manager gives way. It outlives the program that has registered it,
 * and the link of that program's port: only the lease ends a service without an owner. As with
 * OpenSM, the key of a service is something to find it by, and does not protect it. Only a query
 * with the key of the subnet manager gets it.
 *
 *	OFFSET	OF A RECORD			COMPONENT
 *	0	service ID			0
 *	8	GID				1
 *	24	P_Key, 2 reserved		2
 *	28	lease, in seconds (all ones:	4
 *		for ever)
 *	32	key				5
 *	48	name				6
 *	112	data: 16 of 8 bits		7 to 22
 *	128	8 of 16 bits			23 to 30
 *	144	4 of 32 bits			31 to 34
 *	160	2 of 64 bits			35, 36
 */
#include <stdlib.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/host/process.h"
#include "softhca/kernel/lists.h"
#include "io.h"
#include "sa.h"
#include "sa_service.h"

#define SERVICES      4096 /* at most */
#define OF_A_PORT     64   /* that one port has registered, of these */
#define FOR_EVER      UINT32_MAX
#define NS_PER_SECOND UINT64_C(1000000000)

enum service_at { PKEY = 24, LEASE = 28, KEY = 32, NAME = 48 };
enum { KEY_SIZE = 16, ID_SIZE = 26 /* ID, GID, P_Key */ };
#define NAMES(mad, bit) (mad64(mad, AT_MASK) >> (bit)&1)

/* The key is looked at in sa_services(). */
const struct sa_component sa_service_components[] = {
	{0, 0, 64},	{1, 64, 128},	{2, 192, 16},	{6, 384, 512},	{7, 896, 8},
	{8, 904, 8},	{9, 912, 8},	{10, 920, 8},	{11, 928, 8},	{12, 936, 8},
	{13, 944, 8},	{14, 952, 8},	{15, 960, 8},	{16, 968, 8},	{17, 976, 8},
	{18, 984, 8},	{19, 992, 8},	{20, 1000, 8},	{21, 1008, 8},	{22, 1016, 8},
	{23, 1024, 16}, {24, 1040, 16}, {25, 1056, 16}, {26, 1072, 16}, {27, 1088, 16},
	{28, 1104, 16}, {29, 1120, 16}, {30, 1136, 16}, {31, 1152, 32}, {32, 1184, 32},
	{33, 1216, 32}, {34, 1248, 32}, {35, 1280, 64}, {36, 1344, 64}, {0, 0, 0},
};

struct service {
	struct service *prev, *next;
	uint32_t hca, port; /* that has registered it */
	uint64_t until;	    /* 0: for ever */
	uint8_t record[SERVICE_RECORD_SIZE];
};

static void drop(struct umad *u, struct service *s)
{
	DL_DELETE(u->services, s);
	u->nservices--;
	free(s);
}

/* Is the port in the service's partition? */
static bool in_partition(struct umad *u, const struct mad_way *w, uint16_t pkey)
{
	const struct sh_port *p = &sh_hca(u->dev, w->hca)->port[w->port - 1];

	for (uint32_t i = 0; i < SH_PKEYS; i++)
		if (p->pkey[i] & 0x7fff && !((p->pkey[i] ^ pkey) & 0x7fff))
			return true;
	return false;
}

/* The record as it is told: with what is left of its lease. */
static void tell(const struct service *s, uint64_t now, bool key, uint8_t r[SERVICE_RECORD_SIZE])
{
	uint64_t left = s->until > now ? (s->until - now + NS_PER_SECOND - 1) / NS_PER_SECOND : 0;

	memcpy(r, s->record, SERVICE_RECORD_SIZE);
	mad_put32(r, LEASE, s->until ? (uint32_t)left : FOR_EVER);
	if (!key)
		memset(r + KEY, 0, KEY_SIZE);
}

static void answer(const struct service *s, uint8_t *mad)
{
	memset(mad + AT_SA, 0, MAD_SIZE - AT_SA);
	tell(s, sh_now(), mad64(mad, AT_SM_KEY) != 0, mad + AT_SA);
	mad_put16(mad, AT_OFFSET, SERVICE_RECORD_SIZE / 8);
}

/* As other administrators do, takes all of it, whatever components the request names. */
static void read_record(const uint8_t *mad, uint8_t r[SERVICE_RECORD_SIZE])
{
	memcpy(r, mad + AT_SA, SERVICE_RECORD_SIZE);
	mad_put16(r, PKEY + 2, 0);
	if (!mad16(r, PKEY))
		mad_put16(r, PKEY, 0xffff);
	if (!NAMES(mad, 4) && !mad32(r, LEASE))
		mad_put32(r, LEASE, FOR_EVER);
}

static struct service *find(struct umad *u, const uint8_t *record)
{
	struct service *s;

	DL_FOREACH(u->services, s)
	if (!memcmp(s->record, record, ID_SIZE))
		return s;
	return NULL;
}

static struct service *add(struct umad *u, const struct mad_way *w)
{
	struct service *s;
	uint32_t n = 0;

	DL_FOREACH(u->services, s)
	n += s->hca == w->hca && s->port == w->port;
	if (n >= OF_A_PORT || u->nservices >= SERVICES)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->hca = w->hca;
	s->port = w->port;
	u->nservices++;
	DL_APPEND(u->services, s);
	return s;
}

int sa_service_set(struct umad *u, const struct mad_way *w, uint8_t *mad)
{
	uint8_t r[SERVICE_RECORD_SIZE];
	uint64_t now = sh_now();
	struct service *s;
	uint32_t lease;

	if (!NAMES(mad, 0) || !NAMES(mad, 1))
		return SA_STATUS(SA_INSUFFICIENT);
	read_record(mad, r);
	lease = mad32(r, LEASE);
	if (!in_partition(u, w, mad16(r, PKEY)) || !lease)
		return SA_STATUS(SA_INVALID);
	(void)sa_service_due(u, now);
	s = find(u, r);
	s = s ?: add(u, w);
	if (!s)
		return SA_STATUS(SA_NO_RESOURCES);
	memcpy(s->record, r, sizeof(r));
	s->until = lease == FOR_EVER ? 0 : now + lease * NS_PER_SECOND;
	if (s->until)
		umad_timer_at(u, s->until);
	answer(s, mad);
	return 0;
}

/*
 * Ends one, by its ID, GID and P_Key, whatever components the request names. The answer has it as
 * it was.
 */
int sa_service_delete(struct umad *u, const struct mad_way *w, uint8_t *mad)
{
	uint8_t r[SERVICE_RECORD_SIZE];
	struct service *s;

	read_record(mad, r);
	(void)sa_service_due(u, sh_now());
	s = find(u, r);
	if (!s || !in_partition(u, w, mad16(s->record, PKEY)))
		return SA_STATUS(SA_NO_RECORDS);
	answer(s, mad);
	drop(u, s);
	return 0;
}

void sa_services(struct sa_table *t)
{
	uint64_t now = sh_now();
	const struct service *s;

	(void)sa_service_due(t->u, now);
	DL_FOREACH(t->u->services, s)
	{
		uint8_t r[SERVICE_RECORD_SIZE];

		if (!in_partition(t->u, t->way, mad16(s->record, PKEY)) ||
		    (sa_names(t, 5) &&
		     memcmp(s->record + KEY, t->asked + AT_SA + KEY, KEY_SIZE) != 0))
			continue;
		tell(s, now, mad64(t->asked, AT_SM_KEY) != 0, r);
		sa_offer(t, r);
	}
}

uint64_t sa_service_due(struct umad *u, uint64_t now)
{
	struct service *s, *tmp;
	uint64_t next = 0;

	DL_FOREACH_SAFE(u->services, s, tmp)
	{
		if (!s->until)
			continue;
		if (s->until <= now)
			drop(u, s);
		else if (!next || s->until < next)
			next = s->until;
	}
	return next;
}

void sa_service_forget(struct umad *u)
{
	while (u->services)
		drop(u, u->services);
}
