// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues: we produce, the kernel consumes. The SRQ's lock covers the ring, its
 * replacement included.
 */

#include <errno.h>
#include <stdlib.h>

#include "rxe.h"

struct create_srq_resp {
	struct ibv_create_srq_resp core;
	struct rxe_create_srq_resp rxe;
};

struct modify_srq {
	struct ibv_modify_srq core;
	struct rxe_modify_srq_cmd rxe;
};

_Static_assert(offsetof(struct create_srq_resp, rxe) == 16, "driver answer of CREATE_SRQ");
_Static_assert(offsetof(struct modify_srq, rxe) == 24, "driver input of MODIFY_SRQ");

static size_t recv_wqe_size(uint32_t max_sge)
{
	return sizeof(struct rxe_recv_wqe) + max_sge * sizeof(struct rxe_sge);
}

struct ibv_srq *rxe_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr granted = *attr;
	struct create_srq_resp resp;
	struct ibv_create_srq cmd;
	struct rxe_srq *srq;
	int ret;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	pthread_spin_init(&srq->lock, PTHREAD_PROCESS_PRIVATE);

	ret = ibv_cmd_create_srq(pd, &srq->ibv, &granted, &cmd, sizeof(cmd), &resp.core,
				 sizeof(resp));
	if (ret)
		goto err_free;

	ret = -rxe_ring_map(&srq->ring, pd->context->cmd_fd, &resp.rxe.mi,
			    recv_wqe_size(granted.attr.max_sge));
	if (ret)
		goto err_destroy;

	srq->max_sge = granted.attr.max_sge;
	attr->attr.max_wr = granted.attr.max_wr;
	attr->attr.max_sge = granted.attr.max_sge;
	return &srq->ibv;

err_destroy:
	/* As in rxe_create_cq(). */
	srq->ibv.context = pd->context;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	ibv_cmd_destroy_srq(&srq->ibv);
err_free:
	pthread_spin_destroy(&srq->lock);
	free(srq);
	errno = ret;
	return NULL;
}

int rxe_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int attr_mask)
{
	struct rxe_srq *srq = to_rxe_srq(ibv);
	struct mminfo offer = {0};
	struct modify_srq cmd = {.rxe.mmap_info_addr = (uintptr_t)&offer};
	int ret;

	/* The kernel moves what is posted to a ring of the new size: nobody may post meanwhile. */
	pthread_spin_lock(&srq->lock);

	ret = ibv_cmd_modify_srq(ibv, attr, attr_mask, &cmd.core, sizeof(cmd));
	if (!ret && attr_mask & IBV_SRQ_MAX_WR) {
		rxe_ring_unmap(&srq->ring);
		ret = -rxe_ring_map(&srq->ring, ibv->context->cmd_fd, &offer,
				    recv_wqe_size(srq->max_sge));
	}

	pthread_spin_unlock(&srq->lock);
	return ret;
}

int rxe_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(srq, attr, &cmd, sizeof(cmd));
}

int rxe_destroy_srq(struct ibv_srq *ibv)
{
	struct rxe_srq *srq = to_rxe_srq(ibv);
	int ret;

	ret = ibv_cmd_destroy_srq(ibv);
	if (ret)
		return ret;

	rxe_ring_unmap(&srq->ring);
	pthread_spin_destroy(&srq->lock);
	free(srq);
	return 0;
}
