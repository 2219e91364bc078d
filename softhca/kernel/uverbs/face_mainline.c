// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The face of a mainline kernel from 3.3 on, as far as the write() interface goes: its command
 * tables, and the commands that only it has. XRC target QPs are ordinary objects here, shared by
 * the handles on them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/device/memory/qp_attr.h"
#include "commands.h"
#include "context.h"
#include "xrc.h"

/* ---- target QPs ---- */

/* Makes a handle on a target QP, and responds with it. A failure also ends a QP without handles. */
static int tgt_handle(struct call *c, struct kqp *qp, struct kxrcd_handle *xh, uint64_t user_handle,
		      bool extended)
{
	struct uv_create_qp_resp resp = {.qpn = qp->qpn};
	struct kqp_handle *h = calloc(1, sizeof(*h));
	uint32_t events;
	int err;

	if (!h) {
		err = -ENOMEM;
		goto err_qp;
	}
	h->qp = qp;
	h->u.user_handle = user_handle;
	err = uobj_add(c->ctx, &h->u, UO_QP);
	if (err < 0)
		goto err_free;
	err = xrc_rcv_reg_add(c->k, qp, c->ctx, xh, user_handle, &h->reg);
	if (err < 0)
		goto err_del;
	resp.qp_handle = h->u.handle;
	err = qp_respond(c, &resp, extended);
	if (err < 0) {
		(void)qp_free(h, true, &events);
		return err;
	}
	return 0;

err_del:
	uobj_del(&h->u);
err_free:
	free(h);
err_qp:
	if (!qp->regs)
		(void)qp_destroy_kernel(c->k, qp, true);
	return err;
}

static int create_tgt(struct call *c, const struct uv_create_qp *cmd, bool extended)
{
	/* This field carries the handle of the domain. */
	struct kxrcd_handle *xh = uobj_get(c->ctx, UO_XRCD, cmd->pd_handle);
	struct kqp *qp;
	int err;

	if (!xh)
		return -EINVAL;
	qp = qp_create_kernel(xh->d, c->k, SH_QPT_XRC_TGT, cmd->sq_sig_all, &err);
	if (!qp)
		return err;
	return tgt_handle(c, qp, xh, cmd->user_handle, extended);
}

static int open_qp(struct call *c)
{
	const struct uv_open_qp *cmd = (const void *)c->in;
	struct kxrcd_handle *xh = uobj_get(c->ctx, UO_XRCD, cmd->pd_handle);
	struct kqp *qp;

	if (!xh || cmd->qp_type != UV_QPT_XRC_TGT)
		return -EINVAL;
	qp = qp_find(c->k, c->ctx->hca, cmd->qpn);
	if (!qp || qp->ctx || qp->d != xh->d)
		return -EINVAL;
	return tgt_handle(c, qp, xh, cmd->user_handle, false);
}

/* The QP of either CREATE_QP. rq has everything but the type. */
static int create_qp_of(struct call *c, struct uv_create_qp *cmd, struct qp_request *rq)
{
	rq->cmd = cmd;
	switch (cmd->qp_type) {
	case UV_QPT_RC:
		rq->type = SH_QPT_RC;
		break;
	case UV_QPT_UC:
		rq->type = SH_QPT_UC;
		break;
	case UV_QPT_UD:
		rq->type = SH_QPT_UD;
		break;
	case UV_QPT_XRC_INI:
		rq->type = SH_QPT_XRC_INI;
		rq->no_recv_cq = true;
		cmd->max_recv_wr = cmd->max_recv_sge = 0;
		break;
	case UV_QPT_XRC_TGT:
		return create_tgt(c, cmd, rq->extended);
	default:
		return -EINVAL;
	}
	return qp_create_user(c, rq);
}

static int create_qp(struct call *c)
{
	struct qp_request rq = {0};

	return create_qp_of(c, (void *)c->in, &rq);
}

/*
 * Are the fields that only newer libraries have zeros? What the command does not know cannot be
 * left undone.
 */
static bool ex_known(const struct call *c, size_t known)
{
	if (c->core_in > sizeof(c->in))
		return false;
	for (size_t at = sizeof(struct uv_hdr) + sizeof(struct uv_ex_hdr) + known; at < c->core_in;
	     at++)
		if (c->in[at])
			return false;
	return true;
}

/* Fields that the library is too old to write count as zeros. */
static void ex_fields(const struct call *c, struct uv_ex_create_qp *ex)
{
	size_t at = sizeof(struct uv_hdr) + sizeof(struct uv_ex_hdr), len = c->core_in - at;

	memset(ex, 0, sizeof(*ex));
	memcpy(ex, c->in + at, len < sizeof(*ex) ? len : sizeof(*ex));
}

/*
 * mlx4 blocks a QP's own datagrams, of UD alone, and knows no other flag and no table of receive
 * queues.
 */
static int ex_create_qp(struct call *c)
{
	struct uv_ex_create_qp ex;
	struct uv_create_qp cmd;
	struct qp_request rq = {.extended = true};

	if (!ex_known(c, sizeof(ex)))
		return -EOPNOTSUPP;
	ex_fields(c, &ex);
	if (ex.comp_mask || ex.reserved || ex.create_flags & ~(uint32_t)UV_CREATE_BLOCK_SELF_MCAST)
		return -EINVAL;
	rq.block_self_mcast = ex.create_flags & UV_CREATE_BLOCK_SELF_MCAST;
	if (rq.block_self_mcast && ex.qp_type != UV_QPT_UD)
		return -EINVAL;
	cmd = (struct uv_create_qp){
		.user_handle = ex.user_handle,
		.pd_handle = ex.pd_handle,
		.send_cq_handle = ex.send_cq_handle,
		.recv_cq_handle = ex.recv_cq_handle,
		.srq_handle = ex.srq_handle,
		.max_send_wr = ex.max_send_wr,
		.max_recv_wr = ex.max_recv_wr,
		.max_send_sge = ex.max_send_sge,
		.max_recv_sge = ex.max_recv_sge,
		.max_inline_data = ex.max_inline_data,
		.sq_sig_all = ex.sq_sig_all,
		.qp_type = ex.qp_type,
		.is_srq = ex.is_srq,
	};
	return create_qp_of(c, &cmd, &rq);
}

/* ---- SRQs ---- */

static int create_xsrq(struct call *c)
{
	const struct uv_create_xsrq *cmd = (const void *)c->in;
	struct srq_request rq = {
		.user_handle = cmd->user_handle,
		.pd_handle = cmd->pd_handle,
		.max_wr = cmd->max_wr,
		.max_sge = cmd->max_sge,
		.tell_srqn = true,
		.xrc = cmd->srq_type == UV_SRQT_XRC,
		.xrcd_handle = cmd->xrcd_handle,
		.cq_handle = cmd->cq_handle,
	};

	if (cmd->srq_type != UV_SRQT_XRC && cmd->srq_type != UV_SRQT_BASIC)
		return -EOPNOTSUPP;
	return srq_create(c, &rq);
}

/* ---- the extended QUERY_DEVICE ---- */

struct ex_query_device_drv { /* mlx4's part of the answer */
	uint32_t comp_mask, response_length;
	uint64_t hca_core_clock_offset;
	uint32_t max_inl_recv_sz, reserved;
	uint64_t rss_hash_fields;
	uint8_t rss_hash_function, rss_reserved[7];
	uint32_t max_tso, tso_qpts;
};
_Static_assert(sizeof(struct ex_query_device_drv) == 48, "six words of eight bytes");

static int ex_query_device(struct call *c)
{
	const struct uv_ex_query_device *cmd =
		(const void *)(c->in + sizeof(struct uv_hdr) + sizeof(struct uv_ex_hdr));
	struct uv_ex_query_device_resp resp = {0};
	struct ex_query_device_drv drv = {
		.response_length = offsetof(struct ex_query_device_drv, hca_core_clock_offset)};

	if (!ex_known(c, sizeof(*cmd)))
		return -EOPNOTSUPP;
	if (cmd->comp_mask || cmd->reserved)
		return -EINVAL;
	fill_query_device(c, &resp.base);
	resp.response_length = c->core_out < sizeof(resp) ? c->core_out : sizeof(resp);
	resp.device_cap_flags_ex = resp.base.device_cap_flags;
	return call_respond(c, &resp, resp.response_length, &drv, sizeof(drv));
}

#define CMD(number, fn, in, out) [number] = {fn, in, out, 0, #number}

static const struct command commands[] = {
#include "commands-common.h"
	CMD(UV_OPEN_XRCD, cmd_open_xrcd, sizeof(struct uv_open_xrc_domain),
	    sizeof(struct uv_open_xrc_domain_resp)),
	CMD(UV_CLOSE_XRCD, cmd_close_xrcd, sizeof(struct uv_handle), 0),
	CMD(UV_CREATE_XSRQ, create_xsrq, sizeof(struct uv_create_xsrq),
	    sizeof(struct uv_create_srq_resp)),
	CMD(UV_OPEN_QP, open_qp, sizeof(struct uv_open_qp), sizeof(struct uv_create_qp_resp)),
};

static const struct command extended[] = {
	CMD(UV_QUERY_DEVICE, ex_query_device, sizeof(struct uv_ex_query_device),
	    offsetof(struct uv_ex_query_device_resp, odp_general_caps)),
	CMD(UV_CREATE_QP, ex_create_qp, UV_EX_CREATE_QP_MIN, sizeof(struct uv_ex_create_qp_resp)),
};

const struct face face_mainline = {
	.name = "mainline",
	.commands = commands,
	.ncommands = sizeof(commands) / sizeof(commands[0]),
	.extended = extended,
	.nextended = sizeof(extended) / sizeof(extended[0]),
	.absent = -EOPNOTSUPP,
	.truncated = -ENOSPC,
	.no_object = -ENOENT,
	.has_extended = true,
};
