// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* XRC on the kernels of OFED 1.3 to 1.5: commands 37 to 44, receive QPs referred to by number. The
 * kernel keeps all the state. */

#include <string.h>

#include "cmd.h"
#include "xrc.h"

static int ofed_open_domain(struct ibv_context *context, int fd, int oflag,
			    struct ibv_xrc_domain *d, struct ibv_open_xrc_domain_resp *resp,
			    size_t resp_size)
{
	struct ibv_open_xrc_domain cmd;
	int ret;

	CMD_INIT_RESP(&cmd, sizeof(cmd), OPEN_XRC_DOMAIN, resp, resp_size);
	cmd.fd = fd;
	cmd.oflags = oflag;

	ret = cmd_write(context, &cmd, sizeof(cmd));
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(resp, resp_size);

	d->handle = resp->xrcd_handle;

	return 0;
}

static int ofed_close_domain(struct ibv_xrc_domain *d)
{
	struct ibv_close_xrc_domain cmd;

	memset(&cmd, 0, sizeof(cmd));
	CMD_INIT(&cmd, sizeof(cmd), CLOSE_XRC_DOMAIN);
	cmd.xrcd_handle = d->handle;

	return cmd_write(d->context, &cmd, sizeof(cmd));
}

static int ofed_create_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
			   uint32_t xrc_domain, uint32_t xrc_cq, struct ibv_create_xrc_srq *cmd,
			   size_t cmd_size, struct ibv_create_srq_resp *resp, size_t resp_size)
{
	int ret;

	CMD_INIT_RESP(cmd, cmd_size, CREATE_XRC_SRQ, resp, resp_size);
	cmd->user_handle = (uintptr_t)srq;
	cmd->pd_handle = pd->handle;
	cmd->max_wr = attr->attr.max_wr;
	cmd->max_sge = attr->attr.max_sge;
	cmd->srq_limit = attr->attr.srq_limit;
	cmd->xrcd_handle = xrc_domain;
	cmd->xrc_cq = xrc_cq;

	ret = cmd_write(pd->context, cmd, cmd_size);
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(resp, resp_size);

	srq->handle = resp->srq_handle;
	srq->context = pd->context;
	attr->attr.max_wr = resp->max_wr;
	attr->attr.max_sge = resp->max_sge;

	return 0;
}

static int ofed_create_send_qp(struct ibv_pd *pd, const struct ibv_qp *qp,
			       const struct ibv_qp_init_attr *attr, struct ibv_create_qp *cmd,
			       size_t cmd_size)
{
	(void)qp;

	if (attr->srq || !attr->xrc_domain)
		return EINVAL;

	cmd->srq_handle = attr->xrc_domain->handle;

	return cmd_write(pd->context, cmd, cmd_size);
}

/* The kernel checks the attributes, which are one set for both directions. */
static int ofed_send_qp_mask(const struct ibv_qp *qp, const struct ibv_qp_attr *attr,
			     uint32_t *attr_mask)
{
	(void)qp, (void)attr, (void)attr_mask;
	return 0;
}

static int ofed_create_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn)
{
	struct ibv_create_xrc_rcv_qp_resp resp;
	struct ibv_create_xrc_rcv_qp cmd;
	int ret;

	memset(&cmd, 0, sizeof(cmd));
	CMD_INIT_RESP(&cmd, sizeof(cmd), CREATE_XRC_RCV_QP, &resp, sizeof(resp));
	cmd.xrc_domain_handle = init_attr->xrc_domain->handle;
	cmd.max_send_wr = init_attr->cap.max_send_wr;
	cmd.max_recv_wr = init_attr->cap.max_recv_wr;
	cmd.max_send_sge = init_attr->cap.max_send_sge;
	cmd.max_recv_sge = init_attr->cap.max_recv_sge;
	cmd.max_inline_data = init_attr->cap.max_inline_data;
	cmd.sq_sig_all = init_attr->sq_sig_all;
	cmd.qp_type = init_attr->qp_type;

	ret = cmd_write(init_attr->xrc_domain->context, &cmd, sizeof(cmd));
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(&resp, sizeof(resp));

	*xrc_rcv_qpn = resp.qpn;

	return 0;
}

static int ofed_modify_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn,
			      struct ibv_qp_attr *attr, int attr_mask)
{
	struct ibv_modify_xrc_rcv_qp cmd;

	memset(&cmd, 0, sizeof(cmd));
	CMD_INIT(&cmd, sizeof(cmd), MODIFY_XRC_RCV_QP);
	cmd.xrc_domain_handle = d->handle;
	cmd.qp_num = xrc_rcv_qpn;
	qp_dest_from_ah(&cmd.dest, &attr->ah_attr);
	qp_dest_from_ah(&cmd.alt_dest, &attr->alt_ah_attr);
	cmd.attr_mask = attr_mask;
	cmd.qkey = attr->qkey;
	cmd.rq_psn = attr->rq_psn;
	cmd.sq_psn = attr->sq_psn;
	cmd.dest_qp_num = attr->dest_qp_num;
	cmd.qp_access_flags = attr->qp_access_flags;
	cmd.pkey_index = attr->pkey_index;
	cmd.alt_pkey_index = attr->alt_pkey_index;
	cmd.qp_state = attr->qp_state;
	cmd.cur_qp_state = attr->cur_qp_state;
	cmd.path_mtu = attr->path_mtu;
	cmd.path_mig_state = attr->path_mig_state;
	cmd.en_sqd_async_notify = attr->en_sqd_async_notify;
	cmd.max_rd_atomic = attr->max_rd_atomic;
	cmd.max_dest_rd_atomic = attr->max_dest_rd_atomic;
	cmd.min_rnr_timer = attr->min_rnr_timer;
	cmd.port_num = attr->port_num;
	cmd.timeout = attr->timeout;
	cmd.retry_cnt = attr->retry_cnt;
	cmd.rnr_retry = attr->rnr_retry;
	cmd.alt_port_num = attr->alt_port_num;
	cmd.alt_timeout = attr->alt_timeout;

	return cmd_write(d->context, &cmd, sizeof(cmd));
}

static int ofed_query_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn,
			     struct ibv_qp_attr *attr, int attr_mask,
			     struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_xrc_rcv_qp cmd;
	struct ibv_query_qp_resp resp;
	int ret;

	CMD_INIT_RESP(&cmd, sizeof(cmd), QUERY_XRC_RCV_QP, &resp, sizeof(resp));
	cmd.xrc_domain_handle = d->handle;
	cmd.qp_num = xrc_rcv_qpn;
	cmd.attr_mask = attr_mask;
	cmd.reserved = 0;

	ret = cmd_write(d->context, &cmd, sizeof(cmd));
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(&resp, sizeof(resp));

	qp_attr_from_resp(attr, &resp);
	init_attr->cap = attr->cap;
	init_attr->sq_sig_all = resp.sq_sig_all;

	return 0;
}

static int ofed_reg_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn)
{
	struct ibv_reg_xrc_rcv_qp cmd;

	CMD_INIT(&cmd, sizeof(cmd), REG_XRC_RCV_QP);
	cmd.xrc_domain_handle = d->handle;
	cmd.qp_num = xrc_rcv_qpn;

	return cmd_write(d->context, &cmd, sizeof(cmd));
}

static int ofed_unreg_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn)
{
	struct ibv_unreg_xrc_rcv_qp cmd;

	CMD_INIT(&cmd, sizeof(cmd), UNREG_XRC_RCV_QP);
	cmd.xrc_domain_handle = d->handle;
	cmd.qp_num = xrc_rcv_qpn;

	return cmd_write(d->context, &cmd, sizeof(cmd));
}

const struct xrc_kernel xrc_ofed = {
	.open_domain = ofed_open_domain,
	.close_domain = ofed_close_domain,
	.create_srq = ofed_create_srq,
	.create_send_qp = ofed_create_send_qp,
	.create_rcv_qp = ofed_create_rcv_qp,
	.modify_rcv_qp = ofed_modify_rcv_qp,
	.query_rcv_qp = ofed_query_rcv_qp,
	.reg_rcv_qp = ofed_reg_rcv_qp,
	.unreg_rcv_qp = ofed_unreg_rcv_qp,
	.send_qp_mask = ofed_send_qp_mask,
};
