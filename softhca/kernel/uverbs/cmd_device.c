// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device and its ports as commands tell them: a ConnectX-2 (26428) with firmware 2.9.1000. */
#include <endian.h>
#include <errno.h>
#include <unistd.h>

#include "libmlx4/src/mlx4-abi.h"
#include "softhca/device/memory/qp_context.h"
#include "softhca/kernel/kern.h"
#include "softhca/kernel/ports.h"
#include "commands.h"
#include "context.h"
#include "evq.h"
#include "limits.h"

int cmd_get_context(struct call *c)
{
	struct kernel *k = c->k;
	struct kctx *ctx = c->ctx;
	struct uv_get_context_resp resp = {.num_comp_vectors = K_COMP_VECTORS};
	struct mlx4_abi_context_resp_v3 v3 = {
		.qp_tab_size = 1u << SH_LOG_QPS,
		.bf_reg_size = K_BF_REG_SIZE,
		.bf_regs_per_page = K_PAGE / K_BF_REG_SIZE,
	};
	struct mlx4_abi_context_resp v4 = {
		.dev_caps = MLX4_DEV_CAP_LARGE_CQE,
		.qp_tab_size = v3.qp_tab_size,
		.bf_reg_size = v3.bf_reg_size,
		.bf_regs_per_page = v3.bf_regs_per_page,
		.cqe_size = k->cfg.device.cqe_size,
	};
	struct kevq *e;
	int err, fd;

	if (ctx->started)
		return -EINVAL;
	err = evq_open(ctx, true, &e, &fd);
	if (err < 0)
		return err;
	if (k->cfg.device.driver_abi > MLX4_UVERBS_NO_DEV_CAPS_ABI)
		err = call_respond(c, &resp, sizeof(resp), &v4, sizeof(v4));
	else
		err = call_respond(c, &resp, sizeof(resp), &v3, sizeof(v3));
	if (err < 0) {
		close(fd);
		evq_free(k, e);
		return err;
	}
	ctx->async = e;
	__atomic_store_n(&sh_ctx(&k->dev, ctx->index)->async_evq, e->index, __ATOMIC_RELEASE);
	ctx->started = true;
	call_fd(c, fd, c->resp + offsetof(struct uv_get_context_resp, async_fd));
	return 0;
}

void fill_query_device(struct call *c, struct uv_query_device_resp *r)
{
	uint64_t guid = sh_hca(&c->k->dev, c->ctx->hca)->node_guid;
	uint32_t ports = c->k->cfg.device.ports;

	*r = (struct uv_query_device_resp){
		.fw_ver = UINT64_C(2) << 32 | 9 << 16 | 1000,
		.node_guid = htobe64(guid),
		.sys_image_guid = htobe64(guid + 3),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffffe00,
		.vendor_id = 0x02c9,
		.vendor_part_id = 26428,
		.hw_ver = 0xb0,
		.max_qp = 261056,
		.max_qp_wr = K_MAX_WQES - K_SPARE_WQES,
		/* Bit 23 means memory windows in mainline. */
		.device_cap_flags = c->k->cfg.device.face == SH_FACE_OFED ? 0x00fc9c76 : 0x007c9c76,
		.max_sge = K_MAX_SGE,
		.max_cq = 65408,
		.max_cqe = K_MAX_CQES,
		.max_mr = 524272,
		.max_pd = 32764,
		.max_qp_rd_atom = SH_QP_ATOMICS,
		.max_res_rd_atom = SH_QP_ATOMICS * 261056,
		.max_qp_init_rd_atom = SH_QP_READS,
		.atomic_cap = 1,
		.max_raw_ethy_qp = ports,
		.max_mcast_grp = SH_MAX_MCG,
		.max_mcast_qp_attach = SH_MCG_QPS,
		.max_total_mcast_qp_attach = SH_MAX_MCG * SH_MCG_QPS,
		.max_srq = 65472,
		.max_srq_wr = K_MAX_WQES - 1,
		.max_srq_sge = K_MAX_SRQ_SGE,
		.max_pkeys = SH_PKEYS,
		.local_ca_ack_delay = 15,
		.phys_port_cnt = ports,
	};
}

int cmd_query_device(struct call *c)
{
	struct uv_query_device_resp resp;

	fill_query_device(c, &resp);
	return call_respond(c, &resp, sizeof(resp), NULL, 0);
}

int cmd_query_port(struct call *c)
{
	const struct uv_query_port *cmd = (const void *)c->in;
	struct uv_query_port_resp resp;
	const struct sh_port *port;
	bool up;

	if (!cmd->port_num || cmd->port_num > c->k->cfg.device.ports)
		return -EINVAL;
	port = &sh_hca(&c->k->dev, c->ctx->hca)->port[cmd->port_num - 1];
	up = port->state == 4;
	resp = (struct uv_query_port_resp){
		.port_cap_flags = port_capabilities(c->k, c->ctx->hca, cmd->port_num),
		.max_msg_sz = 0x40000000,
		.gid_tbl_len = SH_GIDS,
		.pkey_tbl_len = SH_PKEYS,
		.lid = port->lid,
		.sm_lid = port->sm_lid,
		.state = port->state,
		.max_mtu = 5,
		.active_mtu = port_mtu(c->k),
		.lmc = port->lmc,
		.max_vl_num = 4,
		.subnet_timeout = 18,
		.active_width = 2,
		.active_speed = 4,
		.phys_state = up ? PORT_LINK_UP : port_physical(c->k, c->ctx->hca, cmd->port_num),
		.link_layer = 1,
	};
	return call_respond(c, &resp, sizeof(resp), NULL, 0);
}
