// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The commands of /dev/infiniband/rdma_cm, versions 3 and 4. A program writes one command by one
 * write(): number, bytes of the body, bytes of room at `response`, then the body. Numbers are in
 * host order unless a member says otherwise.
 */

#ifndef RDMA_RDMA_CMA_ABI_H
#define RDMA_RDMA_CMA_ABI_H

#include <linux/types.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <infiniband/kern-abi.h>
#include <infiniband/sa-kern-abi.h>
#include <infiniband/sa.h>

/* The versions that this library speaks. */
#define RDMA_USER_CM_MIN_ABI_VERSION 3
#define RDMA_USER_CM_MAX_ABI_VERSION 4

/* The most private data that a command takes or an event brings, in bytes. */
#define RDMA_MAX_PRIVATE_DATA 256

/* The commands. From QUERY on, an OFED kernel has none of them. */
enum {
	UCMA_CMD_CREATE_ID,
	UCMA_CMD_DESTROY_ID,
	UCMA_CMD_BIND_IP,
	UCMA_CMD_RESOLVE_IP,
	UCMA_CMD_RESOLVE_ROUTE,
	UCMA_CMD_QUERY_ROUTE,
	UCMA_CMD_CONNECT,
	UCMA_CMD_LISTEN,
	UCMA_CMD_ACCEPT,
	UCMA_CMD_REJECT,
	UCMA_CMD_DISCONNECT,
	UCMA_CMD_INIT_QP_ATTR,
	UCMA_CMD_GET_EVENT,
	UCMA_CMD_GET_OPTION, /* no kernel has it */
	UCMA_CMD_SET_OPTION,
	UCMA_CMD_NOTIFY,
	UCMA_CMD_JOIN_IP_MCAST,
	UCMA_CMD_LEAVE_MCAST,
	UCMA_CMD_MIGRATE_ID,
	UCMA_CMD_QUERY,
	UCMA_CMD_BIND,
	UCMA_CMD_RESOLVE_ADDR,
	UCMA_CMD_JOIN_MCAST
};

/* The head of every command. */
struct ucma_abi_cmd_hdr {
	__u32 cmd;
	__u16 in;
	__u16 out;
};

/* CREATE_ID. The events of the id bring uid. qp_type is the kernel's number. */
struct ucma_abi_create_id {
	struct ucma_abi_cmd_hdr hdr;
	__u64 uid;
	__u64 response;
	__u16 ps;
	__u8 qp_type;
	__u8 reserved[5];
};

/* The number of a new id or group. */
struct ucma_abi_create_id_resp {
	__u32 id;
};

/* DESTROY_ID and LEAVE_MCAST. */
struct ucma_abi_destroy_id {
	struct ucma_abi_cmd_hdr hdr;
	__u64 response;
	__u32 id;
	__u32 reserved;
};

/* How many events of the id or group have been read. */
struct ucma_abi_destroy_id_resp {
	__u32 events_reported;
};

/* BIND_IP. An IPv4 address stands in addr as struct sockaddr_in. */
struct ucma_abi_bind_ip {
	struct ucma_abi_cmd_hdr hdr;
	__u64 response; /* unused */
	struct sockaddr_in6 addr;
	__u32 id;
};

/* BIND. */
struct ucma_abi_bind {
	struct ucma_abi_cmd_hdr hdr;
	__u32 id;
	__u16 addr_size;
	__u16 reserved;
	struct sockaddr_storage addr;
};

/* RESOLVE_IP. A source of family 0 leaves the choice to the kernel. */
struct ucma_abi_resolve_ip {
	struct ucma_abi_cmd_hdr hdr;
	struct sockaddr_in6 src_addr;
	struct sockaddr_in6 dst_addr;
	__u32 id;
	__u32 timeout_ms;
};

/* RESOLVE_ADDR. src_size 0: the kernel chooses the source. */
struct ucma_abi_resolve_addr {
	struct ucma_abi_cmd_hdr hdr;
	__u32 id;
	__u32 timeout_ms;
	__u16 src_size;
	__u16 dst_size;
	__u32 reserved;
	struct sockaddr_storage src_addr;
	struct sockaddr_storage dst_addr;
};

/* RESOLVE_ROUTE. */
struct ucma_abi_resolve_route {
	struct ucma_abi_cmd_hdr hdr;
	__u32 id;
	__u32 timeout_ms;
};

/* What QUERY is about. */
enum { UCMA_QUERY_ADDR, UCMA_QUERY_PATH, UCMA_QUERY_GID };

/* QUERY_ROUTE, whose option is 0, and QUERY. */
struct ucma_abi_query {
	struct ucma_abi_cmd_hdr hdr;
	__u64 response;
	__u32 id;
	__u32 option;
};

/* The answer to QUERY_ROUTE. Without a device all but the addresses are 0. Later kernels have 8
 * bytes more. node_guid is in network order. */
struct ucma_abi_query_route_resp {
	__u64 node_guid;
	struct ibv_kern_path_rec ib_route[2];
	struct sockaddr_in6 src_addr;
	struct sockaddr_in6 dst_addr;
	__u32 num_paths;
	__u8 port_num;
	__u8 reserved[3];
};

/* The answer to QUERY about addresses or GIDs; the latter are struct sockaddr_ib. */
struct ucma_abi_query_addr_resp {
	__u64 node_guid;
	__u8 port_num;
	__u8 reserved;
	__u16 pkey; /* network order */
	__u16 src_size;
	__u16 dst_size;
	struct sockaddr_storage src_addr;
	struct sockaddr_storage dst_addr;
};

/* The answer to QUERY about paths. */
struct ucma_abi_query_path_resp {
	__u32 num_paths;
	__u32 reserved;
	struct ibv_path_data path_data[0];
};

/* The parameters of a connection. valid 0 in ACCEPT: the active side says that it is ready. */
struct ucma_abi_conn_param {
	__u32 qp_num;
	__u32 qkey;
	__u8 private_data[RDMA_MAX_PRIVATE_DATA];
	__u8 private_data_len;
	__u8 srq;
	__u8 responder_resources;
	__u8 initiator_depth;
	__u8 flow_control;
	__u8 retry_count;
	__u8 rnr_retry_count;
	__u8 valid;
};

/* How a datagram service or a group is reached. */
struct ucma_abi_ud_param {
	__u32 qp_num;
	__u32 qkey;
	struct ibv_kern_ah_attr ah_attr;
	__u8 private_data[RDMA_MAX_PRIVATE_DATA];
	__u8 private_data_len;
	__u8 reserved[7];
};

/* CONNECT. */
struct ucma_abi_connect {
	struct ucma_abi_cmd_hdr hdr;
	struct ucma_abi_conn_param conn_param;
	__u32 id;
	__u32 reserved;
};

/* LISTEN. */
struct ucma_abi_listen {
	struct ucma_abi_cmd_hdr hdr;
	__u32 id;
	__u32 backlog;
};

/* ACCEPT. From then on events of the id bring uid. */
struct ucma_abi_accept {
	struct ucma_abi_cmd_hdr hdr;
	__u64 uid;
	struct ucma_abi_conn_param conn_param;
	__u32 id;
	__u32 reserved;
};

/* REJECT. reason 0: the consumer rejects. */
struct ucma_abi_reject {
	struct ucma_abi_cmd_hdr hdr;
	__u32 id;
	__u8 private_data_len;
	__u8 reason;
	__u8 reserved[2];
	__u8 private_data[RDMA_MAX_PRIVATE_DATA];
};

/* DISCONNECT. */
struct ucma_abi_disconnect {
	struct ucma_abi_cmd_hdr hdr;
	__u32 id;
};

/* INIT_QP_ATTR. The answer is struct ibv_kern_qp_attr. */
struct ucma_abi_init_qp_attr {
	struct ucma_abi_cmd_hdr hdr;
	__u64 response;
	__u32 id;
	__u32 qp_state;
};

/* GET_EVENT. */
struct ucma_abi_get_event {
	struct ucma_abi_cmd_hdr hdr;
	__u64 response;
};

/* An event. id is the number of the id it is about, of CONNECT_REQUEST that of the new one. uid is
 * that of the id, of CONNECT_REQUEST the listener's; 0: it has not been accepted yet. */
struct ucma_abi_event_resp {
	__u64 uid;
	__u32 id;
	__u32 event;
	__u32 status;
	union {
		struct ucma_abi_conn_param conn;
		struct ucma_abi_ud_param ud;
	} param;
	__u32 reserved;
};

/* SET_OPTION. */
struct ucma_abi_set_option {
	struct ucma_abi_cmd_hdr hdr;
	__u64 optval;
	__u32 id;
	__u32 level;
	__u32 optname;
	__u32 optlen;
};

/* NOTIFY. event is one of enum ibv_event_type. */
struct ucma_abi_notify {
	struct ucma_abi_cmd_hdr hdr;
	__u32 id;
	__u32 event;
};

/* JOIN_IP_MCAST. The answer is struct ucma_abi_create_id_resp. */
struct ucma_abi_join_ip_mcast {
	struct ucma_abi_cmd_hdr hdr;
	__u64 response;
	__u64 uid;
	struct sockaddr_in6 addr;
	__u32 id;
};

/* JOIN_MCAST. join_flags 0: a full member. */
struct ucma_abi_join_mcast {
	struct ucma_abi_cmd_hdr hdr;
	__u64 response;
	__u64 uid;
	__u32 id;
	__u16 addr_size;
	__u16 join_flags;
	struct sockaddr_storage addr;
};

/* MIGRATE_ID, to be written to the new channel. fd is the old one. The answer is struct
 * ucma_abi_destroy_id_resp. */
struct ucma_abi_migrate_id {
	struct ucma_abi_cmd_hdr hdr;
	__u64 response;
	__u32 id;
	__u32 fd;
};

#endif /* RDMA_RDMA_CMA_ABI_H */
