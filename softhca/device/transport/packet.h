/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A packet as a value: the fields of its headers, and where its payload is. While no fault is
 * injected, consecutive packets of one message travel as one value, a run of npackets PSNs.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_PACKET_H
#define SOFTHCA_DEVICE_TRANSPORT_PACKET_H

#include <linux/types.h>

#include "softhca/device/memory/copy.h"
#include "softhca/device/memory/qp_context.h"

#define SH_GRH_LEN 40

enum sh_pkt_op {
	SH_PKT_NONE,
	SH_PKT_SEND,
	SH_PKT_WRITE,
	SH_PKT_READ,
	SH_PKT_CS,
	SH_PKT_FA,
	SH_PKT_SEND_INV, /* ends a SEND that invalidates a key: never sent, and refused */
	SH_PKT_ACK,	 /* AETH: an acknowledgement or a NAK */
	SH_PKT_READ_RESP,
	SH_PKT_ATOMIC_RESP,
	SH_PKT_SRC_FAULT, /* not on the wire: the payload could not be read from the sender */
};

static inline bool sh_pkt_is_request(unsigned int op)
{
	return op >= SH_PKT_SEND && op <= SH_PKT_SEND_INV;
}

enum sh_pkt_flags {
	SH_PKT_FIRST = 1, /* begins a message */
	SH_PKT_LAST = 2,  /* ends one */
	SH_PKT_IMM = 4,
	SH_PKT_SE = 8, /* solicited event; in the last packet */
	SH_PKT_ACKREQ = 16,
	SH_PKT_GRH = 32,
	SH_PKT_TOLD = 64,    /* not on the wire: retries is that of the request; of a response */
	SH_PKT_DOUBLE = 128, /* not on the wire: the fabric has doubled the one before it */
};

/*
 * The syndrome of a response SH_PKT_NONE: a thread that stands has a lock of the receiver
 * (sh_lock_within()), and the receiver is as it was before. An RC or XRC requester sends the packet
 * again (sh_put_off()). So does the daemon with a datagram, which gets this also if a lock is not
 * free or the process exchanges pages. For others the packet is lost.
 */
#define SH_BUSY 1
/* AETH syndromes. */
#define SH_AETH_ACK	   0x1f
#define SH_AETH_RNR	   0x20 /* | timer code */
#define SH_AETH_KIND	   0xe0
#define SH_AETH_NAK_SEQ	   0x60
#define SH_AETH_NAK_REQ	   0x61
#define SH_AETH_NAK_ACCESS 0x62
#define SH_AETH_NAK_OP	   0x63

struct sh_payload {
	uint32_t ctx; /* 0 = this process's own memory */
	uint32_t nseg;
	const struct sh_seg *seg;
	uint64_t len;
};

struct sh_grh {
	uint8_t sgid[16], dgid[16];
	uint32_t flow_label;
	uint8_t traffic_class, hop_limit;
};

struct sh_packet {
	uint8_t op;	 /* enum sh_pkt_op */
	uint8_t service; /* enum sh_service */
	uint8_t flags;
	uint8_t sl;
	uint16_t slid, dlid, pkey;
	uint8_t src_port, syndrome;	  /* syndrome: AETH */
	uint32_t src_hca, srcqp, src_gen; /* the sending QP; on the wire in UD only */
	uint32_t dqpn, qkey;
	uint32_t psn, npackets, mtu;
	uint32_t srqn; /* XRCETH */
	__be32 imm_be;
	uint32_t rkey, dmalen; /* RETH; of a READ the length from this packet on */
	uint32_t msn;
	uint64_t va;
	uint64_t swap_add, compare; /* atomics; swap_add is the result in a response */
	struct sh_payload payload;
	struct sh_grh grh; /* with SH_PKT_GRH */
	uint32_t retries;  /* the requester's, when it sent the request; with faults */
};

/* Makes everything zero but the GRH, which is large and mostly absent. */
static inline void sh_packet_init(struct sh_packet *p)
{
	sh_zero(p, offsetof(struct sh_packet, grh));
}

#endif
