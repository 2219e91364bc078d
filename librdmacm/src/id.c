// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Ids: how they are made and destroyed, and how a destroyer waits for the events of one. If the
 * destroyer is cancelled meanwhile, the thread that acknowledges the last of them frees the id.
 */

#include <string.h>

#include "cm.h"

int cm_id_alloc(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
		int qp_type, struct cm_id **result)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return -ENOMEM;
	if (!channel) {
		channel = rdma_create_event_channel();
		if (!channel) {
			free(id);
			return -errno;
		}
		cm_keep(channel->fd);
		id->sync = true;
	}
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = (enum ibv_qp_type)qp_type;
	id->handle = UINT32_MAX;
	pthread_mutex_init(&id->moving, NULL);
	pthread_mutex_init(&id->mutex, NULL);
	pthread_cond_init(&id->cond, NULL);
	*result = id;
	return 0;
}

void cm_id_free(struct cm_id *id)
{
	int state = cm_hold_cancel();

	cm_multicast_free_all(id);
	cm_device_detach(id);
	if (id->sync)
		rdma_destroy_event_channel(id->id.channel);
	pthread_cond_destroy(&id->cond);
	pthread_mutex_destroy(&id->mutex);
	pthread_mutex_destroy(&id->moving);
	free(id->id.route.path_rec);
	free(id->qp_init_attr);
	free(id->connect);
	free(id);
	cm_let_cancel(state);
}

void cm_id_forget(struct cm_id *id)
{
	cm_map_remove(id);
	cm_multicast_free_all(id);
	/* The library's PD is the parent's, too: the child counts its users no more. */
	if (id->sync)
		rdma_destroy_event_channel(id->id.channel);
	free(id->id.route.path_rec);
	free(id->qp_init_attr);
	free(id->connect);
	free(id);
}

static int type_of(enum rdma_port_space ps)
{
	return ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
}

static int create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
		  int qp_type, struct cm_id **result)
{
	struct ucma_abi_create_id cmd = {.ps = ps};
	struct ucma_abi_create_id_resp resp = {0};
	struct cm_id *id = NULL;
	int ret;

	ret = cm_start();
	if (ret)
		return ret;
	if (!cm_family())
		return -errno;
	ret = cm_id_alloc(channel, context, ps, qp_type ? qp_type : type_of(ps), &id);
	if (ret)
		return ret;

	cmd.uid = (uintptr_t)id;
	cmd.qp_type = id->id.qp_type;
	ret = CM_COMMAND_RESP(cm_fd(id), UCMA_CMD_CREATE_ID, &cmd, &resp);
	if (ret)
		goto free;
	id->handle = resp.id;
	ret = cm_map_add(id);
	if (ret)
		goto destroy;
	*result = id;
	return 0;

destroy:
	rdma_destroy_id(&id->id);
	return ret;
free:
	cm_id_free(id);
	return ret;
}

int cm_id_create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
		 int qp_type, struct cm_id **result)
{
	int state = cm_hold_cancel();
	int ret = create(channel, context, ps, qp_type, result);

	cm_let_cancel(state);
	return ret;
}

PUBLIC int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space ps)
{
	struct cm_id *made = NULL;
	int ret;

	pthread_testcancel();
	ret = cm_id_create(channel, context, ps, 0, &made);
	if (ret)
		return cm_return(ret);
	*id = &made->id;
	return 0;
}

void cm_id_complete(struct cm_id *id)
{
	bool last;

	pthread_mutex_lock(&id->mutex);
	id->events_completed++;
	last = id->left_behind && id->events_completed == id->events_reported;
	pthread_cond_broadcast(&id->cond);
	pthread_mutex_unlock(&id->mutex);
	if (last)
		cm_id_free(id);
}

static void unlock(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

void cm_id_await(struct cm_id *id, uint32_t reported)
{
	pthread_mutex_lock(&id->mutex);
	pthread_cleanup_push(unlock, &id->mutex);
	while (id->events_completed < reported)
		pthread_cond_wait(&id->cond, &id->mutex);
	pthread_cleanup_pop(1);
}

static int destroy(struct cm_id *id)
{
	struct ucma_abi_destroy_id cmd = {.id = id->handle};
	struct ucma_abi_destroy_id_resp resp = {0};
	int state = cm_hold_cancel(), ret;

	/* Before the kernel can give its number to another id. */
	cm_map_remove(id);
	ret = CM_COMMAND_RESP(cm_fd(id), UCMA_CMD_DESTROY_ID, &cmd, &resp);
	if (ret)
		cm_map_add(id);
	cm_let_cancel(state);
	id->events_reported = resp.events_reported;
	return ret;
}

/* The thread has been cancelled in cm_id_await(), which has given up the lock. */
static void leave_behind(void *arg)
{
	struct cm_id *id = arg;
	bool last;

	pthread_mutex_lock(&id->mutex);
	last = id->events_completed >= id->events_reported;
	id->left_behind = !last;
	pthread_mutex_unlock(&id->mutex);
	if (last)
		cm_id_free(id);
}

PUBLIC int rdma_destroy_id(struct rdma_cm_id *rdma_id)
{
	struct cm_id *id = to_cm_id(rdma_id);
	int ret;

	/* Whether or not the thread is cancelled in this call, the id is gone. */
	ret = destroy(id);
	if (ret)
		return cm_return(ret);
	cm_forget_event(id);
	pthread_cleanup_push(leave_behind, id);
	cm_id_await(id, id->events_reported);
	pthread_cleanup_pop(0);
	cm_id_free(id);
	return 0;
}
