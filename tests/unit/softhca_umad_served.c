// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a server that was registered without RMPP gets a long request in segments, which it
 * acknowledges itself; together they are what the client has sent as one message.
 */
#include "softhca/host/process.h"
#include "softhca/kernel/umad/segments.h"
#include "softhca_umad_server.h"

enum { ACTIVE = 1, FIRST = 2, LAST = 4, ACK = 2, STOP = 3 };

static uint8_t answered[24]; /* the header of the last segment */
static uint8_t salt;	     /* makes the data of another request */

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
	/* STOP has one reason. */
	m[27] = type == STOP;
	mad_put32(m, 28, number);
	mad_put32(m, 32, window);
	mad_put32(m, 36, 0x1405);
	assert_int_equal(put(r, 1, 320), 320);
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

/*
 * Nobody acknowledges: the first segment comes as often as the client said, and the client hears of
 * it.
 */
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
		/*
		 * Kernels do not wait longer for an acknowledgement, whatever the limit for the
		 * answer.
		 */
		assert_true(r.f[0]->sent->due <= sh_now() + 2000000000);
		r.f[0]->sent->due = 1;
		umad_timer_ready(r.t->k.umad);
	}
	assert_int_equal(get(&r, 0, 320), 64 + 24);
	assert_int_equal(((const struct umad_hdr *)r.in)->status, ETIMEDOUT);
	nothing_for(&r, 1);
	(void)segments_due(r.t->k.umad, UINT64_C(1) << 60);
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
	umad_timer_ready(r.t->k.umad);
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
 * Without a limit nobody waits for an answer, but the client's kernel waits for the
 * acknowledgement: the request is sent again, the transaction is taken until then, and its end
 * without one is told.
 */
static void without_limit(void **state)
{
	static uint8_t again[64 + VENDOR_DATA];
	struct rig r;

	(void)state;
	up_to_serve(&r, 1);
	set(&r, 0, 1);
	for (int i = 0; i < 2; i++) {
		segment_of_set(&r, 1);
		request(&r, client, TO_SERVER, VENDOR, 1, METHOD_SET, 0x20);
		mad(&r)[24] = mad(&r)[25] = mad(&r)[26] = 1;
		mad_put32(mad(&r), 36, 0x1405);
		memcpy(again, r.out, sizeof(again));
		assert_int_equal(umad_write(r.f[0], again, sizeof(again)), -EINVAL);
		assert_in_range(r.f[0]->sent->due, 1, sh_now() + 2000000000);
		r.f[0]->sent->due = 1;
		umad_timer_ready(r.t->k.umad);
	}
	assert_int_equal(get(&r, 0, 320), 64 + 24);
	assert_int_equal(((const struct umad_hdr *)r.in)->status, ETIMEDOUT);
	assert_null(r.f[0]->sent);
	nothing_for(&r, 1);
	/* It is acknowledged, and nobody waits any more: the answer is lost. */
	set(&r, 0, 1);
	all_of_set(&r);
	assert_null(r.f[0]->sent);
	server_says(&r, 0, 0, 0, 0);
	nothing_for(&r, 0);
	/* An answer before that is read. */
	set(&r, 0, 1);
	segment_of_set(&r, 1);
	server_says(&r, 0, 0, 0, 0);
	assert_int_equal(get(&r, 0, 320), 320);
	assert_int_equal(((const struct umad_hdr *)r.in)->status, 0);
	assert_null(r.f[0]->sent);
	end(&r);
}

/*
 * Whom nobody hears, with RMPP at both ends: that is told as well, and soon, whatever the limit is.
 */
static void unheard(void **state)
{
	struct rig r;

	(void)state;
	for (uint32_t ms = 0; ms <= 60000; ms += 60000) {
		begin_hosts(&r, 1, 4);
		assert_int_equal(reg(&r, 1, 1, VENDOR, 1, 1, 0x1405, 1 << METHOD_SET, &server), 0);
		assert_int_equal(reg(&r, 0, 1, VENDOR, 1, 1, 0x1405, 0, &client), 0);
		sh_hca(&r.t->k.dev, 1)->port[0].state = 1;
		set(&r, ms, 0);
		assert_non_null(r.f[0]->sent);
		assert_in_range(r.f[0]->sent->due, 1, sh_now() + 2000000000);
		r.f[0]->sent->due = 1;
		umad_timer_ready(r.t->k.umad);
		assert_int_equal(get(&r, 0, 320), 64 + 24);
		assert_int_equal(((const struct umad_hdr *)r.in)->status, ETIMEDOUT);
		assert_null(r.f[0]->sent);
		/* Who is heard has the time that it has asked for. */
		sh_hca(&r.t->k.dev, 1)->port[0].state = 4;
		set(&r, ms, 0);
		assert_int_equal(get(&r, 1, sizeof(r.in)), 64 + VENDOR_DATA + LONG);
		if (ms)
			assert_true(r.f[0]->sent->due > sh_now() + 50 * UINT64_C(1000000000));
		else
			assert_null(r.f[0]->sent);
		end(&r);
	}
}

/* The built-in administrator acknowledges what it gets so, and then nobody waits for its answer. */
static void to_administrator(void **state)
{
	struct rig r;
	uint32_t id;
	uint8_t *m;

	(void)state;
	begin_hosts(&r, 1, 4);
	assert_int_equal(reg(&r, 0, 1, CLASS_SA, 2, 1, 0, 0, &id), 0);
	for (uint32_t ms = 0; ms <= 60000; ms += 60000) {
		m = request(&r, id, 1, CLASS_SA, 2, METHOD_GET_TABLE, 0x11);
		((struct umad_hdr *)r.out)->timeout_ms = ms;
		m[24] = m[25] = 1;
		m[26] = ACTIVE;
		assert_int_equal(put(&r, 0, 320), 320);
		assert_int_equal(get(&r, 0, sizeof(r.in)) > 0, ms != 0);
		assert_null(r.f[0]->sent);
	}
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

/*
 * The server acknowledges the first segment and gets the second one. Then the request's time is up.
 */
static void due_after_one(struct rig *r)
{
	segment_of_set(r, 1);
	server_says(r, ACK, ACTIVE, 1, 2);
	segment_of_set(r, 2);
	r->f[0]->sent->due = 1;
	umad_timer_ready(r->t->k.umad);
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
	due_after_one(&r);
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
	/* Nobody ever waited for its answer: it ends when it is acknowledged. */
	set(&r, 0, 0);
	all_of_set(&r);
	salt = 150;
	set(&r, 0, 0);
	all_of_set(&r);
	/* What waits is sent again as it is: that is no new request. */
	set(&r, 60000, 1);
	due_after_one(&r);
	segment_of_set(&r, 2);
	nothing_for(&r, 1);
	assert_int_equal(r.t->k.umad->nsegments, 1);
	salt = 0;
	end(&r);
}

/*
 * A server that acknowledges the same again and again keeps neither the request nor the place of
 * its segments: the sender hears of its timeout when it would have, and so does who sends a table.
 */
static void no_progress(void **state)
{
	struct rig r;

	(void)state;
	up_to_serve(&r, 1);
	set(&r, 60000, 1);
	due_after_one(&r);
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
		umad_timer_ready(r.t->k.umad);
	}
	segment_of_set(&r, 3);
	assert_int_equal(get(&r, 0, 320), 64 + 24);
	assert_int_equal(((const struct umad_hdr *)r.in)->status, ETIMEDOUT);
	end(&r);
}

/*
 * What is said to have segments and is shorter than the headers of its class: no kernel takes it
 * from a program, and so the server, which would get it in segments, reads nothing.
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(served),
		cmocka_unit_test(served_by_nobody),
		cmocka_unit_test(without_limit),
		cmocka_unit_test(unheard),
		cmocka_unit_test(to_administrator),
		cmocka_unit_test(served_without),
		cmocka_unit_test(asked_anew),
		cmocka_unit_test(no_progress),
		cmocka_unit_test(shorter_than_headers),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
