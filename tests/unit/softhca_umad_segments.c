// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: an agent that was registered without RMPP gets a table, or a long request, in segments,
 * which it acknowledges itself; together they are what an agent with RMPP gets as one message.
 */
#include "softhca/device/memory/tables.h"
#include "softhca/device/transport/fault.h"
#include "softhca/host/process.h"
#include "softhca/kernel/umad/segments.h"
#include "softhca/kernel/lists.h"
#include "softhca_umad_rig.h"

enum { GET_TABLE = 0x12, PATH_RECORD = 0x35, ACTIVE = 1, FIRST = 2, LAST = 4 };
enum { ACK = 2, STOP = 3, ABORT = 4, DATA = 56, PIECE = 200 };

static uint32_t plain, with_rmpp;
static uint8_t whole[1 << 16];
static size_t whole_len;
static uint8_t answered[24]; /* the header of the last segment */
static uint32_t segments;

static void up(struct rig *r)
{
	begin_hosts(r, 1, 4);
	assert_int_equal(reg(r, 0, 1, 3, 2, 0, 0, 0, &plain), 0);
	assert_int_equal(reg(r, 0, 1, 3, 2, 1, 0, 0, &with_rmpp), 0);
	request(r, with_rmpp, 1, 3, 2, GET_TABLE, PATH_RECORD);
	assert_int_equal(put(r, 0, 320), 320);
	whole_len =
		(size_t)umad_read(r->f[0], r->t->proc, (uintptr_t)whole, sizeof(whole)) - 64 - DATA;
	segments = (uint32_t)((whole_len + PIECE - 1) / PIECE);
	assert_true(segments > 10);
}

static void ask(struct rig *r)
{
	request(r, plain, 1, 3, 2, GET_TABLE, PATH_RECORD);
	assert_int_equal(put(r, 0, 320), 320);
}

/* What the program says about the segments that it has, by that method. */
static void say_by(struct rig *r, uint8_t method, uint8_t type, uint32_t number, uint32_t window)
{
	struct umad_hdr h = {.id = plain, .lid = htobe16(1), .qpn = htobe32(1)};
	uint8_t *m = mad(r);

	memset(r->out, 0, sizeof(r->out));
	memcpy(r->out, &h, sizeof(h));
	/* The transaction as it was answered. */
	memcpy(m, answered, sizeof(answered));
	m[3] = method;
	m[24] = 1;
	m[25] = type;
	m[26] = ACTIVE;
	mad_put32(m, 28, number);
	mad_put32(m, 32, window);
	assert_int_equal(put(r, 0, 320), 320);
}

static void say(struct rig *r, uint8_t type, uint32_t number, uint32_t window)
{
	say_by(r, GET_TABLE, type, number, window);
}

/* The next one is that segment, with that part of the table. */
static void segment(struct rig *r, uint32_t number)
{
	const uint8_t *m = r->in + 64;
	size_t at = (size_t)(number - 1) * PIECE,
	       left = whole_len - at < PIECE ? whole_len - at : PIECE;

	assert_int_equal(get(r, 0, 320), 320);
	assert_int_equal(((const struct umad_hdr *)r->in)->id, plain);
	memcpy(answered, m, sizeof(answered));
	assert_int_equal(m[3], GET_TABLE | 0x80);
	assert_int_equal(m[24], 1);
	assert_int_equal(m[25], 1);
	assert_int_equal(m[26] & 7,
			 ACTIVE | (number == 1 ? FIRST : 0) | (number == segments ? LAST : 0));
	assert_int_equal(mad32(m, 28), number);
	assert_int_equal(mad32(m, 32), number == 1	    ? whole_len + segments * 20
				       : number == segments ? left + 20
							    : 0);
	assert_int_equal(mad16(m, 44), 8);
	assert_memory_equal(m + DATA, whole + 64 + DATA + at, left);
}

static void nothing(struct rig *r)
{
	assert_int_equal(get(r, 0, 320), -EAGAIN);
}

static void acknowledged(void **state)
{
	struct rig r;
	uint32_t n;

	(void)state;
	up(&r);
	ask(&r);
	segment(&r, 1);
	nothing(&r);
	/* Who has answered is not where responses go: this one comes back to its own agent. */
	say_by(&r, GET_TABLE | 0x80, ACK, 1, 3);
	assert_int_equal(get(&r, 0, 320), 320);
	assert_int_equal(r.in[64 + 25], ACK);
	nothing(&r);
	say(&r, ACK, 1, 3);
	segment(&r, 2);
	segment(&r, 3);
	nothing(&r);
	/* The same word again, and one about what was never sent. */
	say(&r, ACK, 9, 20);
	nothing(&r);
	say(&r, ACK, 3, UINT32_MAX);
	for (n = 4; n <= segments; n++)
		segment(&r, n);
	/* What was sent is not sent again for each acknowledgement. */
	for (n = 4; n < segments; n++) {
		say(&r, ACK, n, UINT32_MAX);
		nothing(&r);
	}
	say(&r, ACK, segments, UINT32_MAX);
	nothing(&r);
	assert_null(r.t->k.umad->segments);
	assert_int_equal(r.t->k.umad->segment_bytes, 0);
	end(&r);
}

static void given_up(void **state)
{
	uint64_t now = UINT64_C(1) << 60;
	struct rig r;

	(void)state;
	up(&r);
	/* It stops, or says that it cannot go on. */
	for (uint8_t type = STOP; type <= ABORT; type++) {
		ask(&r);
		segment(&r, 1);
		say(&r, type, 1, 0);
		nothing(&r);
		assert_null(r.t->k.umad->segments);
	}
	/* It says nothing: the segment comes again, and there is an end. */
	ask(&r);
	segment(&r, 1);
	for (int i = 0; i < 4; i++) {
		assert_true(segments_due(&r.t->k, now) != 0);
		segment(&r, 1);
		nothing(&r);
	}
	assert_int_equal(segments_due(&r.t->k, now), 0);
	assert_null(r.t->k.umad->segments);
	/* Nor is anything left of an agent that has gone. */
	ask(&r);
	segment(&r, 1);
	assert_int_equal(umad_unregister(r.f[0], plain), 0);
	(void)segments_due(&r.t->k, now);
	assert_null(r.t->k.umad->segments);
	end(&r);
}

/* A program that begins tables and takes none of them keeps so many, and no more. */
static void many(void **state)
{
	const struct umad_msg *m;
	uint32_t waiting = 0;
	struct rig r;

	(void)state;
	up(&r);
	for (uint32_t i = 0; i < 100; i++) {
		request(&r, plain, 1, 3, 2, GET_TABLE, PATH_RECORD);
		mad_put32(mad(&r), 12, i);
		assert_int_equal(put(&r, 0, 320), 320);
	}
	assert_int_equal(r.t->k.umad->nsegments, 64);
	/* The others have no answer, and will hear of their timeout. */
	DL_FOREACH(r.f[0]->sent, m)
	waiting++;
	assert_int_equal(waiting, 36);
	end(&r);
}

/* A table of one segment is a whole datagram, too. */
static void short_one(void **state)
{
	struct rig r;

	(void)state;
	up(&r);
	for (uint16_t lid = 2; lid < 50; lid += 40) {
		request(&r, plain, 1, 3, 2, GET_TABLE, PATH_RECORD);
		mad_put64(mad(&r), 48, 3 << 4);
		mad_put16(mad(&r), 56 + 40, 3);
		mad_put16(mad(&r), 56 + 42, lid);
		assert_int_equal(put(&r, 0, 320), 320);
		assert_int_equal(get(&r, 0, 320), 320);
		assert_int_equal(r.in[64 + 26] & 7, ACTIVE | FIRST | LAST);
		assert_int_equal(mad32(r.in + 64, 32), 20 + (lid == 2 ? 64 : 0));
		for (size_t at = 64 + DATA + 64; at < 320; at++)
			assert_int_equal(r.in[at], 0);
	}
	nothing(&r);
	end(&r);
}

/* Segments travel as datagrams do: not to a port that is down, and not through faults. */
static void on_their_way(void **state)
{
	uint64_t now = UINT64_C(1) << 60;
	struct umad_file *f;
	struct sh_fault_rule *drop;
	struct rig r;

	(void)state;
	up(&r);
	/* The asker is host 1's port. */
	f = r.f[0];
	r.f[0] = r.f[1];
	assert_int_equal(reg(&r, 0, 1, 3, 2, 0, 0, 0, &plain), 0);
	/* One from host 0 to host 1 is lost. */
	drop = &r.t->k.dev.inst->faults.rule[SH_FAULT_KINDS];
	drop->scope = sh_fault_pack(&(struct sh_fault_scope){SH_FAULT_DROP, 0, 1, SH_FAULT_ANY});
	ask(&r);
	segment(&r, 1);
	drop->count = 1;
	sh_faults_settle(&r.t->k.dev.inst->faults);
	say(&r, ACK, 1, 4);
	segment(&r, 3);
	segment(&r, 4);
	nothing(&r);
	/* What was lost comes again. */
	assert_true(segments_due(&r.t->k, now) != 0);
	for (uint32_t n = 2; n <= 4; n++)
		segment(&r, n);
	nothing(&r);
	sh_hca(&r.t->k.dev, 1)->port[0].state = 1;
	assert_true(segments_due(&r.t->k, now) != 0);
	nothing(&r);
	sh_hca(&r.t->k.dev, 1)->port[0].state = 4;
	assert_true(segments_due(&r.t->k, now) != 0);
	segment(&r, 2);
	r.f[0] = f;
	end(&r);
}

enum { VENDOR = 0x30, TO_SERVER = 3, LONG = 500, VENDOR_DATA = 40, VENDOR_PIECE = 216 };

static uint32_t server, client;
static uint8_t salt; /* makes the data of another request */

static void up_to_serve(struct rig *r, uint8_t rmpp)
{
	begin_hosts(r, 1, 4);
	assert_int_equal(reg(r, 1, 1, VENDOR, 1, 0, 0x1405, 1 << METHOD_SET, &server), 0);
	assert_int_equal(reg(r, 0, 1, VENDOR, 1, rmpp, 0x1405, 0, &client), 0);
}

/* A Set of so much data. */
static void set(struct rig *r, uint32_t timeout_ms, uint32_t retries)
{
	static uint8_t what[64 + VENDOR_DATA + LONG];
	struct umad_hdr *h = (struct umad_hdr *)what;
	uint8_t *m = request(r, client, TO_SERVER, VENDOR, 1, METHOD_SET, 0x20);

	m[24] = m[25] = 1;
	m[26] = ACTIVE;
	mad_put32(m, 36, 0x1405);
	memcpy(what, r->out, 64 + VENDOR_DATA);
	h->timeout_ms = timeout_ms;
	h->retries = retries;
	for (size_t i = 0; i < LONG; i++)
		what[64 + VENDOR_DATA + i] = (uint8_t)(i * 7 + salt);
	assert_int_equal(umad_write(r->f[0], what, sizeof(what)), (long)sizeof(what));
}

/* The server's next one is that segment of the request. */
static void segment_of_set(struct rig *r, uint32_t number)
{
	const uint8_t *m = r->in + 64;
	size_t at = (size_t)(number - 1) * VENDOR_PIECE,
	       left = LONG - at < VENDOR_PIECE ? LONG - at : VENDOR_PIECE;

	assert_int_equal(get(r, 1, sizeof(r->in)), 320);
	assert_int_equal(((const struct umad_hdr *)r->in)->id, server);
	assert_int_equal(((const struct umad_hdr *)r->in)->length, 320);
	assert_int_equal(be16toh(((const struct umad_hdr *)r->in)->lid), 1);
	memcpy(answered, m, sizeof(answered));
	assert_int_equal(m[3], METHOD_SET);
	assert_int_equal(m[26] & 7, ACTIVE | (number == 1 ? FIRST : 0) | (number == 3 ? LAST : 0));
	assert_int_equal(mad32(m, 28), number);
	assert_int_equal(mad32(m, 32), number == 1 ? LONG + 3 * 4 : number == 3 ? left + 4 : 0);
	for (size_t i = 0; i < left; i++)
		assert_int_equal(m[VENDOR_DATA + i], (uint8_t)((at + i) * 7 + salt));
}

/* The server sends that about the request; flags 0: the answer. */
static void server_says(struct rig *r, uint8_t type, uint8_t flags, uint32_t number,
			uint32_t window)
{
	struct umad_hdr h = {.id = server, .lid = htobe16(1), .qpn = htobe32(1)};
	uint8_t *m = mad(r);

	memset(r->out, 0, sizeof(r->out));
	memcpy(r->out, &h, sizeof(h));
	memcpy(m, answered, sizeof(answered));
	m[3] = METHOD_SET | 0x80;
	m[24] = flags ? 1 : 0;
	m[25] = type;
	m[26] = flags;
	mad_put32(m, 28, number);
	mad_put32(m, 32, window);
	mad_put32(m, 36, 0x1405);
	assert_int_equal(put(r, 1, 320), 320);
}

static void nothing_for(struct rig *r, int i)
{
	assert_int_equal(get(r, i, 320), -EAGAIN);
}

static void served(void **state)
{
	struct rig r;

	(void)state;
	up_to_serve(&r, 1);
	set(&r, 60000, 0);
	segment_of_set(&r, 1);
	nothing_for(&r, 1);
	server_says(&r, ACK, ACTIVE, 1, 3);
	segment_of_set(&r, 2);
	segment_of_set(&r, 3);
	server_says(&r, ACK, ACTIVE, 3, 3);
	nothing_for(&r, 1);
	assert_null(r.t->k.umad->segments);
	/* What the server has acknowledged is none of the client's business. */
	nothing_for(&r, 0);
	server_says(&r, 0, 0, 0, 0);
	assert_int_equal(get(&r, 0, 320), 320);
	assert_int_equal(((const struct umad_hdr *)r.in)->status, 0);
	assert_int_equal(r.in[64 + 3], METHOD_SET | 0x80);
	end(&r);
}

/* Nobody acknowledges: the first segment comes as often as the client said, and the client hears of it. */
static void served_by_nobody(void **state)
{
	struct rig r;

	(void)state;
	up_to_serve(&r, 1);
	set(&r, 60000, 2);
	for (int i = 0; i < 3; i++) {
		segment_of_set(&r, 1);
		nothing_for(&r, 1);
		nothing_for(&r, 0);
		/* Kernels do not wait longer for an acknowledgement, whatever the limit for the answer. */
		assert_true(r.f[0]->sent->due <= sh_now() + 2000000000);
		r.f[0]->sent->due = 1;
		umad_timer_ready(&r.t->k, 0);
	}
	assert_int_equal(get(&r, 0, 320), 64 + 24);
	assert_int_equal(((const struct umad_hdr *)r.in)->status, ETIMEDOUT);
	nothing_for(&r, 1);
	(void)segments_due(&r.t->k, UINT64_C(1) << 60);
	assert_null(r.t->k.umad->segments);
	/* Once it has all, it is asked no more, and has the client's time for the answer. */
	set(&r, 60000, 2);
	segment_of_set(&r, 1);
	server_says(&r, ACK, ACTIVE, 1, 3);
	segment_of_set(&r, 2);
	segment_of_set(&r, 3);
	server_says(&r, ACK, ACTIVE, 3, 3);
	assert_true(r.f[0]->sent->due > sh_now() + 50 * UINT64_C(1000000000));
	r.f[0]->sent->due = 1;
	umad_timer_ready(&r.t->k, 0);
	nothing_for(&r, 1);
	assert_int_equal(get(&r, 0, 320), 64 + 24);
	/* It wants no more: nobody is told what becomes of the request. */
	set(&r, 60000, 2);
	segment_of_set(&r, 1);
	server_says(&r, STOP, ACTIVE, 1, 0);
	assert_null(r.f[0]->sent);
	assert_null(r.t->k.umad->segments);
	nothing_for(&r, 0);
	end(&r);
}

/* Neither has RMPP: what one says about the other's segments comes to it, too, each time. */
static void served_without(void **state)
{
	struct rig r;

	(void)state;
	up_to_serve(&r, 0);
	for (uint32_t i = 1; i <= 3; i++) {
		uint8_t *m = request(&r, client, TO_SERVER, VENDOR, 1, METHOD_SET, 0x20);

		m[24] = m[25] = 1;
		m[26] = ACTIVE | (i == 1 ? FIRST : 0);
		mad_put32(m, 28, i);
		mad_put32(m, 36, 0x1405);
		((struct umad_hdr *)r.out)->timeout_ms = 0;
		assert_int_equal(put(&r, 0, 320), 320);
		assert_int_equal(get(&r, 1, 320), 320);
		assert_int_equal(mad32(r.in + 64, 28), i);
		memcpy(answered, r.in + 64, sizeof(answered));
		server_says(&r, ACK, ACTIVE, i, 3);
		assert_int_equal(get(&r, 0, 320), 320);
		assert_int_equal(r.in[64 + 25], ACK);
		assert_int_equal(mad32(r.in + 64, 28), i);
	}
	assert_null(r.t->k.umad->segments);
	/* A response that is no part of anything is lost. */
	server_says(&r, 0, 0, 0, 0);
	nothing_for(&r, 0);
	end(&r);
}

static void all_of_set(struct rig *r)
{
	segment_of_set(r, 1);
	nothing_for(r, 1);
	server_says(r, ACK, ACTIVE, 1, 3);
	segment_of_set(r, 2);
	segment_of_set(r, 3);
	server_says(r, ACK, ACTIVE, 3, 3);
	nothing_for(r, 1);
}

/*
 * A transaction is free again when its request has ended: the server gets the new request from its
 * beginning, also if nobody has acknowledged all of the old one, or not a segment of it.
 */
static void asked_anew(void **state)
{
	struct rig r;

	(void)state;
	up_to_serve(&r, 1);
	/* By a timeout, after one segment. */
	set(&r, 60000, 0);
	segment_of_set(&r, 1);
	server_says(&r, ACK, ACTIVE, 1, 2);
	segment_of_set(&r, 2);
	r.f[0]->sent->due = 1;
	umad_timer_ready(&r.t->k, 0);
	assert_int_equal(get(&r, 0, 320), 64 + 24);
	salt = 50;
	set(&r, 60000, 0);
	all_of_set(&r);
	server_says(&r, 0, 0, 0, 0);
	assert_int_equal(get(&r, 0, 320), 320);
	/* By an early answer. */
	set(&r, 60000, 0);
	segment_of_set(&r, 1);
	server_says(&r, 0, 0, 0, 0);
	assert_int_equal(get(&r, 0, 320), 320);
	salt = 100;
	set(&r, 60000, 0);
	all_of_set(&r);
	server_says(&r, 0, 0, 0, 0);
	assert_int_equal(get(&r, 0, 320), 320);
	/* Nobody ever waited for its answer. */
	set(&r, 0, 0);
	segment_of_set(&r, 1);
	salt = 150;
	set(&r, 0, 0);
	all_of_set(&r);
	/* What waits is sent again as it is: that is no new request. */
	set(&r, 60000, 1);
	segment_of_set(&r, 1);
	server_says(&r, ACK, ACTIVE, 1, 2);
	segment_of_set(&r, 2);
	r.f[0]->sent->due = 1;
	umad_timer_ready(&r.t->k, 0);
	segment_of_set(&r, 2);
	nothing_for(&r, 1);
	assert_int_equal(r.t->k.umad->nsegments, 1);
	salt = 0;
	end(&r);
	/* A table that is asked for again, while its first one waits: what is said is about the new one. */
	up(&r);
	ask(&r);
	segment(&r, 1);
	say(&r, ACK, 1, 2);
	segment(&r, 2);
	ask(&r);
	segment(&r, 1);
	say(&r, ACK, 1, 3);
	segment(&r, 2);
	segment(&r, 3);
	nothing(&r);
	assert_int_equal(r.t->k.umad->nsegments, 1);
	end(&r);
}

/*
 * A server that acknowledges the same again and again keeps neither the request nor the place of its
 * segments: the sender hears of its timeout when it would have, and so does who sends a table.
 */
static void no_progress(void **state)
{
	uint64_t due;
	struct rig r;

	(void)state;
	up_to_serve(&r, 1);
	set(&r, 60000, 1);
	segment_of_set(&r, 1);
	server_says(&r, ACK, ACTIVE, 1, 2);
	segment_of_set(&r, 2);
	r.f[0]->sent->due = 1;
	umad_timer_ready(&r.t->k, 0);
	segment_of_set(&r, 2);
	assert_int_equal(r.f[0]->sent->retries, 0);
	r.f[0]->sent->due = 1;
	server_says(&r, ACK, ACTIVE, 1, 2);
	assert_int_equal(r.f[0]->sent->retries, 0);
	assert_int_equal(r.f[0]->sent->due, 1);
	nothing_for(&r, 1);
	/* A larger window is used, but nothing lasts longer for it. */
	server_says(&r, ACK, ACTIVE, 1, 3);
	segment_of_set(&r, 3);
	nothing_for(&r, 1);
	assert_int_equal(r.f[0]->sent->due, 1);
	/* Each segment that arrives has all the time again. */
	server_says(&r, ACK, ACTIVE, 2, 3);
	assert_int_equal(r.f[0]->sent->retries, 1);
	assert_true(r.f[0]->sent->due > 1);
	for (int i = 0; i < 2; i++) {
		server_says(&r, ACK, ACTIVE, 2, 3);
		r.f[0]->sent->due = 1;
		umad_timer_ready(&r.t->k, 0);
	}
	segment_of_set(&r, 3);
	assert_int_equal(get(&r, 0, 320), 64 + 24);
	assert_int_equal(((const struct umad_hdr *)r.in)->status, ETIMEDOUT);
	end(&r);
	/* The segments of a table. */
	up(&r);
	ask(&r);
	segment(&r, 1);
	say(&r, ACK, 1, 2);
	segment(&r, 2);
	due = segments_due(&r.t->k, 1);
	for (int i = 0; i < 10; i++) {
		say(&r, ACK, 1, 2);
		nothing(&r);
		assert_int_equal(segments_due(&r.t->k, 1), due);
	}
	for (int i = 0; i < 4; i++) {
		assert_true(segments_due(&r.t->k, UINT64_C(1) << 60) != 0);
		segment(&r, 2);
		say(&r, ACK, 1, 2);
		nothing(&r);
	}
	assert_int_equal(segments_due(&r.t->k, UINT64_C(1) << 60), 0);
	assert_null(r.t->k.umad->segments);
	end(&r);
}

/*
 * What is said to have segments and is shorter than the headers of its class: no kernel takes it from a
 * program, and so the server, which would get it in segments, reads nothing.
 */
static void shorter_than_headers(void **state)
{
	static const struct {
		uint8_t class, version;
		uint32_t header;
	} cases[] = {{CLASS_SA, 2, 56}, {VENDOR, 1, 40}, {0x10, 1, 64}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t class = cases[i].class, version = cases[i].version;
		struct rig r;
		uint8_t *m;

		begin_hosts(&r, 1, 4);
		assert_int_equal(reg(&r, 1, 1, class, version, 0, 0x1405, 1 << METHOD_SET, &server),
				 0);
		assert_int_equal(reg(&r, 0, 1, class, version, 1, 0x1405, 0, &client), 0);
		m = request(&r, client, TO_SERVER, class, version, METHOD_SET, 0x20);
		m[24] = m[25] = 1;
		m[26] = ACTIVE;
		if (class == VENDOR)
			mad_put32(m, 36, 0x1405);
		for (uint32_t n = 36; n < cases[i].header; n++) {
			assert_int_equal(put(&r, 0, 64 + n), -EINVAL);
			nothing_for(&r, 1);
		}
		/* Headers alone are one segment without data. */
		assert_int_equal(put(&r, 0, 64 + cases[i].header), 64 + (long)cases[i].header);
		assert_int_equal(get(&r, 1, 320), 320);
		assert_int_equal(r.in[64 + 26] & 7, ACTIVE | FIRST | LAST);
		for (uint32_t at = 64 + cases[i].header; at < 320; at++)
			assert_int_equal(r.in[at], 0);
		end(&r);
	}
}

/*
 * A response that has a time limit is sent again as often as its sender said, since nothing answers it,
 * and then the sender reads its header with the error. While it waits, it cannot be sent once more to
 * the same place.
 */
static void response_with_limit(void **state)
{
	const struct umad_hdr *h;
	uint8_t asked[64 + 24];
	struct rig r;
	uint8_t *m;

	(void)state;
	up_to_serve(&r, 0);
	h = (const void *)r.in;
	m = request(&r, client, TO_SERVER, VENDOR, 1, METHOD_SET, 0x20);
	mad_put32(m, 36, 0x1405);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 1, 320), 320);
	memcpy(asked, r.in, sizeof(asked));
	m = request(&r, server, 1, VENDOR, 1, METHOD_GET | 0x80, 0x20);
	memcpy(m + AT_TID, asked + 64 + AT_TID, 8);
	mad_put32(m, 36, 0x1405);
	((struct umad_hdr *)r.out)->retries = 2;
	assert_int_equal(put(&r, 1, 320), 320);
	assert_int_equal(put(&r, 1, 320), -EINVAL);
	assert_int_equal(get(&r, 0, 320), 320);
	assert_int_equal(h->status, 0);
	assert_null(r.f[0]->sent);
	/* Somebody else may have asked by the same number. */
	((struct umad_hdr *)r.out)->lid = htobe16(5);
	((struct umad_hdr *)r.out)->timeout_ms = 0;
	assert_int_equal(put(&r, 1, 320), 320);
	for (int i = 0; i < 3; i++) {
		nothing_for(&r, 1);
		r.f[1]->sent->due = 1;
		umad_timer_ready(&r.t->k, 0);
		nothing_for(&r, 0);
	}
	assert_int_equal(get(&r, 1, 320), 64 + 24);
	assert_int_equal(h->status, ETIMEDOUT);
	assert_int_equal(h->id, server);
	assert_int_equal(r.in[64 + 3], METHOD_GET | 0x80);
	assert_null(r.f[1]->sent);
	end(&r);
}

/* A file asks itself: a response that is sent again may end a request that is sent again as well. */
static void response_to_itself(void **state)
{
	uint32_t asks;
	struct rig r;
	uint8_t *m;

	(void)state;
	up_to_serve(&r, 0);
	assert_int_equal(reg(&r, 1, 1, VENDOR, 1, 0, 0x1405, 0, &asks), 0);
	for (int i = 0; i < 2; i++) {
		m = request(&r, asks, TO_SERVER, VENDOR, 1, METHOD_SET, 0x20);
		mad_put32(m, 36, 0x1405);
		((struct umad_hdr *)r.out)->retries = 3;
		assert_int_equal(put(&r, 1, 320), 320);
		assert_int_equal(get(&r, 1, 320), 320);
		if (i)
			break;
		m[3] = METHOD_GET | 0x80;
		memcpy(m + AT_TID, r.in + 64 + AT_TID, 8);
		((struct umad_hdr *)r.out)->id = server;
		assert_int_equal(put(&r, 1, 320), 320);
		assert_int_equal(get(&r, 1, 320), 320);
	}
	/* The response is first, and then the new request with the number of the old one. */
	r.f[1]->sent->due = r.f[1]->sent->next->due = 1;
	umad_timer_ready(&r.t->k, 0);
	assert_int_equal(get(&r, 1, 320), 320);
	assert_int_equal(r.in[64 + 3], METHOD_GET | 0x80);
	nothing_for(&r, 1);
	assert_null(r.f[1]->sent->next);
	end(&r);
}

/* A table of a server with RMPP: that waits for acknowledgements, with or without a time limit. */
static void table_of_server(void **state)
{
	static uint8_t what[64 + VENDOR_DATA + LONG];
	struct umad_hdr *h = (struct umad_hdr *)what;
	struct rig r;
	uint8_t *m;

	(void)state;
	for (int limit = 0; limit < 2; limit++) {
		for (int rmpp = 0; rmpp < 2; rmpp++) {
			uint8_t tid[8];

			begin_hosts(&r, 1, 4);
			assert_int_equal(
				reg(&r, 1, 1, VENDOR, 1, 1, 0x1405, 1 << METHOD_GET, &server), 0);
			assert_int_equal(reg(&r, 0, 1, VENDOR, 1, rmpp, 0x1405, 0, &client), 0);
			m = request(&r, client, TO_SERVER, VENDOR, 1, METHOD_GET, 0x20);
			mad_put32(m, 36, 0x1405);
			assert_int_equal(put(&r, 0, 320), 320);
			assert_int_equal(get(&r, 1, 320), 320);
			memcpy(tid, r.in + 64 + AT_TID, 8);
			m = request(&r, server, 1, VENDOR, 1, METHOD_GET | 0x80, 0x20);
			memcpy(m + AT_TID, tid, 8);
			m[24] = m[25] = 1;
			m[26] = ACTIVE;
			mad_put32(m, 36, 0x1405);
			memset(what, 0, sizeof(what));
			memcpy(what, r.out, 64 + VENDOR_DATA);
			h->timeout_ms = limit ? 60000 : 0;
			h->retries = 1;
			assert_int_equal(umad_write(r.f[1], what, sizeof(what)),
					 (long)sizeof(what));
			if (rmpp) {
				/* It has arrived, and is not sent again. */
				assert_int_equal(get(&r, 0, sizeof(r.in)), (long)sizeof(what));
				if (limit)
					assert_int_equal(r.f[1]->sent->retries, 0);
				else
					assert_null(r.f[1]->sent);
				end(&r);
				continue;
			}
			for (int i = 0; i < 2; i++) {
				assert_int_equal(get(&r, 0, 320), 320);
				assert_int_equal(mad32(r.in + 64, 28), 1);
				assert_int_equal(get(&r, 0, 320), -EAGAIN);
				assert_true(r.f[1]->sent->due <= sh_now() + 2000000000);
				r.f[1]->sent->due = 1;
				umad_timer_ready(&r.t->k, 0);
			}
			assert_int_equal(get(&r, 1, 320), 64 + 24);
			assert_int_equal(((const struct umad_hdr *)r.in)->status, ETIMEDOUT);
			nothing_for(&r, 0);
			(void)segments_due(&r.t->k, UINT64_C(1) << 60);
			assert_null(r.t->k.umad->segments);
			/* Once more, and the client acknowledges it. */
			m = request(&r, client, TO_SERVER, VENDOR, 1, METHOD_GET, 0x20);
			mad_put32(m, 36, 0x1405);
			assert_int_equal(put(&r, 0, 320), 320);
			assert_int_equal(get(&r, 1, 320), 320);
			assert_int_equal(umad_write(r.f[1], what, sizeof(what)),
					 (long)sizeof(what));
			for (uint32_t n = 1; n <= 3; n++) {
				assert_int_equal(get(&r, 0, 320), 320);
				assert_int_equal(mad32(r.in + 64, 28), n);
				m = request(&r, client, TO_SERVER, VENDOR, 1, METHOD_GET, 0x20);
				((struct umad_hdr *)r.out)->timeout_ms = 0;
				m[24] = 1;
				m[25] = ACK;
				m[26] = ACTIVE;
				mad_put32(m, 28, n);
				mad_put32(m, 32, n + 1);
				mad_put32(m, 36, 0x1405);
				assert_int_equal(put(&r, 0, 320), 320);
			}
			assert_null(r.t->k.umad->segments);
			assert_int_equal(r.f[1]->sent != NULL, limit);
			nothing_for(&r, 1);
			end(&r);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acknowledged),
		cmocka_unit_test(given_up),
		cmocka_unit_test(many),
		cmocka_unit_test(short_one),
		cmocka_unit_test(on_their_way),
		cmocka_unit_test(served),
		cmocka_unit_test(served_by_nobody),
		cmocka_unit_test(served_without),
		cmocka_unit_test(asked_anew),
		cmocka_unit_test(no_progress),
		cmocka_unit_test(shorter_than_headers),
		cmocka_unit_test(response_with_limit),
		cmocka_unit_test(response_to_itself),
		cmocka_unit_test(table_of_server),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
