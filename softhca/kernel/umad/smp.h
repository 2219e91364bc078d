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

/* A Get or Set: the status of the answer, which is in place. -1: not for the node's agent. */
int smp_answer(struct kernel *k, const struct mad_node *n, uint8_t *mad);
/* The same of the subnet manager, if it is on that port. */
int smp_sm_answer(struct kernel *k, const struct mad_node *n, uint8_t *mad);
bool smp_is_sm(struct kernel *k, const struct mad_node *n);

/* Attributes of a node, as its agent tells them, for the subnet administrator. data is zero. */
void smp_node_info(struct kernel *k, const struct mad_node *n, uint8_t data[64]);
void smp_node_description(struct kernel *k, const struct mad_node *n, uint8_t data[64]);
/* number: 0 and on of a switch; of a CA, its ports. False: it has no such port. */
bool smp_port_info(struct kernel *k, const struct mad_node *n, uint32_t number, uint8_t data[64]);
uint32_t smp_switch_sm_lid(struct kernel *k); /* that its port 0 tells */
/* Any attribute of it. False: the node has no such attribute, or none of that modifier. */
bool smp_get(struct kernel *k, const struct mad_node *n, uint16_t attribute, uint32_t modifier,
	     uint8_t data[64]);
/* Of the manager at that port. */
void smp_sm_info(struct kernel *k, const struct mad_node *n, uint8_t data[64]);

#endif
