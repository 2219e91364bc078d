// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Creates, resizes, destroys and arms CQs. cq-poll.c and cq-clean.c handle the CQEs. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>

#include "mlx4.h"
#include "mlx4-cmd.h"

/* Returns -EINVAL or the size of the queue, which includes a CQE for the marker of a resize. */
static int cq_entries(int cqe)
{
	if (cqe < 1 || cqe > MLX4_MAX_CQE)
		return -EINVAL;
	return mlx4_ceil_pow2(cqe + 1);
}

static void attach_buf(struct mlx4_context *ctx, struct mlx4_cq *cq, const struct mlx4_buf *buf,
		       uint32_t entries)
{
	cq->buf = *buf;
	/* The device writes only the second half of a 64-byte CQE. */
	cq->cqes = (void *)((char *)buf->addr + (ctx->cqe_size - MLX4_CQE_SIZE));
	cq->mask = entries - 1;
	cq->end = (void *)((char *)cq->cqes + (size_t)entries * cq->stride);
	mlx4_cq_set_ci(cq, cq->cons_index);
}

struct ibv_cq *mlx4_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	struct mlx4_context *ctx = to_mlx4_ctx(context);
	struct mlx4_create_cq_resp resp = {0};
	struct mlx4_create_cq_cmd cmd;
	struct mlx4_buf buf;
	struct mlx4_cq *cq;
	int entries, err;

	entries = cq_entries(cqe);
	if (entries < 0) {
		errno = -entries;
		return NULL;
	}

	cq = mlx4_zalloc(sizeof(*cq));
	if (!cq)
		return NULL;

	mlx4_lock_init(&cq->lock, ctx->single_threaded);
	cq->stride = ctx->cqe_size;
	mlx4_cq_forget_qp(cq);
	mlx4_cq_forget_srq(cq);
	cq->arm_sn = 1; /* the device starts with 0, so the first arm must differ */

	err = mlx4_alloc_buf(ctx, &buf, (size_t)entries * ctx->cqe_size);
	if (err)
		goto free_cq;
	attach_buf(ctx, cq, &buf, entries);

	cq->db = mlx4_alloc_db(ctx, MLX4_DB_CQ);
	if (!cq->db) {
		err = -errno;
		goto free_buf;
	}

	memset(&cmd, 0, sizeof(cmd));
	cmd.drv.buf_addr = (uintptr_t)buf.addr;
	cmd.drv.db_addr = (uintptr_t)cq->db;
	err = -ibv_cmd_create_cq(context, entries - 1, channel, comp_vector, &cq->ibv_cq, &cmd.core,
				 sizeof(cmd), &resp.core, sizeof(resp));
	if (err)
		goto free_db;

	cq->cqn = resp.drv.cqn;
	return &cq->ibv_cq;

free_db:
	mlx4_free_db(ctx, MLX4_DB_CQ, cq->db);
free_buf:
	mlx4_free_buf(&cq->buf);
free_cq:
	free(cq);
	errno = -err;
	return NULL;
}

/* Returns the number of CQEs that wait, at most the size of the queue. */
static uint32_t outstanding(const struct mlx4_cq *cq)
{
	uint32_t n = 0;
	uint32_t ci = cq->cons_index;

	while (n <= cq->mask && mlx4_cqe_owned(mlx4_cqe_at(cq, ci + n), mlx4_cq_phase(cq, ci + n)))
		++n;
	return n;
}

int mlx4_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct mlx4_context *ctx = to_mlx4_ctx(ibcq->context);
	struct mlx4_cq *cq = to_mlx4_cq(ibcq);
	struct mlx4_buf new_buf, old_buf;
	struct ibv_resize_cq_resp resp;
	struct mlx4_resize_cq_cmd cmd;
	int entries, err;

	entries = cq_entries(cqe);
	if (entries < 0)
		return -entries;

	err = mlx4_alloc_buf(ctx, &new_buf, (size_t)entries * ctx->cqe_size);
	if (err)
		return -err;
	old_buf = new_buf;

	/* No thread may poll until the marker is written and the CQEs have been moved. */
	mlx4_lock(&cq->lock);
	if ((uint32_t)entries == cq->mask + 1)
		goto out;
	if ((uint32_t)entries < outstanding(cq) + 1) {
		err = -EINVAL;
		goto out;
	}

	memset(&cmd, 0, sizeof(cmd));
	cmd.drv.buf_addr = (uintptr_t)new_buf.addr;
	err = -ibv_cmd_resize_cq(ibcq, entries - 1, &cmd.core, sizeof(cmd), &resp, sizeof(resp));
	if (err)
		goto out;

	old_buf = cq->buf;
	mlx4_cq_copy_resized(cq, (void *)((char *)new_buf.addr + (ctx->cqe_size - MLX4_CQE_SIZE)),
			     entries - 1);
	attach_buf(ctx, cq, &new_buf, entries);
	udma_to_device_barrier(); /* the moved CQEs are in place before the device is told that there
				     is room */
	mlx4_cq_update_ci(cq);
out:
	mlx4_unlock(&cq->lock);
	mlx4_free_buf(&old_buf);
	return -err;
}

int mlx4_destroy_cq(struct ibv_cq *ibcq)
{
	struct mlx4_cq *cq = to_mlx4_cq(ibcq);
	int ret;

	ret = ibv_cmd_destroy_cq(ibcq);
	if (ret)
		return ret;

	mlx4_free_db(to_mlx4_ctx(ibcq->context), MLX4_DB_CQ, cq->db);
	mlx4_free_buf(&cq->buf);
	free(cq);
	return 0;
}

static void ring_cq_doorbell(struct mlx4_context *ctx, const __be32 db[2])
{
	char *uar = (char *)ctx->uar + MLX4_UAR_CQ_DB;

#if __SIZEOF_LONG__ == 8
	__be64 both;

	memcpy(&both, db, sizeof(both));
	mmio_write64(uar, both);
	(void)ctx;
#else
	mlx4_lock(&ctx->uar_lock);
	mmio_write32(uar, db[0]);
	mmio_write32(uar + 4, db[1]);
	mlx4_unlock(&ctx->uar_lock);
#endif
}

/*
 * Takes no lock. If another thread polls meanwhile, the consumer index is too old, and the device
 * may raise an event too early, which is harmless. A CQE that arrives meanwhile is not missed,
 * because the device compares it with the index that it gets.
 */
int mlx4_arm_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct mlx4_cq *cq = to_mlx4_cq(ibcq);
	uint32_t ci = __atomic_load_n(&cq->cons_index, __ATOMIC_RELAXED) & MLX4_CQ_DB_CI_MASK;
	uint32_t sn = __atomic_load_n(&cq->arm_sn, __ATOMIC_RELAXED) & MLX4_CQ_DB_SN_MASK;
	uint32_t cmd = sn << MLX4_CQ_DB_SN_SHIFT |
		       (solicited_only ? MLX4_CQ_ARM_SOLICITED : MLX4_CQ_ARM_NEXT)
			       << MLX4_CQ_DB_CMD_SHIFT;
	__be32 doorbell[2] = {to_be32(cmd | cq->cqn), to_be32(ci)};

	*(volatile __be32 *)&cq->db->arm = to_be32(cmd | ci);
	udma_to_device_barrier(); /* pairs with the device's read of the record when the doorbell
				     rings */
	ring_cq_doorbell(to_mlx4_ctx(ibcq->context), doorbell);
	return 0;
}

void mlx4_cq_event(struct ibv_cq *ibcq)
{
	__atomic_fetch_add(&to_mlx4_cq(ibcq)->arm_sn, 1, __ATOMIC_RELAXED);
}
