/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * An IP address of either version as one number of 128 bits. One of IPv4 is ::ffff:a.b.c.d, as the
 * GIDs of RoCE have it. So all but sockets and packets treats both versions alike.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_IP_H
#define SOFTHCA_DEVICE_MEMORY_IP_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct sh_ip {
	uint64_t hi, lo;
};

#define SH_IP_MAPPED UINT64_C(0xffff00000000)

/* Of IPv4; the address is in host order. */
static inline struct sh_ip sh_ip4(uint32_t address)
{
	return (struct sh_ip){0, SH_IP_MAPPED | address};
}

static inline bool sh_ip_is4(struct sh_ip a)
{
	return !a.hi && (a.lo & ~(uint64_t)UINT32_MAX) == SH_IP_MAPPED;
}

static inline bool sh_ip_same(struct sh_ip a, struct sh_ip b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

/* From and to the 16 bytes that a GID or a socket's address has. */
static inline struct sh_ip sh_ip_get(const void *bytes)
{
	uint64_t half[2];

	memcpy(half, bytes, sizeof(half));
	return (struct sh_ip){be64toh(half[0]), be64toh(half[1])};
}

static inline void sh_ip_put(struct sh_ip a, void *bytes)
{
	const uint64_t half[2] = {htobe64(a.hi), htobe64(a.lo)};

	memcpy(bytes, half, sizeof(half));
}

/*
 * An address less its network is a LID. 0: it is not of the network, or more than `last`.
 */
static inline uint32_t sh_ip_lid(struct sh_ip network, uint32_t last, struct sh_ip a)
{
	uint64_t lid = a.lo - network.lo;

	return a.hi == network.hi && lid <= last ? (uint32_t)lid : 0;
}

/* LIDs from here on, but for the permissive one, are of multicast groups. */
#define SH_LID_GROUPS 0xc000

/*
 * Is it the GID of a multicast group, also in the form that groups of IPv4 have in RoCE,
 * ::ffff:224.0.0.1?
 */
static inline bool sh_gid_is_group(const uint8_t gid[16])
{
	struct sh_ip a;

	if (gid[0] == 0xff)
		return true;
	a = sh_ip_get(gid);
	return sh_ip_is4(a) && (a.lo >> 28 & 0xf) == 0xe;
}

static inline struct sh_ip sh_ip_of_lid(struct sh_ip network, uint32_t lid)
{
	return (struct sh_ip){network.hi, network.lo + lid};
}

#endif
