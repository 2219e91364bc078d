// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Notices on their way. Each waits in a list until its answer comes, and is sent again meanwhile. A
 * Trap goes to the LID that its sender has for the subnet manager at that moment. A newer one of
 * the same sender takes the place of an older one: at most one waits for each port, and one for the
 * switch.
 *
 *	OCTET	OF A NOTICE
 *	0	generic (bit 7), type; producer's type, of three octets; number
 *	6	LID of the issuer; toggle and count
 *	10	details. Of trap 64 to 67: 6 reserved, GID; 128: LID; 144: 2 reserved, LID,
 *		1 reserved, what has changed, capability mask
 *	64	GID of the issuer
 */
#include <stdlib.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/host/process.h"
#include "softhca/kernel/lists.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/room.h"
#include "io.h"
#include "notice.h"
#include "sa.h"
#include "sa_inform.h"
#include "sm.h"
#include "smp.h"

#define AGAIN_NS    UINT64_C(4000000000) /* a Trap is sent again after it */
#define TRAPS	    15			 /* how often, at most */
#define REPORT_NS   UINT64_C(1000000000)
#define REPORTS	    3
#define REPORTS_MAX 4096 /* that wait for their answers */
#define OF_A_PORT   256	 /* of these, to one port */
#define NOTICE	    0x02 /* the attribute */

enum producer { OF_CA = 1, OF_SWITCH = 2, OF_MANAGER = 4 };
enum type { URGENT = 1, MANAGEMENT = 3, INFORMATIONAL = 4 };
enum notice_at { TYPE = 0, PRODUCER = 3, NUMBER = 4, ISSUER_LID = 6, DETAILS = 10 };

struct notice {
	struct notice *prev, *next;
	struct mad_way way;
	bool report;
	uint64_t due;
	uint32_t left; /* how often it is sent yet */
	uint8_t mad[MAD_SIZE];
};

static void fill(uint8_t *n, enum type type, enum producer producer, enum notice_trap trap,
		 uint32_t lid)
{
	memset(n, 0, NOTICE_SIZE);
	n[TYPE] = (uint8_t)(0x80 | type);
	n[PRODUCER] = (uint8_t)producer;
	mad_put16(n, NUMBER, trap);
	mad_put16(n, ISSUER_LID, lid);
}

static struct notice *add(struct umad *u, const struct mad_way *way, uint8_t class, uint8_t version,
			  uint8_t method)
{
	struct notice *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL; /* as if it were lost on its way, each time */
	n->way = *way;
	n->report = class == CLASS_SA;
	n->left = n->report ? REPORTS : TRAPS;
	n->mad[0] = 1;
	n->mad[AT_CLASS] = class;
	n->mad[AT_CLASS_VERSION] = version;
	n->mad[AT_METHOD] = method;
	/* No agent of a file has 0 as the upper half of its transactions. */
	mad_put32(n->mad, AT_TID + 4, ++u->notice_tid);
	mad_put16(n->mad, AT_ATTRIBUTE, NOTICE);
	DL_APPEND(u->notices, n);
	return n;
}

static void drop(struct umad *u, struct notice *n)
{
	DL_DELETE(u->notices, n);
	if (n->report) {
		u->reports--;
		u->reports_to[n->way.dlid]--;
	}
	free(n);
}

/* n may have been freed afterwards: its answer may come at once. */
static void send(struct umad *u, struct notice *n, uint64_t now)
{
	struct mad_way way = n->way;

	n->left--;
	n->due = now + (n->report ? REPORT_NS : AGAIN_NS);
	if (!n->report) {
		const struct sh_port *p = &sh_hca(u->dev, way.hca)->port[way.port - 1];

		way.slid = (uint16_t)(way.from_switch ? switch_lid(u->k) : p->lid);
		way.dlid = (uint16_t)(way.from_switch ? smp_switch_sm_lid(u) : p->sm_lid);
	}
	umad_timer_at(u, n->due);
	fabric_send(u, &way, n->mad, sizeof(n->mad));
}

/* Sends a Trap of a port, or of the switch that this port is beside. */
static void trap(struct umad *u, uint32_t hca, uint32_t port, const uint8_t *notice)
{
	bool of_switch = notice[PRODUCER] == OF_SWITCH;
	struct mad_way way = {.hca = hca, .port = port, .from_switch = of_switch};
	struct notice *n, *tmp;

	if (kern_ends(u->k) || u->off)
		return;
	DL_FOREACH_SAFE(u->notices, n, tmp)
	if (!n->report && n->way.from_switch == of_switch &&
	    (of_switch || (n->way.hca == way.hca && n->way.port == way.port)))
		drop(u, n);
	n = add(u, &way, CLASS_SMP, 1, METHOD_TRAP);
	if (!n)
		return;
	memcpy(n->mad + AT_DATA, notice, NOTICE_ISSUER);
	send(u, n, sh_now());
}

/* Reports what the built-in manager says of a GID. */
static void told(struct umad *u, enum notice_trap number, const uint8_t gid[16])
{
	uint8_t n[NOTICE_SIZE];

	if (!sm_built_in(u) || kern_ends(u->k))
		return;
	fill(n, MANAGEMENT, OF_MANAGER, number, smp_switch_sm_lid(u));
	memcpy(n + DETAILS + 6, gid, 16);
	sa_inform(u, n);
}

void notice_link(struct umad *u, uint32_t hca, uint32_t port)
{
	uint8_t n[NOTICE_SIZE];

	u->port_state_change = true;
	fill(n, URGENT, OF_SWITCH, TRAP_LINK_STATE, switch_lid(u->k));
	mad_put16(n, DETAILS, switch_lid(u->k));
	trap(u, hca, port, n);
	told(u, fabric_link(u, hca, port) ? TRAP_IN_SERVICE : TRAP_OUT_OF_SERVICE,
	     sh_hca(u->dev, hca)->port[port - 1].gid[0]);
}

void notice_mask(struct umad *u, uint32_t hca, uint32_t port)
{
	uint32_t lid = sh_hca(u->dev, hca)->port[port - 1].lid;
	uint8_t n[NOTICE_SIZE];

	fill(n, INFORMATIONAL, OF_CA, TRAP_LOCAL_CHANGE, lid);
	mad_put16(n, DETAILS + 2, lid);
	mad_put32(n, DETAILS + 6, port_capabilities(u->k, hca, port));
	trap(u, hca, port, n);
}

void notice_group(struct umad *u, const uint8_t mgid[16], bool there)
{
	told(u, there ? TRAP_GROUP_MADE : TRAP_GROUP_GONE, mgid);
}

void notice_report(struct umad *u, const struct mad_way *way, const uint8_t notice[NOTICE_SIZE])
{
	struct notice *n;

	/*
	 * A subscriber that answers no Report gets no more of them, and takes no room from others.
	 */
	if (way->dlid >= SH_MAX_LIDS || u->reports_to[way->dlid] >= OF_A_PORT ||
	    u->reports >= REPORTS_MAX)
		return;
	n = add(u, way, CLASS_SA, SA_VERSION, METHOD_REPORT);
	if (!n)
		return;
	u->reports++;
	u->reports_to[way->dlid]++;
	memcpy(n->mad + AT_SA, notice, NOTICE_SIZE);
	send(u, n, sh_now());
}

void notice_answered(struct umad *u, const uint8_t *mad)
{
	struct notice *n, *tmp;

	DL_FOREACH_SAFE(u->notices, n, tmp)
	if (mad64(n->mad, AT_TID) == mad64(mad, AT_TID) && n->mad[AT_CLASS] == mad[AT_CLASS])
		drop(u, n);
}

uint64_t notice_due(struct umad *u, uint64_t now)
{
	struct notice *n, *tmp;
	uint64_t next = 0;

	/* What is sent may end itself, and may add others at the end. */
	DL_FOREACH_SAFE(u->notices, n, tmp)
	{
		if (n->due > now)
			continue;
		if (n->left)
			send(u, n, now);
		else
			drop(u, n);
	}
	DL_FOREACH(u->notices, n)
	if (!next || n->due < next)
		next = n->due;
	return next;
}

void notice_forget(struct umad *u)
{
	while (u->notices)
		drop(u, u->notices);
}
