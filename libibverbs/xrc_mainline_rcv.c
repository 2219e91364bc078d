// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receive QPs on mainline kernels, which call them XRC target QPs. A target QP exists as long as a
 * context has a handle of it; the API calls such a handle a registration. The API refers to receive
 * QPs by number, so the library keeps the numbers and handles of the context's registrations.
 * xrc_mainline.h names the lock. */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "kern-abi-mainline.h"
#include "xrc_mainline.h"

/*
 * The kernel returns user_handle with every event. For other QPs it is the address of the object,
 * which is even. For receive QPs it is odd and never reused, so that an event of a registration
 * that has ended is not taken for one of another registration. The first value is for handles that
 * are not registrations.
 */
enum { UNREGISTERED_USER_HANDLE = 1, USER_HANDLE_STEP = 2 };

static struct xrc_rcv_qp *of_qpn(struct table_link *link)
{
	return (struct xrc_rcv_qp *)((char *)link - offsetof(struct xrc_rcv_qp, by_qpn));
}

static struct xrc_rcv_qp *of_user_handle(struct table_link *link)
{
	return (struct xrc_rcv_qp *)((char *)link - offsetof(struct xrc_rcv_qp, by_user_handle));
}

/* Returns the registration with QP qpn of this domain, made through any handle of the domain. */
static struct xrc_rcv_qp *find(struct xrc_mainline *m, const struct xrc_handle *domain,
			       uint32_t qpn)
{
	struct table_link *link;

	for (link = table_find(&m->rcv_qps, qpn); link; link = table_find_next(link))
		if (xrc_same_domain(of_qpn(link)->domain, domain))
			return of_qpn(link);
	return NULL;
}

/* Allocates a registration without adding it. Returns NULL if there is no memory. */
static struct xrc_rcv_qp *new_rcv_qp(struct xrc_mainline *m, struct xrc_handle *domain)
{
	struct xrc_rcv_qp *rcv_qp;

	rcv_qp = malloc(sizeof(*rcv_qp));
	if (!rcv_qp)
		return NULL;

	if (!m->last_user_handle)
		m->last_user_handle = UNREGISTERED_USER_HANDLE;
	m->last_user_handle += USER_HANDLE_STEP;
	rcv_qp->by_user_handle.key = m->last_user_handle;
	rcv_qp->domain = domain;

	return rcv_qp;
}

static void add(struct xrc_mainline *m, struct xrc_rcv_qp *rcv_qp, uint32_t qpn, uint32_t handle)
{
	rcv_qp->handle = handle;
	table_add(&m->rcv_qps, &rcv_qp->by_qpn, qpn);
	table_add(&m->rcv_user_handles, &rcv_qp->by_user_handle, rcv_qp->by_user_handle.key);
	++rcv_qp->domain->rcv_qps;
}

static void del(struct xrc_mainline *m, struct xrc_rcv_qp *rcv_qp)
{
	table_del(&m->rcv_qps, &rcv_qp->by_qpn);
	table_del(&m->rcv_user_handles, &rcv_qp->by_user_handle);
	--rcv_qp->domain->rcv_qps;
	free(rcv_qp);
}

/* The domain must be one that this context has open: some kernels crash when given another. */
static int open_handle(struct ibv_context *context, const struct xrc_handle *domain, uint32_t qpn,
		       uint64_t user_handle, uint32_t *handle)
{
	struct ibv_create_qp_resp resp;
	struct mainline_open_qp cmd;
	int ret;

	memset(&cmd, 0, sizeof(cmd));
	CMD_INIT_RESP(&cmd, sizeof(cmd), OPEN_QP, &resp, sizeof(resp));
	cmd.user_handle = user_handle;
	cmd.xrcd_handle = domain->handle;
	cmd.qpn = qpn;
	cmd.qp_type = MAINLINE_QPT_XRC_TGT;

	ret = cmd_write(context, &cmd, sizeof(cmd));
	if (ret)
		return ret;
	VALGRIND_MAKE_MEM_DEFINED(&resp, sizeof(resp));

	*handle = resp.qp_handle;
	return 0;
}

/* Programs do not acknowledge events of receive QPs, so there is nothing to wait for. The kernel
 * destroys the QP with its last handle. */
static int drop_handle(struct ibv_context *context, uint32_t handle)
{
	struct ibv_destroy_qp_resp resp;
	struct ibv_destroy_qp cmd;

	CMD_INIT_RESP(&cmd, sizeof(cmd), DESTROY_QP, &resp, sizeof(resp));
	cmd.qp_handle = handle;
	cmd.reserved = 0;

	return cmd_write(context, &cmd, sizeof(cmd));
}

int mainline_create_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn)
{
	struct ibv_context *context = init_attr->xrc_domain->context;
	struct xrc_mainline *m = xrc_mainline_of(context);
	struct xrc_rcv_qp *rcv_qp = NULL;
	struct ibv_create_qp_resp resp;
	struct xrc_handle *domain;
	struct ibv_create_qp cmd;
	int ret = EINVAL;

	pthread_mutex_lock(&m->lock);
	domain = xrc_find_domain(m, init_attr->xrc_domain->handle);
	if (!domain)
		goto out;

	ret = ENOMEM;
	rcv_qp = new_rcv_qp(m, domain);
	if (!rcv_qp)
		goto out;

	/* All other members of init_attr are ignored, as OFED does. */
	memset(&cmd, 0, sizeof(cmd));
	CMD_INIT_RESP(&cmd, sizeof(cmd), CREATE_QP, &resp, sizeof(resp));
	cmd.user_handle = rcv_qp->by_user_handle.key;
	cmd.pd_handle = domain->handle;
	cmd.sq_sig_all = init_attr->sq_sig_all;
	cmd.qp_type = MAINLINE_QPT_XRC_TGT;

	ret = cmd_write(context, &cmd, sizeof(cmd));
	if (ret)
		goto out;
	VALGRIND_MAKE_MEM_DEFINED(&resp, sizeof(resp));

	add(m, rcv_qp, resp.qpn, resp.qp_handle);
	rcv_qp = NULL;
	*xrc_rcv_qpn = resp.qpn;
out:
	pthread_mutex_unlock(&m->lock);
	free(rcv_qp);
	return ret;
}

int mainline_reg_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn)
{
	struct xrc_mainline *m = xrc_mainline_of(d->context);
	struct xrc_rcv_qp *rcv_qp = NULL;
	struct xrc_handle *domain;
	uint32_t handle;
	int ret = EINVAL;

	pthread_mutex_lock(&m->lock);
	domain = xrc_find_domain(m, d->handle);
	if (!domain)
		goto out;

	/* Registering again has no effect. */
	ret = 0;
	if (find(m, domain, xrc_rcv_qpn))
		goto out;

	ret = ENOMEM;
	rcv_qp = new_rcv_qp(m, domain);
	if (!rcv_qp)
		goto out;

	ret = open_handle(d->context, domain, xrc_rcv_qpn, rcv_qp->by_user_handle.key, &handle);
	if (ret)
		goto out;

	add(m, rcv_qp, xrc_rcv_qpn, handle);
	rcv_qp = NULL;
out:
	pthread_mutex_unlock(&m->lock);
	free(rcv_qp);
	return ret;
}

int mainline_unreg_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn)
{
	struct xrc_mainline *m = xrc_mainline_of(d->context);
	struct xrc_rcv_qp *rcv_qp;
	struct xrc_handle *domain;
	int ret = EINVAL;

	pthread_mutex_lock(&m->lock);
	domain = xrc_find_domain(m, d->handle);
	rcv_qp = domain ? find(m, domain, xrc_rcv_qpn) : NULL;
	if (rcv_qp)
		ret = drop_handle(d->context, rcv_qp->handle);
	if (!ret)
		del(m, rcv_qp);
	pthread_mutex_unlock(&m->lock);

	/* The API has only one errno for this, apart from those of a failed device. */
	return !ret || ret == EIO || ret == ENODEV ? ret : EINVAL;
}

/* Calls the function with a handle of the QP: that of the context's registration, or a temporary
 * one. If the last registration ends during the call, the QP exists until the temporary handle is
 * dropped. Returns 0 or a positive errno value. */
static int with_handle(struct ibv_xrc_domain *d, uint32_t qpn,
		       int (*function)(struct ibv_context *context, uint32_t handle, void *arg),
		       void *arg)
{
	struct xrc_mainline *m = xrc_mainline_of(d->context);
	struct xrc_rcv_qp *rcv_qp;
	struct xrc_handle *domain;
	uint32_t handle;
	int ret = EINVAL;

	pthread_mutex_lock(&m->lock);
	domain = xrc_find_domain(m, d->handle);
	if (!domain)
		goto out;

	rcv_qp = find(m, domain, qpn);
	if (rcv_qp) {
		ret = function(d->context, rcv_qp->handle, arg);
		goto out;
	}

	ret = open_handle(d->context, domain, qpn, UNREGISTERED_USER_HANDLE, &handle);
	if (ret)
		goto out;
	ret = function(d->context, handle, arg);
	drop_handle(d->context, handle);
out:
	pthread_mutex_unlock(&m->lock);
	return ret;
}

struct modify {
	struct ibv_qp_attr *attr;
	int attr_mask;
};

static int modify(struct ibv_context *context, uint32_t handle, void *arg)
{
	/* RC, because ibv_cmd_modify_qp() has no special rules for it. */
	struct ibv_qp qp = {.context = context, .handle = handle, .qp_type = IBV_QPT_RC};
	struct modify *m = arg;
	struct ibv_modify_qp cmd;

	return ibv_cmd_modify_qp(&qp, m->attr, m->attr_mask, &cmd, sizeof(cmd));
}

/*
 * The API has one set of attributes for both directions, and the kernel accepts no attributes of
 * the sending direction for a target QP. The library checks the rules for those as far as the
 * request alone allows: the attributes belong to the transition to RTS, which needs SQ_PSN, and the
 * kernel is strict about SQ_PSN. Returns 0 or EINVAL.
 */
static int rcv_qp_mask(const struct ibv_qp_attr *attr, int *attr_mask)
{
	const int sending = IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	int given = *attr_mask & sending, required = 0, allowed = 0;

	if (!(*attr_mask & IBV_QP_STATE) || attr->qp_state == IBV_QPS_SQD)
		allowed = sending;
	else if (attr->qp_state == IBV_QPS_RTS && *attr_mask & IBV_QP_SQ_PSN)
		required = allowed = sending;

	if (given & ~allowed || required & ~given)
		return EINVAL;

	*attr_mask &= ~sending;
	return 0;
}

int mainline_modify_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn, struct ibv_qp_attr *attr,
			   int attr_mask)
{
	struct modify m = {.attr = attr, .attr_mask = attr_mask};
	int ret;

	ret = rcv_qp_mask(attr, &m.attr_mask);

	return ret ? ret : with_handle(d, xrc_rcv_qpn, modify, &m);
}

struct query {
	int attr_mask;
	struct ibv_query_qp_resp resp;
};

static int query(struct ibv_context *context, uint32_t handle, void *arg)
{
	struct query *q = arg;
	struct ibv_query_qp cmd;
	int ret;

	CMD_INIT_RESP(&cmd, sizeof(cmd), QUERY_QP, &q->resp, sizeof(q->resp));
	cmd.qp_handle = handle;
	cmd.attr_mask = q->attr_mask;

	ret = cmd_write(context, &cmd, sizeof(cmd));
	if (!ret)
		VALGRIND_MAKE_MEM_DEFINED(&q->resp, sizeof(q->resp));
	return ret;
}

int mainline_query_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn, struct ibv_qp_attr *attr,
			  int attr_mask, struct ibv_qp_init_attr *init_attr)
{
	struct query q = {.attr_mask = attr_mask};
	int ret;

	ret = with_handle(d, xrc_rcv_qpn, query, &q);
	if (ret)
		return ret;

	qp_attr_from_resp(attr, &q.resp);
	init_attr->cap = attr->cap;
	init_attr->sq_sig_all = q.resp.sq_sig_all;

	return 0;
}

/* Drops events of registrations that have ended and of temporary handles. A kernel that had been
 * asked a moment later would not have delivered them either. */
bool mainline_translate_event(struct xrc_context *xrc, struct ibv_kern_async_event *event)
{
	struct xrc_mainline *m = (struct xrc_mainline *)xrc;
	struct table_link *link;

	if (event_element_of(event->event_type) != ELEMENT_QP || !(event->element & 1))
		return true;

	pthread_mutex_lock(&m->lock);
	link = table_find(&m->rcv_user_handles, event->element);
	if (link) {
		event->element = of_user_handle(link)->by_qpn.key;
		event->event_type |= IBV_XRC_QP_EVENT_FLAG;
	}
	pthread_mutex_unlock(&m->lock);

	return link;
}
