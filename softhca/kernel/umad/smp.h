/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Subnet management: the agents of ports and of the switch, and the built-in subnet manager's word
 * about itself.
 */
#ifndef SOFTHCA_KERNEL_UMAD_SMP_H
#define SOFTHCA_KERNEL_UMAD_SMP_H

#include "fabric.h"

#define SM_STATE_MASTER	  3
#define PORT_STATE_CHANGE 4 /* of SwitchInfo, with the lifetime */

enum smp_attribute {
	NODE_DESCRIPTION = 0x10,
	NODE_INFO = 0x11,
	SWITCH_INFO = 0x12,
	GUID_INFO = 0x14,
	PORT_INFO = 0x15,
	PKEY_TABLE = 0x16,
	SL_TO_VL = 0x17,
	VL_ARBITRATION = 0x18,
	LINEAR_TABLE = 0x19,
	MULTICAST_TABLE = 0x1b,
	SM_INFO = 0x20,
};

/* PortInfo. Where a field shares an octet, its bits are named. */
enum port_info_offset {
	PI_MKEY = 0,
	PI_PREFIX = 8,
	PI_LID = 16,
	PI_SM_LID = 18,
	PI_CAPABILITIES = 20,
	PI_DIAGNOSTICS = 24,
	PI_MKEY_LEASE = 26,
	PI_LOCAL_PORT = 28,
	PI_WIDTH = 29, /* that is enabled */
	PI_WIDTH_SUPPORTED = 30,
	PI_WIDTH_ACTIVE = 31,
	PI_STATE = 32,	  /* 0-3; 4-7: the speeds that are supported */
	PI_PHYSICAL = 33, /* 4-7; 0-3: what the link does when it goes down */
	PI_LMC = 34,	  /* 0-2; 6-7: how far the M_Key protects */
	PI_SPEED = 35,	  /* 0-3: those that are enabled; 4-7: the active one */
	PI_MTU = 36,	  /* 4-7: the neighbour's; 0-3: the SL of the manager */
	PI_VL_CAP = 37,	  /* 4-7; 0-3: InitType */
	PI_VL_HIGH_LIMIT = 38,
	PI_VL_HIGH_CAP = 39,
	PI_VL_LOW_CAP = 40,
	PI_MTU_CAP = 41,  /* 0-3; 4-7: InitTypeReply */
	PI_VL_STALL = 42, /* 5-7; 0-4: the lifetime at the head of a queue */
	PI_VLS = 43,	  /* 4-7: that are used; 0-3: what is enforced and filtered */
	PI_MKEY_VIOLATIONS = 44,
	PI_PKEY_VIOLATIONS = 46,
	PI_QKEY_VIOLATIONS = 48,
	PI_GUID_CAP = 50,
	PI_REREGISTER = 51, /* 7; 0-4: the subnet's timeout */
	PI_RESPONSE_TIME = 52,
	PI_ERRORS = 53, /* thresholds: 4-7: of the link, 0-3: of buffers */
};

/* A Get or Set: the status of the answer, which is in place. -1: not for the node's agent. */
int smp_answer(struct umad *u, const struct mad_node *n, uint8_t *mad);
/* The same of the subnet manager, if it is on that port. */
int smp_sm_answer(struct umad *u, const struct mad_node *n, uint8_t *mad);
bool smp_is_sm(struct umad *u, const struct mad_node *n);

/* Attributes of a node, as its agent tells them, for the subnet administrator. data is zero. */
void smp_node_info(struct umad *u, const struct mad_node *n, uint8_t data[64]);
void smp_node_description(struct umad *u, const struct mad_node *n, uint8_t data[64]);
/* number: 0 and on of a switch; of a CA, its ports. False: it has no such port. */
bool smp_port_info(struct umad *u, const struct mad_node *n, uint32_t number, uint8_t data[64]);
uint32_t smp_switch_sm_lid(struct umad *u); /* that its port 0 tells */
/* Any attribute of it. False: the node has no such attribute, or none of that modifier. */
bool smp_get(struct umad *u, const struct mad_node *n, uint16_t attribute, uint32_t modifier,
	     uint8_t data[64]);
/* Of the manager at that port. */
void smp_sm_info(struct umad *u, const struct mad_node *n, uint8_t data[64]);

#endif
