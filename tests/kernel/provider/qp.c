// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue pairs: their making, their queues and their states. The kernel checks every transition. */

#include <errno.h>
#include <stdlib.h>

#include "rxe.h"

struct create_qp_resp {
	struct ibv_create_qp_resp core;
	struct rxe_create_qp_resp rxe;
};

_Static_assert(offsetof(struct create_qp_resp, rxe) == 32, "driver answer of CREATE_QP");

static size_t send_wqe_size(const struct ibv_qp_cap *cap)
{
	size_t sges = cap->max_send_sge * sizeof(struct rxe_sge);

	return sizeof(struct rxe_send_wqe) +
	       (sges > cap->max_inline_data ? sges : cap->max_inline_data);
}

static size_t recv_wqe_size(const struct ibv_qp_cap *cap)
{
	return sizeof(struct rxe_recv_wqe) + cap->max_recv_sge * sizeof(struct rxe_sge);
}

/* 0 or -errno; nothing is mapped then. */
static int map_rings(struct rxe_qp *qp, int fd, const struct rxe_create_qp_resp *resp,
		     const struct ibv_qp_init_attr *attr)
{
	int ret;

	if (!attr->srq) {
		ret = rxe_ring_map(&qp->rq, fd, &resp->rq_mi, recv_wqe_size(&attr->cap));
		if (ret)
			return ret;
	}

	ret = rxe_ring_map(&qp->sq, fd, &resp->sq_mi, send_wqe_size(&attr->cap));
	if (ret)
		rxe_ring_unmap(&qp->rq);
	return ret;
}

struct ibv_qp *rxe_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr granted = *attr;
	struct create_qp_resp resp;
	struct ibv_create_qp cmd;
	struct rxe_qp *qp;
	int ret;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	pthread_spin_init(&qp->sq_lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&qp->rq_lock, PTHREAD_PROCESS_PRIVATE);

	ret = ibv_cmd_create_qp(pd, &qp->ibv, &granted, &cmd, sizeof(cmd), &resp.core,
				sizeof(resp));
	if (ret)
		goto err_free;

	ret = -map_rings(qp, pd->context->cmd_fd, &resp.rxe, &granted);
	if (ret)
		goto err_destroy;

	qp->cap = attr->cap = granted.cap;
	qp->sq_sig_all = attr->sq_sig_all;
	return &qp->ibv;

err_destroy:
	/* As in rxe_create_cq(). */
	qp->ibv.context = pd->context;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	ibv_cmd_destroy_qp(&qp->ibv);
err_free:
	pthread_spin_destroy(&qp->rq_lock);
	pthread_spin_destroy(&qp->sq_lock);
	free(qp);
	errno = ret;
	return NULL;
}

int rxe_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_qp cmd;

	return ibv_cmd_query_qp(qp, attr, attr_mask, init_attr, &cmd, sizeof(cmd));
}

int rxe_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask)
{
	struct rxe_qp *qp = to_rxe_qp(ibv);
	struct ibv_modify_qp cmd;
	int ret;

	ret = ibv_cmd_modify_qp(ibv, attr, attr_mask, &cmd, sizeof(cmd));
	if (!ret && attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET) {
		/* The kernel empties the queues and counts from the beginning. */
		pthread_spin_lock(&qp->sq_lock);
		qp->ssn = 0;
		pthread_spin_unlock(&qp->sq_lock);
	}

	return ret;
}

int rxe_destroy_qp(struct ibv_qp *ibv)
{
	struct rxe_qp *qp = to_rxe_qp(ibv);
	int ret;

	ret = ibv_cmd_destroy_qp(ibv);
	if (ret)
		return ret;

	rxe_ring_unmap(&qp->sq);
	rxe_ring_unmap(&qp->rq);
	pthread_spin_destroy(&qp->rq_lock);
	pthread_spin_destroy(&qp->sq_lock);
	free(qp);
	return 0;
}
