// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Turns CQEs into work completions, under the lock of the CQ. That lock also protects the tails of
 * the queues whose completions come here. The lock of an SRQ is taken inside it. Common CQEs are
 * handled without a call. At the first other CQE poll_any() takes over, with the lock held. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include "mlx4.h"

enum { KIND_ERROR = 0xff };

struct wc_kind {
	uint32_t opcode;
	uint32_t flags;
};

/* An unknown opcode is reported as a send, or as a receive with immediate data. */
static const struct wc_kind send_kinds[MLX4_CQE_OPCODE_MASK + 1] = {
	[MLX4_OPCODE_SEND] = {IBV_WC_SEND, 0},
	[MLX4_OPCODE_SEND_IMM] = {IBV_WC_SEND, IBV_WC_WITH_IMM},
	[MLX4_OPCODE_RDMA_WRITE] = {IBV_WC_RDMA_WRITE, 0},
	[MLX4_OPCODE_RDMA_WRITE_IMM] = {IBV_WC_RDMA_WRITE, IBV_WC_WITH_IMM},
	[MLX4_OPCODE_RDMA_READ] = {IBV_WC_RDMA_READ, 0},
	[MLX4_OPCODE_ATOMIC_CS] = {IBV_WC_COMP_SWAP, 0},
	[MLX4_OPCODE_ATOMIC_FA] = {IBV_WC_FETCH_ADD, 0},
	[MLX4_OPCODE_BIND_MW] = {IBV_WC_BIND_MW, 0},
	[MLX4_CQE_ERROR] = {KIND_ERROR, 0},
};

static const struct wc_kind recv_kinds[MLX4_CQE_OPCODE_MASK + 1] = {
	[MLX4_CQE_RECV_RDMA_WRITE_IMM] = {IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM},
	[MLX4_CQE_RECV_SEND] = {IBV_WC_RECV, 0},
	[MLX4_CQE_RECV_SEND_IMM] = {IBV_WC_RECV, IBV_WC_WITH_IMM},
	[MLX4_CQE_RECV_SEND_INVAL] = {IBV_WC_RECV, 0},
	[MLX4_CQE_ERROR] = {KIND_ERROR, 0},
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

/* Finds the QP and makes it cur_qp. Returns NULL if no QP with this number completes here. */
static struct mlx4_qp *find_qp(struct mlx4_cq *cq, uint32_t qpn)
{
	struct mlx4_qp *qp = mlx4_table_find(&to_mlx4_ctx(cq->ibv_cq.context)->qps, qpn);

	if (!qp || qp->ibv_qp.qp_num != qpn ||
	    (qp->ibv_qp.send_cq != &cq->ibv_cq && qp->ibv_qp.recv_cq != &cq->ibv_cq))
		return NULL;
	cq->cur_qp = qp;
	cq->cur_qpn = qpn;
	cq->cur_rq_qpn = qp->connected_rq_qpn;
	return qp;
}

static struct mlx4_srq *find_xrc_srq(struct mlx4_cq *cq, uint32_t srqn)
{
	struct mlx4_srq *srq = mlx4_table_find(&to_mlx4_ctx(cq->ibv_cq.context)->xrc_srqs, srqn);

	if (!srq || srq->srqn != srqn || srq->xrc_cq != cq)
		return NULL;
	cq->cur_srq = srq;
	cq->cur_srqn = srqn;
	return srq;
}

static inline uint32_t cqe_opcode(uint32_t owner)
{
	return owner & MLX4_CQE_OPCODE_MASK;
}

static inline uint32_t cqe_qpn(const struct mlx4_cqe *cqe)
{
	return from_be32(cqe->vlan_my_qpn) & MLX4_CQE_QPN_MASK;
}

/* The number of the SRQ; in a datagram, of the source QP. */
static inline uint32_t cqe_srqn(const struct mlx4_cqe *cqe)
{
	return from_be32(cqe->g_mlpath_rqpn) & MLX4_CQE_QPN_MASK;
}

/* Completes a send, and with it all earlier sends that were not signaled. */
static inline void retire_send(struct mlx4_qp *qp, const struct mlx4_cqe *cqe, struct ibv_wc *wc)
{
	uint32_t index = from_be16(cqe->wqe_index);

	wc->wr_id = qp->sq.wrid[index & qp->sq.mask];
	/* Release: pairs with the acquire in post-send-any.c; the wr_id may be overwritten from now
	 * on. */
	__atomic_store_n(&qp->sq.tail, (uint16_t)(index + 1), __ATOMIC_RELEASE);
}

static inline void retire_recv(struct mlx4_qp *qp, struct ibv_wc *wc)
{
	uint32_t tail = qp->rq.tail;

	wc->wr_id = qp->rq.wrid[tail & qp->rq.mask];
	/* Release: pairs with the acquire in post-recv.c. */
	__atomic_store_n(&qp->rq.tail, tail + 1, __ATOMIC_RELEASE);
}

/* The caller holds the lock of the SRQ. index < max. */
static inline void retire_srq(struct mlx4_srq *srq, uint32_t index, struct ibv_wc *wc)
{
	wc->wr_id = srq->wqes[index].wr_id;
	mlx4_srq_free(srq, index);
}

static inline void fill_send(const struct wc_kind *kind, struct ibv_wc *wc)
{
	wc->status = IBV_WC_SUCCESS;
	wc->opcode = kind->opcode;
	wc->wc_flags = kind->flags;
}

static void fill_send_length(const struct mlx4_cqe *cqe, struct ibv_wc *wc)
{
	if (wc->opcode == IBV_WC_RDMA_READ)
		wc->byte_len = from_be32(cqe->byte_cnt);
	else if (wc->opcode == IBV_WC_COMP_SWAP || wc->opcode == IBV_WC_FETCH_ADD)
		wc->byte_len = 8;
}

/* Sets all members but qp_num and src_qp, without what only a datagram has. */
static inline void fill_recv(const struct mlx4_cqe *cqe, const struct wc_kind *kind,
			     struct ibv_wc *wc)
{
	wc->status = IBV_WC_SUCCESS;
	wc->opcode = kind->opcode;
	wc->wc_flags = kind->flags;
	wc->imm_data = (MLX4_FORCE uint32_t)cqe->immed_rss_invalid;
	keep_stores_apart();
	wc->byte_len = from_be32(cqe->byte_cnt);
	/* clears pkey_index and the members after it, which a connection does not use */
	memset((char *)wc + offsetof(struct ibv_wc, pkey_index), 0,
	       sizeof(*wc) - offsetof(struct ibv_wc, pkey_index));
}

static void fill_datagram(const struct mlx4_cqe *cqe, const struct mlx4_qp *qp, struct ibv_wc *wc)
{
	uint32_t path = from_be32(cqe->g_mlpath_rqpn);

	_Static_assert(IBV_WC_GRH == MLX4_CQE_GRH >> 31, "GRH flag");
	wc->wc_flags |= path >> 31;
	wc->pkey_index = from_be32(cqe->immed_rss_invalid) & MLX4_CQE_PKEY_MASK;
	wc->slid = from_be16(cqe->rlid);
	wc->sl = from_be16(cqe->sl_vid) >> 8 >> qp->sl_shift;
	wc->dlid_path_bits = path >> MLX4_CQE_PATH_SHIFT & MLX4_CQE_PATH_MASK;
}

static void fill_error(const struct mlx4_cqe *cqe, struct ibv_wc *wc)
{
	wc->status = wc_status(cqe->syndrome);
	wc->vendor_err = cqe->vendor_err;
}

/* Is cur_qp the QP with this number? Looks it up if not. */
static inline int know_qp(struct mlx4_cq *cq, uint32_t qpn)
{
	return cq->cur_qpn == qpn || find_qp(cq, qpn);
}

static inline int send_any(struct mlx4_cq *cq, const struct mlx4_cqe *cqe, struct ibv_wc *wc,
			   uint32_t qpn, uint32_t opcode)
{
	if (!know_qp(cq, qpn))
		return MLX4_POLL_ERR;
	retire_send(cq->cur_qp, cqe, wc);

	if (opcode == MLX4_CQE_ERROR) {
		fill_error(cqe, wc);
		return 0;
	}
	fill_send(&send_kinds[opcode], wc);
	fill_send_length(cqe, wc);
	return 0;
}

static inline int recv_any(struct mlx4_cq *cq, const struct mlx4_cqe *cqe, struct ibv_wc *wc,
			   uint32_t qpn, uint32_t opcode)
{
	struct mlx4_qp *qp = NULL;
	struct mlx4_srq *srq;
	uint32_t index;

	if (qpn & MLX4_XRC_QPN_BIT) {
		srq = cq->cur_srqn == cqe_srqn(cqe) ? cq->cur_srq : find_xrc_srq(cq, cqe_srqn(cqe));
		if (!srq)
			return MLX4_POLL_ERR;
	} else {
		if (!know_qp(cq, qpn))
			return MLX4_POLL_ERR;
		qp = cq->cur_qp;
		srq = qp->srq;
	}

	if (srq) {
		index = from_be16(cqe->wqe_index);
		if (index >= srq->max)
			return MLX4_POLL_ERR;
		mlx4_lock(&srq->lock);
		retire_srq(srq, index, wc);
		mlx4_unlock(&srq->lock);
	} else if (likely(mlx4_has_rq(qp))) {
		retire_recv(qp, wc);
	} else {
		/* a receive of an XRC QP that only sends: its number lacks bit 23 */
		return MLX4_POLL_ERR;
	}

	if (opcode == MLX4_CQE_ERROR) {
		fill_error(cqe, wc);
		return 0;
	}
	wc->src_qp = cqe_srqn(cqe);
	fill_recv(cqe, &recv_kinds[opcode], wc);
	if (qp && qp->is_ud)
		fill_datagram(cqe, qp, wc);
	return 0;
}

/* Handles a CQE of any kind. Returns 0 or MLX4_POLL_ERR. */
static int complete_any(struct mlx4_cq *cq, const struct mlx4_cqe *cqe, struct ibv_wc *wc)
{
	uint32_t owner = cqe->owner_sr_opcode;
	uint32_t qpn = cqe_qpn(cqe);

	wc->qp_num = qpn;
	if (owner & MLX4_CQE_IS_SEND)
		return send_any(cq, cqe, wc, qpn, cqe_opcode(owner));
	return recv_any(cq, cqe, wc, qpn, cqe_opcode(owner));
}

/* Returns the next CQE, and toggles phase at the end of the queue. */
static inline struct mlx4_cqe *next_cqe(struct mlx4_cq *cq, struct mlx4_cqe *cqe)
{
	cqe = (struct mlx4_cqe *)((char *)cqe + cq->stride);
	if (unlikely(cqe == cq->end)) {
		cqe = cq->cqes;
		cq->phase ^= MLX4_CQE_OWNER;
	}
	return cqe;
}

/* Continues after the first n of ne CQEs, which are consumed, but the device has not been told so.
 * Releases the lock. */
static int __attribute__((noinline)) poll_any(struct mlx4_cq *cq, int ne, struct ibv_wc *wc, int n)
{
	struct mlx4_cqe *cqe = cq->next;
	int err;

	while (n < ne && mlx4_cqe_owned(cqe, cq->phase)) {
		udma_from_device_barrier(); /* pairs with the device's order: body, then owner bit
					     */
		VALGRIND_MAKE_MEM_DEFINED(cqe, sizeof(*cqe));

		err = complete_any(cq, cqe, &wc[n]);
		if (unlikely(err)) {
			/* Earlier completions are not lost: the caller gets them now, and the error
			 * with its next call. */
			if (n)
				break;
			n = err;
		}
		++cq->cons_index;
		cqe = next_cqe(cq, cqe);
		if (err)
			break;
		++n;
	}

	cq->next = cqe;
	mlx4_cq_update_ci(cq);
	mlx4_unlock(&cq->lock);
	return n;
}

static int __attribute__((noinline)) poll_contended(struct mlx4_cq *cq, int ne, struct ibv_wc *wc)
{
	mlx4_lock_wait(&cq->lock);
	return poll_any(cq, ne, wc, 0);
}

/* Handles a CQE of a common kind. Returns 0 without effect for any other. */
static inline __attribute__((always_inline)) int
complete(struct mlx4_cq *cq, const struct mlx4_cqe *cqe, struct ibv_wc *wc, int locked)
{
	const struct wc_kind *kind;
	struct mlx4_srq *srq;
	uint32_t owner, qpn, index;
	size_t opcode;

	udma_from_device_barrier(); /* pairs with the device's order: body, then owner bit */
	VALGRIND_MAKE_MEM_DEFINED(cqe, sizeof(*cqe));

	owner = cqe->owner_sr_opcode;
	qpn = cqe_qpn(cqe);
	keep_value(qpn);
	wc->qp_num = qpn;

	if (owner & MLX4_CQE_IS_SEND) {
		kind = &send_kinds[cqe_opcode(owner)];
		/* errors, and opcodes with a length of their own */
		if (unlikely(qpn != cq->cur_qpn) || unlikely(kind->opcode >= IBV_WC_RDMA_READ))
			return 0;
		retire_send(cq->cur_qp, cqe, wc);
		fill_send(kind, wc);
		return 1;
	}

	opcode = cqe_opcode(owner);
	keep_value(opcode);
	kind = &recv_kinds[opcode];
	if (unlikely(kind->opcode == KIND_ERROR))
		return 0;
	wc->src_qp = 0;
	if (likely(qpn == cq->cur_rq_qpn)) {
		retire_recv(cq->cur_qp, wc);
	} else {
		if (qpn & MLX4_XRC_QPN_BIT) {
			wc->src_qp = cqe_srqn(cqe);
			if (unlikely(wc->src_qp != cq->cur_srqn))
				return 0;
			srq = cq->cur_srq;
		} else {
			if (unlikely(qpn != cq->cur_qpn))
				return 0;
			srq = cq->cur_qp->connected_srq;
			if (unlikely(!srq))
				return 0;
		}
		index = from_be16(cqe->wqe_index);
		if (unlikely(index >= srq->max) || (locked && unlikely(!mlx4_trylock(&srq->lock))))
			return 0;
		retire_srq(srq, index, wc);
		if (locked)
			mlx4_unlock(&srq->lock);
	}
	fill_recv(cqe, kind, wc);
	return 1;
}

static inline __attribute__((always_inline)) void tell_ci(struct mlx4_cq *cq, int n)
{
	cq->cons_index += n;
	mlx4_cq_update_ci(cq);
}

/* Returns the latest end of a run of CQEs from cqe on: after max CQEs, or at the end of the
 * queue. */
static inline struct mlx4_cqe *run_end(const struct mlx4_cq *cq, struct mlx4_cqe *cqe, uint32_t max)
{
	uint64_t want = max * cq->stride;
	uint64_t left = (char *)cq->end - (char *)cqe;

	return (struct mlx4_cqe *)((char *)cqe + (want < left ? want : left));
}

/* Continues after the first CQE, which is done and consumed. Releases the lock. */
static inline __attribute__((always_inline)) int poll_more(struct mlx4_cq *cq, int ne,
							   struct ibv_wc *wc, int locked)
{
	struct ibv_wc *const first = wc++;
	struct mlx4_cqe *cqe = cq->next;
	const struct mlx4_cqe *stop = run_end(cq, cqe, ne - 1);
	const uint64_t stride = cq->stride;

	for (;;) {
		do {
			if (unlikely(!complete(cq, cqe, wc, locked))) {
				cq->next = cqe;
				cq->cons_index += wc - first;
				return poll_any(cq, ne, first, wc - first);
			}
			++wc;
			cqe = (struct mlx4_cqe *)((char *)cqe + stride);
		} while (cqe != stop && mlx4_cqe_owned(cqe, cq->phase));

		if (likely(cqe != cq->end))
			break;
		cqe = cq->cqes;
		cq->phase ^= MLX4_CQE_OWNER;
		if (wc - first == ne || !mlx4_cqe_owned(cqe, cq->phase))
			break;
		stop = run_end(cq, cqe, ne - (wc - first));
	}

	cq->next = cqe;
	tell_ci(cq, wc - first);
	mlx4_unlock(&cq->lock);
	return wc - first;
}

static int __attribute__((noinline)) poll_more_locked(struct mlx4_cq *cq, int ne, struct ibv_wc *wc)
{
	return poll_more(cq, ne, wc, 1);
}

static int __attribute__((noinline)) poll_more_st(struct mlx4_cq *cq, int ne, struct ibv_wc *wc)
{
	return poll_more(cq, ne, wc, 0);
}

static inline __attribute__((always_inline)) int poll(struct mlx4_cq *cq, int ne, struct ibv_wc *wc,
						      int locked)
{
	struct mlx4_cqe *cqe;

	if (locked && !mlx4_trylock(&cq->lock))
		return poll_contended(cq, ne, wc);

	cqe = cq->next;
	if (!mlx4_cqe_owned(cqe, cq->phase) || unlikely(ne <= 0)) {
		if (locked)
			mlx4_unlock(&cq->lock);
		return 0;
	}
	if (unlikely(!complete(cq, cqe, wc, locked)))
		return poll_any(cq, ne, wc, 0);

	cqe = next_cqe(cq, cqe);
	cq->next = cqe;
	if (ne > 1 && mlx4_cqe_owned(cqe, cq->phase))
		return locked ? poll_more_locked(cq, ne, wc) : poll_more_st(cq, ne, wc);

	tell_ci(cq, 1);
	if (locked)
		mlx4_unlock(&cq->lock);
	return 1;
}

int mlx4_poll_cq(struct ibv_cq *ibcq, int ne, struct ibv_wc *wc)
{
	return poll(to_mlx4_cq(ibcq), ne, wc, 1);
}

int mlx4_poll_cq_st(struct ibv_cq *ibcq, int ne, struct ibv_wc *wc)
{
	return poll(to_mlx4_cq(ibcq), ne, wc, 0);
}
