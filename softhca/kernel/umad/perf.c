// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Performance management datagrams. A port of the switch has received what the port at its cable
 * has sent, and the other way round.
 */
#include <string.h>

#include "softhca/device/memory/instance.h"
#include "softhca/kernel/counters.h"
#include "perf.h"

enum perf_attribute { CLASS_PORT_INFO = 0x01, PORT_COUNTERS = 0x12, PORT_COUNTERS_EXT = 0x1d };
#define CAP_EXTENDED  0x0200
#define CAP_XMIT_WAIT 0x1000
#define RESPONSE_TIME 18

/* Where each counter is in the data of PortCounters; its width is counter_bits(). */
static const uint8_t narrow_at[C_NARROW] = {4,	6,  7,	8,  10, 12, 14, 16, 17,
					    19, 19, 22, 24, 28, 32, 36, 40};
static const enum counter wide[8] = {C_XMIT_DATA,      C_RCV_DATA,     C_XMIT_PACKETS,
				     C_RCV_PACKETS,    C_UNICAST_XMIT, C_UNICAST_RCV,
				     C_MULTICAST_XMIT, C_MULTICAST_RCV};

static uint64_t field(const uint8_t *data, enum counter c)
{
	switch (counter_bits(c)) {
	case 4:
		return c == C_LOCAL_INTEGRITY ? data[narrow_at[c]] >> 4 : data[narrow_at[c]] & 15;
	case 8:
		return data[narrow_at[c]];
	case 16:
		return mad16(data, narrow_at[c]);
	default:
		return mad32(data, narrow_at[c]);
	}
}

static void set_field(uint8_t *data, enum counter c, uint64_t v)
{
	switch (counter_bits(c)) {
	case 4:
		data[narrow_at[c]] |= (uint8_t)(c == C_LOCAL_INTEGRITY ? v << 4 : v);
		return;
	case 8:
		data[narrow_at[c]] = (uint8_t)v;
		return;
	case 16:
		mad_put16(data, narrow_at[c], (uint32_t)v);
		return;
	default:
		mad_put32(data, narrow_at[c], (uint32_t)v);
	}
}

static void read_all(struct umad *u, const struct mad_node *n, uint32_t port,
		     enum counter_form form, uint64_t v[C_COUNTERS])
{
	uint32_t hca;

	if (!n->is_switch) {
		counters_read(u->k, n->hca, port, form, v);
		return;
	}
	memset(v, 0, C_COUNTERS * sizeof(v[0]));
	if (!port)
		return;
	fabric_end_of(u, port, &hca, &port);
	counters_mirrored(u->k, hca, port, form, v);
}

static void set_one(struct umad *u, const struct mad_node *n, uint32_t port, enum counter_form form,
		    enum counter c, uint64_t value)
{
	uint32_t hca;

	if (!n->is_switch) {
		counters_set(u->k, n->hca, port, form, c, value);
	} else if (port) {
		fabric_end_of(u, port, &hca, &port);
		counters_set_mirrored(u->k, hca, port, form, c, value);
	}
}

static void set_narrow(struct umad *u, const struct mad_node *n, uint32_t port, const uint8_t *data)
{
	uint32_t chosen = mad16(data, 2) | (uint32_t)(data[18] & 1) << C_XMIT_WAIT;

	for (uint32_t i = 0; i < C_NARROW; i++)
		if (chosen >> i & 1)
			set_one(u, n, port, COUNTERS_NARROW, i, field(data, i));
}

static void set_wide(struct umad *u, const struct mad_node *n, uint32_t port, const uint8_t *data)
{
	for (uint32_t i = 0; i < 8; i++)
		if (mad16(data, 2) >> i & 1)
			set_one(u, n, port, COUNTERS_WIDE, wide[i], mad64(data, 8 + i * 8));
}

int perf_answer(struct umad *u, const struct mad_node *n, uint8_t *mad)
{
	uint32_t port = mad[AT_DATA + 1], attribute = mad16(mad, AT_ATTRIBUTE);
	uint8_t *data = mad + AT_DATA;
	bool set = mad[AT_METHOD] == METHOD_SET;
	uint64_t v[C_COUNTERS];

	if (mad[AT_CLASS_VERSION] != 1)
		return STATUS_VERSION;
	if (attribute == CLASS_PORT_INFO && !set) {
		memset(data, 0, MAD_SIZE - AT_DATA);
		data[0] = data[1] = 1;
		mad_put16(data, 2, CAP_EXTENDED | CAP_XMIT_WAIT);
		data[7] = RESPONSE_TIME;
		return 0;
	}
	if (attribute != PORT_COUNTERS && attribute != PORT_COUNTERS_EXT)
		return STATUS_ATTRIBUTE;
	if (n->is_switch ? port > fabric_ports(u) : port < 1 || port > u->cfg->ports)
		return STATUS_VALUE;
	if (set && attribute == PORT_COUNTERS)
		set_narrow(u, n, port, data);
	else if (set)
		set_wide(u, n, port, data);
	memset(data + 4, 0, MAD_SIZE - AT_DATA - 4);
	read_all(u, n, port, attribute == PORT_COUNTERS ? COUNTERS_NARROW : COUNTERS_WIDE, v);
	for (uint32_t i = 0; attribute == PORT_COUNTERS && i < C_NARROW; i++)
		set_field(data, i, v[i]);
	for (uint32_t i = 0; attribute == PORT_COUNTERS_EXT && i < 8; i++)
		mad_put64(data, 8 + i * 8, v[wide[i]]);
	return 0;
}
