// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The command channel: how a command is written, and the commands for contexts, ports, protection
 * domains, memory, address handles and multicast. This file keeps no state, and takes a lock only
 * to wait for acknowledgements. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

int cmd_write(const struct ibv_context *context, const void *cmd, size_t size)
{
	ssize_t len;

	len = write(context->cmd_fd, cmd, size);
	if (len == (ssize_t)size)
		return 0;

	return fail(len < 0 ? errno : EIO);
}

void cmd_move_driver_resp(void *resp, size_t resp_size, size_t old_core, size_t core)
{
	if (resp_size > core)
		memmove((char *)resp + core, (char *)resp + old_core, resp_size - core);
}

void wait_acked(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
		uint32_t reported)
{
	pthread_mutex_lock(mutex);
	/*
	 * The counts wrap. *completed may exceed reported: a device that died while it raised an
	 * event may not know whether it raised it.
	 */
	while ((int32_t)(*completed - reported) < 0)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

void qp_dest_from_ah(struct ibv_qp_dest *dest, const struct ibv_ah_attr *ah)
{
	memset(dest, 0, sizeof(*dest));
	memcpy(dest->dgid, ah->grh.dgid.raw, sizeof(dest->dgid));
	dest->flow_label = ah->grh.flow_label;
	dest->sgid_index = ah->grh.sgid_index;
	dest->hop_limit = ah->grh.hop_limit;
	dest->traffic_class = ah->grh.traffic_class;
	dest->dlid = ah->dlid;
	dest->sl = ah->sl;
	dest->src_path_bits = ah->src_path_bits;
	dest->static_rate = ah->static_rate;
	dest->is_global = ah->is_global;
	dest->port_num = ah->port_num;
}

void ah_from_qp_dest(struct ibv_ah_attr *ah, const struct ibv_qp_dest *dest)
{
	memset(ah, 0, sizeof(*ah));
	memcpy(ah->grh.dgid.raw, dest->dgid, sizeof(dest->dgid));
	ah->grh.flow_label = dest->flow_label;
	ah->grh.sgid_index = dest->sgid_index;
	ah->grh.hop_limit = dest->hop_limit;
	ah->grh.traffic_class = dest->traffic_class;
	ah->dlid = dest->dlid;
	ah->sl = dest->sl;
	ah->src_path_bits = dest->src_path_bits;
	ah->static_rate = dest->static_rate;
	ah->is_global = dest->is_global;
	ah->port_num = dest->port_num;
}

/*
 * Kernel ABI 1 and 2: the command that creates the context also returns the one event descriptor.
 */
static int get_context_v2(struct ibv_context *context, const struct ibv_get_context *new_cmd,
			  size_t new_cmd_size, struct ibv_get_context_resp *resp, size_t resp_size)
{
	size_t driver_size = new_cmd_size - sizeof(*new_cmd);
	struct ibv_get_context_v2 *cmd;
	struct v2_channel *v2;
	uint32_t cq_fd = -1;
	int ret;

	v2 = calloc(1, sizeof(*v2));
	cmd = calloc(1, sizeof(*cmd) + driver_size);
	if (!v2 || !cmd) {
		ret = fail(ENOMEM);
		goto out;
	}

	CMD_INIT_RESP(cmd, sizeof(*cmd) + driver_size, GET_CONTEXT, resp, resp_size);
	cmd->cq_fd_tab = (uintptr_t)&cq_fd;
	memcpy(cmd->driver_data, new_cmd->driver_data, driver_size);

	ret = cmd_write(context, cmd, sizeof(*cmd) + driver_size);
	if (ret)
		goto out;
	VALGRIND_MAKE_MEM_DEFINED(resp, resp_size);
	VALGRIND_MAKE_MEM_DEFINED(&cq_fd, sizeof(cq_fd));

	v2->channel.context = context;
	v2->channel.fd = cq_fd;
	context->abi_compat = v2;
	context->async_fd = resp->async_fd;
	context->num_comp_vectors = 1;
	v2 = NULL;
out:
	free(cmd);
	free(v2);
	return ret;
}

int ibv_cmd_get_context(struct ibv_context *context, struct ibv_get_context *cmd, size_t cmd_size,
			struct ibv_get_context_resp *resp, size_t resp_size)
{
	int ret;

	if (abi_ver <= 2)
		return get_context_v2(context, cmd, cmd_size, resp, resp_size);

	CMD_INIT_RESP(cmd, cmd_size, GET_CONTEXT, resp, resp_size);
	resp->async_fd = -1;
	ret = cmd_write(context, cmd, cmd_size);
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(resp, resp_size);

	/*
	 * A kernel that returned no descriptor must not seem to have returned 0, which is a valid
	 * one.
	 */
	if (resp->async_fd == UINT32_MAX)
		return fail(EIO);

	context->async_fd = resp->async_fd;
	context->num_comp_vectors = resp->num_comp_vectors;
	context->abi_compat = NULL;

	return 0;
}

int ibv_cmd_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr,
			 uint64_t *raw_fw_ver, struct ibv_query_device *cmd, size_t cmd_size)
{
	struct ibv_query_device_resp resp;
	int ret;

	CMD_INIT_RESP(cmd, cmd_size, QUERY_DEVICE, &resp, sizeof(resp));
	ret = cmd_write(context, cmd, cmd_size);
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(&resp, sizeof(resp));

	*raw_fw_ver = resp.fw_ver;
	memset(device_attr->fw_ver, 0, sizeof(device_attr->fw_ver));
	device_attr->node_guid = resp.node_guid;
	device_attr->sys_image_guid = resp.sys_image_guid;
	device_attr->max_mr_size = resp.max_mr_size;
	device_attr->page_size_cap = resp.page_size_cap;
	device_attr->vendor_id = resp.vendor_id;
	device_attr->vendor_part_id = resp.vendor_part_id;
	device_attr->hw_ver = resp.hw_ver;
	device_attr->max_qp = resp.max_qp;
	device_attr->max_qp_wr = resp.max_qp_wr;
	device_attr->device_cap_flags = resp.device_cap_flags;
	device_attr->max_sge = resp.max_sge;
	device_attr->max_sge_rd = resp.max_sge_rd;
	device_attr->max_cq = resp.max_cq;
	device_attr->max_cqe = resp.max_cqe;
	device_attr->max_mr = resp.max_mr;
	device_attr->max_pd = resp.max_pd;
	device_attr->max_qp_rd_atom = resp.max_qp_rd_atom;
	device_attr->max_ee_rd_atom = resp.max_ee_rd_atom;
	device_attr->max_res_rd_atom = resp.max_res_rd_atom;
	device_attr->max_qp_init_rd_atom = resp.max_qp_init_rd_atom;
	device_attr->max_ee_init_rd_atom = resp.max_ee_init_rd_atom;
	device_attr->atomic_cap = resp.atomic_cap;
	device_attr->max_ee = resp.max_ee;
	device_attr->max_rdd = resp.max_rdd;
	device_attr->max_mw = resp.max_mw;
	device_attr->max_raw_ipv6_qp = resp.max_raw_ipv6_qp;
	device_attr->max_raw_ethy_qp = resp.max_raw_ethy_qp;
	device_attr->max_mcast_grp = resp.max_mcast_grp;
	device_attr->max_mcast_qp_attach = resp.max_mcast_qp_attach;
	device_attr->max_total_mcast_qp_attach = resp.max_total_mcast_qp_attach;
	device_attr->max_ah = resp.max_ah;
	device_attr->max_fmr = resp.max_fmr;
	device_attr->max_map_per_fmr = resp.max_map_per_fmr;
	device_attr->max_srq = resp.max_srq;
	device_attr->max_srq_wr = resp.max_srq_wr;
	device_attr->max_srq_sge = resp.max_srq_sge;
	device_attr->max_pkeys = resp.max_pkeys;
	device_attr->local_ca_ack_delay = resp.local_ca_ack_delay;
	device_attr->phys_port_cnt = resp.phys_port_cnt;

	return 0;
}

int ibv_cmd_query_port(struct ibv_context *context, uint8_t port_num,
		       struct ibv_port_attr *port_attr, struct ibv_query_port *cmd, size_t cmd_size)
{
	struct ibv_query_port_resp resp;
	int ret;

	CMD_INIT_RESP(cmd, cmd_size, QUERY_PORT, &resp, sizeof(resp));
	cmd->port_num = port_num;
	memset(cmd->reserved, 0, sizeof(cmd->reserved));

	ret = cmd_write(context, cmd, cmd_size);
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(&resp, sizeof(resp));

	port_attr->state = resp.state;
	port_attr->max_mtu = resp.max_mtu;
	port_attr->active_mtu = resp.active_mtu;
	port_attr->gid_tbl_len = resp.gid_tbl_len;
	port_attr->port_cap_flags = resp.port_cap_flags;
	port_attr->max_msg_sz = resp.max_msg_sz;
	port_attr->bad_pkey_cntr = resp.bad_pkey_cntr;
	port_attr->qkey_viol_cntr = resp.qkey_viol_cntr;
	port_attr->pkey_tbl_len = resp.pkey_tbl_len;
	port_attr->lid = resp.lid;
	port_attr->sm_lid = resp.sm_lid;
	port_attr->lmc = resp.lmc;
	port_attr->max_vl_num = resp.max_vl_num;
	port_attr->sm_sl = resp.sm_sl;
	port_attr->subnet_timeout = resp.subnet_timeout;
	port_attr->init_type_reply = resp.init_type_reply;
	port_attr->active_width = resp.active_width;
	port_attr->active_speed = resp.active_speed;
	port_attr->phys_state = resp.phys_state;
	port_attr->link_layer = resp.link_layer;

	return 0;
}

int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd, struct ibv_alloc_pd *cmd,
		     size_t cmd_size, struct ibv_alloc_pd_resp *resp, size_t resp_size)
{
	int ret;

	CMD_INIT_RESP(cmd, cmd_size, ALLOC_PD, resp, resp_size);
	ret = cmd_write(context, cmd, cmd_size);
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(resp, resp_size);

	pd->handle = resp->pd_handle;
	pd->context = context;

	return 0;
}

int ibv_cmd_dealloc_pd(struct ibv_pd *pd)
{
	struct ibv_dealloc_pd cmd;

	CMD_INIT(&cmd, sizeof(cmd), DEALLOC_PD);
	cmd.pd_handle = pd->handle;

	return cmd_write(pd->context, &cmd, sizeof(cmd));
}

int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access,
		   struct ibv_mr *mr, struct ibv_reg_mr *cmd, size_t cmd_size,
		   struct ibv_reg_mr_resp *resp, size_t resp_size)
{
	int ret;

	CMD_INIT_RESP(cmd, cmd_size, REG_MR, resp, resp_size);
	cmd->start = (uintptr_t)addr;
	cmd->length = length;
	cmd->hca_va = hca_va;
	cmd->pd_handle = pd->handle;
	cmd->access_flags = access;

	ret = cmd_write(pd->context, cmd, cmd_size);
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(resp, resp_size);

	mr->handle = resp->mr_handle;
	mr->lkey = resp->lkey;
	mr->rkey = resp->rkey;
	mr->context = pd->context;

	return 0;
}

int ibv_cmd_dereg_mr(struct ibv_mr *mr)
{
	struct ibv_dereg_mr cmd;

	CMD_INIT(&cmd, sizeof(cmd), DEREG_MR);
	cmd.mr_handle = mr->handle;

	return cmd_write(mr->context, &cmd, sizeof(cmd));
}

int ibv_cmd_create_ah(struct ibv_pd *pd, struct ibv_ah *ah, struct ibv_ah_attr *attr)
{
	struct ibv_create_ah_resp resp;
	struct ibv_create_ah cmd;
	int ret;

	memset(&cmd, 0, sizeof(cmd));
	CMD_INIT_RESP(&cmd, sizeof(cmd), CREATE_AH, &resp, sizeof(resp));
	cmd.user_handle = (uintptr_t)ah;
	cmd.pd_handle = pd->handle;
	memcpy(cmd.attr.grh.dgid, attr->grh.dgid.raw, sizeof(cmd.attr.grh.dgid));
	cmd.attr.grh.flow_label = attr->grh.flow_label;
	cmd.attr.grh.sgid_index = attr->grh.sgid_index;
	cmd.attr.grh.hop_limit = attr->grh.hop_limit;
	cmd.attr.grh.traffic_class = attr->grh.traffic_class;
	cmd.attr.dlid = attr->dlid;
	cmd.attr.sl = attr->sl;
	cmd.attr.src_path_bits = attr->src_path_bits;
	cmd.attr.static_rate = attr->static_rate;
	cmd.attr.is_global = attr->is_global;
	cmd.attr.port_num = attr->port_num;

	ret = cmd_write(pd->context, &cmd, sizeof(cmd));
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(&resp, sizeof(resp));

	ah->handle = resp.handle;
	ah->context = pd->context;

	return 0;
}

int ibv_cmd_destroy_ah(struct ibv_ah *ah)
{
	struct ibv_destroy_ah cmd;

	CMD_INIT(&cmd, sizeof(cmd), DESTROY_AH);
	cmd.ah_handle = ah->handle;

	return cmd_write(ah->context, &cmd, sizeof(cmd));
}

int ibv_cmd_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct ibv_attach_mcast cmd;

	CMD_INIT(&cmd, sizeof(cmd), ATTACH_MCAST);
	memcpy(cmd.gid, gid->raw, sizeof(cmd.gid));
	cmd.qp_handle = qp->handle;
	cmd.mlid = lid;
	cmd.reserved = 0;

	return cmd_write(qp->context, &cmd, sizeof(cmd));
}

int ibv_cmd_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct ibv_detach_mcast cmd;

	CMD_INIT(&cmd, sizeof(cmd), DETACH_MCAST);
	memcpy(cmd.gid, gid->raw, sizeof(cmd.gid));
	cmd.qp_handle = qp->handle;
	cmd.mlid = lid;
	cmd.reserved = 0;

	return cmd_write(qp->context, &cmd, sizeof(cmd));
}
