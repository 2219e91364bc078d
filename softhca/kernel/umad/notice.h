/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Notices: what ports and the switch tell the subnet manager by Trap, and what the built-in subnet
 * administrator tells subscribers by Report.
 */
#ifndef SOFTHCA_KERNEL_UMAD_NOTICE_H
#define SOFTHCA_KERNEL_UMAD_NOTICE_H

#include "fabric.h"

#define NOTICE_SIZE   80 /* of a Notice with its issuer's GID; a Trap has the first 64 octets */
#define NOTICE_ISSUER 64

enum notice_trap {
	TRAP_IN_SERVICE = 64,
	TRAP_OUT_OF_SERVICE = 65,
	TRAP_GROUP_MADE = 66,
	TRAP_GROUP_GONE = 67,
	TRAP_LINK_STATE = 128,
	TRAP_LOCAL_CHANGE = 144,
};

/*
 * A link has changed its state: the switch says so, and the built-in manager what follows from it.
 */
void notice_link(struct umad *u, uint32_t hca, uint32_t port);
/* The capability mask of a port has changed. */
void notice_mask(struct umad *u, uint32_t hca, uint32_t port);
/* A group has begun, or has ended. */
void notice_group(struct umad *u, const uint8_t mgid[16], bool there);

/*
 * Sends a Report of the notice, whose first octets are those of a Trap, from a port to a
 * subscriber, again and again until it is answered. How often is bounded.
 */
void notice_report(struct umad *u, const struct mad_way *way, const uint8_t notice[NOTICE_SIZE]);
/* TrapRepress, or the answer to a Report: what it answers is not sent again. */
void notice_answered(struct umad *u, const uint8_t *mad);
/* Sends again what is due. Returns when the next is due; 0: none waits. */
uint64_t notice_due(struct umad *u, uint64_t now);
/* Everything that waits is forgotten: a subnet manager begins, or the instance ends. */
void notice_forget(struct umad *u);

#endif
