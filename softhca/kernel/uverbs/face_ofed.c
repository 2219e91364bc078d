// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The face of an OFED 1.3 to 1.5 kernel: its command table, and the commands that only it has. A
 * number that is missing here is missing in mlx4's command mask, and that kernel answers it with
 * EINVAL.
 */
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/qp_attr.h"
#include "commands.h"
#include "context.h"
#include "xrc.h"

static int create_qp(struct call *c)
{
	const struct uv_create_qp *cmd = (const void *)c->in;
	struct qp_request rq = {.cmd = cmd};
	struct kxrcd_handle *xh;

	switch (cmd->qp_type) {
	case UV_QPT_RC:
		rq.type = SH_QPT_RC;
		break;
	case UV_QPT_UC:
		rq.type = SH_QPT_UC;
		break;
	case UV_QPT_UD:
		rq.type = SH_QPT_UD;
		break;
	case UV_QPT_XRC:
		rq.type = SH_QPT_XRC;
		if (cmd->is_srq)
			return -EINVAL;
		/* This field carries the handle of the domain. */
		xh = uobj_get(c->ctx, UO_XRCD, cmd->srq_handle);
		if (!xh)
			return -EINVAL;
		rq.d = xh->d;
		break;
	default:
		return -EINVAL;
	}
	return qp_create_user(c, &rq);
}

static int create_xrc_srq(struct call *c)
{
	const struct uv_create_xrc_srq *cmd = (const void *)c->in;
	struct srq_request rq = {
		.user_handle = cmd->user_handle,
		.pd_handle = cmd->pd_handle,
		.max_wr = cmd->max_wr,
		.max_sge = cmd->max_sge,
		.xrc = true,
		.xrcd_handle = cmd->xrcd_handle,
		.cq_handle = cmd->xrc_cq,
	};

	return srq_create(c, &rq);
}

/* ---- receive QPs: the kernel's own, alive while a context is registered ---- */

static int create_xrc_rcv_qp(struct call *c)
{
	const struct uv_create_xrc_rcv_qp *cmd = (const void *)c->in;
	struct uv_create_xrc_rcv_qp_resp resp = {0};
	struct kxrcd_handle *xh = uobj_get(c->ctx, UO_XRCD, cmd->xrc_domain_handle);
	struct kqp *qp;
	struct kxrc_reg *reg;
	uint32_t events;
	int err;

	if (!xh)
		return -EINVAL;
	qp = qp_create_kernel(xh->d, c->k, SH_QPT_XRC, cmd->sq_sig_all, &err);
	if (!qp)
		return err;
	err = xrc_rcv_reg_add(c->k, qp, c->ctx, xh, 0, &reg);
	if (err < 0) {
		(void)qp_destroy_kernel(c->k, qp, true);
		return err;
	}
	resp.qpn = qp->qpn;
	err = call_respond(c, &resp, sizeof(resp), NULL, 0);
	if (err < 0)
		(void)xrc_rcv_reg_del(c->k, reg, true, &events);
	return err;
}

/*
 * A receive QP of the domain that a handle of the caller names. The caller need not be registered.
 */
static struct kqp *rcv_qp(struct call *c, uint32_t xrcd_handle, uint32_t qpn,
			  struct kxrcd_handle **out)
{
	struct kxrcd_handle *xh = uobj_get(c->ctx, UO_XRCD, xrcd_handle);
	struct kqp *qp;

	if (!xh)
		return NULL;
	qp = qp_find(c->k, c->ctx->hca, qpn);
	if (!qp || qp->ctx || qp->d != xh->d)
		return NULL;
	*out = xh;
	return qp;
}

static int modify_xrc_rcv_qp(struct call *c)
{
	const struct uv_modify_xrc_rcv_qp *cmd = (const void *)c->in;
	struct kxrcd_handle *xh;
	struct kqp *qp = rcv_qp(c, cmd->xrc_domain_handle, cmd->qp_num, &xh);

	return qp ? qp_modify(c, qp, &cmd->dest, &cmd->alt_dest, &cmd->attr) : -EINVAL;
}

static int query_xrc_rcv_qp(struct call *c)
{
	const struct uv_query_xrc_rcv_qp *cmd = (const void *)c->in;
	struct kxrcd_handle *xh;
	struct kqp *qp = rcv_qp(c, cmd->xrc_domain_handle, cmd->qp_num, &xh);

	return qp ? qp_query(c, qp) : -EINVAL;
}

static int reg_xrc_rcv_qp(struct call *c)
{
	const struct uv_reg_xrc_rcv_qp *cmd = (const void *)c->in;
	struct kxrcd_handle *xh;
	struct kqp *qp = rcv_qp(c, cmd->xrc_domain_handle, cmd->qp_num, &xh);
	struct kxrc_reg *reg;

	if (!qp)
		return -EINVAL;
	if (xrc_rcv_reg_find(qp, c->ctx))
		return 0;
	return xrc_rcv_reg_add(c->k, qp, c->ctx, xh, 0, &reg);
}

int cmd_unreg_xrc_rcv_qp(struct call *c)
{
	const struct uv_reg_xrc_rcv_qp *cmd = (const void *)c->in;
	struct kxrcd_handle *xh;
	struct kqp *qp = rcv_qp(c, cmd->xrc_domain_handle, cmd->qp_num, &xh);
	struct kxrc_reg *reg = qp ? xrc_rcv_reg_find(qp, c->ctx) : NULL;
	uint32_t events;

	if (!reg)
		return -EINVAL;
	return xrc_rcv_reg_del(c->k, reg, gives_up_data(c), &events);
}

#define CMD(number, fn, in, out) [number] = {fn, in, out, 0, #number}

static const struct command commands[] = {
#include "commands-common.h"
	CMD(UV_CREATE_XRC_SRQ, create_xrc_srq, sizeof(struct uv_create_xrc_srq),
	    sizeof(struct uv_create_srq_resp)),
	CMD(UV_OPEN_XRC_DOMAIN, cmd_open_xrcd, sizeof(struct uv_open_xrc_domain),
	    sizeof(struct uv_open_xrc_domain_resp)),
	CMD(UV_CLOSE_XRC_DOMAIN, cmd_close_xrc_domain, sizeof(struct uv_object), 0),
	CMD(UV_CREATE_XRC_RCV_QP, create_xrc_rcv_qp, sizeof(struct uv_create_xrc_rcv_qp),
	    sizeof(struct uv_create_xrc_rcv_qp_resp)),
	CMD(UV_MODIFY_XRC_RCV_QP, modify_xrc_rcv_qp, sizeof(struct uv_modify_xrc_rcv_qp), 0),
	CMD(UV_QUERY_XRC_RCV_QP, query_xrc_rcv_qp, sizeof(struct uv_query_xrc_rcv_qp),
	    sizeof(struct uv_query_qp_resp)),
	CMD(UV_REG_XRC_RCV_QP, reg_xrc_rcv_qp, sizeof(struct uv_reg_xrc_rcv_qp), 0),
	CMD(UV_UNREG_XRC_RCV_QP, cmd_unreg_xrc_rcv_qp, sizeof(struct uv_reg_xrc_rcv_qp), 0),
};

const struct face face_ofed = {
	.name = "ofed",
	.commands = commands,
	.ncommands = sizeof(commands) / sizeof(commands[0]),
	.absent = -EINVAL,
	.truncated = -EINVAL,
	.no_object = -EINVAL,
};
