// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion channels, completion events and asynchronous events, and their acknowledgement. An
 * event counts from the moment the program gets it until the program acknowledges it; the destroy
 * call for its object waits for that (wait_acked()). The mutex of the object protects its counters;
 * the mutex of the context protects refcnt of a channel, and the v2 channel. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "compat.h"
#include "xrc.h"

/* Reads one record; the kernel writes whole records. Returns 0, or -1 with errno set. */
static int read_record(int fd, void *record, size_t size)
{
	ssize_t len;

	len = read(fd, record, size);
	if (len == (ssize_t)size)
		return 0;

	if (len >= 0)
		errno = EIO;
	return -1;
}

/* Kernel ABI 1 and 2: a context has one channel, which GET_CONTEXT returned. */
static struct ibv_comp_channel *take_v2_channel(struct ibv_context *context)
{
	struct v2_channel *v2 = context->abi_compat;
	struct ibv_comp_channel *channel = NULL;
	static bool warned;

	pthread_mutex_lock(&context->mutex);
	if (!v2->in_use) {
		v2->in_use = true;
		channel = &v2->channel;
	} else if (!warned) {
		warned = true;
		ibverbs_warning("kernel ABI version %d has one completion channel per context, "
				"which is in use. "
				"Use a newer kernel, or share the channel.",
				abi_ver);
	}
	pthread_mutex_unlock(&context->mutex);

	if (!channel)
		errno = EBUSY;
	return channel;
}

static struct ibv_comp_channel *create_channel(struct ibv_context *context)
{
	struct ibv_create_comp_channel_resp resp;
	struct ibv_create_comp_channel cmd;
	struct ibv_comp_channel *channel;
	int err;

	if (abi_ver <= 2)
		return take_v2_channel(context);

	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return NULL;

	CMD_INIT_RESP(&cmd, sizeof(cmd), CREATE_COMP_CHANNEL, &resp, sizeof(resp));
	resp.fd = -1;
	err = cmd_write(context, &cmd, sizeof(cmd));
	if (!err && resp.fd == UINT32_MAX)
		err = EIO;
	if (err) {
		free(channel);
		errno = err;
		return NULL;
	}
	VALGRIND_MAKE_MEM_DEFINED(&resp, sizeof(resp));

	channel->context = context;
	channel->fd = resp.fd;

	return channel;
}

static int destroy_channel(struct ibv_comp_channel *channel)
{
	struct ibv_context *context = channel->context;
	int ret = 0;

	pthread_mutex_lock(&context->mutex);
	if (channel->refcnt) {
		ret = EBUSY;
	} else if (abi_ver <= 2) {
		((struct v2_channel *)context->abi_compat)->in_use = false;
	} else {
		close(channel->fd);
		free(channel);
	}
	pthread_mutex_unlock(&context->mutex);

	return ret;
}

/* This function and ibv_destroy_comp_channel() have one symbol version for programs of both ABIs. A
 * program of 1.0 passes a 1.0 context and expects a 1.0 channel. */
struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_context *real = compat_real_context(context);
	struct ibv_comp_channel *channel, *shadow;

	channel = create_channel(real ? real : context);
	if (!real || !channel)
		return channel;

	shadow = compat_shadow_channel(channel);
	if (!shadow) {
		destroy_channel(channel);
		errno = ENOMEM;
	}
	return shadow;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct ibv_comp_channel *real = compat_real_channel(channel);
	int ret;

	ret = destroy_channel(real ? real : channel);
	if (real && !ret)
		compat_forget_channel(channel);

	return ret;
}

int ibv_get_cq_event_1_1(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct ibv_comp_event event;

	if (read_record(channel->fd, &event, sizeof(event)))
		return -1;
	VALGRIND_MAKE_MEM_DEFINED(&event, sizeof(event));

	*cq = (struct ibv_cq *)(uintptr_t)event.cq_handle;
	*cq_context = (*cq)->cq_context;

	if ((*cq)->context->ops.cq_event)
		(*cq)->context->ops.cq_event(*cq);

	return 0;
}
default_symver(ibv_get_cq_event_1_1, ibv_get_cq_event);

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *counter,
			unsigned int n)
{
	pthread_mutex_lock(mutex);
	*counter += n;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

void ibv_ack_cq_events_1_1(struct ibv_cq *cq, unsigned int nevents)
{
	acknowledge(&cq->mutex, &cq->cond, &cq->comp_events_completed, nevents);
}
default_symver(ibv_ack_cq_events_1_1, ibv_ack_cq_events);

enum event_element event_element_of(uint32_t event_type)
{
	if (event_type & IBV_XRC_QP_EVENT_FLAG)
		return ELEMENT_XRC_RCV_QP;

	switch (event_type) {
	case IBV_EVENT_CQ_ERR:
		return ELEMENT_CQ;

	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return ELEMENT_QP;

	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return ELEMENT_SRQ;

	default:
		return ELEMENT_PORT;
	}
}

int ibv_get_async_event_1_1(struct ibv_context *context, struct ibv_async_event *event)
{
	struct ibv_kern_async_event record;

	do {
		if (read_record(context->async_fd, &record, sizeof(record)))
			return -1;
		VALGRIND_MAKE_MEM_DEFINED(&record, sizeof(record));
	} while (!xrc_translate_event(context, &record));

	memset(event, 0, sizeof(*event));
	event->event_type = record.event_type;

	switch (event_element_of(record.event_type)) {
	case ELEMENT_CQ:
		event->element.cq = (struct ibv_cq *)(uintptr_t)record.element;
		break;
	case ELEMENT_QP:
		event->element.qp = (struct ibv_qp *)(uintptr_t)record.element;
		break;
	case ELEMENT_SRQ:
		event->element.srq = (struct ibv_srq *)(uintptr_t)record.element;
		break;
	case ELEMENT_XRC_RCV_QP:
		event->element.xrc_qp_num = record.element;
		break;
	case ELEMENT_PORT:
		event->element.port_num = record.element;
		break;
	}

	if (context->ops.async_event)
		context->ops.async_event(event);

	return 0;
}
default_symver(ibv_get_async_event_1_1, ibv_get_async_event);

void ibv_ack_async_event_1_1(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (event_element_of(event->event_type)) {
	case ELEMENT_CQ:
		acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed, 1);
		break;
	case ELEMENT_QP:
		acknowledge(&qp->mutex, &qp->cond, &qp->events_completed, 1);
		break;
	case ELEMENT_SRQ:
		acknowledge(&srq->mutex, &srq->cond, &srq->events_completed, 1);
		break;
	case ELEMENT_XRC_RCV_QP:
	case ELEMENT_PORT:
		break; /* destroy calls do not wait for these events */
	}
}
default_symver(ibv_ack_async_event_1_1, ibv_ack_async_event);
