/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Set of subnet management attributes, and what Get tells of what was set.
 */
#ifndef SOFTHCA_KERNEL_UMAD_SMP_SET_H
#define SOFTHCA_KERNEL_UMAD_SMP_SET_H

#include "fabric.h"

/* The status of the answer. data: what the program has written. */
int smp_set(struct umad *u, const struct mad_node *n, uint16_t attribute, uint32_t modifier,
	    const uint8_t data[64]);
/* Puts what was set over what the node's agent would tell. number: 0 and on of the switch. */
void smp_overlay_port_info(struct umad *u, const struct mad_node *n, uint32_t number,
			   uint8_t data[64]);
void smp_overlay_switch_info(struct umad *u, uint8_t data[64]);

#endif
