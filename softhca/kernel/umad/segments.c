// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A kernel gives a program that has registered without RMPP the segments as they come, and leaves the
 * protocol to it: it acknowledges, and gets the next ones. Everything else here is whole messages, so
 * a message is kept, cut into segments, until the program has acknowledged the last one, stops it, or
 * says nothing for some seconds.
 *
 *	OCTET	OF A SEGMENT
 *	24	version; type; flags; status
 *	28	number, from 1; of an acknowledgement, of the last one that has come
 *	32	of the first one, how much all have together, with headers of the class; of the last one,
 *		how much it has; of others 0; of an acknowledgement, the last one that may be sent
 *
 * What a program says about segments has the method of its request: GetTable, where they have
 * GetTableResp. So it goes to who has answered, as requests do.
 */
#include <stdlib.h>
#include <string.h>

#include "softhca/host/process.h"
#include "softhca/kernel/kern.h"
#include "softhca/kernel/lists.h"
#include "agent.h"
#include "file.h"
#include "io.h"
#include "segments.h"

#define MESSAGES 64	   /* that wait, at most */
#define BYTES	 (1 << 24) /* and how long they are together */
#define AGAIN_NS UINT64_C(2000000000)
#define TIMES	 5 /* how often segments are sent that nobody acknowledges */

enum type { DATA = 1, ACK = 2, STOP = 3, ABORT = 4 };
enum flag { ACTIVE = 1, FIRST = 2, LAST = 4 };
enum { AT_NUMBER = 28, AT_LENGTH = 32 };

struct segments {
	struct segments *prev, *next;
	struct mad_way way;
	size_t header, len;
	uint32_t n, acked, window, sent; /* numbers of segments */
	uint32_t left;
	uint64_t due;
	uint8_t mad[];
};

static void drop(struct kernel *k, struct segments *s)
{
	DL_DELETE(k->umad->segments, s);
	k->umad->nsegments--;
	k->umad->segment_bytes -= s->len;
	free(s);
}

static void cut(const struct segments *s, uint32_t number, uint8_t one[MAD_SIZE])
{
	size_t piece = MAD_SIZE - s->header, at = s->header + (number - 1) * piece;
	size_t data = s->len - at < piece ? s->len - at : piece, own = s->header - MAD_RMPP;

	memset(one, 0, MAD_SIZE);
	memcpy(one, s->mad, s->header);
	memcpy(one + s->header, s->mad + at, data);
	one[AT_RMPP_VERSION] = 1;
	one[AT_RMPP_TYPE] = DATA;
	one[AT_RMPP_FLAGS] = (uint8_t)((one[AT_RMPP_FLAGS] & 0xf8) | ACTIVE |
				       (number == 1 ? FIRST : 0) | (number == s->n ? LAST : 0));
	one[AT_RMPP_STATUS] = 0;
	mad_put32(one, AT_NUMBER, number);
	if (number == 1)
		mad_put32(one, AT_LENGTH, (uint32_t)(s->len - s->header + s->n * own));
	else
		mad_put32(one, AT_LENGTH, number == s->n ? (uint32_t)(data + own) : 0);
}

enum what {
	ANSWER,	  /* the first segment, of which is known that it arrives */
	MORE,	  /* those of the window that have not been sent */
	ONCE_MORE /* the whole window */
};

/* Sends them. False: the agent has gone. */
static bool send(struct kernel *k, struct segments *s, enum what what)
{
	bool once_more = what == ONCE_MORE;
	uint32_t first = (once_more || s->sent < s->acked ? s->acked : s->sent) + 1;
	uint8_t one[MAD_SIZE];
	struct umad_file *f;
	struct umad_msg *m;
	uint32_t id;

	f = umad_agent_of(k, s->way.hca, s->way.port, s->mad, &id);
	if (!f)
		return false;
	for (uint32_t i = first; i <= s->window && i <= s->n; i++) {
		if (what != ANSWER && !fabric_arrives(k, &s->way)) {
			if (s->sent < i)
				s->sent = i;
			continue;
		}
		m = umad_msg_new(f, MAD_SIZE);
		if (!m)
			break; /* as if it were lost on its way */
		cut(s, i, one);
		fabric_give(f, m, &s->way, id, one);
		if (s->sent < i)
			s->sent = i;
	}
	s->left--;
	s->due = sh_now() + AGAIN_NS;
	umad_timer_at(k, s->due);
	return true;
}

bool segments_begin(struct kernel *k, const struct mad_way *w, const uint8_t *mad, size_t len)
{
	struct segments *s;
	size_t piece;

	if (k->umad->nsegments >= MESSAGES || k->umad->segment_bytes + len > BYTES)
		return false;
	s = calloc(1, sizeof(*s) + len);
	if (!s)
		return false;
	s->way = *w;
	s->len = len;
	memcpy(s->mad, mad, len);
	s->header = umad_rmpp_header(mad[AT_CLASS]);
	piece = MAD_SIZE - s->header;
	s->n = (uint32_t)((len - s->header + piece - 1) / piece);
	s->window = 1;
	s->left = TIMES;
	k->umad->nsegments++;
	k->umad->segment_bytes += len;
	DL_APPEND(k->umad->segments, s);
	if (send(k, s, ANSWER) && s->sent)
		return true;
	drop(k, s);
	return false;
}

static struct segments *find(struct kernel *k, const struct mad_way *w, const uint8_t *mad)
{
	struct segments *s;

	DL_FOREACH(k->umad->segments, s)
	if (s->way.hca == w->hca && s->way.port == w->port && s->mad[AT_CLASS] == mad[AT_CLASS] &&
	    mad64(s->mad, AT_TID) == mad64(mad, AT_TID))
		return s;
	return NULL;
}

bool segments_word(const uint8_t *mad)
{
	return mad_is_rmpp(mad) && mad[AT_RMPP_TYPE] != DATA;
}

void segments_acked(struct kernel *k, const struct mad_way *w, const uint8_t *mad)
{
	uint32_t number = mad32(mad, AT_NUMBER), window = mad32(mad, AT_LENGTH);
	struct segments *s;

	if (w->from_switch || w->qpn != 1 || !(s = find(k, w, mad)))
		return;
	if (mad[AT_RMPP_TYPE] == STOP || mad[AT_RMPP_TYPE] == ABORT) {
		drop(k, s);
		return;
	}
	if (mad[AT_RMPP_TYPE] != ACK || number < s->acked || number > s->window)
		return;
	s->acked = number;
	if (window > s->window)
		s->window = window < s->n ? window : s->n;
	s->left = TIMES;
	if (s->acked == s->n || !send(k, s, MORE))
		drop(k, s);
}

uint64_t segments_due(struct kernel *k, uint64_t now)
{
	struct segments *s, *tmp;
	uint64_t next = 0;

	DL_FOREACH_SAFE(k->umad->segments, s, tmp)
	{
		if (s->due <= now && (!s->left || !send(k, s, ONCE_MORE)))
			drop(k, s);
		else if (!next || s->due < next)
			next = s->due;
	}
	return next;
}

void segments_forget(struct kernel *k)
{
	while (k->umad->segments)
		drop(k, k->umad->segments);
}
