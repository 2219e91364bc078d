// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Records of the subnet administrator (SA), in the form that connection managers pass on. LIDs,
 * P_Keys and labels are in network order, as the SA sends them. */

#ifndef INFINIBAND_SA_H
#define INFINIBAND_SA_H

#include <infiniband/verbs.h>

/* A path between two ports. A *_selector says how the value after it is meant: 0 greater than, 1
 * less than, 2 exactly, 3 the largest available. packet_life_time: 4.096 us * 2^n. reversible and
 * raw_traffic are 0 or 1. */
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
	uint8_t mtu; /* enum ibv_mtu */
	uint8_t rate_selector;
	uint8_t rate; /* enum ibv_rate */
	uint8_t packet_life_time_selector;
	uint8_t packet_life_time;
	uint8_t preference;
};

/*
 * A path as the SA sends it, all in network order. Path services and librdmacm's rdma_getaddrinfo()
 * return it. "27:8" are bits of a field.
 *
 *   OFFSET  SIZE  MEANING
 *   0       8     service_id
 *   8       16    dgid
 *   24      16    sgid
 *   40      2     dlid
 *   42      2     slid
 *   44      4     flowlabel_hoplimit: 27:8 flow label, 7:0 hop limit
 *   48      1     tclass
 *   49      1     reversible_numpath: 7 reversible, 6:0 how many paths
 *   50      2     pkey
 *   52      2     qosclass_sl: 15:4 QoS class, 3:0 SL
 *   54      1     mtu: 7:6 selector as in ibv_sa_path_rec, 5:0 enum ibv_mtu
 *   55      1     rate: 7:6 selector, 5:0 enum ibv_rate
 *   56      1     packetlifetime: 7:6 selector, 5:0 n of 4.096 us * 2^n
 *   57      1     preference
 *   58      6     reserved
 */
struct ibv_path_record {
	uint64_t service_id;
	union ibv_gid dgid;
	union ibv_gid sgid;
	uint16_t dlid;
	uint16_t slid;
	uint32_t flowlabel_hoplimit;
	uint8_t tclass;
	uint8_t reversible_numpath;
	uint16_t pkey;
	uint16_t qosclass_sl;
	uint8_t mtu;
	uint8_t rate;
	uint8_t packetlifetime;
	uint8_t preference;
	uint8_t reserved[6];
};

#define IBV_PATH_RECORD_REVERSIBLE 0x80 /* of reversible_numpath */

/* Uses of a path: ibv_path_data.flags, in host order. */
/* The values as programs have always seen them. */
/* clang-format off */
#define IBV_PATH_FLAG_GMP (1<<0)		/* general management datagrams */
#define IBV_PATH_FLAG_PRIMARY (1<<1)
#define IBV_PATH_FLAG_ALTERNATE (1<<2)
#define IBV_PATH_FLAG_OUTBOUND (1<<3)
#define IBV_PATH_FLAG_INBOUND (1<<4)
#define IBV_PATH_FLAG_INBOUND_REVERSE (1<<5)	/* inbound, by reversing this one */
#define IBV_PATH_FLAG_BIDIRECTIONAL (IBV_PATH_FLAG_OUTBOUND | IBV_PATH_FLAG_INBOUND_REVERSE)
/* clang-format on */

/* A path and its uses: the value of an option of librdmacm's rdma_set_option(). */
struct ibv_path_data {
	uint32_t flags;
	uint32_t reserved;
	struct ibv_path_record path;
};

/* A port's membership in a multicast group. join_state is a bit mask: 1 full member, 2 non-member,
 * 4 send-only member. */
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

/* A service that a port offers. id is in network order. lease is in seconds; 0xffffffff:
 * unlimited. */
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
