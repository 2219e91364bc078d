/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The multicast groups of the subnet, and the ports that are in them: by rdma_cm, or by records of
 * the subnet administrator. An instance is one subnet: a group has the same MGID and MLID on all
 * hosts, from its first member to its last.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_GROUP_H
#define SOFTHCA_KERNEL_RDMACM_GROUP_H

#include <stdbool.h>
#include <stdint.h>

struct rdmacm;

struct cm_group_port {
	uint32_t hca, port;
	uint32_t ids; /* of rdma_cm that have joined here */
	uint8_t join; /* JoinState of its record */
	struct cm_group_port *prev, *next;
};
struct cm_group {
	uint8_t mgid[16];
	uint16_t mlid, pkey;
	uint32_t qkey;
	uint32_t route; /* SL, flow label, hop limit, as a record has them */
	uint8_t traffic_class;
	uint8_t mtu, rate; /* codes; 0: nothing was asked for */
	struct cm_group_port *ports;
	struct cm_group *prev, *next;
};

struct cm_group *cm_group_find(struct rdmacm *cm, const uint8_t mgid[16]);
/* A zero MGID: the group gets a name by its MLID. NULL: no memory, or no MLID is left. */
struct cm_group *cm_group_new(struct rdmacm *cm, const uint8_t mgid[16]);
/* The port's membership, or a new one that has neither ids nor a JoinState. NULL: no memory. */
struct cm_group_port *cm_group_port(struct cm_group *g, uint32_t hca, uint32_t port);
/* Ends memberships that have neither, and the group after the last. g may be NULL. */
void cm_group_put(struct rdmacm *cm, struct cm_group *g);
/* The instance ends. */
void cm_groups_free(struct rdmacm *cm);

/*
 * For the subnet administrator, which keeps no state of groups: all groups; the one of that MGID,
 * or NULL; in how many a port is by its record.
 */
void cm_groups_each(struct rdmacm *cm, void (*fn)(void *arg, const struct cm_group *g), void *arg);
const struct cm_group *cm_groups_find(struct rdmacm *cm, const uint8_t mgid[16]);
uint32_t cm_groups_joined(struct rdmacm *cm, uint32_t hca, uint32_t port);
/*
 * Puts a port into a group by record; join: bits of its JoinState, which others follow. A group
 * that is not there begins with what like says of it, its MGID included (zero: as for
 * cm_group_new). NULL: no memory, or no MLID is left, and nothing has changed. *p: the membership.
 */
const struct cm_group *cm_groups_join(struct rdmacm *cm, const struct cm_group *like, uint32_t hca,
				      uint32_t port, uint8_t join, const struct cm_group_port **p);
/*
 * Takes bits from the JoinState. The group may have ended with that, so both are copies: *g is the
 * group as it was, *p what is left of the membership. False: the port has not all of these bits.
 */
bool cm_groups_leave(struct rdmacm *cm, const uint8_t mgid[16], uint32_t hca, uint32_t port,
		     uint8_t join, struct cm_group *g, struct cm_group_port *p);
/* The port is in no group by record any more. */
void cm_groups_port_gone(struct rdmacm *cm, uint32_t hca, uint32_t port);

#endif
