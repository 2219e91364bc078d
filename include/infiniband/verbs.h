// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The verbs API, with the XRC extension, as applications compile it. Every layout and every slot of
 * the operation tables is frozen ABI: applications and provider plug-ins built years ago share them. */

#ifndef INFINIBAND_VERBS_H
#define INFINIBAND_VERBS_H

#include <stdint.h>
#include <stddef.h>
#include <pthread.h>

#ifdef __cplusplus
#define BEGIN_C_DECLS extern "C" {
#define END_C_DECLS }
#else
#define BEGIN_C_DECLS
#define END_C_DECLS
#endif

#if __GNUC__ >= 3
#define __attribute_const __attribute__((const))
#else
#define __attribute_const
#endif

BEGIN_C_DECLS

/*
 * Conventions, unless a function says otherwise:
 *  - a function returning a pointer returns NULL on failure, with errno set;
 *  - a function returning int returns 0, or a positive errno value;
 *  - GIDs, GUIDs, P_Keys and immediate data are in network byte order, everything else is in host order;
 *  - an object belongs to its creator until the matching destroy/dealloc/close/free succeeds. EBUSY from
 *    one of those means that other objects still refer to it, and nothing has changed;
 *  - all calls are safe between threads; destroying an object that another thread uses is not;
 *  - what the kernel refuses comes back with its errno: EINVAL (value, handle or transition not valid),
 *    ENOMEM (often the locked memory limit: see ulimit -l), ENOSYS (device or kernel cannot do it).
 */

/* A global identifier, as it is on the wire: 16 bytes in network order. An IPv6 address has the
 * same form. */
union ibv_gid {
	uint8_t raw[16];
	struct {
		uint64_t subnet_prefix;	/* network order */
		uint64_t interface_id;	/* network order */
	} global;
};

/* What a device is; UNKNOWN when sysfs does not say, or says something else. */
enum ibv_node_type {
	IBV_NODE_UNKNOWN = -1,
	IBV_NODE_CA = 1,
	IBV_NODE_SWITCH,
	IBV_NODE_ROUTER,
	IBV_NODE_RNIC
};

/* The wire that a device speaks. RoCE counts as InfiniBand: see link_layer of the port. */
enum ibv_transport_type {
	IBV_TRANSPORT_UNKNOWN = -1,
	IBV_TRANSPORT_IB = 0,
	IBV_TRANSPORT_IWARP = 1
};

/* What a device can do, in device_cap_flags. IBV_DEVICE_XRC: its kernel and its provider both
 * have XRC. */
enum ibv_device_cap_flags {
	IBV_DEVICE_RESIZE_MAX_WR = 1,
	IBV_DEVICE_BAD_PKEY_CNTR = 1 << 1,
	IBV_DEVICE_BAD_QKEY_CNTR = 1 << 2,
	IBV_DEVICE_RAW_MULTI = 1 << 3,
	IBV_DEVICE_AUTO_PATH_MIG = 1 << 4,
	IBV_DEVICE_CHANGE_PHY_PORT = 1 << 5,
	IBV_DEVICE_UD_AV_PORT_ENFORCE = 1 << 6,
	IBV_DEVICE_CURR_QP_STATE_MOD = 1 << 7,
	IBV_DEVICE_SHUTDOWN_PORT = 1 << 8,
	IBV_DEVICE_INIT_TYPE = 1 << 9,
	IBV_DEVICE_PORT_ACTIVE_EVENT = 1 << 10,
	IBV_DEVICE_SYS_IMAGE_GUID = 1 << 11,
	IBV_DEVICE_RC_RNR_NAK_GEN = 1 << 12,
	IBV_DEVICE_SRQ_RESIZE = 1 << 13,
	IBV_DEVICE_N_NOTIFY_CQ = 1 << 14,
	IBV_DEVICE_XRC = 1 << 20
};

/* How far the atomicity of IBV_WR_ATOMIC_* reaches. */
enum ibv_atomic_cap {
	IBV_ATOMIC_NONE,	/* no atomics */
	IBV_ATOMIC_HCA,		/* atomic among the QPs of this HCA only */
	IBV_ATOMIC_GLOB		/* atomic towards the CPU too */
};

/* What ibv_query_device() tells: identity and limits. max_* are upper bounds, each for itself:
 * what is granted may be less. ee, rdd, raw, fmr: features of few or no devices; 0 there. */
struct ibv_device_attr {
	char fw_ver[64];		/* text, NUL-terminated */
	uint64_t node_guid;		/* network order */
	uint64_t sys_image_guid;	/* network order */
	uint64_t max_mr_size;		/* bytes */
	uint64_t page_size_cap;		/* bit n set: pages of 2^n bytes */
	uint32_t vendor_id;
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	int max_qp;
	int max_qp_wr;
	int device_cap_flags;		/* enum ibv_device_cap_flags */
	int max_sge;
	int max_sge_rd;
	int max_cq;
	int max_cqe;
	int max_mr;
	int max_pd;
	int max_qp_rd_atom;		/* RDMA READs and atomics outstanding per QP, as target */
	int max_ee_rd_atom;
	int max_res_rd_atom;
	int max_qp_init_rd_atom;	/* the same, as initiator */
	int max_ee_init_rd_atom;
	enum ibv_atomic_cap atomic_cap;
	int max_ee;
	int max_rdd;
	int max_mw;
	int max_raw_ipv6_qp;
	int max_raw_ethy_qp;
	int max_mcast_grp;
	int max_mcast_qp_attach;
	int max_total_mcast_qp_attach;
	int max_ah;
	int max_fmr;
	int max_map_per_fmr;
	int max_srq;
	int max_srq_wr;
	int max_srq_sge;
	uint16_t max_pkeys;
	uint8_t local_ca_ack_delay;	/* 4.096 us * 2^n */
	uint8_t phys_port_cnt;
};

/* Payload bytes of a packet: 128 << value. */
enum ibv_mtu {
	IBV_MTU_256 = 1,
	IBV_MTU_512 = 2,
	IBV_MTU_1024 = 3,
	IBV_MTU_2048 = 4,
	IBV_MTU_4096 = 5
};

/* The logical state of a port. Only ACTIVE carries data; a subnet manager leads it there. */
enum ibv_port_state {
	IBV_PORT_NOP = 0,
	IBV_PORT_DOWN = 1,
	IBV_PORT_INIT = 2,
	IBV_PORT_ARMED = 3,
	IBV_PORT_ACTIVE = 4,
	IBV_PORT_ACTIVE_DEFER = 5
};

/* What a port is plugged into: link_layer of struct ibv_port_attr. */
enum {
	IBV_LINK_LAYER_UNSPECIFIED,	/* InfiniBand, from a kernel that does not say */
	IBV_LINK_LAYER_INFINIBAND,
	IBV_LINK_LAYER_ETHERNET
};

/* What ibv_query_port() tells. LIDs are in host order; 0: none assigned. */
struct ibv_port_attr {
	enum ibv_port_state state;
	enum ibv_mtu max_mtu;
	enum ibv_mtu active_mtu;
	int gid_tbl_len;
	uint32_t port_cap_flags;
	uint32_t max_msg_sz;	/* bytes */
	uint32_t bad_pkey_cntr;
	uint32_t qkey_viol_cntr;
	uint16_t pkey_tbl_len;
	uint16_t lid;
	uint16_t sm_lid;
	uint8_t lmc;
	uint8_t max_vl_num;	/* 1: VL0, 2: VL0-1, 3: VL0-3, 4: VL0-7, 5: VL0-14 */
	uint8_t sm_sl;
	uint8_t subnet_timeout;	/* 4.096 us * 2^n */
	uint8_t init_type_reply;
	uint8_t active_width;	/* 1: 1X, 2: 4X, 4: 8X, 8: 12X */
	uint8_t active_speed;	/* 1: 2.5, 2: 5, 4: 10 Gbit/s per lane */
	uint8_t phys_state;
	uint8_t link_layer;	/* IBV_LINK_LAYER_* */
	uint8_t pad;
};

/* Asynchronous events, and the member of element that each is about: CQ_ERR cq; QP_*, COMM_EST,
 * SQ_DRAINED and PATH_MIG* qp; SRQ_* srq; DEVICE_FATAL none; the others port_num. */
enum ibv_event_type {
	IBV_EVENT_CQ_ERR,
	IBV_EVENT_QP_FATAL,
	IBV_EVENT_QP_REQ_ERR,
	IBV_EVENT_QP_ACCESS_ERR,
	IBV_EVENT_COMM_EST,
	IBV_EVENT_SQ_DRAINED,
	IBV_EVENT_PATH_MIG,
	IBV_EVENT_PATH_MIG_ERR,
	IBV_EVENT_DEVICE_FATAL,
	IBV_EVENT_PORT_ACTIVE,
	IBV_EVENT_PORT_ERR,
	IBV_EVENT_LID_CHANGE,
	IBV_EVENT_PKEY_CHANGE,
	IBV_EVENT_SM_CHANGE,
	IBV_EVENT_SRQ_ERR,
	IBV_EVENT_SRQ_LIMIT_REACHED,
	IBV_EVENT_QP_LAST_WQE_REACHED,
	IBV_EVENT_CLIENT_REREGISTER,
	IBV_EVENT_GID_CHANGE
};

/* Or'ed into event_type when the event is about an XRC receive QP: element.xrc_qp_num is valid. */
enum ibv_event_flags {
	IBV_XRC_QP_EVENT_FLAG = 0x80000000
};

/* What ibv_get_async_event() gives. The object in element lives at least until the event is
 * acknowledged. */
struct ibv_async_event {
	union {
		struct ibv_cq *cq;
		struct ibv_qp *qp;
		struct ibv_srq *srq;
		int port_num;
		uint32_t xrc_qp_num;
	} element;
	enum ibv_event_type event_type;
};

/* How a work request ended; ibv_wc_status_str() has the words. An error stops the QP
 * (IBV_QPS_ERR), or with UC and UD mostly its send queue alone (IBV_QPS_SQE); what else was
 * posted there ends as WR_FLUSH_ERR. */
enum ibv_wc_status {
	IBV_WC_SUCCESS,
	IBV_WC_LOC_LEN_ERR,
	IBV_WC_LOC_QP_OP_ERR,
	IBV_WC_LOC_EEC_OP_ERR,
	IBV_WC_LOC_PROT_ERR,
	IBV_WC_WR_FLUSH_ERR,
	IBV_WC_MW_BIND_ERR,
	IBV_WC_BAD_RESP_ERR,
	IBV_WC_LOC_ACCESS_ERR,
	IBV_WC_REM_INV_REQ_ERR,
	IBV_WC_REM_ACCESS_ERR,
	IBV_WC_REM_OP_ERR,
	IBV_WC_RETRY_EXC_ERR,
	IBV_WC_RNR_RETRY_EXC_ERR,
	IBV_WC_LOC_RDD_VIOL_ERR,
	IBV_WC_REM_INV_RD_REQ_ERR,
	IBV_WC_REM_ABORT_ERR,
	IBV_WC_INV_EECN_ERR,
	IBV_WC_INV_EEC_STATE_ERR,
	IBV_WC_FATAL_ERR,
	IBV_WC_RESP_TIMEOUT_ERR,
	IBV_WC_GENERAL_ERR
};

/* What a completion is about. Receives from IBV_WC_RECV on, the others are sends. */
enum ibv_wc_opcode {
	IBV_WC_SEND,
	IBV_WC_RDMA_WRITE,
	IBV_WC_RDMA_READ,
	IBV_WC_COMP_SWAP,
	IBV_WC_FETCH_ADD,
	IBV_WC_BIND_MW,
	IBV_WC_RECV = 1 << 7,	/* set in every completion of a receive, so opcode & IBV_WC_RECV tells */
	IBV_WC_RECV_RDMA_WITH_IMM
};

/* Bits of wc_flags: what else a receive brought. */
enum ibv_wc_flags {
	IBV_WC_GRH = 1 << 0,	/* UD: the first 40 bytes of the buffer hold a GRH */
	IBV_WC_WITH_IMM = 1 << 1
};

/* With a status other than success only wr_id, status, qp_num and vendor_err are valid. */
struct ibv_wc {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t vendor_err;
	uint32_t byte_len;	/* receives, RDMA READs and atomics */
	uint32_t imm_data;	/* network order; with IBV_WC_WITH_IMM */
	uint32_t qp_num;
	uint32_t src_qp;	/* UD */
	int wc_flags;		/* enum ibv_wc_flags */
	uint16_t pkey_index;
	uint16_t slid;		/* UD */
	uint8_t sl;		/* UD */
	uint8_t dlid_path_bits;	/* UD */
};

/* What may be done to a memory region or, the remote ones, through a QP. Local reading is always
 * allowed. */
enum ibv_access_flags {
	IBV_ACCESS_LOCAL_WRITE = 1,	/* needed with REMOTE_WRITE and REMOTE_ATOMIC */
	IBV_ACCESS_REMOTE_WRITE = 1 << 1,
	IBV_ACCESS_REMOTE_READ = 1 << 2,
	IBV_ACCESS_REMOTE_ATOMIC = 1 << 3,
	IBV_ACCESS_MW_BIND = 1 << 4
};

/* A protection domain: memory, QPs, SRQs and address handles work together only within one. */
struct ibv_pd {
	struct ibv_context *context;
	uint32_t handle;
};

/* A handle of an XRC domain. Handles of one domain, in any number of processes, come from opening it
 * through the same file. */
struct ibv_xrc_domain {
	struct ibv_context *context;
	uint32_t handle;
};

/* For rereg_mr of the operation tables; no verb uses them. */
enum ibv_rereg_mr_flags {
	IBV_REREG_MR_CHANGE_TRANSLATION = 1 << 0,
	IBV_REREG_MR_CHANGE_PD = 1 << 1,
	IBV_REREG_MR_CHANGE_ACCESS = 1 << 2,
	IBV_REREG_MR_KEEP_VALID = 1 << 3
};

/* A memory region, from ibv_reg_mr(): addr and length as they were given, lkey for struct
 * ibv_sge, rkey to be told to the peer. Keys are opaque and in host order. */
struct ibv_mr {
	struct ibv_context *context;
	struct ibv_pd *pd;
	void *addr;
	size_t length;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
};

/* For alloc_mw of the operation tables; no verb uses them. */
enum ibv_mw_type {
	IBV_MW_TYPE_1 = 1,
	IBV_MW_TYPE_2 = 2
};

/* A memory window, for the operation tables; no verb makes one. */
struct ibv_mw {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t rkey;
};

/* Where a packet with a global header goes: dgid, from entry sgid_index of the port's GID table. */
struct ibv_global_route {
	union ibv_gid dgid;
	uint32_t flow_label;	/* 20 bits */
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
};

/* As on the wire: every field in network order. */
struct ibv_grh {
	uint32_t version_tclass_flow;
	uint16_t paylen;
	uint8_t next_hdr;
	uint8_t hop_limit;
	union ibv_gid sgid;
	union ibv_gid dgid;
};

/* A static rate, for ports slower than the sender; the numbers are the wire's. MAX: no limit. */
enum ibv_rate {
	IBV_RATE_MAX = 0,
	IBV_RATE_2_5_GBPS = 2,
	IBV_RATE_5_GBPS = 5,
	IBV_RATE_10_GBPS = 3,
	IBV_RATE_20_GBPS = 6,
	IBV_RATE_30_GBPS = 4,
	IBV_RATE_40_GBPS = 7,
	IBV_RATE_60_GBPS = 8,
	IBV_RATE_80_GBPS = 9,
	IBV_RATE_120_GBPS = 10
};

/* A rate as a multiple of 2.5 Gbit/s (IBV_RATE_5_GBPS: 2); -1 when it is none, or IBV_RATE_MAX. */
int ibv_rate_to_mult(enum ibv_rate rate) __attribute_const;

/* The inverse; IBV_RATE_MAX for a multiple that is no rate. */
enum ibv_rate mult_to_ibv_rate(int mult) __attribute_const;

/* An address: the destination dlid, in host order, with the path to it; with is_global also grh.
 * On Ethernet ports grh alone counts, and is_global must be set. */
struct ibv_ah_attr {
	struct ibv_global_route grh;	/* with is_global */
	uint16_t dlid;
	uint8_t sl;			/* 0-15 */
	uint8_t src_path_bits;
	uint8_t static_rate;		/* enum ibv_rate */
	uint8_t is_global;
	uint8_t port_num;		/* from 1 */
};

/* Which members of struct ibv_srq_attr ibv_modify_srq() is to set. */
enum ibv_srq_attr_mask {
	IBV_SRQ_MAX_WR = 1 << 0,
	IBV_SRQ_LIMIT = 1 << 1
};

/* An SRQ: entries it can hold, of how many segments each, and when it warns. */
struct ibv_srq_attr {
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t srq_limit;	/* IBV_EVENT_SRQ_LIMIT_REACHED once, when fewer receives are left; 0: never */
};

/* For ibv_create_srq() and ibv_create_xrc_srq(). srq_context is the caller's own and stays in
 * the SRQ. */
struct ibv_srq_init_attr {
	void *srq_context;
	struct ibv_srq_attr attr;	/* max_wr and max_sge as granted, after creation */
};

/* The transport of a QP. XRC is a send QP: receive QPs are made with ibv_create_xrc_rcv_qp(). */
enum ibv_qp_type {
	IBV_QPT_RC = 2,
	IBV_QPT_UC,
	IBV_QPT_UD,
	IBV_QPT_XRC,
	IBV_QPT_RAW_ETH = 8
};

/* Sizes of a QP's queues: requests outstanding, and scatter/gather entries of each. 0 is
 * allowed. */
struct ibv_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;	/* bytes */
};

/* For ibv_create_qp(). qp_context is the caller's own and stays in the QP. */
struct ibv_qp_init_attr {
	void *qp_context;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;		/* NULL: receives of its own. Must be NULL for XRC */
	struct ibv_qp_cap cap;		/* as granted, after creation */
	enum ibv_qp_type qp_type;
	int sq_sig_all;			/* non-zero: every send completes visibly */
	struct ibv_xrc_domain *xrc_domain;	/* XRC only; never looked at for another type */
};

/* Which members of struct ibv_qp_attr count. ibv_modify_qp(3) has what each transition needs and
 * allows. */
enum ibv_qp_attr_mask {
	IBV_QP_STATE = 1 << 0,
	IBV_QP_CUR_STATE = 1 << 1,
	IBV_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	IBV_QP_ACCESS_FLAGS = 1 << 3,
	IBV_QP_PKEY_INDEX = 1 << 4,
	IBV_QP_PORT = 1 << 5,
	IBV_QP_QKEY = 1 << 6,
	IBV_QP_AV = 1 << 7,
	IBV_QP_PATH_MTU = 1 << 8,
	IBV_QP_TIMEOUT = 1 << 9,
	IBV_QP_RETRY_CNT = 1 << 10,
	IBV_QP_RNR_RETRY = 1 << 11,
	IBV_QP_RQ_PSN = 1 << 12,
	IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	IBV_QP_ALT_PATH = 1 << 14,
	IBV_QP_MIN_RNR_TIMER = 1 << 15,
	IBV_QP_SQ_PSN = 1 << 16,
	IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	IBV_QP_PATH_MIG_STATE = 1 << 18,
	IBV_QP_CAP = 1 << 19,
	IBV_QP_DEST_QPN = 1 << 20
};

/* RESET, INIT (may post receives), RTR (receives), RTS (sends too), SQD (sends drained), SQE
 * (sends failed, not RC), ERR (everything is flushed). */
enum ibv_qp_state {
	IBV_QPS_RESET,
	IBV_QPS_INIT,
	IBV_QPS_RTR,
	IBV_QPS_RTS,
	IBV_QPS_SQD,
	IBV_QPS_SQE,
	IBV_QPS_ERR
};

/* Automatic path migration: MIGRATED uses the primary path; REARM asks for, ARMED has an
 * alternate one. */
enum ibv_mig_state {
	IBV_MIG_MIGRATED,
	IBV_MIG_REARM,
	IBV_MIG_ARMED
};

/* For ibv_modify_qp(), which reads what the mask names, and ibv_query_qp(). PSNs and QP numbers
 * are in host order. */
struct ibv_qp_attr {
	enum ibv_qp_state qp_state;
	enum ibv_qp_state cur_qp_state;
	enum ibv_mtu path_mtu;
	enum ibv_mig_state path_mig_state;
	uint32_t qkey;			/* UD */
	uint32_t rq_psn;		/* 24 bits */
	uint32_t sq_psn;		/* 24 bits */
	uint32_t dest_qp_num;		/* 24 bits */
	int qp_access_flags;		/* enum ibv_access_flags, the remote ones */
	struct ibv_qp_cap cap;
	struct ibv_ah_attr ah_attr;
	struct ibv_ah_attr alt_ah_attr;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;		/* outstanding as initiator */
	uint8_t max_dest_rd_atomic;	/* outstanding as target */
	uint8_t min_rnr_timer;		/* 0-31, code of the receiver-not-ready delay asked of the sender */
	uint8_t port_num;		/* from 1 */
	uint8_t timeout;		/* 4.096 us * 2^n, 0-31; 0: for ever */
	uint8_t retry_cnt;		/* 0-7 */
	uint8_t rnr_retry;		/* 0-7; 7: for ever */
	uint8_t alt_port_num;
	uint8_t alt_timeout;
};

/* What a send request does. UD only sends; UC neither reads nor does atomics; _WITH_IMM takes a
 * receive of the peer. */
enum ibv_wr_opcode {
	IBV_WR_RDMA_WRITE,
	IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_SEND,
	IBV_WR_SEND_WITH_IMM,
	IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_CMP_AND_SWP,
	IBV_WR_ATOMIC_FETCH_AND_ADD
};

/* FENCE: not before READs and atomics posted earlier are done. SIGNALED: completes visibly.
 * SOLICITED: wakes who asked for such only. INLINE: the data is copied during the post, and lkey
 * is not looked at. */
enum ibv_send_flags {
	IBV_SEND_FENCE = 1 << 0,
	IBV_SEND_SIGNALED = 1 << 1,
	IBV_SEND_SOLICITED = 1 << 2,
	IBV_SEND_INLINE = 1 << 3
};

/* A piece of registered memory. The buffer is the device's until the request has completed. */
struct ibv_sge {
	uint64_t addr;
	uint32_t length;	/* bytes */
	uint32_t lkey;
};

/* A list of these is read during the post and belongs to the caller again afterwards. */
struct ibv_send_wr {
	uint64_t wr_id;
	struct ibv_send_wr *next;
	struct ibv_sge *sg_list;
	int num_sge;
	enum ibv_wr_opcode opcode;
	int send_flags;		/* enum ibv_send_flags */
	uint32_t imm_data;	/* network order */
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr;	/* a multiple of 8 */
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
		} atomic;
		struct {
			struct ibv_ah *ah;
			uint32_t remote_qpn;
			uint32_t remote_qkey;
		} ud;
	} wr;
	uint32_t xrc_remote_srq_num;	/* XRC only; never looked at for another type */
};

/* Room for one incoming message; on UD it begins with 40 bytes for the GRH. The list is the
 * caller's again after the post. */
struct ibv_recv_wr {
	uint64_t wr_id;
	struct ibv_recv_wr *next;
	struct ibv_sge *sg_list;
	int num_sge;
};

/* For bind_mw of the operation tables; no verb uses it. */
struct ibv_mw_bind {
	uint64_t wr_id;
	struct ibv_mr *mr;
	void *addr;
	size_t length;
	int send_flags;
	int mw_access_flags;
};

/* A shared receive queue. Made and freed by the library or the provider, like all objects below:
 * read them, never copy or write them. */
struct ibv_srq {
	struct ibv_context *context;
	void *srq_context;
	struct ibv_pd *pd;
	uint32_t handle;

	uint32_t events_completed;	/* with mutex and cond: the library's own */

	uint32_t xrc_srq_num;		/* what senders put into xrc_remote_srq_num; 0: no XRC SRQ */
	struct ibv_xrc_domain *xrc_domain;
	struct ibv_cq *xrc_cq;

	pthread_mutex_t mutex;
	pthread_cond_t cond;
};

/* A queue pair. */
struct ibv_qp {
	struct ibv_context *context;
	void *qp_context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;
	uint32_t handle;
	uint32_t qp_num;
	enum ibv_qp_state state;	/* as last modified or queried through this object */
	enum ibv_qp_type qp_type;

	uint32_t events_completed;	/* with mutex and cond: the library's own */

	struct ibv_xrc_domain *xrc_domain;

	pthread_mutex_t mutex;
	pthread_cond_t cond;
};

/* Where completion events of any number of CQs arrive; fd is readable when one waits. */
struct ibv_comp_channel {
	struct ibv_context *context;
	int fd;		/* may be polled and made non-blocking */
	int refcnt;
};

/* A completion queue. */
struct ibv_cq {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	void *cq_context;
	uint32_t handle;
	int cqe;		/* entries it can hold */

	uint32_t comp_events_completed;	/* with mutex and cond: the library's own */
	uint32_t async_events_completed;

	pthread_mutex_t mutex;
	pthread_cond_t cond;
};

/* An address handle: where a UD message goes. */
struct ibv_ah {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t handle;
};

struct ibv_device;
struct ibv_context;

/* How a provider opens its device: see ibv_driver_init_func in driver.h. */
struct ibv_device_ops {
	struct ibv_context *(*alloc_context)(struct ibv_device *device, int cmd_fd);
	void (*free_context)(struct ibv_context *context);
};

/* Bytes of the names and paths below, NUL included. */
enum {
	IBV_SYSFS_NAME_MAX = 64,
	IBV_SYSFS_PATH_MAX = 256
};

/* A device of the list of ibv_get_device_list(). The library's for the life of the process; read
 * only. */
struct ibv_device {
	struct ibv_device_ops ops;
	enum ibv_node_type node_type;
	enum ibv_transport_type transport_type;
	char name[IBV_SYSFS_NAME_MAX];		/* of the RDMA device: mlx4_0 */
	char dev_name[IBV_SYSFS_NAME_MAX];	/* of the device file: uverbs0 */
	char dev_path[IBV_SYSFS_PATH_MAX];	/* of the device file in sysfs */
	char ibdev_path[IBV_SYSFS_PATH_MAX];	/* of the RDMA device in sysfs */
};

/* What a provider does for its context. NULL where it cannot: the verb then fails with ENOSYS.
 * Return values are those of the verbs; the library fills in what it owns in the objects
 * (context, pd, mutex and so on). */
struct ibv_context_ops {
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *device_attr);
	int (*query_port)(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port_attr);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access);
	struct ibv_mr *(*rereg_mr)(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
				   size_t length, int access);
	int (*dereg_mr)(struct ibv_mr *mr);
	struct ibv_mw *(*alloc_mw)(struct ibv_pd *pd, enum ibv_mw_type type);
	int (*bind_mw)(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind);
	int (*dealloc_mw)(struct ibv_mw *mw);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
				    int comp_vector);
	int (*poll_cq)(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	void (*cq_event)(struct ibv_cq *cq);
	int (*resize_cq)(struct ibv_cq *cq, int cqe);
	int (*destroy_cq)(struct ibv_cq *cq);
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr);
	int (*modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask);
	int (*query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr);
	int (*destroy_srq)(struct ibv_srq *srq);
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
			     struct ibv_recv_wr **bad_recv_wr);
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
			struct ibv_qp_init_attr *init_attr);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
	int (*destroy_qp)(struct ibv_qp *qp);
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
	struct ibv_ah *(*create_ah)(struct ibv_pd *pd, struct ibv_ah_attr *attr);
	int (*destroy_ah)(struct ibv_ah *ah);
	int (*attach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
	int (*detach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
	void (*async_event)(struct ibv_async_event *event);
};

/* XRC, which came after the size of struct ibv_context_ops was frozen. */
struct ibv_more_ops {
	struct ibv_srq *(*create_xrc_srq)(struct ibv_pd *pd, struct ibv_xrc_domain *xrc_domain,
					  struct ibv_cq *xrc_cq, struct ibv_srq_init_attr *srq_init_attr);
	struct ibv_xrc_domain *(*open_xrc_domain)(struct ibv_context *context, int fd, int oflag);
	int (*close_xrc_domain)(struct ibv_xrc_domain *d);
	int (*create_xrc_rcv_qp)(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_qp_num);
	int (*modify_xrc_rcv_qp)(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
				 struct ibv_qp_attr *attr, int attr_mask);
	int (*query_xrc_rcv_qp)(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
				struct ibv_qp_attr *attr, int attr_mask,
				struct ibv_qp_init_attr *init_attr);
	int (*reg_xrc_rcv_qp)(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num);
	int (*unreg_xrc_rcv_qp)(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num);
};

/* An open device, from ibv_open_device(). Fields without a comment are the library's and the
 * provider's. */
struct ibv_context {
	struct ibv_device *device;
	struct ibv_context_ops ops;
	int cmd_fd;
	int async_fd;		/* readable when an asynchronous event waits; may be made non-blocking */
	int num_comp_vectors;
	pthread_mutex_t mutex;
	void *abi_compat;	/* the library's own */
	struct ibv_more_ops *more_ops;	/* the provider's; NULL: no XRC */
};

/*
 * Devices
 */

/* All RDMA devices that a provider drives, NULL-terminated; *num_devices (if not NULL) their number, 0 on
 * failure. No device is an empty list. ENOSYS: no verbs support in the kernel, or of an unknown version;
 * ENOMEM. Free the list with ibv_free_device_list(). */
struct ibv_device **ibv_get_device_list(int *num_devices);

/* Frees the list. The devices themselves stay valid. */
void ibv_free_device_list(struct ibv_device **list);

/* The name, as in "mlx4_0"; the device's own string. */
const char *ibv_get_device_name(struct ibv_device *device);

/* The node GUID in network order; 0 on failure. */
uint64_t ibv_get_device_guid(struct ibv_device *device);

/* A context of the device. errno from opening the device file (ENOENT, EACCES) or from the provider. */
struct ibv_context *ibv_open_device(struct ibv_device *device);

/* Closes the context; every object of it must have been destroyed. Always 0. */
int ibv_close_device(struct ibv_context *context);

/* Waits for an asynchronous event; -1 with errno on failure (EAGAIN on a non-blocking async_fd).
 * Each event must be acknowledged, or destroying its object waits for ever. */
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event);

/* Acknowledges an event that ibv_get_async_event() returned. */
void ibv_ack_async_event(struct ibv_async_event *event);

/* Fills device_attr; left as it is on failure. 0 or a positive errno. */
int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr);

/* port_num counts from 1; EINVAL otherwise. */
int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port_attr);

static inline int ___ibv_query_port(struct ibv_context *context, uint8_t port_num,
				    struct ibv_port_attr *port_attr)
{
	/* A provider from before these two fields leaves them alone. */
	port_attr->link_layer = IBV_LINK_LAYER_UNSPECIFIED;
	port_attr->pad = 0;

	return context->ops.query_port(context, port_num, port_attr);
}

#define ibv_query_port(context, port_num, port_attr) ___ibv_query_port(context, port_num, port_attr)

/* An entry of the port's GID table; -1 on failure, errno then being that of reading sysfs. */
int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid);

/* An entry of the port's P_Key table, network order; -1 on failure, as above. */
int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, uint16_t *pkey);

/*
 * Protection domains and memory regions
 */

/* A protection domain of the context. ENOMEM: no more of them. */
struct ibv_pd *ibv_alloc_pd(struct ibv_context *context);

/* EBUSY while something of it lives. */
int ibv_dealloc_pd(struct ibv_pd *pd);

/* Registers [addr, addr + length) with enum ibv_access_flags; local reading is always allowed. ENOMEM:
 * no memory, or the locked memory limit; EFAULT: not mapped. The memory stays the caller's. */
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);

/* Its keys are dead afterwards: requests that use them end in an error. EBUSY: memory windows
 * are bound to it. */
int ibv_dereg_mr(struct ibv_mr *mr);

/*
 * Completion channels and queues
 */

/* A channel for CQs of this context. EMFILE: too many descriptors are open. */
struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context);

/* EBUSY while a CQ uses it. */
int ibv_destroy_comp_channel(struct ibv_comp_channel *channel);

/* A CQ of at least cqe (> 0) entries. channel may be NULL; comp_vector in [0, context->num_comp_vectors). */
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector);

/* At least cqe entries from now on; not fewer than are waiting. ENOSYS: the provider cannot. */
int ibv_resize_cq(struct ibv_cq *cq, int cqe);

/* Waits until every event got for this CQ is acknowledged. */
int ibv_destroy_cq(struct ibv_cq *cq);

/* Waits for a completion event on the channel; -1 with errno on failure (EAGAIN on a non-blocking fd).
 * Each event must be acknowledged, or ibv_destroy_cq() waits for ever. */
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);

/* Acknowledges nevents events of the CQ: one call for many is cheaper. */
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);

/* Takes up to num_entries (>= 0) completions off the CQ into wc[]. Returns how many, or < 0. */
static inline int ibv_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return cq->context->ops.poll_cq(cq, num_entries, wc);
}

/* Asks for one event for the next completion that is added; solicited_only: or the next solicited or
 * failed one. */
static inline int ibv_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return cq->context->ops.req_notify_cq(cq, solicited_only);
}

/*
 * Shared receive queues
 */

/* Writes the granted sizes into srq_init_attr->attr. ENOSYS: the provider cannot. */
struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr);

/* An SRQ that remote XRC QPs address by its xrc_srq_num. Its completions go to xrc_cq. pd, xrc_domain and
 * xrc_cq must be of one context and stay busy while it lives. ENOSYS: the device has no XRC. */
struct ibv_srq *ibv_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *xrc_domain,
				   struct ibv_cq *xrc_cq, struct ibv_srq_init_attr *srq_init_attr);

/* Sets what srq_attr_mask (enum ibv_srq_attr_mask) names, or nothing. EINVAL: a value out of
 * range, an unknown bit, or a device that cannot resize (IBV_DEVICE_SRQ_RESIZE). */
int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask);

/* Fills srq_attr, srq_limit being 0 when none is armed. EIO, ENODEV: the device is gone. */
int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr);

/* Waits until every asynchronous event got for this SRQ is acknowledged. */
int ibv_destroy_srq(struct ibv_srq *srq);

/* Posts a list of receives. On failure (non-zero) *bad_recv_wr is the first that was not posted. */
static inline int ibv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
				    struct ibv_recv_wr **bad_recv_wr)
{
	return srq->context->ops.post_srq_recv(srq, recv_wr, bad_recv_wr);
}

/*
 * Queue pairs
 */

/* A QP in the RESET state. Writes the granted sizes into qp_init_attr->cap. */
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);

/* EINVAL: the transition is not valid, or attr_mask (enum ibv_qp_attr_mask) does not fit it. */
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);

/* Fills attr and init_attr; attr_mask says what is needed, more may be given. */
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr);

/* Waits until every asynchronous event got for this QP is acknowledged. */
int ibv_destroy_qp(struct ibv_qp *qp);

/* Posts a list of sends. On failure (non-zero) *bad_wr is the first that was not posted. */
static inline int ibv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	return qp->context->ops.post_send(qp, wr, bad_wr);
}

/* Posts a list of receives. On failure (non-zero) *bad_wr is the first that was not posted. */
static inline int ibv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return qp->context->ops.post_recv(qp, wr, bad_wr);
}

/*
 * Address handles and multicast
 */

/* An address handle for UD sends, of the attributes, which are copied. EINVAL: no such port, or
 * what an Ethernet port cannot reach; ENOMEM. */
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);

/* The way back to the sender of a UD message: fills ah_attr from the completion and, with IBV_WC_GRH in
 * wc->wc_flags, from the GRH in the buffer's first 40 bytes. Negative when the GRH's destination is no
 * GID of the port; ah_attr is then unchanged. */
int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *ah_attr);

/* Both steps in one. */
struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num);

/* Sends that use it must have completed. */
int ibv_destroy_ah(struct ibv_ah *ah);

/* The UD QP receives what is sent to the group; lid is the group's, host order. */
int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* Takes it out of the group again. EINVAL: it is not in it. */
int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/*
 * fork()
 */

/* Keeps registered memory away from fork()ed children, so that the parent's stays where the HCA looks for
 * it. To be called before any memory is registered: EINVAL when that is too late; ENOSYS: the kernel
 * cannot; ENOMEM. RDMAV_HUGEPAGES_SAFE in the environment makes it work with huge pages. */
int ibv_fork_init(void);

/*
 * Names of things; "unknown" for a value out of range. The strings are constants.
 */

/* "InfiniBand channel adapter" and the like. */
const char *ibv_node_type_str(enum ibv_node_type node_type);

/* "active" and the like. */
const char *ibv_port_state_str(enum ibv_port_state port_state);

/* A few words; event without IBV_XRC_QP_EVENT_FLAG. */
const char *ibv_event_type_str(enum ibv_event_type event);

/* "success", "transport retry counter exceeded" and the like. */
const char *ibv_wc_status_str(enum ibv_wc_status status);

/*
 * XRC: domains and receive QPs. On a device without IBV_DEVICE_XRC all of them fail with ENOSYS.
 */

/* Opens the XRC domain that belongs to the file (its inode) behind fd, which may be closed afterwards;
 * fd -1: a new domain of this context alone, with O_CREAT. oflag: O_CREAT makes the domain when
 * there is none (without it: EAGAIN); O_EXCL fails with EINVAL when there is one. EBADF: fd not open. */
struct ibv_xrc_domain *ibv_open_xrc_domain(struct ibv_context *context, int fd, int oflag);

/* EBUSY while this context has QPs, SRQs or registrations in the domain. */
int ibv_close_xrc_domain(struct ibv_xrc_domain *d);

/* A receive QP of the domain init_attr->xrc_domain (of init_attr only this and sq_sig_all matter), known by
 * its number *xrc_rcv_qpn to every process that has opened the domain. The caller is registered with it;
 * it lives until its last registration goes. EINVAL: no domain. errno is set as well. */
int ibv_create_xrc_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn);

/* As ibv_modify_qp(). EINVAL also when no receive QP of this domain has the number. */
int ibv_modify_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
			  struct ibv_qp_attr *attr, int attr_mask);

/* As ibv_query_qp(). */
int ibv_query_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
			 struct ibv_qp_attr *attr, int attr_mask, struct ibv_qp_init_attr *init_attr);

/* Registers this context: the QP stays alive for it and its events are delivered to it. Doing it again
 * changes nothing and succeeds. EINVAL: no such QP. errno is set as well. */
int ibv_reg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num);

/* Takes the registration back, however often it was made. EINVAL: not registered. errno is set as well. */
int ibv_unreg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num);

END_C_DECLS

#undef __attribute_const

#endif /* INFINIBAND_VERBS_H */
