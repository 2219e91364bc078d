// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: packets as bytes. Packets of cards and of another program's making decode and encode
 * to the same bytes; every opcode makes the round trip with every remainder of its length; bytes
 * that are no packet are refused; checksums notice what they have to, and nothing else.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softhca/packet/crc.h"
#include "softhca/packet/frame.h"

#define MTU 256

static size_t bytes_of(const char *text, uint8_t *p)
{
	size_t n = 0;

	for (; *text; text++) {
		const char *digits = "0123456789abcdef", *at = strchr(digits, *text);

		if (!at)
			continue;
		if (n % 2)
			p[n / 2] |= (uint8_t)(at - digits);
		else
			p[n / 2] = (uint8_t)((at - digits) << 4);
		n++;
	}
	return n / 2;
}

static size_t tail_of(enum sh_link link)
{
	return link == SH_LINK_IB ? SH_ICRC_BYTES + SH_VCRC_BYTES : SH_ICRC_BYTES;
}

static const struct vector {
	const char *bytes;
	uint8_t link, opcode;
	uint32_t qpn, psn;
	const char *payload;
} vectors[] = {
	/* a card's, with an identification that is not 0 */
	{"45c2003c718c40004011 91610a0011010a001201 000012b700280000 8100ffff4000011800000000 "
	 "00000000000000000000000000000000 82fd002a",
	 SH_LINK_IP, SH_BTH_NOTIFY, 0x118, 0, ""},
	{"45000034000040004011 26a50a0900010a090002 12b712b700200000 0470ffff0000001180123456 "
	 "68656c6c6f000000 36df1cd0",
	 SH_LINK_IP, 0x04, 0x11, 0x123456, "hello"},
	{"6000000000201140 fd000000000000000000000000000001 fd000000000000000000000000000002 "
	 "12b712b700200000 0470ffff0000001180123456 68656c6c6f000000 de4fe117",
	 SH_LINK_IP, 0x04, 0x11, 0x123456, "hello"},
	{"45000038000040004011 26a10a0900010a090002 12b712b700240000 a440ffff0080004880000001 "
	 "00000042 3820627974657321 2db6a0e4",
	 SH_LINK_IP, 0xa4, 0x800048, 1, "8 bytes!"},
	{"0002000400070001 1140ffff0087040800d40a55 1f000001 a8035550 3081", SH_LINK_IB, 0x11,
	 0x870408, 0xd40a55, ""},
};

#define NVECTORS (sizeof(vectors) / sizeof(vectors[0]))

static void known_packets(void **state)
{
	(void)state;
	for (size_t i = 0; i < NVECTORS; i++) {
		const struct vector *v = &vectors[i];
		uint8_t in[128], out[128];
		size_t n = bytes_of(v->bytes, in);
		struct sh_frame f;

		assert_int_equal(sh_frame_decode(v->link, in, n, &f), 0);
		assert_int_equal(f.bth.opcode, v->opcode);
		assert_int_equal(f.bth.qpn, v->qpn);
		assert_int_equal(f.bth.psn, v->psn);
		assert_int_equal(f.len, strlen(v->payload));
		assert_memory_equal(f.payload, v->payload, f.len);
		assert_int_equal(sh_frame_icrc(v->link, in, n - tail_of(v->link)), f.icrc);
		if (v->link == SH_LINK_IB)
			assert_int_equal(sh_frame_vcrc(in, n - SH_VCRC_BYTES), f.vcrc);
		if (v->opcode == 0xa4)
			assert_int_equal(f.ext.srqn, 0x42);
		if (v->opcode == 0x11) {
			assert_int_equal(f.ext.syndrome, 0x1f);
			assert_int_equal(f.ext.msn, 1);
			assert_int_equal(f.lrh.dlid, 4);
			assert_int_equal(f.lrh.slid, 1);
		}
		assert_int_equal(sh_frame_encode(&f, out, sizeof(out)), (long)n);
		assert_memory_equal(out, in, n);
		assert_int_equal(sh_frame_encode(&f, out, n), (long)n);
		assert_int_equal(sh_frame_encode(&f, out, n - 1), -ENOSPC);
	}
}

/* A reader that sees no identification finds it, or finds that none fits. */
static void identification(void **state)
{
	uint8_t p[128];
	size_t n = bytes_of(vectors[0].bytes, p) - SH_ICRC_BYTES;
	uint32_t zero, stored;
	uint16_t id = 0;

	(void)state;
	stored = sh_frame_icrc(SH_LINK_IP, p, n);
	p[4] = p[5] = 0;
	zero = sh_frame_icrc(SH_LINK_IP, p, n);
	assert_true(sh_icrc_identification(zero, stored, n - 4, &id));
	assert_int_equal(id, 0x718c);
	assert_true(sh_icrc_identification(zero, zero, n - 4, &id));
	assert_int_equal(id, 0);
	p[40] ^= 1;
	assert_false(sh_icrc_identification(sh_frame_icrc(SH_LINK_IP, p, n), stored, n - 4, &id));
}

/* CRCs in parts are those of the whole, wherever the parts end. */
static void crc_in_parts(void **state)
{
	static const char text[] = "123456789";
	uint8_t p[40];

	(void)state;
	assert_int_equal((uint32_t)~sh_crc32(SH_CRC32_BEGIN, text, 9), 0xcbf43926);
	assert_int_equal(sh_crc32(0x12345678, NULL, 0), 0x12345678);
	for (size_t i = 0; i < sizeof(p); i++)
		p[i] = (uint8_t)(i * 37 + 11);
	for (size_t cut = 0; cut <= sizeof(p); cut++) {
		uint32_t whole = sh_crc32(SH_CRC32_BEGIN, p, sizeof(p)), bytes = SH_CRC32_BEGIN;

		for (size_t i = 0; i < sizeof(p); i++)
			bytes = sh_crc32(bytes, p + i, 1);
		assert_int_equal(bytes, whole);
		assert_int_equal(
			sh_crc32(sh_crc32(SH_CRC32_BEGIN, p, cut), p + cut, sizeof(p) - cut),
			whole);
		assert_int_equal(
			sh_crc16(sh_crc16(SH_CRC16_BEGIN, p, cut), p + cut, sizeof(p) - cut),
			sh_crc16(SH_CRC16_BEGIN, p, sizeof(p)));
	}
}

static struct sh_frame full(enum sh_link link, uint8_t version, bool grh, uint8_t opcode)
{
	struct sh_frame f = {
		.link = (uint8_t)link,
		.version = version,
		.grh = grh,
		.lrh = {.vl = 3, .sl = 5, .dlid = 0xc001, .slid = 0x1ff},
		.global = {.traffic_class = 0xa5, .flow_label = 0xbcdef, .hop_limit = 7},
		.ipv4 = {.tos = 0xba,
			 .ttl = 64,
			 .flags = 0x4000,
			 .src = {10, 1, 2, 3},
			 .dst = {10}},
		.udp = {.sport = 0xc123},
		.bth = {.opcode = opcode,
			.se = true,
			.mig = true,
			.becn = true,
			.ack = true,
			.pkey = 0x8001,
			.qpn = 0xabcdef,
			.psn = 0xfffffe},
		.ext = {.srqn = 0x123456,
			.qkey = 0x80010000,
			.srcqp = 0x654321,
			.va = UINT64_C(0x123456789abcdef0),
			.rkey = 0xdeadbeef,
			.dmalen = 0x7fffffff,
			.swap_add = UINT64_C(0xfedcba9876543210),
			.compare = 5,
			.syndrome = 0x2e,
			.msn = 0xfffffd,
			.original = UINT64_C(0x1122334455667788),
			.imm = {1, 2, 3, 4},
			.inv_rkey = 0xcafe},
	};

	memset(f.global.src, 0xfe, 16);
	memset(f.global.dst, 0x12, 16);
	return f;
}

static void same_ext(int ext, const struct sh_exts *a, const struct sh_exts *b)
{
	if (ext & SH_EXT_XRC)
		assert_int_equal(a->srqn, b->srqn);
	if (ext & SH_EXT_DETH) {
		assert_int_equal(a->qkey, b->qkey);
		assert_int_equal(a->srcqp, b->srcqp);
	}
	if (ext & (SH_EXT_RETH | SH_EXT_ATOMIC)) {
		assert_true(a->va == b->va);
		assert_int_equal(a->rkey, b->rkey);
	}
	if (ext & SH_EXT_RETH)
		assert_int_equal(a->dmalen, b->dmalen);
	if (ext & SH_EXT_ATOMIC)
		assert_true(a->swap_add == b->swap_add && a->compare == b->compare);
	if (ext & SH_EXT_AETH) {
		assert_int_equal(a->syndrome, b->syndrome);
		assert_int_equal(a->msn, b->msn);
	}
	if (ext & SH_EXT_ATOMIC_ACK)
		assert_true(a->original == b->original);
	if (ext & SH_EXT_IMM)
		assert_memory_equal(a->imm, b->imm, 4);
	if (ext & SH_EXT_INV)
		assert_int_equal(a->inv_rkey, b->inv_rkey);
}

static void there_and_back(struct sh_frame f, size_t len)
{
	uint8_t payload[MTU + 1], out[512], *exact;
	int ext = sh_opcode_ext(f.bth.opcode);
	struct sh_frame back;
	long n;

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i ^ 0x5a);
	f.payload = payload;
	f.len = len;
	n = sh_frame_encode(&f, out, sizeof(out));
	if (len && !(ext & SH_EXT_PAYLOAD)) {
		assert_int_equal(n, -EINVAL);
		return;
	}
	assert_true(n > 0);
	assert_int_equal((n - (f.link == SH_LINK_IB ? SH_VCRC_BYTES : 0)) % 4, 0);
	/* In memory of its size, so that a sanitizer sees a read behind it. */
	exact = malloc((size_t)n);
	memcpy(exact, out, (size_t)n);
	assert_int_equal(sh_frame_decode(f.link, exact, (size_t)n, &back), 0);
	assert_int_equal(back.bth.opcode, f.bth.opcode);
	assert_int_equal(back.bth.qpn, f.bth.qpn);
	assert_int_equal(back.bth.psn, f.bth.psn);
	assert_int_equal(back.bth.pkey, f.bth.pkey);
	assert_int_equal(back.bth.pad, -len & 3);
	assert_true(back.bth.se && back.bth.mig && back.bth.becn && back.bth.ack && !back.bth.fecn);
	same_ext(ext, &back.ext, &f.ext);
	assert_int_equal(back.len, len);
	assert_memory_equal(back.payload, payload, len);
	assert_int_equal(back.grh, f.grh);
	if (f.link == SH_LINK_IB)
		assert_memory_equal(&back.lrh, &f.lrh, sizeof(f.lrh));
	if (f.grh || f.version == 6) {
		assert_memory_equal(back.global.src, f.global.src, 16);
		assert_memory_equal(back.global.dst, f.global.dst, 16);
		assert_int_equal(back.global.flow_label, f.global.flow_label);
		assert_int_equal(back.global.traffic_class, f.global.traffic_class);
	}
	assert_int_equal(back.icrc,
			 sh_frame_icrc(f.link, exact, (size_t)n - tail_of((enum sh_link)f.link)));
	free(exact);
	/* Cut short anywhere, it is no packet any more. */
	for (long cut = 0; cut < n; cut++) {
		exact = malloc((size_t)cut + 1);
		memcpy(exact, out, (size_t)cut);
		assert_int_equal(sh_frame_decode(f.link, exact, (size_t)cut, &back), -EBADMSG);
		free(exact);
	}
}

static void every_opcode(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 3, 4, 5, MTU - 1, MTU, MTU + 1};
	unsigned int known = 0;

	(void)state;
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		struct sh_frame f = full(SH_LINK_IB, 0, false, (uint8_t)opcode);

		assert_non_null(sh_opcode_service((uint8_t)opcode));
		assert_non_null(sh_opcode_operation((uint8_t)opcode));
		if (sh_opcode_ext((uint8_t)opcode) < 0) {
			assert_int_equal(sh_frame_settle(&f, 0), -EINVAL);
			continue;
		}
		known++;
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			there_and_back(f, sizes[i]);
			there_and_back(full(SH_LINK_IB, 0, true, (uint8_t)opcode), sizes[i]);
			there_and_back(full(SH_LINK_IP, 4, false, (uint8_t)opcode), sizes[i]);
			there_and_back(full(SH_LINK_IP, 6, false, (uint8_t)opcode), sizes[i]);
		}
	}
	/* RC 23, UC 12, UD 2, XRC 23, CNP: the table of the specification. */
	assert_int_equal(known, 23 + 12 + 2 + 23 + 1);
}

/* What switches and routers may change leaves the ICRC alone. Any other bit is noticed. */
static void every_bit(void **state)
{
	static const struct {
		enum sh_link link;
		uint8_t version;
		bool grh;
		/* offset << 8 | bits that do not count; ends with 0 but for the first */
		uint32_t masked[24];
	} kinds[] = {
		{SH_LINK_IB, 0, false, {0x00f0, 0x0cff}},
		{SH_LINK_IB,
		 0,
		 true,
		 {0x00ff, 0x01ff, 0x02ff, 0x03ff, 0x04ff, 0x05ff, 0x06ff, 0x07ff, 0x080f, 0x09ff,
		  0x0aff, 0x0bff, 0x0fff, 0x34ff}},
		{SH_LINK_IP, 4, false, {0x01ff, 0x08ff, 0x0aff, 0x0bff, 0x1aff, 0x1bff, 0x20ff}},
		{SH_LINK_IP,
		 6,
		 false,
		 {0x000f, 0x01ff, 0x02ff, 0x03ff, 0x07ff, 0x2eff, 0x2fff, 0x34ff}},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct sh_frame f = full(kinds[k].link, kinds[k].version, kinds[k].grh, 0x04);
		uint8_t out[256];
		uint32_t icrc;
		size_t n;

		f.payload = (const uint8_t *)"odd";
		f.len = 3;
		n = (size_t)sh_frame_encode(&f, out, sizeof(out)) - tail_of(kinds[k].link);
		icrc = sh_frame_icrc(kinds[k].link, out, n);
		for (size_t bit = 0; bit < n * 8; bit++) {
			bool counts = true;

			/* They say how long the head is. */
			if ((kinds[k].link == SH_LINK_IP && bit < 8) ||
			    (kinds[k].link == SH_LINK_IB && bit / 8 == 1 && bit % 8 < 2))
				continue;
			for (size_t m = 0; m < 24; m++)
				if (kinds[k].masked[m] >> 8 == bit / 8 &&
				    kinds[k].masked[m] >> bit % 8 & 1)
					counts = false;
			out[bit / 8] ^= (uint8_t)(1u << bit % 8);
			if (counts)
				assert_int_not_equal(sh_frame_icrc(kinds[k].link, out, n), icrc);
			else
				assert_int_equal(sh_frame_icrc(kinds[k].link, out, n), icrc);
			out[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

/*
 * The checksum of UDP over IPv6, of a whole packet and of one that was cut; the ICRC stays what it
 * was.
 */
static void udp_sum(void **state)
{
	uint8_t p[128];
	size_t n = bytes_of(vectors[2].bytes, p);

	(void)state;
	sh_frame_put_udp_sum(p, n, n);
	assert_memory_equal(p + 46, "\x24\x18", 2);
	assert_int_equal(sh_frame_icrc(SH_LINK_IP, p, n - 4), 0x17e14fde);
	sh_frame_put_udp_sum(p, n - 8, n);
	assert_memory_equal(p + 46, "\xfa\x35", 2);
	/* A sum of 0 is written as its other form. */
	for (unsigned int i = 0; i < 65536; i++) {
		sh_put16(p + n - 2, (uint16_t)i);
		sh_frame_put_udp_sum(p, n, n);
		assert_false(p[46] == 0 && p[47] == 0);
	}
}

/* Lengths that contradict each other, versions and protocols of others. */
static void refused(void **state)
{
	static const struct {
		size_t vector, at;
		uint8_t value;
	} cases[] = {
		{1, 0, 0x46},  /* IPv4 options */
		{1, 2, 0x01},  /* longer than what came */
		{1, 6, 0x60},  /* a fragment follows */
		{1, 9, 6},     /* TCP */
		{1, 23, 0xb8}, /* another port */
		{1, 25, 0x1c}, /* UDP's length and IP's */
		{1, 28, 0x15}, /* no such opcode */
		{1, 29, 0x71}, /* a version of the transport that does not exist */
		{1, 28, 0x11}, /* an acknowledgement with a payload */
		{2, 5, 0x21},  /* IPv6: the payload's length */
		{2, 6, 6},     /* TCP */
		{4, 0, 0x01},  /* a version of the link */
		{4, 1, 0},     /* raw packets, without a BTH */
		{4, 1, 3},     /* a GRH that is not there */
		{4, 5, 6},     /* the LRH's length */
		{4, 9, 0x70},  /* more pad than there is */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct vector *v = &vectors[cases[i].vector];
		uint8_t p[128];
		size_t n = bytes_of(v->bytes, p);
		struct sh_frame f;

		p[cases[i].at] = cases[i].value;
		/* So that IPv4's checksum does not hide what is asked. */
		if (v->link == SH_LINK_IP && p[0] >> 4 == 4 && cases[i].at < 10) {
			struct sh_ipv4 h;

			(void)sh_ipv4_get(p, &h);
			h.id = 0;
			if (cases[i].at)
				sh_ipv4_put(p, &h);
		}
		if (sh_frame_decode(v->link, p, n, &f) != -EBADMSG)
			fail_msg("case %zu was taken for a packet", i);
	}
}

/* Padding of the link behind an IP packet is none of its payload. */
static void padding(void **state)
{
	uint8_t p[128] = {0};
	size_t n = bytes_of(vectors[1].bytes, p);
	struct sh_frame f;

	(void)state;
	assert_int_equal(sh_frame_decode(SH_LINK_IP, p, n + 8, &f), 0);
	assert_int_equal(f.len, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_packets), cmocka_unit_test(identification),
		cmocka_unit_test(crc_in_parts),	 cmocka_unit_test(every_opcode),
		cmocka_unit_test(every_bit),	 cmocka_unit_test(refused),
		cmocka_unit_test(padding),	 cmocka_unit_test(udp_sum),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
