// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The provider's objects and operations. Formats shared with the kernel are in
 * <rdma/rdma_user_rxe.h>. A ring's lock covers the indices that the user side writes; the kernel's
 * index needs none.
 */

#ifndef TESTS_KERNEL_RXE_H
#define TESTS_KERNEL_RXE_H

#include <infiniband/driver.h>
#include <rdma/rdma_user_rxe.h>
#include <stdbool.h>

#include "ring.h"

#define RXE_DRIVER_ABI 2

/* The formats as this provider counts on them. */
_Static_assert(sizeof(struct mminfo) == 16, "mminfo");
_Static_assert(sizeof(struct rxe_av) == 88, "address vector");
_Static_assert(sizeof(struct rxe_sge) == sizeof(struct ibv_sge),
	       "scatter/gather entries are copied as they are");
_Static_assert(offsetof(struct rxe_sge, lkey) == offsetof(struct ibv_sge, lkey),
	       "scatter/gather entries");
_Static_assert(sizeof(struct ibv_kern_wc) == 48, "CQ element");
_Static_assert(offsetof(struct ibv_create_qp_resp, reserved) == 28 &&
		       sizeof(struct ibv_create_qp_resp) == 32,
	       "driver answer of CREATE_QP");
_Static_assert(sizeof(struct ibv_create_srq_resp) == 16, "driver answer of CREATE_SRQ");

struct rxe_context {
	struct ibv_context ibv;
	bool ah_numbers; /* address handles by number: RXE_AH_NUMBERS in the environment */
};

struct rxe_cq {
	struct ibv_cq ibv;
	pthread_spinlock_t lock;
	struct rxe_ring ring;
};

struct rxe_srq {
	struct ibv_srq ibv;
	pthread_spinlock_t lock;
	struct rxe_ring ring;
	uint32_t max_sge;
};

struct rxe_qp {
	struct ibv_qp ibv;
	pthread_spinlock_t sq_lock;
	pthread_spinlock_t rq_lock;
	struct rxe_ring sq;
	struct rxe_ring rq; /* not mapped with an SRQ */
	uint32_t ssn;
	struct ibv_qp_cap cap;
	bool sq_sig_all;
};

struct rxe_ah {
	struct ibv_ah ibv;
	struct rxe_av av;
	uint32_t number; /* 0: every work request carries av */
};

/* ibv is the first member of each. */
static inline struct rxe_context *to_rxe_context(struct ibv_context *context)
{
	return (struct rxe_context *)context;
}

static inline struct rxe_cq *to_rxe_cq(struct ibv_cq *cq)
{
	return (struct rxe_cq *)cq;
}

static inline struct rxe_srq *to_rxe_srq(struct ibv_srq *srq)
{
	return (struct rxe_srq *)srq;
}

static inline struct rxe_qp *to_rxe_qp(struct ibv_qp *qp)
{
	return (struct rxe_qp *)qp;
}

static inline struct rxe_ah *to_rxe_ah(struct ibv_ah *ah)
{
	return (struct rxe_ah *)ah;
}

/*
 * Operations, as struct ibv_context_ops has them: NULL with errno, or a positive errno.
 */

struct ibv_cq *rxe_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
			     int comp_vector);
/*
 * After a failure with the new queue made but not mapped the CQ stays without one: polling it
 * returns -1.
 */
int rxe_resize_cq(struct ibv_cq *cq, int cqe);
int rxe_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int rxe_destroy_cq(struct ibv_cq *cq);

struct ibv_srq *rxe_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
/* As rxe_resize_cq(): posting to an SRQ without a queue returns EIO. */
int rxe_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask);
int rxe_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int rxe_destroy_srq(struct ibv_srq *srq);

struct ibv_qp *rxe_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int rxe_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr);
int rxe_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
int rxe_destroy_qp(struct ibv_qp *qp);

/* EINVAL: not in this state, or the request is wrong; ENOMEM: the queue is full. */
int rxe_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int rxe_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int rxe_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

struct ibv_ah *rxe_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int rxe_destroy_ah(struct ibv_ah *ah);

/*
 * XRC as every provider of this generation offers it; whether the kernel has it is the library's to
 * find out.
 */
extern struct ibv_more_ops rxe_more_ops;

#endif /* TESTS_KERNEL_RXE_H */
