/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The wire's loopback (softhca start --wire-loopback), for tests: each packet between two QPs of
 * the instance becomes the bytes of a packet of RoCEv2, whose ICRC is checked and which are read
 * again. The receiver gets what was read. The thread that carries a packet does so, wherever the
 * packet begins. The device knows no bytes: softhca/wire lends it the two functions.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_LOOP_H
#define SOFTHCA_DEVICE_TRANSPORT_LOOP_H

#include "softhca/device/memory/dev.h"
#include "packet.h"

#define SH_LOOP_HEAD	96 /* room in front of a payload */
#define SH_LOOP_PAYLOAD 4096
#define SH_LOOP_BYTES	(SH_LOOP_HEAD + SH_LOOP_PAYLOAD + 16)

struct sh_loop_ops {
	/*
	 * Writes one packet, whose payload (p->payload.len bytes) is at bytes + SH_LOOP_HEAD.
	 * Spoilt: with a wrong bit behind its ICRC. Returns the length, or -EINVAL: it cannot be a
	 * packet.
	 */
	long (*encode)(const struct sh_packet *p, bool spoilt, unsigned char bytes[SH_LOOP_BYTES]);
	/*
	 * Reads it, sent between these LIDs. Fills in all that stands in a packet of RoCEv2; its
	 * payload is *seg, in `bytes`. 0; -EBADMSG: it is none; -EILSEQ: its ICRC is wrong.
	 */
	int (*decode)(unsigned char bytes[SH_LOOP_BYTES], long n, uint16_t slid, uint16_t dlid,
		      struct sh_packet *p, struct sh_seg *seg);
};

/* A packet that has been bytes. */
struct sh_looped {
	struct sh_packet p; /* p.payload is in `bytes` */
	struct sh_seg seg;
	unsigned char bytes[SH_LOOP_BYTES];
};

enum sh_loop {
	SH_LOOP_READ,	   /* *l is what the receiver gets */
	SH_LOOP_LOST,	   /* it cannot be a packet, or was not read as one: nothing arrives */
	SH_LOOP_BAD_ICRC,  /* the receiver drops it */
	SH_LOOP_NO_SOURCE, /* the sender's memory is gone */
};
/*
 * Sends *p, one packet, through its bytes. What RoCEv2 does not carry (LIDs, GRH, the sending HCA)
 * is beside them, as the headers of a link are. Only where dev->loop is there.
 */
enum sh_loop sh_loop(struct sh_dev *dev, const struct sh_packet *p, bool spoilt,
		     struct sh_looped *l);

#endif
