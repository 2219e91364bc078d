// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reads the options that say what a wire is (address.h): the own addresses, their LIDs, the peers.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"

#define MOST_LID (SH_SWITCH_LID - 1)

struct reading {
	struct sh_wire_config *wire;
	const char *option;
	char *why;
	size_t len;
	uint32_t given; /* LIDs of the own addresses so far */
};

static __attribute__((format(printf, 2, 3))) bool refuse(const struct reading *r,
							 const char *format, ...)
{
	va_list args;
	int n = snprintf(r->why, r->len, "%s: ", r->option);

	va_start(args, format);
	vsnprintf(r->why + n, r->len - (size_t)n, format, args);
	va_end(args);
	return false;
}

/* Takes the words between commas. */
static bool each(const char *text, struct reading *r, bool (*take)(char *word, struct reading *r))
{
	char *words = strdup(text), *rest = words, *word;
	bool good = words || refuse(r, "there is no memory for it");

	while (good && (word = strsep(&rest, ",")))
		good = take(word, r);
	free(words);
	return good;
}

/* ---- --wire ---- */

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
static bool usable6(const char *word, const struct in6_addr *a, const struct reading *r)
{
	if (IN6_IS_ADDR_LINKLOCAL(a))
		return refuse(r,
			      "%.64s is good on one link alone, and neither a GID nor rdma_cm can "
			      "name the link: choose an address with scope global (ip address), "
			      "such as one below fd00::/8",
			      word);
	if (IN6_IS_ADDR_V4MAPPED(a))
		return refuse(r, "%.64s is an address of IPv4: write it as 10.1.2.3%s", word,
			      r->wire->n ? "" : "/24");
	if (IN6_IS_ADDR_MULTICAST(a))
		return refuse(r, "%.64s is a group's address: choose one of %s", word,
			      r->wire->n ? "a machine" : "this machine");
	if (IN6_IS_ADDR_LOOPBACK(a) || IN6_IS_ADDR_UNSPECIFIED(a))
		return refuse(r, "%.64s is each machine's own: choose one that others can reach",
			      word);
	return true;
}

static bool parse_address(char *word, struct sh_ip *address, const struct reading *r)
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
		if (!usable6(word, &in6, r))
			return false;
		if (!scope)
			return true;
	}
	if (scope)
		*scope = '%';
	if (r->wire->n)
		return refuse(r, "\"%.64s\" is no address: write it as 10.1.2.3 or fd00:1::3",
			      word);
	return refuse(r,
		      "\"%.64s\" is no address: write it as 10.1.2.3/24 or fd00:1::3/64, with the "
		      "length of its network's prefix",
		      word);
}

/* One address; the first one comes with the prefix and decides the network. */
static bool take_own(char *word, struct reading *r)
{
	struct sh_wire_config *wire = r->wire;
	char *slash = strchr(word, '/');
	struct sh_ip address;

	if (slash)
		*slash = '\0';
	if (!parse_address(word, &address, r))
		return false;
	if (wire->n == SH_WIRE_MOST)
		return refuse(r, "there are more than %d addresses: name fewer", SH_WIRE_MOST);
	wire->address[wire->n] = address;
	if (!slash != !!wire->n || (slash && !parse_prefix(slash + 1, wire)))
		return refuse(r,
			      "the first address, and no other, needs the length of its network's "
			      "prefix, 8 to %s",
			      sh_ip_is4(wire->address[0]) ? "30: 10.1.2.3/24,10.1.2.4"
							  : "126: fd00:1::3/64,fd00:1::4");
	if (sh_ip_is4(address) != sh_ip_is4(wire->address[0]))
		return refuse(r,
			      "%s is not of the first address's version of IP: all ports of an "
			      "instance are on one network",
			      word);
	for (uint32_t i = 0; i < wire->n; i++)
		if (sh_ip_same(wire->address[i], address))
			return refuse(r, "%s is there twice: each port needs one of its own", word);
	wire->n++;
	return true;
}

/* ---- LIDs and addresses that belong together ---- */

static bool parse_lid(const char *text, uint32_t *lid)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 0);
	*lid = (uint32_t)value;
	return !errno && *text >= '0' && *text <= '9' && !*end && value && value <= MOST_LID;
}

/* Is the address of the network, whether or not it gives a LID? */
static bool in_network(const struct sh_wire_config *wire, struct sh_ip a)
{
	unsigned int rest = (sh_ip_is4(a) ? 32 : 128) - wire->prefix;
	uint64_t hi = a.hi ^ wire->network.hi, lo = a.lo ^ wire->network.lo;

	if (sh_ip_is4(a) != sh_ip_is4(wire->network))
		return false;
	return rest > 64 ? !(hi >> (rest - 64)) : !hi && (rest == 64 || !(lo >> rest));
}

/*
 * The first one, which names the network, and the last one, to which all listen. No machine has
 * them.
 */
static bool is_edge(const struct sh_wire_config *wire, struct sh_ip a)
{
	return sh_ip_is4(a) && in_network(wire, a) &&
	       (sh_ip_same(a, wire->network) ||
		((a.lo + 1) & ((UINT64_C(1) << (32 - wire->prefix)) - 1)) == 0);
}

static bool may_be_named(const struct sh_wire_config *wire, struct sh_ip own)
{
	return in_network(wire, own) && !sh_ip_same(own, wire->network) && !is_edge(wire, own);
}

/* Addresses of IPv4 that no port elsewhere can have. */
static bool usable4(const char *word, struct sh_ip a, const struct reading *r)
{
	uint32_t v = (uint32_t)a.lo;

	if (!sh_ip_is4(a))
		return true;
	if (v >> 28 == 0xe)
		return refuse(r, "%.64s is a group's address: choose one of a machine", word);
	if (v >> 24 == 0 || v >> 28 == 0xf || is_edge(r->wire, a))
		return refuse(r, "%.64s is no machine's address: choose the peer's own", word);
	if (v >> 16 == 0xa9fe)
		return refuse(
			r,
			"%.64s is good on one link alone: choose an address that the peer has "
			"for good (ip address)",
			word);
	return true;
}

static void list(struct sh_wire_config *wire, uint32_t lid, struct sh_ip address)
{
	wire->list.at[wire->list.n++] = (struct sh_wire_listed){address, lid};
	wire->list.bits[lid / 32] |= UINT32_C(1) << lid % 32;
}

/*
 * Has no other peer or port of this instance the LID? number: the own address that it is for, or
 * wire->n.
 */
static bool is_free(const struct reading *r, uint32_t lid, const char *word, uint32_t number)
{
	const struct sh_wire_config *wire = r->wire;
	struct sh_ip has = {0, 0};
	char text[SH_WIRE_TEXT];

	for (uint32_t i = 0; i < wire->n; i++)
		if (i != number &&
		    sh_ip_lid(wire->network, wire->last_lid, wire->address[i]) == lid)
			has = wire->address[i];
	for (uint32_t i = 0; i < wire->list.n; i++)
		if (wire->list.at[i].lid == lid)
			has = wire->list.at[i].address;
	if (!has.hi && !has.lo)
		return true;
	sh_wire_text(text, has);
	return refuse(r, "LID %u is that of %s already: choose another one for %s", lid, text,
		      word);
}

static bool take_peer(char *word, struct reading *r)
{
	struct sh_wire_config *wire = r->wire;
	char *equals = strchr(word, '='), *name = equals ? equals + 1 : word;
	struct sh_ip address;
	uint32_t lid;

	if (equals)
		*equals = '\0';
	if (!equals || !parse_lid(word, &lid))
		return refuse(r,
			      "\"%.64s%s%.64s\" does not begin with a LID of 1 to %d: write it as "
			      "0x200=192.0.2.9",
			      word, equals ? "=" : "", equals ? name : "", MOST_LID);
	if (!parse_address(name, &address, r) || !usable4(name, address, r))
		return false;
	if (sh_ip_is4(address) != sh_ip_is4(wire->network))
		return refuse(
			r,
			"%s is not of the wire's version of IP: choose an address that the peer "
			"has of that version",
			name);
	for (uint32_t i = 0; i < wire->n; i++)
		if (sh_ip_same(wire->address[i], address))
			return refuse(r, "%s is this instance's own address: leave it out", name);
	if (sh_ip_lid(wire->network, wire->last_lid, address))
		return refuse(
			r,
			"%s is in the wire's network, and has LID %u without being named: leave "
			"it out",
			name, sh_ip_lid(wire->network, wire->last_lid, address));
	for (uint32_t i = 0; i < wire->list.n; i++)
		if (sh_ip_same(wire->list.at[i].address, address))
			return refuse(r, "%s is there twice: a peer has one LID", name);
	if (!is_free(r, lid, name, wire->n))
		return false;
	if (wire->list.n == SH_WIRE_PEERS)
		return refuse(r, "there are more than %d peers: name fewer", SH_WIRE_PEERS);
	list(wire, lid, address);
	wire->peers = wire->list.n;
	return true;
}

/*
 * An own address that gives no LID. --lid helps if a machine of the network can have the address.
 */
static bool refuse_own(const struct reading *r, uint32_t number)
{
	const struct sh_wire_config *wire = r->wire;
	char text[SH_WIRE_TEXT], network[SH_WIRE_TEXT], most[16];

	sh_wire_text(text, wire->address[number]);
	sh_wire_text(network, wire->network);
	/* In the digits that the address has. */
	snprintf(most, sizeof(most), sh_ip_is4(wire->network) ? "%u" : "%x", wire->last_lid);
	return refuse(r,
		      "%s does not give a LID: it has to be the network, %s, plus 1 to %s; choose "
		      "another address or prefix%s",
		      text, network, most,
		      may_be_named(wire, wire->address[number]) ? ", or name a LID with --lid"
								: "");
}

/* The LID of the next own address. */
static bool take_lid(char *word, struct reading *r)
{
	struct sh_wire_config *wire = r->wire;
	uint32_t number = r->given++, lid, has;
	char text[SH_WIRE_TEXT];

	if (!parse_lid(word, &lid))
		return refuse(r, "\"%.64s\" is no LID of 1 to %d", word, MOST_LID);
	if (number >= wire->n)
		return refuse(r, "there are more LIDs than addresses: name one for each address of "
				 "--wire, in their order");
	sh_wire_text(text, wire->address[number]);
	has = sh_ip_lid(wire->network, wire->last_lid, wire->address[number]);
	if (has && has != lid)
		return refuse(
			r,
			"%s has LID %u, as the other instances of the network know: name that "
			"one, or leave --lid out",
			text, has);
	if (!is_free(r, lid, text, number))
		return false;
	if (!has && !may_be_named(wire, wire->address[number]))
		return refuse_own(r, number);
	if (!has)
		list(wire, lid, wire->address[number]);
	return true;
}

/* ---- all together ---- */

/* Each own address has a LID. */
static bool check_lids(const struct reading *r)
{
	const struct sh_wire_config *wire = r->wire;

	for (uint32_t i = 0; i < wire->n; i++)
		if (!sh_wire_lid(wire, wire->address[i]))
			return refuse_own(r, i);
	return true;
}

bool sh_wire_parse(const struct sh_wire_words *words, struct sh_wire_config *wire, char *why,
		   size_t len)
{
	struct reading r = {.wire = wire, .option = "--wire", .why = why, .len = len};

	*wire = (struct sh_wire_config){.mtu = 0};
	if (!each(words->wire, &r, take_own))
		return false;
	r.option = "--peer";
	for (uint32_t i = 0; i < SH_WIRE_PEERS && words->peers[i]; i++)
		if (!each(words->peers[i], &r, take_peer))
			return false;
	r.option = "--lid";
	if (words->lids && !each(words->lids, &r, take_lid))
		return false;
	if (words->lids && r.given < wire->n)
		return refuse(&r,
			      "there are fewer LIDs than addresses: name one for each address of "
			      "--wire, in their order");
	r.option = "--wire";
	return check_lids(&r);
}
