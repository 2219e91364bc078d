// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Synchronous ids: each has a channel of its own, and a call waits there for its event, which stays in
 * id->event until the next call. */

#include "cm.h"

void cm_forget_event(struct cm_id *id)
{
	if (!id->sync || !id->id.event)
		return;
	rdma_ack_cm_event(id->id.event);
	id->id.event = NULL;
}

int cm_complete(struct cm_id *id)
{
	struct rdma_cm_event *event;
	int status;

	if (!id->sync)
		return 0;
	if (rdma_get_cm_event(id->id.channel, &event))
		return -errno;
	id->id.event = event;

	status = event->status;
	if (event->event == RDMA_CM_EVENT_DISCONNECTED)
		id->disconnected = true;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return status < 0 ? status : -status;
}
