/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What programs write to rdma_cm, and what they get: commands behind their header, and responses.
 * ABI 4. The mainline face has all of them, the ofed face those below CM_QUERY.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_ABI_H
#define SOFTHCA_KERNEL_RDMACM_ABI_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum cm_number {
	CM_CREATE_ID,
	CM_DESTROY_ID,
	CM_BIND_IP,
	CM_RESOLVE_IP,
	CM_RESOLVE_ROUTE,
	CM_QUERY_ROUTE,
	CM_CONNECT,
	CM_LISTEN,
	CM_ACCEPT,
	CM_REJECT,
	CM_DISCONNECT,
	CM_INIT_QP_ATTR,
	CM_GET_EVENT,
	CM_GET_OPTION,
	CM_SET_OPTION,
	CM_NOTIFY,
	CM_JOIN_IP_MCAST,
	CM_LEAVE_MCAST,
	CM_MIGRATE_ID,
	CM_QUERY,
	CM_BIND,
	CM_RESOLVE_ADDR,
	CM_JOIN_MCAST,
	CM_NUMBERS
};
#define CM_NUMBERS_OFED (CM_MIGRATE_ID + 1)

enum cm_event_type {
	CM_EV_ADDR_RESOLVED,
	CM_EV_ADDR_ERROR,
	CM_EV_ROUTE_RESOLVED,
	CM_EV_ROUTE_ERROR,
	CM_EV_CONNECT_REQUEST,
	CM_EV_CONNECT_RESPONSE,
	CM_EV_CONNECT_ERROR,
	CM_EV_UNREACHABLE,
	CM_EV_REJECTED,
	CM_EV_ESTABLISHED,
	CM_EV_DISCONNECTED,
	CM_EV_DEVICE_REMOVAL,
	CM_EV_MULTICAST_JOIN,
	CM_EV_MULTICAST_ERROR,
	CM_EV_ADDR_CHANGE,
	CM_EV_TIMEWAIT_EXIT,
	CM_EV_TYPES
};

#define CM_PS_SDP   0x0001
#define CM_PS_IPOIB 0x0002
#define CM_PS_TCP   0x0106
#define CM_PS_UDP   0x0111
#define CM_PS_IB    0x013f

#define CM_QPT_RC      2
#define CM_QPT_UC      3
#define CM_QPT_UD      4
#define CM_QPT_XRC_INI 9
#define CM_QPT_XRC_TGT 10

#define CM_AF_IB	  27
#define CM_PRIVATE	  256
#define CM_UDP_QKEY	  0x01234567u
#define CM_IPOIB_QKEY	  0x0b1bu
#define CM_QUERY_ADDRESS  0
#define CM_QUERY_PATH	  1
#define CM_QUERY_GID	  2
#define CM_LEVEL_ID	  0
#define CM_LEVEL_IB	  1
#define CM_ID_TOS	  0
#define CM_ID_REUSEADDR	  1
#define CM_ID_AFONLY	  2
#define CM_ID_ACK_TIMEOUT 3
#define CM_IB_PATH	  1
#define CM_PATH_FLAGS	  0x2b /* GMP, primary, bidirectional */

struct cm_hdr {
	uint32_t number;
	uint16_t in, out;
};
struct cm_sockaddr_ib {
	uint16_t family;
	uint16_t pkey; /* big-endian, as the rest */
	uint32_t flowinfo;
	uint8_t gid[16];
	uint64_t sid, sid_mask;
	uint64_t scope_id;
};
union cm_sockaddr {
	uint16_t family;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct cm_sockaddr_ib ib;
	uint8_t bytes[128];
};

struct cm_create_id {
	uint64_t uid, response;
	uint16_t ps;
	uint8_t qp_type, reserved[5];
};
struct cm_number_resp { /* an id's, or how many events were reported */
	uint32_t value;
};
struct cm_of_id { /* DESTROY_ID, LEAVE_MCAST; option: QUERY_ROUTE, QUERY; state: INIT_QP_ATTR; fd: MIGRATE_ID */
	uint64_t response;
	uint32_t id, value;
};
struct cm_bind_ip {
	uint64_t response;
	struct sockaddr_in6 addr;
	uint32_t id;
};
struct cm_bind {
	uint32_t id;
	uint16_t addr_size, reserved;
	union cm_sockaddr addr;
} __attribute__((packed, aligned(4)));
struct cm_resolve_ip {
	struct sockaddr_in6 src, dst;
	uint32_t id, timeout_ms;
};
struct cm_resolve_addr {
	uint32_t id, timeout_ms;
	uint16_t src_size, dst_size;
	uint32_t reserved;
	union cm_sockaddr src, dst;
};
struct cm_two { /* RESOLVE_ROUTE, LISTEN, NOTIFY */
	uint32_t id, value;
};
struct cm_user_path {
	uint8_t dgid[16], sgid[16];
	uint16_t dlid, slid; /* big-endian */
	uint32_t raw_traffic, flow_label, reversible, mtu;
	uint16_t pkey; /* big-endian */
	uint8_t hop_limit, traffic_class, numb_path, sl, mtu_selector, rate_selector, rate;
	uint8_t life_selector, life, preference;
};
struct cm_query_route_resp {
	uint64_t node_guid; /* big-endian */
	struct cm_user_path path[2];
	struct sockaddr_in6 src, dst;
	uint32_t num_paths;
	uint8_t port, reserved[3];
	uint32_t ibdev_index, reserved1;
};
struct cm_query_addr_resp {
	uint64_t node_guid;
	uint8_t port, reserved;
	uint16_t pkey; /* big-endian */
	uint16_t src_size, dst_size;
	union cm_sockaddr src, dst;
	uint32_t ibdev_index, reserved1;
} __attribute__((packed, aligned(8)));
struct cm_path_record { /* of the subnet administrator, big-endian */
	uint64_t service_id;
	uint8_t dgid[16], sgid[16];
	uint16_t dlid, slid;
	uint32_t flowlabel_hoplimit;
	uint8_t tclass, reversible_numpath;
	uint16_t pkey, qosclass_sl;
	uint8_t mtu, rate, life, preference, reserved[6];
};
struct cm_path_data {
	uint32_t flags, reserved;
	struct cm_path_record record;
};
struct cm_query_path_resp {
	uint32_t num_paths, reserved;
	struct cm_path_data path[1];
};
struct cm_conn_param {
	uint32_t qp_num, qkey;
	uint8_t data[CM_PRIVATE];
	uint8_t len, srq, responder_resources, initiator_depth, flow_control, retry_count,
		rnr_retry_count, valid;
};
struct cm_ah_attr {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t sgid_index, hop_limit, traffic_class, reserved;
	uint16_t dlid;
	uint8_t sl, src_path_bits, static_rate, is_global, port, reserved2;
};
struct cm_ud_param {
	uint32_t qp_num, qkey;
	struct cm_ah_attr ah;
	uint8_t data[CM_PRIVATE];
	uint8_t len, reserved[7];
};
struct cm_ece {
	uint32_t vendor_id, attr_mod;
};
struct cm_connect { /* without ece from older programs */
	struct cm_conn_param param;
	uint32_t id, reserved;
	struct cm_ece ece;
};
struct cm_accept {
	uint64_t uid;
	struct cm_conn_param param;
	uint32_t id, reserved;
	struct cm_ece ece;
};
struct cm_reject {
	uint32_t id;
	uint8_t len, reason, reserved[2];
	uint8_t data[CM_PRIVATE];
};
struct cm_qp_attr {
	uint32_t mask, qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn,
		dest_qp_num, access_flags;
	struct cm_ah_attr ah, alt_ah;
	uint32_t caps[5];
	uint16_t pkey_index, alt_pkey_index;
	uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer,
		port, timeout, retry_cnt, rnr_retry, alt_port, alt_timeout, reserved[5];
};
struct cm_event_resp {
	uint64_t uid;
	uint32_t id, event;
	int32_t status;
	union {
		struct cm_conn_param conn;
		struct cm_ud_param ud;
	} param;
	uint32_t reserved;
	struct cm_ece ece;
};
struct cm_set_option {
	uint64_t optval;
	uint32_t id, level, name, len;
};
struct cm_join_ip_mcast {
	uint64_t response, uid;
	struct sockaddr_in6 addr;
	uint32_t id;
};
struct cm_join_mcast {
	uint64_t response, uid;
	uint32_t id;
	uint16_t addr_size, flags;
	union cm_sockaddr addr;
};

#define CM_SIZE(type, size) _Static_assert(sizeof(struct type) == (size), #type)
#define CM_AT(type, field, at)                                                                     \
	_Static_assert(offsetof(struct type, field) == (at), #type "." #field)
CM_SIZE(cm_hdr, 8);
CM_SIZE(cm_sockaddr_ib, 48);
_Static_assert(sizeof(union cm_sockaddr) == 128, "as sockaddr_storage");
CM_SIZE(cm_create_id, 24);
CM_SIZE(cm_of_id, 16);
CM_SIZE(cm_bind_ip, 40);
CM_AT(cm_bind_ip, id, 36);
CM_SIZE(cm_bind, 136);
CM_SIZE(cm_resolve_ip, 64);
CM_SIZE(cm_resolve_addr, 272);
CM_AT(cm_resolve_addr, dst, 144);
CM_SIZE(cm_user_path, 64);
CM_SIZE(cm_query_route_resp, 208);
CM_AT(cm_query_route_resp, num_paths, 192);
CM_SIZE(cm_query_addr_resp, 280);
CM_AT(cm_query_addr_resp, dst, 144);
CM_SIZE(cm_path_record, 64);
CM_SIZE(cm_query_path_resp, 80);
CM_SIZE(cm_conn_param, 272);
CM_AT(cm_conn_param, valid, 271);
CM_SIZE(cm_ah_attr, 32);
CM_SIZE(cm_ud_param, 304);
CM_AT(cm_ud_param, len, 296);
CM_SIZE(cm_connect, 288);
CM_SIZE(cm_accept, 296);
CM_AT(cm_accept, id, 280);
CM_SIZE(cm_reject, 264);
CM_SIZE(cm_qp_attr, 144);
CM_SIZE(cm_event_resp, 336);
CM_AT(cm_event_resp, ece, 328);
CM_SIZE(cm_set_option, 24);
CM_SIZE(cm_join_ip_mcast, 48);
CM_AT(cm_join_ip_mcast, id, 44);
CM_SIZE(cm_join_mcast, 152);
CM_AT(cm_join_mcast, addr, 24);

#endif
