// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a subnet manager writes. LIDs, the SM's LID, P_Keys and links of ports change as `softhca
 * port` changes them, with the events that programs get of it. Everything else is stored, so that
 * the manager finds it again, and has no effect: see sm.h. A value that is refused has changed
 * nothing of its attribute: all checks come before the first change.
 */
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/transport/fabric.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/room.h"
#include "sm.h"
#include "smp.h"
#include "smp_set.h"

/*
 * PortInfo: what is stored, bit by bit. A field of zeroes in the link's own settings changes
 * nothing.
 */
static const uint8_t stored[64] = {
	[PI_MKEY] = 0xff,	   [PI_MKEY + 1] = 0xff,
	[PI_MKEY + 2] = 0xff,	   [PI_MKEY + 3] = 0xff,
	[PI_MKEY + 4] = 0xff,	   [PI_MKEY + 5] = 0xff,
	[PI_MKEY + 6] = 0xff,	   [PI_MKEY + 7] = 0xff,
	[PI_MKEY_LEASE] = 0xff,	   [PI_MKEY_LEASE + 1] = 0xff,
	[PI_WIDTH] = 0xff,	   [PI_PHYSICAL] = 0x0f,
	[PI_LMC] = 0xc0,	   [PI_SPEED] = 0x0f,
	[PI_MTU] = 0xff,	   [PI_VL_CAP] = 0x0f,
	[PI_VL_HIGH_LIMIT] = 0xff, [PI_VL_STALL] = 0xff,
	[PI_VLS] = 0xff,	   [PI_REREGISTER] = 0x1f,
	[PI_ERRORS] = 0xff,
};
enum { STATE_ACTIVE = 4 };
enum { LAST_UNICAST = 0xbfff };

/* Nibbles of which 0 means: as it is. */
static const struct {
	uint8_t at, mask;
} kept[] = {
	{PI_WIDTH, 0xff}, {PI_PHYSICAL, 0x0f}, {PI_SPEED, 0x0f}, {PI_MTU, 0xf0}, {PI_VLS, 0xf0}};

static void store(uint8_t *to, const uint8_t *now, const uint8_t *data)
{
	memcpy(to, data, 64);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (!(data[kept[i].at] & kept[i].mask))
			to[kept[i].at] |= now[kept[i].at] & kept[i].mask;
	/* Everything that the link has. */
	if (data[PI_WIDTH] == 0xff)
		to[PI_WIDTH] = now[PI_WIDTH_SUPPORTED];
	if ((data[PI_SPEED] & 0x0f) == 0x0f)
		to[PI_SPEED] = (uint8_t)((to[PI_SPEED] & 0xf0) | now[PI_STATE] >> 4);
}

static void overlay(uint8_t data[64], const uint8_t *from)
{
	for (size_t i = 0; i < 64; i++)
		data[i] = (uint8_t)((data[i] & ~stored[i]) | (from[i] & stored[i]));
}

void smp_overlay_port_info(struct umad *u, const struct mad_node *n, uint32_t number,
			   uint8_t data[64])
{
	const struct umad_written *w = sm_written(u);
	uint32_t own = n->is_switch ? number : fabric_port_of(u, n->hca, n->port);

	if (!w)
		return;
	if (n->is_switch && w->has_switch_port[own]) {
		overlay(data, w->switch_port[own]);
		if (!own && mad16(w->switch_port[0], PI_SM_LID))
			memcpy(data + PI_SM_LID, w->switch_port[0] + PI_SM_LID, 2);
	} else if (!n->is_switch && w->has_port[own]) {
		overlay(data, w->port[own]);
	}
}

void smp_overlay_switch_info(struct umad *u, uint8_t data[64])
{
	const struct umad_written *w = sm_written(u);

	if (!w || !w->has_switch_info)
		return;
	memcpy(data + 6, w->switch_info + 6, 5); /* the top of the table, default ports */
	data[11] = w->switch_info[11] & 0xf8;	 /* lifetime; not PortStateChange */
}

/* As `softhca port` does. */
static int change(struct umad *u, uint32_t hca, uint32_t port, uint32_t what, uint32_t a,
		  uint32_t b)
{
	const struct sh_config *c = u->cfg;
	struct sh_port_msg m = {.host = hca / c->hcas_per_host,
				.hca = hca % c->hcas_per_host,
				.port = port,
				.what = what,
				.a = a,
				.b = b};
	struct sh_status st;

	(void)port_change(u->k, &m, true, &st);
	return st.error ? STATUS_VALUE : 0;
}

/* What the Set makes of a link: PORT_POLLING or PORT_DISABLED; 0: it stays as it is. */
static uint32_t new_link(struct umad *u, uint32_t hca, uint32_t port, const uint8_t data[64])
{
	uint32_t physical = data[PI_PHYSICAL] >> 4;

	/* As Get tells it. */
	return physical == PORT_LINK_UP && fabric_link(u, hca, port) ? 0 : physical;
}

/*
 * Can the link have that state? It is up and ACTIVE, or down: a manager never finds another state.
 */
static bool link_ok(struct umad *u, uint32_t hca, uint32_t port, const uint8_t data[64])
{
	uint32_t physical = new_link(u, hca, port, data), state = data[PI_STATE] & 15;

	return (!state || state == STATE_ACTIVE) && physical <= PORT_DISABLED && physical != 1 &&
	       (state != STATE_ACTIVE || fabric_link(u, hca, port));
}

static int change_link(struct umad *u, uint32_t hca, uint32_t port, const uint8_t data[64])
{
	uint32_t physical = new_link(u, hca, port, data);

	if (!physical)
		return 0;
	return change(u, hca, port, physical == PORT_POLLING ? SH_PORT_UP : SH_PORT_DOWN, 0, 0);
}

static bool has_lid(const struct umad *u, uint32_t hca, uint32_t port, uint32_t lid)
{
	uint32_t h, p;

	return sh_hca(u->dev, hca)->port[port - 1].lid == lid &&
	       sh_lid_exact(u->dev, lid, &h, &p) && h == hca && p == port;
}

static int set_ca_port(struct umad *u, const struct mad_node *n, uint32_t number,
		       const uint8_t data[64])
{
	uint32_t port = number ? number : n->port, lid = mad16(data, PI_LID), sm_lid, own;
	struct umad_written *w = sm_write(u);
	struct mad_node at = *n;
	const struct sh_port *p;
	uint8_t now[64] = {0};
	bool new_sm;
	int status;

	if (port > u->cfg->ports)
		return STATUS_VALUE;
	if (!w)
		return STATUS_BUSY;
	at.port = port;
	own = fabric_port_of(u, n->hca, port);
	p = &sh_hca(u->dev, n->hca)->port[port - 1];
	sm_lid = mad16(data, PI_SM_LID);
	if ((uint32_t)(data[PI_LMC] & 7) != p->lmc || !sm_lid || sm_lid > LAST_UNICAST ||
	    !link_ok(u, n->hca, port, data))
		return STATUS_VALUE;
	(void)smp_port_info(u, &at, port, now);
	/*
	 * Here it shows whether the port can have the LID. Once it can, nothing refuses the rest.
	 */
	status =
		has_lid(u, n->hca, port, lid) ? 0 : change(u, n->hca, port, SH_PORT_LID, lid, true);
	status = status ? status : change_link(u, n->hca, port, data);
	new_sm = sm_lid != p->sm_lid;
	if (!status && new_sm)
		status = change(u, n->hca, port, SH_PORT_SM, sm_lid, 0);
	if (status)
		return status;
	store(w->port[own], now, data);
	w->has_port[own] = true;
	/* A new SM LID has caused that event already. */
	if (data[PI_REREGISTER] & 0x80 && !new_sm)
		ROOMS(port_event, u->k, n->hca, port, PORT_CLIENT_REREGISTER);
	return 0;
}

static int set_switch_port(struct umad *u, uint32_t number, uint32_t in, const uint8_t data[64])
{
	const struct mad_node n = {.is_switch = true, .in = in};
	struct umad_written *w = sm_write(u);
	uint8_t now[64] = {0};
	uint32_t hca, port;
	int status;

	if (!w)
		return STATUS_BUSY;
	if (!smp_port_info(u, &n, number, now))
		return STATUS_VALUE;
	if (!number) {
		if (data[PI_LMC] & 7 || port_switch_lid(u->k, mad16(data, PI_LID)))
			return STATUS_VALUE;
	} else {
		fabric_end_of(u, number, &hca, &port);
		if (!link_ok(u, hca, port, data))
			return STATUS_VALUE;
		/* Before the events: a program that gets one asks for the new state. */
		if (new_link(u, hca, port, data) == PORT_DISABLED && fabric_link(u, hca, port))
			u->hcas[hca].cut_ports |= 1u << port;
		status = change_link(u, hca, port, data);
		if (status)
			return status;
	}
	store(w->switch_port[number], now, data);
	w->has_switch_port[number] = true;
	return 0;
}

static int set_pkeys(struct umad *u, const struct mad_node *n, uint32_t modifier,
		     const uint8_t data[64])
{
	uint32_t block = modifier & 0xffff, port = modifier >> 16;
	struct umad_written *w = sm_write(u);
	uint16_t pkey[PORT_PKEYS];

	if (!w)
		return STATUS_BUSY;
	if (n->is_switch) {
		if (block || port > fabric_ports(u))
			return STATUS_VALUE;
		memcpy(w->switch_pkeys[port], data, 64);
		w->has_switch_pkeys[port] = true;
		return 0;
	}
	if (block >= SH_PKEYS / PORT_PKEYS)
		return STATUS_VALUE;
	for (uint32_t i = 0; i < PORT_PKEYS; i++)
		pkey[i] = mad16(data, i * 2);
	return port_pkeys(u->k, n->hca, n->port, block * PORT_PKEYS, pkey) ? STATUS_VALUE : 0;
}

/* Before the first Set of a block: the others are as they were. */
static void keep_linear_table(struct umad *u, struct umad_written *w)
{
	for (uint32_t lid = 0; !w->has_lft && lid < LFT_SIZE; lid++)
		w->lft[lid] = fabric_forward(u, lid);
	w->has_lft = true;
}

static void keep_multicast_table(struct umad *u, struct umad_written *w)
{
	const struct mad_node n = {.is_switch = true};

	for (uint32_t at = 0; !w->has_mft && at < MFT_POSITIONS; at++)
		for (uint32_t block = 0; block < MFT_GROUPS / 32; block++)
			(void)smp_get(u, &n, MULTICAST_TABLE, at << 28 | block,
				      w->mft[at][(size_t)block * 32]);
	w->has_mft = true;
}

static int set_table(struct umad *u, uint16_t attribute, uint32_t modifier, const uint8_t data[64])
{
	struct umad_written *w = sm_write(u);
	uint32_t block = modifier & 0xfffffff;

	if (!w)
		return STATUS_BUSY;
	if (attribute == SWITCH_INFO) {
		memcpy(w->switch_info, data, 64);
		/* A manager that has seen the bit sets it, which clears it. */
		if (data[11] & PORT_STATE_CHANGE)
			u->port_state_change = false;
		w->has_switch_info = true;
	} else if (attribute == LINEAR_TABLE && modifier < LFT_SIZE / 64) {
		keep_linear_table(u, w);
		memcpy(w->lft + (size_t)modifier * 64, data, 64);
	} else if (attribute == MULTICAST_TABLE && block < MFT_GROUPS / 32) {
		keep_multicast_table(u, w);
		memcpy(w->mft[modifier >> 28][(size_t)block * 32], data, 64);
	} else {
		return STATUS_VALUE;
	}
	return 0;
}

int smp_set(struct umad *u, const struct mad_node *n, uint16_t attribute, uint32_t modifier,
	    const uint8_t data[64])
{
	switch (attribute) {
	case PORT_INFO:
		return n->is_switch ? set_switch_port(u, modifier & 0xff, n->in, data)
				    : set_ca_port(u, n, modifier & 0xff, data);
	case PKEY_TABLE:
		return set_pkeys(u, n, modifier, data);
	case SWITCH_INFO:
	case LINEAR_TABLE:
	case MULTICAST_TABLE:
		return n->is_switch ? set_table(u, attribute, modifier, data) : STATUS_ATTRIBUTE;
	default:
		return STATUS_ATTRIBUTE;
	}
}
