/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which addresses have LIDs on the wire. An address of the wire's network, less the network, is a
 * LID. Others are listed: peers outside of the network, and ports of this instance whose addresses
 * give no LID. A listed LID is not that of an address in the network. The list does not change as
 * long as the instance lives.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_WIRE_LIDS_H
#define SOFTHCA_DEVICE_MEMORY_WIRE_LIDS_H

#include "ip.h"

#define SH_WIRE_PEERS  64
#define SH_WIRE_LISTED (2 * SH_WIRE_PEERS) /* a port's address may be listed, too */
#define SH_WIRE_LIDS   1024		   /* LIDs are below it */

struct sh_wire_list {
	uint32_t n;
	uint32_t bits[SH_WIRE_LIDS / 32]; /* one for each LID: it is listed */
	struct sh_wire_listed {
		struct sh_ip address;
		uint32_t lid;
	} at[SH_WIRE_LISTED];
};

static inline bool sh_wire_listed(const struct sh_wire_list *list, uint32_t lid)
{
	return lid < SH_WIRE_LIDS && list->bits[lid / 32] >> lid % 32 & 1;
}

/* n may have been overwritten by a client. */
static inline uint32_t sh_wire_list_length(const struct sh_wire_list *list)
{
	return list->n < SH_WIRE_LISTED ? list->n : SH_WIRE_LISTED;
}

/*
 * The LID of an address. last: the highest that an address of the network can have. 0: it has none.
 */
static inline uint32_t sh_wire_list_lid(const struct sh_wire_list *list, struct sh_ip network,
					uint32_t last, struct sh_ip a)
{
	uint32_t lid = sh_ip_lid(network, last, a);

	if (lid && !sh_wire_listed(list, lid))
		return lid;
	for (uint32_t i = 0; i < sh_wire_list_length(list); i++)
		if (sh_ip_same(list->at[i].address, a))
			return list->at[i].lid;
	return 0;
}

/* The address of a LID, or :: if none has it. */
static inline struct sh_ip sh_wire_list_address(const struct sh_wire_list *list,
						struct sh_ip network, uint32_t last, uint32_t lid)
{
	if (!sh_wire_listed(list, lid))
		return lid && lid <= last ? sh_ip_of_lid(network, lid) : (struct sh_ip){0, 0};
	for (uint32_t i = 0; i < sh_wire_list_length(list); i++)
		if (list->at[i].lid == lid)
			return list->at[i].address;
	return (struct sh_ip){0, 0};
}

#endif
