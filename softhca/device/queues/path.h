/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What paths of connected QPs and addresses of datagrams have in common. */
#ifndef SOFTHCA_DEVICE_QUEUES_PATH_H
#define SOFTHCA_DEVICE_QUEUES_PATH_H

#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/layout.h"

/*
 * Peers on the wire whose ports have no LID, as cards and Soft-RoCE, are named by GID alone: their
 * address, as ::ffff:10.1.2.3. Its LID is what the address has behind the network. 0: the wire does
 * not lead there.
 */
static inline uint16_t sh_wire_lid_of(const struct sh_dev *dev, const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const struct sh_wire *wire = &dev->inst->wire;
	uint32_t address = (uint32_t)gid[12] << 24 | (uint32_t)gid[13] << 16 |
			   (uint32_t)gid[14] << 8 | gid[15];
	uint32_t lid = address & ~wire->netmask;

	if (memcmp(gid, mapped, sizeof(mapped)) || (address & wire->netmask) != wire->network ||
	    lid > wire->last_lid)
		return 0;
	return (uint16_t)lid;
}

#endif
