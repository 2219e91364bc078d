// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queue entries become work completions. Under the CQ's lock, which also guards the tails of the queues that
 * complete here; an SRQ's lock is taken inside it. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include "mlx4.h"

struct wc_kind {
	uint32_t opcode;
	uint32_t flags;
};

enum byte_len { LEN_NONE, LEN_CQE, LEN_ATOMIC };

/* An opcode that no send has is reported as a send. */
static const struct wc_kind send_kinds[MLX4_CQE_OPCODE_MASK + 1] = {
	[MLX4_OPCODE_SEND] = { IBV_WC_SEND, 0 },
	[MLX4_OPCODE_SEND_IMM] = { IBV_WC_SEND, IBV_WC_WITH_IMM },
	[MLX4_OPCODE_RDMA_WRITE] = { IBV_WC_RDMA_WRITE, 0 },
	[MLX4_OPCODE_RDMA_WRITE_IMM] = { IBV_WC_RDMA_WRITE, IBV_WC_WITH_IMM },
	[MLX4_OPCODE_RDMA_READ] = { IBV_WC_RDMA_READ, 0 },
	[MLX4_OPCODE_ATOMIC_CS] = { IBV_WC_COMP_SWAP, 0 },
	[MLX4_OPCODE_ATOMIC_FA] = { IBV_WC_FETCH_ADD, 0 },
	[MLX4_OPCODE_BIND_MW] = { IBV_WC_BIND_MW, 0 },
};

static const struct wc_kind recv_kinds[4] = {
	[MLX4_CQE_RECV_RDMA_WRITE_IMM] = { IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM },
	[MLX4_CQE_RECV_SEND] = { IBV_WC_RECV, 0 },
	[MLX4_CQE_RECV_SEND_IMM] = { IBV_WC_RECV, IBV_WC_WITH_IMM },
	[MLX4_CQE_RECV_SEND_INVAL] = { IBV_WC_RECV, 0 },
};

static enum ibv_wc_status wc_status(uint8_t syndrome)
{
	switch (syndrome) {
	case MLX4_SYNDROME_LOC_LEN:
		return IBV_WC_LOC_LEN_ERR;
	case MLX4_SYNDROME_LOC_QP_OP:
		return IBV_WC_LOC_QP_OP_ERR;
	case MLX4_SYNDROME_LOC_PROT:
		return IBV_WC_LOC_PROT_ERR;
	case MLX4_SYNDROME_WR_FLUSH:
		return IBV_WC_WR_FLUSH_ERR;
	case MLX4_SYNDROME_MW_BIND:
		return IBV_WC_MW_BIND_ERR;
	case MLX4_SYNDROME_BAD_RESP:
		return IBV_WC_BAD_RESP_ERR;
	case MLX4_SYNDROME_LOC_ACCESS:
		return IBV_WC_LOC_ACCESS_ERR;
	case MLX4_SYNDROME_REM_INVAL_REQ:
		return IBV_WC_REM_INV_REQ_ERR;
	case MLX4_SYNDROME_REM_ACCESS:
		return IBV_WC_REM_ACCESS_ERR;
	case MLX4_SYNDROME_REM_OP:
		return IBV_WC_REM_OP_ERR;
	case MLX4_SYNDROME_RETRY_EXC:
		return IBV_WC_RETRY_EXC_ERR;
	case MLX4_SYNDROME_RNR_RETRY_EXC:
		return IBV_WC_RNR_RETRY_EXC_ERR;
	case MLX4_SYNDROME_REM_ABORT:
		return IBV_WC_REM_ABORT_ERR;
	default:
		return IBV_WC_GENERAL_ERR;
	}
}

/* Remembers what it finds. NULL when the number is no QP's that completes here. */
static struct mlx4_qp *find_qp_slow(struct mlx4_cq *cq, uint32_t qpn)
{
	struct mlx4_qp *qp = mlx4_table_find(&to_mlx4_ctx(cq->ibv_cq.context)->qps, qpn);

	if (!qp || qp->ibv_qp.qp_num != qpn || (qp->ibv_qp.send_cq != &cq->ibv_cq && qp->ibv_qp.recv_cq != &cq->ibv_cq))
		return NULL;
	cq->cur_qp = qp;
	cq->cur_qpn = qpn;
	return qp;
}

static inline struct mlx4_qp *find_qp(struct mlx4_cq *cq, uint32_t qpn)
{
	return likely(cq->cur_qpn == qpn) ? cq->cur_qp : find_qp_slow(cq, qpn);
}

static struct mlx4_srq *find_xrc_srq_slow(struct mlx4_cq *cq, uint32_t srqn)
{
	struct mlx4_srq *srq = mlx4_table_find(&to_mlx4_ctx(cq->ibv_cq.context)->xrc_srqs, srqn);

	if (!srq || srq->srqn != srqn || srq->xrc_cq != cq)
		return NULL;
	cq->cur_srq = srq;
	cq->cur_srqn = srqn;
	return srq;
}

static inline struct mlx4_srq *find_xrc_srq(struct mlx4_cq *cq, uint32_t srqn)
{
	return likely(cq->cur_srqn == srqn) ? cq->cur_srq : find_xrc_srq_slow(cq, srqn);
}

/* The work request that a receive on an SRQ used, whose WQE is free again. 0 or MLX4_POLL_ERR */
static inline int complete_srq(struct mlx4_srq *srq, const struct mlx4_cqe *cqe, struct ibv_wc *wc)
{
	uint32_t index = from_be16(cqe->wqe_index);

	if (unlikely(index >= srq->max))
		return MLX4_POLL_ERR;
	wc->wr_id = srq->wrid[index];
	mlx4_free_srq_wqe(srq, index);
	return 0;
}

static void __attribute__((noinline)) fill_error(const struct mlx4_cqe *cqe, struct ibv_wc *wc)
{
	wc->status = wc_status(cqe->syndrome);
	wc->vendor_err = cqe->vendor_err;
}

static inline int is_error(uint8_t owner)
{
	return (owner & MLX4_CQE_OPCODE_MASK) == MLX4_CQE_ERROR;
}

/* 0 or MLX4_POLL_ERR */
static inline int complete_send(struct mlx4_cq *cq, const struct mlx4_cqe *cqe, uint32_t qpn, uint8_t owner,
				struct ibv_wc *wc)
{
	struct mlx4_qp *qp = find_qp(cq, qpn);
	const struct wc_kind *kind;
	uint32_t tail;

	if (unlikely(!qp))
		return MLX4_POLL_ERR;

	/* Everything before it that was not to be signalled is done as well. */
	tail = qp->sq.tail;
	tail += (uint16_t)(from_be16(cqe->wqe_index) - tail);
	wc->wr_id = qp->sq.wrid[tail & qp->sq.mask];
	/* Release: pairs with the acquire in mlx4_post_send(), which may then overwrite the wr_id. */
	__atomic_store_n(&qp->sq.tail, tail + 1, __ATOMIC_RELEASE);

	if (unlikely(is_error(owner))) {
		fill_error(cqe, wc);
		return 0;
	}

	kind = &send_kinds[owner & MLX4_CQE_OPCODE_MASK];
	wc->status = IBV_WC_SUCCESS;
	wc->opcode = kind->opcode;
	wc->wc_flags = kind->flags;
	if (unlikely(kind->opcode >= IBV_WC_RDMA_READ))
		wc->byte_len = kind->opcode == IBV_WC_RDMA_READ ? from_be32(cqe->byte_cnt) : 8;
	return 0;
}

/* 0 or MLX4_POLL_ERR */
static inline int complete_recv(struct mlx4_cq *cq, const struct mlx4_cqe *cqe, uint32_t qpn, uint8_t owner,
				struct ibv_wc *wc)
{
	uint32_t path = from_be32(cqe->g_mlpath_rqpn);
	unsigned int sl_shift = MLX4_CQE_SL_SHIFT;
	const struct wc_kind *kind;
	struct mlx4_srq *srq;
	struct mlx4_qp *qp;
	uint32_t tail;

	if (unlikely(qpn & MLX4_XRC_QPN_BIT)) {
		srq = find_xrc_srq(cq, path & MLX4_CQE_QPN_MASK);
		if (unlikely(!srq) || complete_srq(srq, cqe, wc))
			return MLX4_POLL_ERR;
	} else {
		qp = find_qp(cq, qpn);
		if (unlikely(!qp))
			return MLX4_POLL_ERR;
		sl_shift = qp->sl_shift;
		if (qp->ibv_qp.srq) {
			if (complete_srq(to_mlx4_srq(qp->ibv_qp.srq), cqe, wc))
				return MLX4_POLL_ERR;
		} else {
			tail = qp->rq.tail;
			wc->wr_id = qp->rq.wrid[tail & qp->rq.mask];
			/* Release: pairs with the acquire in mlx4_post_recv(). */
			__atomic_store_n(&qp->rq.tail, tail + 1, __ATOMIC_RELEASE);
		}
	}

	if (unlikely(is_error(owner))) {
		fill_error(cqe, wc);
		return 0;
	}

	kind = &recv_kinds[owner & 3];
	wc->status = IBV_WC_SUCCESS;
	wc->opcode = kind->opcode;
	wc->byte_len = from_be32(cqe->byte_cnt);
	wc->imm_data = (MLX4_FORCE uint32_t)cqe->immed_rss_invalid;
	wc->src_qp = path & MLX4_CQE_QPN_MASK;
	_Static_assert(IBV_WC_GRH == MLX4_CQE_GRH >> 31, "GRH flag");
	wc->wc_flags = kind->flags | path >> 31;
	wc->pkey_index = from_be32(cqe->immed_rss_invalid) & MLX4_CQE_PKEY_MASK;
	wc->slid = from_be16(cqe->rlid);
	wc->sl = from_be16(cqe->sl_vid) >> sl_shift;
	wc->dlid_path_bits = path >> MLX4_CQE_PATH_SHIFT & MLX4_CQE_PATH_MASK;
	return 0;
}

/* At least one entry waits and one is wanted; the lock is held, and released here. */
static int __attribute__((noinline)) poll_some(struct mlx4_cq *cq, int ne, struct ibv_wc *wc)
{
	uint32_t ci = cq->cons_index;
	struct mlx4_cqe *cqe = mlx4_cqe_at(cq, ci);
	uint32_t qpn;
	uint8_t owner;
	int n = 0, err;

	do {
		udma_from_device_barrier(); /* pairs with the device's order: body, then owner bit */
		VALGRIND_MAKE_MEM_DEFINED(cqe, sizeof(*cqe));

		qpn = from_be32(cqe->vlan_my_qpn) & MLX4_CQE_QPN_MASK;
		owner = cqe->owner_sr_opcode;
		wc->qp_num = qpn;
		if (owner & MLX4_CQE_IS_SEND)
			err = complete_send(cq, cqe, qpn, owner, wc);
		else
			err = complete_recv(cq, cqe, qpn, owner, wc);

		if (unlikely(err)) {
			/* What came before it is not lost: the caller gets that now and the error next time. */
			if (!n) {
				++ci;
				n = err;
			}
			break;
		}
		++ci;
		++wc;
		++n;
		cqe = mlx4_cqe_at(cq, ci);
	} while (n < ne && mlx4_cqe_owned(cq, cqe, ci));

	cq->cons_index = ci;
	mlx4_cq_update_ci(cq);
	mlx4_unlock(&cq->lock);
	return n;
}

int mlx4_poll_cq(struct ibv_cq *ibcq, int ne, struct ibv_wc *wc)
{
	struct mlx4_cq *cq = to_mlx4_cq(ibcq);

	mlx4_lock(&cq->lock);
	if (likely(ne > 0) && mlx4_cqe_owned(cq, mlx4_cqe_at(cq, cq->cons_index), cq->cons_index))
		return poll_some(cq, ne, wc);
	mlx4_unlock(&cq->lock);
	return 0;
}
