// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Event channels: a descriptor of the kernel's connection manager each. */

#include <fcntl.h>
#include <unistd.h>

#include "cm.h"

static struct rdma_event_channel *create(void)
{
	struct rdma_event_channel *channel;
	int ret = cm_start();

	if (ret) {
		errno = -ret;
		return NULL;
	}
	channel = malloc(sizeof(*channel));
	if (!channel) {
		errno = ENOMEM;
		return NULL;
	}
	channel->fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	if (channel->fd < 0) {
		ret = errno;
		free(channel);
		errno = ret;
		return NULL;
	}
	return channel;
}

PUBLIC struct rdma_event_channel *rdma_create_event_channel(void)
{
	int state = cm_hold_cancel();
	struct rdma_event_channel *channel = create();

	cm_let_cancel(state);
	return channel;
}

PUBLIC void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	int state;

	if (!channel)
		return;
	state = cm_hold_cancel();
	cm_give_up(channel->fd);
	close(channel->fd);
	free(channel);
	cm_let_cancel(state);
}
