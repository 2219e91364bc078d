// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Events: how one is read, what the library does before the program sees it, and how it is counted.
 *
 * The kernel counts the events of an id that were read; a thread that destroys or moves the id
 * waits until as many were acknowledged. So an event that this file keeps from the program is
 * counted too. A request counts for the listener, an event of a group for group and id.
 */

#include <string.h>
#include <infiniband/marshall.h>

#include "cm.h"

static void copy_data(struct cm_event *event, const void **to, uint8_t *to_len, const void *data,
		      uint8_t len)
{
	*to = NULL;
	*to_len = len;
	if (!len)
		return;
	memcpy(event->private_data, data, len);
	*to = event->private_data;
}

static void copy_conn(struct cm_event *event, const struct ucma_abi_conn_param *from)
{
	struct rdma_conn_param *to = &event->event.param.conn;

	copy_data(event, &to->private_data, &to->private_data_len, from->private_data,
		  from->private_data_len);
	to->responder_resources = from->responder_resources;
	to->initiator_depth = from->initiator_depth;
	to->flow_control = from->flow_control;
	to->retry_count = from->retry_count;
	to->rnr_retry_count = from->rnr_retry_count;
	to->srq = from->srq;
	to->qp_num = from->qp_num;
}

static void copy_ud(struct cm_event *event, struct ucma_abi_ud_param *from)
{
	struct rdma_ud_param *to = &event->event.param.ud;

	copy_data(event, &to->private_data, &to->private_data_len, from->private_data,
		  from->private_data_len);
	ibv_copy_ah_attr_from_kern(&to->ah_attr, &from->ah_attr);
	to->qp_num = from->qp_num;
	to->qkey = from->qkey;
}

static void copy_param(struct cm_event *event, struct ucma_abi_event_resp *resp)
{
	if (cm_is_ud(event->id))
		copy_ud(event, &resp->param.ud);
	else
		copy_conn(event, &resp->param.conn);
}

/* The new id behind a request. */
static int make_id(struct cm_event *event, struct ucma_abi_event_resp *resp)
{
	struct cm_id *listener = event->id, *id;
	int ret;

	ret = cm_id_alloc(listener->id.channel, listener->id.context, listener->id.ps,
			  listener->id.qp_type, &id);
	if (ret) {
		/* The program cannot answer the request. The kernel rejects it when its id ends. */
		struct ucma_abi_destroy_id cmd = {.id = resp->id};
		struct ucma_abi_destroy_id_resp destroyed;

		CM_COMMAND_RESP(cm_fd(listener), UCMA_CMD_DESTROY_ID, &cmd, &destroyed);
		return ret;
	}
	id->handle = resp->id;
	if (!cm_is_ud(listener)) {
		id->responder_resources = resp->param.conn.responder_resources;
		id->initiator_depth = resp->param.conn.initiator_depth;
	}
	ret = cm_map_add(id);
	if (!ret && listener->sync && rdma_migrate_id(&id->id, NULL))
		ret = -errno;
	if (!ret)
		ret = cm_family()->query_addr(id);
	if (!ret && cm_family()->query_path != cm_family()->query_addr)
		ret = cm_family()->query_path(id);
	if (ret) {
		rdma_destroy_id(&id->id);
		return ret;
	}
	event->event.listen_id = &listener->id;
	event->event.id = &id->id;
	return 0;
}

/*
 * What the library does about an event, which becomes another one where that fails. Returns false
 * if the program must not see it.
 */
static bool process(struct cm_event *event, struct ucma_abi_event_resp *resp)
{
	struct rdma_cm_event *rdma_event = &event->event;
	struct cm_id *id = event->id;
	int ret = 0;

	switch (rdma_event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = cm_family()->query_addr(id);
		if (ret)
			rdma_event->event = RDMA_CM_EVENT_ADDR_ERROR;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = cm_family()->query_path(id);
		if (ret)
			rdma_event->event = RDMA_CM_EVENT_ROUTE_ERROR;
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		copy_param(event, resp);
		return !make_id(event, resp);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		copy_conn(event, &resp->param.conn);
		if (!id->id.qp)
			break;
		ret = cm_connect_response(id);
		rdma_event->event = ret ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
		break;
	case RDMA_CM_EVENT_REJECTED:
		if (id->connect_error)
			return false;
		copy_conn(event, &resp->param.conn);
		if (!cm_is_ud(id))
			cm_qp_to_err(id);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (id->connect_error)
			return false;
		copy_conn(event, &resp->param.conn);
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		copy_ud(event, &resp->param.ud);
		rdma_event->param.ud.private_data = event->group->context;
		ret = rdma_event->status
			      ? 0
			      : cm_multicast_joined(event->group, &rdma_event->param.ud.ah_attr);
		if (ret)
			rdma_event->event = RDMA_CM_EVENT_MULTICAST_ERROR;
		break;
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		rdma_event->param.ud.private_data = event->group->context;
		break;
	default:
		copy_param(event, resp);
		break;
	}
	if (ret)
		rdma_event->status = ret;
	return true;
}

/* The kernel has counted the event: if the thread were cancelled here, the event would be lost. */
static bool process_whole(struct cm_event *event, struct ucma_abi_event_resp *resp)
{
	int state = cm_hold_cancel();
	bool ret;

	/* If the id moves to another channel meanwhile, the commands go to where it is. */
	pthread_mutex_lock(&event->id->moving);
	ret = process(event, resp);
	pthread_mutex_unlock(&event->id->moving);
	cm_let_cancel(state);
	return ret;
}

/* Finds the id, and the group, that the event is about. False: the id is not known here. */
static bool find_owner(struct cm_event *event, const struct ucma_abi_event_resp *resp)
{
	if (resp->event == RDMA_CM_EVENT_MULTICAST_JOIN ||
	    resp->event == RDMA_CM_EVENT_MULTICAST_ERROR) {
		event->group = (struct cm_multicast *)(uintptr_t)resp->uid;
		event->id = event->group->id;
	} else if (resp->uid) {
		event->id = (struct cm_id *)(uintptr_t)resp->uid;
	} else {
		event->id = cm_map_find(resp->id);
	}
	if (event->id)
		event->event.id = &event->id->id;
	return event->id != NULL;
}

PUBLIC int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **result)
{
	struct ucma_abi_get_event cmd = {0};
	struct ucma_abi_event_resp resp;
	struct cm_event *event;
	int ret;

	if (!result)
		return cm_return(-EINVAL);
	/* Before anything is read, so that nothing that was read is lost. */
	event = malloc(sizeof(*event));
	if (!event)
		return cm_return(-ENOMEM);

	for (;;) {
		memset(event, 0, sizeof(*event));
		memset(&resp, 0, sizeof(resp));
		pthread_cleanup_push(free, event);
		ret = CM_COMMAND_RESP(channel->fd, UCMA_CMD_GET_EVENT, &cmd, &resp);
		pthread_cleanup_pop(0);
		if (ret)
			break;

		event->event.event = (enum rdma_cm_event_type)resp.event;
		event->event.status = (int)resp.status;
		if (!find_owner(event, &resp))
			continue;
		/*
		 * The program hears nothing of an id that it has not accepted yet, except in a race
		 * with the accept.
		 */
		if ((resp.uid || resp.event == RDMA_CM_EVENT_ESTABLISHED) &&
		    process_whole(event, &resp)) {
			*result = &event->event;
			return 0;
		}
		cm_event_count(event);
	}
	free(event);
	return cm_return(ret);
}

void cm_event_count(struct cm_event *event)
{
	if (event->counted)
		return;
	event->counted = true;
	if (event->group) {
		pthread_mutex_lock(&event->id->mutex);
		event->group->events_completed++;
		pthread_mutex_unlock(&event->id->mutex);
	}
	cm_id_complete(event->id);
}

PUBLIC int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return cm_return(-EINVAL);
	cm_event_count((struct cm_event *)event);
	free(event);
	return 0;
}

PUBLIC const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
		[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
		[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
		[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
		[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
		[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
		[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
	};

	if ((unsigned int)event >= sizeof(names) / sizeof(names[0]))
		return "UNKNOWN EVENT";
	return names[event];
}
