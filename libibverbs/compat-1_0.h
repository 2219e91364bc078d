// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The objects of the IBVERBS_1.0 ABI, which a program linked with libibverbs 1.0 reads through the
 * inline verbs of that version. Each is a shadow of a current object, to which its real_ member
 * points. Programs know the layout, so nothing here may move. Members of the library's own follow
 * the part that programs see.
 */
#ifndef IBVERBS_COMPAT_1_0_H
#define IBVERBS_COMPAT_1_0_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <infiniband/verbs.h>

struct ibv_context_1_0;
struct ibv_cq_1_0;
struct ibv_qp_1_0;
struct ibv_srq_1_0;
struct ibv_send_wr_1_0;
struct ibv_recv_wr_1_0;

struct ibv_device_1_0 {
	void *obsolete_sysfs_dev;
	void *obsolete_sysfs_ibdev;
	struct ibv_device *real_device;
	struct ibv_device_ops ops;
};

/*
 * Only the five operations that the inline verbs call have a prototype. Programs do not call the
 * others.
 */
struct ibv_context_ops_1_0 {
	void (*query_device)(void);
	void (*query_port)(void);
	void (*alloc_pd)(void);
	void (*dealloc_pd)(void);
	void (*reg_mr)(void);
	void (*dereg_mr)(void);
	void (*create_cq)(void);
	int (*poll_cq)(struct ibv_cq_1_0 *cq, int num_entries, struct ibv_wc *wc);
	int (*req_notify_cq)(struct ibv_cq_1_0 *cq, int solicited_only);
	void (*cq_event)(void);
	void (*resize_cq)(void);
	void (*destroy_cq)(void);
	void (*create_srq)(void);
	void (*modify_srq)(void);
	void (*query_srq)(void);
	void (*destroy_srq)(void);
	int (*post_srq_recv)(struct ibv_srq_1_0 *srq, struct ibv_recv_wr_1_0 *wr,
			     struct ibv_recv_wr_1_0 **bad_wr);
	void (*create_qp)(void);
	void (*query_qp)(void);
	void (*modify_qp)(void);
	void (*destroy_qp)(void);
	int (*post_send)(struct ibv_qp_1_0 *qp, struct ibv_send_wr_1_0 *wr,
			 struct ibv_send_wr_1_0 **bad_wr);
	int (*post_recv)(struct ibv_qp_1_0 *qp, struct ibv_recv_wr_1_0 *wr,
			 struct ibv_recv_wr_1_0 **bad_wr);
	void (*create_ah)(void);
	void (*destroy_ah)(void);
	void (*attach_mcast)(void);
	void (*detach_mcast)(void);
};

struct ibv_context_1_0 {
	struct ibv_device_1_0 *device;
	struct ibv_context_ops_1_0 ops;
	int cmd_fd;
	int async_fd;
	int num_comp_vectors;
	struct ibv_context *real_context;
};

struct ibv_comp_channel_1_0 {
	int fd;
};

struct ibv_pd_1_0 {
	struct ibv_context_1_0 *context;
	uint32_t handle;
	struct ibv_pd *real_pd;
};

struct ibv_mr_1_0 {
	struct ibv_context_1_0 *context;
	struct ibv_pd_1_0 *pd;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
	struct ibv_mr *real_mr;
};

/*
 * The mutexes, condition variables and counters below are unused: current objects count the events.
 */
struct ibv_cq_1_0 {
	struct ibv_context_1_0 *context;
	void *cq_context;
	uint32_t handle;
	int cqe;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint32_t comp_events_completed;
	uint32_t async_events_completed;
	struct ibv_cq *real_cq;
};

struct ibv_srq_1_0 {
	struct ibv_context_1_0 *context;
	void *srq_context;
	struct ibv_pd_1_0 *pd;
	uint32_t handle;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint32_t events_completed;
	struct ibv_srq *real_srq;
};

struct ibv_qp_1_0 {
	struct ibv_context_1_0 *context;
	void *qp_context;
	struct ibv_pd_1_0 *pd;
	struct ibv_cq_1_0 *send_cq;
	struct ibv_cq_1_0 *recv_cq;
	struct ibv_srq_1_0 *srq;
	uint32_t handle;
	uint32_t qp_num;
	enum ibv_qp_state state;
	enum ibv_qp_type qp_type;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint32_t events_completed;
	struct ibv_qp *real_qp;
};

struct ibv_ah_1_0 {
	struct ibv_context_1_0 *context;
	struct ibv_pd_1_0 *pd;
	uint32_t handle;
	struct ibv_ah *real_ah;
};

struct ibv_qp_init_attr_1_0 {
	void *qp_context;
	struct ibv_cq_1_0 *send_cq;
	struct ibv_cq_1_0 *recv_cq;
	struct ibv_srq_1_0 *srq;
	struct ibv_qp_cap cap;
	enum ibv_qp_type qp_type;
	int sq_sig_all;
};

struct ibv_send_wr_1_0 {
	struct ibv_send_wr_1_0 *next;
	uint64_t wr_id;
	struct ibv_sge *sg_list;
	int num_sge;
	enum ibv_wr_opcode opcode;
	int send_flags;
	uint32_t imm_data; /* network order */
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
		} atomic;
		struct {
			struct ibv_ah_1_0 *ah;
			uint32_t remote_qpn;
			uint32_t remote_qkey;
		} ud;
	} wr;
};

struct ibv_recv_wr_1_0 {
	struct ibv_recv_wr_1_0 *next;
	uint64_t wr_id;
	struct ibv_sge *sg_list;
	int num_sge;
};

#ifdef __x86_64__
_Static_assert(sizeof(struct ibv_device_1_0) == 40 &&
		       offsetof(struct ibv_device_1_0, real_device) == 16,
	       "1.0 ABI");
_Static_assert(sizeof(struct ibv_context_ops_1_0) == 216, "1.0 ABI");
_Static_assert(offsetof(struct ibv_context_ops_1_0, poll_cq) == 56, "1.0 ABI");
_Static_assert(offsetof(struct ibv_context_ops_1_0, req_notify_cq) == 64, "1.0 ABI");
_Static_assert(offsetof(struct ibv_context_ops_1_0, post_srq_recv) == 128, "1.0 ABI");
_Static_assert(offsetof(struct ibv_context_ops_1_0, post_send) == 168, "1.0 ABI");
_Static_assert(offsetof(struct ibv_context_ops_1_0, post_recv) == 176, "1.0 ABI");
_Static_assert(sizeof(struct ibv_context_1_0) == 248 &&
		       offsetof(struct ibv_context_1_0, cmd_fd) == 224,
	       "1.0 ABI");
_Static_assert(sizeof(struct ibv_pd_1_0) == 24 && offsetof(struct ibv_pd_1_0, handle) == 8,
	       "1.0 ABI");
_Static_assert(sizeof(struct ibv_mr_1_0) == 40 && offsetof(struct ibv_mr_1_0, lkey) == 20,
	       "1.0 ABI");
_Static_assert(sizeof(struct ibv_cq_1_0) == 128 && offsetof(struct ibv_cq_1_0, real_cq) == 120,
	       "1.0 ABI");
_Static_assert(sizeof(struct ibv_srq_1_0) == 136 && offsetof(struct ibv_srq_1_0, real_srq) == 128,
	       "1.0 ABI");
_Static_assert(sizeof(struct ibv_qp_1_0) == 168 && offsetof(struct ibv_qp_1_0, real_qp) == 160,
	       "1.0 ABI");
_Static_assert(sizeof(struct ibv_ah_1_0) == 32 && offsetof(struct ibv_ah_1_0, real_ah) == 24,
	       "1.0 ABI");
_Static_assert(sizeof(struct ibv_qp_init_attr_1_0) == 64, "1.0 ABI");
_Static_assert(sizeof(struct ibv_send_wr_1_0) == 72 && offsetof(struct ibv_send_wr_1_0, wr) == 40,
	       "1.0 ABI");
_Static_assert(sizeof(struct ibv_recv_wr_1_0) == 32 &&
		       offsetof(struct ibv_recv_wr_1_0, sg_list) == 16,
	       "1.0 ABI");
#endif

/* Sets the five operations that the inline verbs of 1.0 call. */
void compat_1_0_set_ops(struct ibv_context_ops_1_0 *ops);

#endif
