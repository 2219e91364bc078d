// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Creates, modifies, queries and destroys QPs. post-send.c and post-recv.c post; qp-size.c computes
 * sizes. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "mlx4.h"
#include "mlx4-cmd.h"

enum { SL_SHIFT_INFINIBAND = MLX4_CQE_SL_SHIFT - 8, SL_SHIFT_ETHERNET = SL_SHIFT_INFINIBAND + 1 };

static void lock_cqs(struct mlx4_qp *qp)
{
	struct mlx4_cq *send = to_mlx4_cq(qp->ibv_qp.send_cq);
	struct mlx4_cq *recv = to_mlx4_cq(qp->ibv_qp.recv_cq);

	if (send == recv) {
		mlx4_lock(&send->lock);
	} else if (send->cqn < recv->cqn) {
		mlx4_lock(&send->lock);
		mlx4_lock(&recv->lock);
	} else {
		mlx4_lock(&recv->lock);
		mlx4_lock(&send->lock);
	}
}

static void unlock_cqs(struct mlx4_qp *qp)
{
	struct mlx4_cq *send = to_mlx4_cq(qp->ibv_qp.send_cq);
	struct mlx4_cq *recv = to_mlx4_cq(qp->ibv_qp.recv_cq);

	mlx4_unlock(&send->lock);
	if (send != recv)
		mlx4_unlock(&recv->lock);
}

/* The caller holds the locks of the CQs. */
static void clean_cqs(struct mlx4_qp *qp)
{
	struct mlx4_cq *send = to_mlx4_cq(qp->ibv_qp.send_cq);
	struct mlx4_cq *recv = to_mlx4_cq(qp->ibv_qp.recv_cq);

	mlx4_cq_clean_qp(recv, qp->ibv_qp.qp_num, qp->srq);
	if (send != recv)
		mlx4_cq_clean_qp(send, qp->ibv_qp.qp_num, NULL);
}

static void init_counters(struct mlx4_qp *qp)
{
	mlx4_sq_rewind(&qp->sq, 0);
	qp->sq.limit = qp->sq.max_post;
	__atomic_store_n(&qp->sq.tail, 0, __ATOMIC_RELAXED);
	qp->rq.head = 0;
	qp->rq.limit = qp->rq.max_post;
	__atomic_store_n(&qp->rq.tail, 0, __ATOMIC_RELAXED);
}

/* Gives all slots the owner bit of the previous pass, and stamps them as unfinished wherever the
 * device may prefetch. */
void mlx4_init_sq_ownership(struct mlx4_qp *qp)
{
	struct mlx4_wqe_ctrl *ctrl;
	uint32_t i, offset;

	qp->sq.longest_ds = 0;
	for (i = 0; i <= qp->sq.mask; ++i) {
		ctrl = mlx4_sq_slot(&qp->sq, i);
		ctrl->owner_opcode = MLX4_BE32(MLX4_WQE_OWNER);
		ctrl->fence_size = 1u << (qp->sq.shift - 4);
		for (offset = MLX4_CHUNK; offset < 1u << qp->sq.shift; offset += MLX4_CHUNK)
			memset((char *)ctrl + offset, 0xff, sizeof(uint32_t));
	}
}

/* Returns 0, -EINVAL for attributes that the kernel would refuse anyway, or -ENOSYS if there is no
 * XRC. */
static int check_attr(const struct mlx4_context *ctx, const struct ibv_qp_init_attr *attr)
{
	if (!attr->send_cq || !attr->recv_cq)
		return -EINVAL;

	switch (attr->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		return 0;
	case IBV_QPT_XRC:
		if (!ctx->has_xrc)
			return -ENOSYS;
		return attr->srq || !attr->xrc_domain ? -EINVAL : 0;
	default:
		return -EINVAL;
	}
}

static void free_qp(struct mlx4_context *ctx, struct mlx4_qp *qp)
{
	if (qp->rq.db)
		mlx4_free_db(ctx, MLX4_DB_RQ, qp->rq.db);
	mlx4_free_buf(&qp->buf);
	free(qp->rq.wrid);
	free(qp->sq.wrid);
	free(qp);
}

/* Returns 0 or -errno. free_qp() frees what has been allocated. */
static int alloc_queues(struct mlx4_context *ctx, struct mlx4_qp *qp)
{
	size_t size = (size_t)(qp->sq.mask + 1) << qp->sq.shift;
	int err;

	if (mlx4_has_rq(qp))
		size += (size_t)qp->rq.slots << qp->rq.shift;

	qp->sq.wrid = calloc(qp->sq.mask + 1, sizeof(*qp->sq.wrid));
	if (!qp->sq.wrid)
		return -ENOMEM;

	err = mlx4_alloc_buf(ctx, &qp->buf, size);
	if (err)
		return err;
	mlx4_lay_out_qp(qp);

	if (mlx4_has_rq(qp)) {
		qp->rq.wrid = calloc(qp->rq.slots, sizeof(*qp->rq.wrid));
		if (!qp->rq.wrid)
			return -ENOMEM;
		qp->rq.db = mlx4_alloc_db(ctx, MLX4_DB_RQ);
		if (!qp->rq.db)
			return -errno;
	}
	return 0;
}

/* Removes the QP from the number table, and its CQEs from its CQs. The caller holds the mutex of
 * the table, and the kernel has destroyed the QP. */
static void take_out(struct mlx4_context *ctx, struct mlx4_qp *qp)
{
	lock_cqs(qp);
	clean_cqs(qp);
	mlx4_cq_forget_qp(to_mlx4_cq(qp->ibv_qp.send_cq));
	mlx4_cq_forget_qp(to_mlx4_cq(qp->ibv_qp.recv_cq));
	mlx4_table_clear(&ctx->qps, qp->ibv_qp.qp_num);
	unlock_cqs(qp);
}

/* Adds the QP to the number table. Returns 0 or -ENOMEM. */
static int put_in(struct mlx4_context *ctx, struct mlx4_qp *qp)
{
	struct mlx4_qp *former;
	int err;

	qp->connected_rq_qpn = mlx4_has_rq(qp) && !qp->is_ud ? qp->ibv_qp.qp_num : MLX4_NO_NUMBER;

	pthread_mutex_lock(&ctx->qps.mutex);
	former = mlx4_table_find(&ctx->qps, qp->ibv_qp.qp_num);
	if (former)
		take_out(ctx, former);
	err = mlx4_table_store(&ctx->qps, qp->ibv_qp.qp_num, qp);
	pthread_mutex_unlock(&ctx->qps.mutex);
	return err;
}

/* Creates the QP in the kernel and adds it to the number table. Returns 0 or -errno. */
static int enter_qp(struct mlx4_context *ctx, struct mlx4_qp *qp, struct ibv_pd *pd,
		    struct ibv_qp_init_attr *attr)
{
	struct ibv_create_qp_resp resp;
	struct mlx4_create_qp_cmd cmd;
	int err;

	memset(&cmd, 0, sizeof(cmd));
	cmd.drv.buf_addr = (uintptr_t)qp->buf.addr;
	cmd.drv.db_addr = (uintptr_t)qp->rq.db;
	cmd.drv.log_sq_bb_count = __builtin_ctz(qp->sq.mask + 1);
	cmd.drv.log_sq_stride = qp->sq.shift;

	err = -ibv_cmd_create_qp(pd, &qp->ibv_qp, attr, &cmd.core, sizeof(cmd), &resp,
				 sizeof(resp));
	if (err)
		return err;
	err = put_in(ctx, qp);
	if (err)
		ibv_cmd_destroy_qp(&qp->ibv_qp);
	return err;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Computes the granted sizes, from those that the kernel reported for the receive queue and those
 * known of the send queue. */
static void grant_caps(struct mlx4_context *ctx, struct mlx4_qp *qp, struct ibv_qp_cap *cap)
{
	struct mlx4_rq *rq = &qp->rq;
	uint32_t stride_gs = (1u << rq->shift) / sizeof(struct mlx4_wqe_data);

	if (mlx4_has_rq(qp)) {
		/* Kernels before uverbs ABI 4 do not report sizes, and round by the same rule. */
		if (cap->max_recv_wr && !(cap->max_recv_wr & (cap->max_recv_wr - 1)) &&
		    cap->max_recv_wr < rq->slots) {
			rq->slots = cap->max_recv_wr;
			rq->mask = rq->slots - 1;
		}
		rq->max_post = min_u32(rq->slots, ctx->max_qp_wr);
		rq->max_gs = min_u32(min_u32(cap->max_recv_sge, stride_gs), ctx->max_sge);
		cap->max_recv_wr = rq->max_post;
		cap->max_recv_sge = rq->max_gs;
	} else {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	}

	cap->max_send_wr = qp->sq.max_post;
	cap->max_send_sge = min_u32(qp->sq.max_gs, ctx->max_sge);
	cap->max_inline_data = qp->sq.max_inline;
	qp->granted = *cap;
}

struct ibv_qp *mlx4_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct mlx4_context *ctx = to_mlx4_ctx(pd->context);
	const struct ibv_qp_cap asked = attr->cap;
	struct mlx4_qp *qp;
	int err;

	err = check_attr(ctx, attr);
	if (err) {
		errno = -err;
		return NULL;
	}

	qp = mlx4_zalloc(sizeof(*qp));
	if (!qp)
		return NULL;

	qp->ibv_qp.context = pd->context;
	qp->ibv_qp.pd = pd;
	qp->ibv_qp.send_cq = attr->send_cq;
	qp->ibv_qp.recv_cq = attr->recv_cq;
	qp->ibv_qp.srq = attr->srq;
	qp->ibv_qp.qp_type = attr->qp_type;
	qp->srq = attr->srq ? to_mlx4_srq(attr->srq) : NULL;
	qp->is_ud = attr->qp_type == IBV_QPT_UD;
	qp->connected_srq = qp->is_ud ? NULL : qp->srq;
	qp->sl_shift = SL_SHIFT_INFINIBAND;
	mlx4_lock_init(&qp->sq.lock, ctx->single_threaded);
	mlx4_lock_init(&qp->rq.lock, ctx->single_threaded);

	err = mlx4_size_sq(ctx, &asked, attr->qp_type, &qp->sq);
	if (err)
		goto fail;

	if (mlx4_has_rq(qp)) {
		if (!attr->cap.max_recv_wr)
			attr->cap.max_recv_wr = 1;
		if (!attr->cap.max_recv_sge)
			attr->cap.max_recv_sge = 1;
		err = mlx4_size_rq(ctx, &attr->cap, &qp->rq);
		if (err)
			goto fail;
	} else {
		attr->cap.max_recv_wr = 0;
		attr->cap.max_recv_sge = 0;
	}

	err = alloc_queues(ctx, qp);
	if (err)
		goto fail;

	err = enter_qp(ctx, qp, pd, attr);
	if (err)
		goto fail;

	qp->sq.ops = mlx4_send_ops(attr->qp_type);
	qp->sq.doorbell = (char *)ctx->uar + MLX4_UAR_SEND_DB;
	qp->sq.doorbell_qpn = to_be32(qp->ibv_qp.qp_num << 8);
	qp->sq.flags = mlx4_send_flags(attr->sq_sig_all);
	qp->sq.max_short = ctx->blueflame_size >= MLX4_CHUNK ? qp->sq.max_inline : 0;
	grant_caps(ctx, qp, &attr->cap);
	init_counters(qp);
	return &qp->ibv_qp;

fail:
	free_qp(ctx, qp);
	attr->cap = asked;
	errno = -err;
	return NULL;
}

int mlx4_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct mlx4_qp *qp = to_mlx4_qp(ibqp);
	struct ibv_query_qp cmd;
	int ret;

	ret = ibv_cmd_query_qp(ibqp, attr, attr_mask, init_attr, &cmd, sizeof(cmd));
	if (ret)
		return ret;

	/* The kernel does not know the sizes of the send queue. */
	init_attr->cap.max_send_wr = qp->granted.max_send_wr;
	init_attr->cap.max_send_sge = qp->granted.max_send_sge;
	init_attr->cap.max_inline_data = qp->granted.max_inline_data;
	attr->cap = init_attr->cap;
	return 0;
}

/* After the kernel has moved the QP to RESET: removes its completions and restarts the counters. */
static void forget_work(struct mlx4_qp *qp)
{
	mlx4_lock(&qp->sq.lock);
	mlx4_lock(&qp->rq.lock);
	lock_cqs(qp);
	clean_cqs(qp);
	init_counters(qp);
	unlock_cqs(qp);
	if (mlx4_has_rq(qp))
		*(volatile __be32 *)&qp->rq.db->posted = 0;
	mlx4_unlock(&qp->rq.lock);
	mlx4_unlock(&qp->sq.lock);
}

/* For kernels with two kinds of XRC QPs. Those that receive have a bit set in their numbers; the
 * QPs here do not. Two QPs without the bit connect, but their messages fail. The peer may be a
 * device of another make, so this prints a warning and does not refuse. */
static void check_xrc_peer(const struct ibv_qp *ibqp, uint32_t dest_qp_num)
{
	static int warned;

	if ((ibqp->qp_num | dest_qp_num) & MLX4_XRC_QPN_BIT ||
	    __atomic_exchange_n(&warned, 1, __ATOMIC_RELAXED))
		return;
	fprintf(stderr,
		"libmlx4: Warning: XRC QP 0x%06x of %s is connected to QP 0x%06x, which is not an "
		"XRC receive QP of "
		"a device of this kind. With this kernel a QP of ibv_create_qp() only sends: make "
		"its peer with "
		"ibv_create_xrc_rcv_qp().\n",
		ibqp->qp_num, ibqp->context->device->name, dest_qp_num);
}

int mlx4_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct mlx4_qp *qp = to_mlx4_qp(ibqp);
	struct ibv_modify_qp cmd;
	int layer, ret;

	if (attr_mask & IBV_QP_STATE && ibqp->state == IBV_QPS_RESET &&
	    attr->qp_state == IBV_QPS_INIT) {
		mlx4_lock(&qp->sq.lock);
		mlx4_init_sq_ownership(qp);
		mlx4_unlock(&qp->sq.lock);
	}

	ret = ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd, sizeof(cmd));
	if (ret)
		return ret;

	if (attr_mask & IBV_QP_PORT) {
		/* If the query fails, InfiniBand is assumed: the modify has succeeded already. */
		layer = mlx4_link_layer(to_mlx4_ctx(ibqp->context), attr->port_num);
		qp->sl_shift =
			layer == IBV_LINK_LAYER_ETHERNET ? SL_SHIFT_ETHERNET : SL_SHIFT_INFINIBAND;
	}

	if (attr_mask & IBV_QP_DEST_QPN && ibqp->qp_type == IBV_QPT_XRC)
		check_xrc_peer(ibqp, attr->dest_qp_num);

	if (attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		forget_work(qp);
	return 0;
}

int mlx4_destroy_qp(struct ibv_qp *ibqp)
{
	struct mlx4_context *ctx = to_mlx4_ctx(ibqp->context);
	struct mlx4_qp *qp = to_mlx4_qp(ibqp);
	int ret;

	ret = ibv_cmd_destroy_qp(ibqp);
	if (ret)
		return ret;

	pthread_mutex_lock(&ctx->qps.mutex);
	if (mlx4_table_find(&ctx->qps, ibqp->qp_num) == qp)
		take_out(ctx, qp);
	pthread_mutex_unlock(&ctx->qps.mutex);

	free_qp(ctx, qp);
	return 0;
}
