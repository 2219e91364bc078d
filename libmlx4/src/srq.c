// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Creates, modifies, queries and destroys SRQs, with and without XRC. post-recv.c posts to them. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>

#include "mlx4.h"
#include "mlx4-cmd.h"

enum { MAX_WR = 65536, MAX_SGE = 64 };

static void link_wqes(struct mlx4_srq *srq)
{
	uint32_t entries = ((1u << srq->shift) - sizeof(struct mlx4_wqe_srq_next)) /
			   sizeof(struct mlx4_wqe_data);
	struct mlx4_wqe_srq_next *wqe;
	struct mlx4_wqe_data *data;
	uint32_t i, k;

	for (i = 0; i < srq->max; ++i) {
		wqe = (void *)((char *)srq->buf.addr + ((size_t)i << srq->shift));
		wqe->next_wqe_index = to_be16((i + 1) & (srq->max - 1));
		/* The device reads these keys behind a short list, and they end it. */
		data = (struct mlx4_wqe_data *)(wqe + 1);
		for (k = 0; k < entries; ++k)
			data[k].lkey = MLX4_BE32(MLX4_INVALID_LKEY);

		srq->wqes[i].wqe = wqe;
		srq->wqes[i].link = (MLX4_FORCE uint16_t)to_be16(i);
		srq->wqes[i].next = i + 1 < srq->max ? &srq->wqes[i + 1] : NULL;
	}
	srq->head = &srq->wqes[0];
	srq->tail = &srq->wqes[srq->max - 1];
}

static void free_srq(struct mlx4_context *ctx, struct mlx4_srq *srq)
{
	if (srq->db)
		mlx4_free_db(ctx, MLX4_DB_RQ, srq->db);
	mlx4_free_buf(&srq->buf);
	free(srq->wqes);
	free(srq);
}

/* The common part of creation, up to the command. NULL with errno set. */
static struct mlx4_srq *new_srq(struct mlx4_context *ctx, const struct ibv_srq_attr *attr)
{
	struct mlx4_srq *srq;
	int err;

	if (attr->max_wr > MAX_WR || attr->max_sge > MAX_SGE) {
		errno = EINVAL;
		return NULL;
	}

	srq = mlx4_zalloc(sizeof(*srq));
	if (!srq)
		return NULL;

	mlx4_lock_init(&srq->lock, ctx->single_threaded);
	srq->max = mlx4_ceil_pow2(attr->max_wr + 1);
	srq->max_gs = attr->max_sge ? attr->max_sge : 1; /* the smallest slot has room for one */
	srq->shift = mlx4_ceil_shift(sizeof(struct mlx4_wqe_srq_next) +
					     attr->max_sge * sizeof(struct mlx4_wqe_data),
				     MLX4_MIN_SRQ_SHIFT);

	srq->wqes = calloc(srq->max, sizeof(*srq->wqes));
	if (!srq->wqes)
		goto fail;

	err = mlx4_alloc_buf(ctx, &srq->buf, (size_t)srq->max << srq->shift);
	if (err) {
		errno = -err;
		goto fail;
	}
	link_wqes(srq);

	srq->db = mlx4_alloc_db(ctx, MLX4_DB_RQ);
	if (!srq->db)
		goto fail;

	return srq;

fail:
	err = errno;
	free_srq(ctx, srq);
	errno = err;
	return NULL;
}

struct ibv_srq *mlx4_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct mlx4_context *ctx = to_mlx4_ctx(pd->context);
	struct mlx4_create_srq_resp resp = {0};
	struct mlx4_create_srq_cmd cmd;
	struct mlx4_srq *srq;
	int ret;

	srq = new_srq(ctx, &attr->attr);
	if (!srq)
		return NULL;

	memset(&cmd, 0, sizeof(cmd));
	cmd.drv.buf_addr = (uintptr_t)srq->buf.addr;
	cmd.drv.db_addr = (uintptr_t)srq->db;
	ret = ibv_cmd_create_srq(pd, &srq->ibv_srq, attr, &cmd.core, sizeof(cmd), &resp.core,
				 sizeof(resp));
	if (ret) {
		free_srq(ctx, srq);
		errno = ret;
		return NULL;
	}

	srq->srqn = resp.drv.srqn;
	return &srq->ibv_srq;
}

/* As for QPs (qp.c): remove the SRQ from the number table, and add it. */
static void take_out(struct mlx4_context *ctx, struct mlx4_srq *srq)
{
	struct mlx4_cq *cq = srq->xrc_cq;

	mlx4_lock(&cq->lock);
	mlx4_cq_clean_xrc_srq(cq, srq);
	mlx4_cq_forget_srq(cq);
	mlx4_table_clear(&ctx->xrc_srqs, srq->srqn);
	mlx4_unlock(&cq->lock);
}

static int put_in(struct mlx4_context *ctx, struct mlx4_srq *srq)
{
	struct mlx4_srq *former;
	int err;

	pthread_mutex_lock(&ctx->xrc_srqs.mutex);
	former = mlx4_table_find(&ctx->xrc_srqs, srq->srqn);
	if (former)
		take_out(ctx, former);
	err = mlx4_table_store(&ctx->xrc_srqs, srq->srqn, srq);
	pthread_mutex_unlock(&ctx->xrc_srqs.mutex);
	return err;
}

struct ibv_srq *mlx4_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *domain,
				    struct ibv_cq *cq, struct ibv_srq_init_attr *attr)
{
	struct mlx4_context *ctx = to_mlx4_ctx(pd->context);
	struct mlx4_create_srq_resp resp = {0};
	struct mlx4_create_xrc_srq_cmd cmd;
	struct mlx4_srq *srq;
	int ret;

	srq = new_srq(ctx, &attr->attr);
	if (!srq)
		return NULL;

	memset(&cmd, 0, sizeof(cmd));
	cmd.drv.buf_addr = (uintptr_t)srq->buf.addr;
	cmd.drv.db_addr = (uintptr_t)srq->db;
	srq->xrc_cq = to_mlx4_cq(cq);
	srq->ibv_srq.context = pd->context; /* for the destroy below */

	ret = ibv_cmd_create_xrc_srq(pd, &srq->ibv_srq, attr, domain->handle, cq->handle, &cmd.core,
				     sizeof(cmd), &resp.core, sizeof(resp));
	if (ret)
		goto fail;

	srq->srqn = resp.drv.srqn & MLX4_QPN_MASK;
	srq->ibv_srq.xrc_srq_num = srq->srqn;
	ret = -put_in(ctx, srq);
	if (ret) {
		ibv_cmd_destroy_srq(&srq->ibv_srq);
		goto fail;
	}
	return &srq->ibv_srq;

fail:
	free_srq(ctx, srq);
	errno = ret;
	return NULL;
}

int mlx4_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int attr_mask)
{
	struct ibv_modify_srq cmd;

	return ibv_cmd_modify_srq(ibsrq, attr, attr_mask, &cmd, sizeof(cmd));
}

int mlx4_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

int mlx4_destroy_srq(struct ibv_srq *ibsrq)
{
	struct mlx4_context *ctx = to_mlx4_ctx(ibsrq->context);
	struct mlx4_srq *srq = to_mlx4_srq(ibsrq);
	int ret;

	/* The kernel comes first: if it refuses, no completion has been lost. After the command the
	 * device writes no more CQEs of the SRQ. */
	ret = ibv_cmd_destroy_srq(ibsrq);
	if (ret)
		return ret;

	if (srq->xrc_cq) {
		pthread_mutex_lock(&ctx->xrc_srqs.mutex);
		if (mlx4_table_find(&ctx->xrc_srqs, srq->srqn) == srq)
			take_out(ctx, srq);
		pthread_mutex_unlock(&ctx->xrc_srqs.mutex);
	}
	free_srq(ctx, srq);
	return 0;
}
