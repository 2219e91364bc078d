// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: records of the subnet administrator: how many there are of each attribute, what a
 * question's components choose, the attributes that a path is to have, and partitions.
 */
#include "softhca/kernel/rdmacm/group.h"
#include "softhca/kernel/rdmacm/rdmacm.h"
#include "softhca_umad_rig.h"

enum { GET = 1, GET_TABLE = 0x12 };
enum { PATH_RECORD = 0x35, GROUP_RECORD = 0x38 };
enum { FEW = 2, PORTS = 2 * FEW, SWITCH = 1023, SWITCH_PORTS = PORTS + 1 };

static uint32_t agent;

static void up(struct rig *r)
{
	begin_hosts(r, 0, FEW);
	assert_int_equal(reg(r, 0, 1, 3, 2, 1, 0, 0, &agent), 0);
}

/* The record of a question. */
static uint8_t *question(struct rig *r, uint8_t method, uint16_t attribute, uint64_t mask)
{
	uint8_t *m = request(r, agent, 1, 3, 2, method, attribute);

	mad_put64(m, 48, mask);
	return m + 56;
}

/* The records, and how many of these bytes; -status, if it is not 0. */
static long ask(struct rig *r, size_t size)
{
	static uint8_t scratch[1 << 18];
	uint8_t *m = scratch + 64;
	long n;

	assert_int_equal(put(r, 0, 320), 320);
	n = umad_read(r->f[0], r->t->proc, (uintptr_t)scratch, sizeof(scratch));
	assert_true(n >= 64 + 56);
	if (mad16(m, 4))
		return -(long)mad16(m, 4);
	if (mad(r)[3] == GET)
		n = 64 + 56 + (long)size;
	assert_int_equal((n - 64 - 56) % (long)size, 0);
	assert_int_equal(mad16(m, 44), n == 64 + 56 ? 0 : size / 8);
	memcpy(r->in, m + 56,
	       (size_t)n - 64 - 56 < sizeof(r->in) ? (size_t)n - 64 - 56 : sizeof(r->in));
	return (n - 64 - 56) / (long)size;
}

/*
 * The key of the subnet manager: none, the right one, in either byte order, and others, which get
 * no answer.
 */
static void keys(void **state)
{
	static const struct {
		uint64_t key;
		long pkeys; /* records; -1: no answer */
	} cases[] = {
		{0, 0}, {1, 4}, {UINT64_C(1) << 56, 4}, {2, -1}, {UINT64_MAX, -1},
	};
	struct rig r;

	(void)state;
	up(&r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mad_put16(question(&r, GET_TABLE, 0x33, 1), 0, 4);
		mad_put64(mad(&r), 36, cases[i].key);
		mad_put32(mad(&r), 12, (uint32_t)i);
		if (cases[i].pkeys >= 0) {
			assert_int_equal(ask(&r, 72), cases[i].pkeys);
			continue;
		}
		assert_int_equal(put(&r, 0, 320), 320);
		assert_int_equal(get(&r, 0, 320), -EAGAIN);
	}
	end(&r);
}

static void how_many(void **state)
{
	static const struct {
		uint16_t attribute, size;
		long all, of_host, of_switch; /* by LID 4 and that of the switch */
	} cases[] = {
		{0x11, 112, PORTS + 1, 1, 1},
		{0x12, 72, PORTS + SWITCH_PORTS, 1, SWITCH_PORTS},
		{0x13, 16, PORTS + SWITCH_PORTS * SWITCH_PORTS, 1, SWITCH_PORTS * SWITCH_PORTS},
		{0x14, 32, 1, 0, 1},
		{0x15, 72, 16, 0, 16},
		{0x17, 72, 0, 0, 0},
		{0x18, 32, 1, 0, 0},
		{0x20, 8, 2 * PORTS, 1, PORTS},
		{0x30, 72, 16 * PORTS, 16, 0},
		{0x33, 72, 4 * PORTS + SWITCH_PORTS, 4, SWITCH_PORTS},
		{0x36, 72, 4 * (PORTS + SWITCH_PORTS), 4, 4 * SWITCH_PORTS},
	};
	struct rig r;

	(void)state;
	up(&r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		question(&r, GET_TABLE, cases[i].attribute, 0);
		mad_put64(mad(&r), 36, 1);
		assert_int_equal(ask(&r, cases[i].size), cases[i].all);
		for (int j = 0; j < 2; j++) {
			mad_put16(question(&r, GET_TABLE, cases[i].attribute, 1), 0,
				  j ? SWITCH : 4);
			mad_put64(mad(&r), 36, 1);
			assert_int_equal(ask(&r, cases[i].size),
					 j ? cases[i].of_switch : cases[i].of_host);
		}
	}
	/* P_Keys are told to those alone who know the SM_Key. */
	question(&r, GET_TABLE, 0x33, 0);
	assert_int_equal(ask(&r, 72), 0);
	end(&r);
}

static void components(void **state)
{
	uint8_t *asked;
	struct rig r;

	(void)state;
	up(&r);
	/* One block of the switch's table. */
	asked = question(&r, GET_TABLE, 0x15, 1 << 1);
	mad_put16(asked, 2, 15);
	assert_int_equal(ask(&r, 72), 1);
	assert_int_equal(mad16(r.in, 2), 15);
	assert_int_equal(r.in[8 + 63], 0);
	assert_int_equal(r.in[8 + 62], 255);
	/* A port of the switch, and a block of P_Keys of a host. */
	asked = question(&r, GET_TABLE, 0x12, 1 << 0 | 1 << 1);
	mad_put16(asked, 0, SWITCH);
	asked[2] = 3;
	assert_int_equal(ask(&r, 72), 1);
	assert_int_equal(r.in[2], 3);
	asked = question(&r, GET_TABLE, 0x33, 1 << 0 | 1 << 1 | 1 << 2);
	mad_put64(mad(&r), 36, 1);
	mad_put16(asked, 0, 4);
	mad_put16(asked, 2, 0);
	asked[4] = 2; /* host 1's port 2 */
	assert_int_equal(ask(&r, 72), 1);
	assert_int_equal(mad16(r.in, 8), 0xffff);
	/* Ports by a state of four bits, by whole masks, by bits of a mask. */
	sh_hca(&r.t->k.dev, 1)->port[1].state = 1;
	question(&r, GET_TABLE, 0x12, 1 << 15)[4 + 32] = 1;
	assert_int_equal(ask(&r, 72), 1); /* the switch's */
	assert_int_equal(r.in[2], 4);
	mad_put32(question(&r, GET_TABLE, 0x12, 1 << 7), 24, 0x02510868);
	assert_int_equal(ask(&r, 72), PORTS - 1);
	mad_put32(question(&r, GET_TABLE, 0x12, 1 << 7), 24, 0x00000800);
	assert_int_equal(ask(&r, 72), 0);
	mad_put32(mad(&r), AT_MODIFIER, UINT32_C(1) << 31);
	assert_int_equal(ask(&r, 72), PORTS - 1 + 1);
	end(&r);
}

static void path_attributes(void **state)
{
	/* What is asked for, and what the path has then; 0: there is none. */
	static const struct {
		uint64_t mask;
		uint8_t mtu, rate, life;
		uint8_t got_mtu, got_rate, got_life;
	} cases[] = {
		{0, 0, 0, 0, 5, 7, 14},
		{3 << 16, 0 << 6 | 4, 0, 0, 5, 7, 14}, /* more than 2048 */
		{3 << 16, 0 << 6 | 5, 0, 0, 0, 0, 0},
		{3 << 16, 1 << 6 | 5, 0, 0, 4, 7, 14}, /* less than 4096 */
		{3 << 16, 1 << 6 | 1, 0, 0, 0, 0, 0},
		{3 << 16, 2 << 6 | 3, 0, 0, 3, 7, 14}, /* exactly */
		{1 << 17, 4, 0, 0, 4, 7, 14},
		{3 << 16, 3 << 6, 0, 0, 5, 7, 14}, /* the largest */
		{3 << 18, 0, 0 << 6 | 3, 0, 5, 7, 14},
		{3 << 18, 0, 0 << 6 | 8, 0, 0, 0, 0},
		{3 << 18, 0, 1 << 6 | 7, 0, 5, 4, 14}, /* 30 Gb/s has a lower code */
		{3 << 18, 0, 2 << 6 | 6, 0, 5, 6, 14},
		{3 << 18, 0, 2 << 6 | 10, 0, 0, 0, 0},
		{3 << 20, 0, 0, 1 << 6 | 18, 5, 7, 14},
		{3 << 20, 0, 0, 1 << 6 | 14, 0, 0, 0},
		{3 << 20, 0, 0, 2 << 6 | 18, 5, 7, 18},
		{3 << 20, 0, 0, 2 << 6 | 13, 0, 0, 0},
	};
	struct rig r;

	(void)state;
	up(&r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t *asked = question(&r, GET, PATH_RECORD, 1 << 4 | 1 << 5 | cases[i].mask);

		mad_put16(asked, 40, 3);
		mad_put16(asked, 42, 2);
		asked[54] = cases[i].mtu;
		asked[55] = cases[i].rate;
		asked[56] = cases[i].life;
		if (!cases[i].got_mtu) {
			assert_int_equal(ask(&r, 64), -0x0300);
			continue;
		}
		assert_int_equal(ask(&r, 64), 1);
		assert_int_equal(r.in[54], 0x80 | cases[i].got_mtu);
		assert_int_equal(r.in[55], 0x80 | cases[i].got_rate);
		assert_int_equal(r.in[56], 0x80 | cases[i].got_life);
	}
	/* Any service is on any level. */
	mad_put16(question(&r, GET, PATH_RECORD, 1 << 4 | 1 << 14 | 1 << 15), 40, 3);
	mad_put16(mad(&r), 56 + 52, 0x0123);
	assert_int_equal(ask(&r, 64), 1);
	assert_int_equal(mad16(r.in, 52), 0x0123);
	end(&r);
}

static void partitions(void **state)
{
	struct sh_port *port;
	uint8_t *asked;
	struct rig r;

	(void)state;
	up(&r);
	port = &sh_hca(&r.t->k.dev, 1)->port[0]; /* LID 3 */
	port->pkey[0] = 0x8005;
	mad_put16(question(&r, GET, PATH_RECORD, 1 << 4), 40, 3);
	assert_int_equal(ask(&r, 64), -0x0300);
	/* One port is a full member, the other a limited one. */
	sh_hca(&r.t->k.dev, 0)->port[0].pkey[1] = 0x0005;
	assert_int_equal(ask(&r, 64), 1);
	assert_int_equal(mad16(r.in, 50), 0x0005);
	port->pkey[0] = 0x0005;
	assert_int_equal(ask(&r, 64), -0x0300);
	/* Of several, the one that is asked for. */
	port->pkey[3] = 0x7fff;
	assert_int_equal(ask(&r, 64), 1);
	assert_int_equal(mad16(r.in, 50), 0xffff);
	port->pkey[0] = 0x8005;
	asked = question(&r, GET, PATH_RECORD, 1 << 4 | 1 << 13);
	mad_put16(asked, 40, 3);
	mad_put16(asked, 50, 0x8005);
	assert_int_equal(ask(&r, 64), 1);
	assert_int_equal(mad16(r.in, 50), 0x0005);
	mad_put16(asked, 50, 0x8006);
	assert_int_equal(ask(&r, 64), -0x0300);
	end(&r);
}

static void other_ends(void **state)
{
	struct cm_group *g;
	uint8_t *asked;
	struct rig r;

	(void)state;
	up(&r);
	/* The switch is an end, and has a GID. */
	mad_put16(question(&r, GET, PATH_RECORD, 1 << 4), 40, SWITCH);
	assert_int_equal(ask(&r, 64), 1);
	assert_int_equal(mad64(r.in, 8), UINT64_C(0xfe80000000000000));
	assert_int_equal(mad64(r.in, 16), UINT64_C(0x0002c90300200000));
	asked = question(&r, GET, PATH_RECORD, 1 << 2);
	memcpy(asked + 8, r.in + 8, 16);
	assert_int_equal(ask(&r, 64), 1);
	assert_int_equal(mad16(r.in, 40), SWITCH);
	/* A group, by its GID. */
	asked = question(&r, GET, PATH_RECORD, 1 << 2);
	asked[8] = 0xff;
	asked[23] = 1;
	assert_int_equal(ask(&r, 64), -0x0500);
	g = cm_group_new(r.t->k.rdmacm, asked + 8);
	assert_non_null(g);
	g->pkey = 0xffff;
	assert_int_equal(ask(&r, 64), 1);
	assert_int_equal(mad16(r.in, 40), g->mlid);
	assert_int_equal(mad16(r.in, 42), 1);
	cm_group_put(r.t->k.rdmacm, g);
	end(&r);
}

/* Which of a group's attributes are asked for. */
static void groups(void **state)
{
	static const uint8_t mgid[16] = {0xff, 0x12, [15] = 9};
	struct cm_group *g;
	uint8_t *asked;
	struct rig r;

	(void)state;
	up(&r);
	g = cm_group_new(r.t->k.rdmacm, mgid);
	assert_non_null(g);
	assert_non_null(cm_group_port(g, 1, 2));
	g->ports->join = 4; /* sends only */
	asked = question(&r, GET_TABLE, GROUP_RECORD, 1 << 16);
	asked[48] = 3;
	mad_put64(mad(&r), 36, 1);
	assert_int_equal(ask(&r, 56), 0);
	asked[48] = 5;
	assert_int_equal(ask(&r, 56), 1);
	/* Of 2048 octets, exactly or more than that. */
	asked = question(&r, GET_TABLE, GROUP_RECORD, 1 << 4 | 1 << 5);
	asked[38] = 2 << 6 | 4;
	assert_int_equal(ask(&r, 56), 1);
	asked[38] = 0 << 6 | 4;
	assert_int_equal(ask(&r, 56), 0);
	asked[38] = 1 << 6 | 5;
	assert_int_equal(ask(&r, 56), 1);
	g->ports->join = 0;
	cm_group_put(r.t->k.rdmacm, g);
	end(&r);
}

/* Joins, or leaves, as host 0's port 1: the status, with the record in r->in. */
static uint32_t member(struct rig *r, uint8_t method, uint64_t mask, uint8_t join, uint8_t mtu,
		       uint8_t rate, const uint8_t mgid[16])
{
	uint8_t *asked = question(r, method, GROUP_RECORD, mask);

	memcpy(asked, mgid, 16);
	memcpy(asked + 16, sh_hca(&r->t->k.dev, 0)->port[0].gid[0], 16);
	asked[38] = mtu;
	mad_put16(asked, 40, 0xffff);
	asked[42] = rate;
	asked[48] = join;
	assert_int_equal(put(r, 0, 320), 320);
	assert_int_equal(get(r, 0, 320), 320);
	memmove(r->in + 400, r->in + 64 + 56, 56);
	return mad16(r->in + 64, 4);
}

static void joins(void **state)
{
	enum { SET = 2, DELETE = 0x15, JOIN = 1 << 0 | 1 << 1 | 1 << 16 };
	const uint64_t make = JOIN | 1 << 2 | 1 << 6 | 1 << 7 | 1 << 12 | 1 << 13;
	const uint64_t limits = make | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9;
	static const struct {
		uint8_t mtu, rate;
		uint8_t got_mtu, got_rate; /* 0: there can be no such group */
	} cases[] = {
		{2 << 6 | 5, 2 << 6 | 7, 5, 7}, /* exactly */
		{2 << 6 | 3, 2 << 6 | 2, 3, 2},	 {2 << 6 | 6, 2 << 6 | 7, 0, 0},
		{2 << 6 | 5, 2 << 6 | 10, 0, 0}, {0 << 6 | 5, 2 << 6 | 7, 0, 0}, /* more */
		{0 << 6 | 4, 0 << 6 | 3, 5, 7},	 {1 << 6 | 5, 1 << 6 | 7, 4, 4}, /* less: 30 Gb/s */
		{2 << 6 | 5, 1 << 6 | 3, 5, 5}, /* less than 10 Gb/s: the code of 5 Gb/s is larger */
		{1 << 6 | 1, 2 << 6 | 7, 0, 0},	 {3 << 6 | 1, 3 << 6 | 1, 5, 7}, /* the largest */
	};
	uint8_t mgid[16] = {0xff, 0x12, 0x40, 0x1b, [15] = 9};
	struct rig r;

	(void)state;
	up(&r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t status = member(&r, SET, limits, 1, cases[i].mtu, cases[i].rate, mgid);

		assert_int_equal(status, cases[i].got_mtu ? 0 : 0x0200);
		if (status)
			continue;
		/* The same question again finds the group as it wants it. */
		assert_int_equal(member(&r, SET, limits, 1, cases[i].mtu, cases[i].rate, mgid), 0);
		assert_int_equal(r.in[400 + 38], 2 << 6 | cases[i].got_mtu);
		assert_int_equal(r.in[400 + 42], 2 << 6 | cases[i].got_rate);
		/* Who joins it as well may ask for what it has alone. */
		assert_int_equal(
			member(&r, SET, limits, 1, 2 << 6 | cases[i].got_mtu, 2 << 6 | 8, mgid),
			0x0200);
		assert_int_equal(member(&r, DELETE, JOIN, 1, 0, 0, mgid), 0);
	}
	/* Which state is left is told; what is not there cannot go. */
	assert_int_equal(member(&r, SET, make, 7, 0, 0, mgid), 0);
	assert_int_equal(r.in[400 + 38], 2 << 6 | 4);
	assert_int_equal(member(&r, DELETE, JOIN, 2, 0, 0, mgid), 0);
	assert_int_equal(r.in[400 + 48] & 15, 5);
	assert_int_equal(member(&r, DELETE, JOIN, 3, 0, 0, mgid), 0x0200);
	assert_int_equal(member(&r, DELETE, JOIN, 5, 0, 0, mgid), 0);
	assert_int_equal(r.in[400 + 48] & 15, 0);
	assert_null(r.t->k.rdmacm->groups);
	/* Names that no group can have. */
	mgid[1] = 0x22;
	assert_int_equal(member(&r, SET, make, 1, 0, 0, mgid), 0x0200);
	mgid[1] = 0x12;
	mgid[2] = 0xa0;
	assert_int_equal(member(&r, SET, make, 1, 0, 0, mgid), 0x0200);
	mgid[1] = 0x15;
	assert_int_equal(member(&r, SET, make, 1, 0, 0, mgid), 0);
	assert_int_equal(member(&r, DELETE, JOIN, 1, 0, 0, mgid), 0);
	end(&r);
}

/* A port makes no more groups than its share. */
static void many_groups(void **state)
{
	const uint64_t name = 1 << 0 | 1 << 1 | 1 << 16;
	const uint64_t make = name | 1 << 2 | 1 << 6 | 1 << 7 | 1 << 12 | 1 << 13;
	uint8_t mgid[16] = {0xff, 0x12, 0x40, 0x1b};
	struct rig r;

	(void)state;
	up(&r);
	for (int i = 0; i < 256; i++) {
		mgid[15] = (uint8_t)i;
		assert_int_equal(member(&r, 2, make, 1, 0, 0, mgid), 0);
	}
	mgid[14] = 1;
	assert_int_equal(member(&r, 2, make, 1, 0, 0, mgid), 0x0100);
	/* It may say again that it is a member, and make one when it has left one. */
	mgid[14] = 0;
	assert_int_equal(member(&r, 2, make, 2, 0, 0, mgid), 0);
	assert_int_equal(member(&r, 0x15, name, 3, 0, 0, mgid), 0);
	mgid[14] = 1;
	assert_int_equal(member(&r, 2, make, 1, 0, 0, mgid), 0);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys),	       cmocka_unit_test(how_many),
		cmocka_unit_test(components),  cmocka_unit_test(path_attributes),
		cmocka_unit_test(partitions),  cmocka_unit_test(other_ends),
		cmocka_unit_test(groups),      cmocka_unit_test(joins),
		cmocka_unit_test(many_groups),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
