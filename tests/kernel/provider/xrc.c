// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The XRC operations, each one command of the library. Soft-RoCE has no XRC; the provider offers it
 * so that the refusal is the library's own verdict on the kernel and not for want of operations.
 */

#include <errno.h>
#include <stdlib.h>

#include "rxe.h"

static struct ibv_xrc_domain *rxe_open_xrc_domain(struct ibv_context *context, int fd, int oflag)
{
	struct ibv_open_xrc_domain_resp resp;
	struct ibv_xrc_domain *domain;
	int ret;

	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return NULL;

	ret = ibv_cmd_open_xrc_domain(context, fd, oflag, domain, &resp, sizeof(resp));
	if (ret) {
		free(domain);
		errno = ret;
		return NULL;
	}

	return domain;
}

static int rxe_close_xrc_domain(struct ibv_xrc_domain *domain)
{
	int ret = ibv_cmd_close_xrc_domain(domain);

	if (!ret)
		free(domain);
	return ret;
}

/* A device without XRC has no answer to CREATE_XRC_SRQ from which a queue could be mapped. */
static struct ibv_srq *rxe_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *domain,
					  struct ibv_cq *cq, struct ibv_srq_init_attr *attr)
{
	(void)pd, (void)domain, (void)cq, (void)attr;
	errno = ENOSYS;
	return NULL;
}

struct ibv_more_ops rxe_more_ops = {
	.create_xrc_srq = rxe_create_xrc_srq,
	.open_xrc_domain = rxe_open_xrc_domain,
	.close_xrc_domain = rxe_close_xrc_domain,
	.create_xrc_rcv_qp = ibv_cmd_create_xrc_rcv_qp,
	.modify_xrc_rcv_qp = ibv_cmd_modify_xrc_rcv_qp,
	.query_xrc_rcv_qp = ibv_cmd_query_xrc_rcv_qp,
	.reg_xrc_rcv_qp = ibv_cmd_reg_xrc_rcv_qp,
	.unreg_xrc_rcv_qp = ibv_cmd_unreg_xrc_rcv_qp,
};
