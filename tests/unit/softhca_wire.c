// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: addresses of the wire, and packets as its sockets send and receive them, against
 * packets that scapy and a card agree on.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/wire/address.h"
#include "softhca/wire/roce.h"
#include "softhca/wire/sockets.h"

static bool parse(const char *text, struct sh_wire_config *wire, char *why, size_t len)
{
	return sh_wire_parse(&(struct sh_wire_words){.wire = text}, wire, why, len);
}

static void test_addresses(void **state)
{
	static const struct {
		const char *text;
		uint32_t lid; /* of the last address; 0: it is refused */
	} cases[] = {
		{"10.1.2.3/24", 3},
		{"10.1.2.3/24,10.1.2.77", 77},
		{"127.0.77.1/24", 1},
		{"10.1.3.254/22", 1022},
		{"10.0.0.1/8", 1},
		{"10.1.2.3/30", 0}, /* the broadcast address */
		{"10.1.2.2/30", 2},
		{"10.1.2.0/24", 0},
		{"10.1.2.255/24", 0},
		{"10.1.3.255/22", 0},
		{"10.1.7.3/16", 0}, /* 1795 is no LID of a port */
		{"10.1.2.3", 0},
		{"10.1.2.3/", 0},
		{"10.1.2.3/7", 0},
		{"10.1.2.3/31", 0},
		{"10.1.2.3/24x", 0},
		{"10.1.2.3/24,10.1.3.4", 0},
		{"10.1.2.3/24,10.1.2.3", 0},
		{"10.1.2.3/24,10.1.2.4/24", 0},
		{"10.1.2/24", 0},
		{"fd00:1:2::3/64", 3},
		{"fd00:1:2::3/64,fd00:1:2::4d", 0x4d},
		{"fd00:1:2::3fe/64", 1022},
		{"fd00::1/8", 1},
		{"fd00:1:2:3:4:5:6:f003/112", 0}, /* 61443 is no LID of a port */
		{"fd00:1:2:3:4:5:6:f003/120", 3},
		{"2001:db8::7/126", 3}, /* there is no broadcast address */
		{"2001:db8::ffff:1:3/96", 0},
		{"fd00:1:2::/64", 0},
		{"fd00:1:2::3ff/64", 0},
		{"fd00:1:2::1:3/64", 0},
		{"fd00:1:2:1::3/48", 0},
		{"fd00:1:2::3", 0},
		{"fd00:1:2::3/7", 0},
		{"fd00:1:2::3/127", 0},
		{"fd00:1:2::3/64,fd00:1:3::4", 0},
		{"fd00:1:2::3/64,fd00:1:2:0::3", 0},
		{"fd00:1:2::3/64,10.1.2.4", 0},
		{"10.1.2.3/24,fd00:1:2::4", 0},
		{"fd00:1:2::3%lo/64", 0},
		{"fe80::3/64", 0},
		{"fe80::3%eth0/64", 0},
		{"::ffff:10.1.2.3/120", 0},
		{"::1/64", 0},
		{"ff02::3/64", 0},
		{"fd00::g/64", 0},
		{"", 0},
		{",", 0},
		{"host/24", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sh_wire_config wire;
		char why[256] = "";
		bool good = parse(cases[i].text, &wire, why, sizeof(why));

		if (good != !!cases[i].lid)
			fail_msg("%s: %s", cases[i].text, why);
		if (!good) {
			assert_true(strlen(why) > 10);
			continue;
		}
		assert_int_equal(sh_wire_lid(&wire, wire.address[wire.n - 1]), cases[i].lid);
		assert_true(
			sh_ip_same(sh_wire_address(&wire, cases[i].lid), wire.address[wire.n - 1]));
		assert_int_equal(sh_wire_lid(&wire, sh_ip4(0x08080808)), 0);
		assert_int_equal(sh_wire_lid(&wire, (struct sh_ip){0x20010db8, 1}), 0);
		/* The same number on another network. */
		assert_int_equal(sh_wire_lid(&wire, (struct sh_ip){~wire.network.hi, cases[i].lid}),
				 0);
	}
}

/* What is said of an address that will not do names the address, and what would. */
static void test_reasons(void **state)
{
	static const struct {
		const char *text, *says, *advises;
	} cases[] = {
		{"fe80::3%eth0/64", "fe80::3 is good on one link alone", "scope global"},
		{"::ffff:10.1.2.3/120", "::ffff:10.1.2.3 is an address of IPv4", "10.1.2.3/24"},
		{"fd00:1::1:3/64", "fd00:1::1:3 does not give a LID", "fd00:1::, plus 1 to 3fe"},
		{"10.1.7.3/16", "10.1.7.3 does not give a LID", "10.1.0.0, plus 1 to 1022"},
		{"fd00::3", "length of its network's prefix", "8 to 126"},
		{"10.1.2.3/24,fd00::4", "fd00::4 is not of the first", "on one network"},
		{"ff02::3/64", "ff02::3 is a group's address", "of this machine"},
		{"::1/64", "::1 is each machine's own", "others can reach"},
		{"host/24", "\"host\" is no address", "fd00:1::3/64"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sh_wire_config wire;
		char why[256] = "";

		assert_false(parse(cases[i].text, &wire, why, sizeof(why)));
		if (!strstr(why, cases[i].says) || !strstr(why, cases[i].advises))
			fail_msg("%s: %s", cases[i].text, why);
	}
}

/* Peers, and LIDs of the own ports: who has which LID. */
static void test_peers(void **state)
{
	static const struct {
		const char *wire, *lids, *peers[3];
		struct {
			uint32_t lid;
			const char *address; /* NULL: no address has it */
		} has[4];
	} cases[] = {
		{"10.1.2.3/24",
		 NULL,
		 {"0x200=192.0.2.9"},
		 {{3, "10.1.2.3"}, {7, "10.1.2.7"}, {512, "192.0.2.9"}, {511, NULL}}},
		{"10.1.2.3/24",
		 NULL,
		 {"600=192.0.2.9,0x259=127.0.0.9", "1022=10.1.3.3"},
		 {{600, "192.0.2.9"}, {601, "127.0.0.9"}, {1022, "10.1.3.3"}, {255, NULL}}},
		/* Its number is no longer that of an address of the network. */
		{"127.0.77.1/24",
		 NULL,
		 {"5=127.0.99.5"},
		 {{5, "127.0.99.5"}, {4, "127.0.77.4"}, {1, "127.0.77.1"}}},
		{"fd00:1::3/64",
		 NULL,
		 {"0x3fe=fd00:2::9,9=fd00:3::1"},
		 {{3, "fd00:1::3"}, {1022, "fd00:2::9"}, {9, "fd00:3::1"}, {10, "fd00:1::a"}}},
		/* Addresses of the network that give no LID. */
		{"10.1.7.3/16",
		 "7",
		 {"8=10.1.7.4"},
		 {{7, "10.1.7.3"}, {8, "10.1.7.4"}, {6, "10.1.0.6"}}},
		{"10.1.7.3/16,10.1.0.9", "1000,9", {NULL}, {{1000, "10.1.7.3"}, {9, "10.1.0.9"}}},
		{"fd00:1::1:3/64",
		 "0x10",
		 {"17=fd00:1::1:4"},
		 {{16, "fd00:1::1:3"}, {17, "fd00:1::1:4"}, {18, "fd00:1::12"}}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sh_wire_words words = {.wire = cases[i].wire, .lids = cases[i].lids};
		struct sh_wire_config wire;
		char why[256] = "";

		memcpy(words.peers, cases[i].peers, sizeof(cases[i].peers));
		if (!sh_wire_parse(&words, &wire, why, sizeof(why)))
			fail_msg("case %zu: %s", i, why);
		for (int j = 0; j < 4 && cases[i].has[j].lid; j++) {
			struct sh_ip a = sh_wire_address(&wire, cases[i].has[j].lid);
			char text[SH_WIRE_TEXT];

			if (!cases[i].has[j].address) {
				assert_false(a.hi || a.lo);
				continue;
			}
			sh_wire_text(text, a);
			assert_string_equal(text, cases[i].has[j].address);
			assert_int_equal(sh_wire_lid(&wire, a), cases[i].has[j].lid);
		}
	}
}

/* What is said of peers and LIDs that will not do. */
static void test_wrong_peers(void **state)
{
	static const struct {
		const char *wire, *lids, *peers[3], *says;
	} cases[] = {
		{"10.1.2.3/24", NULL, {"512=fd00::9"}, "fd00::9 is not of the wire's version"},
		{"fd00:1::3/64", NULL, {"9=10.1.2.9"}, "10.1.2.9 is not of the wire's version"},
		{"10.1.2.3/24",
		 NULL,
		 {"0=192.0.2.9"},
		 "\"0=192.0.2.9\" does not begin with a LID of 1 to 1022"},
		{"10.1.2.3/24", NULL, {"1023=192.0.2.9"}, "does not begin with a LID of 1 to 1022"},
		{"10.1.2.3/24", NULL, {"-1=192.0.2.9"}, "does not begin with a LID"},
		{"10.1.2.3/24", NULL, {"0x=192.0.2.9"}, "does not begin with a LID"},
		{"10.1.2.3/24", NULL, {"192.0.2.9"}, "\"192.0.2.9\" does not begin with a LID"},
		{"10.1.2.3/24", NULL, {""}, "does not begin with a LID"},
		{"10.1.2.3/24", NULL, {"300=192.0.2.9,"}, "does not begin with a LID"},
		{"10.1.2.3/24", NULL, {"300="}, "\"\" is no address: write it as 10.1.2.3 or"},
		{"10.1.2.3/24", NULL, {"300=192.0.2.9/24"}, "\"192.0.2.9/24\" is no address"},
		{"10.1.2.3/24",
		 NULL,
		 {"300=192.0.2.9,300=192.0.2.8"},
		 "LID 300 is that of 192.0.2.9 already: choose another one for 192.0.2.8"},
		{"10.1.2.3/24",
		 NULL,
		 {"300=192.0.2.9", "301=192.0.2.9"},
		 "192.0.2.9 is there twice"},
		{"10.1.2.3/24", NULL, {"3=192.0.2.9"}, "LID 3 is that of 10.1.2.3 already"},
		{"10.1.2.3/24",
		 NULL,
		 {"300=10.1.2.9"},
		 "10.1.2.9 is in the wire's network, and has LID 9"},
		{"10.1.2.3/24", NULL, {"300=10.1.2.3"}, "10.1.2.3 is this instance's own"},
		{"10.1.2.3/24", NULL, {"300=10.1.2.255"}, "10.1.2.255 is no machine's address"},
		{"10.1.2.3/24", NULL, {"300=10.1.2.0"}, "10.1.2.0 is no machine's address"},
		{"10.1.2.3/24", NULL, {"300=0.0.0.0"}, "0.0.0.0 is no machine's address"},
		{"10.1.2.3/24", NULL, {"300=255.255.255.255"}, "255.255.255.255 is no machine's"},
		{"10.1.2.3/24", NULL, {"300=239.1.2.3"}, "239.1.2.3 is a group's address"},
		{"10.1.2.3/24", NULL, {"300=169.254.1.2"}, "169.254.1.2 is good on one link alone"},
		{"fd00:1::3/64", NULL, {"9=ff02::9"}, "ff02::9 is a group's address"},
		{"fd00:1::3/64", NULL, {"9=fe80::9"}, "fe80::9 is good on one link alone"},
		{"fd00:1::3/64", NULL, {"9=::"}, ":: is each machine's own"},
		{"fd00:1::3/64", NULL, {"9=::1"}, "::1 is each machine's own"},
		{"fd00:1::3/64", NULL, {"9=::ffff:10.1.2.3"}, "is an address of IPv4"},
		{"10.1.7.3/16", NULL, {NULL}, "name a LID with --lid"},
		{"10.1.7.3/16", "0", {NULL}, "\"0\" is no LID of 1 to 1022"},
		{"10.1.7.3/16", "7,8", {NULL}, "more LIDs than addresses"},
		{"10.1.7.3/16,10.1.7.4", "7", {NULL}, "fewer LIDs than addresses"},
		{"10.1.7.3/16,10.1.7.4", "7,7", {NULL}, "LID 7 is that of 10.1.7.3 already"},
		{"10.1.7.3/16,10.1.0.7", "7,7", {NULL}, "LID 7 is that of 10.1.0.7 already"},
		{"10.1.7.3/16", "7", {"7=10.1.7.4"}, "LID 7 is that of 10.1.7.4 already"},
		{"10.1.2.3/24", "7", {NULL}, "10.1.2.3 has LID 3"},
		{"10.1.2.3/24,10.1.3.4", "3,300", {NULL}, "10.1.3.4 does not give a LID"},
		{"fd00:1::/64", "3", {NULL}, "fd00:1:: does not give a LID"},
		{"10.1.255.255/16", "7", {NULL}, "10.1.255.255 does not give a LID"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sh_wire_words words = {.wire = cases[i].wire, .lids = cases[i].lids};
		struct sh_wire_config wire;
		char why[256] = "";

		memcpy(words.peers, cases[i].peers, sizeof(cases[i].peers));
		assert_false(sh_wire_parse(&words, &wire, why, sizeof(why)));
		if (!strstr(why, cases[i].says))
			fail_msg("case %zu: \"%s\", not \"%s\"", i, why, cases[i].says);
	}
}

/*
 * The address of the network whose number is a peer's LID has none. And there may be so many peers,
 * not more.
 */
static void test_many_peers(void **state)
{
	struct sh_wire_words words = {.wire = "127.0.77.1/24", .peers = {"5=127.0.99.5"}};
	char text[SH_WIRE_PEERS + 1][32], why[256], list[4096] = "";
	struct sh_wire_config wire;

	(void)state;
	assert_true(sh_wire_parse(&words, &wire, why, sizeof(why)));
	assert_int_equal(sh_wire_lid(&wire, sh_ip4(0x7f004d05)), 0);
	for (int i = 0; i <= SH_WIRE_PEERS; i++) {
		snprintf(text[i], sizeof(text[i]), "%d=192.0.2.%d", 300 + i, 1 + i);
		snprintf(list + strlen(list), sizeof(list) - strlen(list), ",%s", text[i]);
		if (i < SH_WIRE_PEERS)
			words.peers[i] = text[i];
	}
	assert_true(sh_wire_parse(&words, &wire, why, sizeof(why)));
	assert_int_equal(wire.peers, SH_WIRE_PEERS);
	assert_int_equal(sh_wire_lid(&wire, sh_ip4(0xc0000201 + SH_WIRE_PEERS - 1)),
			 300 + SH_WIRE_PEERS - 1);
	words = (struct sh_wire_words){.wire = "127.0.77.1/24", .peers = {list + 1}};
	assert_false(sh_wire_parse(&words, &wire, why, sizeof(why)));
	assert_non_null(strstr(why, "more than 64 peers"));
}

/* As sockets have them, and as text. */
static void test_sockets(void **state)
{
	static const char *const text[] = {"10.1.2.3", "fd00:1::3", "2001:db8:1:2:3:4:5:6"};

	(void)state;
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		char list[64], back[SH_WIRE_TEXT], why[256];
		struct sh_wire_config wire;
		union sh_wire_at at;
		uint16_t port = 0;
		struct sh_ip ip;

		snprintf(list, sizeof(list), "%s/%s", text[i], i ? "125" : "24");
		assert_true(parse(list, &wire, why, sizeof(why)));
		assert_int_equal(sh_wire_at(&at, wire.address[0], 4791),
				 i ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
		ip = sh_wire_from(&at, &port);
		assert_true(sh_ip_same(ip, wire.address[0]));
		assert_int_equal(port, 4791);
		sh_wire_text(back, ip);
		assert_string_equal(back, text[i]);
	}
}

/* The groups of IP that MGIDs have, as instances and RoCE's ports agree on them. */
static void test_groups(void **state)
{
	static const struct {
		const char *network, *mgid, *group;
	} cases[] = {
		{"10.1.2.3/24", "::ffff:239.1.2.3", "239.1.2.3"},
		{"10.1.2.3/24", "::ffff:224.0.0.251", "224.0.0.251"},
		/* rdma_cm's of 239.1.2.3 and 224.1.2.3 */
		{"10.1.2.3/24", "ff12:4001:ffff::f01:203", "239.1.2.3"},
		{"10.1.2.3/24", "ff12:4001:8001::1:203", "224.1.2.3"},
		/* as docs/wire.md says: FNV-1a */
		{"10.1.2.3/24", "ff12:401b:ffff::1", "239.92.29.197"},
		{"10.1.2.3/24", "ff12:601b:ffff::1", "239.97.20.213"},
		{"10.1.2.3/24", "ff12:4001:ffff:1::f01:203", "239.125.184.138"},
		{"fd00:1::3/64", "ff15::77", "ff15::77"},
		{"fd00:1::3/64", "ff12:401b:ffff::1", "ff12:401b:ffff::1"},
		{"fd00:1::3/64", "ff01:0:2:c985::1", "ff02:0:2:c985::1"},
		{"fd00:1::3/64", "ff10::5", "ff12::5"},
		{"fd00:1::3/64", "::ffff:239.1.2.3", "ff12::ef01:203"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[SH_WIRE_TEXT], why[256];
		struct sh_wire_config wire;
		uint8_t mgid[16];

		assert_true(parse(cases[i].network, &wire, why, sizeof(why)));
		assert_int_equal(inet_pton(AF_INET6, cases[i].mgid, mgid), 1);
		assert_true(sh_gid_is_group(mgid));
		sh_wire_text(text, sh_wire_group(wire.network, mgid));
		assert_string_equal(text, cases[i].group);
	}
}

static size_t from_hex(const char *hex, unsigned char *p)
{
	size_t n = 0;

	for (; *hex; hex++) {
		unsigned int digit = *hex <= '9' ? *hex - '0' : *hex - 'a' + 10;

		if (*hex == ' ')
			continue;
		p[n / 2] = (unsigned char)(n % 2 ? p[n / 2] | digit : digit << 4);
		n++;
	}
	return n / 2;
}

static const struct sh_roce_way way = {
	.from = {0, SH_IP_MAPPED | 0x0a090001},
	.to = {0, SH_IP_MAPPED | 0x0a090002},
	.sport = SH_ROCE_PORT,
};
static const struct sh_roce_way way6 = {
	.from = {UINT64_C(0xfd00) << 48, 1},
	.to = {UINT64_C(0xfd00) << 48, 2},
	.sport = SH_ROCE_PORT,
};

static const struct {
	const char *hex, *payload;
	struct sh_packet p;
	const struct sh_roce_way *way;
} vectors[] = {
	{"45000034000040004011 26a50a0900010a090002 12b712b700200000 0470ffff0000001180123456 "
	 "68656c6c6f000000 36df1cd0",
	 "hello",
	 {.op = SH_PKT_SEND,
	  .service = SH_SVC_RC,
	  .flags = SH_PKT_FIRST | SH_PKT_LAST | SH_PKT_ACKREQ,
	  .pkey = 0xffff,
	  .dqpn = 0x11,
	  .psn = 0x123456},
	 &way},
	{"45000038000040004011 26a10a0900010a090002 12b712b700240000 a440ffff0080004880000001 "
	 "00000042 3820627974657321 2db6a0e4",
	 "8 bytes!",
	 {.op = SH_PKT_SEND,
	  .service = SH_SVC_XRC,
	  .flags = SH_PKT_FIRST | SH_PKT_LAST | SH_PKT_ACKREQ,
	  .pkey = 0xffff,
	  .dqpn = 0x800048,
	  .srqn = 0x42,
	  .psn = 1},
	 &way},
	{"6000000000201140 fd000000000000000000000000000001 fd000000000000000000000000000002 "
	 "12b712b700200000 0470ffff0000001180123456 68656c6c6f000000 de4fe117",
	 "hello",
	 {.op = SH_PKT_SEND,
	  .service = SH_SVC_RC,
	  .flags = SH_PKT_FIRST | SH_PKT_LAST | SH_PKT_ACKREQ,
	  .pkey = 0xffff,
	  .dqpn = 0x11,
	  .psn = 0x123456},
	 &way6},
};

static void test_vectors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const size_t head = sh_roce_head(vectors[i].way->from);
		unsigned char want[SH_ROCE_BYTES], got[SH_ROCE_BYTES];
		size_t n = from_hex(vectors[i].hex, want), len = strlen(vectors[i].payload);
		struct sh_packet p = vectors[i].p, back;
		struct sh_seg seg;

		p.payload.len = len;
		assert_int_equal(sh_roce_encode(&p, (const unsigned char *)vectors[i].payload,
						vectors[i].way, got),
				 n);
		assert_memory_equal(got, want, n);
		memset(got, 0, head);
		assert_int_equal(sh_roce_decode(got, n - head, vectors[i].way, &back, &seg),
				 SH_ROCE_OK);
		assert_int_equal(back.op, p.op);
		assert_int_equal(back.service, p.service);
		assert_int_equal(back.flags, p.flags);
		assert_int_equal(back.dqpn, p.dqpn);
		assert_int_equal(back.psn, p.psn);
		assert_int_equal(back.srqn, p.srqn);
		assert_int_equal(back.payload.len, len);
		assert_memory_equal((void *)(uintptr_t)seg.addr, vectors[i].payload, len);
	}
}

/* A bit that flips on the way is found, but in the field that routers may change. */
static void test_flips(void **state)
{
	(void)state;
	for (size_t bit = SH_ROCE_HEAD * 8; bit < 52 * 8; bit++) {
		unsigned char bytes[SH_ROCE_BYTES];
		size_t n = from_hex(vectors[0].hex, bytes);
		bool masked = bit / 8 == SH_ROCE_HEAD + 4;
		struct sh_packet p;
		struct sh_seg seg;

		assert_int_equal(n, 52);
		bytes[bit / 8] ^= 1 << bit % 8;
		assert_int_equal(sh_roce_decode(bytes, n - SH_ROCE_HEAD, &way, &p, &seg) ==
					 SH_ROCE_OK,
				 masked);
	}
}

/*
 * Nothing of IPv6 is hidden: what is wrong is no other identification, and the addresses count in
 * full.
 */
static void test_ipv6(void **state)
{
	(void)state;
	for (size_t bit = SH_ROCE_HEAD6 * 8; bit < 72 * 8; bit++) {
		unsigned char bytes[SH_ROCE_BYTES];
		size_t n = from_hex(vectors[2].hex, bytes);
		bool masked = bit / 8 == SH_ROCE_HEAD6 + 4;
		enum sh_roce is;
		struct sh_packet p;
		struct sh_seg seg;

		assert_int_equal(n, 72);
		bytes[bit / 8] ^= 1 << bit % 8;
		is = sh_roce_decode(bytes, n - SH_ROCE_HEAD6, &way6, &p, &seg);
		assert_int_not_equal(is, SH_ROCE_GUESSED);
		assert_int_equal(is == SH_ROCE_OK, masked);
	}
	for (unsigned int bit = 0; bit < 128; bit++) {
		unsigned char bytes[SH_ROCE_BYTES];
		size_t n = from_hex(vectors[2].hex, bytes);
		struct sh_roce_way other = way6;
		struct sh_packet p;
		struct sh_seg seg;

		if (bit < 64)
			other.from.hi ^= UINT64_C(1) << bit;
		else
			other.from.lo ^= UINT64_C(1) << (bit - 64);
		assert_int_equal(sh_roce_decode(bytes, n - SH_ROCE_HEAD6, &other, &p, &seg),
				 SH_ROCE_BAD_ICRC);
	}
}

/*
 * A card's packet whose identification a socket does not tell, with the ICRC that this gives, is
 * right; but not from a peer that has always sent 0, where it is one that was spoilt.
 */
static void test_identification(void **state)
{
	unsigned char bytes[SH_ROCE_BYTES];
	size_t n = from_hex(vectors[0].hex, bytes);
	uint8_t credits = 0;
	struct sh_packet p;
	struct sh_seg seg;
	uint32_t icrc;

	(void)state;
	bytes[4] = 0x71;
	bytes[5] = 0x8c;
	icrc = sh_frame_icrc(SH_LINK_IP, bytes, n - SH_ICRC_BYTES);
	for (size_t i = 0; i < SH_ICRC_BYTES; i++)
		bytes[n - SH_ICRC_BYTES + i] = (unsigned char)(icrc >> 8 * i);
	assert_int_equal(sh_roce_decode(bytes, n - SH_ROCE_HEAD, &way, &p, &seg), SH_ROCE_GUESSED);
	/* From a card, whose counter passes the identifications of softhca. */
	for (int i = 0; i < 100; i++) {
		for (int k = 0; k < 64; k++)
			assert_int_equal(sh_roce_judge(SH_ROCE_OK, 49152, &credits), SH_ROCE_OK);
		assert_int_equal(sh_roce_judge(SH_ROCE_GUESSED, 49152, &credits), SH_ROCE_OK);
		assert_int_equal(sh_roce_judge(SH_ROCE_BAD_ICRC, 49152, &credits),
				 SH_ROCE_BAD_ICRC);
	}
	/* From a program that nobody knows, at softhca's port. */
	for (int i = 0; i < 100; i++)
		assert_int_equal(sh_roce_judge(SH_ROCE_GUESSED, SH_ROCE_PORT, &credits),
				 SH_ROCE_OK);
	/* From softhca: the wrong one in a thousand is found each time. */
	for (int i = 0; i < 100; i++) {
		for (int k = 0; k < 1000; k++)
			assert_int_equal(sh_roce_judge(SH_ROCE_OK, SH_ROCE_PORT, &credits),
					 SH_ROCE_OK);
		assert_int_equal(sh_roce_judge(SH_ROCE_GUESSED, SH_ROCE_PORT, &credits),
				 SH_ROCE_BAD_ICRC);
		assert_int_equal(sh_roce_judge(SH_ROCE_BAD_ICRC, SH_ROCE_PORT, &credits),
				 SH_ROCE_BAD_ICRC);
		assert_int_equal(sh_roce_judge(SH_ROCE_MALFORMED, SH_ROCE_PORT, &credits),
				 SH_ROCE_MALFORMED);
	}
	/* A card has come to that address. */
	for (int i = 0; i < SH_ROCE_CREDITS; i++)
		(void)sh_roce_judge(SH_ROCE_GUESSED, SH_ROCE_PORT, &credits);
	assert_int_equal(sh_roce_judge(SH_ROCE_GUESSED, SH_ROCE_PORT, &credits), SH_ROCE_OK);
}

/* Each operation, and each length around a multiple of 4, comes back as it went. */
static void test_operations(void **state)
{
	static const unsigned char payload[8] = "12345678";

	(void)state;
	for (uint8_t service = SH_SVC_RC; service <= SH_SVC_XRC; service++)
		for (uint8_t op = SH_PKT_SEND; op <= SH_PKT_ATOMIC_RESP; op++)
			for (uint8_t flags = 0; flags < 8; flags++)
				for (size_t len = 0; len < 6; len++) {
					unsigned char bytes[SH_ROCE_BYTES];
					struct sh_packet p = {.op = op,
							      .service = service,
							      .flags = flags,
							      .pkey = 0x7fff,
							      .dqpn = 0x123,
							      .psn = 0xffffff,
							      .va = UINT64_C(0x123456789abcdef0),
							      .rkey = 0x11223344,
							      .dmalen = 0x55,
							      .swap_add = 77,
							      .syndrome = 0x1f,
							      .payload.len = len},
							 back;
					struct sh_seg seg;
					long n = sh_roce_encode(&p, payload, &way, bytes);

					if (n < 0)
						continue;
					assert_int_equal(sh_roce_decode(bytes,
									(size_t)n - SH_ROCE_HEAD,
									&way, &back, &seg),
							 SH_ROCE_OK);
					assert_int_equal(back.op, op);
					assert_int_equal(back.service, service);
					assert_int_equal(back.psn, 0xffffff);
					assert_int_equal(back.payload.len, len);
					if (op <= SH_PKT_WRITE)
						assert_int_equal(back.flags & 7,
								 flags & SH_PKT_LAST
									 ? flags
									 : flags & ~SH_PKT_IMM);
					if (op == SH_PKT_READ)
						assert_int_equal(back.dmalen, 0x55);
					if (op == SH_PKT_ATOMIC_RESP)
						assert_int_equal(back.swap_add, 77);
				}
}

/*
 * A card's notification of congestion: right, and nothing for a QP, from any port. A damaged one is
 * neither.
 */
static void test_notice(void **state)
{
	static const char cnp[] = "45c2003c718c40004011 91610a0011010a001201 000012b700280000 "
				  "8100ffff4000011800000000 00000000000000000000000000000000 "
				  "82fd002a";
	const struct sh_roce_way from = {.from = {0, SH_IP_MAPPED | 0x0a001101},
					 .to = {0, SH_IP_MAPPED | 0x0a001201}};
	unsigned char bytes[SH_ROCE_BYTES];
	uint8_t credits = SH_ROCE_CREDITS;
	size_t n = from_hex(cnp, bytes);
	struct sh_packet p;
	struct sh_seg seg;
	enum sh_roce is;

	(void)state;
	is = sh_roce_decode(bytes, n - SH_ROCE_HEAD, &from, &p, &seg);
	assert_int_equal(is, SH_ROCE_NOTICE);
	assert_int_equal(sh_roce_judge(is, 0, &credits), SH_ROCE_NOTICE);
	assert_int_equal(sh_roce_judge(is, SH_ROCE_PORT, &credits), SH_ROCE_NOTICE);
	assert_int_equal(credits, SH_ROCE_CREDITS);
	bytes[SH_ROCE_HEAD + 20] ^= 1;
	assert_int_equal(sh_roce_decode(bytes, n - SH_ROCE_HEAD, &from, &p, &seg),
			 SH_ROCE_BAD_ICRC);
}

/* All ports at one interface get what comes to a group, however many they are. */
static void test_ports_of_group(void **state)
{
	enum { PORTS = 40 };
	static const uint8_t mgid[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3};
	char text[PORTS * 16] = "127.0.177.1/24", why[256];
	struct sh_wire_config wire;
	uint64_t ports;
	int fd;

	(void)state;
	for (unsigned int i = 2; i <= PORTS; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ",127.0.177.%u", i);
	assert_true(parse(text, &wire, why, sizeof(why)));
	assert_int_equal(wire.n, PORTS);
	fd = sh_wire_open_group(&wire, 0, mgid, &ports);
	assert_true(fd != -ENODEV);
	assert_true(ports == (UINT64_C(1) << PORTS) - 1);
	if (fd >= 0)
		close(fd);
	/* Those that share its interface leave it to the first. */
	assert_int_equal(sh_wire_open_group(&wire, PORTS - 1, mgid, &ports), -EALREADY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),   cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_flips),	    cmocka_unit_test(test_identification),
		cmocka_unit_test(test_operations),  cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_reasons),	    cmocka_unit_test(test_peers),
		cmocka_unit_test(test_wrong_peers), cmocka_unit_test(test_many_peers),
		cmocka_unit_test(test_sockets),	    cmocka_unit_test(test_groups),
		cmocka_unit_test(test_notice),	    cmocka_unit_test(test_ports_of_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
