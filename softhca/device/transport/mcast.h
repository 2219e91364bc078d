/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Multicast groups, and packets to them.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_MCAST_H
#define SOFTHCA_DEVICE_TRANSPORT_MCAST_H

#include "packet.h"

int sh_mcast_attach(struct sh_dev *dev, uint32_t hca, const uint8_t gid[16],
		    uint32_t qpn); /* idempotent; -ENOMEM full */
int sh_mcast_detach(struct sh_dev *dev, uint32_t hca, const uint8_t gid[16],
		    uint32_t qpn); /* -EINVAL not attached */

/*
 * The only member of the group that a datagram is for, on any HCA, and its HCA. NULL: there is
 * none, or there are several, there or elsewhere on the wire, or the daemon is changing a table.
 * Takes no lock.
 */
struct sh_qp *sh_mcast_only(struct sh_dev *dev, const struct sh_packet *p, struct sh_hca **hca);
/* Is it a datagram to a group? */
bool sh_is_to_group(const struct sh_packet *p);
/* Delivers a multicast packet to each attached QP of each HCA. */
void sh_deliver_mcast(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp);
/*
 * The same for one that has come over the wire, to these ports (wire.h). Returns how many members
 * got it.
 */
uint32_t sh_deliver_group(struct sh_dev *dev, uint64_t ports, const struct sh_packet *p);

#endif
