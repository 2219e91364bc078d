// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: counters of performance management: narrow ones stop at their maximum until they are
 * cleared, wide ones go on; what is written into them counts on; the switch's ports have their own.
 */
#include "softhca/device/memory/tables.h"
#include "softhca_umad_rig.h"

enum { GET = 1, SET = 2, COUNTERS = 0x12, EXTENDED = 0x1d, SWITCH = 1023 };
/* Where they are in the attribute, and their bits of the selection. */
enum { RCV_ERRORS = 8, DOWNED = 7, XMIT_DATA = 24, XMIT_PACKETS = 32, RCV_PACKETS = 36 };
enum { WIDE_XMIT_PACKETS = 24, WIDE_RCV_PACKETS = 32, UNICAST_XMIT = 40 };
enum { S_DOWNED = 1 << 2, S_RCV_ERRORS = 1 << 3, S_XMIT_PACKETS = 1 << 14 };

static uint32_t id;

static const uint8_t *perf(struct rig *r, uint16_t lid, uint8_t method, uint16_t attribute,
			   uint32_t port, const uint8_t *data)
{
	uint8_t *m = request(r, id, lid, 4, 1, method, attribute);

	if (data)
		memcpy(m + 64, data, 64);
	m[65] = (uint8_t)port;
	assert_int_equal(put(r, 0, 320), 320);
	assert_int_equal(get(r, 0, 320), 320);
	assert_int_equal(mad16(r->in + 64, 4), 0);
	return r->in + 64 + 64;
}

static uint32_t narrow(struct rig *r, uint16_t lid, uint32_t port, size_t at, int bytes)
{
	const uint8_t *d = perf(r, lid, GET, COUNTERS, port, NULL);

	return bytes == 1 ? d[at] : bytes == 2 ? mad16(d, at) : mad32(d, at);
}

static uint64_t wide(struct rig *r, uint16_t lid, uint32_t port, size_t at)
{
	return mad64(perf(r, lid, GET, EXTENDED, port, NULL), at);
}

static void begin_one(struct rig *r, struct sh_traffic **t)
{
	begin_hosts(r, 1, 2);
	*t = &sh_hca(&r->t->k.dev, 1)->traffic[0]; /* LID 3, port 3 of the switch */
	assert_int_equal(reg(r, 0, 1, 4, 1, 0, 0, 0, &id), 0);
}

static void at_their_maximum(void **state)
{
	uint8_t data[64] = {0};
	struct sh_traffic *t;
	struct rig r;

	(void)state;
	begin_one(&r, &t);
	t->xmit_packets = UINT32_MAX - 1;
	assert_int_equal(narrow(&r, 3, 1, XMIT_PACKETS, 4), UINT32_MAX - 1);
	for (int i = 0; i < 3; i++) {
		t->xmit_packets++;
		assert_int_equal(narrow(&r, 3, 1, XMIT_PACKETS, 4), UINT32_MAX);
	}
	assert_int_equal(wide(&r, 3, 1, WIDE_XMIT_PACKETS), UINT32_MAX + UINT64_C(2));
	/* Words are more than fit, too, and are told as the maximum. */
	t->xmit_data = UINT64_C(1) << 40;
	assert_int_equal(narrow(&r, 3, 1, XMIT_DATA, 4), UINT32_MAX);
	/* What the port has sent, the switch has received. */
	assert_int_equal(narrow(&r, SWITCH, 3, RCV_PACKETS, 4), UINT32_MAX);
	/* Cleared, it counts again. The others stay, and so does the switch's. */
	mad_put16(data, 2, S_XMIT_PACKETS);
	(void)perf(&r, 3, SET, COUNTERS, 1, data);
	t->xmit_packets += 5;
	assert_int_equal(narrow(&r, 3, 1, XMIT_PACKETS, 4), 5);
	assert_int_equal(narrow(&r, 3, 1, XMIT_DATA, 4), UINT32_MAX);
	assert_int_equal(narrow(&r, SWITCH, 3, RCV_PACKETS, 4), UINT32_MAX);
	assert_int_equal(wide(&r, 3, 1, WIDE_XMIT_PACKETS), UINT32_MAX + UINT64_C(7));
	/* The wide ones go round. */
	t->xmit_packets = UINT64_MAX;
	assert_true(wide(&r, 3, 1, WIDE_XMIT_PACKETS) == UINT64_MAX);
	t->xmit_packets++;
	assert_int_equal(wide(&r, 3, 1, WIDE_XMIT_PACKETS), 0);
	assert_int_equal(wide(&r, SWITCH, 3, WIDE_RCV_PACKETS), 0);
	end(&r);
}

static void of_fewer_bits(void **state)
{
	uint8_t data[64] = {0};
	struct sh_traffic *t;
	struct rig r;

	(void)state;
	begin_one(&r, &t);
	t->rcv_errors = 65534;
	assert_int_equal(narrow(&r, 3, 1, RCV_ERRORS, 2), 65534);
	assert_int_equal(narrow(&r, 3, 1, 4, 2), 65534); /* symbol errors */
	t->rcv_errors = 70000;
	assert_int_equal(narrow(&r, 3, 1, RCV_ERRORS, 2), 65535);
	assert_int_equal(narrow(&r, 3, 1, 4, 2), 65535);
	t->rcv_constraint = 256;
	assert_int_equal(narrow(&r, 3, 1, 17, 1), 255);
	/* What is written into one goes on from there, up to the maximum. */
	mad_put16(data, 2, S_RCV_ERRORS | S_DOWNED);
	mad_put16(data, RCV_ERRORS, 65530);
	data[DOWNED] = 7;
	(void)perf(&r, 3, SET, COUNTERS, 1, data);
	t->rcv_errors += 3;
	assert_int_equal(narrow(&r, 3, 1, RCV_ERRORS, 2), 65533);
	t->rcv_errors += 3;
	assert_int_equal(narrow(&r, 3, 1, RCV_ERRORS, 2), 65535);
	assert_int_equal(narrow(&r, 3, 1, DOWNED, 1), 7);
	end(&r);
}

/* A sender is between its two counters when they are read: unicast packets never run backwards. */
static void unicast_goes_up(void **state)
{
	struct sh_traffic *t;
	struct rig r;

	(void)state;
	begin_one(&r, &t);
	t->xmit_multicast = 1;
	assert_int_equal(wide(&r, 3, 1, UNICAST_XMIT), 0);
	t->xmit_packets = 8;
	assert_int_equal(wide(&r, 3, 1, UNICAST_XMIT), 7);
	t->xmit_multicast = 3;
	assert_int_equal(wide(&r, 3, 1, UNICAST_XMIT), 7);
	t->xmit_packets = 11;
	assert_int_equal(wide(&r, 3, 1, UNICAST_XMIT), 8);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_their_maximum),
		cmocka_unit_test(of_fewer_bits),
		cmocka_unit_test(unicast_goes_up),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
