// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A kernel puts a message together for a program that has registered with RMPP, and acknowledges
 * its segments. Their sender is a program that makes segments itself, and sends them by a umad file
 * or a UD QP. The message of a sender with RMPP travels as a whole (segments.c is the other way
 * round).
 *
 * An answer to the sender is the segment's own header with the method of the other direction. The
 * first segment opens a window of WINDOW segments, and so does each that fills it. In between, only
 * a segment that comes again is acknowledged. A segment past the window is lost.
 *
 *	the last segment has come	the message is whole; for KEEP_NS what comes again is
 *					acknowledged
 *	GIVE_UP_NS from the first one	ABORT, and what has come is forgotten
 *	a segment with a status, or	ABORT
 *	with a number that does not
 *	suit its being the first
 */
#include <stdlib.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/transport/gsi.h"
#include "softhca/host/process.h"
#include "softhca/kernel/lists.h"
#include "agent.h"
#include "io.h"
#include "reassemble.h"

#define MESSAGES   64	     /* that wait or are remembered, at most */
#define BYTES	   (1 << 24) /* and how long they are together */
#define WINDOW	   64
#define GIVE_UP_NS UINT64_C(40000000000)
#define KEEP_NS	   UINT64_C(10000000000)
#define PAYLOAD	   220 /* of a segment, with what its class has before the data */

/* What has come, or is remembered, of a message. */
struct assembly {
	struct assembly *prev, *next;
	struct mad_node at;
	struct mad_way way; /* of the first segment */
	uint32_t hi_tid;    /* of the agent */
	uint32_t n;	    /* so many have come, without a gap */
	uint32_t window, said;
	bool whole;
	uint64_t due;
	size_t room;
	uint8_t head[MAD_SIZE]; /* of the first segment */
	uint8_t *data;
	struct {
		bool here;
		uint8_t flags;
		uint32_t length;
	} got[WINDOW]; /* from n to window, by number */
};

static void empty(struct umad *u, struct assembly *a)
{
	u->assembly_bytes -= a->room;
	a->room = 0;
	free(a->data);
	a->data = NULL;
}

static void drop(struct umad *u, struct assembly *a)
{
	DL_DELETE(u->assemblies, a);
	u->nassemblies--;
	empty(u, a);
	free(a);
}

/* Sends what an agent says about a segment that came that way. */
static void say(struct umad *u, const struct mad_node *at, const struct mad_way *came,
		const uint8_t *mad, uint8_t type, uint8_t status, uint32_t number, uint32_t window)
{
	const struct sh_port *p = &sh_hca(u->dev, at->hca)->port[at->port - 1];
	uint8_t word[MAD_SIZE] = {0};
	struct mad_way w = *came;

	w.hca = at->hca;
	w.port = at->port;
	w.slid = (uint16_t)p->lid;
	w.qpn = SH_GSI_QPN;
	w.to_qpn = came->qpn;
	w.pkey = fabric_pkey(u, at, came);
	w.number = 0;
	memcpy(w.route.sgid, came->route.dgid, 16);
	memcpy(w.route.dgid, came->route.sgid, 16);
	memcpy(word, mad, umad_rmpp_header(mad[AT_CLASS]));
	word[AT_METHOD] ^= METHOD_RESPONSE;
	word[AT_RMPP_VERSION] = 1;
	word[AT_RMPP_TYPE] = type;
	word[AT_RMPP_FLAGS] = (uint8_t)((word[AT_RMPP_FLAGS] & ~RMPP_FLAGS) | RMPP_ACTIVE);
	word[AT_RMPP_STATUS] = status;
	mad_put32(word, AT_RMPP_NUMBER, number);
	mad_put32(word, AT_RMPP_LENGTH, window);
	fabric_send(u, &w, word, MAD_SIZE);
}

void reassemble_abort(struct umad *u, const struct mad_node *at, const struct mad_way *came,
		      const uint8_t *mad, uint8_t status)
{
	say(u, at, came, mad, RMPP_ABORT, status, 0, 0);
}

static void acknowledge(struct umad *u, struct assembly *a, const struct mad_way *came,
			const uint8_t *mad)
{
	a->said = a->n;
	say(u, &a->at, came, mad, RMPP_ACK, 0, a->n, a->window);
}

static size_t piece_of(const struct assembly *a)
{
	return MAD_SIZE - umad_rmpp_header(a->head[AT_CLASS]);
}

/*
 * Makes room for one more window. False: what waits would be too long together, or there is no
 * memory.
 */
static bool widen(struct umad *u, struct assembly *a)
{
	size_t room = (a->window + WINDOW) * piece_of(a);
	uint8_t *data;

	if (u->assembly_bytes - a->room + room > BYTES)
		return false;
	data = realloc(a->data, room);
	if (!data)
		return false;
	u->assembly_bytes += room - a->room;
	a->data = data;
	a->room = room;
	a->window += WINDOW;
	return true;
}

static struct assembly *find(struct umad *u, const struct mad_node *at, const struct mad_way *w,
			     uint32_t hi_tid, const uint8_t *mad)
{
	struct assembly *a;

	DL_FOREACH(u->assemblies, a)
	if (a->hi_tid == hi_tid && a->at.hca == at->hca && a->at.port == at->port &&
	    mad64(a->head, AT_TID) == mad64(mad, AT_TID) && a->way.qpn == w->qpn &&
	    a->way.dlid == w->dlid && a->head[AT_CLASS] == mad[AT_CLASS] &&
	    a->head[AT_CLASS_VERSION] == mad[AT_CLASS_VERSION] &&
	    a->head[AT_METHOD] == mad[AT_METHOD])
		return a;
	return NULL;
}

static struct assembly *begin(struct umad *u, const struct mad_node *at, const struct mad_way *w,
			      uint32_t hi_tid, const uint8_t *mad)
{
	struct assembly *a;

	if (u->nassemblies >= MESSAGES)
		return NULL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->at = *at;
	a->way = *w;
	a->hi_tid = hi_tid;
	a->window = 1;
	memcpy(a->head, mad, MAD_SIZE);
	DL_APPEND(u->assemblies, a);
	u->nassemblies++;
	if (!widen(u, a)) {
		drop(u, a);
		return NULL;
	}
	a->due = sh_now() + GIVE_UP_NS;
	umad_timer_at(u, a->due);
	return a;
}

static void keep(struct assembly *a, const uint8_t *mad)
{
	uint32_t number = mad32(mad, AT_RMPP_NUMBER), i = number % WINDOW;
	size_t piece = piece_of(a);

	memcpy(a->data + (number - 1) * piece, mad + MAD_SIZE - piece, piece);
	a->got[i].here = true;
	a->got[i].flags = mad[AT_RMPP_FLAGS];
	a->got[i].length = mad32(mad, AT_RMPP_LENGTH);
}

/* Counts what has come without a gap, up to the last segment. True: that has come. */
static bool complete(struct assembly *a)
{
	while (a->n < a->window && a->got[(a->n + 1) % WINDOW].here) {
		a->n++;
		a->got[a->n % WINDOW].here = false;
		if (a->got[a->n % WINDOW].flags & RMPP_LAST)
			return true;
	}
	return false;
}

/* As a program reads it: the last segment says how much of it is data. */
static uint8_t *message(const struct assembly *a, size_t *len)
{
	size_t piece = piece_of(a), header = MAD_SIZE - piece, all = header + a->n * piece;
	uint32_t payload = a->got[a->n % WINDOW].length;
	uint8_t *mad = malloc(all);

	if (!mad)
		return NULL;
	memcpy(mad, a->head, header);
	memcpy(mad + header, a->data, a->n * piece);
	*len = all - (payload > PAYLOAD ? 0 : PAYLOAD - payload);
	return mad;
}

static uint8_t bad(const uint8_t *mad)
{
	if (mad[AT_RMPP_STATUS])
		return RMPP_BAD_STATUS;
	return (mad32(mad, AT_RMPP_NUMBER) == 1) == !!(mad[AT_RMPP_FLAGS] & RMPP_FIRST)
		       ? 0
		       : RMPP_BAD_NUMBER;
}

uint8_t *reassemble(struct umad *u, const struct mad_node *at, const struct mad_way *w,
		    uint32_t hi_tid, const uint8_t *mad, size_t *len, struct mad_way *first)
{
	uint32_t number = mad32(mad, AT_RMPP_NUMBER);
	uint8_t status = bad(mad);
	struct assembly *a;
	uint8_t *made;

	if (status) {
		reassemble_abort(u, at, w, mad, status);
		return NULL;
	}
	a = find(u, at, w, hi_tid, mad);
	if (!a && number == 1)
		a = begin(u, at, w, hi_tid, mad);
	if (!a || !number || number > a->window)
		return NULL; /* as if it were lost on its way */
	if (a->whole || number <= a->said) {
		acknowledge(u, a, w, mad);
		return NULL;
	}
	if (number > a->n)
		keep(a, mad);
	if (complete(a)) {
		a->whole = true;
		a->due = sh_now() + KEEP_NS;
		umad_timer_at(u, a->due);
		acknowledge(u, a, &a->way, a->head);
		*first = a->way;
		made = message(a, len);
		empty(u, a);
		return made;
	}
	if (number == 1 || (a->n == a->window && widen(u, a)))
		acknowledge(u, a, w, mad);
	return NULL;
}

uint64_t reassemble_due(struct umad *u, uint64_t now)
{
	struct assembly *a, *tmp;
	uint64_t next = 0;

	DL_FOREACH_SAFE(u->assemblies, a, tmp)
	{
		if (a->due <= now) {
			if (!a->whole)
				reassemble_abort(u, &a->at, &a->way, a->head, RMPP_TOO_LONG);
			drop(u, a);
		} else if (!next || a->due < next) {
			next = a->due;
		}
	}
	return next;
}

void reassemble_forget(struct umad *u)
{
	while (u->assemblies)
		drop(u, u->assemblies);
}
