// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The XRC verbs, and the choice of the kernel interface that a context's XRC goes through. The choice is
 * kept in the context's abi_compat, which is the library's; it is made once, and two threads that make it
 * together make the same. */

#include "xrc.h"

static int no_open_domain(struct ibv_context *context, int fd, int oflag, struct ibv_xrc_domain *d,
			  struct ibv_open_xrc_domain_resp *resp, size_t resp_size)
{
	(void)context, (void)fd, (void)oflag, (void)d, (void)resp, (void)resp_size;
	return ENOSYS;
}

static int no_close_domain(struct ibv_xrc_domain *d)
{
	(void)d;
	return ENOSYS;
}

static int no_create_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
			 uint32_t xrc_domain, uint32_t xrc_cq, struct ibv_create_xrc_srq *cmd,
			 size_t cmd_size, struct ibv_create_srq_resp *resp, size_t resp_size)
{
	(void)pd, (void)srq, (void)attr, (void)xrc_domain, (void)xrc_cq, (void)cmd, (void)cmd_size, (void)resp;
	(void)resp_size;
	return ENOSYS;
}

static int no_fill_send_qp(struct ibv_create_qp *cmd, const struct ibv_qp_init_attr *attr)
{
	(void)cmd, (void)attr;
	return ENOSYS;
}

static int no_create_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn)
{
	(void)init_attr, (void)xrc_rcv_qpn;
	return ENOSYS;
}

static int no_modify_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn, struct ibv_qp_attr *attr,
			    int attr_mask)
{
	(void)d, (void)xrc_rcv_qpn, (void)attr, (void)attr_mask;
	return ENOSYS;
}

static int no_query_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn, struct ibv_qp_attr *attr,
			   int attr_mask, struct ibv_qp_init_attr *init_attr)
{
	(void)d, (void)xrc_rcv_qpn, (void)attr, (void)attr_mask, (void)init_attr;
	return ENOSYS;
}

static int no_reg_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn)
{
	(void)d, (void)xrc_rcv_qpn;
	return ENOSYS;
}

static const struct xrc_kernel xrc_none = {
	.open_domain = no_open_domain,
	.close_domain = no_close_domain,
	.create_srq = no_create_srq,
	.fill_send_qp = no_fill_send_qp,
	.create_rcv_qp = no_create_rcv_qp,
	.modify_rcv_qp = no_modify_rcv_qp,
	.query_rcv_qp = no_query_rcv_qp,
	.reg_rcv_qp = no_reg_rcv_qp,
	.unreg_rcv_qp = no_reg_rcv_qp,
};

const struct xrc_kernel *xrc_kernel(struct ibv_context *context)
{
	const struct xrc_kernel *kernel;
	struct ibv_device_attr attr;

	/* Before 6 there is no XRC, and up to 2 abi_compat is taken. */
	if (abi_ver < 6)
		return &xrc_none;

	kernel = __atomic_load_n(&context->abi_compat, __ATOMIC_RELAXED);
	if (kernel)
		return kernel;

	if (context->ops.query_device(context, &attr))
		return &xrc_none;

	kernel = attr.device_cap_flags & IBV_DEVICE_XRC ? &xrc_ofed : &xrc_none;
	__atomic_store_n(&context->abi_compat, (void *)kernel, __ATOMIC_RELAXED);

	return kernel;
}

bool xrc_supported(struct ibv_context *context)
{
	return context->more_ops && xrc_kernel(context) != &xrc_none;
}

/*
 * Commands, for the provider
 */

int ibv_cmd_open_xrc_domain(struct ibv_context *context, int fd, int oflag, struct ibv_xrc_domain *d,
			    struct ibv_open_xrc_domain_resp *resp, size_t resp_size)
{
	int ret = xrc_kernel(context)->open_domain(context, fd, oflag, d, resp, resp_size);

	return ret ? fail(ret) : 0;
}

int ibv_cmd_close_xrc_domain(struct ibv_xrc_domain *d)
{
	int ret = xrc_kernel(d->context)->close_domain(d);

	return ret ? fail(ret) : 0;
}

int ibv_cmd_create_xrc_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
			   uint32_t xrc_domain, uint32_t xrc_cq, struct ibv_create_xrc_srq *cmd,
			   size_t cmd_size, struct ibv_create_srq_resp *resp, size_t resp_size)
{
	int ret = xrc_kernel(pd->context)->create_srq(pd, srq, attr, xrc_domain, xrc_cq, cmd, cmd_size, resp,
						      resp_size);

	return ret ? fail(ret) : 0;
}

int ibv_cmd_create_xrc_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn)
{
	int ret = xrc_kernel(init_attr->xrc_domain->context)->create_rcv_qp(init_attr, xrc_rcv_qpn);

	return ret ? fail(ret) : 0;
}

int ibv_cmd_modify_xrc_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn, struct ibv_qp_attr *attr,
			      int attr_mask)
{
	int ret = xrc_kernel(d->context)->modify_rcv_qp(d, xrc_rcv_qpn, attr, attr_mask);

	return ret ? fail(ret) : 0;
}

int ibv_cmd_query_xrc_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn, struct ibv_qp_attr *attr,
			     int attr_mask, struct ibv_qp_init_attr *init_attr)
{
	int ret = xrc_kernel(d->context)->query_rcv_qp(d, xrc_rcv_qpn, attr, attr_mask, init_attr);

	return ret ? fail(ret) : 0;
}

int ibv_cmd_reg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num)
{
	int ret = xrc_kernel(xrc_domain->context)->reg_rcv_qp(xrc_domain, xrc_qp_num);

	return ret ? fail(ret) : 0;
}

int ibv_cmd_unreg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num)
{
	int ret = xrc_kernel(xrc_domain->context)->unreg_rcv_qp(xrc_domain, xrc_qp_num);

	return ret ? fail(ret) : 0;
}

/*
 * Verbs, for the application. A provider may lack one operation and not another.
 */

struct ibv_srq *ibv_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *xrc_domain,
				   struct ibv_cq *xrc_cq, struct ibv_srq_init_attr *srq_init_attr)
{
	struct ibv_srq *srq;

	if (!xrc_supported(pd->context) || !pd->context->more_ops->create_xrc_srq) {
		errno = ENOSYS;
		return NULL;
	}
	if (!xrc_domain || !xrc_cq) {
		errno = EINVAL;
		return NULL;
	}

	srq = pd->context->more_ops->create_xrc_srq(pd, xrc_domain, xrc_cq, srq_init_attr);
	if (!srq)
		return NULL;

	srq->context = pd->context;
	srq->srq_context = srq_init_attr->srq_context;
	srq->pd = pd;
	srq->xrc_domain = xrc_domain;
	srq->xrc_cq = xrc_cq;
	srq->events_completed = 0;
	pthread_mutex_init(&srq->mutex, NULL);
	pthread_cond_init(&srq->cond, NULL);

	return srq;
}

struct ibv_xrc_domain *ibv_open_xrc_domain(struct ibv_context *context, int fd, int oflag)
{
	struct ibv_xrc_domain *d;

	if (!xrc_supported(context) || !context->more_ops->open_xrc_domain) {
		errno = ENOSYS;
		return NULL;
	}

	d = context->more_ops->open_xrc_domain(context, fd, oflag);
	if (d)
		d->context = context;

	return d;
}

int ibv_close_xrc_domain(struct ibv_xrc_domain *d)
{
	int ret;

	if (!d)
		return fail(EINVAL);
	if (!xrc_supported(d->context) || !d->context->more_ops->close_xrc_domain)
		return fail(ENOSYS);

	ret = d->context->more_ops->close_xrc_domain(d);
	return ret ? fail(ret) : 0;
}

int ibv_create_xrc_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn)
{
	struct ibv_context *context;
	int ret;

	if (!init_attr || !init_attr->xrc_domain || !xrc_rcv_qpn)
		return fail(EINVAL);
	context = init_attr->xrc_domain->context;
	if (!xrc_supported(context) || !context->more_ops->create_xrc_rcv_qp)
		return fail(ENOSYS);

	ret = context->more_ops->create_xrc_rcv_qp(init_attr, xrc_rcv_qpn);
	return ret ? fail(ret) : 0;
}

int ibv_modify_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num, struct ibv_qp_attr *attr,
			  int attr_mask)
{
	struct ibv_context *context;
	int ret;

	if (!xrc_domain || !attr)
		return fail(EINVAL);
	context = xrc_domain->context;
	if (!xrc_supported(context) || !context->more_ops->modify_xrc_rcv_qp)
		return fail(ENOSYS);

	ret = context->more_ops->modify_xrc_rcv_qp(xrc_domain, xrc_qp_num, attr, attr_mask);
	return ret ? fail(ret) : 0;
}

int ibv_query_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num, struct ibv_qp_attr *attr,
			 int attr_mask, struct ibv_qp_init_attr *init_attr)
{
	struct ibv_context *context;
	int ret;

	if (!xrc_domain || !attr || !init_attr)
		return fail(EINVAL);
	context = xrc_domain->context;
	if (!xrc_supported(context) || !context->more_ops->query_xrc_rcv_qp)
		return fail(ENOSYS);

	ret = context->more_ops->query_xrc_rcv_qp(xrc_domain, xrc_qp_num, attr, attr_mask, init_attr);
	return ret ? fail(ret) : 0;
}

int ibv_reg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num)
{
	struct ibv_context *context;
	int ret;

	if (!xrc_domain)
		return fail(EINVAL);
	context = xrc_domain->context;
	if (!xrc_supported(context) || !context->more_ops->reg_xrc_rcv_qp)
		return fail(ENOSYS);

	ret = context->more_ops->reg_xrc_rcv_qp(xrc_domain, xrc_qp_num);
	return ret ? fail(ret) : 0;
}

int ibv_unreg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num)
{
	struct ibv_context *context;
	int ret;

	if (!xrc_domain)
		return fail(EINVAL);
	context = xrc_domain->context;
	if (!xrc_supported(context) || !context->more_ops->unreg_xrc_rcv_qp)
		return fail(ENOSYS);

	ret = context->more_ops->unreg_xrc_rcv_qp(xrc_domain, xrc_qp_num);
	return ret ? fail(ret) : 0;
}
