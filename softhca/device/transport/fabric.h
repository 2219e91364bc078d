/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Hands packets to the QPs that they are for, by LIDs; packets that reach none are dropped and counted here
 * (fabric.c).
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_FABRIC_H
#define SOFTHCA_DEVICE_TRANSPORT_FABRIC_H

#include "packet.h"

/* Cut [skip, skip+len) out of a payload; seg has room for in->nseg entries. */
void sh_payload_slice(const struct sh_payload *in, uint64_t skip, uint64_t len, struct sh_payload *out,
		      struct sh_seg *seg);

/*
 * Hand a request to the fabric. No lock is held. A response that came back at once is left in *resp (op
 * SH_PKT_NONE: none did); with faults active responses go to sh_response() one by one instead.
 */
void sh_transmit(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg);

/* The other end of the fabric: find the QPs a packet is for and have them execute it. */
void sh_deliver(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg);

/* The port that has exactly this LID, as the table says: neither number is checked. false: none has. */
static inline bool sh_lid_exact(const struct sh_dev *dev, uint32_t lid, uint32_t *hca, uint32_t *port)
{
	uint32_t entry = lid < SH_MAX_LIDS ? __atomic_load_n(&dev->inst->lid_port[lid], __ATOMIC_RELAXED) : 0;

	*hca = (entry - 1) >> 8;
	*port = (entry - 1) & 0xff;
	return entry;
}
/* The port with this LID, with room for the path bits of its LMC; false when there is none. */
bool sh_lid_lookup(const struct sh_dev *dev, uint16_t lid, uint32_t *hca, uint32_t *port);
/* Both are LIDs of one port. */
bool sh_lid_same_port(const struct sh_dev *dev, uint16_t a, uint16_t b);
static inline bool sh_port_active(const struct sh_hca *hca, uint32_t port)
{
	return port >= 1 && port <= SH_MAX_PORTS &&
	       __atomic_load_n(&hca->port[port - 1].state, __ATOMIC_RELAXED) == 4;
}

#endif
