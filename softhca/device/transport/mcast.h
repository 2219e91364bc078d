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
 * none, or there are several, or the daemon is changing a table. Takes no lock.
 */
struct sh_qp *sh_mcast_only(struct sh_dev *dev, const struct sh_packet *p, struct sh_hca **hca);
/* Delivers a multicast packet to each attached QP of each HCA. */
void sh_deliver_mcast(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp);

#endif
