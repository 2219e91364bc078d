/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Packets of the device as bytes of RoCEv2 over IPv4 or IPv6, and back. Pure functions.
 */
#ifndef SOFTHCA_WIRE_ROCE_H
#define SOFTHCA_WIRE_ROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softhca/device/memory/ip.h"
#include "softhca/device/transport/packet.h"
#include "softhca/packet/frame.h"

/* The headers in front of what a socket sends, of either version of IP; and a packet with them. */
#define SH_ROCE_HEAD	(SH_IPV4_BYTES + SH_UDP_BYTES)
#define SH_ROCE_HEAD6	(SH_IPV6_BYTES + SH_UDP_BYTES)
#define SH_ROCE_PAYLOAD 4096 /* the largest MTU */
#define SH_ROCE_BYTES	(SH_FRAME_HEAD + SH_ROCE_PAYLOAD + SH_FRAME_TAIL)

/* Both addresses are of one version. */
struct sh_roce_way {
	struct sh_ip from, to;
	uint16_t sport;
	uint16_t id; /* IPv4: the identification; for the reader, the one that it expects */
};

static inline size_t sh_roce_head(struct sh_ip address)
{
	return sh_ip_is4(address) ? SH_ROCE_HEAD : SH_ROCE_HEAD6;
}

/* The IP and UDP headers of such packets, but for their lengths. */
void sh_roce_set_way(struct sh_frame *f, const struct sh_roce_way *way);

/*
 * Writes the packet with its IP and UDP headers, as a socket sends them with DF. payload:
 * p->payload.len bytes, which may be where they belong already. Returns the length, or -EINVAL: it
 * cannot be a packet.
 */
long sh_roce_encode(const struct sh_packet *p, const unsigned char *payload,
		    const struct sh_roce_way *way, unsigned char bytes[SH_ROCE_BYTES]);

/*
 * Gives such a packet of n bytes another identification, and the ICRC that goes with it. A packet
 * of IPv6 has no identification, and stays as it is.
 */
void sh_roce_renumber(unsigned char *bytes, size_t n, uint16_t id);

/*
 * How many bytes of such a packet to that address are in front of its payload. 0: it cannot be a
 * packet.
 */
size_t sh_roce_before(const struct sh_packet *p, struct sh_ip to);

/*
 * A wrong bit behind the ICRC of what sh_roce_encode() wrote: in the payload, or in the ICRC if
 * there is none. A capture shows the same (cli/tapped.c).
 */
void sh_roce_spoil(unsigned char *bytes, long n, uint32_t payload);

enum sh_roce {
	SH_ROCE_OK,
	SH_ROCE_GUESSED, /* right, if its identification is the only one that makes it so */
	SH_ROCE_NOTICE,	 /* a congestion notification (CNP), which is ignored; *p is not set */
	SH_ROCE_MALFORMED,
	SH_ROCE_BAD_ICRC,
};
/*
 * Reads n bytes as a socket has received them, behind room for the headers of that version, which
 * this function overwrites. Fills in *p all that stands in a packet; its payload is *seg, in
 * `bytes`.
 */
enum sh_roce sh_roce_decode(unsigned char *bytes, size_t n, const struct sh_roce_way *way,
			    struct sh_packet *p, struct sh_seg *seg);

/*
 * Over IPv4, to take the identification from the ICRC weakens the check to 16 bits. That is not for
 * peers that send from softhca's port. Their identification is 0, or less than SH_ROCE_MERGED, as
 * those are which a kernel gives the packets of one datagram (outgoing.h). So each packet of theirs
 * that needs no guess earns its sender a credit, up to this many, and each other one costs a
 * credit. While there are credits, a guess is a wrong ICRC. A sender that others replace at its
 * address is heard again when its credits are used up. Soft-RoCE and cards send from other ports.
 * Their identifications count up, and now and then are 0: that earns nothing.
 */
#define SH_ROCE_CREDITS 16
#define SH_ROCE_MERGED	64
enum sh_roce sh_roce_judge(enum sh_roce decoded, uint16_t sport, uint8_t *credits);

#endif
