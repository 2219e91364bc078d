/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What paths of connected QPs and addresses of datagrams have in common. */
#ifndef SOFTHCA_DEVICE_QUEUES_PATH_H
#define SOFTHCA_DEVICE_QUEUES_PATH_H

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/layout.h"

/*
 * Peers on the wire whose ports have no LID, such as cards and Soft-RoCE, are named by their GID
 * alone, which is their address. The LID of such a peer is the part of the address behind the
 * network's. Groups have no LID either, and get the lowest LID that a group can have. 0: the wire
 * does not lead there.
 */
static inline uint16_t sh_wire_lid_of(const struct sh_dev *dev, const uint8_t gid[16])
{
	const struct sh_wire *wire = &dev->inst->wire;

	if (wire->leads && sh_gid_is_group(gid))
		return SH_LID_GROUPS;
	return (uint16_t)sh_wire_list_lid(&wire->list, wire->network, wire->last_lid,
					  sh_ip_get(gid));
}

/*
 * The LID that a path with this LID and GID leads to. Only here is it sure that the peer has a LID
 * of the list. Its own instance may say another one, and its programs tell that to those of this
 * instance.
 */
static inline uint16_t sh_wire_dlid(const struct sh_dev *dev, uint16_t dlid, const uint8_t gid[16])
{
	return dlid < dev->inst->wire.by_gid ? sh_wire_lid_of(dev, gid) ?: dlid : dlid;
}

#endif
