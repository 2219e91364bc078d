// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Ids that are made in one step of what rdma_getaddrinfo() returned, and the requests to them. */

#include <string.h>

#include "cm.h"

enum { RESOLVE_MS = 2000 };

static int copy(const void *from, size_t len, void **to)
{
	*to = malloc(len);
	if (!*to)
		return -ENOMEM;
	memcpy(*to, from, len);
	return 0;
}

/* The requests to the id get QPs like this one. */
static int keep_attr(struct cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
		     const struct ibv_qp_init_attr *attr)
{
	if (!attr)
		return 0;
	id->qp_init_attr = malloc(sizeof(*id->qp_init_attr));
	if (!id->qp_init_attr)
		return -ENOMEM;
	cm_copy_init_attr(id, id->qp_init_attr, attr);
	id->qp_init_attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	id->listen_pd = pd;
	return 0;
}

static int make_passive(struct cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
			const struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->id, res->ai_src_addr))
		return -errno;
	return keep_attr(id, res, pd, attr);
}

static int make_active(struct cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
		       struct ibv_qp_init_attr *attr)
{
	int ret;

	if (rdma_resolve_addr(&id->id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS))
		return -errno;
	cm_forget_event(id);
	if (res->ai_route_len) {
		if (rdma_set_option(&id->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route,
				    res->ai_route_len))
			return -errno;
		ret = cm_complete(id);
		if (ret)
			return ret;
	} else if (rdma_resolve_route(&id->id, RESOLVE_MS)) {
		return -errno;
	}
	if (res->ai_connect_len) {
		ret = copy(res->ai_connect, res->ai_connect_len, &id->connect);
		if (ret)
			return ret;
		id->connect_len = res->ai_connect_len;
	}
	if (attr) {
		attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
		if (rdma_create_qp(&id->id, pd, attr))
			return -errno;
	}
	return 0;
}

static int make(struct cm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		struct ibv_qp_init_attr *attr)
{
	if (res->ai_flags & RAI_PASSIVE)
		return make_passive(id, res, pd, attr);
	return make_active(id, res, pd, attr);
}

static void destroy_ep(void *id)
{
	rdma_destroy_ep(id);
}

PUBLIC int rdma_create_ep(struct rdma_cm_id **result, struct rdma_addrinfo *res, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *qp_init_attr)
{
	struct cm_id *id;
	int ret;

	ret = cm_id_create(NULL, NULL, (enum rdma_port_space)res->ai_port_space, res->ai_qp_type,
			   &id);
	if (ret)
		return cm_return(ret);
	/*
	 * A thread that is cancelled while it waits leaves nothing behind: no other thread knows
	 * the id.
	 */
	pthread_cleanup_push(destroy_ep, &id->id);
	ret = make(id, res, pd, qp_init_attr);
	pthread_cleanup_pop(0);
	if (ret) {
		rdma_destroy_ep(&id->id);
		return cm_return(ret);
	}
	*result = &id->id;
	return 0;
}

PUBLIC void rdma_destroy_ep(struct rdma_cm_id *id)
{
	int saved = errno;

	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	rdma_destroy_id(id);
	errno = saved;
}

static int take_request(struct cm_id *listener, struct rdma_cm_event *event,
			struct rdma_cm_id **result)
{
	struct ibv_qp_init_attr attr;
	struct cm_id *id;
	int ret;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		ret = event->status < 0 ? event->status : -event->status;
		rdma_ack_cm_event(event);
		return ret ? ret : -EINVAL;
	}

	id = to_cm_id(event->id);
	/* The new id keeps the event; the listener need not wait for that to end. */
	cm_event_count((struct cm_event *)event);
	id->id.event = event;
	if (listener->qp_init_attr) {
		attr = *listener->qp_init_attr;
		if (rdma_create_qp(&id->id, listener->listen_pd, &attr)) {
			ret = -errno;
			rdma_destroy_ep(&id->id);
			return ret;
		}
	}
	*result = &id->id;
	return 0;
}

PUBLIC int rdma_get_request(struct rdma_cm_id *rdma_id, struct rdma_cm_id **result)
{
	struct cm_id *listener = to_cm_id(rdma_id);
	struct rdma_cm_event *event;
	int ret, state;

	if (!listener->sync)
		return cm_return(-EINVAL);
	cm_forget_event(listener);
	if (rdma_get_cm_event(rdma_id->channel, &event))
		return -1;
	/*
	 * Even if it is cancelled now, this thread takes the request: no other could answer the
	 * peer.
	 */
	state = cm_hold_cancel();
	ret = take_request(listener, event, result);
	cm_let_cancel(state);
	return cm_return(ret);
}
