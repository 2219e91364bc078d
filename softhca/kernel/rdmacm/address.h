/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What addresses mean: which host, HCA and port.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_ADDRESS_H
#define SOFTHCA_KERNEL_RDMACM_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "rdmacm-abi.h"

struct rdmacm;

/*
 * Is it wildcard or loopback? These name no port. Addresses of hosts and of the wire are not among
 * them.
 */
bool cm_addr_any(const struct rdmacm *cm, const union cm_sockaddr *a);
bool cm_addr_zero(const union cm_sockaddr *a);				   /* wildcard */
bool cm_addr_group(const union cm_sockaddr *a);				   /* multicast */
uint32_t cm_addr_size(uint16_t family);					   /* 0: unknown */
bool cm_addr_same(const union cm_sockaddr *a, const union cm_sockaddr *b); /* without ports */
uint16_t cm_addr_port(const union cm_sockaddr *a);			   /* host order */
/* service: the port space, which an AF_IB address has in it. */
void cm_addr_set_port(union cm_sockaddr *a, uint16_t service, uint16_t port);
/* The port space that an AF_IB address names, or 0. */
uint16_t cm_addr_service(const union cm_sockaddr *a);
/* Loopback of that family, with that port. */
void cm_addr_loopback(union cm_sockaddr *a, uint16_t family, uint16_t port);

/*
 * Finds the port of the host that has the address, which is not of the class "any". hca counts over
 * all hosts. 0; -EADDRNOTAVAIL: the address is another host's, or no port has it; -ENODEV: it is a
 * GID, and no port of the host has it, or with a wire an address of the machine that is not on it.
 */
int cm_addr_own(struct rdmacm *cm, uint32_t host, const union cm_sockaddr *a, uint32_t *hca,
		uint32_t *port);
/*
 * The same among the ports of all hosts. -ETIMEDOUT: the address is of the block, and no port has
 * it; -ENODEV: it is not of this instance.
 */
int cm_addr_find(struct rdmacm *cm, uint32_t host, const union cm_sockaddr *a, uint32_t *hca,
		 uint32_t *port);
/* The LID of a port of another instance on the wire that has the address. 0: there is none. */
uint16_t cm_addr_far(const struct rdmacm *cm, const union cm_sockaddr *a);
/* AF_INET or AF_INET6. */
uint16_t cm_wire_family(const struct rdmacm *cm);
/*
 * The address that a port has on the wire, whose LID is of another instance; else of this. family:
 * the wire's, or AF_IB.
 */
void cm_addr_of_far(const struct rdmacm *cm, uint16_t family, uint16_t lid, union cm_sockaddr *a);
void cm_addr_on_wire(const struct rdmacm *cm, uint16_t family, uint32_t hca, uint32_t port,
		     union cm_sockaddr *a);
/* The address that a port has. */
void cm_addr_of(struct rdmacm *cm, uint16_t family, uint32_t hca, uint32_t port,
		union cm_sockaddr *a);

/* The first active port of a host. */
bool cm_port_first(struct rdmacm *cm, uint32_t host, uint32_t *hca, uint32_t *port);
bool cm_port_by_gid(struct rdmacm *cm, const uint8_t gid[16], uint32_t *hca, uint32_t *port);

#endif
