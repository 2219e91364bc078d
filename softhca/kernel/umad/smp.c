// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Subnet management datagrams. The agents tell how `softhca port` has set the ports. Of the switch
 * they tell what a subnet manager would have written, or what one has written (smp_set.h).
 */
#include <stdio.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/transport/fabric.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/room.h"
#include "softhca/kernel/sysfs.h"
#include "sm.h"
#include "smp.h"
#include "smp_set.h"

#define VENDOR	     0x0002c9
#define CA_DEVICE    0x673c
#define SW_DEVICE    0xbd36
#define REVISION     0xb0
#define CAP_SWITCH   0x00000848 /* SL mapping, system image GUID, trap */
#define LFT_TOP	     (SH_MAX_LIDS - 1)
#define FIRST_MLID   0xc000u
#define NO_PORT	     255
#define SWITCH_PKEYS 8

static const struct sh_port *port_of(struct umad *u, const struct mad_node *n)
{
	return &sh_hca(u->dev, n->hca)->port[n->port - 1];
}

void smp_node_description(struct umad *u, const struct mad_node *n, uint8_t data[64])
{
	if (n->is_switch)
		snprintf((char *)data, 64, "softhca-switch");
	else
		sysfs_node_description(u->k, n->hca, data);
}

void smp_node_info(struct umad *u, const struct mad_node *n, uint8_t data[64])
{
	uint64_t guid = n->is_switch ? fabric_switch_guid() : sh_hca(u->dev, n->hca)->node_guid;

	data[0] = data[1] = 1;
	data[2] = n->is_switch ? 2 : 1;
	data[3] = (uint8_t)(n->is_switch ? fabric_ports(u) : u->cfg->ports);
	mad_put64(data, 4, n->is_switch ? guid : guid + 3);
	mad_put64(data, 12, guid);
	mad_put64(data, 20, n->is_switch ? guid : guid + n->port);
	mad_put16(data, 28, n->is_switch ? SWITCH_PKEYS : SH_PKEYS);
	mad_put16(data, 30, n->is_switch ? SW_DEVICE : CA_DEVICE);
	mad_put32(data, 32, REVISION);
	mad_put32(data, 36, n->in << 24 | VENDOR);
}

static void switch_info(struct umad *u, uint8_t data[64])
{
	mad_put16(data, 0, 0xbfff + 1);
	mad_put16(data, 4, MFT_GROUPS);
	mad_put16(data, 6, LFT_TOP);
	data[8] = data[9] = data[10] = NO_PORT;
	data[11] = 18 << 3;
	mad_put16(data, 14, SWITCH_PKEYS);
	smp_overlay_switch_info(u, data);
	if (u->port_state_change)
		data[11] |= PORT_STATE_CHANGE;
}

/* What all ports have. */
static void port_common(uint8_t data[64], uint32_t local, uint32_t state, uint32_t phys)
{
	data[PI_LOCAL_PORT] = (uint8_t)local;
	data[PI_WIDTH] = data[PI_WIDTH_SUPPORTED] = 3; /* 1X, 4X */
	data[PI_WIDTH_ACTIVE] = 2;
	data[PI_STATE] = (uint8_t)(7 << 4 | state); /* up to QDR */
	data[PI_PHYSICAL] = (uint8_t)(phys << 4 | 2);
	data[PI_SPEED] = 4 << 4 | 7;
	data[PI_MTU] = 5 << 4;	  /* MTU 4096 */
	data[PI_VL_CAP] = 4 << 4; /* VL 0 to 7 */
	data[PI_VL_HIGH_CAP] = data[PI_VL_LOW_CAP] = 8;
	data[PI_MTU_CAP] = 5;
	data[PI_VL_STALL] = 7 << 5 | 8;
	data[PI_VLS] = 4 << 4;
	data[PI_RESPONSE_TIME] = 16;
	data[PI_ERRORS] = 8 << 4 | 8;
}

/* Like all counters of 16 bits, it stops at its maximum. */
static uint32_t violations(uint64_t n)
{
	return n > UINT16_MAX ? UINT16_MAX : (uint32_t)n;
}

static void ca_port_info(struct umad *u, const struct mad_node *n, uint32_t local, uint8_t data[64])
{
	const struct sh_hca *h = sh_hca(u->dev, n->hca);
	const struct sh_port *p = port_of(u, n);
	bool up = fabric_link(u, n->hca, n->port);

	port_common(data, local, up ? 4 : 1, port_physical(u->k, n->hca, n->port));
	memcpy(data + PI_PREFIX, p->gid[0], 8);
	mad_put16(data, PI_LID, p->lid);
	mad_put16(data, PI_SM_LID, p->sm_lid);
	mad_put32(data, PI_CAPABILITIES, port_capabilities(u->k, n->hca, n->port));
	data[PI_LMC] = p->lmc & 7;
	data[PI_MTU] = (uint8_t)(port_mtu(u->k) << 4);
	mad_put16(data, PI_PKEY_VIOLATIONS, violations(h->traffic[n->port - 1].rcv_constraint));
	mad_put16(data, PI_QKEY_VIOLATIONS, violations(h->counters.drops_qkey));
	data[PI_GUID_CAP] = SH_GIDS;
	data[PI_REREGISTER] = 18;
}

static bool has_manager(struct umad *u, uint32_t lid)
{
	uint32_t hca, port;

	return sh_lid_lookup(u->dev, (uint16_t)lid, &hca, &port) &&
	       u->hcas[hca].sm_ports >> port & 1;
}

/*
 * The SM LID before a manager has told the switch its own. A manager cannot reach a port that is
 * down: such a port may name an earlier manager, also when it is up again.
 */
static uint32_t neighbours_sm_lid(struct umad *u)
{
	uint32_t hca, port, first = 0;

	for (uint32_t i = 1; i <= fabric_ports(u); i++) {
		uint32_t lid;

		fabric_end_of(u, i, &hca, &port);
		lid = sh_hca(u->dev, hca)->port[port - 1].sm_lid;
		if (!fabric_link(u, hca, port))
			continue;
		if (has_manager(u, lid))
			return lid;
		if (!first)
			first = lid;
	}
	return first ? first : sh_hca(u->dev, 0)->port[0].sm_lid;
}

static void switch_port_info(struct umad *u, uint32_t number, uint32_t in, uint8_t data[64])
{
	uint32_t hca, port, physical;

	if (!number) {
		port_common(data, in, 4, PORT_LINK_UP);
		mad_put64(data, PI_PREFIX, FABRIC_PREFIX);
		mad_put16(data, PI_LID, switch_lid(u->k));
		mad_put16(data, PI_SM_LID, neighbours_sm_lid(u));
		mad_put32(data, PI_CAPABILITIES, CAP_SWITCH);
		data[PI_REREGISTER] = 18;
		return;
	}
	fabric_end_of(u, number, &hca, &port);
	physical = port_physical(u->k, hca, port);
	/* One end is Disabled, and the other one looks for it. */
	if (physical != PORT_LINK_UP)
		physical = physical == PORT_POLLING ? PORT_DISABLED : PORT_POLLING;
	port_common(data, in, physical == PORT_LINK_UP ? 4 : 1, physical);
}

bool smp_port_info(struct umad *u, const struct mad_node *n, uint32_t number, uint8_t data[64])
{
	struct mad_node at = *n;

	if (n->is_switch) {
		if (number > fabric_ports(u))
			return false;
		switch_port_info(u, number, n->in, data);
		smp_overlay_port_info(u, n, number, data);
		return true;
	}
	at.port = number ? number : n->port;
	if (at.port > u->cfg->ports)
		return false;
	ca_port_info(u, &at, n->in, data);
	smp_overlay_port_info(u, &at, at.port, data);
	return true;
}

uint32_t smp_switch_sm_lid(struct umad *u)
{
	const struct mad_node n = {.is_switch = true};
	uint8_t data[64] = {0};

	(void)smp_port_info(u, &n, 0, data);
	return mad16(data, PI_SM_LID);
}

/*
 * What a manager writes into a port of the switch: the first P_Keys of the port that it is cabled
 * to.
 */
static void pkeys_beyond(struct umad *u, uint32_t number, uint8_t data[64])
{
	struct mad_node n = {0};

	fabric_end_of(u, number, &n.hca, &n.port);
	for (uint32_t i = 0; i < SWITCH_PKEYS; i++)
		mad_put16(data, i * 2, port_of(u, &n)->pkey[i]);
}

static bool pkeys(struct umad *u, const struct mad_node *n, uint32_t modifier, uint8_t data[64])
{
	uint32_t block = modifier & 0xffff, port = modifier >> 16;

	if (n->is_switch) {
		if (block || port > fabric_ports(u))
			return false;
		if (sm_written(u) && sm_written(u)->has_switch_pkeys[port])
			memcpy(data, sm_written(u)->switch_pkeys[port], 64);
		else if (port)
			pkeys_beyond(u, port, data);
		if (!port && !mad16(data, 0))
			mad_put16(data, 0, 0xffff);
		return true;
	}
	if (block >= SH_PKEYS / 32)
		return false;
	for (uint32_t i = 0; i < 32; i++)
		mad_put16(data, i * 2, port_of(u, n)->pkey[block * 32 + i]);
	return true;
}

static bool guids(struct umad *u, const struct mad_node *n, uint32_t block, uint8_t data[64])
{
	if (n->is_switch || block >= SH_GIDS / 8)
		return false;
	for (uint32_t i = 0; i < 8; i++)
		memcpy(data + i * 8, port_of(u, n)->gid[block * 8 + i] + 8, 8);
	return true;
}

static void sl_to_vl(uint8_t data[64])
{
	for (uint32_t i = 0; i < 8; i++)
		data[i] = (uint8_t)((i * 2 & 7) << 4 | ((i * 2 + 1) & 7));
}

/* Each lane has the same share. */
static bool vl_arbitration(uint32_t modifier, uint8_t data[64])
{
	uint32_t half = modifier >> 16;

	if (half < 1 || half > 4)
		return false;
	for (uint32_t i = 0; i < 8 && (half == 1 || half == 3); i++) {
		data[i * 2] = (uint8_t)i;
		data[i * 2 + 1] = half == 1 ? 4 : 0;
	}
	return true;
}

static bool linear_table(struct umad *u, uint32_t block, uint8_t data[64])
{
	bool written = sm_written(u) && sm_written(u)->has_lft;

	if (block > 0xbfff / 64)
		return false;
	for (uint32_t i = 0; i < 64; i++)
		data[i] = written ? sm_written(u)->lft[block * 64 + i]
				  : fabric_forward(u, block * 64 + i);
	return true;
}

struct mft_block {
	struct umad *u;
	uint32_t first, position; /* MLID, sixteenth of the ports */
	uint8_t *data;
};

static void enter(void *arg, uint16_t mlid, uint32_t hca, uint32_t port)
{
	const struct mft_block *b = arg;
	uint32_t number = fabric_port_of(b->u, hca, port), at = mlid - b->first;

	if (mlid < b->first || at >= 32 || number / 16 != b->position)
		return;
	mad_put16(b->data, (size_t)at * 2, mad16(b->data, (size_t)at * 2) | 1u << number % 16);
}

/* What a manager writes: the ports that get what is sent to a group. Messages need no table. */
static bool multicast_table(struct umad *u, uint32_t modifier, uint8_t data[64])
{
	uint32_t block = modifier & 0xfffffff;
	struct mft_block b = {u, FIRST_MLID + block * 32, modifier >> 28, data};

	if (block >= MFT_GROUPS / 32)
		return false;
	if (sm_written(u) && sm_written(u)->has_mft)
		memcpy(data, sm_written(u)->mft[modifier >> 28][(size_t)block * 32], 64);
	else
		ROOMS(group_ports, u->k, enter, &b);
	return true;
}

static bool switch_attribute(struct umad *u, uint16_t attribute, uint32_t modifier,
			     uint8_t data[64])
{
	if (attribute == SWITCH_INFO)
		switch_info(u, data);
	else if (attribute == LINEAR_TABLE)
		return linear_table(u, modifier, data);
	else if (attribute == MULTICAST_TABLE)
		return multicast_table(u, modifier, data);
	return true;
}

bool smp_get(struct umad *u, const struct mad_node *n, uint16_t attribute, uint32_t modifier,
	     uint8_t data[64])
{
	switch (attribute) {
	case NODE_DESCRIPTION:
		smp_node_description(u, n, data);
		return true;
	case NODE_INFO:
		smp_node_info(u, n, data);
		return true;
	case GUID_INFO:
		return guids(u, n, modifier, data);
	case PORT_INFO:
		return smp_port_info(u, n, modifier & 0xff, data);
	case PKEY_TABLE:
		return pkeys(u, n, modifier, data);
	case SL_TO_VL:
		sl_to_vl(data);
		return true;
	case VL_ARBITRATION:
		return vl_arbitration(modifier, data);
	default:
		return switch_attribute(u, attribute, modifier, data);
	}
}

static bool known(const struct mad_node *n, uint16_t attribute)
{
	switch (attribute) {
	case NODE_DESCRIPTION:
	case NODE_INFO:
	case PORT_INFO:
	case PKEY_TABLE:
	case SL_TO_VL:
	case VL_ARBITRATION:
		return true;
	case GUID_INFO:
		return !n->is_switch;
	case SWITCH_INFO:
	case LINEAR_TABLE:
	case MULTICAST_TABLE:
		return n->is_switch;
	default:
		return false;
	}
}

int smp_answer(struct umad *u, const struct mad_node *n, uint8_t *mad)
{
	uint16_t attribute = mad16(mad, AT_ATTRIBUTE);
	uint8_t data[64] = {0};

	if (mad[AT_CLASS_VERSION] != 1)
		return STATUS_VERSION;
	if (attribute == SM_INFO)
		return n->is_switch ? STATUS_ATTRIBUTE : -1;
	if (!known(n, attribute))
		return STATUS_ATTRIBUTE;
	if (mad[AT_METHOD] == METHOD_SET) {
		int status = smp_set(u, n, attribute, mad32(mad, AT_MODIFIER), mad + AT_DATA);

		if (status)
			return status;
	}
	if (!smp_get(u, n, attribute, mad32(mad, AT_MODIFIER), data))
		return STATUS_VALUE;
	memcpy(mad + AT_DATA, data, sizeof(data));
	return 0;
}

/* Is that where a port looks for the subnet manager? */
static bool is_sm_lid(struct umad *u, uint32_t lid)
{
	struct mad_node n = {0};

	for (uint32_t i = 1; lid && i <= fabric_ports(u); i++) {
		fabric_end_of(u, i, &n.hca, &n.port);
		if (port_of(u, &n)->sm_lid == lid)
			return true;
	}
	return false;
}

bool smp_is_sm(struct umad *u, const struct mad_node *n)
{
	return sm_built_in(u) && !n->is_switch && is_sm_lid(u, port_of(u, n)->lid);
}

void smp_sm_info(struct umad *u, const struct mad_node *n, uint8_t data[64])
{
	mad_put64(data, 0, sh_hca(u->dev, n->hca)->node_guid + n->port);
	mad_put32(data, 16, (uint32_t)++u->activity);
	data[20] = SM_STATE_MASTER;
}

int smp_sm_answer(struct umad *u, const struct mad_node *n, uint8_t *mad)
{
	if (mad16(mad, AT_ATTRIBUTE) != SM_INFO || mad[AT_METHOD] != METHOD_GET || !smp_is_sm(u, n))
		return -1;
	memset(mad + AT_DATA, 0, 64);
	smp_sm_info(u, n, mad + AT_DATA);
	return 0;
}
