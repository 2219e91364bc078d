// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Native InfiniBand addresses: the address family AF_IB and its socket address. */

#ifndef INFINIBAND_IB_H
#define INFINIBAND_IB_H

#include <stdint.h>
#include <string.h>

/* The number of the address family, which older C libraries do not know. */
#ifndef AF_IB
#define AF_IB 27
#endif
#ifndef PF_IB
#define PF_IB AF_IB
#endif

/* A GID in the form of a socket address, in network order. */
struct ib_addr {
	union {
		uint8_t uib_addr8[16];
		uint16_t uib_addr16[8];
		uint32_t uib_addr32[4];
		uint64_t uib_addr64[2];
	} ib_u;
#define sib_addr8     ib_u.uib_addr8
#define sib_addr16    ib_u.uib_addr16
#define sib_addr32    ib_u.uib_addr32
#define sib_addr64    ib_u.uib_addr64
#define sib_raw	      ib_u.uib_addr8
#define sib_subnet    ib_u.uib_addr64[0]
#define sib_interface ib_u.uib_addr64[1]
};

/* Returns 1 if the address is all zeros: "any address"; else 0. */
static inline int ib_addr_any(const struct ib_addr *a)
{
	return !(a->sib_addr64[0] | a->sib_addr64[1]);
}

/* Returns 1 if the address is ::1, the loopback address; else 0. */
static inline int ib_addr_loopback(const struct ib_addr *a)
{
	static const uint8_t loopback[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

	return !memcmp(a->sib_addr8, loopback, sizeof(loopback));
}

/* Writes the address that consists of these four words, which are in network order. */
static inline void ib_addr_set(struct ib_addr *addr, uint32_t w1, uint32_t w2, uint32_t w3,
			       uint32_t w4)
{
	addr->sib_addr32[0] = w1;
	addr->sib_addr32[1] = w2;
	addr->sib_addr32[2] = w3;
	addr->sib_addr32[3] = w4;
}

/* Compares two addresses as memcmp() does. */
static inline int ib_addr_cmp(const struct ib_addr *a1, const struct ib_addr *a2)
{
	return memcmp(a1, a2, sizeof(struct ib_addr));
}

/*
 * The address of a service at a port. All but sib_family is in network order.
 *
 *   OFFSET  SIZE  MEANING
 *   0       2     sib_family: AF_IB
 *   2       2     sib_pkey
 *   4       4     sib_flowinfo
 *   8       16    sib_addr: GID
 *   24      8     sib_sid: service id, (port space << 16) + port for the port spaces of rdma_cma.h
 *   32      8     sib_sid_mask: which bits of sib_sid count
 *   40      8     sib_scope_id
 */
struct sockaddr_ib {
	unsigned short int sib_family;
	uint16_t sib_pkey;
	uint32_t sib_flowinfo;
	struct ib_addr sib_addr;
	uint64_t sib_sid;
	uint64_t sib_sid_mask;
	uint64_t sib_scope_id;
};

#endif /* INFINIBAND_IB_H */
