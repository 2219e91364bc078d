// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Commands for shared receive queues, except for the creation of XRC SRQs. This file keeps no
 * state. */

#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "xrc.h"

int ibv_cmd_create_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
		       struct ibv_create_srq *cmd, size_t cmd_size,
		       struct ibv_create_srq_resp *resp, size_t resp_size)
{
	int ret;

	CMD_INIT_RESP(cmd, cmd_size, CREATE_SRQ, resp, resp_size);
	cmd->user_handle = (uintptr_t)srq;
	cmd->pd_handle = pd->handle;
	cmd->max_wr = attr->attr.max_wr;
	cmd->max_sge = attr->attr.max_sge;
	cmd->srq_limit = attr->attr.srq_limit;

	ret = cmd_write(pd->context, cmd, cmd_size);
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(resp, resp_size);

	srq->handle = resp->srq_handle;
	srq->context = pd->context;

	if (abi_ver > 5) {
		attr->attr.max_wr = resp->max_wr;
		attr->attr.max_sge = resp->max_sge;
	} else {
		cmd_move_driver_resp(resp, resp_size, sizeof(struct ibv_create_srq_resp_v5),
				     sizeof(*resp));
	}

	return 0;
}

/* Kernel ABI 3 only: two more fields. */
static int modify_srq_v3(struct ibv_srq *srq, const struct ibv_srq_attr *srq_attr,
			 int srq_attr_mask, const struct ibv_modify_srq *new_cmd,
			 size_t new_cmd_size)
{
	size_t driver_size = new_cmd_size - sizeof(*new_cmd);
	struct ibv_modify_srq_v3 *cmd;
	int ret;

	cmd = malloc(sizeof(*cmd) + driver_size);
	if (!cmd)
		return fail(ENOMEM);

	CMD_INIT(cmd, sizeof(*cmd) + driver_size, MODIFY_SRQ);
	cmd->srq_handle = srq->handle;
	cmd->attr_mask = srq_attr_mask;
	cmd->max_wr = srq_attr->max_wr;
	cmd->max_sge = srq_attr->max_sge;
	cmd->srq_limit = srq_attr->srq_limit;
	cmd->reserved = 0;
	memcpy(cmd->driver_data, new_cmd->driver_data, driver_size);

	ret = cmd_write(srq->context, cmd, sizeof(*cmd) + driver_size);
	free(cmd);
	return ret;
}

int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask,
		       struct ibv_modify_srq *cmd, size_t cmd_size)
{
	if (abi_ver == 3)
		return modify_srq_v3(srq, srq_attr, srq_attr_mask, cmd, cmd_size);

	CMD_INIT(cmd, cmd_size, MODIFY_SRQ);
	cmd->srq_handle = srq->handle;
	cmd->attr_mask = srq_attr_mask;
	cmd->max_wr = srq_attr->max_wr;
	cmd->srq_limit = srq_attr->srq_limit;

	return cmd_write(srq->context, cmd, cmd_size);
}

int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, struct ibv_query_srq *cmd,
		      size_t cmd_size)
{
	struct ibv_query_srq_resp resp;
	int ret;

	CMD_INIT_RESP(cmd, cmd_size, QUERY_SRQ, &resp, sizeof(resp));
	cmd->srq_handle = srq->handle;
	cmd->reserved = 0;

	ret = cmd_write(srq->context, cmd, cmd_size);
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(&resp, sizeof(resp));

	srq_attr->max_wr = resp.max_wr;
	srq_attr->max_sge = resp.max_sge;
	srq_attr->srq_limit = resp.srq_limit;

	return 0;
}

static int destroy_srq_v1(struct ibv_srq *srq)
{
	struct ibv_destroy_srq_v1 cmd;

	CMD_INIT(&cmd, sizeof(cmd), DESTROY_SRQ);
	cmd.srq_handle = srq->handle;

	return cmd_write(srq->context, &cmd, sizeof(cmd));
}

int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
	struct ibv_destroy_srq_resp resp;
	struct ibv_destroy_srq cmd;
	int ret;

	if (abi_ver == 1)
		return destroy_srq_v1(srq);

	CMD_INIT_RESP(&cmd, sizeof(cmd), DESTROY_SRQ, &resp, sizeof(resp));
	cmd.srq_handle = srq->handle;
	cmd.reserved = 0;

	ret = cmd_write(srq->context, &cmd, sizeof(cmd));
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(&resp, sizeof(resp));

	xrc_object_gone(srq->context, srq);
	wait_acked(&srq->mutex, &srq->cond, &srq->events_completed, resp.events_reported);

	return 0;
}
