// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The uverbs command channel: numbers and layouts of all that is written to and read from the
 * device files. Layouts are the same for 32-bit and 64-bit programs, so every 64-bit field is
 * aligned. */

#ifndef KERN_ABI_H
#define KERN_ABI_H

#include <linux/types.h>

/* ISO C has no arrays of length 0, with which many of the structures end. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"

/*
 * A command is one write() of
 *
 *	OFFSET	SIZE	MEANING
 *	0	4	command number
 *	4	2	in_words: bytes written / 4
 *	6	2	out_words: bytes of room for the response / 4; 0: no response
 *	8	8	response: address of that room, in commands that have a response
 *
 * then the rest of the command's struct, then what the provider adds (driver_data). The kernel has
 * written the response when write() returns; the provider's part of it follows the struct.
 */

/* Versions of the ABI that the library speaks. */
#define IB_USER_VERBS_MIN_ABI_VERSION 1
#define IB_USER_VERBS_MAX_ABI_VERSION 6

/* Command numbers. */
enum {
	IB_USER_VERBS_CMD_GET_CONTEXT,
	IB_USER_VERBS_CMD_QUERY_DEVICE,
	IB_USER_VERBS_CMD_QUERY_PORT,
	IB_USER_VERBS_CMD_ALLOC_PD,
	IB_USER_VERBS_CMD_DEALLOC_PD,
	IB_USER_VERBS_CMD_CREATE_AH,
	IB_USER_VERBS_CMD_MODIFY_AH,
	IB_USER_VERBS_CMD_QUERY_AH,
	IB_USER_VERBS_CMD_DESTROY_AH,
	IB_USER_VERBS_CMD_REG_MR,
	IB_USER_VERBS_CMD_REG_SMR,
	IB_USER_VERBS_CMD_REREG_MR,
	IB_USER_VERBS_CMD_QUERY_MR,
	IB_USER_VERBS_CMD_DEREG_MR,
	IB_USER_VERBS_CMD_ALLOC_MW,
	IB_USER_VERBS_CMD_BIND_MW,
	IB_USER_VERBS_CMD_DEALLOC_MW,
	IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL,
	IB_USER_VERBS_CMD_CREATE_CQ,
	IB_USER_VERBS_CMD_RESIZE_CQ,
	IB_USER_VERBS_CMD_DESTROY_CQ,
	IB_USER_VERBS_CMD_POLL_CQ,
	IB_USER_VERBS_CMD_PEEK_CQ,
	IB_USER_VERBS_CMD_REQ_NOTIFY_CQ,
	IB_USER_VERBS_CMD_CREATE_QP,
	IB_USER_VERBS_CMD_QUERY_QP,
	IB_USER_VERBS_CMD_MODIFY_QP,
	IB_USER_VERBS_CMD_DESTROY_QP,
	IB_USER_VERBS_CMD_POST_SEND,
	IB_USER_VERBS_CMD_POST_RECV,
	IB_USER_VERBS_CMD_ATTACH_MCAST,
	IB_USER_VERBS_CMD_DETACH_MCAST,
	IB_USER_VERBS_CMD_CREATE_SRQ,
	IB_USER_VERBS_CMD_MODIFY_SRQ,
	IB_USER_VERBS_CMD_QUERY_SRQ,
	IB_USER_VERBS_CMD_DESTROY_SRQ,
	IB_USER_VERBS_CMD_POST_SRQ_RECV,

	/* The XRC commands of OFED kernels. Kernels from 3.3 on use 37-40 for other commands. */
	IB_USER_VERBS_CMD_CREATE_XRC_SRQ = 37,
	IB_USER_VERBS_CMD_OPEN_XRC_DOMAIN,
	IB_USER_VERBS_CMD_CLOSE_XRC_DOMAIN,
	IB_USER_VERBS_CMD_CREATE_XRC_RCV_QP,
	IB_USER_VERBS_CMD_MODIFY_XRC_RCV_QP,
	IB_USER_VERBS_CMD_QUERY_XRC_RCV_QP,
	IB_USER_VERBS_CMD_REG_XRC_RCV_QP,
	IB_USER_VERBS_CMD_UNREG_XRC_RCV_QP
};

/* The numbers in kernel ABI 1 and 2; -1: there is no such command. */
enum {
	IB_USER_VERBS_CMD_QUERY_PARAMS_V2 = 0,
	IB_USER_VERBS_CMD_GET_CONTEXT_V2,
	IB_USER_VERBS_CMD_QUERY_DEVICE_V2,
	IB_USER_VERBS_CMD_QUERY_PORT_V2,
	IB_USER_VERBS_CMD_QUERY_GID_V2,
	IB_USER_VERBS_CMD_QUERY_PKEY_V2,
	IB_USER_VERBS_CMD_ALLOC_PD_V2,
	IB_USER_VERBS_CMD_DEALLOC_PD_V2,
	IB_USER_VERBS_CMD_CREATE_AH_V2,
	IB_USER_VERBS_CMD_MODIFY_AH_V2,
	IB_USER_VERBS_CMD_QUERY_AH_V2,
	IB_USER_VERBS_CMD_DESTROY_AH_V2,
	IB_USER_VERBS_CMD_REG_MR_V2,
	IB_USER_VERBS_CMD_REG_SMR_V2,
	IB_USER_VERBS_CMD_REREG_MR_V2,
	IB_USER_VERBS_CMD_QUERY_MR_V2,
	IB_USER_VERBS_CMD_DEREG_MR_V2,
	IB_USER_VERBS_CMD_ALLOC_MW_V2,
	IB_USER_VERBS_CMD_BIND_MW_V2,
	IB_USER_VERBS_CMD_DEALLOC_MW_V2,
	IB_USER_VERBS_CMD_CREATE_CQ_V2,
	IB_USER_VERBS_CMD_RESIZE_CQ_V2,
	IB_USER_VERBS_CMD_DESTROY_CQ_V2,
	IB_USER_VERBS_CMD_POLL_CQ_V2,
	IB_USER_VERBS_CMD_PEEK_CQ_V2,
	IB_USER_VERBS_CMD_REQ_NOTIFY_CQ_V2,
	IB_USER_VERBS_CMD_CREATE_QP_V2,
	IB_USER_VERBS_CMD_QUERY_QP_V2,
	IB_USER_VERBS_CMD_MODIFY_QP_V2,
	IB_USER_VERBS_CMD_DESTROY_QP_V2,
	IB_USER_VERBS_CMD_POST_SEND_V2,
	IB_USER_VERBS_CMD_POST_RECV_V2,
	IB_USER_VERBS_CMD_ATTACH_MCAST_V2,
	IB_USER_VERBS_CMD_DETACH_MCAST_V2,
	IB_USER_VERBS_CMD_CREATE_SRQ_V2,
	IB_USER_VERBS_CMD_MODIFY_SRQ_V2,
	IB_USER_VERBS_CMD_QUERY_SRQ_V2,
	IB_USER_VERBS_CMD_DESTROY_SRQ_V2,
	IB_USER_VERBS_CMD_POST_SRQ_RECV_V2,
	IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL_V2 = -1,
	IB_USER_VERBS_CMD_CREATE_XRC_SRQ_V2 = -1,
	IB_USER_VERBS_CMD_OPEN_XRC_DOMAIN_V2 = -1,
	IB_USER_VERBS_CMD_CLOSE_XRC_DOMAIN_V2 = -1,
	IB_USER_VERBS_CMD_CREATE_XRC_RCV_QP_V2 = -1,
	IB_USER_VERBS_CMD_MODIFY_XRC_RCV_QP_V2 = -1,
	IB_USER_VERBS_CMD_QUERY_XRC_RCV_QP_V2 = -1,
	IB_USER_VERBS_CMD_REG_XRC_RCV_QP_V2 = -1,
	IB_USER_VERBS_CMD_UNREG_XRC_RCV_QP_V2 = -1
};

/* Kernel ABI 1 and 2: asks how many event descriptors a context has. */
struct ibv_query_params {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
};

/* num_cq_events: event descriptors per context, which is 1. */
struct ibv_query_params_resp {
	__u32 num_cq_events;
};

/* Creates the context of this file. It must be the first command on the file, and comes once. */
struct ibv_get_context {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u64 driver_data[0];
};

/* async_fd: a new descriptor, from which to read struct ibv_kern_async_event. */
struct ibv_get_context_resp {
	__u32 async_fd;
	__u32 num_comp_vectors;
};

/* Kernel ABI 1 and 2. The kernel writes the one event descriptor to the __u32 at address
 * cq_fd_tab. */
struct ibv_get_context_v2 {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u64 cq_fd_tab;
	__u64 driver_data[0];
};

/* Asks for the identity and limits of the device. */
struct ibv_query_device {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u64 driver_data[0];
};

/* As struct ibv_device_attr of verbs.h, GUIDs in network order. fw_ver is a number, whose format
 * the provider knows. */
struct ibv_query_device_resp {
	__u64 fw_ver;
	__u64 node_guid;
	__u64 sys_image_guid;
	__u64 max_mr_size;
	__u64 page_size_cap;
	__u32 vendor_id;
	__u32 vendor_part_id;
	__u32 hw_ver;
	__u32 max_qp;
	__u32 max_qp_wr;
	__u32 device_cap_flags;
	__u32 max_sge;
	__u32 max_sge_rd;
	__u32 max_cq;
	__u32 max_cqe;
	__u32 max_mr;
	__u32 max_pd;
	__u32 max_qp_rd_atom;
	__u32 max_ee_rd_atom;
	__u32 max_res_rd_atom;
	__u32 max_qp_init_rd_atom;
	__u32 max_ee_init_rd_atom;
	__u32 atomic_cap;
	__u32 max_ee;
	__u32 max_rdd;
	__u32 max_mw;
	__u32 max_raw_ipv6_qp;
	__u32 max_raw_ethy_qp;
	__u32 max_mcast_grp;
	__u32 max_mcast_qp_attach;
	__u32 max_total_mcast_qp_attach;
	__u32 max_ah;
	__u32 max_fmr;
	__u32 max_map_per_fmr;
	__u32 max_srq;
	__u32 max_srq_wr;
	__u32 max_srq_sge;
	__u16 max_pkeys;
	__u8 local_ca_ack_delay;
	__u8 phys_port_cnt;
	__u8 reserved[4];
};

/* Asks for the state of a port. port_num counts from 1. */
struct ibv_query_port {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u8 port_num;
	__u8 reserved[7];
	__u64 driver_data[0];
};

/* As struct ibv_port_attr of verbs.h. Kernels that do not report link_layer leave it 0. */
struct ibv_query_port_resp {
	__u32 port_cap_flags;
	__u32 max_msg_sz;
	__u32 bad_pkey_cntr;
	__u32 qkey_viol_cntr;
	__u32 gid_tbl_len;
	__u16 pkey_tbl_len;
	__u16 lid;
	__u16 sm_lid;
	__u8 state;
	__u8 max_mtu;
	__u8 active_mtu;
	__u8 lmc;
	__u8 max_vl_num;
	__u8 sm_sl;
	__u8 subnet_timeout;
	__u8 init_type_reply;
	__u8 active_width;
	__u8 active_speed;
	__u8 phys_state;
	__u8 link_layer;
	__u8 reserved[2];
};

/* Creates a protection domain. */
struct ibv_alloc_pd {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u64 driver_data[0];
};

/* Handles, here and below, are valid in this context only. */
struct ibv_alloc_pd_resp {
	__u32 pd_handle;
};

/* EBUSY: an object in the domain exists. */
struct ibv_dealloc_pd {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u32 pd_handle;
};

/* Pins length bytes from address start on. hca_va is the address that the device uses for start;
 * both must have the same offset in their page. access_flags: enum ibv_access_flags. */
struct ibv_reg_mr {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u64 start;
	__u64 length;
	__u64 hca_va;
	__u32 pd_handle;
	__u32 access_flags;
	__u64 driver_data[0];
};

/* The keys are in host order. */
struct ibv_reg_mr_resp {
	__u32 mr_handle;
	__u32 lkey;
	__u32 rkey;
};

/* Unpins the pages. */
struct ibv_dereg_mr {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u32 mr_handle;
};

/* Creates a completion channel. */
struct ibv_create_comp_channel {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
};

/* fd: a new descriptor, from which to read struct ibv_comp_event. */
struct ibv_create_comp_channel_resp {
	__u32 fd;
};

/* Creates a CQ. comp_channel: the descriptor of a completion channel, or -1. */
struct ibv_create_cq {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u64 user_handle;
	__u32 cqe;
	__u32 comp_vector;
	__s32 comp_channel;
	__u32 reserved;
	__u64 driver_data[0];
};

/* cqe: the granted number of CQEs, at least the requested one. */
struct ibv_create_cq_resp {
	__u32 cq_handle;
	__u32 cqe;
};

/* Kernel ABI 1 and 2: no completion vector, no choice of channel. */
struct ibv_create_cq_v2 {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u64 user_handle;
	__u32 cqe;
	__u32 event_handler;
	__u64 driver_data[0];
};

/* cqe: the requested number of CQEs. EINVAL: more CQEs than that wait. */
struct ibv_resize_cq {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u32 cq_handle;
	__u32 cqe;
	__u64 driver_data[0];
};

/* cqe: the granted number of CQEs. */
struct ibv_resize_cq_resp {
	__u32 cqe;
	__u32 reserved;
	__u64 driver_data[0];
};

/* Takes up to ne completions from the CQ. For devices whose CQs the kernel keeps. */
struct ibv_poll_cq {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u32 cq_handle;
	__u32 ne;
};

/* As struct ibv_wc of verbs.h. */
struct ibv_kern_wc {
	__u64 wr_id;
	__u32 status;
	__u32 opcode;
	__u32 vendor_err;
	__u32 byte_len;
	__u32 imm_data;
	__u32 qp_num;
	__u32 src_qp;
	__u32 wc_flags;
	__u16 pkey_index;
	__u16 slid;
	__u8 sl;
	__u8 dlid_path_bits;
	__u8 port_num;
	__u8 reserved;
};

/* count completions follow this structure. */
struct ibv_poll_cq_resp {
	__u32 count;
	__u32 reserved;
	struct ibv_kern_wc wc[0];
};

/* Arms the CQ: solicited is 1 for solicited completions only, 0 for all. For devices whose CQs the
 * kernel keeps. */
struct ibv_req_notify_cq {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u32 cq_handle;
	__u32 solicited;
};

/* The kernel does not wait for acknowledgements; the response has the number of events to wait
 * for. */
struct ibv_destroy_cq {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u32 cq_handle;
	__u32 reserved;
};

/* The number of events about the CQ that have ever been read from the descriptors. */
struct ibv_destroy_cq_resp {
	__u32 comp_events_reported;
	__u32 async_events_reported;
};

/* Kernel ABI 1: no response. */
struct ibv_destroy_cq_v1 {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u32 cq_handle;
};

/* As struct ibv_global_route of verbs.h. */
struct ibv_kern_global_route {
	__u8 dgid[16];
	__u32 flow_label;
	__u8 sgid_index;
	__u8 hop_limit;
	__u8 traffic_class;
	__u8 reserved;
};

/* As struct ibv_ah_attr of verbs.h. */
struct ibv_kern_ah_attr {
	struct ibv_kern_global_route grh;
	__u16 dlid;
	__u8 sl;
	__u8 src_path_bits;
	__u8 static_rate;
	__u8 is_global;
	__u8 port_num;
	__u8 reserved;
};

/* QP attributes that the kernel passes to connection managers. */
struct ibv_kern_qp_attr {
	__u32 qp_attr_mask;
	__u32 qp_state;
	__u32 cur_qp_state;
	__u32 path_mtu;
	__u32 path_mig_state;
	__u32 qkey;
	__u32 rq_psn;
	__u32 sq_psn;
	__u32 dest_qp_num;
	__u32 qp_access_flags;
	struct ibv_kern_ah_attr ah_attr;
	struct ibv_kern_ah_attr alt_ah_attr;
	__u32 max_send_wr;
	__u32 max_recv_wr;
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 max_inline_data;
	__u16 pkey_index;
	__u16 alt_pkey_index;
	__u8 en_sqd_async_notify;
	__u8 sq_draining;
	__u8 max_rd_atomic;
	__u8 max_dest_rd_atomic;
	__u8 min_rnr_timer;
	__u8 port_num;
	__u8 timeout;
	__u8 retry_cnt;
	__u8 rnr_retry;
	__u8 alt_port_num;
	__u8 alt_timeout;
	__u8 reserved[5];
};

/* Creates a QP. For XRC, srq_handle is the handle of the domain and is_srq is 0. */
struct ibv_create_qp {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u64 user_handle;
	__u32 pd_handle;
	__u32 send_cq_handle;
	__u32 recv_cq_handle;
	__u32 srq_handle;
	__u32 max_send_wr;
	__u32 max_recv_wr;
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 max_inline_data;
	__u8 sq_sig_all;
	__u8 qp_type;
	__u8 is_srq;
	__u8 reserved;
	__u64 driver_data[0];
};

/* The granted sizes, and the QP number (24 bits). */
struct ibv_create_qp_resp {
	__u32 qp_handle;
	__u32 qpn;
	__u32 max_send_wr;
	__u32 max_recv_wr;
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 max_inline_data;
	__u32 reserved;
};

/* Kernel ABI up to 3. */
struct ibv_create_qp_resp_v3 {
	__u32 qp_handle;
	__u32 qpn;
};

/* Kernel ABI 4. */
struct ibv_create_qp_resp_v4 {
	__u32 qp_handle;
	__u32 qpn;
	__u32 max_send_wr;
	__u32 max_recv_wr;
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 max_inline_data;
};

/* A path of struct ibv_qp_attr: ah_attr with its grh. */
struct ibv_qp_dest {
	__u8 dgid[16];
	__u32 flow_label;
	__u16 dlid;
	__u16 reserved;
	__u8 sgid_index;
	__u8 hop_limit;
	__u8 traffic_class;
	__u8 sl;
	__u8 src_path_bits;
	__u8 static_rate;
	__u8 is_global;
	__u8 port_num;
};

/* attr_mask: the requested attributes, of enum ibv_qp_attr_mask. */
struct ibv_query_qp {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u32 qp_handle;
	__u32 attr_mask;
	__u64 driver_data[0];
};

/* As struct ibv_qp_attr of verbs.h. */
struct ibv_query_qp_resp {
	struct ibv_qp_dest dest;
	struct ibv_qp_dest alt_dest;
	__u32 max_send_wr;
	__u32 max_recv_wr;
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 max_inline_data;
	__u32 qkey;
	__u32 rq_psn;
	__u32 sq_psn;
	__u32 dest_qp_num;
	__u32 qp_access_flags;
	__u16 pkey_index;
	__u16 alt_pkey_index;
	__u8 qp_state;
	__u8 cur_qp_state;
	__u8 path_mtu;
	__u8 path_mig_state;
	__u8 sq_draining;
	__u8 max_rd_atomic;
	__u8 max_dest_rd_atomic;
	__u8 min_rnr_timer;
	__u8 port_num;
	__u8 timeout;
	__u8 retry_cnt;
	__u8 rnr_retry;
	__u8 alt_port_num;
	__u8 alt_timeout;
	__u8 sq_sig_all;
	__u8 reserved[5];
	__u64 driver_data[0];
};

/* attr_mask: the attributes to set, of enum ibv_qp_attr_mask. No response. */
struct ibv_modify_qp {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	struct ibv_qp_dest dest;
	struct ibv_qp_dest alt_dest;
	__u32 qp_handle;
	__u32 attr_mask;
	__u32 qkey;
	__u32 rq_psn;
	__u32 sq_psn;
	__u32 dest_qp_num;
	__u32 qp_access_flags;
	__u16 pkey_index;
	__u16 alt_pkey_index;
	__u8 qp_state;
	__u8 cur_qp_state;
	__u8 path_mtu;
	__u8 path_mig_state;
	__u8 en_sqd_async_notify;
	__u8 max_rd_atomic;
	__u8 max_dest_rd_atomic;
	__u8 min_rnr_timer;
	__u8 port_num;
	__u8 timeout;
	__u8 retry_cnt;
	__u8 rnr_retry;
	__u8 alt_port_num;
	__u8 alt_timeout;
	__u8 reserved[2];
	__u64 driver_data[0];
};

/* EBUSY: the QP is in a multicast group. */
struct ibv_destroy_qp {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u32 qp_handle;
	__u32 reserved;
};

/* The number of events about the QP that have ever been read. */
struct ibv_destroy_qp_resp {
	__u32 events_reported;
};

/* Kernel ABI 1: no response. */
struct ibv_destroy_qp_v1 {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u32 qp_handle;
};

/* As struct ibv_send_wr of verbs.h, but ah is a handle. */
struct ibv_kern_send_wr {
	__u64 wr_id;
	__u32 num_sge;
	__u32 opcode;
	__u32 send_flags;
	__u32 imm_data;
	union {
		struct {
			__u64 remote_addr;
			__u32 rkey;
			__u32 reserved;
		} rdma;
		struct {
			__u64 remote_addr;
			__u64 compare_add;
			__u64 swap;
			__u32 rkey;
			__u32 reserved;
		} atomic;
		struct {
			__u32 ah;
			__u32 remote_qpn;
			__u32 remote_qkey;
			__u32 reserved;
		} ud;
	} wr;
};

/* wr_count work requests follow, then the scatter/gather entries of all of them. */
struct ibv_post_send {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u32 qp_handle;
	__u32 wr_count;
	__u32 sge_count;
	__u32 wqe_size;
	struct ibv_kern_send_wr send_wr[0];
};

/* bad_wr: the first request that was not posted, counted from 1. 0: the kernel does not say. */
struct ibv_post_send_resp {
	__u32 bad_wr;
};

/* As struct ibv_recv_wr of verbs.h. */
struct ibv_kern_recv_wr {
	__u64 wr_id;
	__u32 num_sge;
	__u32 reserved;
};

/* As struct ibv_post_send. */
struct ibv_post_recv {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u32 qp_handle;
	__u32 wr_count;
	__u32 sge_count;
	__u32 wqe_size;
	struct ibv_kern_recv_wr recv_wr[0];
};

/* bad_wr as in struct ibv_post_send_resp. */
struct ibv_post_recv_resp {
	__u32 bad_wr;
};

/* As struct ibv_post_send. */
struct ibv_post_srq_recv {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u32 srq_handle;
	__u32 wr_count;
	__u32 sge_count;
	__u32 wqe_size;
	struct ibv_kern_recv_wr recv_wr[0];
};

/* bad_wr as in struct ibv_post_send_resp. */
struct ibv_post_srq_recv_resp {
	__u32 bad_wr;
};

/* For devices that need address handles in the kernel. */
struct ibv_create_ah {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u64 user_handle;
	__u32 pd_handle;
	__u32 reserved;
	struct ibv_kern_ah_attr attr;
};

/* handle: the value for ah of struct ibv_kern_send_wr. */
struct ibv_create_ah_resp {
	__u32 handle;
};

/* No response. */
struct ibv_destroy_ah {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u32 ah_handle;
};

/* The QP receives messages to the group. mlid is in host order. No response. */
struct ibv_attach_mcast {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u8 gid[16];
	__u32 qp_handle;
	__u16 mlid;
	__u16 reserved;
	__u64 driver_data[0];
};

/* The inverse. EINVAL: the QP is not in the group. */
struct ibv_detach_mcast {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u8 gid[16];
	__u32 qp_handle;
	__u16 mlid;
	__u16 reserved;
	__u64 driver_data[0];
};

/* Creates an SRQ. Events about an object carry the user_handle of the command that created it. */
struct ibv_create_srq {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u64 user_handle;
	__u32 pd_handle;
	__u32 max_wr;
	__u32 max_sge;
	__u32 srq_limit;
	__u64 driver_data[0];
};

/* The granted sizes. */
struct ibv_create_srq_resp {
	__u32 srq_handle;
	__u32 max_wr;
	__u32 max_sge;
	__u32 reserved;
};

/* Kernel ABI up to 5. */
struct ibv_create_srq_resp_v5 {
	__u32 srq_handle;
};

/* attr_mask: enum ibv_srq_attr_mask. No response. */
struct ibv_modify_srq {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u32 srq_handle;
	__u32 attr_mask;
	__u32 max_wr;
	__u32 srq_limit;
	__u64 driver_data[0];
};

/* Kernel ABI 3 only. */
struct ibv_modify_srq_v3 {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u32 srq_handle;
	__u32 attr_mask;
	__u32 max_wr;
	__u32 max_sge;
	__u32 srq_limit;
	__u32 reserved;
	__u64 driver_data[0];
};

/* Asks for the sizes and the limit. */
struct ibv_query_srq {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u32 srq_handle;
	__u32 reserved;
	__u64 driver_data[0];
};

/* srq_limit: 0 if the limit is not armed. */
struct ibv_query_srq_resp {
	__u32 max_wr;
	__u32 max_sge;
	__u32 srq_limit;
	__u32 reserved;
};

/* EBUSY: a QP uses the SRQ. */
struct ibv_destroy_srq {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u32 srq_handle;
	__u32 reserved;
};

/* The number of events about the SRQ that have ever been read. */
struct ibv_destroy_srq_resp {
	__u32 events_reported;
};

/* Kernel ABI 1: no response. */
struct ibv_destroy_srq_v1 {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u32 srq_handle;
};

/* Creates an XRC SRQ. The response is struct ibv_create_srq_resp. */
struct ibv_create_xrc_srq {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u64 user_handle;
	__u32 pd_handle;
	__u32 max_wr;
	__u32 max_sge;
	__u32 srq_limit;
	__u32 xrcd_handle;
	__u32 xrc_cq;
	__u64 driver_data[0];
};

/* Opens an XRC domain. fd 0xffffffff: a domain without a file. */
struct ibv_open_xrc_domain {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u32 fd;
	__u32 oflags;
	__u64 driver_data[0];
};

/* A handle of this context; other contexts have other handles for the same domain. */
struct ibv_open_xrc_domain_resp {
	__u32 xrcd_handle;
};

/* EBUSY: this context has objects or registrations in the domain. */
struct ibv_close_xrc_domain {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u32 xrcd_handle;
	__u32 reserved;
	__u64 driver_data[0];
};

/* The sizes are 0, as such a QP has no queues. The context is registered with the QP. */
struct ibv_create_xrc_rcv_qp {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u64 user_handle;
	__u32 xrc_domain_handle;
	__u32 max_send_wr;
	__u32 max_recv_wr;
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 max_inline_data;
	__u8 sq_sig_all;
	__u8 qp_type;
	__u8 reserved[6];
	__u64 driver_data[0];
};

/* The number by which all contexts in the domain know the QP. */
struct ibv_create_xrc_rcv_qp_resp {
	__u32 qpn;
	__u32 reserved;
};

/* As struct ibv_modify_qp. */
struct ibv_modify_xrc_rcv_qp {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u32 xrc_domain_handle;
	__u32 qp_num;
	struct ibv_qp_dest dest;
	struct ibv_qp_dest alt_dest;
	__u32 attr_mask;
	__u32 qkey;
	__u32 rq_psn;
	__u32 sq_psn;
	__u32 dest_qp_num;
	__u32 qp_access_flags;
	__u16 pkey_index;
	__u16 alt_pkey_index;
	__u8 qp_state;
	__u8 cur_qp_state;
	__u8 path_mtu;
	__u8 path_mig_state;
	__u8 en_sqd_async_notify;
	__u8 max_rd_atomic;
	__u8 max_dest_rd_atomic;
	__u8 min_rnr_timer;
	__u8 port_num;
	__u8 timeout;
	__u8 retry_cnt;
	__u8 rnr_retry;
	__u8 alt_port_num;
	__u8 alt_timeout;
	__u8 reserved[6];
	__u64 driver_data[0];
};

/* The response is struct ibv_query_qp_resp. */
struct ibv_query_xrc_rcv_qp {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u32 xrc_domain_handle;
	__u32 qp_num;
	__u32 attr_mask;
	__u32 reserved;
	__u64 driver_data[0];
};

/* Registering twice has the effect of registering once. EINVAL: the domain has no such QP. */
struct ibv_reg_xrc_rcv_qp {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u32 xrc_domain_handle;
	__u32 qp_num;
	__u64 driver_data[0];
};

/* The QP ends with its last registration. EINVAL: this context is not registered. */
struct ibv_unreg_xrc_rcv_qp {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u32 xrc_domain_handle;
	__u32 qp_num;
	__u64 driver_data[0];
};

/* Read from the asynchronous event descriptor, one per read(). element is the user handle of the
 * object, or a port number; if event_type has flag 0x80000000, the number of an XRC receive QP. */
struct ibv_kern_async_event {
	__u64 element;
	__u32 event_type;
	__u32 reserved;
};

/* Read from a completion channel, one per read(): the user handle of the CQ. */
struct ibv_comp_event {
	__u64 cq_handle;
};

#pragma GCC diagnostic pop

#endif /* KERN_ABI_H */
