// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: an agent that was registered without RMPP gets a table in segments, which it
 * acknowledges itself; together they are what an agent with RMPP gets as one message.
 */
#include "softhca/device/memory/tables.h"
#include "softhca/device/transport/fault.h"
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

/* In r->out, what the program says about the segments that it has, by that method. */
static void word(struct rig *r, uint8_t method, uint8_t type, uint32_t number, uint32_t window)
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
}

static void say_by(struct rig *r, uint8_t method, uint8_t type, uint32_t number, uint32_t window)
{
	word(r, method, type, number, window);
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
	say(&r, ACK, 3, INT32_MAX);
	for (n = 4; n <= segments; n++)
		segment(&r, n);
	/* What was sent is not sent again for each acknowledgement. */
	for (n = 4; n < segments; n++) {
		say(&r, ACK, n, INT32_MAX);
		nothing(&r);
	}
	say(&r, ACK, segments, INT32_MAX);
	nothing(&r);
	assert_null(r.t->k.umad->segments);
	assert_int_equal(r.t->k.umad->segment_bytes, 0);
	end(&r);
}

/*
 * What makes no sense about segments ends the table, and whoever said it reads ABORT with the
 * reason. To ABORT itself nothing is said.
 */
static void senseless(void **state)
{
	static const struct {
		uint8_t version, type, status;
		uint32_t number, window;
		uint8_t reason;
	} cases[] = {
		{1, 0, 0, 1, 3, 121},	    {1, 5, 0, 1, 3, 121},
		{1, 255, 0, 1, 3, 121},	    {2, ACK, 0, 1, 3, 125},
		{2, 1, 0, 1, 3, 125},	    {1, ACK, 1, 1, 3, 124},
		{1, ACK, 0, 1, 0, 122},	    {1, ACK, 0, 1, UINT32_MAX, 122},
		{1, ACK, 0, 2, 3, 123},	    {1, ACK, 0, 9, 20, 123},
		{1, STOP, 0, 1, 0, 124},    {1, STOP, 118, 1, 0, 124},
		{1, STOP, 1, 1, 0, 0},	    {1, ABORT, 0, 1, 0, 124},
		{1, ABORT, 117, 1, 0, 124}, {1, ABORT, 128, 1, 0, 124},
		{1, ABORT, 118, 1, 0, 0},   {1, ABORT, 127, 1, 0, 0},
	};
	const uint8_t *m;
	struct rig r;

	(void)state;
	up(&r);
	m = r.in + 64;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ask(&r);
		segment(&r, 1);
		word(&r, GET_TABLE, cases[i].type, cases[i].number, cases[i].window);
		mad(&r)[24] = cases[i].version;
		mad(&r)[27] = cases[i].status;
		/* The second time it is about nothing. */
		for (int n = 0; n < 2; n++) {
			assert_int_equal(put(&r, 0, 320), 320);
			if (cases[i].reason && (!n || cases[i].reason != 123)) {
				assert_int_equal(get(&r, 0, 320), 320);
				assert_int_equal(m[3], GET_TABLE | 0x80);
				assert_int_equal(m[24], 1);
				assert_int_equal(m[25], ABORT);
				assert_int_equal(m[26] & 7, ACTIVE);
				assert_int_equal(m[27], cases[i].reason);
				assert_int_equal(mad32(m, 28), 0);
				assert_int_equal(mad32(m, 32), 0);
			}
			nothing(&r);
			assert_null(r.t->k.umad->segments);
		}
	}
	/* An old word does nothing: it says less than an earlier one did. */
	ask(&r);
	segment(&r, 1);
	say(&r, ACK, 1, 4);
	for (uint32_t n = 2; n <= 4; n++)
		segment(&r, n);
	say(&r, ACK, 2, 3);
	say(&r, ACK, 0, 5);
	nothing(&r);
	say(&r, ACK, 2, 5);
	segment(&r, 5);
	nothing(&r);
	/* At a port without administrator and agent nobody says anything. */
	word(&r, GET_TABLE, 9, 1, 1);
	((struct umad_hdr *)r.out)->lid = htobe16(3);
	assert_int_equal(put(&r, 0, 320), 320);
	nothing(&r);
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
		word(&r, GET_TABLE, type, 1, 0);
		mad(&r)[27] = type == STOP ? 1 : 118;
		assert_int_equal(put(&r, 0, 320), 320);
		nothing(&r);
		assert_null(r.t->k.umad->segments);
	}
	/* It says nothing: the segment comes again, and there is an end. */
	ask(&r);
	segment(&r, 1);
	for (int i = 0; i < 4; i++) {
		assert_true(segments_due(r.t->k.umad, now) != 0);
		segment(&r, 1);
		nothing(&r);
	}
	assert_int_equal(segments_due(r.t->k.umad, now), 0);
	assert_null(r.t->k.umad->segments);
	/* Nor is anything left of an agent that has gone. */
	ask(&r);
	segment(&r, 1);
	assert_int_equal(umad_unregister(r.f[0], plain), 0);
	(void)segments_due(r.t->k.umad, now);
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
	assert_true(segments_due(r.t->k.umad, now) != 0);
	for (uint32_t n = 2; n <= 4; n++)
		segment(&r, n);
	nothing(&r);
	sh_hca(&r.t->k.dev, 1)->port[0].state = 1;
	assert_true(segments_due(r.t->k.umad, now) != 0);
	nothing(&r);
	sh_hca(&r.t->k.dev, 1)->port[0].state = 4;
	assert_true(segments_due(r.t->k.umad, now) != 0);
	segment(&r, 2);
	r.f[0] = f;
	end(&r);
}

/* A table that is asked for again, while its first one waits: what is said is about the new one. */
static void asked_anew(void **state)
{
	struct rig r;

	(void)state;
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

/* Nobody sends a table for ever to who acknowledges the same of it again and again. */
static void no_progress(void **state)
{
	uint64_t due;
	struct rig r;

	(void)state;
	up(&r);
	ask(&r);
	segment(&r, 1);
	say(&r, ACK, 1, 2);
	segment(&r, 2);
	due = segments_due(r.t->k.umad, 1);
	for (int i = 0; i < 10; i++) {
		say(&r, ACK, 1, 2);
		nothing(&r);
		assert_int_equal(segments_due(r.t->k.umad, 1), due);
	}
	for (int i = 0; i < 4; i++) {
		assert_true(segments_due(r.t->k.umad, UINT64_C(1) << 60) != 0);
		segment(&r, 2);
		say(&r, ACK, 1, 2);
		nothing(&r);
	}
	assert_int_equal(segments_due(r.t->k.umad, UINT64_C(1) << 60), 0);
	assert_null(r.t->k.umad->segments);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acknowledged), cmocka_unit_test(senseless),
		cmocka_unit_test(given_up),	cmocka_unit_test(many),
		cmocka_unit_test(short_one),	cmocka_unit_test(on_their_way),
		cmocka_unit_test(asked_anew),	cmocka_unit_test(no_progress),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
