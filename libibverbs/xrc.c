// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The XRC verbs and commands. xrc_probe.c finds out which kernel interface they use. This file
 * keeps no state. */

#include "xrc.h"

int xrc_supported(struct ibv_context *context)
{
	struct xrc_context *xrc;

	return context->more_ops ? xrc_choose(context, &xrc) : ENOSYS;
}

void xrc_object_gone(const struct ibv_context *context, const void *object)
{
	struct xrc_context *xrc = xrc_chosen(context);

	if (xrc && xrc->kernel->object_gone)
		xrc->kernel->object_gone(xrc, object);
}

bool xrc_translate_event(const struct ibv_context *context, struct ibv_kern_async_event *event)
{
	struct xrc_context *xrc = xrc_chosen(context);

	return !xrc || !xrc->kernel->translate_event || xrc->kernel->translate_event(xrc, event);
}

void xrc_release(struct xrc_context *xrc)
{
	if (xrc && xrc->kernel->release)
		xrc->kernel->release(xrc);
}

/*
 * Commands, for the provider
 */

int ibv_cmd_open_xrc_domain(struct ibv_context *context, int fd, int oflag,
			    struct ibv_xrc_domain *d, struct ibv_open_xrc_domain_resp *resp,
			    size_t resp_size)
{
	struct xrc_context *xrc;
	int ret;

	ret = xrc_choose(context, &xrc);
	if (!ret)
		ret = xrc->kernel->open_domain(context, fd, oflag, d, resp, resp_size);

	return ret ? fail(ret) : 0;
}

int ibv_cmd_close_xrc_domain(struct ibv_xrc_domain *d)
{
	struct xrc_context *xrc;
	int ret;

	ret = xrc_choose(d->context, &xrc);
	if (!ret)
		ret = xrc->kernel->close_domain(d);

	return ret ? fail(ret) : 0;
}

int ibv_cmd_create_xrc_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
			   uint32_t xrc_domain, uint32_t xrc_cq, struct ibv_create_xrc_srq *cmd,
			   size_t cmd_size, struct ibv_create_srq_resp *resp, size_t resp_size)
{
	struct xrc_context *xrc;
	int ret;

	ret = xrc_choose(pd->context, &xrc);
	if (!ret)
		ret = xrc->kernel->create_srq(pd, srq, attr, xrc_domain, xrc_cq, cmd, cmd_size,
					      resp, resp_size);

	return ret ? fail(ret) : 0;
}

int ibv_cmd_create_xrc_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn)
{
	struct xrc_context *xrc;
	int ret;

	ret = xrc_choose(init_attr->xrc_domain->context, &xrc);
	if (!ret)
		ret = xrc->kernel->create_rcv_qp(init_attr, xrc_rcv_qpn);

	return ret ? fail(ret) : 0;
}

int ibv_cmd_modify_xrc_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn,
			      struct ibv_qp_attr *attr, int attr_mask)
{
	struct xrc_context *xrc;
	int ret;

	ret = xrc_choose(d->context, &xrc);
	if (!ret)
		ret = xrc->kernel->modify_rcv_qp(d, xrc_rcv_qpn, attr, attr_mask);

	return ret ? fail(ret) : 0;
}

int ibv_cmd_query_xrc_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn,
			     struct ibv_qp_attr *attr, int attr_mask,
			     struct ibv_qp_init_attr *init_attr)
{
	struct xrc_context *xrc;
	int ret;

	ret = xrc_choose(d->context, &xrc);
	if (!ret)
		ret = xrc->kernel->query_rcv_qp(d, xrc_rcv_qpn, attr, attr_mask, init_attr);

	return ret ? fail(ret) : 0;
}

int ibv_cmd_reg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num)
{
	struct xrc_context *xrc;
	int ret;

	ret = xrc_choose(xrc_domain->context, &xrc);
	if (!ret)
		ret = xrc->kernel->reg_rcv_qp(xrc_domain, xrc_qp_num);

	return ret ? fail(ret) : 0;
}

int ibv_cmd_unreg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num)
{
	struct xrc_context *xrc;
	int ret;

	ret = xrc_choose(xrc_domain->context, &xrc);
	if (!ret)
		ret = xrc->kernel->unreg_rcv_qp(xrc_domain, xrc_qp_num);

	return ret ? fail(ret) : 0;
}

/* Verbs, for the application. A provider may lack some of the operations. */

struct ibv_srq *ibv_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *xrc_domain,
				   struct ibv_cq *xrc_cq, struct ibv_srq_init_attr *srq_init_attr)
{
	struct ibv_srq *srq;
	int ret;

	ret = xrc_supported(pd->context);
	if (ret || !pd->context->more_ops->create_xrc_srq) {
		errno = ret ? ret : ENOSYS;
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
	int ret;

	ret = xrc_supported(context);
	if (ret || !context->more_ops->open_xrc_domain) {
		errno = ret ? ret : ENOSYS;
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
	ret = xrc_supported(d->context);
	if (ret || !d->context->more_ops->close_xrc_domain)
		return fail(ret ? ret : ENOSYS);

	ret = d->context->more_ops->close_xrc_domain(d);
	return ret ? fail(ret) : 0;
}

/*
 * Calls an operation on receive QPs, if the context has it. 0, or a positive errno value and errno
 * set.
 */
#define CALL_RCV_QP(ctx, op, ...)                                                                  \
	({                                                                                         \
		struct ibv_context *context_ = (ctx);                                              \
		int ret_ = xrc_supported(context_);                                                \
		if (!ret_)                                                                         \
			ret_ = context_->more_ops->op ? context_->more_ops->op(__VA_ARGS__)        \
						      : ENOSYS;                                    \
		ret_ ? fail(ret_) : 0;                                                             \
	})

int ibv_create_xrc_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn)
{
	if (!init_attr || !init_attr->xrc_domain || !xrc_rcv_qpn)
		return fail(EINVAL);
	return CALL_RCV_QP(init_attr->xrc_domain->context, create_xrc_rcv_qp, init_attr,
			   xrc_rcv_qpn);
}

int ibv_modify_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
			  struct ibv_qp_attr *attr, int attr_mask)
{
	if (!xrc_domain || !attr)
		return fail(EINVAL);
	return CALL_RCV_QP(xrc_domain->context, modify_xrc_rcv_qp, xrc_domain, xrc_qp_num, attr,
			   attr_mask);
}

int ibv_query_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
			 struct ibv_qp_attr *attr, int attr_mask,
			 struct ibv_qp_init_attr *init_attr)
{
	if (!xrc_domain || !attr || !init_attr)
		return fail(EINVAL);
	return CALL_RCV_QP(xrc_domain->context, query_xrc_rcv_qp, xrc_domain, xrc_qp_num, attr,
			   attr_mask, init_attr);
}

int ibv_reg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num)
{
	if (!xrc_domain)
		return fail(EINVAL);
	return CALL_RCV_QP(xrc_domain->context, reg_xrc_rcv_qp, xrc_domain, xrc_qp_num);
}

int ibv_unreg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num)
{
	if (!xrc_domain)
		return fail(EINVAL);
	return CALL_RCV_QP(xrc_domain->context, unreg_xrc_rcv_qp, xrc_domain, xrc_qp_num);
}
