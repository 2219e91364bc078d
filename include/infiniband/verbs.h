// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The verbs API with the XRC extension, as applications compile it. All layouts and all slots of
 * the operation tables are frozen ABI: applications and provider plug-ins built years ago share
 * them. */

#ifndef INFINIBAND_VERBS_H
#define INFINIBAND_VERBS_H

#include <stdint.h>
#include <stddef.h>
#include <pthread.h>

#ifdef __cplusplus
#define BEGIN_C_DECLS extern "C" {
#define END_C_DECLS   }
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
 *  - a function that returns a pointer returns NULL on failure and sets errno;
 *  - a function that returns int returns 0 or a positive errno value;
 *  - GIDs, GUIDs, P_Keys and immediate data are in network byte order, all else in host order;
 *  - an object belongs to the program that created it until the matching destroy, dealloc, close or
 *    free succeeds. EBUSY from these means that other objects still refer to the object, and that
 *    nothing has changed;
 *  - threads may make all calls at the same time, but must not destroy an object that another
 *    thread uses;
 *  - if the kernel refuses a call, the call fails with the kernel's errno: EINVAL (a value, handle
 *    or transition is not valid), ENOMEM (often the limit of locked memory: see ulimit -l), ENOSYS
 *    (the device or the kernel does not support the call).
 */

/* A global identifier as on the wire: 16 bytes in network order. An IPv6 address has the same
 * form. */
union ibv_gid {
	uint8_t raw[16];
	struct {
		uint64_t subnet_prefix; /* network order */
		uint64_t interface_id;	/* network order */
	} global;
};

/* The kind of a device. UNKNOWN: sysfs has no node type or one that is not listed here. */
enum ibv_node_type {
	IBV_NODE_UNKNOWN = -1,
	IBV_NODE_CA = 1,
	IBV_NODE_SWITCH,
	IBV_NODE_ROUTER,
	IBV_NODE_RNIC
};

/* The transport of a device. RoCE counts as InfiniBand: see link_layer of the port. */
enum ibv_transport_type {
	IBV_TRANSPORT_UNKNOWN = -1,
	IBV_TRANSPORT_IB = 0,
	IBV_TRANSPORT_IWARP = 1
};

/* Capabilities of a device, in device_cap_flags. IBV_DEVICE_XRC: both the kernel driver and the
 * provider support XRC. */
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

/* The scope within which IBV_WR_ATOMIC_* operations are atomic. */
enum ibv_atomic_cap {
	IBV_ATOMIC_NONE, /* no atomics */
	IBV_ATOMIC_HCA,	 /* atomic among the QPs of this HCA only */
	IBV_ATOMIC_GLOB	 /* atomic with respect to the CPU too */
};

/* Identity and limits of a device, from ibv_query_device(). Each max_* is an upper bound on its
 * own: a combination may be granted less. ee, rdd, raw, fmr: features of few devices or none,
 * otherwise 0. */
struct ibv_device_attr {
	char fw_ver[64];	 /* text, NUL-terminated */
	uint64_t node_guid;	 /* network order */
	uint64_t sys_image_guid; /* network order */
	uint64_t max_mr_size;	 /* bytes */
	uint64_t page_size_cap;	 /* bit n set: pages of 2^n bytes */
	uint32_t vendor_id;
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	int max_qp;
	int max_qp_wr;
	int device_cap_flags; /* enum ibv_device_cap_flags */
	int max_sge;
	int max_sge_rd;
	int max_cq;
	int max_cqe;
	int max_mr;
	int max_pd;
	int max_qp_rd_atom; /* outstanding RDMA READs and atomics per QP, responder */
	int max_ee_rd_atom;
	int max_res_rd_atom;
	int max_qp_init_rd_atom; /* the same, requester */
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
	uint8_t local_ca_ack_delay; /* 4.096 us * 2^n */
	uint8_t phys_port_cnt;
};

/* Path MTU: the payload of a packet is at most 128 << value bytes. */
enum ibv_mtu {
	IBV_MTU_256 = 1,
	IBV_MTU_512 = 2,
	IBV_MTU_1024 = 3,
	IBV_MTU_2048 = 4,
	IBV_MTU_4096 = 5
};

/* The logical state of a port. Data flows only in ACTIVE, which a subnet manager sets. */
enum ibv_port_state {
	IBV_PORT_NOP = 0,
	IBV_PORT_DOWN = 1,
	IBV_PORT_INIT = 2,
	IBV_PORT_ARMED = 3,
	IBV_PORT_ACTIVE = 4,
	IBV_PORT_ACTIVE_DEFER = 5
};

/* The link layer of a port: link_layer of struct ibv_port_attr. */
enum {
	IBV_LINK_LAYER_UNSPECIFIED, /* the kernel does not report it: InfiniBand */
	IBV_LINK_LAYER_INFINIBAND,
	IBV_LINK_LAYER_ETHERNET
};

/* Attributes of a port, from ibv_query_port(). LIDs are in host order; 0: not assigned. */
struct ibv_port_attr {
	enum ibv_port_state state;
	enum ibv_mtu max_mtu;
	enum ibv_mtu active_mtu;
	int gid_tbl_len;
	uint32_t port_cap_flags;
	uint32_t max_msg_sz; /* bytes */
	uint32_t bad_pkey_cntr;
	uint32_t qkey_viol_cntr;
	uint16_t pkey_tbl_len;
	uint16_t lid;
	uint16_t sm_lid;
	uint8_t lmc;
	uint8_t max_vl_num; /* 1: VL0, 2: VL0-1, 3: VL0-3, 4: VL0-7, 5: VL0-14 */
	uint8_t sm_sl;
	uint8_t subnet_timeout; /* 4.096 us * 2^n */
	uint8_t init_type_reply;
	uint8_t active_width; /* 1: 1X, 2: 4X, 4: 8X, 8: 12X */
	uint8_t active_speed; /* 1: 2.5, 2: 5, 4: 10 Gbit/s per lane */
	uint8_t phys_state;
	uint8_t link_layer; /* IBV_LINK_LAYER_* */
	uint8_t pad;
};

/* Types of asynchronous events. The member of element that is set: cq for CQ_ERR; qp for QP_*,
 * COMM_EST, SQ_DRAINED and PATH_MIG*; srq for SRQ_*; none for DEVICE_FATAL; port_num for the
 * others. */
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

/*
 * Set in event_type if the event is about an XRC receive QP: element.xrc_qp_num is valid then.
 * ISO C has no such value in an enumeration; every compiler that builds this library does.
 */
__extension__ enum ibv_event_flags { IBV_XRC_QP_EVENT_FLAG = 0x80000000 };

/* An event from ibv_get_async_event(). The object in element exists at least until the program
 * acknowledges the event. */
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

/* The result of a work request; ibv_wc_status_str() describes it. An error moves the QP to
 * IBV_QPS_ERR. With UC and UD an error of a send mostly stops the send queue alone (IBV_QPS_SQE).
 * Requests that are still queued there complete with WR_FLUSH_ERR. */
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

/* The operation that has completed: a receive from IBV_WC_RECV on, else a send. */
enum ibv_wc_opcode {
	IBV_WC_SEND,
	IBV_WC_RDMA_WRITE,
	IBV_WC_RDMA_READ,
	IBV_WC_COMP_SWAP,
	IBV_WC_FETCH_ADD,
	IBV_WC_BIND_MW,
	IBV_WC_RECV = 1 << 7, /* set for all receives, so test opcode & IBV_WC_RECV */
	IBV_WC_RECV_RDMA_WITH_IMM
};

/* Flags of a receive completion, in wc_flags. */
enum ibv_wc_flags {
	IBV_WC_GRH = 1 << 0, /* UD: the first 40 bytes of the buffer hold a GRH */
	IBV_WC_WITH_IMM = 1 << 1
};

/* A completion. If status is not IBV_WC_SUCCESS, only wr_id, status, qp_num and vendor_err are
 * valid. */
struct ibv_wc {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t vendor_err;
	uint32_t byte_len; /* of receives, RDMA READs and atomics */
	uint32_t imm_data; /* network order; valid with IBV_WC_WITH_IMM */
	uint32_t qp_num;
	uint32_t src_qp; /* UD */
	int wc_flags;	 /* enum ibv_wc_flags */
	uint16_t pkey_index;
	uint16_t slid;		/* UD */
	uint8_t sl;		/* UD */
	uint8_t dlid_path_bits; /* UD */
};

/* Rights to a memory region. QPs use the REMOTE ones too. Local reading is always allowed. */
enum ibv_access_flags {
	IBV_ACCESS_LOCAL_WRITE = 1, /* needed with REMOTE_WRITE and REMOTE_ATOMIC */
	IBV_ACCESS_REMOTE_WRITE = 1 << 1,
	IBV_ACCESS_REMOTE_READ = 1 << 2,
	IBV_ACCESS_REMOTE_ATOMIC = 1 << 3,
	IBV_ACCESS_MW_BIND = 1 << 4
};

/* A protection domain. Memory regions, QPs, SRQs and address handles must be of the same domain to
 * be used together. */
struct ibv_pd {
	struct ibv_context *context;
	uint32_t handle;
};

/* A handle of an XRC domain. Processes share a domain if each of them opens it through the same
 * file. */
struct ibv_xrc_domain {
	struct ibv_context *context;
	uint32_t handle;
};

/* Flags for rereg_mr of the operation tables. No verb uses them. */
enum ibv_rereg_mr_flags {
	IBV_REREG_MR_CHANGE_TRANSLATION = 1 << 0,
	IBV_REREG_MR_CHANGE_PD = 1 << 1,
	IBV_REREG_MR_CHANGE_ACCESS = 1 << 2,
	IBV_REREG_MR_KEEP_VALID = 1 << 3
};

/* A memory region, from ibv_reg_mr(). addr and length are those that the program passed. The
 * program puts lkey into struct ibv_sge and sends rkey to its peer. Keys are opaque and in host
 * order. */
struct ibv_mr {
	struct ibv_context *context;
	struct ibv_pd *pd;
	void *addr;
	size_t length;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
};

/* For alloc_mw of the operation tables. No verb uses them. */
enum ibv_mw_type { IBV_MW_TYPE_1 = 1, IBV_MW_TYPE_2 = 2 };

/* A memory window, for the operation tables. No verb creates one. */
struct ibv_mw {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t rkey;
};

/* The route of a packet with a GRH: the destination GID, and the index of the source GID in the
 * port's GID table. */
struct ibv_global_route {
	union ibv_gid dgid;
	uint32_t flow_label; /* 20 bits */
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
};

/* A GRH as on the wire: all fields are in network order. */
struct ibv_grh {
	uint32_t version_tclass_flow;
	uint16_t paylen;
	uint8_t next_hdr;
	uint8_t hop_limit;
	union ibv_gid sgid;
	union ibv_gid dgid;
};

/* The static rate of a path to a port that is slower than the sender. Values are those on the wire;
 * MAX: no limit. */
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

/* A rate as a multiple of 2.5 Gbit/s (2 for IBV_RATE_5_GBPS). -1 for IBV_RATE_MAX and for an
 * unknown value. */
int ibv_rate_to_mult(enum ibv_rate rate) __attribute_const;

/* The inverse. IBV_RATE_MAX if no rate is this multiple. */
enum ibv_rate mult_to_ibv_rate(int mult) __attribute_const;

/* An address: the destination LID in host order and the path to it, and with is_global also grh. An
 * Ethernet port uses grh only, and is_global must be set. */
struct ibv_ah_attr {
	struct ibv_global_route grh; /* with is_global */
	uint16_t dlid;
	uint8_t sl; /* 0-15 */
	uint8_t src_path_bits;
	uint8_t static_rate; /* enum ibv_rate */
	uint8_t is_global;
	uint8_t port_num; /* from 1 */
};

/* The members of struct ibv_srq_attr that ibv_modify_srq() sets. */
enum ibv_srq_attr_mask { IBV_SRQ_MAX_WR = 1 << 0, IBV_SRQ_LIMIT = 1 << 1 };

/* Sizes of an SRQ (receives, scatter entries of each), and its limit. */
struct ibv_srq_attr {
	uint32_t max_wr;
	uint32_t max_sge;
	/* Fewer receives left: IBV_EVENT_SRQ_LIMIT_REACHED, once. 0: never. */
	uint32_t srq_limit;
};

/* For ibv_create_srq() and ibv_create_xrc_srq(). The library copies srq_context, which is the
 * program's own, to the SRQ. */
struct ibv_srq_init_attr {
	void *srq_context;
	struct ibv_srq_attr attr; /* on success max_wr and max_sge are the granted sizes */
};

/* The transport of a QP. IBV_QPT_XRC is a send QP; ibv_create_xrc_rcv_qp() creates receive QPs. */
enum ibv_qp_type { IBV_QPT_RC = 2, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC, IBV_QPT_RAW_ETH = 8 };

/* Sizes of a QP's queues: outstanding requests, and scatter/gather entries per request. 0 is
 * valid. */
struct ibv_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data; /* bytes */
};

/* For ibv_create_qp(). The library copies qp_context, which is the program's own, to the QP. */
struct ibv_qp_init_attr {
	void *qp_context;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;   /* NULL: the QP has a receive queue. Must be NULL for XRC */
	struct ibv_qp_cap cap; /* on success the granted sizes */
	enum ibv_qp_type qp_type;
	int sq_sig_all;			   /* not 0: all sends generate completions */
	struct ibv_xrc_domain *xrc_domain; /* for XRC; not read for other types */
};

/* The members of struct ibv_qp_attr that are valid. ibv_modify_qp(3) lists the attributes that each
 * transition requires and allows. */
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

/* RESET, INIT (receives may be posted), RTR (the QP receives), RTS (and sends), SQD (the send queue
 * is drained), SQE (the send queue has failed; not RC), ERR (all requests are flushed). */
enum ibv_qp_state {
	IBV_QPS_RESET,
	IBV_QPS_INIT,
	IBV_QPS_RTR,
	IBV_QPS_RTS,
	IBV_QPS_SQD,
	IBV_QPS_SQE,
	IBV_QPS_ERR
};

/* Automatic path migration. MIGRATED: the QP uses the current path; REARM: the program requests an
 * alternate path; ARMED: the alternate path is ready. */
enum ibv_mig_state { IBV_MIG_MIGRATED, IBV_MIG_REARM, IBV_MIG_ARMED };

/* For ibv_modify_qp(), which reads only the members in the mask, and ibv_query_qp(). PSNs and QP
 * numbers are in host order. */
struct ibv_qp_attr {
	enum ibv_qp_state qp_state;
	enum ibv_qp_state cur_qp_state;
	enum ibv_mtu path_mtu;
	enum ibv_mig_state path_mig_state;
	uint32_t qkey;	      /* UD */
	uint32_t rq_psn;      /* 24 bits */
	uint32_t sq_psn;      /* 24 bits */
	uint32_t dest_qp_num; /* 24 bits */
	int qp_access_flags;  /* the remote ones of enum ibv_access_flags */
	struct ibv_qp_cap cap;
	struct ibv_ah_attr ah_attr;
	struct ibv_ah_attr alt_ah_attr;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;	    /* outstanding READs and atomics, as requester */
	uint8_t max_dest_rd_atomic; /* the same, as responder */
	uint8_t min_rnr_timer;	    /* 0-31: code of the delay that an RNR NAK demands */
	uint8_t port_num;	    /* from 1 */
	uint8_t timeout;	    /* 4.096 us * 2^n, 0-31; 0: no timeout */
	uint8_t retry_cnt;	    /* 0-7 */
	uint8_t rnr_retry;	    /* 0-7; 7: without limit */
	uint8_t alt_port_num;
	uint8_t alt_timeout;
};

/* The operation of a send request. UD supports SEND only; UC neither RDMA READ nor atomics.
 * Operations with _WITH_IMM consume a receive of the peer. */
enum ibv_wr_opcode {
	IBV_WR_RDMA_WRITE,
	IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_SEND,
	IBV_WR_SEND_WITH_IMM,
	IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_CMP_AND_SWP,
	IBV_WR_ATOMIC_FETCH_AND_ADD
};

/* FENCE: the request starts after all earlier RDMA READs and atomics are complete. SIGNALED: the
 * request generates a completion. SOLICITED: the receiver gets a completion event even if it asked
 * for solicited ones only. INLINE: the post copies the data and does not check lkey. */
enum ibv_send_flags {
	IBV_SEND_FENCE = 1 << 0,
	IBV_SEND_SIGNALED = 1 << 1,
	IBV_SEND_SOLICITED = 1 << 2,
	IBV_SEND_INLINE = 1 << 3
};

/* A piece of registered memory. The device may use it until the request has completed. */
struct ibv_sge {
	uint64_t addr;
	uint32_t length; /* bytes */
	uint32_t lkey;
};

/* A send request. The post reads the list; the program may reuse it afterwards. */
struct ibv_send_wr {
	uint64_t wr_id;
	struct ibv_send_wr *next;
	struct ibv_sge *sg_list;
	int num_sge;
	enum ibv_wr_opcode opcode;
	int send_flags;	   /* enum ibv_send_flags */
	uint32_t imm_data; /* network order */
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr; /* must be a multiple of 8 */
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
	uint32_t xrc_remote_srq_num; /* for XRC; not read for other types */
};

/* A receive request: a buffer for one message. A UD message begins with 40 bytes for the GRH. The
 * post reads the list; the program may reuse it afterwards. */
struct ibv_recv_wr {
	uint64_t wr_id;
	struct ibv_recv_wr *next;
	struct ibv_sge *sg_list;
	int num_sge;
};

/* For bind_mw of the operation tables. No verb uses it. */
struct ibv_mw_bind {
	uint64_t wr_id;
	struct ibv_mr *mr;
	void *addr;
	size_t length;
	int send_flags;
	int mw_access_flags;
};

/* A shared receive queue. The library or the provider allocates and frees it, like all objects
 * below: programs may read them, but must not write or copy them. */
struct ibv_srq {
	struct ibv_context *context;
	void *srq_context;
	struct ibv_pd *pd;
	uint32_t handle;

	uint32_t events_completed; /* mutex, cond and this are the library's own */

	uint32_t xrc_srq_num; /* for xrc_remote_srq_num of senders; 0: not an XRC SRQ */
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
	enum ibv_qp_state state; /* last set or queried through this object */
	enum ibv_qp_type qp_type;

	uint32_t events_completed; /* mutex, cond and this are the library's own */

	struct ibv_xrc_domain *xrc_domain;

	pthread_mutex_t mutex;
	pthread_cond_t cond;
};

/* A channel for the completion events of any number of CQs. fd is readable while an event waits. */
struct ibv_comp_channel {
	struct ibv_context *context;
	int fd; /* programs may poll it and make it non-blocking */
	int refcnt;
};

/* A completion queue. */
struct ibv_cq {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	void *cq_context;
	uint32_t handle;
	int cqe; /* capacity in CQEs */

	uint32_t comp_events_completed; /* mutex, cond and these two are the library's own */
	uint32_t async_events_completed;

	pthread_mutex_t mutex;
	pthread_cond_t cond;
};

/* An address handle: the destination of UD messages. */
struct ibv_ah {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t handle;
};

struct ibv_device;
struct ibv_context;

/* A provider's functions to open and close its device: see ibv_driver_init_func in driver.h. */
struct ibv_device_ops {
	struct ibv_context *(*alloc_context)(struct ibv_device *device, int cmd_fd);
	void (*free_context)(struct ibv_context *context);
};

/* Sizes in bytes of the names and paths below, with the final NUL. */
enum { IBV_SYSFS_NAME_MAX = 64, IBV_SYSFS_PATH_MAX = 256 };

/* A device from ibv_get_device_list(). It belongs to the library, which keeps it until the process
 * ends. Read-only. */
struct ibv_device {
	struct ibv_device_ops ops;
	enum ibv_node_type node_type;
	enum ibv_transport_type transport_type;
	char name[IBV_SYSFS_NAME_MAX];	     /* of the RDMA device: "mlx4_0" */
	char dev_name[IBV_SYSFS_NAME_MAX];   /* of the device file: "uverbs0" */
	char dev_path[IBV_SYSFS_PATH_MAX];   /* of the device file in sysfs */
	char ibdev_path[IBV_SYSFS_PATH_MAX]; /* of the RDMA device in sysfs */
};

/* The operations of a provider. NULL: not supported; the verb then fails with ENOSYS. Each
 * operation returns what its verb returns. The library sets its own members of the objects
 * (context, pd, mutex and so on). */
struct ibv_context_ops {
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *device_attr);
	int (*query_port)(struct ibv_context *context, uint8_t port_num,
			  struct ibv_port_attr *port_attr);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access);
	struct ibv_mr *(*rereg_mr)(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
				   size_t length, int access);
	int (*dereg_mr)(struct ibv_mr *mr);
	struct ibv_mw *(*alloc_mw)(struct ibv_pd *pd, enum ibv_mw_type type);
	int (*bind_mw)(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind);
	int (*dealloc_mw)(struct ibv_mw *mw);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe,
				    struct ibv_comp_channel *channel, int comp_vector);
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

/* XRC operations. They have a table of their own because the size of struct ibv_context_ops was
 * already frozen. */
struct ibv_more_ops {
	struct ibv_srq *(*create_xrc_srq)(struct ibv_pd *pd, struct ibv_xrc_domain *xrc_domain,
					  struct ibv_cq *xrc_cq,
					  struct ibv_srq_init_attr *srq_init_attr);
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

/* An open device, from ibv_open_device(). Members without a comment are for the library and the
 * provider. */
struct ibv_context {
	struct ibv_device *device;
	struct ibv_context_ops ops;
	int cmd_fd;
	int async_fd; /* readable while an event waits; may be made non-blocking */
	int num_comp_vectors;
	pthread_mutex_t mutex;
	void *abi_compat;	       /* the library's own */
	struct ibv_more_ops *more_ops; /* the provider sets it; NULL: no XRC */
};

/*
 * Devices
 */

/* Returns a NULL-terminated array of all RDMA devices for which there is a provider; free it with
 * ibv_free_device_list(). *num_devices (unless NULL) becomes their number, or 0 on failure. If
 * there is no device, the array is empty. ENOSYS: the kernel has no verbs, or an unsupported ABI
 * version; ENOMEM. */
struct ibv_device **ibv_get_device_list(int *num_devices);

/* Frees the array. The devices remain valid. */
void ibv_free_device_list(struct ibv_device **list);

/* Returns the name, such as "mlx4_0". The string belongs to the device. */
const char *ibv_get_device_name(struct ibv_device *device);

/* Returns the node GUID in network order, or 0 on failure. */
uint64_t ibv_get_device_guid(struct ibv_device *device);

/* Opens a context of the device. errno is that of open() on the device file (ENOENT, EACCES), or
 * the provider's. */
struct ibv_context *ibv_open_device(struct ibv_device *device);

/* Closes the context. The program must have destroyed all of its objects. Returns 0. */
int ibv_close_device(struct ibv_context *context);

/* Waits for an asynchronous event. Returns -1 and sets errno on failure (EAGAIN: async_fd is
 * non-blocking and there is no event; EINTR). The program must acknowledge each event; otherwise
 * the destroy call for its object never returns. */
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event);

/* Acknowledges an event that ibv_get_async_event() returned. */
void ibv_ack_async_event(struct ibv_async_event *event);

/* Fills device_attr, which is unchanged on failure. */
int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr);

/* Fills port_attr. port_num counts from 1. EINVAL: there is no such port. */
int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port_attr);

static inline int ___ibv_query_port(struct ibv_context *context, uint8_t port_num,
				    struct ibv_port_attr *port_attr)
{
	/* A provider that is older than these two members does not set them. */
	port_attr->link_layer = IBV_LINK_LAYER_UNSPECIFIED;
	port_attr->pad = 0;

	return context->ops.query_port(context, port_num, port_attr);
}

#define ibv_query_port(context, port_num, port_attr) ___ibv_query_port(context, port_num, port_attr)

/* Reads an entry of the port's GID table from sysfs. Returns -1 and sets errno on failure. ENOENT:
 * no such port or index. */
int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid);

/* Reads an entry of the port's P_Key table, in network order. Failures are those of
 * ibv_query_gid(). */
int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, uint16_t *pkey);

/*
 * Protection domains and memory regions
 */

/* Allocates a protection domain. ENOMEM: memory or the device's protection domains have run out. */
struct ibv_pd *ibv_alloc_pd(struct ibv_context *context);

/* EBUSY: an object in the domain exists. */
int ibv_dealloc_pd(struct ibv_pd *pd);

/* Registers [addr, addr + length) with access, of enum ibv_access_flags. The memory still belongs
 * to the program. ENOMEM: the limit of locked memory, or no memory; EFAULT: part of it is not
 * mapped or not writable; EINVAL: remote writing or atomics without local writing. */
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);

/* Ends the registration. Requests that still use its keys fail. EBUSY: memory windows are bound to
 * it. */
int ibv_dereg_mr(struct ibv_mr *mr);

/*
 * Completion channels and queues
 */

/* Creates a channel for CQs of this context. EMFILE: too many descriptors are open; ENOMEM. */
struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context);

/* EBUSY: a CQ uses the channel. */
int ibv_destroy_comp_channel(struct ibv_comp_channel *channel);

/* Creates a CQ with room for at least cqe CQEs. channel may be NULL. comp_vector is in [0,
 * context->num_comp_vectors). EINVAL: cqe is not in [1, max_cqe], or channel is of another context;
 * ENOMEM. */
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector);

/* Makes room for at least cqe CQEs. EINVAL: more CQEs than that wait, or cqe is not in [1,
 * max_cqe]; ENOSYS. */
int ibv_resize_cq(struct ibv_cq *cq, int cqe);

/* Waits until the program has acknowledged all events that it got for the CQ. EBUSY: a QP or SRQ
 * uses the CQ. */
int ibv_destroy_cq(struct ibv_cq *cq);

/* Waits for a completion event on the channel. Returns -1 and sets errno on failure (EAGAIN: fd is
 * non-blocking and there is no event; EINTR). The program must acknowledge each event; otherwise
 * ibv_destroy_cq() never returns. */
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);

/* Acknowledges nevents events of the CQ. One call for many events is cheaper than many calls. */
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);

/* Moves up to num_entries (>= 0) completions from the CQ to wc[]. Returns their number, or a
 * negative value on failure. */
static inline int ibv_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return cq->context->ops.poll_cq(cq, num_entries, wc);
}

/* Requests one event for the next CQE; with solicited_only for the next that is solicited or
 * failed. CQEs that are in the CQ already generate no event: poll after the request. */
static inline int ibv_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return cq->context->ops.req_notify_cq(cq, solicited_only);
}

/*
 * Shared receive queues
 */

/* Creates an SRQ and writes the granted sizes to srq_init_attr->attr. EINVAL: a size exceeds the
 * device's limit; ENOMEM; ENOSYS. */
struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr);

/* Creates an SRQ that remote XRC QPs address by its xrc_srq_num. Its completions go to xrc_cq. pd,
 * xrc_domain and xrc_cq must be of the same context; they cannot be freed while the SRQ exists.
 * ENOSYS: no XRC. */
struct ibv_srq *ibv_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *xrc_domain,
				   struct ibv_cq *xrc_cq, struct ibv_srq_init_attr *srq_init_attr);

/* Sets the members in srq_attr_mask (enum ibv_srq_attr_mask); on failure none of them. EINVAL: a
 * value is out of range, a bit is unknown, or the device cannot resize SRQs
 * (IBV_DEVICE_SRQ_RESIZE). */
int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask);

/* Fills srq_attr. srq_limit is 0 if the limit is not armed. EIO, ENODEV: the device is gone. */
int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr);

/* Waits until the program has acknowledged all events that it got for the SRQ. EBUSY: a QP uses the
 * SRQ. */
int ibv_destroy_srq(struct ibv_srq *srq);

/* Posts a list of receives. On failure (not 0) *bad_recv_wr is the first request that was not
 * posted. */
static inline int ibv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
				    struct ibv_recv_wr **bad_recv_wr)
{
	return srq->context->ops.post_srq_recv(srq, recv_wr, bad_recv_wr);
}

/*
 * Queue pairs
 */

/* Creates a QP in state RESET and writes the granted sizes to qp_init_attr->cap. EINVAL: a CQ is
 * missing, a size exceeds the device's limit, or the type is unknown; for XRC also: no domain, or
 * an SRQ. ENOMEM; ENOSYS: no XRC. */
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);

/* EINVAL: attr_mask (enum ibv_qp_attr_mask) does not fit a valid transition, or a value is out of
 * range. */
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);

/* Fills attr and init_attr. attr_mask names the members that the program needs; the device may
 * return more. */
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr);

/* Waits until the program has acknowledged all events that it got for the QP. EBUSY: the QP is in a
 * multicast group. */
int ibv_destroy_qp(struct ibv_qp *qp);

/* Posts a list of sends. On failure (not 0) *bad_wr is the first request that was not posted. */
static inline int ibv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
				struct ibv_send_wr **bad_wr)
{
	return qp->context->ops.post_send(qp, wr, bad_wr);
}

/* Posts a list of receives. On failure (not 0) *bad_wr is the first request that was not posted. */
static inline int ibv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
				struct ibv_recv_wr **bad_wr)
{
	return qp->context->ops.post_recv(qp, wr, bad_wr);
}

/*
 * Address handles and multicast
 */

/* Creates an address handle for UD sends from a copy of attr. EINVAL: no such port, or an address
 * that an Ethernet port cannot reach; ENOMEM. */
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);

/* Computes the address of a UD message's sender from its completion and, if wc->wc_flags has
 * IBV_WC_GRH, from the GRH in the first 40 bytes of the buffer. Returns a negative value if the
 * destination of the GRH is not a GID of the port; ah_attr is unchanged then. */
int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *ah_attr);

/* ibv_init_ah_from_wc(), then ibv_create_ah(). */
struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num);

/* All sends that use the handle must have completed. */
int ibv_destroy_ah(struct ibv_ah *ah);

/* Makes the UD QP receive messages to the group. lid is the group's, in host order. */
int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* Ends what ibv_attach_mcast() began. EINVAL: the QP is not in the group. */
int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/*
 * fork()
 */

/* Keeps registered memory out of children that fork() makes, so that the parent's stays at the
 * physical addresses that the HCA uses. Call it before any memory is registered. EINVAL: memory has
 * been registered already; ENOSYS: the kernel does not support it; ENOMEM. For huge pages,
 * RDMAV_HUGEPAGES_SAFE must be in the environment. */
int ibv_fork_init(void);

/*
 * Names of values; "unknown" for a value out of range. The strings are constant.
 */

/* "InfiniBand channel adapter" and the like. */
const char *ibv_node_type_str(enum ibv_node_type node_type);

/* "active" and the like. */
const char *ibv_port_state_str(enum ibv_port_state port_state);

/* A short description. event must not contain IBV_XRC_QP_EVENT_FLAG. */
const char *ibv_event_type_str(enum ibv_event_type event);

/* "success", "transport retry counter exceeded" and the like. */
const char *ibv_wc_status_str(enum ibv_wc_status status);

/*
 * XRC: domains and receive QPs. On a device without IBV_DEVICE_XRC all calls fail with ENOSYS.
 */

/* Opens the XRC domain of the file (inode) behind fd; the program may then close fd. With fd -1 and
 * O_CREAT it creates a domain for this context alone. oflag: O_CREAT creates the domain if the file
 * has none (without it: EAGAIN); with O_EXCL the call fails with EINVAL if the file has one. EBADF:
 * fd is not open. */
struct ibv_xrc_domain *ibv_open_xrc_domain(struct ibv_context *context, int fd, int oflag);

/* EBUSY: this context has QPs, SRQs or registrations in the domain. */
int ibv_close_xrc_domain(struct ibv_xrc_domain *d);

/* Creates a receive QP in init_attr->xrc_domain and registers this context with it. Of init_attr
 * only xrc_domain and sq_sig_all are used. All processes that have opened the domain refer to the
 * QP by the number *xrc_rcv_qpn. The QP exists as long as a context is registered with it. EINVAL:
 * no domain. Sets errno too. */
int ibv_create_xrc_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn);

/* As ibv_modify_qp(). EINVAL also if the domain has no receive QP with this number. */
int ibv_modify_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
			  struct ibv_qp_attr *attr, int attr_mask);

/* As ibv_query_qp(). */
int ibv_query_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
			 struct ibv_qp_attr *attr, int attr_mask,
			 struct ibv_qp_init_attr *init_attr);

/* Registers this context with the QP: the QP exists as long as the registration, and the context
 * gets its events. To register again has no effect and succeeds. EINVAL: no such QP. Sets errno
 * too. */
int ibv_reg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num);

/* Ends the registration, however often the program has made it. EINVAL: not registered. Sets errno
 * too. */
int ibv_unreg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num);

END_C_DECLS

#undef __attribute_const

#endif /* INFINIBAND_VERBS_H */
