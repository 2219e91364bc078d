/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The list of a receive: its entries, and where it ends.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_SGE_H
#define SOFTHCA_DEVICE_QUEUES_SGE_H

#include "mlx4-bytes.h"
#include "mlx4-format.h"
#include "softhca/device/memory/mr.h"

/* An entry of a WQE's list. */
static inline struct sh_sge sh_sge_of(const struct mlx4_wqe_data *data)
{
	return (struct sh_sge){
		.addr = from_be64(data->addr),
		.len = from_be32(data->byte_count),
		.key = from_be32(data->lkey),
	};
}

/* Is this the mark behind the last entry of a list? */
static inline bool sh_sge_ends(const struct sh_sge *sge)
{
	return sge->key == MLX4_INVALID_LKEY;
}

/* Reads a list of n entries at most. Returns how many it has. */
static inline unsigned int sh_sge_list(const struct mlx4_wqe_data *data, unsigned int n,
				       struct sh_sge *sge)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		sge[i] = sh_sge_of(&data[i]);
		if (sh_sge_ends(&sge[i]))
			break;
	}
	return i;
}

#endif
