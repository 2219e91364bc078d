// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Records of nodes, ports, links and tables. The attributes in them are those that the agents of
 * the nodes tell.
 *
 *	RECORD		RID				THEN
 *	Node		LID, 2 reserved			NodeInfo, 40 octets of it; NodeDescription
 *	PortInfo	LID, port, options		PortInfo
 *	SwitchInfo	LID, 2 reserved			SwitchInfo
 *	SMInfo		LID, 2 reserved			SMInfo
 *	SLtoVL		LID, in port, out port, 4 r.	table of 8 octets
 *	VLArbitration	LID, port, block, 4 r.		table
 *	P_KeyTable	LID, block of 2, port, 3 r.	table
 *	GUIDInfo	LID, block, 5 r.		GUIDs
 *	LFT		LID, block of 2, 4 r.		ports
 *	MFT		LID, position (4 bits), 3 r., block (9 bits), 4 r.	masks of ports
 *	Link		LID, port, its peer's port, LID
 */
#include <string.h>

#include "softhca/device/transport/fabric.h"
#include "softhca/kernel/ports.h"
#include "sa.h"
#include "sa_group.h"
#include "sa_inform.h"
#include "sa_path.h"
#include "sa_service.h"
#include "sa_table.h"
#include "smp.h"

#define CAP_MASK_MATCH (UINT32_C(1) << 31) /* of the modifier */
#define CAP_MASK_BIT   7
#define AT_CAP_MASK    (4 + PI_CAPABILITIES) /* in a PortInfoRecord */
#define TABLE_RECORD   72		     /* a RID of 8 octets, a block of a table */
#define VL_BLOCKS      4
#define LFT_BLOCK      64
#define MFT_BLOCK      32

enum sa_attribute {
	NODE_RECORD = 0x11,
	PORT_INFO_RECORD = 0x12,
	SL_TO_VL_RECORD = 0x13,
	SWITCH_INFO_RECORD = 0x14,
	LINEAR_TABLE_RECORD = 0x15,
	MULTICAST_TABLE_RECORD = 0x17,
	SM_INFO_RECORD = 0x18,
	LINK_RECORD = 0x20,
	GUID_INFO_RECORD = 0x30,
	SERVICE_RECORD = 0x31,
	PKEY_TABLE_RECORD = 0x33,
	PATH_RECORD = 0x35,
	VL_ARBITRATION_RECORD = 0x36,
	GROUP_RECORD = 0x38,
	INFORM_RECORD = 0xf3,
};

static const struct sa_component node_components[] = {
	{0, 0, 16},    {2, 32, 8},   {3, 40, 8},    {4, 48, 8},	    {5, 56, 8},
	{6, 64, 64},   {7, 128, 64}, {8, 192, 64},  {9, 256, 16},   {10, 272, 16},
	{11, 288, 32}, {12, 320, 8}, {13, 328, 24}, {14, 352, 512}, {0, 0, 0},
};
/* PortInfo begins at bit 32. The mask of capabilities is looked at in ports(). */
static const struct sa_component port_components[] = {
	{0, 0, 16},    {1, 16, 8},    {3, 32, 64},   {4, 96, 64},  {5, 160, 16}, {6, 176, 16},
	{8, 224, 16},  {9, 240, 16},  {10, 256, 8},  {11, 264, 8}, {12, 272, 8}, {13, 280, 8},
	{14, 288, 4},  {15, 292, 4},  {16, 296, 4},  {17, 300, 4}, {18, 304, 2}, {20, 309, 3},
	{21, 312, 4},  {22, 316, 4},  {23, 320, 4},  {24, 324, 4}, {25, 328, 4}, {26, 332, 4},
	{27, 336, 8},  {28, 344, 8},  {29, 352, 8},  {30, 360, 4}, {31, 364, 4}, {32, 368, 3},
	{33, 371, 5},  {34, 376, 4},  {35, 380, 1},  {36, 381, 1}, {37, 382, 1}, {38, 383, 1},
	{39, 384, 16}, {40, 400, 16}, {41, 416, 16}, {42, 432, 8}, {44, 443, 5}, {46, 451, 5},
	{47, 456, 4},  {48, 460, 4},  {0, 0, 0},
};
static const struct sa_component sm_components[] = {
	{0, 0, 16}, {2, 32, 64}, {3, 96, 64}, {4, 160, 32}, {5, 192, 4}, {6, 196, 4}, {0, 0, 0}};
static const struct sa_component link_components[] = {
	{0, 0, 16}, {1, 16, 8}, {2, 24, 8}, {3, 32, 16}, {0, 0, 0}};
static const struct sa_component lid_component[] = {{0, 0, 16}, {0, 0, 0}};
/* LID; two octets of which each is one; two octets that are one. */
static const struct sa_component octet_components[] = {
	{0, 0, 16}, {1, 16, 8}, {2, 24, 8}, {0, 0, 0}};
static const struct sa_component pkey_components[] = {
	{0, 0, 16}, {1, 16, 16}, {2, 32, 8}, {0, 0, 0}};
static const struct sa_component block_components[] = {{0, 0, 16}, {1, 16, 16}, {0, 0, 0}};
static const struct sa_component multicast_components[] = {
	{0, 0, 16}, {1, 16, 4}, {3, 23, 9}, {0, 0, 0}};

static void nodes(struct sa_table *t)
{
	struct mad_node n;

	for (uint32_t i = 0; i <= fabric_ports(t->u); i++) {
		uint8_t r[112] = {0}, info[64] = {0};

		if (!sa_end_port(t->u, i, &n))
			continue;
		mad_put16(r, 0, fabric_lid_of(t->u, &n));
		smp_node_info(t->u, &n, info);
		memcpy(r + 4, info, 40);
		smp_node_description(t->u, &n, r + 44);
		sa_offer(t, r);
	}
}

/* Either each capability that the query asks for must be set, or the whole mask must be equal. */
static bool capabilities_fit(const struct sa_table *t, const uint8_t *record)
{
	uint32_t has = mad32(record, AT_CAP_MASK), asked = mad32(t->asked, AT_SA + AT_CAP_MASK);

	if (!sa_names(t, CAP_MASK_BIT))
		return true;
	return mad32(t->asked, AT_MODIFIER) & CAP_MASK_MATCH ? (has & asked) == asked
							     : has == asked;
}

/* Calls fn for each port of each node: of a switch also its own, which is port 0. */
static void each_port(struct sa_table *t, void (*fn)(struct sa_table *t, const struct mad_node *n,
						     uint32_t port, uint8_t *r))
{
	struct mad_node n;

	for (uint32_t i = 0; i <= fabric_ports(t->u); i++) {
		uint32_t first, last;

		if (!sa_end_port(t->u, i, &n))
			continue;
		first = n.is_switch ? 0 : n.port;
		last = n.is_switch ? fabric_ports(t->u) : n.port;
		for (uint32_t port = first; port <= last; port++) {
			uint8_t r[TABLE_RECORD] = {0};

			mad_put16(r, 0, fabric_lid_of(t->u, &n));
			fn(t, &n, port, r);
		}
	}
}

static void port_info(struct sa_table *t, const struct mad_node *n, uint32_t port, uint8_t *r)
{
	r[2] = (uint8_t)port;
	(void)smp_port_info(t->u, n, port, r + 4);
	if (capabilities_fit(t, r))
		sa_offer(t, r);
}

static void ports(struct sa_table *t)
{
	each_port(t, port_info);
}

/* A block of a table, as the node's agent gives it. */
static bool block_of(struct sa_table *t, const struct mad_node *n, uint16_t attribute,
		     uint32_t modifier, uint8_t *r)
{
	memset(r + 8, 0, 64);
	return smp_get(t->u, n, attribute, modifier, r + 8);
}

static void sl_to_vl_of(struct sa_table *t, const struct mad_node *n, uint32_t port, uint8_t *r)
{
	for (uint32_t in = 0; in <= (n->is_switch ? fabric_ports(t->u) : 0); in++) {
		r[2] = (uint8_t)in;
		r[3] = (uint8_t)(n->is_switch ? port : 0);
		if (block_of(t, n, SL_TO_VL, in << 8 | r[3], r))
			sa_offer(t, r);
	}
}

static void sl_to_vl(struct sa_table *t)
{
	each_port(t, sl_to_vl_of);
}

static void vl_arbitration_of(struct sa_table *t, const struct mad_node *n, uint32_t port,
			      uint8_t *r)
{
	r[2] = (uint8_t)(n->is_switch ? port : 0);
	for (uint32_t block = 1; block <= VL_BLOCKS; block++) {
		r[3] = (uint8_t)block;
		if (block_of(t, n, VL_ARBITRATION, block << 16 | r[2], r))
			sa_offer(t, r);
	}
}

static void vl_arbitration(struct sa_table *t)
{
	each_port(t, vl_arbitration_of);
}

static void pkeys_of(struct sa_table *t, const struct mad_node *n, uint32_t port, uint8_t *r)
{
	r[4] = (uint8_t)port;
	for (uint32_t block = 0; block < (n->is_switch ? 1 : SH_PKEYS / 32); block++) {
		mad_put16(r, 2, block);
		if (block_of(t, n, PKEY_TABLE, (n->is_switch ? port << 16 : 0) | block, r))
			sa_offer(t, r);
	}
}

/* Only a query with the key of the subnet manager gets P_Keys. */
static void pkeys(struct sa_table *t)
{
	if (mad64(t->asked, AT_SM_KEY))
		each_port(t, pkeys_of);
}

static void guids_of(struct sa_table *t, const struct mad_node *n, uint32_t port, uint8_t *r)
{
	(void)port;
	for (uint32_t block = 0; !n->is_switch && block < SH_GIDS / 8; block++) {
		r[2] = (uint8_t)block;
		if (block_of(t, n, GUID_INFO, block, r))
			sa_offer(t, r);
	}
}

static void guids(struct sa_table *t)
{
	each_port(t, guids_of);
}

static void switches(struct sa_table *t)
{
	const struct mad_node n = {.is_switch = true};
	uint8_t r[TABLE_RECORD] = {0};

	mad_put16(r, 0, fabric_lid_of(t->u, &n));
	if (smp_get(t->u, &n, SWITCH_INFO, 0, r + 4))
		sa_offer(t, r);
}

static void linear_table(struct sa_table *t)
{
	const struct mad_node n = {.is_switch = true};
	uint8_t info[64] = {0}, r[TABLE_RECORD] = {0};

	if (!smp_get(t->u, &n, SWITCH_INFO, 0, info))
		return;
	mad_put16(r, 0, fabric_lid_of(t->u, &n));
	for (uint32_t block = 0; block <= (uint32_t)mad16(info, 6) / LFT_BLOCK; block++) {
		mad_put16(r, 2, block);
		if (block_of(t, &n, LINEAR_TABLE, block, r))
			sa_offer(t, r);
	}
}

/* Blocks in which a group has a port. */
static void multicast_table(struct sa_table *t)
{
	static const uint8_t zero[64];
	const struct mad_node n = {.is_switch = true};
	uint8_t info[64] = {0}, r[TABLE_RECORD] = {0};
	uint32_t blocks, positions = fabric_ports(t->u) / 16 + 1;

	if (!smp_get(t->u, &n, SWITCH_INFO, 0, info))
		return;
	blocks = (uint32_t)mad16(info, 4) / MFT_BLOCK;
	mad_put16(r, 0, fabric_lid_of(t->u, &n));
	for (uint32_t block = 0; block < blocks; block++)
		for (uint32_t position = 0; position < positions; position++) {
			mad_put16(r, 2, position << 12 | block);
			if (block_of(t, &n, MULTICAST_TABLE, position << 28 | block, r) &&
			    memcmp(r + 8, zero, 64) != 0)
				sa_offer(t, r);
		}
}

static void sms(struct sa_table *t)
{
	uint8_t r[32] = {0}, info[64] = {0};
	uint32_t lid = smp_switch_sm_lid(t->u);
	struct mad_node n = {0};

	if (!sh_lid_lookup(t->u->dev, (uint16_t)lid, &n.hca, &n.port))
		return;
	smp_sm_info(t->u, &n, info);
	mad_put16(r, 0, lid);
	memcpy(r + 4, info, 21);
	sa_offer(t, r);
}

/* Each cable, as either end has it. */
static void links(struct sa_table *t)
{
	struct mad_node n;

	for (uint32_t i = 0; i < fabric_ports(t->u); i++) {
		uint8_t there[8] = {0}, back[8] = {0};

		if (!sa_end_port(t->u, i, &n))
			continue;
		mad_put16(there, 0, fabric_lid_of(t->u, &n));
		there[2] = back[3] = (uint8_t)n.port;
		there[3] = back[2] = (uint8_t)(i + 1);
		mad_put16(there, 4, switch_lid(t->u->k));
		memcpy(back, there + 4, 2);
		memcpy(back + 4, there, 2);
		sa_offer(t, there);
		sa_offer(t, back);
	}
}

bool sa_collect(struct sa_table *t)
{
	static const struct {
		uint16_t attribute;
		uint8_t size;
		const struct sa_component *components;
		void (*fn)(struct sa_table *t);
	} table[] = {
		{NODE_RECORD, 112, node_components, nodes},
		{PORT_INFO_RECORD, 72, port_components, ports},
		{SL_TO_VL_RECORD, 16, octet_components, sl_to_vl},
		{SWITCH_INFO_RECORD, 32, lid_component, switches},
		{LINEAR_TABLE_RECORD, 72, block_components, linear_table},
		{MULTICAST_TABLE_RECORD, 72, multicast_components, multicast_table},
		{SM_INFO_RECORD, 32, sm_components, sms},
		{LINK_RECORD, 8, link_components, links},
		{GUID_INFO_RECORD, 72, octet_components, guids},
		{SERVICE_RECORD, SERVICE_RECORD_SIZE, sa_service_components, sa_services},
		{PKEY_TABLE_RECORD, 72, pkey_components, pkeys},
		{PATH_RECORD, 64, sa_path_components, sa_paths},
		{VL_ARBITRATION_RECORD, 72, octet_components, vl_arbitration},
		{GROUP_RECORD, GROUP_RECORD_SIZE, sa_group_components, sa_groups},
		{INFORM_RECORD, INFORM_RECORD_SIZE, sa_inform_components, sa_informs},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (table[i].attribute != mad16(t->asked, AT_ATTRIBUTE))
			continue;
		t->size = table[i].size;
		t->components = table[i].components;
		table[i].fn(t);
		return true;
	}
	return false;
}
