// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Records of the subnet administrator, in the form that the connection managers hand around. LIDs,
 * P_Keys and labels are in network order, as the SA sends them. */

#ifndef INFINIBAND_SA_H
#define INFINIBAND_SA_H

#include <infiniband/verbs.h>

/* A path between two ports. *_selector: 0 greater than, 1 less than, 2 exactly, 3 the largest
 * there is, of the value after it. packet_life_time: 4.096 us * 2^n. reversible, raw_traffic: 0
 * or 1. */
struct ibv_sa_path_rec {
	union ibv_gid dgid;
	union ibv_gid sgid;
	uint16_t dlid;
	uint16_t slid;
	int raw_traffic;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t traffic_class;
	int reversible;
	uint8_t numb_path;
	uint16_t pkey;
	uint8_t sl;
	uint8_t mtu_selector;
	uint8_t mtu;		/* enum ibv_mtu */
	uint8_t rate_selector;
	uint8_t rate;		/* enum ibv_rate */
	uint8_t packet_life_time_selector;
	uint8_t packet_life_time;
	uint8_t preference;
};

/* A port's membership in a multicast group. join_state is a bit mask: 1 full member, 2 non-
 * member, 4 sends only. */
struct ibv_sa_mcmember_rec {
	union ibv_gid mgid;
	union ibv_gid port_gid;
	uint32_t qkey;
	uint16_t mlid;
	uint8_t mtu_selector;
	uint8_t mtu;
	uint8_t traffic_class;
	uint16_t pkey;
	uint8_t rate_selector;
	uint8_t rate;
	uint8_t packet_life_time_selector;
	uint8_t packet_life_time;
	uint8_t sl;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t scope;
	uint8_t join_state;
	int proxy_join;
};

/* A service that a port offers. id is in network order; lease in seconds, 0xffffffff for ever. */
struct ibv_sa_service_rec {
	uint64_t id;
	union ibv_gid gid;
	uint16_t pkey;
	uint32_t lease;
	uint8_t key[16];
	uint8_t name[64];
	uint8_t data8[16];
	uint16_t data16[8];
	uint32_t data32[4];
	uint64_t data64[2];
};

#endif /* INFINIBAND_SA_H */
