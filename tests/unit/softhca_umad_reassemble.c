// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: an agent that was registered with RMPP gets as one message what a program that makes
 * its segments itself sends to it, and the sender reads what the kernel of such an agent says about
 * them.
 */
#include "softhca/kernel/umad/reassemble.h"
#include "softhca_umad_rig.h"

enum { ACTIVE = 1, FIRST = 2, LAST = 4, DATA = 1, ACK = 2, ABORT = 4 };
enum { VENDOR = 0x30, OUI = 0x1405, DATA_AT = 40, PIECE = 216, OWN = 4, WINDOW = 64 };
enum { AT_NUMBER = 28, AT_WINDOW = 32 };

static uint32_t client, server;

/* The two are agents of LIDs 1 and 3; rmpp: of the client, and of the server. */
static void up(struct rig *r, uint8_t of_client, uint8_t of_server)
{
	begin_hosts(r, 1, 4);
	assert_int_equal(reg(r, 0, 1, VENDOR, 1, of_client, OUI, 0, &client), 0);
	assert_int_equal(
		reg(r, 1, 1, VENDOR, 1, of_server, OUI, 1 << METHOD_GET | 1 << METHOD_SET, &server),
		0);
}

static uint8_t octet(size_t at)
{
	return (uint8_t)(at * 7 + at / 256);
}

/*
 * A segment in r->out, so that what is to be wrong can be changed. The last one has `left` octets
 * of data.
 */
static uint8_t *segment(struct rig *r, uint8_t method, uint32_t number, uint32_t of, uint32_t left)
{
	uint8_t *m = request(r, method & 0x80 ? server : client, method & 0x80 ? 1 : 3, VENDOR, 1,
			     method, 0x20);

	((struct umad_hdr *)r->out)->timeout_ms = 0;
	m[AT_RMPP_VERSION] = 1;
	m[AT_RMPP_TYPE] = DATA;
	m[AT_RMPP_FLAGS] = ACTIVE | (number == 1 ? FIRST : 0) | (number == of ? LAST : 0);
	mad_put32(m, AT_NUMBER, number);
	mad_put32(m, AT_WINDOW, number == of ? left + OWN : 0);
	mad_put32(m, 36, OUI);
	for (size_t i = 0; i < PIECE; i++)
		m[DATA_AT + i] = octet((number - 1) * PIECE + i);
	return m;
}

static void send(struct rig *r, uint32_t number, uint32_t of, uint32_t left)
{
	segment(r, METHOD_SET, number, of, left);
	assert_int_equal(put(r, 0, 320), 320);
}

static void nothing_for(struct rig *r, int i)
{
	assert_int_equal(get(r, i, 320), -EAGAIN);
}

/* The sender reads that, and no more, about its segments. */
static void heard_by(struct rig *r, int i, uint8_t method, uint8_t type, uint8_t status,
		     uint32_t number, uint32_t window)
{
	const uint8_t *m = r->in + 64;

	assert_int_equal(get(r, i, 320), 320);
	assert_int_equal(((const struct umad_hdr *)r->in)->status, 0);
	assert_int_equal(be16toh(((const struct umad_hdr *)r->in)->lid), i ? 1 : 3);
	assert_int_equal(m[1], VENDOR);
	assert_int_equal(m[3], method);
	assert_int_equal(mad32(m, 36), OUI);
	assert_int_equal(m[AT_RMPP_VERSION], 1);
	assert_int_equal(m[AT_RMPP_TYPE], type);
	assert_int_equal(m[AT_RMPP_FLAGS] & 7, ACTIVE);
	assert_int_equal(m[AT_RMPP_STATUS], status);
	assert_int_equal(mad32(m, AT_NUMBER), number);
	assert_int_equal(mad32(m, AT_WINDOW), window);
	for (size_t at = DATA_AT; at < MAD_SIZE; at++)
		assert_int_equal(m[at], 0);
	nothing_for(r, i);
}

static void heard(struct rig *r, uint8_t type, uint8_t status, uint32_t number, uint32_t window)
{
	heard_by(r, 0, METHOD_SET | 0x80, type, status, number, window);
}

/* That file reads the whole message, and no more. */
static void whole(struct rig *r, int i, uint8_t method, uint32_t of, uint32_t left)
{
	size_t len = (of - 1) * PIECE + left;
	const uint8_t *m = r->in + 64;

	assert_int_equal(get(r, i, sizeof(r->in)), (long)(64 + DATA_AT + len));
	assert_int_equal(((const struct umad_hdr *)r->in)->length, 64 + DATA_AT + len);
	assert_int_equal(m[3], method);
	assert_int_equal(m[AT_RMPP_FLAGS] & FIRST, FIRST);
	assert_int_equal(mad32(m, AT_NUMBER), 1);
	for (size_t at = 0; at < len; at++)
		assert_int_equal(m[DATA_AT + at], octet(at));
	nothing_for(r, i);
}

static void request_in_segments(void **state)
{
	struct rig r;

	(void)state;
	up(&r, 0, 1);
	send(&r, 1, 3, 50);
	nothing_for(&r, 1);
	heard(&r, ACK, 0, 1, 1 + WINDOW);
	/* The third is before the second: nothing is said about it yet. */
	send(&r, 3, 3, 50);
	nothing_for(&r, 1);
	nothing_for(&r, 0);
	send(&r, 2, 3, 50);
	heard(&r, ACK, 0, 3, 1 + WINDOW);
	whole(&r, 1, METHOD_SET, 3, 50);
	/* What comes again is known, for a time. */
	for (uint32_t n = 1; n <= 3; n++) {
		send(&r, n, 3, 50);
		heard(&r, ACK, 0, 3, 1 + WINDOW);
		nothing_for(&r, 1);
	}
	assert_int_equal(reassemble_due(r.t->k.umad, UINT64_C(1) << 60), 0);
	nothing_for(&r, 0);
	send(&r, 3, 3, 50);
	nothing_for(&r, 0);
	/* One segment is a message, too, and may be shorter than a datagram. */
	send(&r, 1, 1, 3);
	heard(&r, ACK, 0, 1, 1 + WINDOW);
	whole(&r, 1, METHOD_SET, 1, 3);
	end(&r);
}

/*
 * The answer of a server that makes its segments itself: the client has it as it would from others.
 */
static void response_in_segments(void **state)
{
	struct rig r;
	uint8_t *m;

	(void)state;
	up(&r, 1, 0);
	m = request(&r, client, 3, VENDOR, 1, METHOD_GET, 0x20);
	mad_put32(m, 36, OUI);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 1, 320), 320);
	for (uint32_t n = 1; n <= 2; n++) {
		uint8_t tid[8];

		memcpy(tid, r.in + 64 + AT_TID, 8);
		m = segment(&r, METHOD_GET | 0x80, n, 2, 100);
		memcpy(m + AT_TID, tid, 8);
		assert_int_equal(put(&r, 1, 320), 320);
		if (n == 1)
			nothing_for(&r, 0);
		heard_by(&r, 1, METHOD_GET, ACK, 0, n, 1 + WINDOW);
		memcpy(r.in + 64 + AT_TID, tid, 8);
	}
	whole(&r, 0, METHOD_GET | 0x80, 2, 100);
	assert_null(r.f[0]->sent);
	end(&r);
}

/* The window moves on when it is full. What is past it is lost. */
static void windows(void **state)
{
	enum { ALL = 150 };
	struct rig r;

	(void)state;
	up(&r, 0, 1);
	for (uint32_t n = 1; n <= ALL; n++) {
		if (n == 2) {
			send(&r, 1 + WINDOW + 1, ALL, PIECE);
			nothing_for(&r, 0);
		}
		send(&r, n, ALL, PIECE);
		if (n % WINDOW == 1)
			heard(&r, ACK, 0, n, n + WINDOW);
		else if (n < ALL)
			nothing_for(&r, 0);
	}
	heard(&r, ACK, 0, ALL, 3 * WINDOW + 1);
	whole(&r, 1, METHOD_SET, ALL, PIECE);
	end(&r);
}

/* Messages that nobody goes on with end, and there are not too many of them. */
static void given_up(void **state)
{
	struct rig r;

	(void)state;
	up(&r, 0, 1);
	send(&r, 1, 3, 50);
	heard(&r, ACK, 0, 1, 1 + WINDOW);
	assert_int_equal(reassemble_due(r.t->k.umad, UINT64_C(1) << 60), 0);
	heard(&r, ABORT, 118, 0, 0);
	for (uint32_t i = 0; i < 100; i++) {
		mad_put32(segment(&r, METHOD_SET, 1, 3, 50), AT_TID + 4, i);
		assert_int_equal(put(&r, 0, 320), 320);
	}
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(get(&r, 0, 320), 320);
	nothing_for(&r, 0);
	assert_int_equal(r.t->k.umad->nassemblies, 64);
	(void)reassemble_due(r.t->k.umad, UINT64_C(1) << 60);
	assert_int_equal(r.t->k.umad->nassemblies, 0);
	assert_int_equal(r.t->k.umad->assembly_bytes, 0);
	nothing_for(&r, 1);
	end(&r);
}

static void no_segments(void **state)
{
	static const struct {
		uint32_t number;
		size_t at;
		uint8_t is, status;
	} cases[] = {
		{1, AT_RMPP_FLAGS, ACTIVE, 120},
		{2, AT_RMPP_FLAGS, ACTIVE | FIRST, 120},
		{1, AT_RMPP_STATUS, 1, 124},
		{1, AT_RMPP_VERSION, 2, 125},
	};
	struct rig r;

	(void)state;
	up(&r, 0, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		segment(&r, METHOD_SET, cases[i].number, 3, 50)[cases[i].at] = cases[i].is;
		assert_int_equal(put(&r, 0, 320), 320);
		heard(&r, ABORT, cases[i].status, 0, 0);
		nothing_for(&r, 1);
	}
	/* One whose beginning was lost. */
	send(&r, 2, 3, 50);
	nothing_for(&r, 0);
	nothing_for(&r, 1);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_in_segments),
		cmocka_unit_test(response_in_segments),
		cmocka_unit_test(windows),
		cmocka_unit_test(given_up),
		cmocka_unit_test(no_segments),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
