// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting work requests: each becomes an element of a ring. A send queue's doorbell is a POST_SEND
 * command without work requests; receive queues need none, until there is one to be flushed. The
 * lock of each ring covers filling it.
 */

#include <errno.h>
#include <string.h>

#include "rxe.h"

/* 0, or EINVAL when there are more bytes than one message can have. */
static int sum_lengths(const struct ibv_sge *sge, int num_sge, uint32_t *length)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < num_sge; ++i)
		sum += sge[i].length;
	if (sum > UINT32_MAX)
		return EINVAL;

	*length = sum;
	return 0;
}

static void fill_dma(struct rxe_dma_info *dma, uint32_t length, const struct ibv_sge *sge,
		     int num_sge)
{
	dma->length = dma->resid = length;
	dma->num_sge = num_sge;
	if (num_sge)
		memcpy(dma->sge, sge, num_sge * sizeof(*sge));
}

static void fill_inline(struct rxe_dma_info *dma, uint32_t length, const struct ibv_sge *sge,
			int num_sge)
{
	uint8_t *to = dma->inline_data;
	int i;

	dma->length = dma->resid = length;
	for (i = 0; i < num_sge; to += sge[i++].length)
		memcpy(to, (const void *)(uintptr_t)sge[i].addr, sge[i].length);
}

static void fill_ud(struct rxe_send_wr *to, const struct ibv_send_wr *wr)
{
	const struct rxe_ah *ah = to_rxe_ah(wr->wr.ud.ah);

	to->wr.ud.remote_qpn = wr->wr.ud.remote_qpn;
	to->wr.ud.remote_qkey = wr->wr.ud.remote_qkey;
	to->wr.ud.ah_num = ah->number;
	if (!ah->number)
		to->wr.ud.av = ah->av;
}

/*
 * Fills the part that the opcode and the type of the QP need. 0, or EINVAL for an opcode that the
 * type does not have.
 */
static int fill_operation(const struct rxe_qp *qp, struct rxe_send_wqe *wqe,
			  const struct ibv_send_wr *wr)
{
	struct rxe_send_wr *to = &wqe->wr;
	enum ibv_qp_type type = qp->ibv.qp_type;

	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_IMM:
		to->ex.imm_data = wr->imm_data;
		/* fall through */
	case IBV_WR_SEND:
		if (type == IBV_QPT_UD)
			fill_ud(to, wr);
		return 0;

	case IBV_WR_RDMA_WRITE_WITH_IMM:
		to->ex.imm_data = wr->imm_data;
		/* fall through */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		if (type == IBV_QPT_UD || (type == IBV_QPT_UC && wr->opcode == IBV_WR_RDMA_READ))
			return EINVAL;
		to->wr.rdma.remote_addr = wqe->iova = wr->wr.rdma.remote_addr;
		to->wr.rdma.rkey = wr->wr.rdma.rkey;
		return 0;

	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		if (type != IBV_QPT_RC)
			return EINVAL;
		to->wr.atomic.remote_addr = wqe->iova = wr->wr.atomic.remote_addr;
		to->wr.atomic.compare_add = wr->wr.atomic.compare_add;
		to->wr.atomic.swap = wr->wr.atomic.swap;
		to->wr.atomic.rkey = wr->wr.atomic.rkey;
		return 0;

	default:
		return EINVAL;
	}
}

static int post_one_send(struct rxe_qp *qp, const struct ibv_send_wr *wr)
{
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;
	struct rxe_send_wqe *wqe;
	uint32_t length;
	int ret;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
		return EINVAL;
	ret = sum_lengths(wr->sg_list, wr->num_sge, &length);
	if (ret)
		return ret;
	if (is_inline && length > qp->cap.max_inline_data)
		return EINVAL;

	wqe = ring_free_slot(&qp->sq);
	if (!wqe)
		return ENOMEM;

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr.wr_id = wr->wr_id;
	wqe->wr.opcode = wr->opcode;
	wqe->wr.send_flags = wr->send_flags;
	if (qp->sq_sig_all)
		wqe->wr.send_flags |= IBV_SEND_SIGNALED;
	ret = fill_operation(qp, wqe, wr);
	if (ret)
		return ret;

	if (is_inline)
		fill_inline(&wqe->dma, length, wr->sg_list, wr->num_sge);
	else
		fill_dma(&wqe->dma, length, wr->sg_list, wr->num_sge);

	wqe->ssn = qp->ssn++;
	ring_produce(&qp->sq);
	return 0;
}

int rxe_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct rxe_qp *qp = to_rxe_qp(ibv);
	struct ibv_send_wr *first = wr, *none;
	int ret = 0, doorbell = 0;

	*bad_wr = wr;
	if (ibv->state < IBV_QPS_RTS)
		return EINVAL;

	pthread_spin_lock(&qp->sq_lock);
	for (; wr; wr = wr->next) {
		ret = post_one_send(qp, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	pthread_spin_unlock(&qp->sq_lock);

	/* It fails only when the device is gone; then nothing that was posted will be done. */
	if (wr != first)
		doorbell = ibv_cmd_post_send(ibv, NULL, &none);
	if (doorbell)
		*bad_wr = first;

	return doorbell ? doorbell : ret;
}

/* ENOMEM: full. */
static int post_one_recv(struct rxe_ring *ring, uint32_t max_sge, const struct ibv_recv_wr *wr)
{
	struct rxe_recv_wqe *wqe;
	uint32_t length;
	int ret;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > max_sge)
		return EINVAL;
	ret = sum_lengths(wr->sg_list, wr->num_sge, &length);
	if (ret)
		return ret;

	wqe = ring_free_slot(ring);
	if (!wqe)
		return ENOMEM;

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = wr->wr_id;
	fill_dma(&wqe->dma, length, wr->sg_list, wr->num_sge);
	ring_produce(ring);
	return 0;
}

static int post_recvs(struct rxe_ring *ring, uint32_t max_sge, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad_wr)
{
	int ret;

	for (; wr; wr = wr->next) {
		ret = post_one_recv(ring, max_sge, wr);
		if (ret) {
			*bad_wr = wr;
			return ret;
		}
	}

	return 0;
}

/*
 * Nothing comes to a QP in error and makes the kernel look at its receive queue: entering the state
 * once more does.
 */
static void flush_recvs(struct ibv_qp *ibv)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_modify_qp cmd;

	ibv_cmd_modify_qp(ibv, &attr, IBV_QP_STATE, &cmd, sizeof(cmd));
}

int rxe_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct rxe_qp *qp = to_rxe_qp(ibv);
	int ret;

	*bad_wr = wr;
	if (ibv->srq || ibv->state == IBV_QPS_RESET)
		return EINVAL;

	pthread_spin_lock(&qp->rq_lock);
	ret = post_recvs(&qp->rq, qp->cap.max_recv_sge, wr, bad_wr);
	pthread_spin_unlock(&qp->rq_lock);

	if (ibv->state == IBV_QPS_ERR)
		flush_recvs(ibv);

	return ret;
}

int rxe_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct rxe_srq *srq = to_rxe_srq(ibv);
	int ret = EIO;

	*bad_wr = wr;
	pthread_spin_lock(&srq->lock);
	if (srq->ring.buf)
		ret = post_recvs(&srq->ring, srq->max_sge, wr, bad_wr);
	pthread_spin_unlock(&srq->lock);

	return ret;
}
