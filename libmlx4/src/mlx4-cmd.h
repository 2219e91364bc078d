// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Commands and responses as they are written: libibverbs's core structure, then the driver's
 * part. */
#ifndef MLX4_CMD_H
#define MLX4_CMD_H

#include <infiniband/kern-abi.h>

#include "mlx4-abi.h"

struct mlx4_get_context_resp_v3 {
	struct ibv_get_context_resp core;
	struct mlx4_abi_context_resp_v3 drv;
};
_Static_assert(sizeof(struct mlx4_get_context_resp_v3) == 16, "GET_CONTEXT response, version 3");

struct mlx4_get_context_resp {
	struct ibv_get_context_resp core;
	struct mlx4_abi_context_resp drv;
};
_Static_assert(sizeof(struct mlx4_get_context_resp) == 24, "GET_CONTEXT response, version 4");

struct mlx4_alloc_pd_resp {
	struct ibv_alloc_pd_resp core;
	struct mlx4_abi_alloc_pd_resp drv;
};
_Static_assert(sizeof(struct mlx4_alloc_pd_resp) == 12, "ALLOC_PD response");

struct mlx4_create_cq_cmd {
	struct ibv_create_cq core;
	struct mlx4_abi_create_cq drv;
};
_Static_assert(sizeof(struct mlx4_create_cq_cmd) == 56, "CREATE_CQ");

struct mlx4_create_cq_resp {
	struct ibv_create_cq_resp core;
	struct mlx4_abi_create_cq_resp drv;
};
_Static_assert(sizeof(struct mlx4_create_cq_resp) == 16, "CREATE_CQ response");

struct mlx4_resize_cq_cmd {
	struct ibv_resize_cq core;
	struct mlx4_abi_resize_cq drv;
};
_Static_assert(sizeof(struct mlx4_resize_cq_cmd) == 32, "RESIZE_CQ");

struct mlx4_create_srq_cmd {
	struct ibv_create_srq core;
	struct mlx4_abi_create_srq drv;
};
_Static_assert(sizeof(struct mlx4_create_srq_cmd) == 56, "CREATE_SRQ");

struct mlx4_create_srq_resp {
	struct ibv_create_srq_resp core;
	struct mlx4_abi_create_srq_resp drv;
};
_Static_assert(sizeof(struct mlx4_create_srq_resp) == 24, "CREATE_SRQ response");

struct mlx4_create_xrc_srq_cmd {
	struct ibv_create_xrc_srq core;
	struct mlx4_abi_create_srq drv;
};
_Static_assert(sizeof(struct mlx4_create_xrc_srq_cmd) == 64, "CREATE_XRC_SRQ");

struct mlx4_open_xrc_domain_resp {
	struct ibv_open_xrc_domain_resp core;
	struct mlx4_abi_open_xrc_domain_resp drv;
};
_Static_assert(sizeof(struct mlx4_open_xrc_domain_resp) == 12, "OPEN_XRC_DOMAIN response");

struct mlx4_create_qp_cmd {
	struct ibv_create_qp core;
	struct mlx4_abi_create_qp drv;
};
_Static_assert(sizeof(struct mlx4_create_qp_cmd) == 88, "CREATE_QP");

#endif
