// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a subnet manager gives all ports and the switch other LIDs, one after the other, by
 * directed routes. Some belong to others until these get theirs; in the end each LID leads to the
 * port that has it.
 */
#include "softhca/device/transport/fabric.h"
#include "softhca/kernel/ports.h"
#include "softhca_umad_rig.h"

enum { PORT_INFO = 0x15, AT_LID = 16, THE_SWITCH = 0, NOBODY = 255 };

static uint32_t agent;

static void up(struct rig *r)
{
	begin(r, 1);
	assert_int_equal(reg(r, 0, 0, 0x81, 1, 0, 0, 0, &agent), 0);
}

/* PortInfo of what is at that port of the switch: its port, or port 0 of the switch. */
static uint8_t *port_info(struct rig *r, uint32_t number, uint8_t method, const uint8_t *data)
{
	uint8_t *m = request(r, agent, 0xffff, 0x81, 1, method, PORT_INFO);

	mad_put16(m, AT_DR_SLID, 0xffff);
	mad_put16(m, AT_DR_DLID, 0xffff);
	m[AT_HOP_COUNT] = number == THE_SWITCH ? 1 : 2;
	m[AT_INITIAL + 1] = 1;
	m[AT_INITIAL + 2] = (uint8_t)number;
	if (data)
		memcpy(m + AT_DATA, data, 64);
	assert_int_equal(put(r, 0, 320), 320);
	assert_int_equal(get(r, 0, 320), 320);
	return r->in + 64;
}

static uint32_t lid_of(struct rig *r, uint32_t number)
{
	return mad16(port_info(r, number, METHOD_GET, NULL), AT_DATA + AT_LID);
}

static uint32_t assign(struct rig *r, uint32_t number, uint16_t lid)
{
	uint8_t data[64];
	const uint8_t *m;

	memcpy(data, port_info(r, number, METHOD_GET, NULL) + AT_DATA, 64);
	mad_put16(data, AT_LID, lid);
	m = port_info(r, number, METHOD_SET, data);
	return mad16(m, AT_STATUS) & 0x7fff;
}

/* Where messages to a LID go: the port of the switch, or the switch. */
static uint32_t leads_to(struct rig *r, uint16_t lid)
{
	uint32_t hca, port;

	if (sh_lid_lookup(&r->t->k.dev, lid, &hca, &port))
		return hca * 2 + port;
	return sh_lid_is_switch(&r->t->k.dev, lid) ? THE_SWITCH : NOBODY;
}

/* And management datagrams, by the LID alone. */
static void answers(struct rig *r, uint16_t lid, uint32_t number)
{
	uint32_t id, status;
	uint8_t *info;

	assert_int_equal(reg(r, 0, 0, 1, 1, 0, 0, 0, &id), 0);
	info = smp(r, id, lid, METHOD_GET, 0x11, 0, NULL, &status);
	assert_int_equal(status, 0);
	assert_int_equal(info[2], number == THE_SWITCH ? 2 : 1);
	if (number != THE_SWITCH)
		assert_int_equal(mad64(info, 20),
				 sh_hca(&r->t->k.dev, (number - 1) / 2)->node_guid +
					 (number - 1) % 2 + 1);
	assert_int_equal(umad_unregister(r->f[0], id), 0);
}

static void is_at(struct rig *r, uint16_t lid, uint32_t number)
{
	assert_int_equal(lid_of(r, number), lid);
	assert_int_equal(leads_to(r, lid), number);
	answers(r, lid, number);
}

static void swapped(void **state)
{
	struct rig r;

	(void)state;
	up(&r);
	assert_int_equal(assign(&r, 3, 5), 0);
	/* Both have it now. Who got it last gets what is sent there. */
	is_at(&r, 5, 3);
	assert_int_equal(lid_of(&r, 5), 5);
	assert_int_equal(leads_to(&r, 3), NOBODY);
	assert_int_equal(assign(&r, 5, 3), 0);
	is_at(&r, 5, 3);
	is_at(&r, 3, 5);
	/* The port of the manager, too. */
	assert_int_equal(assign(&r, 1, 3), 0);
	assert_int_equal(assign(&r, 5, 1), 0);
	is_at(&r, 3, 1);
	is_at(&r, 1, 5);
	end(&r);
}

/* Each gets the LID of the next one, and the last one that of the first. */
static void all(void **state)
{
	struct rig r;

	(void)state;
	up(&r);
	for (uint32_t number = 1; number <= ENDS; number++)
		assert_int_equal(assign(&r, number, (uint16_t)(number % ENDS + 1)), 0);
	for (uint32_t number = 1; number <= ENDS; number++)
		is_at(&r, (uint16_t)(number % ENDS + 1), number);
	/* And from the other end. */
	for (uint32_t number = ENDS; number >= 1; number--)
		assert_int_equal(assign(&r, number, (uint16_t)number), 0);
	for (uint32_t number = 1; number <= ENDS; number++)
		is_at(&r, (uint16_t)number, number);
	end(&r);
}

/* Who has got another's LID, and then gets another one, leaves it to the one who still has it. */
static void left_again(void **state)
{
	struct rig r;

	(void)state;
	up(&r);
	assert_int_equal(assign(&r, 3, 5), 0);
	assert_int_equal(assign(&r, 3, 40), 0);
	is_at(&r, 40, 3);
	is_at(&r, 5, 5);
	end(&r);
}

static void of_switch(void **state)
{
	struct sh_port_msg m = {.host = 0, .port = 2, .what = SH_PORT_LID};
	struct sh_status st;
	struct rig r;

	(void)state;
	up(&r);
	assert_int_equal(assign(&r, THE_SWITCH, 4), 0);
	is_at(&r, 4, THE_SWITCH);
	assert_int_equal(leads_to(&r, SH_SWITCH_LID), NOBODY);
	/* Its own is free now. */
	assert_int_equal(assign(&r, 4, SH_SWITCH_LID), 0);
	is_at(&r, SH_SWITCH_LID, 4);
	is_at(&r, 4, THE_SWITCH);
	/* `softhca port` takes it from nobody. */
	for (m.a = 3; m.a <= 4; m.a++) {
		assert_true(port_change(&r.t->k, &m, true, &st));
		assert_int_equal(st.error, EBUSY);
		is_at(&r, 2, 2);
	}
	/* Back, while somebody has it, and has it still when the switch goes on. */
	assert_int_equal(assign(&r, THE_SWITCH, SH_SWITCH_LID), 0);
	is_at(&r, SH_SWITCH_LID, THE_SWITCH);
	assert_int_equal(assign(&r, THE_SWITCH, 100), 0);
	is_at(&r, SH_SWITCH_LID, 4);
	is_at(&r, 100, THE_SWITCH);
	end(&r);
}

static void refused(void **state)
{
	static const uint16_t none[] = {0, SH_MAX_LIDS, 0xbfff, 0xc000, 0xffff};
	struct rig r;

	(void)state;
	up(&r);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_int_equal(assign(&r, 3, none[i]), STATUS_VALUE);
		is_at(&r, 3, 3);
		assert_int_equal(assign(&r, THE_SWITCH, none[i]), STATUS_VALUE);
		is_at(&r, SH_SWITCH_LID, THE_SWITCH);
	}
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(swapped),    cmocka_unit_test(all),
		cmocka_unit_test(left_again), cmocka_unit_test(of_switch),
		cmocka_unit_test(refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
