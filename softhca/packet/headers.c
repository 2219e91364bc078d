// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See headers.h. Pure functions. */
#include <string.h>

#include "headers.h"
#include "opcode.h"

void sh_lrh_put(uint8_t *p, const struct sh_lrh *h)
{
	p[0] = (uint8_t)(h->vl << 4);
	p[1] = (uint8_t)(h->sl << 4 | (h->lnh & 3));
	sh_put16(p + 2, h->dlid);
	sh_put16(p + 4, h->words & 0x7ff);
	sh_put16(p + 6, h->slid);
}

bool sh_lrh_get(const uint8_t *p, struct sh_lrh *h)
{
	*h = (struct sh_lrh){
		.vl = p[0] >> 4,
		.sl = p[1] >> 4,
		.lnh = p[1] & 3,
		.dlid = sh_get16(p + 2),
		.words = sh_get16(p + 4) & 0x7ff,
		.slid = sh_get16(p + 6),
	};
	return !(p[0] & 0xf);
}

void sh_global_put(uint8_t *p, const struct sh_global *h)
{
	sh_put32(p, 6u << 28 | (uint32_t)h->traffic_class << 20 | (h->flow_label & 0xfffff));
	sh_put16(p + 4, h->length);
	p[6] = h->next;
	p[7] = h->hop_limit;
	memcpy(p + 8, h->src, 16);
	memcpy(p + 24, h->dst, 16);
}

bool sh_global_get(const uint8_t *p, struct sh_global *h)
{
	*h = (struct sh_global){
		.traffic_class = (uint8_t)(sh_get32(p) >> 20),
		.flow_label = sh_get32(p) & 0xfffff,
		.length = sh_get16(p + 4),
		.next = p[6],
		.hop_limit = p[7],
	};
	memcpy(h->src, p + 8, 16);
	memcpy(h->dst, p + 24, 16);
	return p[0] >> 4 == 6;
}

/* The sum of IPv4's header checksum, not yet complemented. */
static uint16_t sum(const uint8_t *p)
{
	uint32_t total = 0;

	for (int i = 0; i < SH_IPV4_BYTES; i += 2)
		total += sh_get16(p + i);
	total = (total & 0xffff) + (total >> 16);
	return (uint16_t)(total + (total >> 16));
}

void sh_ipv4_put(uint8_t *p, const struct sh_ipv4 *h)
{
	p[0] = 0x45;
	p[1] = h->tos;
	sh_put16(p + 2, h->length);
	sh_put16(p + 4, h->id);
	sh_put16(p + 6, h->flags);
	p[8] = h->ttl;
	p[9] = h->protocol;
	sh_put16(p + 10, 0);
	memcpy(p + 12, h->src, 4);
	memcpy(p + 16, h->dst, 4);
	sh_put16(p + 10, (uint16_t)~sum(p));
}

bool sh_ipv4_get(const uint8_t *p, struct sh_ipv4 *h)
{
	*h = (struct sh_ipv4){
		.tos = p[1],
		.length = sh_get16(p + 2),
		.id = sh_get16(p + 4),
		.flags = sh_get16(p + 6),
		.ttl = p[8],
		.protocol = p[9],
		.checksum = sh_get16(p + 10),
	};
	memcpy(h->src, p + 12, 4);
	memcpy(h->dst, p + 16, 4);
	return p[0] == 0x45 && sum(p) == 0xffff;
}

void sh_udp_put(uint8_t *p, const struct sh_udp *h)
{
	sh_put16(p, h->sport);
	sh_put16(p + 2, h->dport);
	sh_put16(p + 4, h->length);
	sh_put16(p + 6, h->checksum);
}

void sh_udp_get(const uint8_t *p, struct sh_udp *h)
{
	*h = (struct sh_udp){
		.sport = sh_get16(p),
		.dport = sh_get16(p + 2),
		.length = sh_get16(p + 4),
		.checksum = sh_get16(p + 6),
	};
}

void sh_bth_put(uint8_t *p, const struct sh_bth *h)
{
	p[0] = h->opcode;
	p[1] = (uint8_t)(h->se << 7 | h->mig << 6 | (h->pad & 3) << 4);
	sh_put16(p + 2, h->pkey);
	p[4] = (uint8_t)(h->fecn << 7 | h->becn << 6);
	sh_put24(p + 4, h->qpn);
	p[8] = (uint8_t)(h->ack << 7);
	sh_put24(p + 8, h->psn);
}

bool sh_bth_get(const uint8_t *p, struct sh_bth *h)
{
	*h = (struct sh_bth){
		.opcode = p[0],
		.se = p[1] >> 7,
		.mig = p[1] >> 6 & 1,
		.pad = p[1] >> 4 & 3,
		.pkey = sh_get16(p + 2),
		.fecn = p[4] >> 7,
		.becn = p[4] >> 6 & 1,
		.qpn = sh_get24(p + 4),
		.ack = p[8] >> 7,
		.psn = sh_get24(p + 8),
	};
	return !(p[1] & 0xf);
}

void sh_exts_put(uint8_t *p, int ext, const struct sh_exts *h)
{
	memset(p, 0, sh_ext_len(ext));
	if (ext & SH_EXT_XRC) {
		sh_put24(p, h->srqn);
		p += 4;
	}
	if (ext & SH_EXT_DETH) {
		sh_put32(p, h->qkey);
		sh_put24(p + 4, h->srcqp);
		p += 8;
	}
	if (ext & SH_EXT_RETH) {
		sh_put64(p, h->va);
		sh_put32(p + 8, h->rkey);
		sh_put32(p + 12, h->dmalen);
		p += 16;
	}
	if (ext & SH_EXT_ATOMIC) {
		sh_put64(p, h->va);
		sh_put32(p + 8, h->rkey);
		sh_put64(p + 12, h->swap_add);
		sh_put64(p + 20, h->compare);
		p += 28;
	}
	if (ext & SH_EXT_AETH) {
		p[0] = h->syndrome;
		sh_put24(p, h->msn);
		p += 4;
	}
	if (ext & SH_EXT_ATOMIC_ACK) {
		sh_put64(p, h->original);
		p += 8;
	}
	if (ext & SH_EXT_IMM) {
		memcpy(p, h->imm, 4);
		p += 4;
	}
	if (ext & SH_EXT_INV)
		sh_put32(p, h->inv_rkey);
}

void sh_exts_get(const uint8_t *p, int ext, struct sh_exts *h)
{
	*h = (struct sh_exts){0};
	if (ext & SH_EXT_XRC) {
		h->srqn = sh_get24(p);
		p += 4;
	}
	if (ext & SH_EXT_DETH) {
		h->qkey = sh_get32(p);
		h->srcqp = sh_get24(p + 4);
		p += 8;
	}
	if (ext & SH_EXT_RETH) {
		h->va = sh_get64(p);
		h->rkey = sh_get32(p + 8);
		h->dmalen = sh_get32(p + 12);
		p += 16;
	}
	if (ext & SH_EXT_ATOMIC) {
		h->va = sh_get64(p);
		h->rkey = sh_get32(p + 8);
		h->swap_add = sh_get64(p + 12);
		h->compare = sh_get64(p + 20);
		p += 28;
	}
	if (ext & SH_EXT_AETH) {
		h->syndrome = p[0];
		h->msn = sh_get24(p);
		p += 4;
	}
	if (ext & SH_EXT_ATOMIC_ACK) {
		h->original = sh_get64(p);
		p += 8;
	}
	if (ext & SH_EXT_IMM) {
		memcpy(h->imm, p, 4);
		p += 4;
	}
	if (ext & SH_EXT_INV)
		h->inv_rkey = sh_get32(p);
}
