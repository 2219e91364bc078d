// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Address handles: address vectors in the provider's memory. The kernel does not know of them. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>

#include "mlx4.h"

/* Returns 0, -EINVAL without a GRH, or the error of ibv_resolve_eth_gid(). */
static int set_ethernet(struct ibv_pd *pd, struct ibv_ah_attr *attr, struct mlx4_ah *ah)
{
	uint8_t is_mcast, tagged;
	uint16_t vlan;
	int ret;

	if (!attr->is_global)
		return -EINVAL;

	ret = ibv_resolve_eth_gid(pd, attr->port_num, &attr->grh.dgid, attr->grh.sgid_index,
				  ah->mac, &vlan, &tagged, &is_mcast);
	if (ret)
		return ret == -1 ? -EINVAL : ret;

	if (is_mcast) {
		ah->av.port_pd |= MLX4_BE32(MLX4_AV_FORCE_LB);
		ah->av.dlid = to_be16(MLX4_ROCE_MCAST_DLID);
	}
	if (tagged) {
		ah->av.port_pd |= MLX4_BE32(MLX4_AV_VLAN);
		ah->vlan = to_be16((vlan & 0xfff) | (attr->sl & 7) << 13);
	}
	return 0;
}

struct ibv_ah *mlx4_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	unsigned int sl_shift = MLX4_AV_SL_SHIFT;
	uint32_t sl_tclass_flow = 0;
	struct mlx4_ah *ah;
	int layer, ret;

	layer = mlx4_link_layer(to_mlx4_ctx(pd->context), attr->port_num);
	if (layer < 0) {
		errno = -layer;
		return NULL;
	}

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;

	ah->av.port_pd = to_be32((to_mlx4_pd(pd)->pdn & MLX4_PDN_MASK) |
				 (uint32_t)attr->port_num << MLX4_AV_PORT_SHIFT);
	ah->av.g_slid = attr->src_path_bits & 0x7f;
	ah->av.dlid = to_be16(attr->dlid);
	if (attr->static_rate)
		ah->av.stat_rate = attr->static_rate + MLX4_STAT_RATE_OFFSET;

	if (attr->is_global) {
		ah->av.g_slid |= MLX4_AV_GRH;
		ah->av.gid_index = attr->grh.sgid_index;
		ah->av.hop_limit = attr->grh.hop_limit;
		sl_tclass_flow = (uint32_t)attr->grh.traffic_class << MLX4_AV_TCLASS_SHIFT |
				 (attr->grh.flow_label & MLX4_AV_FLOW_MASK);
		memcpy(ah->av.dgid, attr->grh.dgid.raw, sizeof(ah->av.dgid));
	}

	if (layer == IBV_LINK_LAYER_ETHERNET) {
		ret = set_ethernet(pd, attr, ah);
		if (ret) {
			free(ah);
			errno = -ret;
			return NULL;
		}
		sl_shift = MLX4_AV_SL_SHIFT + 1; /* three bits of priority */
	}
	ah->av.sl_tclass_flowlabel = to_be32((uint32_t)attr->sl << sl_shift | sl_tclass_flow);

	return &ah->ibv_ah;
}

int mlx4_destroy_ah(struct ibv_ah *ibah)
{
	free(to_mlx4_ah(ibah));
	return 0;
}
