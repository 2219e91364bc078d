/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Names and addresses of the hosts of an instance. No other file says which name or address belongs
 * to which host.
 *
 *	hostK			in any case of letters, with a dot at the end or without
 *	127.128.K.N		host K; N = 1 + HCA * ports + (port - 1). The name has N = 1
 *
 *	fd53:4f46:5448:K::N	the same, as IPv6: for rdma_cm alone, since no socket can have it
 *
 *	softhca-A		the host of an instance at address A of a wire, with - for each . or :
 *
 * All of 127/8 is local on Linux, so any user can bind sockets there. Knows no instance: the caller
 * finds out whether it has that many hosts.
 */
#ifndef SOFTHCA_HOST_ADDRESS_H
#define SOFTHCA_HOST_ADDRESS_H

#include <arpa/inet.h>
#include <stdbool.h>

/* Room for the longest of each: "host255", "127.128.255.254". */
#define SH_HOST_NAME	8
#define SH_HOST_ADDRESS 16

/* The block, in host order: all hosts are in one network. */
#define SH_HOSTS_BLOCK	 0x7f800000u
#define SH_HOSTS_NETMASK 0xffff0000u

/* K, or -1 if the name is not one of these. */
int sh_host_of_name(const char *name);

/* "hostK"; K is below 256. */
void sh_host_name(char name[SH_HOST_NAME], unsigned int host);

/* "softhca-10-1-2-3", "softhca-fd00-1--3" */
#define SH_WIRE_NAME 64
void sh_wire_name(char name[SH_WIRE_NAME], const char *address);
/* The address in such a name, as text. False: it is not one of these. */
bool sh_wire_name_address(const char *name, char address[INET6_ADDRSTRLEN]);

/* Address N of host K; both are below 256. */
struct in_addr sh_host_address(unsigned int host, unsigned int n);

/* Is the address in the block? Then *host and *n are set; *n is from 1 to 254. */
bool sh_address_host(struct in_addr address, unsigned int *host, unsigned int *n);

/* The same of IPv6. */
struct in6_addr sh_host_address6(unsigned int host, unsigned int n);
bool sh_address6_host(const struct in6_addr *address, unsigned int *host, unsigned int *n);

#endif
