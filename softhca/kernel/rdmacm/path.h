/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Paths between ports.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_PATH_H
#define SOFTHCA_KERNEL_RDMACM_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "rdmacm-abi.h"

struct cm_id;
struct cm_path;
struct rdmacm;
struct sh_dev;

/* As the subnet administrator would give it. */
void cm_path_between(struct rdmacm *cm, uint32_t hca, uint32_t port, uint32_t to_hca,
		     uint32_t to_port, struct cm_path *p);
/* To a port that has that LID on the wire. */
void cm_path_far(struct rdmacm *cm, uint32_t hca, uint32_t port, uint16_t lid, struct cm_path *p);
void cm_path_record(const struct cm_path *p, struct cm_path_record *out);
void cm_path_take(struct cm_path *p, const struct cm_path_record *in);
/* In the partition of that key, if its own port is a member: else as it is. 0 names none. */
void cm_path_partition(struct cm_id *id, uint16_t pkey);
/*
 * The place of a key with that partition in the table of the port, if possible of a full member;
 * -ENOENT: there is none.
 */
int cm_path_pkey_index(const struct sh_dev *dev, uint32_t hca, uint32_t port, uint16_t pkey);
/* Whether both ports are members of a partition, and not both of them limited ones. */
bool cm_path_shared(const struct sh_dev *dev, uint32_t hca, uint32_t port, uint16_t pkey,
		    uint32_t to_hca, uint32_t to_port);
/* In the form of QUERY_ROUTE. */
void cm_path_user(const struct cm_path *p, struct cm_user_path *out);
void cm_path_av(const struct cm_id *id, struct cm_ah_attr *av);
uint8_t cm_path_timeout(const struct cm_id *id); /* of a QP */

#endif
