/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The uverbs command channel as the kernel side sees it: every command and response of both faces,
 * once. Host byte order. Driver-private data directly follows the core command, and the core
 * response.
 *
 * A write() is one command:
 *	OFFSET	SIZE	MEANING
 *	0	4	command number; bit 31: extended command (mainline)
 *	4	2	in_words: all bytes written / 4
 *			(extended: bytes after both headers, without driver data, / 8)
 *	6	2	out_words: bytes for the response / 4
 *			(extended: / 8, without driver data)
 *	8	8	address of the response, in the commands that have one
 */
#ifndef SOFTHCA_KERNEL_UVERBS_UVERBS_ABI_H
#define SOFTHCA_KERNEL_UVERBS_UVERBS_ABI_H

#include <stddef.h>
#include <stdint.h>

/* A list of numbers in order. */
/* clang-format off */
enum uv_command {
	UV_GET_CONTEXT, UV_QUERY_DEVICE, UV_QUERY_PORT, UV_ALLOC_PD, UV_DEALLOC_PD, UV_CREATE_AH, UV_MODIFY_AH,
	UV_QUERY_AH, UV_DESTROY_AH, UV_REG_MR, UV_REG_SMR, UV_REREG_MR, UV_QUERY_MR, UV_DEREG_MR, UV_ALLOC_MW,
	UV_BIND_MW, UV_DEALLOC_MW, UV_CREATE_COMP_CHANNEL, UV_CREATE_CQ, UV_RESIZE_CQ, UV_DESTROY_CQ, UV_POLL_CQ,
	UV_PEEK_CQ, UV_REQ_NOTIFY_CQ, UV_CREATE_QP, UV_QUERY_QP, UV_MODIFY_QP, UV_DESTROY_QP, UV_POST_SEND,
	UV_POST_RECV, UV_ATTACH_MCAST, UV_DETACH_MCAST, UV_CREATE_SRQ, UV_MODIFY_SRQ, UV_QUERY_SRQ, UV_DESTROY_SRQ,
	UV_POST_SRQ_RECV,
	/* OFED 1.3 to 1.5 */
	UV_CREATE_XRC_SRQ = 37, UV_OPEN_XRC_DOMAIN, UV_CLOSE_XRC_DOMAIN, UV_CREATE_XRC_RCV_QP, UV_MODIFY_XRC_RCV_QP,
	UV_QUERY_XRC_RCV_QP, UV_REG_XRC_RCV_QP, UV_UNREG_XRC_RCV_QP,
	/* mainline */
	UV_OPEN_XRCD = 37, UV_CLOSE_XRCD, UV_CREATE_XSRQ, UV_OPEN_QP,
};
/* clang-format on */
#define UV_EXTENDED	0x80000000u
#define UV_COMMAND_MASK 0xffu

/* QP types as commands carry them */
enum uv_qp_type {
	UV_QPT_RC = 2,
	UV_QPT_UC = 3,
	UV_QPT_UD = 4,
	UV_QPT_XRC = 5, /* OFED */
	UV_QPT_XRC_INI = 9,
	UV_QPT_XRC_TGT = 10, /* mainline */
};
enum uv_srq_type { UV_SRQT_BASIC, UV_SRQT_XRC };
enum uv_srq_mask { UV_SRQ_MAX_WR = 1, UV_SRQ_LIMIT = 2 };

enum uv_qp_mask {
	UV_QP_STATE = 0x1,
	UV_QP_CUR_STATE = 0x2,
	UV_QP_EN_SQD_ASYNC_NOTIFY = 0x4,
	UV_QP_ACCESS_FLAGS = 0x8,
	UV_QP_PKEY_INDEX = 0x10,
	UV_QP_PORT = 0x20,
	UV_QP_QKEY = 0x40,
	UV_QP_AV = 0x80,
	UV_QP_PATH_MTU = 0x100,
	UV_QP_TIMEOUT = 0x200,
	UV_QP_RETRY_CNT = 0x400,
	UV_QP_RNR_RETRY = 0x800,
	UV_QP_RQ_PSN = 0x1000,
	UV_QP_MAX_QP_RD_ATOMIC = 0x2000,
	UV_QP_ALT_PATH = 0x4000,
	UV_QP_MIN_RNR_TIMER = 0x8000,
	UV_QP_SQ_PSN = 0x10000,
	UV_QP_MAX_DEST_RD_ATOMIC = 0x20000,
	UV_QP_PATH_MIG_STATE = 0x40000,
	UV_QP_CAP = 0x80000,
	UV_QP_DEST_QPN = 0x100000,
};

enum uv_event {
	UV_EV_CQ_ERR,
	UV_EV_QP_FATAL,
	UV_EV_QP_REQ_ERR,
	UV_EV_QP_ACCESS_ERR,
	UV_EV_COMM_EST,
	UV_EV_SQ_DRAINED,
	UV_EV_PATH_MIG,
	UV_EV_PATH_MIG_ERR,
	UV_EV_DEVICE_FATAL,
	UV_EV_PORT_ACTIVE,
	UV_EV_PORT_ERR,
	UV_EV_LID_CHANGE,
	UV_EV_PKEY_CHANGE,
	UV_EV_SM_CHANGE,
	UV_EV_SRQ_ERR,
	UV_EV_SRQ_LIMIT_REACHED,
	UV_EV_QP_LAST_WQE_REACHED,
	UV_EV_CLIENT_REREGISTER,
	UV_EV_GID_CHANGE,
};

struct uv_async_record {
	uint64_t element;
	uint32_t event_type;
	uint32_t reserved;
};
struct uv_comp_record {
	uint64_t cq_handle;
};

struct uv_hdr {
	uint32_t command;
	uint16_t in_words;
	uint16_t out_words;
};
struct uv_ex_hdr {
	uint64_t response;
	uint16_t provider_in_words;
	uint16_t provider_out_words;
	uint32_t reserved;
};

/*
 * Commands that are a header and the address of the response: GET_CONTEXT, QUERY_DEVICE, ALLOC_PD,
 * CREATE_COMP_CHANNEL
 */
struct uv_plain {
	struct uv_hdr hdr;
	uint64_t response;
};
/* Commands that name one object and answer nothing: DEALLOC_PD, DEREG_MR, DESTROY_AH, CLOSE_XRCD */
struct uv_handle {
	struct uv_hdr hdr;
	uint32_t handle;
};
/* DESTROY_CQ, DESTROY_QP, DESTROY_SRQ, CLOSE_XRC_DOMAIN (which answers nothing), QUERY_SRQ */
struct uv_object {
	struct uv_hdr hdr;
	uint64_t response;
	uint32_t handle;
	uint32_t reserved;
};

struct uv_get_context_resp {
	uint32_t async_fd;
	uint32_t num_comp_vectors;
};

struct uv_query_device_resp {
	uint64_t fw_ver, node_guid, sys_image_guid, max_mr_size, page_size_cap;
	uint32_t vendor_id, vendor_part_id, hw_ver, max_qp, max_qp_wr, device_cap_flags, max_sge,
		max_sge_rd, max_cq, max_cqe, max_mr, max_pd, max_qp_rd_atom, max_ee_rd_atom,
		max_res_rd_atom, max_qp_init_rd_atom, max_ee_init_rd_atom, atomic_cap, max_ee,
		max_rdd, max_mw, max_raw_ipv6_qp, max_raw_ethy_qp, max_mcast_grp,
		max_mcast_qp_attach, max_total_mcast_qp_attach, max_ah, max_fmr, max_map_per_fmr,
		max_srq, max_srq_wr, max_srq_sge;
	uint16_t max_pkeys;
	uint8_t local_ca_ack_delay, phys_port_cnt;
	uint8_t reserved[4];
};

/* The extended QUERY_DEVICE: after both headers, and its response */
struct uv_ex_query_device {
	uint32_t comp_mask, reserved;
};
struct uv_ex_query_device_resp {
	struct uv_query_device_resp base;
	uint32_t comp_mask, response_length;
	uint64_t odp_general_caps;
	uint32_t odp_rc, odp_uc, odp_ud, odp_reserved;
	uint64_t timestamp_mask, hca_core_clock, device_cap_flags_ex;
	uint32_t rss_qpts, rss_tables, rss_table_size, rss_reserved;
	uint32_t max_wq_type_rq, raw_packet_caps;
	uint32_t tm_max_rndv_hdr_size, tm_max_num_tags, tm_flags, tm_max_ops, tm_max_sge,
		tm_reserved;
	uint16_t max_cq_moderation_count, max_cq_moderation_period;
	uint32_t cq_moderation_reserved;
	uint64_t max_dm_size;
	uint32_t xrc_odp_caps, reserved;
};

struct uv_query_port {
	struct uv_hdr hdr;
	uint64_t response;
	uint8_t port_num;
	uint8_t reserved[7];
};
struct uv_query_port_resp {
	uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr, gid_tbl_len;
	uint16_t pkey_tbl_len, lid, sm_lid;
	uint8_t state, max_mtu, active_mtu, lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply,
		active_width, active_speed, phys_state, link_layer;
	uint8_t reserved[2];
};

struct uv_alloc_pd_resp {
	uint32_t pd_handle;
};

struct uv_reg_mr {
	struct uv_hdr hdr;
	uint64_t response;
	uint64_t start, length, hca_va;
	uint32_t pd_handle, access_flags;
};
struct uv_reg_mr_resp {
	uint32_t mr_handle, lkey, rkey;
};

struct uv_create_comp_channel_resp {
	uint32_t fd;
};

struct uv_create_cq {
	struct uv_hdr hdr;
	uint64_t response;
	uint64_t user_handle;
	uint32_t cqe, comp_vector;
	int32_t comp_channel;
	uint32_t reserved;
};
struct uv_create_cq_resp {
	uint32_t cq_handle, cqe;
};

struct uv_resize_cq {
	struct uv_hdr hdr;
	uint64_t response;
	uint32_t cq_handle, cqe;
};
struct uv_resize_cq_resp {
	/* All that is written of the eight bytes which newer libraries offer. */
	uint32_t cqe;
};
#define UV_RESIZE_CQ_RESP_SIZE 8 /* where driver data would begin */

struct uv_destroy_cq_resp {
	uint32_t comp_events_reported, async_events_reported;
};
struct uv_destroy_resp { /* QP, SRQ */
	uint32_t events_reported;
};

struct uv_ah_attr {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t sgid_index, hop_limit, traffic_class, reserved;
	uint16_t dlid;
	uint8_t sl, src_path_bits, static_rate, is_global, port_num, reserved2;
};
struct uv_create_ah {
	struct uv_hdr hdr;
	uint64_t response;
	uint64_t user_handle;
	uint32_t pd_handle, reserved;
	struct uv_ah_attr attr;
};
struct uv_create_ah_resp {
	uint32_t handle;
};

struct uv_create_qp {
	struct uv_hdr hdr;
	uint64_t response;
	uint64_t user_handle;
	uint32_t pd_handle, send_cq_handle, recv_cq_handle, srq_handle;
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
	uint8_t sq_sig_all, qp_type, is_srq, reserved;
};
struct uv_create_qp_resp {
	uint32_t qp_handle, qpn, max_send_wr, max_recv_wr, max_send_sge, max_recv_sge,
		max_inline_data, reserved;
};

/* The extended CREATE_QP: after both headers, and its response */
struct uv_ex_create_qp {
	uint64_t user_handle;
	uint32_t pd_handle, send_cq_handle, recv_cq_handle, srq_handle;
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
	uint8_t sq_sig_all, qp_type, is_srq, reserved;
	uint32_t comp_mask, create_flags, rwq_ind_tbl_handle, source_qpn;
};
#define UV_EX_CREATE_QP_MIN 52 /* up to comp_mask: what each library writes */
struct uv_ex_create_qp_resp {
	struct uv_create_qp_resp base;
	uint32_t comp_mask, response_length;
};
enum uv_create_flags {
	UV_CREATE_BLOCK_SELF_MCAST = 0x2,
};

struct uv_qp_dest {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint16_t dlid, reserved;
	uint8_t sgid_index, hop_limit, traffic_class, sl, src_path_bits, static_rate, is_global,
		port_num;
};

struct uv_query_qp {
	struct uv_hdr hdr;
	uint64_t response;
	uint32_t qp_handle, attr_mask;
};
struct uv_query_qp_resp {
	struct uv_qp_dest dest, alt_dest;
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
	uint32_t qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags;
	uint16_t pkey_index, alt_pkey_index;
	uint8_t qp_state, cur_qp_state, path_mtu, path_mig_state, sq_draining, max_rd_atomic,
		max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry,
		alt_port_num, alt_timeout, sq_sig_all;
	uint8_t reserved[5];
};

/* What MODIFY_QP and MODIFY_XRC_RCV_QP have in common, from attr_mask on */
struct uv_modify_attr {
	uint32_t attr_mask, qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags;
	uint16_t pkey_index, alt_pkey_index;
	uint8_t qp_state, cur_qp_state, path_mtu, path_mig_state, en_sqd_async_notify,
		max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt,
		rnr_retry, alt_port_num, alt_timeout;
	uint8_t reserved[2];
};
struct uv_modify_qp {
	struct uv_hdr hdr;
	struct uv_qp_dest dest, alt_dest;
	uint32_t qp_handle;
	struct uv_modify_attr attr;
};

struct uv_mcast {
	struct uv_hdr hdr;
	uint8_t gid[16];
	uint32_t qp_handle;
	uint16_t mlid, reserved;
};

struct uv_create_srq {
	struct uv_hdr hdr;
	uint64_t response;
	uint64_t user_handle;
	uint32_t pd_handle, max_wr, max_sge, srq_limit;
};
struct uv_create_srq_resp {
	uint32_t srq_handle, max_wr, max_sge;
	uint32_t srqn; /* mainline's CREATE_XSRQ; else 0 */
};
struct uv_modify_srq {
	struct uv_hdr hdr;
	uint32_t srq_handle, attr_mask, max_wr, srq_limit;
};
struct uv_query_srq_resp {
	uint32_t max_wr, max_sge, srq_limit, reserved;
};

/* ---- OFED's XRC ---- */

struct uv_create_xrc_srq {
	struct uv_hdr hdr;
	uint64_t response;
	uint64_t user_handle;
	uint32_t pd_handle, max_wr, max_sge, srq_limit, xrcd_handle, xrc_cq;
};
/* Mainline's OPEN_XRCD looks the same. */
struct uv_open_xrc_domain {
	struct uv_hdr hdr;
	uint64_t response;
	uint32_t fd, oflags;
};
struct uv_open_xrc_domain_resp {
	uint32_t xrcd_handle;
};
struct uv_create_xrc_rcv_qp {
	struct uv_hdr hdr;
	uint64_t response;
	uint64_t user_handle;
	uint32_t xrc_domain_handle, max_send_wr, max_recv_wr, max_send_sge, max_recv_sge,
		max_inline_data;
	uint8_t sq_sig_all, qp_type;
	uint8_t reserved[6];
};
struct uv_create_xrc_rcv_qp_resp {
	uint32_t qpn, reserved;
};
struct uv_modify_xrc_rcv_qp {
	struct uv_hdr hdr;
	uint32_t xrc_domain_handle, qp_num;
	struct uv_qp_dest dest, alt_dest;
	struct uv_modify_attr attr;
	uint8_t reserved[4];
};
struct uv_query_xrc_rcv_qp {
	struct uv_hdr hdr;
	uint64_t response;
	uint32_t xrc_domain_handle, qp_num, attr_mask, reserved;
};
struct uv_reg_xrc_rcv_qp { /* and unregister */
	struct uv_hdr hdr;
	uint32_t xrc_domain_handle, qp_num;
};

/* ---- mainline's XRC ---- */

struct uv_create_xsrq {
	struct uv_hdr hdr;
	uint64_t response;
	uint64_t user_handle;
	uint32_t srq_type, pd_handle, max_wr, max_sge, srq_limit, max_num_tags, xrcd_handle,
		cq_handle;
};
struct uv_open_qp {
	struct uv_hdr hdr;
	uint64_t response;
	uint64_t user_handle;
	uint32_t pd_handle, qpn; /* pd_handle: the XRC domain */
	uint8_t qp_type;
	uint8_t reserved[7];
};

#define UV_SIZE(type, size) _Static_assert(sizeof(struct type) == (size), #type)
#define UV_AT(type, field, off)                                                                    \
	_Static_assert(offsetof(struct type, field) == (off), #type "." #field)

UV_SIZE(uv_async_record, 16);
UV_SIZE(uv_hdr, 8);
UV_SIZE(uv_ex_hdr, 16);
UV_SIZE(uv_plain, 16);
UV_SIZE(uv_handle, 12);
UV_SIZE(uv_object, 24);
UV_SIZE(uv_get_context_resp, 8);
UV_SIZE(uv_query_device_resp, 176);
UV_AT(uv_query_device_resp, vendor_id, 40);
UV_AT(uv_query_device_resp, device_cap_flags, 60);
UV_AT(uv_query_device_resp, atomic_cap, 108);
UV_AT(uv_query_device_resp, max_mcast_grp, 132);
UV_AT(uv_query_device_resp, max_srq_sge, 164);
UV_AT(uv_query_device_resp, phys_port_cnt, 171);
UV_SIZE(uv_ex_query_device, 8);
UV_SIZE(uv_ex_query_device_resp, 304);
UV_AT(uv_ex_query_device_resp, timestamp_mask, 208);
UV_AT(uv_ex_query_device_resp, max_wq_type_rq, 248);
UV_AT(uv_ex_query_device_resp, max_dm_size, 288);
UV_SIZE(uv_query_port, 24);
UV_SIZE(uv_query_port_resp, 40);
UV_AT(uv_query_port_resp, lid, 22);
UV_AT(uv_query_port_resp, link_layer, 37);
UV_SIZE(uv_reg_mr, 48);
UV_AT(uv_reg_mr, pd_handle, 40);
UV_SIZE(uv_reg_mr_resp, 12);
UV_SIZE(uv_create_cq, 40);
UV_AT(uv_create_cq, comp_channel, 32);
UV_SIZE(uv_create_cq_resp, 8);
UV_SIZE(uv_resize_cq, 24);
UV_SIZE(uv_ah_attr, 32);
UV_AT(uv_ah_attr, dlid, 24);
UV_SIZE(uv_create_ah, 64);
UV_SIZE(uv_create_qp, 64);
UV_AT(uv_create_qp, qp_type, 61);
UV_SIZE(uv_create_qp_resp, 32);
UV_SIZE(uv_ex_create_qp, 64);
UV_AT(uv_ex_create_qp, qp_type, 45);
UV_AT(uv_ex_create_qp, create_flags, UV_EX_CREATE_QP_MIN);
UV_SIZE(uv_ex_create_qp_resp, 40);
UV_SIZE(uv_qp_dest, 32);
UV_AT(uv_qp_dest, sgid_index, 24);
UV_SIZE(uv_query_qp, 24);
UV_SIZE(uv_query_qp_resp, 128);
UV_AT(uv_query_qp_resp, pkey_index, 104);
UV_AT(uv_query_qp_resp, sq_sig_all, 122);
UV_SIZE(uv_modify_attr, 44);
UV_SIZE(uv_modify_qp, 120);
UV_AT(uv_modify_qp, attr.attr_mask, 76);
UV_AT(uv_modify_qp, attr.qp_state, 104);
UV_AT(uv_modify_qp, attr.alt_timeout, 117);
UV_SIZE(uv_mcast, 32);
UV_SIZE(uv_create_srq, 40);
UV_SIZE(uv_create_srq_resp, 16);
UV_SIZE(uv_modify_srq, 24);
UV_SIZE(uv_query_srq_resp, 16);
UV_SIZE(uv_create_xrc_srq, 48);
UV_AT(uv_create_xrc_srq, xrc_cq, 44);
UV_SIZE(uv_open_xrc_domain, 24);
UV_SIZE(uv_create_xrc_rcv_qp, 56);
UV_AT(uv_create_xrc_rcv_qp, sq_sig_all, 48);
UV_SIZE(uv_create_xrc_rcv_qp_resp, 8);
UV_SIZE(uv_modify_xrc_rcv_qp, 128);
UV_AT(uv_modify_xrc_rcv_qp, dest, 16);
UV_AT(uv_modify_xrc_rcv_qp, attr.attr_mask, 80);
UV_AT(uv_modify_xrc_rcv_qp, attr.qp_state, 108);
UV_SIZE(uv_query_xrc_rcv_qp, 32);
UV_SIZE(uv_reg_xrc_rcv_qp, 16);
UV_SIZE(uv_create_xsrq, 56);
UV_AT(uv_create_xsrq, xrcd_handle, 48);
UV_SIZE(uv_open_qp, 40);
UV_AT(uv_open_qp, qp_type, 32);

#endif
