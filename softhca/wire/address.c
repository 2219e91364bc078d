// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See address.h. */
#include <arpa/inet.h>
#include <string.h>

#include "address.h"

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

/*
 * What rdma_cm makes of a group of IPv4 for RDMA_PS_UDP: ff1x:4001:PKEY::, and 28 bits of the
 * address.
 */
static bool is_udp4(const struct sh_ip mgid)
{
	return mgid.hi >> 56 == 0xff && (mgid.hi >> 32 & 0xffff) == 0x4001 && !(mgid.hi & 0xffff) &&
	       !(mgid.lo >> 28);
}

/*
 * Networks of IPv6 carry no packet to a group whose scope is reserved (0), or the interface (1):
 * then it is the link (2).
 */
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
