// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Address handles: create them, also from a completion, and find the Ethernet address of a GID. */

#include <arpa/inet.h>
#include <string.h>

#include "ibverbs.h"

/* The position of traffic class and flow label in the first word of a GRH. */
#define GRH_TCLASS_SHIFT 20
#define GRH_FLOW_MASK	 0xfffff

struct ibv_ah *ibv_create_ah_1_1(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah;

	ah = pd->context->ops.create_ah(pd, attr);
	if (ah) {
		ah->context = pd->context;
		ah->pd = pd;
	}

	return ah;
}
default_symver(ibv_create_ah_1_1, ibv_create_ah);

int ibv_destroy_ah_1_1(struct ibv_ah *ah)
{
	return ah->context->ops.destroy_ah(ah);
}
default_symver(ibv_destroy_ah_1_1, ibv_destroy_ah);

/* Returns the index of the GID in the port's table, or -1 if it has none. */
static int find_gid(struct ibv_context *context, uint8_t port_num, const union ibv_gid *wanted)
{
	union ibv_gid gid;
	int i;

	/* The index in an address handle has 8 bits. */
	for (i = 0; i <= UINT8_MAX; ++i) {
		if (ibv_query_gid(context, port_num, i, &gid))
			return -1;
		if (!memcmp(&gid, wanted, sizeof(gid)))
			return i;
	}

	errno = ENOENT;
	return -1;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	uint32_t word;
	int index = 0;

	if (wc->wc_flags & IBV_WC_GRH) {
		index = find_gid(context, port_num, &grh->dgid);
		if (index < 0)
			return -1;
	}

	memset(ah_attr, 0, sizeof(*ah_attr));
	ah_attr->dlid = wc->slid;
	ah_attr->sl = wc->sl;
	ah_attr->src_path_bits = wc->dlid_path_bits;
	ah_attr->port_num = port_num;

	if (wc->wc_flags & IBV_WC_GRH) {
		word = ntohl(grh->version_tclass_flow);
		ah_attr->is_global = 1;
		ah_attr->grh.dgid = grh->sgid;
		ah_attr->grh.sgid_index = index;
		ah_attr->grh.flow_label = word & GRH_FLOW_MASK;
		ah_attr->grh.traffic_class = word >> GRH_TCLASS_SHIFT;
		ah_attr->grh.hop_limit = grh->hop_limit;
	}

	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;

	return ibv_create_ah(pd, &attr);
}

/* VLANs are below this. In a GID without a VLAN these two bytes are ff:fe. */
#define VLAN_LIMIT 0x1000

int ibv_resolve_eth_gid(const struct ibv_pd *pd, uint8_t port_num, union ibv_gid *dgid,
			uint8_t sgid_index, uint8_t mac[], uint16_t *vlan, uint8_t *tagged,
			uint8_t *is_mcast)
{
	static const uint8_t link_local[8] = {0xfe, 0x80};
	bool multicast = dgid->raw[0] == 0xff;
	union ibv_gid sgid;
	uint16_t own_vlan;

	if (!multicast && memcmp(dgid->raw, link_local, sizeof(link_local)))
		return -EINVAL;

	if (ibv_query_gid(pd->context, port_num, sgid_index, &sgid))
		return -1;

	if (multicast) {
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, dgid->raw + 12, 4);
	} else {
		/* An interface identifier is the MAC address with ff:fe, or the VLAN, in the middle
		 * and the universal/local bit inverted. */
		memcpy(mac, dgid->raw + 8, 3);
		memcpy(mac + 3, dgid->raw + 13, 3);
		mac[0] ^= 2;
	}

	own_vlan = sgid.raw[11] << 8 | sgid.raw[12];
	*is_mcast = multicast;
	*tagged = own_vlan < VLAN_LIMIT;
	*vlan = *tagged ? own_vlan : 0;

	return 0;
}
