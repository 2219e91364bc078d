// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Commands for completion queues. This file keeps no state. */

#include <stdlib.h>
#include <string.h>

#include "cmd.h"

/* Kernel ABI 1 and 2: the command has neither a channel nor a completion vector. */
static int write_create_cq_v2(struct ibv_context *context, int cqe, struct ibv_cq *cq,
			      const struct ibv_create_cq *new_cmd, size_t new_cmd_size,
			      struct ibv_create_cq_resp *resp, size_t resp_size)
{
	size_t driver_size = new_cmd_size - sizeof(*new_cmd);
	struct ibv_create_cq_v2 *cmd;
	int ret;

	cmd = malloc(sizeof(*cmd) + driver_size);
	if (!cmd)
		return fail(ENOMEM);

	CMD_INIT_RESP(cmd, sizeof(*cmd) + driver_size, CREATE_CQ, resp, resp_size);
	cmd->user_handle = (uintptr_t)cq;
	cmd->cqe = cqe;
	cmd->event_handler = 0;
	memcpy(cmd->driver_data, new_cmd->driver_data, driver_size);

	ret = cmd_write(context, cmd, sizeof(*cmd) + driver_size);
	free(cmd);
	return ret;
}

int ibv_cmd_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
		      int comp_vector, struct ibv_cq *cq, struct ibv_create_cq *cmd,
		      size_t cmd_size, struct ibv_create_cq_resp *resp, size_t resp_size)
{
	int ret;

	if (abi_ver <= 2) {
		ret = write_create_cq_v2(context, cqe, cq, cmd, cmd_size, resp, resp_size);
	} else {
		CMD_INIT_RESP(cmd, cmd_size, CREATE_CQ, resp, resp_size);
		cmd->user_handle = (uintptr_t)cq;
		cmd->cqe = cqe;
		cmd->comp_vector = comp_vector;
		cmd->comp_channel = channel ? channel->fd : -1;
		cmd->reserved = 0;
		ret = cmd_write(context, cmd, cmd_size);
	}
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(resp, resp_size);

	cq->handle = resp->cq_handle;
	cq->cqe = resp->cqe;
	cq->context = context;

	return 0;
}

int ibv_cmd_poll_cq(struct ibv_cq *cq, int ne, struct ibv_wc *wc)
{
	struct ibv_poll_cq_resp *resp;
	struct ibv_poll_cq cmd;
	size_t resp_size;
	int i, count = -1;

	if (ne < 0 || ne > (int)((UINT16_MAX * 4 - sizeof(*resp)) / sizeof(resp->wc[0]))) {
		errno = EINVAL;
		return -1;
	}

	resp_size = sizeof(*resp) + ne * sizeof(resp->wc[0]);
	resp = malloc(resp_size);
	if (!resp)
		return -1;

	CMD_INIT_RESP(&cmd, sizeof(cmd), POLL_CQ, resp, resp_size);
	cmd.cq_handle = cq->handle;
	cmd.ne = ne;

	if (cmd_write(cq->context, &cmd, sizeof(cmd)))
		goto out;
	VALGRIND_MAKE_MEM_DEFINED(resp, resp_size);

	count = resp->count < (uint32_t)ne ? (int)resp->count : ne;
	for (i = 0; i < count; ++i) {
		wc[i].wr_id = resp->wc[i].wr_id;
		wc[i].status = resp->wc[i].status;
		wc[i].opcode = resp->wc[i].opcode;
		wc[i].vendor_err = resp->wc[i].vendor_err;
		wc[i].byte_len = resp->wc[i].byte_len;
		wc[i].imm_data = resp->wc[i].imm_data;
		wc[i].qp_num = resp->wc[i].qp_num;
		wc[i].src_qp = resp->wc[i].src_qp;
		wc[i].wc_flags = resp->wc[i].wc_flags;
		wc[i].pkey_index = resp->wc[i].pkey_index;
		wc[i].slid = resp->wc[i].slid;
		wc[i].sl = resp->wc[i].sl;
		wc[i].dlid_path_bits = resp->wc[i].dlid_path_bits;
	}
out:
	free(resp);
	return count;
}

int ibv_cmd_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct ibv_req_notify_cq cmd;

	CMD_INIT(&cmd, sizeof(cmd), REQ_NOTIFY_CQ);
	cmd.cq_handle = cq->handle;
	cmd.solicited = !!solicited_only;

	return cmd_write(cq->context, &cmd, sizeof(cmd));
}

int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd, size_t cmd_size,
		      struct ibv_resize_cq_resp *resp, size_t resp_size)
{
	int ret;

	CMD_INIT_RESP(cmd, cmd_size, RESIZE_CQ, resp, resp_size);
	cmd->cq_handle = cq->handle;
	cmd->cqe = cqe;

	ret = cmd_write(cq->context, cmd, cmd_size);
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(resp, resp_size);

	cq->cqe = resp->cqe;

	return 0;
}

/* Kernel ABI 1 does not report how many events it delivered, so there is no number to wait for. */
static int destroy_cq_v1(struct ibv_cq *cq)
{
	struct ibv_destroy_cq_v1 cmd;

	CMD_INIT(&cmd, sizeof(cmd), DESTROY_CQ);
	cmd.cq_handle = cq->handle;

	return cmd_write(cq->context, &cmd, sizeof(cmd));
}

int ibv_cmd_destroy_cq(struct ibv_cq *cq)
{
	struct ibv_destroy_cq_resp resp;
	struct ibv_destroy_cq cmd;
	int ret;

	if (abi_ver == 1)
		return destroy_cq_v1(cq);

	CMD_INIT_RESP(&cmd, sizeof(cmd), DESTROY_CQ, &resp, sizeof(resp));
	cmd.cq_handle = cq->handle;
	cmd.reserved = 0;

	ret = cmd_write(cq->context, &cmd, sizeof(cmd));
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(&resp, sizeof(resp));

	wait_acked(&cq->mutex, &cq->cond, &cq->comp_events_completed, resp.comp_events_reported);
	wait_acked(&cq->mutex, &cq->cond, &cq->async_events_completed, resp.async_events_reported);

	return 0;
}
