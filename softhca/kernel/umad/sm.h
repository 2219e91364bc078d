/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which manager the subnet has: the built-in one, or that of a program, which says so by an open
 * issm file. And what programs have written into ports and the switch by Set.
 */
#ifndef SOFTHCA_KERNEL_UMAD_SM_H
#define SOFTHCA_KERNEL_UMAD_SM_H

#include "fabric.h"

#define PORT_INFO_SIZE 64
#define LFT_SIZE       0xc000 /* unicast LIDs */
#define MFT_GROUPS     1024
#define MFT_POSITIONS  16

/*
 * What Sets have stored and the agents tell again. The built-in manager's tables are not in it:
 * they are made when they are asked for, until a Set writes into such a table. Messages depend on
 * none of it.
 */
struct umad_written {
	uint8_t port[256][PORT_INFO_SIZE]; /* of CAs, as the switch's ports count: number - 1 */
	bool has_port[256];
	uint8_t switch_port[256][PORT_INFO_SIZE];
	bool has_switch_port[256];
	uint8_t switch_pkeys[256][64];
	bool has_switch_pkeys[256];
	uint8_t switch_info[64];
	bool has_switch_info;
	bool has_lft, has_mft;
	uint8_t lft[LFT_SIZE];
	uint8_t mft[MFT_POSITIONS][MFT_GROUPS][2];
};

/* NULL: nothing was written. sm_write() makes it; NULL: no memory. */
struct umad_written *sm_written(struct umad *u);
struct umad_written *sm_write(struct umad *u);
void sm_forget(struct umad *u);

/* Does the built-in manager manage? */
bool sm_built_in(const struct umad *u);
/*
 * A Trap came to a port. 0: the built-in manager is there, and tells the subscribers. -1: it is
 * not.
 */
int sm_told(struct umad *u, const struct mad_node *n, const uint8_t *mad);
/* An issm file of a port was opened: -EAGAIN, another one is open. Or closed. */
int sm_open(struct umad *u, uint32_t hca, uint32_t port);
void sm_closed(struct umad *u, uint32_t hca, uint32_t port);

#endif
