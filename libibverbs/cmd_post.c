// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Posts work requests through the kernel, for providers without queues of their own. A command
 * consists of the header, the work requests, and the scatter/gather entries of all work requests.
 * This file keeps no state. */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

/* in_words has 16 bits. */
#define MAX_CMD_SIZE ((size_t)UINT16_MAX * 4)

/* Counts the requests and entries of a list. Returns 0, or EINVAL if the list is too long for a
 * command. */
static int count_recv(const struct ibv_recv_wr *wr, size_t core_size, uint32_t *wr_count,
		      uint32_t *sge_count, size_t *cmd_size)
{
	size_t size = core_size;

	for (*wr_count = *sge_count = 0; wr; wr = wr->next) {
		if (wr->num_sge < 0)
			return EINVAL;
		size += sizeof(struct ibv_kern_recv_wr) + wr->num_sge * sizeof(struct ibv_sge);
		if (size > MAX_CMD_SIZE)
			return EINVAL;
		++*wr_count;
		*sge_count += wr->num_sge;
	}

	*cmd_size = size;
	return 0;
}

static void copy_recv(struct ibv_kern_recv_wr *kern, uint32_t wr_count,
		      const struct ibv_recv_wr *wr)
{
	struct ibv_sge *sge = (struct ibv_sge *)(kern + wr_count);

	for (; wr; wr = wr->next, ++kern) {
		kern->wr_id = wr->wr_id;
		kern->num_sge = wr->num_sge;
		kern->reserved = 0;
		if (wr->num_sge) {
			memcpy(sge, wr->sg_list, wr->num_sge * sizeof(*sge));
			sge += wr->num_sge;
		}
	}
}

/* Returns the first request that was not posted. The kernel counts from 1; 0: it failed before it
 * posted any. */
static struct ibv_recv_wr *nth_recv(struct ibv_recv_wr *wr, uint32_t n)
{
	while (n-- > 1 && wr->next)
		wr = wr->next;

	return wr;
}

/* Both structs have the handle in the same place, so one function serves QPs and SRQs. */
_Static_assert(sizeof(struct ibv_post_recv) == sizeof(struct ibv_post_srq_recv) &&
		       offsetof(struct ibv_post_recv, qp_handle) ==
			       offsetof(struct ibv_post_srq_recv, srq_handle) &&
		       offsetof(struct ibv_post_recv, recv_wr) ==
			       offsetof(struct ibv_post_srq_recv, recv_wr) &&
		       sizeof(struct ibv_post_recv_resp) == sizeof(struct ibv_post_srq_recv_resp),
	       "POST_RECV and POST_SRQ_RECV");

/* Returns 0, or a positive errno value with *bad_wr set. */
static int post_recv(struct ibv_context *context, uint32_t command, uint32_t handle,
		     struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct ibv_post_recv_resp resp;
	uint32_t wr_count, sge_count;
	struct ibv_post_recv *cmd;
	size_t cmd_size;
	int ret;

	ret = count_recv(wr, sizeof(*cmd), &wr_count, &sge_count, &cmd_size);
	if (ret)
		goto err;

	ret = ENOMEM;
	cmd = malloc(cmd_size);
	if (!cmd)
		goto err;

	CMD_INIT_RESP(cmd, cmd_size, POST_RECV, &resp, sizeof(resp));
	cmd->command = command;
	cmd->qp_handle = handle;
	cmd->wr_count = wr_count;
	cmd->sge_count = sge_count;
	cmd->wqe_size = sizeof(struct ibv_kern_recv_wr);
	copy_recv(cmd->recv_wr, wr_count, wr);

	ret = cmd_write(context, cmd, cmd_size);
	if (ret && wr)
		*bad_wr = nth_recv(wr, resp.bad_wr);

	free(cmd);
	return ret;

err:
	*bad_wr = wr;
	return fail(ret);
}

int ibv_cmd_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return post_recv(ibqp->context, CMD_NUMBER(POST_RECV), ibqp->handle, wr, bad_wr);
}

int ibv_cmd_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return post_recv(srq->context, CMD_NUMBER(POST_SRQ_RECV), srq->handle, wr, bad_wr);
}

static void copy_send(struct ibv_kern_send_wr *kern, const struct ibv_send_wr *wr,
		      enum ibv_qp_type type)
{
	memset(kern, 0, sizeof(*kern));
	kern->wr_id = wr->wr_id;
	kern->num_sge = wr->num_sge;
	kern->opcode = wr->opcode;
	kern->send_flags = wr->send_flags;

	if (wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		kern->imm_data = wr->imm_data;

	if (type == IBV_QPT_UD) {
		kern->wr.ud.ah = wr->wr.ud.ah->handle;
		kern->wr.ud.remote_qpn = wr->wr.ud.remote_qpn;
		kern->wr.ud.remote_qkey = wr->wr.ud.remote_qkey;
		return;
	}

	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		kern->wr.rdma.remote_addr = wr->wr.rdma.remote_addr;
		kern->wr.rdma.rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		kern->wr.atomic.remote_addr = wr->wr.atomic.remote_addr;
		kern->wr.atomic.compare_add = wr->wr.atomic.compare_add;
		kern->wr.atomic.swap = wr->wr.atomic.swap;
		kern->wr.atomic.rkey = wr->wr.atomic.rkey;
		break;
	default:
		break;
	}
}

int ibv_cmd_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct ibv_post_send_resp resp = {0};
	uint32_t wr_count = 0, sge_count = 0;
	struct ibv_kern_send_wr *kern;
	struct ibv_post_send *cmd;
	struct ibv_send_wr *i;
	struct ibv_sge *sge;
	size_t cmd_size;
	int ret;

	ret = EINVAL;
	if (ibqp->qp_type == IBV_QPT_XRC)
		goto err;

	cmd_size = sizeof(*cmd);
	for (i = wr; i; i = i->next) {
		if (i->num_sge < 0)
			goto err;
		cmd_size += sizeof(*kern) + i->num_sge * sizeof(*sge);
		if (cmd_size > MAX_CMD_SIZE)
			goto err;
		++wr_count;
		sge_count += i->num_sge;
	}

	ret = ENOMEM;
	cmd = malloc(cmd_size);
	if (!cmd)
		goto err;

	CMD_INIT_RESP(cmd, cmd_size, POST_SEND, &resp, sizeof(resp));
	cmd->qp_handle = ibqp->handle;
	cmd->wr_count = wr_count;
	cmd->sge_count = sge_count;
	cmd->wqe_size = sizeof(*kern);

	kern = cmd->send_wr;
	sge = (struct ibv_sge *)(kern + wr_count);
	for (i = wr; i; i = i->next) {
		copy_send(kern++, i, ibqp->qp_type);
		if (i->num_sge) {
			memcpy(sge, i->sg_list, i->num_sge * sizeof(*sge));
			sge += i->num_sge;
		}
	}

	ret = cmd_write(ibqp->context, cmd, cmd_size);
	if (ret)
		for (*bad_wr = wr; resp.bad_wr > 1 && *bad_wr && (*bad_wr)->next; --resp.bad_wr)
			*bad_wr = (*bad_wr)->next;

	free(cmd);
	return ret;

err:
	*bad_wr = wr;
	return fail(ret);
}
