// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* XRC domains and receive QPs, which the kernel keeps. XRC SRQs are in srq.c, XRC send QPs in
 * qp.c. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>

#include "mlx4.h"
#include "mlx4-cmd.h"

static struct ibv_xrc_domain *open_xrc_domain(struct ibv_context *context, int fd, int oflag)
{
	struct mlx4_open_xrc_domain_resp resp;
	struct ibv_xrc_domain *domain;
	int ret;

	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return NULL;

	/* The kernel reports the domain number only to the caller that creates the domain. The
	 * number is not needed. */
	ret = ibv_cmd_open_xrc_domain(context, fd, oflag, domain, &resp.core, sizeof(resp));
	if (ret) {
		free(domain);
		errno = ret;
		return NULL;
	}
	return domain;
}

static int close_xrc_domain(struct ibv_xrc_domain *domain)
{
	int ret;

	ret = ibv_cmd_close_xrc_domain(domain);
	if (ret)
		return ret;
	free(domain);
	return 0;
}

static int query_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t qpn, struct ibv_qp_attr *attr,
			    int attr_mask, struct ibv_qp_init_attr *init_attr)
{
	int ret;

	ret = ibv_cmd_query_xrc_rcv_qp(domain, qpn, attr, attr_mask, init_attr);
	if (ret)
		return ret;

	/* The kernel created the QP itself; these are the values that it used. */
	memset(&init_attr->cap, 0, sizeof(init_attr->cap));
	init_attr->cap.max_send_wr = 1;
	init_attr->cap.max_send_sge = 1;
	init_attr->qp_context = NULL;
	init_attr->send_cq = NULL;
	init_attr->recv_cq = NULL;
	init_attr->srq = NULL;
	init_attr->qp_type = IBV_QPT_XRC;
	init_attr->xrc_domain = domain;
	attr->cap = init_attr->cap;
	return 0;
}

struct ibv_more_ops mlx4_more_ops = {
	.create_xrc_srq = mlx4_create_xrc_srq,
	.open_xrc_domain = open_xrc_domain,
	.close_xrc_domain = close_xrc_domain,
	.create_xrc_rcv_qp = ibv_cmd_create_xrc_rcv_qp,
	.modify_xrc_rcv_qp = ibv_cmd_modify_xrc_rcv_qp,
	.query_xrc_rcv_qp = query_xrc_rcv_qp,
	.reg_xrc_rcv_qp = ibv_cmd_reg_xrc_rcv_qp,
	.unreg_xrc_rcv_qp = ibv_cmd_unreg_xrc_rcv_qp,
};
