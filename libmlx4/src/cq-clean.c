// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Rearranges the CQEs that wait in a CQ: removes those of an object that is destroyed or reset, and
 * moves them to a buffer of another size. Callers hold the lock of the CQ. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include "mlx4.h"

static int is_send(const struct mlx4_cqe *cqe)
{
	return cqe->owner_sr_opcode & MLX4_CQE_IS_SEND;
}

static uint32_t cqe_qpn(const struct mlx4_cqe *cqe)
{
	return from_be32(cqe->vlan_my_qpn) & MLX4_CQE_QPN_MASK;
}

/* Receives of XRC QPs belong to the SRQ that they name. They stay when the QP is destroyed. */
static int is_xrc_receive(const struct mlx4_cqe *cqe)
{
	return !is_send(cqe) && cqe_qpn(cqe) & MLX4_XRC_QPN_BIT;
}

static void give_back(struct mlx4_srq *srq, const struct mlx4_cqe *cqe)
{
	uint32_t index = from_be16(cqe->wqe_index);

	if (index >= srq->max)
		return;
	mlx4_lock(&srq->lock);
	mlx4_srq_free(srq, index);
	mlx4_unlock(&srq->lock);
}

/* Copies a CQE to another place, which keeps its own owner bit. */
static void move_body(struct mlx4_cqe *to, const struct mlx4_cqe *from, uint8_t owner)
{
	memcpy(to, from, offsetof(struct mlx4_cqe, owner_sr_opcode));
	to->owner_sr_opcode = (from->owner_sr_opcode & ~MLX4_CQE_OWNER) | owner;
}

/* Removes all waiting CQEs that match, and gives the WQEs of receives back to the SRQ. */
static void clean(struct mlx4_cq *cq, uint32_t number, struct mlx4_srq *srq, int xrc)
{
	uint32_t prod = cq->cons_index;
	struct mlx4_cqe *cqe, *dest;
	uint32_t dropped = 0;
	int match;

	while (prod - cq->cons_index <= cq->mask &&
	       mlx4_cqe_owned(mlx4_cqe_at(cq, prod), mlx4_cq_phase(cq, prod)))
		++prod;
	udma_from_device_barrier(); /* pairs with the device's order: body, then owner bit */
	VALGRIND_MAKE_MEM_DEFINED(cq->buf.addr, cq->buf.length);

	/* From the newest to the oldest. CQEs that stay move up over those that are removed. */
	while (prod != cq->cons_index) {
		--prod;
		cqe = mlx4_cqe_at(cq, prod);
		if (xrc)
			match = is_xrc_receive(cqe) &&
				(from_be32(cqe->g_mlpath_rqpn) & MLX4_CQE_QPN_MASK) == number;
		else
			match = cqe_qpn(cqe) == number && !is_xrc_receive(cqe);

		if (match) {
			if (srq && !is_send(cqe))
				give_back(srq, cqe);
			++dropped;
		} else if (dropped) {
			dest = mlx4_cqe_at(cq, prod + dropped);
			move_body(dest, cqe, dest->owner_sr_opcode & MLX4_CQE_OWNER);
		}
	}

	if (dropped) {
		mlx4_cq_set_ci(cq, cq->cons_index + dropped);
		udma_to_device_barrier(); /* the moves come before the device may use the places
					     that became free */
		mlx4_cq_update_ci(cq);
	}
}

void mlx4_cq_clean_qp(struct mlx4_cq *cq, uint32_t qpn, struct mlx4_srq *srq)
{
	clean(cq, qpn, srq, 0);
}

void mlx4_cq_clean_xrc_srq(struct mlx4_cq *cq, struct mlx4_srq *srq)
{
	clean(cq, srq->srqn, srq, 1);
}

/*
 * Called after the device has switched to a new buffer. Moves the CQEs before the marker to their
 * places in the new buffer, one further because the marker counts as a CQE. The device has written
 * the marker when the command returns; the search is bounded by the size of the queue anyway. After
 * this the caller switches to the new buffer.
 */
void mlx4_cq_copy_resized(struct mlx4_cq *cq, struct mlx4_cqe *new_cqes, uint32_t new_mask)
{
	uint32_t i = cq->cons_index;
	struct mlx4_cqe *cqe, *dest;

	VALGRIND_MAKE_MEM_DEFINED(cq->buf.addr, cq->buf.length);
	for (; i - cq->cons_index <= cq->mask; ++i) {
		cqe = mlx4_cqe_at(cq, i);
		if ((cqe->owner_sr_opcode & MLX4_CQE_OPCODE_MASK) == MLX4_CQE_RESIZE &&
		    !is_send(cqe))
			break;
		dest = (struct mlx4_cqe *)((char *)new_cqes +
					   (size_t)((i + 1) & new_mask) * cq->stride);
		move_body(dest, cqe, (i + 1) & (new_mask + 1) ? MLX4_CQE_OWNER : 0);
	}
	++cq->cons_index;
}
