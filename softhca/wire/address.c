// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See address.h. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"

#define MOST_LID (SH_SWITCH_LID - 1)

void sh_wire_text(char text[SH_WIRE_TEXT], struct sh_ip address)
{
	uint8_t bytes[16];

	sh_ip_put(address, bytes);
	if (sh_ip_is4(address))
		inet_ntop(AF_INET, bytes + 12, text, SH_WIRE_TEXT);
	else
		inet_ntop(AF_INET6, bytes, text, SH_WIRE_TEXT);
}

socklen_t sh_wire_at(union sh_wire_at *at, struct sh_ip address, uint16_t port)
{
	memset(at, 0, sizeof(*at));
	if (sh_ip_is4(address)) {
		at->in.sin_family = AF_INET;
		at->in.sin_port = htons(port);
		at->in.sin_addr.s_addr = htonl((uint32_t)address.lo);
		return sizeof(at->in);
	}
	at->in6.sin6_family = AF_INET6;
	at->in6.sin6_port = htons(port);
	sh_ip_put(address, &at->in6.sin6_addr);
	return sizeof(at->in6);
}

struct sh_ip sh_wire_from(const union sh_wire_at *at, uint16_t *port)
{
	*port = ntohs(at->any.sa_family == AF_INET ? at->in.sin_port : at->in6.sin6_port);
	return at->any.sa_family == AF_INET ? sh_ip4(ntohl(at->in.sin_addr.s_addr))
					    : sh_ip_get(&at->in6.sin6_addr);
}

/* ---- reading ---- */

/* Bits of an address that are not of its network, and the most that they may be for a LID. */
static void set_network(struct sh_wire_config *wire, unsigned int bits)
{
	struct sh_ip a = wire->address[0];
	bool is4 = sh_ip_is4(a);
	unsigned int rest = (is4 ? 32 : 128) - bits;
	uint64_t most = rest > 31 ? UINT32_MAX : (UINT64_C(1) << rest) - 1;

	wire->prefix = bits;
	wire->network.hi = rest > 64 ? a.hi >> (rest - 64) << (rest - 64) : a.hi;
	wire->network.lo = rest < 64 ? a.lo >> rest << rest : 0;
	/* The last number of a network of IPv4 is its broadcast address. */
	most -= is4;
	wire->last_lid = most < MOST_LID ? (uint32_t)most : MOST_LID;
}

/* The length behind the slash. */
static bool parse_prefix(const char *text, struct sh_wire_config *wire)
{
	unsigned long most = sh_ip_is4(wire->address[0]) ? 30 : 126, bits;
	char *end;

	bits = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || bits < 8 || bits > most)
		return false;
	set_network(wire, (unsigned int)bits);
	return true;
}

/* Is it an address of IPv6 that other machines could send to? */
static bool usable(const char *word, const struct in6_addr *a, char *why, size_t len)
{
	const char *what = NULL;

	if (IN6_IS_ADDR_LINKLOCAL(a))
		what = "is good on one link alone, and neither a GID nor rdma_cm can name the "
		       "link: "
		       "choose an address with scope global (ip address), such as one below "
		       "fd00::/8";
	else if (IN6_IS_ADDR_V4MAPPED(a))
		what = "is an address of IPv4: write it as 10.1.2.3/24";
	else if (IN6_IS_ADDR_MULTICAST(a))
		what = "is a group's address: choose one of this machine";
	else if (IN6_IS_ADDR_LOOPBACK(a) || IN6_IS_ADDR_UNSPECIFIED(a))
		what = "is each machine's own: choose one that others can reach";
	if (what)
		snprintf(why, len, "%.64s %s", word, what);
	return !what;
}

static bool parse_address(char *word, struct sh_ip *address, char *why, size_t len)
{
	char *scope = strchr(word, '%');
	struct in6_addr in6;
	struct in_addr in;

	if (inet_pton(AF_INET, word, &in) == 1) {
		*address = sh_ip4(ntohl(in.s_addr));
		return true;
	}
	if (scope)
		*scope = '\0';
	if (inet_pton(AF_INET6, word, &in6) == 1) {
		*address = sh_ip_get(&in6);
		if (!usable(word, &in6, why, len))
			return false;
		if (!scope)
			return true;
	}
	if (scope)
		*scope = '%';
	snprintf(
		why, len,
		"\"%.64s\" is no address: write it as 10.1.2.3/24 or fd00:1::3/64, with the length "
		"of its network's prefix",
		word);
	return false;
}

/* One address; the first one comes with the prefix and decides the network. */
static bool parse_one(char *word, struct sh_wire_config *wire, char *why, size_t len)
{
	char *slash = strchr(word, '/'), text[SH_WIRE_TEXT], most[16];
	struct sh_ip address;

	if (slash)
		*slash = '\0';
	if (!parse_address(word, &address, why, len))
		return false;
	if (wire->n == SH_WIRE_MOST) {
		snprintf(why, len, "there are more than %d addresses: name fewer", SH_WIRE_MOST);
		return false;
	}
	wire->address[wire->n] = address;
	if (!slash != !!wire->n || (slash && !parse_prefix(slash + 1, wire))) {
		snprintf(why, len,
			 "the first address, and no other, needs the length of its network's "
			 "prefix, 8 to %s",
			 sh_ip_is4(wire->address[0]) ? "30: 10.1.2.3/24,10.1.2.4"
						     : "126: fd00:1::3/64,fd00:1::4");
		return false;
	}
	if (sh_ip_is4(address) != sh_ip_is4(wire->address[0])) {
		snprintf(why, len,
			 "%s is not of the first address's version of IP: all ports of an instance "
			 "are on one network",
			 word);
		return false;
	}
	if (!sh_wire_lid(wire, address)) {
		sh_wire_text(text, wire->network);
		/* In the digits that the address has. */
		snprintf(most, sizeof(most), sh_ip_is4(address) ? "%u" : "%x", wire->last_lid);
		snprintf(why, len,
			 "%s does not give a LID: it has to be the network, %s, plus 1 to %s; "
			 "choose another address or prefix",
			 word, text, most);
		return false;
	}
	for (uint32_t i = 0; i < wire->n; i++)
		if (sh_ip_same(wire->address[i], address)) {
			snprintf(why, len, "%s is there twice: each port needs one of its own",
				 word);
			return false;
		}
	wire->n++;
	return true;
}

#define GROUPS4 UINT32_C(0xe0000000) /* 224.0.0.0, of which 28 bits differ */
#define HASHED4 UINT32_C(0xef000000) /* 239.0.0.0/8, for an organization's own use */

/* FNV-1a, of which 24 bits are used: every instance makes the same of an MGID. */
static uint32_t hash(const uint8_t mgid[16])
{
	uint32_t h = 2166136261u;

	for (int i = 0; i < 16; i++)
		h = (h ^ mgid[i]) * 16777619u;
	return (h ^ h >> 24) & 0xffffff;
}

/* What rdma_cm makes of a group of IPv4 for RDMA_PS_UDP: ff1x:4001:PKEY::, and 28 bits of the address. */
static bool is_udp4(const struct sh_ip mgid)
{
	return mgid.hi >> 56 == 0xff && (mgid.hi >> 32 & 0xffff) == 0x4001 && !(mgid.hi & 0xffff) &&
	       !(mgid.lo >> 28);
}

/* Networks of IPv6 carry no packet to a group whose scope is reserved (0), or the interface (1): then it is the link (2). */
static struct sh_ip group6(struct sh_ip a)
{
	if (sh_ip_is4(a))
		return (struct sh_ip){UINT64_C(0xff12) << 48, a.lo & UINT32_MAX};
	if ((a.hi >> 48 & 0xf) < 2)
		a.hi = (a.hi & ~(UINT64_C(0xf) << 48)) | UINT64_C(2) << 48;
	return a;
}

struct sh_ip sh_wire_group(struct sh_ip network, const uint8_t mgid[16])
{
	struct sh_ip a = sh_ip_get(mgid);

	if (!sh_ip_is4(network))
		return group6(a);
	if (sh_ip_is4(a))
		return a;
	if (is_udp4(a))
		return sh_ip4(GROUPS4 | (uint32_t)a.lo);
	return sh_ip4(HASHED4 | hash(mgid));
}

bool sh_wire_parse(const char *text, struct sh_wire_config *wire, char *why, size_t len)
{
	char *words = strdup(text), *rest = words, *word;
	bool good = words != NULL;

	if (!words)
		snprintf(why, len, "there is no memory for it");
	*wire = (struct sh_wire_config){.mtu = 0};
	while (good && (word = strsep(&rest, ",")))
		good = parse_one(word, wire, why, len);
	free(words);
	return good;
}
