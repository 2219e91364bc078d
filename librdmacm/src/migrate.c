// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Moves an id to another channel, its unread events too. */

#include "cm.h"

struct move {
	struct cm_id *id;
	struct rdma_event_channel *channel; /* where it goes */
	bool own;			    /* and only this id uses that */
};

static int command(const struct move *move, uint32_t *reported)
{
	struct cm_id *id = move->id;
	struct ucma_abi_migrate_id cmd = {.id = id->handle, .fd = id->id.channel->fd};
	struct ucma_abi_destroy_id_resp resp = {0};
	int ret;

	pthread_mutex_lock(&id->moving);
	/* To the channel where the id goes. */
	ret = CM_COMMAND_RESP(move->channel->fd, UCMA_CMD_MIGRATE_ID, &cmd, &resp);
	if (!ret)
		__atomic_store_n(&id->moved_to, move->channel, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&id->moving);
	*reported = resp.events_reported;
	return ret;
}

/* For the kernel the id has moved, also if the thread is cancelled while it waits. */
static void finish(void *arg)
{
	const struct move *move = arg;
	struct cm_id *id = move->id;
	struct rdma_event_channel *old = id->id.channel;

	if (move->channel != old)
		id->id.channel = move->channel;
	__atomic_store_n(&id->moved_to, NULL, __ATOMIC_RELEASE);
	if (move->channel == old)
		return;
	if (id->sync)
		rdma_destroy_event_channel(old);
	id->sync = move->own;
}

static void wait_and_finish(struct move *move, uint32_t reported)
{
	pthread_cleanup_push(finish, move);
	/* The program may still look at id->channel of what it has read. */
	cm_forget_event(move->id);
	cm_id_await(move->id, reported);
	pthread_cleanup_pop(1);
}

PUBLIC int rdma_migrate_id(struct rdma_cm_id *rdma_id, struct rdma_event_channel *channel)
{
	struct move move = {.id = to_cm_id(rdma_id), .channel = channel};
	uint32_t reported = 0;
	int ret, state;

	if (!channel && move.id->sync)
		return cm_return(-EINVAL);
	state = cm_hold_cancel();
	if (!channel) {
		move.channel = rdma_create_event_channel();
		if (move.channel)
			cm_keep(move.channel->fd);
		move.own = true;
	}
	ret = move.channel ? command(&move, &reported) : -errno;
	if (ret && move.own && move.channel)
		rdma_destroy_event_channel(move.channel);
	cm_let_cancel(state);
	if (ret)
		return cm_return(ret);
	wait_and_finish(&move, reported);
	return 0;
}
