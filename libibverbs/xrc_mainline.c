// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* XRC on mainline kernels from 3.3 on: domains, SRQs and send QPs. Receive QPs are in
 * xrc_mainline_rcv.c. The kernel keeps the objects. This file keeps what the API promises and the
 * kernel does not track: the objects of the context in each domain. With them the library refuses
 * to close a domain that is in use.
 *
 * On these kernels a send QP is an initiator only. In the legacy API a QP of this type can also
 * receive if its peer is another such QP. Such a pair does not work here: both ends connect, but
 * their sends end with IBV_WC_RETRY_EXC_ERR, because an initiator does not answer. The library
 * cannot refuse this, because it does not know the type of the peer.
 *
 * After fork() the child shares the kernel's handles with its parent, and has a copy of this state
 * from the time of the fork. As with everything else in a context, only one of the two processes
 * may go on using it. */

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd.h"
#include "kern-abi-mainline.h"
#include "xrc_mainline.h"

struct xrc_handle *xrc_find_domain(const struct xrc_mainline *m, uint32_t handle)
{
	struct xrc_handle *domain;

	for (domain = m->domains; domain; domain = domain->next)
		if (domain->handle == handle)
			break;
	return domain;
}

/* The kernel holds the inode of each open domain, so its number cannot be reused meanwhile. */
bool xrc_same_domain(const struct xrc_handle *a, const struct xrc_handle *b)
{
	return a == b || (a->has_file && b->has_file && a->dev == b->dev && a->ino == b->ino);
}

/* Records an object before the kernel creates it, because nothing may fail afterwards. Returns 0,
 * EINVAL if the domain is not open, or ENOMEM. */
static int object_coming(struct xrc_mainline *m, uint32_t domain_handle, const void *object)
{
	struct xrc_object *entry;
	int ret = EINVAL;

	entry = malloc(sizeof(*entry));
	if (!entry)
		return ENOMEM;

	pthread_mutex_lock(&m->lock);
	entry->domain = xrc_find_domain(m, domain_handle);
	if (entry->domain) {
		++entry->domain->objects;
		table_add(&m->objects, &entry->link, (uintptr_t)object);
		entry = NULL;
		ret = 0;
	}
	pthread_mutex_unlock(&m->lock);

	free(entry);
	return ret;
}

static void mainline_object_gone(struct xrc_context *xrc, const void *object)
{
	struct xrc_mainline *m = (struct xrc_mainline *)xrc;
	struct table_link *link;
	struct xrc_object *entry;

	pthread_mutex_lock(&m->lock);
	link = table_find(&m->objects, (uintptr_t)object);
	if (link) {
		entry = (struct xrc_object *)link;
		table_del(&m->objects, link);
		--entry->domain->objects;
		free(entry);
	}
	pthread_mutex_unlock(&m->lock);
}

static int mainline_open_domain(struct ibv_context *context, int fd, int oflag,
				struct ibv_xrc_domain *d, struct ibv_open_xrc_domain_resp *resp,
				size_t resp_size)
{
	struct xrc_mainline *m = xrc_mainline_of(context);
	struct ibv_open_xrc_domain cmd;
	struct xrc_handle *domain;
	struct stat st;
	int ret;

	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return ENOMEM;

	/* If fd is not a descriptor, the kernel refuses the command. */
	if (fd != -1 && !fstat(fd, &st)) {
		domain->has_file = true;
		domain->dev = st.st_dev;
		domain->ino = st.st_ino;
	}

	CMD_INIT_RESP(&cmd, sizeof(cmd), OPEN_XRCD, resp, resp_size);
	cmd.fd = fd;
	cmd.oflags = oflag;

	pthread_mutex_lock(&m->lock);
	ret = cmd_write(context, &cmd, sizeof(cmd));
	if (!ret) {
		/* Only the core of the response: mlx4 has no part of its own. */
		VALGRIND_MAKE_MEM_DEFINED(resp, sizeof(*resp));
		d->handle = domain->handle = resp->xrcd_handle;
		domain->next = m->domains;
		m->domains = domain;
	}
	pthread_mutex_unlock(&m->lock);

	if (ret)
		free(domain);
	return ret;
}

/* The kernel closes a domain even if the context has send QPs in it; some versions do so with
 * receive QPs, which then exist for ever. */
static bool domain_in_use(const struct xrc_mainline *m, const struct xrc_handle *domain)
{
	const struct xrc_handle *other;

	if (domain->rcv_qps)
		return true;

	for (other = m->domains; other; other = other->next)
		if (other->objects && xrc_same_domain(other, domain))
			return true;
	return false;
}

static int mainline_close_domain(struct ibv_xrc_domain *d)
{
	struct xrc_mainline *m = xrc_mainline_of(d->context);
	struct xrc_handle *domain, **link;
	struct mainline_close_xrcd cmd;
	int ret = EINVAL;

	CMD_INIT(&cmd, sizeof(cmd), CLOSE_XRCD);
	cmd.xrcd_handle = d->handle;

	pthread_mutex_lock(&m->lock);
	domain = xrc_find_domain(m, d->handle);
	if (domain)
		ret = domain_in_use(m, domain) ? EBUSY : cmd_write(d->context, &cmd, sizeof(cmd));
	if (!ret) {
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it is in the list */
		for (link = &m->domains; *link != domain; link = &(*link)->next)
			;
		*link = domain->next;
		free(domain);
	}
	pthread_mutex_unlock(&m->lock);

	return ret;
}

/* The core of the command is longer here than in the legacy command, so the provider's part is
 * copied. The provider's part of the response is at the legacy place. */
static int mainline_create_srq(struct ibv_pd *pd, struct ibv_srq *srq,
			       struct ibv_srq_init_attr *attr, uint32_t xrc_domain, uint32_t xrc_cq,
			       struct ibv_create_xrc_srq *legacy, size_t legacy_size,
			       struct ibv_create_srq_resp *resp, size_t resp_size)
{
	size_t driver_size = legacy_size - sizeof(*legacy);
	struct xrc_mainline *m = xrc_mainline_of(pd->context);
	struct mainline_create_xsrq_resp answer;
	struct mainline_create_xsrq *cmd;
	int ret;

	cmd = calloc(1, sizeof(*cmd) + driver_size);
	if (!cmd)
		return ENOMEM;

	CMD_INIT_RESP(cmd, sizeof(*cmd) + driver_size, CREATE_XSRQ, resp, resp_size);
	cmd->user_handle = (uintptr_t)srq;
	cmd->srq_type = MAINLINE_SRQT_XRC;
	cmd->pd_handle = pd->handle;
	cmd->max_wr = attr->attr.max_wr;
	cmd->max_sge = attr->attr.max_sge;
	cmd->srq_limit = attr->attr.srq_limit;
	cmd->xrcd_handle = xrc_domain;
	cmd->cq_handle = xrc_cq;
	memcpy(cmd->driver_data, legacy->driver_data, driver_size);

	ret = object_coming(m, xrc_domain, srq);
	if (ret)
		goto out;

	ret = cmd_write(pd->context, cmd, sizeof(*cmd) + driver_size);
	if (ret) {
		mainline_object_gone(&m->xrc, srq);
		goto out;
	}
	VALGRIND_MAKE_MEM_DEFINED(resp, resp_size);

	memcpy(&answer, resp, sizeof(answer));
	srq->handle = answer.srq_handle;
	srq->context = pd->context;
	srq->xrc_srq_num = answer.srqn;
	attr->attr.max_wr = answer.max_wr;
	attr->attr.max_sge = answer.max_sge;
out:
	free(cmd);
	return ret;
}

/* The kernel does not assign an initiator to a domain. The library checks that the domain is open
 * in this context and keeps it open. */
static int mainline_create_send_qp(struct ibv_pd *pd, const struct ibv_qp *qp,
				   const struct ibv_qp_init_attr *attr, struct ibv_create_qp *cmd,
				   size_t cmd_size)
{
	struct xrc_mainline *m = xrc_mainline_of(pd->context);
	int ret;

	if (attr->srq || !attr->xrc_domain)
		return EINVAL;

	ret = object_coming(m, attr->xrc_domain->handle, qp);
	if (ret)
		return ret;

	cmd->qp_type = MAINLINE_QPT_XRC_INI;
	cmd->max_recv_wr = 0;
	cmd->max_recv_sge = 0;

	ret = cmd_write(pd->context, cmd, cmd_size);
	if (ret)
		mainline_object_gone(&m->xrc, qp);
	return ret;
}

/*
 * The API has one set of attributes for both directions, and refuses those that break its rules.
 * The kernel accepts no attributes of the receiving direction for an initiator, so the library
 * checks the rules for those. It uses the state that it knows, as an OFED kernel would.
 */
static int mainline_send_qp_mask(const struct ibv_qp *qp, const struct ibv_qp_attr *attr,
				 uint32_t *attr_mask)
{
	const uint32_t receiving = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	uint32_t given = *attr_mask & receiving, required = 0, allowed = 0;
	enum ibv_qp_state from = *attr_mask & IBV_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	enum ibv_qp_state to = *attr_mask & IBV_QP_STATE ? attr->qp_state : from;

	if (to == IBV_QPS_RTR)
		required = allowed = receiving;
	else if (to == IBV_QPS_RTS)
		allowed = IBV_QP_MIN_RNR_TIMER;
	else if (to == IBV_QPS_SQD && from == IBV_QPS_SQD)
		allowed = receiving;

	if (given & ~allowed || required & ~given)
		return EINVAL;

	*attr_mask &= ~receiving;
	return 0;
}

/* Entries of both kinds start with their link, so freeing the link frees the entry. */
static void table_free(struct table *table)
{
	struct table_link *all = table_take_all(table);
	struct table_link *next;

	for (; all; all = next) {
		next = all->next;
		free(all);
	}
	table_destroy(table);
}

/* The kernel frees its objects when the context is closed. */
static void mainline_release(struct xrc_context *xrc)
{
	struct xrc_mainline *m = (struct xrc_mainline *)xrc;
	struct xrc_handle *domain;

	table_free(&m->objects);
	table_free(&m->rcv_qps);
	table_destroy(&m->rcv_user_handles);
	while ((domain = m->domains)) {
		m->domains = domain->next;
		free(domain);
	}
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static const struct xrc_kernel xrc_mainline = {
	.open_domain = mainline_open_domain,
	.close_domain = mainline_close_domain,
	.create_srq = mainline_create_srq,
	.create_send_qp = mainline_create_send_qp,
	.create_rcv_qp = mainline_create_rcv_qp,
	.modify_rcv_qp = mainline_modify_rcv_qp,
	.query_rcv_qp = mainline_query_rcv_qp,
	.reg_rcv_qp = mainline_reg_rcv_qp,
	.unreg_rcv_qp = mainline_unreg_rcv_qp,
	.send_qp_mask = mainline_send_qp_mask,
	.object_gone = mainline_object_gone,
	.translate_event = mainline_translate_event,
	.release = mainline_release,
};

struct xrc_context *xrc_mainline_new(void)
{
	struct xrc_mainline *m;

	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;

	m->xrc.kernel = &xrc_mainline;
	table_init(&m->objects);
	table_init(&m->rcv_qps);
	table_init(&m->rcv_user_handles);
	pthread_mutex_init(&m->lock, NULL);

	return &m->xrc;
}
