// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The time line: JSON trace events, as Perfetto and chrome://tracing read them. A track for each
 * thread has its verbs, and one for each LID the packets that left there. Arrows (flow events) lead
 * from a post to the poll that gave its completion.
 *
 * Requests of a queue complete in their order, so a completion takes the request with its wr_id
 * from the queue, and those before it (not signaled) go with it. Those of an SRQ complete in any
 * order, and a completion does not say of which SRQ it is: there the wr_id alone decides, within a
 * process.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "softhca.h"
#include "softhca/packet/opcode.h"
#include "tapped.h"
#include "trace.h"

#define PACKETS_PID 0 /* no process has it */

/* Requests of one queue: a QP's sends or receives; or, of SRQs, those with the same wr_id. */
struct key {
	uint64_t wr_id; /* of SRQs */
	int pid;
	uint32_t qpn;
	uint16_t context, kind;
	uint32_t reserved;
};
struct posted {
	const struct trace_event *event;
	uint64_t wr_id;
	bool signaled;
	struct posted *prev, *next;
};
struct queue {
	struct key key;
	struct posted *requests;
	UT_hash_handle hh;
};

struct line {
	FILE *out;
	const char *between;
	uint64_t began;
	uint64_t flows;
	struct queue *queues;
	bool failed; /* memory has run out */
};

static void put_us(struct line *l, const char *name, uint64_t ns)
{
	fprintf(l->out, "\"%s\":%" PRIu64 ".%03u", name, ns / 1000, (unsigned int)(ns % 1000));
}

static uint64_t since(const struct line *l, uint64_t when)
{
	return when > l->began ? when - l->began : 0;
}

static void put_string(FILE *out, const char *text, size_t n)
{
	putc('"', out);
	for (size_t i = 0; i < n && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			putc('\\', out);
		/* What is no ASCII may be cut off in the middle of a character. */
		putc(c < ' ' || c > '~' ? '?' : c, out);
	}
	putc('"', out);
}

/* Begins an event: the caller writes the rest, up to the brace. */
static void begin(struct line *l, const char *phase, int pid, int tid)
{
	fprintf(l->out, "%s{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d,", l->between, phase, pid, tid);
	l->between = ",\n";
}

/* ---- arrows ---- */

static struct queue *queue_of(struct line *l, const struct trace_event *e,
			      const struct trace_work *w, enum trace_work_kind kind, bool make)
{
	struct queue *q;
	struct key key;

	memset(&key, 0, sizeof(key));
	key.pid = e->pid;
	key.context = w->context;
	key.kind = (uint16_t)kind;
	if (kind == TRACE_POST_SRQ)
		key.wr_id = w->wr_id;
	else
		key.qpn = w->qpn;
	HASH_FIND(hh, l->queues, &key, sizeof(key), q);
	if (q || !make)
		return q;
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->key = key;
	HASH_ADD(hh, l->queues, key, sizeof(q->key), q);
	return q;
}

static void post(struct line *l, const struct trace_event *e, const struct trace_work *w)
{
	bool send = w->kind == TRACE_POST_SEND || w->kind == TRACE_POST_UNSIGNALED;
	struct queue *q = queue_of(l, e, w, send ? TRACE_POST_SEND : w->kind, true);
	struct posted *p = q ? calloc(1, sizeof(*p)) : NULL;

	if (!p) {
		l->failed = true;
		return;
	}
	p->event = e;
	p->wr_id = w->wr_id;
	p->signaled = w->kind != TRACE_POST_UNSIGNALED;
	DL_APPEND(q->requests, p);
}

static struct posted *with_wr_id(struct queue *q, uint64_t wr_id, bool signaled)
{
	struct posted *p;

	DL_FOREACH(q->requests, p)
	if (p->wr_id == wr_id && (p->signaled || !signaled))
		return p;
	return NULL;
}

/* Takes the request out, with those before it, and draws the arrow. False: there is none. */
static bool complete(struct line *l, const struct trace_event *e, const struct trace_work *w,
		     enum trace_work_kind kind)
{
	struct queue *q = queue_of(l, e, w, kind, false);
	uint64_t until = trace_until(e);
	struct posted *found, *p;

	if (!q)
		return false;
	found = with_wr_id(q, w->wr_id, true);
	if (!found)
		found = with_wr_id(q, w->wr_id, false);
	if (!found)
		return false;
	begin(l, "s", found->event->pid, found->event->tid);
	put_us(l, "ts", since(l, found->event->begin->when));
	fprintf(l->out, ",\"name\":\"wr\",\"cat\":\"wr\",\"id\":%" PRIu64 "}", ++l->flows);
	/*
	 * At the end of the poll, which may have begun before the post; within it, so that it is
	 * the poll's.
	 */
	begin(l, "f", e->pid, e->tid);
	put_us(l, "ts", since(l, until > e->begin->when ? until - 1 : e->begin->when));
	fprintf(l->out, ",\"name\":\"wr\",\"cat\":\"wr\",\"bp\":\"e\",\"id\":%" PRIu64 "}",
		l->flows);
	do {
		p = q->requests;
		DL_DELETE(q->requests, p);
		if (p != found)
			free(p);
	} while (p != found);
	free(found);
	return true;
}

static void complete_any(struct line *l, const struct trace_event *e, const struct trace_work *w)
{
	if (w->kind != TRACE_DONE_RECV && complete(l, e, w, TRACE_POST_SEND))
		return;
	if (w->kind != TRACE_DONE_SEND && !complete(l, e, w, TRACE_POST_RECV))
		(void)complete(l, e, w, TRACE_POST_SRQ);
}

static void free_queues(struct line *l)
{
	struct queue *q, *tmp;
	struct posted *p, *next;

	HASH_ITER(hh, l->queues, q, tmp)
	{
		DL_FOREACH_SAFE(q->requests, p, next)
		free(p);
		HASH_DEL(l->queues, q);
		free(q);
	}
}

/* ---- verbs ---- */

static void put_verb(struct line *l, const struct trace_event *e)
{
	const char *text = trace_text(e->begin);
	uint64_t until = trace_until(e);

	begin(l, "X", e->pid, e->tid);
	put_us(l, "ts", since(l, e->begin->when));
	putc(',', l->out);
	put_us(l, "dur", until > e->begin->when ? until - e->begin->when : 0);
	fputs(",\"cat\":\"verb\",\"name\":", l->out);
	put_string(l->out, text, (size_t)trace_name_len(e));
	fputs(",\"args\":{\"call\":", l->out);
	put_string(l->out, text, e->begin->text);
	if (e->begin->kind == TRACE_IDLE)
		fprintf(l->out, ",\"empty\":%" PRIu64, e->begin->count);
	else if (!e->end)
		fputs(",\"unfinished\":true", l->out);
	if (e->end && e->end->text) {
		fputs(",\"result\":", l->out);
		put_string(l->out, trace_text(e->end), e->end->text);
	}
	if (e->end && e->end->error)
		fprintf(l->out, ",\"errno\":%d", e->end->error);
	fputs("}}", l->out);
}

/*
 * A verb posts when it begins, and gives completions when it ends: another thread may post
 * meanwhile.
 */
struct moment {
	uint64_t when;
	bool ends;
	size_t number; /* of the verb, in the order in which verbs begin */
	const struct trace_event *event;
};

static int by_moment(const void *a, const void *b)
{
	const struct moment *one = a, *other = b;

	if (one->when != other->when)
		return one->when < other->when ? -1 : 1;
	if (one->ends != other->ends)
		return one->ends - other->ends;
	return one->number < other->number ? -1 : one->number > other->number;
}

static void put_works(struct line *l, const struct moment *m)
{
	const struct trace_event *e = m->event;

	/* What a verb posted that has failed is not known. */
	for (int i = 0; !m->ends && !e->end->error && i < e->begin->works; i++)
		post(l, e, &trace_works(e->begin)[i]);
	for (int i = 0; m->ends && i < e->end->works; i++)
		complete_any(l, e, &trace_works(e->end)[i]);
}

/* The arrows of verbs, which are in the order in which they begin. */
static int put_arrows(struct line *l, const struct trace_event *const *verbs, size_t n)
{
	struct moment *moments = n ? reallocarray(NULL, 2 * n, sizeof(*moments)) : NULL;
	size_t many = 0;

	if (n && !moments)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct trace_event *e = verbs[i];

		if (e->end && e->begin->works)
			moments[many++] = (struct moment){e->begin->when, false, i, e};
		if (e->end && e->end->works)
			moments[many++] = (struct moment){trace_until(e), true, i, e};
	}
	if (many)
		qsort(moments, many, sizeof(*moments), by_moment);
	for (size_t i = 0; i < many; i++)
		put_works(l, &moments[i]);
	free_queues(l);
	free(moments);
	return l->failed ? -ENOMEM : 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct trace_event *one = *(const struct trace_event *const *)a,
				 *other = *(const struct trace_event *const *)b;

	if (one->begin->when != other->begin->when)
		return one->begin->when < other->begin->when ? -1 : 1;
	/* A verb comes before those that it calls. */
	return (int)one->begin->depth - (int)other->begin->depth;
}

static int put_verbs(struct line *l, const struct trace_reader *r)
{
	const struct trace_event *events, **sorted;
	size_t n;
	int err;

	events = trace_events(r, &n);
	sorted = n ? reallocarray(NULL, n, sizeof(*sorted)) : NULL;
	if (n && !sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &events[i];
	if (n)
		qsort(sorted, n, sizeof(*sorted), by_begin);
	for (size_t i = 0; i < n; i++)
		put_verb(l, sorted[i]);
	err = put_arrows(l, sorted, n);
	free(sorted);
	return err;
}

/* ---- packets, and names of tracks ---- */

static int by_time(const void *a, const void *b)
{
	const struct sh_tapped *one = *(const struct sh_tapped *const *)a,
			       *other = *(const struct sh_tapped *const *)b;

	return one->when < other->when ? -1 : one->when > other->when;
}

static void put_packet(struct line *l, const struct sh_tapped *t)
{
	char text[TAPPED_COLUMNS + 1];
	struct sh_frame f;
	const char *what;

	if (!tapped_frame(t, NULL, &f) || !tapped_line(t, t->when, text))
		return;
	/* Without the time, which stands in front. */
	what = strchr(text, ' ');
	begin(l, "i", PACKETS_PID, t->slid);
	put_us(l, "ts", since(l, t->when));
	fputs(",\"s\":\"t\",\"cat\":\"packet\",\"name\":", l->out);
	put_string(l->out, sh_opcode_operation(f.bth.opcode), SIZE_MAX);
	fputs(",\"args\":{\"packet\":", l->out);
	put_string(l->out, what ? what + 1 : text, SIZE_MAX);
	fputs("}}", l->out);
}

static void put_name(struct line *l, const char *what, int pid, int tid, const char *name)
{
	begin(l, "M", pid, tid);
	fprintf(l->out, "\"name\":\"%s\",\"args\":{\"name\":", what);
	put_string(l->out, name, SIZE_MAX);
	fputs("}}", l->out);
}

static int put_packets(struct line *l, const struct trace_packets *packets)
{
	const struct sh_tapped *all, **sorted;
	unsigned char *seen = calloc(1, 65536);
	char name[32];
	size_t n;

	all = trace_packets(packets, &n);
	sorted = n ? reallocarray(NULL, n, sizeof(*sorted)) : NULL;
	if (!seen || (n && !sorted)) {
		free(seen);
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		sorted[i] = &all[i];
	if (n) {
		qsort(sorted, n, sizeof(*sorted), by_time);
		put_name(l, "process_name", PACKETS_PID, 0, "packets");
	}
	for (size_t i = 0; i < n; i++) {
		if (!seen[sorted[i]->slid]) {
			snprintf(name, sizeof(name), "from LID %u", sorted[i]->slid);
			put_name(l, "thread_name", PACKETS_PID, sorted[i]->slid, name);
			seen[sorted[i]->slid] = 1;
		}
		put_packet(l, sorted[i]);
	}
	free(seen);
	free(sorted);
	return 0;
}

static void put_threads(struct line *l, const struct trace_reader *r)
{
	const struct trace_thread *threads;
	size_t n;

	threads = trace_threads(r, &n);
	for (size_t i = 0; i < n; i++) {
		put_name(l, "thread_name", threads[i].pid, threads[i].tid, threads[i].name);
		if (threads[i].pid == threads[i].tid)
			put_name(l, "process_name", threads[i].pid, threads[i].tid,
				 threads[i].name);
	}
}

int trace_json(FILE *out, const struct trace_reader *r, const struct trace_packets *packets,
	       uint64_t began)
{
	struct line l = {.out = out, .between = "", .began = began};
	int err;

	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", out);
	put_threads(&l, r);
	err = put_verbs(&l, r);
	if (!err && packets)
		err = put_packets(&l, packets);
	fputs("\n]}\n", out);
	return err ? err : ferror(out) ? -EIO : 0;
}
