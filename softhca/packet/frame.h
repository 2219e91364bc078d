/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Whole packets as bytes, on either of two links:
 *
 *	SH_LINK_IB	LRH [GRH] BTH extensions payload pad ICRC VCRC
 *	SH_LINK_IP	IPv4 or IPv6, UDP, BTH extensions payload pad ICRC (RoCEv2)
 *
 * Pure functions over buffers, which keep nothing. Decoding trusts no byte: it reads none outside
 * of the buffer, and whatever it returns as decoded has the headers and the payload that its
 * lengths say. It does not compare checksums; sh_frame_icrc() and sh_frame_vcrc() compute what they
 * ought to be.
 */
#ifndef SOFTHCA_PACKET_FRAME_H
#define SOFTHCA_PACKET_FRAME_H

#include <stddef.h>

#include "headers.h"
#include "opcode.h"

enum sh_link { SH_LINK_IB, SH_LINK_IP };

#define SH_FRAME_HEAD 92 /* no packet has more bytes in front of its payload */
#define SH_FRAME_TAIL 9	 /* nor behind it: 3 of pad, ICRC, VCRC */

struct sh_frame {
	uint8_t link;	 /* enum sh_link */
	uint8_t version; /* of IP: 4 or 6 */
	bool grh;	 /* SH_LINK_IB: there is one */
	struct sh_lrh lrh;
	struct sh_global global; /* the GRH, or IPv6's header */
	struct sh_ipv4 ipv4;
	struct sh_udp udp;
	struct sh_bth bth;
	struct sh_exts ext;
	const uint8_t *payload; /* of a decoded packet, in the caller's buffer */
	size_t len;
	uint32_t icrc; /* of a decoded packet, as it stands there; likewise: */
	uint16_t vcrc;
};

/*
 * Fills in what follows from the rest: lengths, pad, LNH, next header, protocol. len is that of the
 * payload. 0; -EINVAL: there is no such opcode, or the packet would be too long for its lengths.
 */
int sh_frame_settle(struct sh_frame *f, size_t len);
/* How many bytes such a packet has in front of its payload. */
size_t sh_frame_head(const struct sh_frame *f);
/* Writes them; p has SH_FRAME_HEAD bytes. Returns how many. */
size_t sh_frame_put_head(const struct sh_frame *f, uint8_t *p);

/*
 * Writes all of a packet whose payload is f->len bytes at f->payload, after sh_frame_settle(), with
 * checksums. The payload may lie in p, behind SH_FRAME_HEAD. Returns its length; -ENOSPC: there is
 * no room; or what sh_frame_settle() does.
 */
long sh_frame_encode(struct sh_frame *f, uint8_t *p, size_t room);

/*
 * Reads a packet of exactly n bytes. 0; -EBADMSG: it is none, or of an opcode that does not exist.
 * Bytes behind the end of an IP packet count as padding of the link.
 */
int sh_frame_decode(enum sh_link link, const uint8_t *p, size_t n, struct sh_frame *f);
/*
 * The same from the BTH to the ICRC, as a UDP socket delivers it. Fills in bth, ext, payload, len
 * and icrc alone.
 */
int sh_transport_decode(const uint8_t *p, size_t n, struct sh_frame *f);

/*
 * The ICRC that the bytes in front of it ask for, as a number whose lowest byte is stored first.
 * The caller has decoded the packet, or has written its head; n is without ICRC and VCRC.
 */
uint32_t sh_frame_icrc(enum sh_link link, const uint8_t *p, size_t n);
/*
 * The same in parts, for a payload that lies elsewhere: over the head, which has all of a BTH; then
 * sh_crc32() over the rest, and a complement.
 */
uint32_t sh_icrc_begin(enum sh_link link, const uint8_t *head, size_t n);
/* The VCRC of the n bytes in front of it. */
uint16_t sh_frame_vcrc(const uint8_t *p, size_t n);

/*
 * Puts the checksum of UDP into a packet of IPv6, which is complete. The ICRC does not cover it.
 * Where bytes are missing, of which the header counts n, it is that of the addresses and the length
 * alone, as systems have it that leave the rest to the card.
 */
void sh_frame_put_udp_sum(uint8_t *p, size_t have, size_t n);

/*
 * Over IPv4 the ICRC covers the identification, which a socket does not tell its reader. computed:
 * the ICRC with identification 0, stored: as it came, n: bytes from the identification to the ICRC.
 * If `computed` has another identification, *id is the exclusive or of that one and the right one.
 * False: no identification explains the difference.
 */
bool sh_icrc_identification(uint32_t computed, uint32_t stored, size_t n, uint16_t *id);

#endif
