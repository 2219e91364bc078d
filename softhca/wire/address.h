/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Addresses of the wire, as text, as numbers and for sockets. The LID of a port is its address less
 * the network: instances agree on LIDs without a word. Other addresses have the LIDs that the
 * options say.
 */
#ifndef SOFTHCA_WIRE_ADDRESS_H
#define SOFTHCA_WIRE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "softhca/device/memory/instance.h"

/* The options that say what a wire is. */
struct sh_wire_words {
	const char *wire;		      /* ADDRESS/PREFIX[,ADDRESS...] */
	const char *lids;		      /* LID[,LID...], or NULL */
	const char *peers[SH_WIRE_PEERS + 1]; /* LID=ADDRESS[,LID=ADDRESS...] each, up to a NULL */
};
/*
 * Reads them into *wire, all but the MTU. False: why[len] says in a sentence what is wrong, behind
 * the name of the option.
 */
bool sh_wire_parse(const struct sh_wire_words *words, struct sh_wire_config *wire, char *why,
		   size_t len);

/* The LID of an address, or 0: it is not on the wire. */
static inline uint32_t sh_wire_lid(const struct sh_wire_config *wire, struct sh_ip address)
{
	return sh_wire_list_lid(&wire->list, wire->network, wire->last_lid, address);
}

/* The address of a LID on the wire, or :: if none has it. */
static inline struct sh_ip sh_wire_address(const struct sh_wire_config *wire, uint32_t lid)
{
	return sh_wire_list_address(&wire->list, wire->network, wire->last_lid, lid);
}

/*
 * The group of IP that a group of the fabric has on the wire; network: the wire's. Several MGIDs
 * may have one group of IPv4, as receivers know (sockets.h).
 */
struct sh_ip sh_wire_group(struct sh_ip network, const uint8_t mgid[16]);

/* "10.1.2.3", "fd00:1::3" */
#define SH_WIRE_TEXT INET6_ADDRSTRLEN
void sh_wire_text(char text[SH_WIRE_TEXT], struct sh_ip address);

/* As a socket takes and gives them. Returns how many bytes of it count. */
union sh_wire_at {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};
socklen_t sh_wire_at(union sh_wire_at *at, struct sh_ip address, uint16_t port);
struct sh_ip sh_wire_from(const union sh_wire_at *at, uint16_t *port);

#endif
