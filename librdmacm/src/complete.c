// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Synchronous ids: each has a channel of its own, and a call waits there for its event, which stays
 * in id->event until the next call.
 */

#include "cm.h"

void cm_forget_event(struct cm_id *id)
{
	if (!id->sync || !id->id.event)
		return;
	rdma_ack_cm_event(id->id.event);
	id->id.event = NULL;
}

/* No DISCONNECTED comes after it. */
static bool ends_connection(enum rdma_cm_event_type event)
{
	return event == RDMA_CM_EVENT_DISCONNECTED || event == RDMA_CM_EVENT_REJECTED ||
	       event == RDMA_CM_EVENT_UNREACHABLE || event == RDMA_CM_EVENT_CONNECT_ERROR;
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
	if (ends_connection(event->event))
		id->disconnected = true;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return status < 0 ? status : -status;
}
