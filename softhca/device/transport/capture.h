/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Puts copies of packets into the tap (memory/tap.h), while a capture runs. The thread that sends a
 * packet, or takes in the answer to it, makes the copy.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_CAPTURE_H
#define SOFTHCA_DEVICE_TRANSPORT_CAPTURE_H

#include "softhca/device/memory/tap.h"
#include "packet.h"

/* What happens to a packet on its way. fate: enum sh_fault_kind; SH_FAULT_KINDS: nothing. */
struct sh_capture_note {
	uint32_t fate;
	uint64_t delay_ns;
	bool again; /* this is the second of two that a fault has made of one */
};

static inline bool sh_capture_on(const struct sh_dev *dev)
{
	return __atomic_load_n(&dev->inst->faults.active, __ATOMIC_RELAXED) & SH_ACTIVE_CAPTURE;
}

/* A request, each packet of a run by itself. note NULL: it meets no fault. */
void sh_capture_request(struct sh_dev *dev, const struct sh_packet *p,
			const struct sh_capture_note *note);
/* The answer to a request, each packet of a run by itself. It meets no fault. */
void sh_capture_response(struct sh_dev *dev, const struct sh_packet *req,
			 const struct sh_packet *resp);
/* One packet of such an answer, which has SH_PKT_FIRST or SH_PKT_LAST set where it is that. */
void sh_capture_one(struct sh_dev *dev, const struct sh_packet *req, const struct sh_packet *one,
		    const struct sh_capture_note *note);
/*
 * One packet on the wire, with the LID of the sender in p->slid. payload: p->payload.len bytes of
 * this process. note NULL: it meets no fault.
 */
void sh_capture_wire(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
		     const unsigned char *payload, enum sh_tapped_wire which,
		     const struct sh_capture_note *note);

#endif
