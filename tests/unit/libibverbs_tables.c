// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Description: the texts for enumeration values and the rate conversions, in and out of range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <infiniband/verbs.h>

static void node_types(void **state)
{
	(void)state;
	assert_string_equal(ibv_node_type_str(1), "InfiniBand channel adapter");
	assert_string_equal(ibv_node_type_str(2), "InfiniBand switch");
	assert_string_equal(ibv_node_type_str(3), "InfiniBand router");
	assert_string_equal(ibv_node_type_str(4), "iWARP NIC");
	assert_string_equal(ibv_node_type_str(0), "unknown");
	assert_string_equal(ibv_node_type_str(5), "unknown");
	assert_string_equal(ibv_node_type_str(IBV_NODE_UNKNOWN), "unknown");
}

static void port_states(void **state)
{
	static const char *const texts[] = {
		"no state change (NOP)", "down", "init", "armed", "active", "active defer"};
	int i;

	(void)state;
	for (i = 0; i < 6; ++i)
		assert_string_equal(ibv_port_state_str(i), texts[i]);
	assert_string_equal(ibv_port_state_str(6), "unknown");
	assert_string_equal(ibv_port_state_str(-1), "unknown");
}

static void event_types(void **state)
{
	static const char *const texts[] = {
		"CQ error",
		"local work queue catastrophic error",
		"invalid request local work queue error",
		"local access violation work queue error",
		"communication established",
		"send queue drained",
		"path migrated",
		"path migration request error",
		"local catastrophic error",
		"port active",
		"port error",
		"LID change",
		"P_Key change",
		"SM change",
		"SRQ catastrophic error",
		"SRQ limit reached",
		"last WQE reached",
		"client reregistration",
	};
	int i;

	(void)state;
	for (i = 0; i < 18; ++i)
		assert_string_equal(ibv_event_type_str(i), texts[i]);
	/* IBV_EVENT_GID_CHANGE never had a text. */
	assert_string_equal(ibv_event_type_str(18), "unknown");
	assert_string_equal(ibv_event_type_str(-1), "unknown");
	assert_string_equal(ibv_event_type_str((enum ibv_event_type)IBV_XRC_QP_EVENT_FLAG),
			    "unknown");
}

static void wc_statuses(void **state)
{
	static const char *const texts[] = {
		"success",
		"local length error",
		"local QP operation error",
		"local EE context operation error",
		"local protection error",
		"Work Request Flushed Error",
		"memory management operation error",
		"bad response error",
		"local access error",
		"remote invalid request error",
		"remote access error",
		"remote operation error",
		"transport retry counter exceeded",
		"RNR retry counter exceeded",
		"local RDD violation error",
		"remote invalid RD request",
		"aborted error",
		"invalid EE context number",
		"invalid EE context state",
		"fatal error",
		"response timeout error",
		"general error",
	};
	int i;

	(void)state;
	for (i = 0; i < 22; ++i)
		assert_string_equal(ibv_wc_status_str(i), texts[i]);
	assert_string_equal(ibv_wc_status_str(22), "unknown");
	assert_string_equal(ibv_wc_status_str(-1), "unknown");
}

static void rates(void **state)
{
	static const struct {
		enum ibv_rate rate;
		int mult;
	} table[] = {
		{IBV_RATE_2_5_GBPS, 1}, {IBV_RATE_5_GBPS, 2},	{IBV_RATE_10_GBPS, 4},
		{IBV_RATE_20_GBPS, 8},	{IBV_RATE_30_GBPS, 12}, {IBV_RATE_40_GBPS, 16},
		{IBV_RATE_60_GBPS, 24}, {IBV_RATE_80_GBPS, 32}, {IBV_RATE_120_GBPS, 48},
	};
	size_t i;
	int n, known;

	(void)state;
	for (i = 0; i < 9; ++i) {
		assert_int_equal(ibv_rate_to_mult(table[i].rate), table[i].mult);
		assert_int_equal(mult_to_ibv_rate(table[i].mult), table[i].rate);
	}
	for (n = -1; n < 64; ++n) {
		for (i = 0, known = 0; i < 9; ++i)
			known |= (int)table[i].rate == n;
		if (!known)
			assert_int_equal(ibv_rate_to_mult(n), -1);
		for (i = 0, known = 0; i < 9; ++i)
			known |= table[i].mult == n;
		if (!known)
			assert_int_equal(mult_to_ibv_rate(n), IBV_RATE_MAX);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_types),  cmocka_unit_test(port_states),
		cmocka_unit_test(event_types), cmocka_unit_test(wc_statuses),
		cmocka_unit_test(rates),
	};

	return cmocka_run_group_tests_name("tables", tests, NULL, NULL);
}
