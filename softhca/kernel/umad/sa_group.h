/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Multicast groups as the subnet administrator tells them: MCMemberRecord. rdma_cm has the same
 * groups.
 */
#ifndef SOFTHCA_KERNEL_UMAD_SA_GROUP_H
#define SOFTHCA_KERNEL_UMAD_SA_GROUP_H

#include "sa_table.h"

#define GROUP_RECORD_SIZE 56 /* with its padding */

struct cm_group;
struct cm_group_port;

extern const struct sa_component sa_group_components[];
/* Offers the groups, or with the SM's key their members. */
void sa_groups(struct sa_table *t);
/* Set and Delete: the status of the answer, which is in place. */
int sa_group_join(struct umad *u, uint8_t *mad);
int sa_group_leave(struct umad *u, uint8_t *mad);
/* The port is not to be reached any more, so it is in no group by record. */
void sa_group_gone(struct umad *u, uint32_t hca, uint32_t port);
/*
 * The record of a member; p NULL: that of the group, which names no member. r is zero before.
 */
void sa_group_record(struct umad *u, const struct cm_group *g, const struct cm_group_port *p,
		     uint8_t r[GROUP_RECORD_SIZE]);

#endif
