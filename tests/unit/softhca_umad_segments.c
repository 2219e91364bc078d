// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: an agent that was registered without RMPP gets a table in segments, which it acknowledges
 * itself; together they are what an agent with RMPP gets as one message.
 */
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

/* What the program says about the segments that it has. */
static void say(struct rig *r, uint8_t type, uint32_t number, uint32_t window)
{
	struct umad_hdr h = {.id = plain, .lid = htobe16(1), .qpn = htobe32(1)};
	uint8_t *m = mad(r);

	memset(r->out, 0, sizeof(r->out));
	memcpy(r->out, &h, sizeof(h));
	/* The transaction as it was answered. */
	memcpy(m, answered, sizeof(answered));
	m[24] = 1;
	m[25] = type;
	m[26] = ACTIVE;
	mad_put32(m, 28, number);
	mad_put32(m, 32, window);
	assert_int_equal(put(r, 0, 320), 320);
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
	assert_int_equal(mad32(m, 32), number == 1 ? whole_len + segments * 20 : left + 20);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acknowledged),
		cmocka_unit_test(given_up),
		cmocka_unit_test(many),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
