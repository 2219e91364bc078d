// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fuzz target: packets, as an InfiniBand link, a raw socket and a UDP socket bring them, and as the
 * wire reads those of a UDP socket. The first byte of an input says which, modulo 5; the rest is
 * the packet. What counts as decoded must lie within the input, and must encode to a packet that
 * decodes to the same values.
 *
 *	BYTE	OF A PACKET THAT THE WIRE READS (kinds 3 and 4: over IPv4 and over IPv6)
 *	0	the kind; from 128 on, the last four bytes are its ICRC, else the right one follows
 *	1	the identification that its ICRC is of
 *	3	what a socket brings: the BTH, and so on
 */
#include <stdlib.h>
#include <string.h>

#include "softhca/packet/frame.h"
#include "softhca/wire/roce.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void again(struct sh_frame *f)
{
	static uint8_t out[1 << 17];
	const struct sh_frame was = *f;
	long n = sh_frame_encode(f, out, sizeof(out));
	struct sh_frame back;

	/* A link's length field is shorter than that of an input can be. */
	if (n < 0)
		return;
	check(!sh_frame_decode((enum sh_link)f->link, out, (size_t)n, &back));
	check(back.bth.opcode == was.bth.opcode && back.bth.psn == was.bth.psn &&
	      back.bth.qpn == was.bth.qpn && back.bth.pad == (-was.len & 3) && back.len == was.len);
	check(!memcmp(&back.ext, &was.ext, sizeof(was.ext)));
	check(!was.len || !memcmp(back.payload, was.payload, was.len));
	check(back.icrc == f->icrc && back.vcrc == (f->link == SH_LINK_IB ? f->vcrc : 0));
}

/* ---- as the wire reads them ---- */

static void put_icrc(unsigned char *bytes, size_t n, const struct sh_roce_way *way)
{
	const size_t head = sh_roce_head(way->from);
	struct sh_frame f = {.ipv4.protocol = 17, .global.next = 17};

	sh_roce_set_way(&f, way);
	f.udp.dport = SH_ROCE_PORT;
	f.ipv4.length = (uint16_t)(head + n);
	f.udp.length = f.global.length = (uint16_t)(SH_UDP_BYTES + n);
	if (f.version == 4)
		sh_ipv4_put(bytes, &f.ipv4);
	else
		sh_global_put(bytes, &f.global);
	sh_udp_put(bytes + head - SH_UDP_BYTES, &f.udp);
	sh_put_icrc(bytes + head + n - SH_ICRC_BYTES,
		    sh_frame_icrc(SH_LINK_IP, bytes, head + n - SH_ICRC_BYTES));
}

/* What cannot be sent, but was received: flags where they mean nothing. */
static void forget(struct sh_packet *p)
{
	if (!sh_pkt_is_request(p->op))
		p->flags &= ~(SH_PKT_SE | SH_PKT_ACKREQ);
	if (p->service == SH_SVC_UC || p->service == SH_SVC_UD)
		p->flags &= ~SH_PKT_ACKREQ;
}

/* Its GRH is not set. */
static bool same(struct sh_packet *a, struct sh_packet *b)
{
	struct sh_payload x = a->payload, y = b->payload;
	bool same = x.len == y.len && x.nseg == y.nseg && x.nseg == (x.len ? 1 : 0);

	memset(&a->payload, 0, sizeof(x));
	memset(&b->payload, 0, sizeof(y));
	same = same && !memcmp(a, b, offsetof(struct sh_packet, grh));
	same = same && (!x.len || !memcmp((void *)(uintptr_t)x.seg->addr,
					  (void *)(uintptr_t)y.seg->addr, x.len));
	a->payload = x;
	b->payload = y;
	return same;
}

static void send_again(struct sh_packet *p, const struct sh_roce_way *way)
{
	static unsigned char bytes[SH_ROCE_BYTES];
	const unsigned char *payload =
		p->payload.len ? (const unsigned char *)(uintptr_t)p->payload.seg->addr : NULL;
	long n = sh_roce_encode(p, payload, way, bytes);
	struct sh_packet back;
	struct sh_seg seg;

	check(n > 0 && (size_t)n >= sh_roce_before(p, way->to) + p->payload.len);
	check(sh_roce_decode(bytes, (size_t)n - sh_roce_head(way->from), way, &back, &seg) ==
	      SH_ROCE_OK);
	forget(p);
	check(same(p, &back));
}

/* What the decoder has to say of a packet whose ICRC is that of the identification. */
static enum sh_roce expected(uint8_t opcode, const struct sh_roce_way *way)
{
	if (opcode == SH_BTH_NOTIFY)
		return SH_ROCE_NOTICE;
	return sh_ip_is4(way->from) && way->id >= SH_ROCE_MERGED ? SH_ROCE_GUESSED : SH_ROCE_OK;
}

static void read_from_wire(bool four, bool own_icrc, const uint8_t *data, size_t size)
{
	struct sh_roce_way way = {.from = {.hi = 0xfd00, .lo = 1},
				  .to = {.hi = 0xfd00, .lo = 2},
				  .sport = SH_ROCE_PORT};
	struct sh_packet p;
	unsigned char *bytes;
	enum sh_roce got;
	struct sh_frame f;
	struct sh_seg seg;
	size_t n, head;
	bool is_packet;

	if (size < 2)
		return;
	if (four) {
		way.from = sh_ip4(0x0a090001);
		way.to = sh_ip4(0x0a090002);
	}
	head = sh_roce_head(way.from);
	n = size - 2 + (own_icrc ? 0 : SH_ICRC_BYTES);
	/* Of its size, so that a sanitizer sees what is read behind it. */
	bytes = malloc(head + n);
	check(bytes);
	memcpy(bytes + head, data + 2, size - 2);
	way.id = sh_get16(data);
	/* The ICRC is of a whole BTH. */
	if (!own_icrc && n >= SH_BTH_BYTES + SH_ICRC_BYTES)
		put_icrc(bytes, n, &way);
	else if (!own_icrc)
		memset(bytes + head + n - SH_ICRC_BYTES, 0, SH_ICRC_BYTES);
	is_packet = n <= SH_ROCE_BYTES - head && !sh_transport_decode(bytes + head, n, &f);
	got = sh_roce_decode(
		bytes, n, &(struct sh_roce_way){.from = way.from, .to = way.to, .sport = way.sport},
		&p, &seg);
	check((got == SH_ROCE_MALFORMED) == !is_packet);
	if (is_packet && !own_icrc)
		check(got == expected(f.bth.opcode, &way));
	if (got == SH_ROCE_OK || got == SH_ROCE_GUESSED) {
		check(!seg.len ||
		      (seg.addr >= (uintptr_t)bytes + head + SH_BTH_BYTES &&
		       seg.addr + seg.len <= (uintptr_t)bytes + head + n - SH_ICRC_BYTES));
		send_again(&p, &way);
	}
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sh_frame f;
	int err;

	if (!size)
		return 0;
	switch (data[0] % 128 % 5) {
	case 0:
		err = sh_frame_decode(SH_LINK_IB, data + 1, size - 1, &f);
		break;
	case 1:
		err = sh_frame_decode(SH_LINK_IP, data + 1, size - 1, &f);
		break;
	case 2:
		memset(&f, 0, sizeof(f));
		f.link = SH_LINK_IP;
		f.version = 6;
		err = sh_transport_decode(data + 1, size - 1, &f);
		break;
	default:
		read_from_wire(data[0] % 128 % 5 == 3, data[0] & 128, data + 1, size - 1);
		return 0;
	}
	if (err)
		return 0;
	check(!f.len || (f.payload > data && f.payload + f.len <= data + size));
	again(&f);
	return 0;
}
