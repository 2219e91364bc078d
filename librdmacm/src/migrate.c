// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Moves an id to another channel, its unread events too. */

#include "cm.h"

static int migrate(struct cm_id *id, struct rdma_event_channel *channel)
{
	struct ucma_abi_migrate_id cmd = {.id = id->handle, .fd = id->id.channel->fd};
	struct ucma_abi_destroy_id_resp resp = {0};
	int ret;

	/* To the channel where the id goes. */
	ret = CM_COMMAND_RESP(channel->fd, UCMA_CMD_MIGRATE_ID, &cmd, &resp);
	if (ret)
		return ret;

	/* The program may still look at id->channel of what it has read. */
	cm_forget_event(id);
	cm_id_await(id, resp.events_reported);
	return 0;
}

PUBLIC int rdma_migrate_id(struct rdma_cm_id *rdma_id, struct rdma_event_channel *channel)
{
	struct cm_id *id = to_cm_id(rdma_id);
	struct rdma_event_channel *old = rdma_id->channel, *own = NULL;
	int ret;

	if (!channel) {
		if (id->sync)
			return cm_return(-EINVAL);
		own = rdma_create_event_channel();
		if (!own)
			return -1;
		channel = own;
	}
	ret = migrate(id, channel);
	if (ret) {
		if (own)
			rdma_destroy_event_channel(own);
		return cm_return(ret);
	}
	if (channel == old)
		return 0;
	rdma_id->channel = channel;
	if (id->sync)
		rdma_destroy_event_channel(old);
	id->sync = own != NULL;
	return 0;
}
