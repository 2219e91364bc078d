/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Hands packets to the QPs that they are for, by LIDs. If a packet reaches no QP, fabric.c drops
 * and counts it.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_FABRIC_H
#define SOFTHCA_DEVICE_TRANSPORT_FABRIC_H

#include "packet.h"

/* Cut [skip, skip+len) out of a payload; seg has room for in->nseg entries. */
void sh_payload_slice(const struct sh_payload *in, uint64_t skip, uint64_t len,
		      struct sh_payload *out, struct sh_seg *seg);

/*
 * Hands a request to the fabric. The caller holds no lock. If a response comes back at once, it is
 * in *resp afterwards; otherwise op is SH_PKT_NONE there. While faults are injected, responses go
 * to sh_response() one by one instead.
 */
void sh_transmit(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp,
		 struct sh_seg *resp_seg);

/*
 * Begins to send a packet, and makes *resp an answer of no kind. Returns the HCA that the packet
 * leaves by; NULL if there is none, or if its port is down. Then the packet is lost, and counted as
 * that.
 */
struct sh_hca *sh_leave_from(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp);
/*
 * Counts a packet at the port that has sent it. Where the fabric has doubled a packet, the port has
 * sent only the first of the two.
 */
void sh_has_left(struct sh_dev *dev, struct sh_hca *src, const struct sh_packet *p);

/*
 * The other end of the fabric: finds the QPs that a packet is for and has their responders execute
 * it.
 */
void sh_deliver(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp,
		struct sh_seg *resp_seg);

/*
 * Looks in the table for the port that has exactly this LID. The caller checks *hca and *port.
 * False: no port has it.
 */
static inline bool sh_lid_exact(const struct sh_dev *dev, uint32_t lid, uint32_t *hca,
				uint32_t *port)
{
	uint32_t entry = lid < SH_MAX_LIDS
				 ? __atomic_load_n(&dev->inst->lid_port[lid], __ATOMIC_RELAXED)
				 : 0;

	*hca = (entry - 1) >> 8;
	*port = (entry - 1) & 0xff;
	return entry;
}
/* No port: the number is past those that a card can have. */
#define SH_LID_OF_SWITCH UINT32_MAX
static inline bool sh_lid_is_switch(const struct sh_dev *dev, uint32_t lid)
{
	return lid < SH_MAX_LIDS &&
	       __atomic_load_n(&dev->inst->lid_port[lid], __ATOMIC_RELAXED) == SH_LID_OF_SWITCH;
}
/*
 * The same for a LID that may have the path bits of a port's LMC set, with *hca and *port checked.
 */
bool sh_lid_lookup(const struct sh_dev *dev, uint16_t lid, uint32_t *hca, uint32_t *port);
/* Are both LIDs of one port? */
bool sh_lid_same_port(const struct sh_dev *dev, uint16_t a, uint16_t b);
static inline bool sh_port_active(const struct sh_hca *hca, uint32_t port)
{
	return port >= 1 && port <= SH_MAX_PORTS &&
	       __atomic_load_n(&hca->port[port - 1].state, __ATOMIC_RELAXED) == 4;
}

#endif
