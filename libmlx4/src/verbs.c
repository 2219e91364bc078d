// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Verbs that are little more than a kernel command: device, port, protection domain, memory
 * region. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "mlx4.h"
#include "mlx4-cmd.h"

int mlx4_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct ibv_query_device cmd;
	uint64_t raw;
	int ret;

	ret = ibv_cmd_query_device(context, attr, &raw, &cmd, sizeof(cmd));
	if (ret)
		return ret;

	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%u.%u.%03u",
		 (unsigned int)(raw >> 32) & 0xffff, (unsigned int)(raw >> 16) & 0xffff,
		 (unsigned int)raw & 0xffff);
	return 0;
}

int mlx4_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

int mlx4_link_layer(struct mlx4_context *ctx, uint8_t port)
{
	struct ibv_port_attr attr;
	uint8_t *known;
	uint8_t layer;
	int ret;

	if (port < 1 || port > MLX4_PORTS)
		return -EINVAL;

	known = &ctx->link_layer[port - 1];
	layer = __atomic_load_n(known, __ATOMIC_RELAXED);
	if (layer)
		return layer;

	memset(&attr, 0, sizeof(attr));
	ret = mlx4_query_port(&ctx->ibv_ctx, port, &attr);
	if (ret)
		return -ret;

	/* Kernels older than RoCE do not report it. */
	layer = attr.link_layer == IBV_LINK_LAYER_UNSPECIFIED ? IBV_LINK_LAYER_INFINIBAND
							      : attr.link_layer;
	__atomic_store_n(known, layer, __ATOMIC_RELAXED);
	return layer;
}

struct ibv_pd *mlx4_alloc_pd(struct ibv_context *context)
{
	struct mlx4_alloc_pd_resp resp = {0};
	struct ibv_alloc_pd cmd;
	struct mlx4_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	ret = ibv_cmd_alloc_pd(context, &pd->ibv_pd, &cmd, sizeof(cmd), &resp.core, sizeof(resp));
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}

	pd->pdn = resp.drv.pdn;
	return &pd->ibv_pd;
}

int mlx4_dealloc_pd(struct ibv_pd *ibpd)
{
	int ret;

	ret = ibv_cmd_dealloc_pd(ibpd);
	if (ret)
		return ret;
	free(to_mlx4_pd(ibpd));
	return 0;
}

struct ibv_mr *mlx4_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct ibv_mr *mr;
	int ret;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;

	ret = ibv_cmd_reg_mr(pd, addr, length, (uintptr_t)addr, access, mr, &cmd, sizeof(cmd),
			     &resp, sizeof(resp));
	if (ret) {
		free(mr);
		errno = ret;
		return NULL;
	}
	return mr;
}

int mlx4_dereg_mr(struct ibv_mr *mr)
{
	int ret;

	ret = ibv_cmd_dereg_mr(mr);
	if (ret)
		return ret;
	free(mr);
	return 0;
}
