// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The verbs as a program of libibverbs 1.0 saw them, as far as prog.h uses them. Each call is bound
 * to symbol version IBVERBS_1.0. Do not include <infiniband/verbs.h> as well: it has the same
 * names.
 */
#ifndef VERBS_1_0_H
#define VERBS_1_0_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum ibv_port_state { IBV_PORT_ACTIVE = 4 };
enum ibv_mtu { IBV_MTU_1024 = 3 };
enum ibv_qp_type { IBV_QPT_RC = 2, IBV_QPT_UC, IBV_QPT_UD };
enum ibv_qp_state { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
enum ibv_mig_state { IBV_MIG_MIGRATED };
enum ibv_access_flags { IBV_ACCESS_LOCAL_WRITE = 1, IBV_ACCESS_REMOTE_WRITE = 2 };
enum ibv_send_flags { IBV_SEND_SIGNALED = 2 };
enum ibv_wr_opcode { IBV_WR_SEND = 2 };
enum ibv_wc_status { IBV_WC_SUCCESS = 0 };
enum ibv_wc_opcode { IBV_WC_SEND = 0, IBV_WC_RECV = 128 };
enum ibv_qp_attr_mask {
	IBV_QP_STATE = 1 << 0,
	IBV_QP_ACCESS_FLAGS = 1 << 3,
	IBV_QP_PKEY_INDEX = 1 << 4,
	IBV_QP_PORT = 1 << 5,
	IBV_QP_AV = 1 << 7,
	IBV_QP_PATH_MTU = 1 << 8,
	IBV_QP_TIMEOUT = 1 << 9,
	IBV_QP_RETRY_CNT = 1 << 10,
	IBV_QP_RNR_RETRY = 1 << 11,
	IBV_QP_RQ_PSN = 1 << 12,
	IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	IBV_QP_MIN_RNR_TIMER = 1 << 15,
	IBV_QP_SQ_PSN = 1 << 16,
	IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	IBV_QP_DEST_QPN = 1 << 20,
};

union ibv_gid {
	uint8_t raw[16];
	struct {
		uint64_t subnet_prefix;
		uint64_t interface_id;
	} global;
};

/* Only its head and its size matter here. */
struct ibv_device_attr {
	char fw_ver[64];
	uint64_t node_guid;
	uint64_t others[19];
	uint16_t max_pkeys;
	uint8_t local_ca_ack_delay;
	uint8_t phys_port_cnt;
};

struct ibv_port_attr {
	enum ibv_port_state state;
	enum ibv_mtu max_mtu;
	enum ibv_mtu active_mtu;
	int gid_tbl_len;
	uint32_t port_cap_flags;
	uint32_t max_msg_sz;
	uint32_t bad_pkey_cntr;
	uint32_t qkey_viol_cntr;
	uint16_t pkey_tbl_len;
	uint16_t lid;
	uint16_t sm_lid;
	uint8_t lmc;
	uint8_t max_vl_num;
	uint8_t sm_sl;
	uint8_t subnet_timeout;
	uint8_t init_type_reply;
	uint8_t active_width;
	uint8_t active_speed;
	uint8_t phys_state;
};

struct ibv_wc {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t vendor_err;
	uint32_t byte_len;
	uint32_t imm_data;
	uint32_t qp_num;
	uint32_t src_qp;
	int wc_flags;
	uint16_t pkey_index;
	uint16_t slid;
	uint8_t sl;
	uint8_t dlid_path_bits;
};

struct ibv_global_route {
	union ibv_gid dgid;
	uint32_t flow_label;
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
};

struct ibv_ah_attr {
	struct ibv_global_route grh;
	uint16_t dlid;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t is_global;
	uint8_t port_num;
};

struct ibv_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
};

struct ibv_qp_attr {
	enum ibv_qp_state qp_state;
	enum ibv_qp_state cur_qp_state;
	enum ibv_mtu path_mtu;
	enum ibv_mig_state path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	int qp_access_flags;
	struct ibv_qp_cap cap;
	struct ibv_ah_attr ah_attr;
	struct ibv_ah_attr alt_ah_attr;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t alt_port_num;
	uint8_t alt_timeout;
};

struct ibv_srq_attr {
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t srq_limit;
};

struct ibv_srq_init_attr {
	void *srq_context;
	struct ibv_srq_attr attr;
};

struct ibv_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

struct ibv_device;
struct ibv_context;
struct ibv_cq;
struct ibv_qp;
struct ibv_srq;

struct ibv_send_wr {
	struct ibv_send_wr *next;
	uint64_t wr_id;
	struct ibv_sge *sg_list;
	int num_sge;
	enum ibv_wr_opcode opcode;
	int send_flags;
	uint32_t imm_data;
	union {
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
		} atomic;
	} wr;
};

struct ibv_recv_wr {
	struct ibv_recv_wr *next;
	uint64_t wr_id;
	struct ibv_sge *sg_list;
	int num_sge;
};

struct ibv_context_ops {
	void (*before_poll_cq[7])(void);
	int (*poll_cq)(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	void (*before_post_srq_recv[7])(void);
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			     struct ibv_recv_wr **bad_wr);
	void (*before_post_send[4])(void);
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
	void (*after_post_recv[4])(void);
};

struct ibv_context {
	struct ibv_device *device;
	struct ibv_context_ops ops;
	int cmd_fd;
	int async_fd;
	int num_comp_vectors;
};

struct ibv_comp_channel {
	int fd;
};

struct ibv_pd {
	struct ibv_context *context;
	uint32_t handle;
};

struct ibv_mr {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
};

struct ibv_cq {
	struct ibv_context *context;
	void *cq_context;
	uint32_t handle;
	int cqe;
};

struct ibv_srq {
	struct ibv_context *context;
	void *srq_context;
	struct ibv_pd *pd;
	uint32_t handle;
};

struct ibv_qp {
	struct ibv_context *context;
	void *qp_context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;
	uint32_t handle;
	uint32_t qp_num;
	enum ibv_qp_state state;
	enum ibv_qp_type qp_type;
};

struct ibv_ah {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t handle;
};

struct ibv_qp_init_attr {
	void *qp_context;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp_cap cap;
	enum ibv_qp_type qp_type;
	int sq_sig_all;
};

#ifdef __x86_64__
_Static_assert(sizeof(struct ibv_device_attr) == 232, "1.0 ABI");
_Static_assert(offsetof(struct ibv_device_attr, phys_port_cnt) == 227, "1.0 ABI");
_Static_assert(sizeof(struct ibv_context_ops) == 216, "1.0 ABI");
_Static_assert(offsetof(struct ibv_context_ops, poll_cq) == 56, "1.0 ABI");
_Static_assert(offsetof(struct ibv_context_ops, post_srq_recv) == 128, "1.0 ABI");
_Static_assert(offsetof(struct ibv_context_ops, post_send) == 168, "1.0 ABI");
_Static_assert(offsetof(struct ibv_context, async_fd) == 228, "1.0 ABI");
_Static_assert(offsetof(struct ibv_mr, lkey) == 20, "1.0 ABI");
_Static_assert(offsetof(struct ibv_qp, qp_num) == 52, "1.0 ABI");
_Static_assert(sizeof(struct ibv_qp_attr) == 136 && sizeof(struct ibv_port_attr) == 48, "1.0 ABI");
_Static_assert(sizeof(struct ibv_qp_init_attr) == 64 && sizeof(struct ibv_send_wr) == 72,
	       "1.0 ABI");
_Static_assert(sizeof(struct ibv_wc) == 48 && sizeof(struct ibv_srq_init_attr) == 24, "1.0 ABI");
#endif

#define V1_0(name) __asm__(".symver " #name ", " #name "@IBVERBS_1.0")

struct ibv_device **ibv_get_device_list(int *num);
void ibv_free_device_list(struct ibv_device **list);
const char *ibv_get_device_name(struct ibv_device *device);
uint64_t ibv_get_device_guid(struct ibv_device *device);
struct ibv_context *ibv_open_device(struct ibv_device *device);
int ibv_close_device(struct ibv_context *context);
int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr);
int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid);
int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, uint16_t *pkey);
struct ibv_pd *ibv_alloc_pd(struct ibv_context *context);
int ibv_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
int ibv_dereg_mr(struct ibv_mr *mr);
struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context);
int ibv_destroy_comp_channel(struct ibv_comp_channel *channel);
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector);
int ibv_resize_cq(struct ibv_cq *cq, int cqe);
int ibv_destroy_cq(struct ibv_cq *cq);
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);
struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int ibv_destroy_srq(struct ibv_srq *srq);
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init_attr);
int ibv_destroy_qp(struct ibv_qp *qp);
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int ibv_destroy_ah(struct ibv_ah *ah);

V1_0(ibv_get_device_list);
V1_0(ibv_free_device_list);
V1_0(ibv_get_device_name);
V1_0(ibv_get_device_guid);
V1_0(ibv_open_device);
V1_0(ibv_close_device);
V1_0(ibv_query_device);
V1_0(ibv_query_port);
V1_0(ibv_query_gid);
V1_0(ibv_query_pkey);
V1_0(ibv_alloc_pd);
V1_0(ibv_dealloc_pd);
V1_0(ibv_reg_mr);
V1_0(ibv_dereg_mr);
V1_0(ibv_create_comp_channel);
V1_0(ibv_destroy_comp_channel);
V1_0(ibv_create_cq);
V1_0(ibv_resize_cq);
V1_0(ibv_destroy_cq);
V1_0(ibv_get_cq_event);
V1_0(ibv_ack_cq_events);
V1_0(ibv_create_srq);
V1_0(ibv_modify_srq);
V1_0(ibv_query_srq);
V1_0(ibv_destroy_srq);
V1_0(ibv_create_qp);
V1_0(ibv_modify_qp);
V1_0(ibv_query_qp);
V1_0(ibv_destroy_qp);
V1_0(ibv_create_ah);
V1_0(ibv_destroy_ah);

static inline int ibv_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return cq->context->ops.poll_cq(cq, num_entries, wc);
}

static inline int ibv_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return cq->context->ops.req_notify_cq(cq, solicited_only);
}

static inline int ibv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
				    struct ibv_recv_wr **bad_wr)
{
	return srq->context->ops.post_srq_recv(srq, wr, bad_wr);
}

static inline int ibv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
				struct ibv_send_wr **bad_wr)
{
	return qp->context->ops.post_send(qp, wr, bad_wr);
}

static inline int ibv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
				struct ibv_recv_wr **bad_wr)
{
	return qp->context->ops.post_recv(qp, wr, bad_wr);
}

#endif
