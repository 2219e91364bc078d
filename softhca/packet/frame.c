// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See frame.h. */
#include <errno.h>
#include <string.h>

#include "crc.h"
#include "frame.h"

#define IP_UDP	17
#define UDP_SUM 6 /* where the checksum is in the header */

/* ---- encoding ---- */

int sh_frame_settle(struct sh_frame *f, size_t len)
{
	int ext = sh_opcode_ext(f->bth.opcode);
	size_t bytes;

	if (ext < 0 || (len && !(ext & SH_EXT_PAYLOAD)) || len > UINT16_MAX)
		return -EINVAL;
	f->len = len;
	f->bth.pad = -len & 3;
	bytes = SH_BTH_BYTES + sh_ext_len(ext) + len + f->bth.pad + SH_ICRC_BYTES;
	if (f->link == SH_LINK_IB) {
		size_t words = (SH_LRH_BYTES + (f->grh ? SH_GRH_BYTES : 0) + bytes) / 4;

		if (words > 0x7ff)
			return -EINVAL;
		f->lrh.lnh = f->grh ? SH_LNH_GRH : SH_LNH_BTH;
		f->lrh.words = (uint16_t)words;
		f->global.length = (uint16_t)bytes;
		f->global.next = SH_NEXT_BTH;
		return 0;
	}
	bytes += SH_UDP_BYTES;
	if (bytes + SH_IPV4_BYTES > UINT16_MAX || (f->version != 4 && f->version != 6))
		return -EINVAL;
	f->udp.dport = SH_ROCE_PORT;
	f->udp.length = (uint16_t)bytes;
	f->global.length = (uint16_t)bytes;
	f->global.next = IP_UDP;
	f->ipv4.length = (uint16_t)(bytes + SH_IPV4_BYTES);
	f->ipv4.protocol = IP_UDP;
	return 0;
}

/* Bytes in front of the BTH. */
static size_t route_bytes(const struct sh_frame *f)
{
	if (f->link == SH_LINK_IB)
		return SH_LRH_BYTES + (f->grh ? SH_GRH_BYTES : 0);
	return (f->version == 4 ? SH_IPV4_BYTES : SH_IPV6_BYTES) + SH_UDP_BYTES;
}

size_t sh_frame_head(const struct sh_frame *f)
{
	int ext = sh_opcode_ext(f->bth.opcode);

	return route_bytes(f) + SH_BTH_BYTES + (ext < 0 ? 0 : sh_ext_len(ext));
}

size_t sh_frame_put_head(const struct sh_frame *f, uint8_t *p)
{
	int ext = sh_opcode_ext(f->bth.opcode);
	uint8_t *at = p;

	if (f->link == SH_LINK_IB) {
		sh_lrh_put(at, &f->lrh);
		at += SH_LRH_BYTES;
		if (f->grh) {
			sh_global_put(at, &f->global);
			at += SH_GRH_BYTES;
		}
	} else {
		if (f->version == 4)
			sh_ipv4_put(at, &f->ipv4);
		else
			sh_global_put(at, &f->global);
		at += f->version == 4 ? SH_IPV4_BYTES : SH_IPV6_BYTES;
		sh_udp_put(at, &f->udp);
		at += SH_UDP_BYTES;
	}
	sh_bth_put(at, &f->bth);
	at += SH_BTH_BYTES;
	if (ext >= 0) {
		sh_exts_put(at, ext, &f->ext);
		at += sh_ext_len(ext);
	}
	return (size_t)(at - p);
}

long sh_frame_encode(struct sh_frame *f, uint8_t *p, size_t room)
{
	int err = sh_frame_settle(f, f->len);
	uint8_t *at = p;
	size_t need;

	if (err)
		return err;
	need = sh_frame_head(f) + f->len + f->bth.pad + SH_ICRC_BYTES +
	       (f->link == SH_LINK_IB ? SH_VCRC_BYTES : 0);
	if (need > room)
		return -ENOSPC;
	at += sh_frame_put_head(f, at);
	if (f->len && f->payload != at)
		memmove(at, f->payload, f->len);
	at += f->len;
	memset(at, 0, f->bth.pad);
	at += f->bth.pad;
	f->icrc = sh_frame_icrc(f->link, p, (size_t)(at - p));
	sh_put_icrc(at, f->icrc);
	at += SH_ICRC_BYTES;
	if (f->link == SH_LINK_IB) {
		f->vcrc = sh_frame_vcrc(p, (size_t)(at - p));
		*at++ = (uint8_t)f->vcrc;
		*at++ = (uint8_t)(f->vcrc >> 8);
	}
	return at - p;
}

/* ---- decoding ---- */

int sh_transport_decode(const uint8_t *p, size_t n, struct sh_frame *f)
{
	size_t ext_len;
	int ext;

	if (n < SH_BTH_BYTES + SH_ICRC_BYTES || !sh_bth_get(p, &f->bth))
		return -EBADMSG;
	ext = sh_opcode_ext(f->bth.opcode);
	if (ext < 0)
		return -EBADMSG;
	ext_len = sh_ext_len(ext);
	p += SH_BTH_BYTES;
	n -= SH_BTH_BYTES + SH_ICRC_BYTES;
	if (n < ext_len || n - ext_len < f->bth.pad)
		return -EBADMSG;
	sh_exts_get(p, ext, &f->ext);
	f->payload = p + ext_len;
	f->len = n - ext_len - f->bth.pad;
	if ((f->len && !(ext & SH_EXT_PAYLOAD)) || (f->len + f->bth.pad) % 4)
		return -EBADMSG;
	p += n;
	f->icrc = (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
	return 0;
}

static int decode_ib(const uint8_t *p, size_t n, struct sh_frame *f)
{
	size_t at = SH_LRH_BYTES;

	if (n < SH_LRH_BYTES + SH_VCRC_BYTES || !sh_lrh_get(p, &f->lrh))
		return -EBADMSG;
	if (f->lrh.words * 4u + SH_VCRC_BYTES != n)
		return -EBADMSG;
	n -= SH_VCRC_BYTES;
	f->vcrc = (uint16_t)(p[n + 1] << 8 | p[n]);
	f->grh = f->lrh.lnh == SH_LNH_GRH;
	if (f->grh) {
		if (n - at < SH_GRH_BYTES || !sh_global_get(p + at, &f->global))
			return -EBADMSG;
		at += SH_GRH_BYTES;
		if (f->global.next != SH_NEXT_BTH || f->global.length != n - at)
			return -EBADMSG;
	} else if (f->lrh.lnh != SH_LNH_BTH) {
		return -EBADMSG;
	}
	return sh_transport_decode(p + at, n - at, f);
}

static int decode_ip(const uint8_t *p, size_t n, struct sh_frame *f)
{
	size_t at, len;
	uint8_t next;

	if (n < SH_IPV4_BYTES + SH_UDP_BYTES)
		return -EBADMSG;
	f->version = p[0] >> 4;
	if (f->version == 4) {
		at = SH_IPV4_BYTES;
		/* No options, and no fragments. */
		if (!sh_ipv4_get(p, &f->ipv4) || f->ipv4.flags & 0x3fff || f->ipv4.length < at)
			return -EBADMSG;
		len = f->ipv4.length - at;
		next = f->ipv4.protocol;
	} else {
		at = SH_IPV6_BYTES;
		if (n < at + SH_UDP_BYTES || !sh_global_get(p, &f->global))
			return -EBADMSG;
		len = f->global.length;
		next = f->global.next;
	}
	if (next != IP_UDP || len < SH_UDP_BYTES || len > n - at)
		return -EBADMSG;
	sh_udp_get(p + at, &f->udp);
	if (f->udp.dport != SH_ROCE_PORT || f->udp.length != len)
		return -EBADMSG;
	return sh_transport_decode(p + at + SH_UDP_BYTES, len - SH_UDP_BYTES, f);
}

int sh_frame_decode(enum sh_link link, const uint8_t *p, size_t n, struct sh_frame *f)
{
	memset(f, 0, sizeof(*f));
	f->link = (uint8_t)link;
	return link == SH_LINK_IB ? decode_ib(p, n, f) : decode_ip(p, n, f);
}

/* ---- checksums ---- */

/* The bytes of a GRH or IPv6 header that routers change. */
static void mask_global(uint8_t *p)
{
	p[0] |= 0x0f;
	memset(p + 1, 0xff, 3);
	p[7] = 0xff;
}

uint32_t sh_icrc_begin(enum sh_link link, const uint8_t *head, size_t n)
{
	uint8_t copy[SH_LRH_BYTES + SH_IPV6_BYTES + SH_UDP_BYTES + SH_BTH_BYTES], *p = copy;
	uint32_t state = SH_CRC32_BEGIN;
	size_t route;

	if (link == SH_LINK_IB)
		route = SH_LRH_BYTES + ((head[1] & 3) == SH_LNH_GRH ? SH_GRH_BYTES : 0);
	else
		route = (head[0] >> 4 == 4 ? SH_IPV4_BYTES : SH_IPV6_BYTES) + SH_UDP_BYTES;
	memcpy(copy, head, route + SH_BTH_BYTES);
	copy[route + 4] = 0xff;
	if (link == SH_LINK_IB && route == SH_LRH_BYTES) {
		p[0] |= 0xf0;
	} else if (link == SH_LINK_IB) {
		memset(p, 0xff, SH_LRH_BYTES);
		mask_global(p + SH_LRH_BYTES);
	} else {
		const uint8_t lrh[SH_LRH_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

		state = sh_crc32(state, lrh, sizeof(lrh));
		if (head[0] >> 4 == 4) {
			p[1] = p[8] = p[10] = p[11] = 0xff;
		} else {
			mask_global(p);
		}
		memset(p + route - 2, 0xff, 2);
	}
	state = sh_crc32(state, copy, route + SH_BTH_BYTES);
	return sh_crc32(state, head + route + SH_BTH_BYTES, n - route - SH_BTH_BYTES);
}

uint32_t sh_frame_icrc(enum sh_link link, const uint8_t *p, size_t n)
{
	return ~sh_icrc_begin(link, p, n);
}

uint16_t sh_frame_vcrc(const uint8_t *p, size_t n)
{
	return (uint16_t)~sh_crc16(SH_CRC16_BEGIN, p, n);
}

static uint32_t sum16(uint32_t sum, const uint8_t *p, size_t n)
{
	for (; n > 1; n -= 2, p += 2)
		sum += sh_get16(p);
	return n ? sum + (uint32_t)(*p << 8) : sum;
}

void sh_frame_put_udp_sum(uint8_t *p, size_t have, size_t n)
{
	uint8_t *at = p + SH_IPV6_BYTES + UDP_SUM;
	uint32_t sum = IP_UDP + (uint32_t)(n - SH_IPV6_BYTES);

	sh_put16(at, 0);
	sum = sum16(sum, p + 8, 2 * 16);
	if (have == n)
		sum = sum16(sum, p + SH_IPV6_BYTES, n - SH_IPV6_BYTES);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	/* 0 says that there is none. */
	if (have == n)
		sum = sum == 0xffff ? sum : ~sum;
	sh_put16(at, (uint16_t)sum);
}

bool sh_icrc_identification(uint32_t computed, uint32_t stored, size_t n, uint16_t *id)
{
	uint32_t d = sh_crc32_undo(computed ^ stored, n);

	if (d >= 0x10000)
		return false;
	*id = (uint16_t)((d & 0xff) << 8 | d >> 8);
	return true;
}
