/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The headers of packets as values, in host order, and as bytes. Bytes are big-endian; bit 7 of a
 * byte is its first bit.
 *
 *	HEADER		BYTES	LAYOUT ([n]: offset in bytes)
 *	LRH		8	[0] VL:4 LVer:4; [1] SL:4 rsv:2 LNH:2; [2] DLID; [4] rsv:5 length:11; [6] SLID
 *	GRH		40	[0] 6:4 class:8 flow label:20; [4] length; [6] next header; [7] hop limit;
 *				[8] SGID; [24] DGID
 *	BTH		12	[0] opcode; [1] SE:1 M:1 pad:2 TVer:4; [2] P_Key; [4] F:1 B:1 rsv:6;
 *				[5] QP; [8] A:1 rsv:7; [9] PSN
 *	XRCETH		4	[1] SRQ
 *	DETH		8	[0] Q_Key; [5] source QP
 *	RETH		16	[0] address; [8] R_Key; [12] length
 *	AtomicETH	28	[0] address; [8] R_Key; [12] swap or add; [20] compare
 *	AETH		4	[0] syndrome; [1] MSN
 *	AtomicAckETH	8	[0] the value before
 *	ImmDt, IETH	4	immediate data, as posted; R_Key
 */
#ifndef SOFTHCA_PACKET_HEADERS_H
#define SOFTHCA_PACKET_HEADERS_H

#include <stdbool.h>
#include <stdint.h>

#define SH_LRH_BYTES  8
#define SH_GRH_BYTES  40
#define SH_BTH_BYTES  12
#define SH_UDP_BYTES  8
#define SH_IPV4_BYTES 20
#define SH_IPV6_BYTES 40
#define SH_ICRC_BYTES 4
#define SH_VCRC_BYTES 2
#define SH_EXT_BYTES  32 /* at most, behind a BTH: XRCETH and AtomicETH */
#define SH_ROCE_PORT  4791
#define SH_NEXT_BTH   0x1b /* GRH: a BTH follows */
#define SH_LNH_BTH    2
#define SH_LNH_GRH    3

struct sh_lrh {
	uint8_t vl, sl, lnh;
	uint16_t dlid, slid;
	uint16_t words; /* of 4 bytes, from the LRH to the ICRC */
};

/* A GRH, or an IPv6 header: the layout is one. */
struct sh_global {
	uint8_t traffic_class, next, hop_limit;
	uint32_t flow_label;
	uint16_t length; /* behind it, ICRC included */
	uint8_t src[16], dst[16];
};

struct sh_ipv4 {
	uint8_t tos, ttl, protocol;
	uint16_t length, id, flags; /* flags and fragment offset, as they stand: 0x4000 is DF */
	uint16_t checksum;
	uint8_t src[4], dst[4];
};

struct sh_udp {
	uint16_t sport, dport, length, checksum;
};

struct sh_bth {
	uint8_t opcode, pad;
	bool se, mig, fecn, becn, ack;
	uint16_t pkey;
	uint32_t qpn, psn;
};

/* The extension headers; enum sh_ext says which of them are there. */
struct sh_exts {
	uint32_t srqn;
	uint32_t qkey, srcqp;
	uint64_t va;	       /* RETH, AtomicETH */
	uint32_t rkey, dmalen; /* rkey: likewise */
	uint64_t swap_add, compare;
	uint8_t syndrome;
	uint32_t msn;
	uint64_t original;
	uint8_t imm[4];
	uint32_t inv_rkey;
};

/* ---- bytes ---- */

static inline void sh_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}
static inline void sh_put32(uint8_t *p, uint32_t v)
{
	sh_put16(p, (uint16_t)(v >> 16));
	sh_put16(p + 2, (uint16_t)v);
}
/* The first byte of the four stays as it is. */
static inline void sh_put24(uint8_t *p, uint32_t v)
{
	p[1] = (uint8_t)(v >> 16);
	sh_put16(p + 2, (uint16_t)v);
}
static inline void sh_put64(uint8_t *p, uint64_t v)
{
	sh_put32(p, (uint32_t)(v >> 32));
	sh_put32(p + 4, (uint32_t)v);
}
/* Checksums are the only numbers with the least significant byte first. */
static inline void sh_put_icrc(uint8_t *p, uint32_t icrc)
{
	for (int i = 0; i < SH_ICRC_BYTES; i++)
		p[i] = (uint8_t)(icrc >> 8 * i);
}

static inline uint16_t sh_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}
static inline uint32_t sh_get32(const uint8_t *p)
{
	return (uint32_t)sh_get16(p) << 16 | sh_get16(p + 2);
}
static inline uint32_t sh_get24(const uint8_t *p)
{
	return sh_get32(p) & 0xffffff;
}
static inline uint64_t sh_get64(const uint8_t *p)
{
	return (uint64_t)sh_get32(p) << 32 | sh_get32(p + 4);
}

/*
 * Each writes one header, or reads one. The caller has that many bytes. Reading returns false if a
 * version or a fixed field is not what it has to be.
 */
void sh_lrh_put(uint8_t *p, const struct sh_lrh *h);
bool sh_lrh_get(const uint8_t *p, struct sh_lrh *h);
void sh_global_put(uint8_t *p, const struct sh_global *h);
bool sh_global_get(const uint8_t *p, struct sh_global *h);
/* Computes the checksum. */
void sh_ipv4_put(uint8_t *p, const struct sh_ipv4 *h);
bool sh_ipv4_get(const uint8_t *p, struct sh_ipv4 *h);
void sh_udp_put(uint8_t *p, const struct sh_udp *h);
void sh_udp_get(const uint8_t *p, struct sh_udp *h);
void sh_bth_put(uint8_t *p, const struct sh_bth *h);
bool sh_bth_get(const uint8_t *p, struct sh_bth *h);
/* ext: a set of enum sh_ext; sh_ext_len() says how many bytes. */
void sh_exts_put(uint8_t *p, int ext, const struct sh_exts *h);
void sh_exts_get(const uint8_t *p, int ext, struct sh_exts *h);

#endif
