/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Multicast groups by address: which MGID an address has, and the ids that are in a group.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_MCAST_H
#define SOFTHCA_KERNEL_RDMACM_MCAST_H

#include <stdint.h>

#include "rdmacm-abi.h"

struct cm_group;
struct cm_group_port;
struct cm_id;

/* What JOIN has made. */
struct cm_member {
	uint32_t number;
	uint64_t uid;
	struct cm_id *id;
	struct cm_group *group;
	struct cm_group_port *port;
	uint32_t reported;
	struct cm_member *prev, *next; /* of the id */
};

/* 0 or -errno; the event comes later. */
int cm_join(struct cm_id *id, const union cm_sockaddr *a, uint64_t uid, struct cm_member **out);
/* *reported: how many of its events were read. */
void cm_leave(struct cm_member *m, uint32_t *reported);
void cm_members_free(struct cm_id *id);

#endif
