// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A kernel gives a program that has registered without RMPP the segments as they come, and leaves
 * the protocol to it: the program acknowledges segments, and gets the next ones. All other code
 * here handles whole messages. So this file keeps a message and cuts it into segments, until the
 * program has acknowledged the last one, stops it, or says nothing for some seconds. A request that
 * waits for an answer is sent again as often as its sender said. Until the last segment is
 * acknowledged, it waits no longer than SEGMENT_NS each time.
 *
 * What a program says about the segments of a response has the method of its request: GetTable,
 * where they have GetTableResp. So it goes to the sender of the answer, as requests do. What it
 * says about the segments of a request has the method of a response, and goes to the requester.
 */
#include <stdlib.h>
#include <string.h>

#include "softhca/host/process.h"
#include "softhca/kernel/lists.h"
#include "agent.h"
#include "file.h"
#include "io.h"
#include "reassemble.h"
#include "segments.h"

#define MESSAGES   64	     /* that wait, at most */
#define BYTES	   (1 << 24) /* and how long they are together */
#define SEGMENT_NS UINT64_C(2000000000)
#define TIMES	   5 /* how often segments without an acknowledgement are sent */

struct segments {
	struct segments *prev, *next;
	struct mad_way way;
	uint64_t asker; /* the number under which its sender keeps it; or 0 */
	size_t header, len;
	uint32_t n, acked, window, sent; /* numbers of segments */
	uint32_t left;
	uint64_t due;
	uint8_t mad[];
};

static void drop(struct umad *u, struct segments *s)
{
	DL_DELETE(u->segments, s);
	u->nsegments--;
	u->segment_bytes -= s->len;
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
	one[AT_RMPP_TYPE] = RMPP_DATA;
	one[AT_RMPP_FLAGS] =
		(uint8_t)((one[AT_RMPP_FLAGS] & ~RMPP_FLAGS) | RMPP_ACTIVE |
			  (number == 1 ? RMPP_FIRST : 0) | (number == s->n ? RMPP_LAST : 0));
	one[AT_RMPP_STATUS] = 0;
	mad_put32(one, AT_RMPP_NUMBER, number);
	if (number == 1)
		mad_put32(one, AT_RMPP_LENGTH, (uint32_t)(s->len - s->header + s->n * own));
	else
		mad_put32(one, AT_RMPP_LENGTH, number == s->n ? (uint32_t)(data + own) : 0);
}

enum what {
	ARRIVED,  /* the whole window, of which is known that the first segment arrives */
	MORE,	  /* those of the window that have not been sent */
	ONCE_MORE /* the whole window */
};

static struct umad_file *receiver(struct umad *u, const struct segments *s, uint32_t *id)
{
	struct umad_file *f = mad_is_response(s->mad)
				      ? umad_agent_of(u, s->way.hca, s->way.port, s->mad, id)
				      : umad_agent_for(u, s->way.hca, s->way.port, s->mad, id);

	return f && !f->agent[*id].rmpp_version ? f : NULL;
}

/* The message as its sender keeps it. NULL: the sender does not wait for what becomes of it. */
static struct umad_msg *asked(struct umad *u, const struct segments *s, struct umad_file **f)
{
	return umad_sent(u, s->asker, f);
}

/* Sends them. False: the agent has gone. */
static bool send(struct umad *u, struct segments *s, enum what what)
{
	uint32_t first = (what != MORE || s->sent < s->acked ? s->acked : s->sent) + 1;
	uint8_t one[MAD_SIZE];
	struct umad_file *f;
	struct umad_msg *m;
	uint32_t id;

	f = receiver(u, s, &id);
	if (!f)
		return false;
	for (uint32_t i = first; i <= s->window && i <= s->n; i++) {
		if (!(what == ARRIVED && i == first) && !fabric_arrives(u, &s->way)) {
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
	/* Segments that a larger window lets go add no time: only those that have arrived do. */
	if (what == MORE)
		return true;
	if (s->left)
		s->left--;
	s->due = sh_now() + SEGMENT_NS;
	umad_timer_at(u, s->due);
	return true;
}

static struct segments *begin(struct umad *u, const struct mad_way *w, const uint8_t *mad,
			      size_t len)
{
	size_t header = umad_rmpp_header(mad[AT_CLASS]), piece = MAD_SIZE - header;
	struct segments *s;

	/* cut() relies on it. */
	if (len < header)
		return NULL;
	if (u->nsegments >= MESSAGES || u->segment_bytes + len > BYTES)
		return NULL;
	s = calloc(1, sizeof(*s) + len);
	if (!s)
		return NULL;
	s->way = *w;
	s->asker = w->number;
	s->len = len;
	memcpy(s->mad, mad, len);
	s->header = header;
	s->n = len > header ? (uint32_t)((len - header + piece - 1) / piece) : 1;
	s->window = 1;
	s->left = TIMES;
	u->nsegments++;
	u->segment_bytes += len;
	DL_APPEND(u->segments, s);
	return s;
}

/* response: it is one of those, which go to that port. */
static struct segments *find(struct umad *u, const struct mad_way *w, const uint8_t *mad,
			     bool response)
{
	struct segments *s;

	DL_FOREACH(u->segments, s)
	if (s->way.hca == w->hca && s->way.port == w->port && s->mad[AT_CLASS] == mad[AT_CLASS] &&
	    mad64(s->mad, AT_TID) == mad64(mad, AT_TID) && mad_is_response(s->mad) == response)
		return s;
	return NULL;
}

/* Its sender waits for the next word about it, or for the answer. */
static void waits(struct umad *u, struct segments *s)
{
	struct umad_file *f;
	struct umad_msg *sent = asked(u, s, &f);
	uint64_t wait;

	if (!sent)
		return;
	wait = (uint64_t)sent->hdr.timeout_ms * 1000000;
	if (!wait || (s->acked < s->n && wait > SEGMENT_NS))
		wait = SEGMENT_NS;
	sent->due = sh_now() + wait;
	umad_timer_at(u, sent->due);
}

bool segments_begin(struct umad *u, const struct mad_way *w, const uint8_t *mad, size_t len)
{
	struct segments *s = find(u, w, mad, true);

	/* A requester that has asked again in the same transaction acknowledges the new answer. */
	if (s)
		drop(u, s);
	s = begin(u, w, mad, len);
	if (s && send(u, s, ARRIVED) && s->sent) {
		waits(u, s);
		return true;
	}
	if (s)
		drop(u, s);
	return false;
}

bool segments_again(struct umad *u, const struct mad_way *w, const uint8_t *mad)
{
	struct segments *s = w->number ? find(u, w, mad, true) : NULL;

	if (!s || s->asker != w->number)
		return false;
	waits(u, s);
	if (!send(u, s, ARRIVED))
		drop(u, s);
	return true;
}

void segments_ask(struct umad *u, const struct mad_way *w, const uint8_t *mad, size_t len)
{
	struct segments *s = find(u, w, mad, false);

	/*
	 * An equal transaction means a repeated request only while the first one still waits. A
	 * requester that does not wait repeats nothing, so this is another request.
	 */
	if (s && (!w->number || s->asker != w->number)) {
		drop(u, s);
		s = NULL;
	}
	if (!s)
		s = begin(u, w, mad, len);
	if (!s)
		return; /* as if it were lost on its way */
	waits(u, s);
	if (!send(u, s, ARRIVED))
		drop(u, s);
}

bool segments_word(const uint8_t *mad)
{
	return mad_is_rmpp(mad) && (mad[AT_RMPP_VERSION] != 1 || mad[AT_RMPP_TYPE] != RMPP_DATA);
}

/* Numbers have a sign here, as kernels read them. */
static bool less(uint32_t a, uint32_t b)
{
	return (int32_t)a < (int32_t)b;
}

/*
 * The status that says what is wrong with a word about segments, whichever message it is about. 0:
 * nothing.
 */
static uint8_t wrong(const uint8_t *mad)
{
	uint8_t status = mad[AT_RMPP_STATUS];

	if (mad[AT_RMPP_VERSION] != 1)
		return RMPP_BAD_VERSION;
	switch (mad[AT_RMPP_TYPE]) {
	case RMPP_ACK:
		if (status)
			return RMPP_BAD_STATUS;
		return less(mad32(mad, AT_RMPP_LENGTH), mad32(mad, AT_RMPP_NUMBER))
			       ? RMPP_WINDOW_TOO_SMALL
			       : 0;
	case RMPP_STOP:
		return status == RMPP_NO_RESOURCES ? 0 : RMPP_BAD_STATUS;
	case RMPP_ABORT:
		return status >= RMPP_FIRST_ABORT && status <= RMPP_LAST_ABORT ? 0
									       : RMPP_BAD_STATUS;
	default:
		return RMPP_BAD_TYPE;
	}
}

/* The receiver wants no more of it. The sender does not wait for an answer then. */
static void stopped(struct umad *u, struct segments *s)
{
	struct umad_file *f;
	struct umad_msg *sent = asked(u, s, &f);

	if (sent)
		umad_sent_drop(f, sent);
	drop(u, s);
}

/*
 * A message that makes progress is not given up, and one that has arrived as a whole is not sent
 * again.
 */
static void proceeds(struct umad *u, struct segments *s)
{
	struct umad_file *f;
	struct umad_msg *sent = asked(u, s, &f);

	if (s->acked == s->n) {
		umad_acked(u, s->asker);
		return;
	}
	if (sent)
		sent->retries = sent->hdr.retries;
	/* The wait that begins now is the first of TIMES. */
	s->left = TIMES - 1;
	s->due = sh_now() + SEGMENT_NS;
	umad_timer_at(u, s->due);
	waits(u, s);
}

static void acked(struct umad *u, struct segments *s, uint32_t number, uint32_t window)
{
	/* An old acknowledgement. */
	if (less(window, s->window) || less(number, s->acked))
		return;
	s->window = window;
	/* A repeated acknowledgement does not prolong the wait. */
	if (number > s->acked) {
		s->acked = number;
		proceeds(u, s);
	}
	if (s->acked == s->n || !send(u, s, MORE))
		drop(u, s);
}

void segments_told(struct umad *u, const struct mad_node *at, const struct mad_way *w,
		   const uint8_t *mad)
{
	/* What goes to the QP of a program is not kept here. */
	struct segments *s = w->qpn == 1 ? find(u, w, mad, !mad_is_response(mad)) : NULL;
	uint32_t number = mad32(mad, AT_RMPP_NUMBER);
	uint8_t status = wrong(mad);
	struct umad_file *f;

	if (s && s->asker && !asked(u, s, &f)) {
		drop(u, s);
		s = NULL;
	}
	if (s && !status && mad[AT_RMPP_TYPE] == RMPP_ACK &&
	    (less(s->n, number) || less(s->window, number)))
		status = RMPP_NUMBER_TOO_BIG;
	if (s && (status || mad[AT_RMPP_TYPE] != RMPP_ACK))
		stopped(u, s);
	else if (s)
		acked(u, s, number, mad32(mad, AT_RMPP_LENGTH));
	if (status)
		reassemble_abort(u, at, w, mad, status);
}

/* True: the segments were sent again, or the sender of the message sees to that. */
static bool goes_on(struct umad *u, struct segments *s)
{
	struct umad_file *f;

	if (!s->asker)
		return s->left && send(u, s, ONCE_MORE);
	s->due = sh_now() + SEGMENT_NS;
	umad_timer_at(u, s->due);
	return asked(u, s, &f) != NULL;
}

uint64_t segments_due(struct umad *u, uint64_t now)
{
	struct segments *s, *tmp;
	uint64_t next = 0;

	DL_FOREACH_SAFE(u->segments, s, tmp)
	{
		if (s->due <= now && !goes_on(u, s))
			drop(u, s);
		else if (!next || s->due < next)
			next = s->due;
	}
	return next;
}

void segments_forget(struct umad *u)
{
	while (u->segments)
		drop(u, u->segments);
}
