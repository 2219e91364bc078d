// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_asyncwatch: prints the asynchronous events of a device as they come, until it is stopped or
 * the device fails. */

#include <config.h>

#include <errno.h>
#include <stdio.h>

#include "pingpong.h"
#include "tool.h"

static const char *event_name(enum ibv_event_type type)
{
	static const char *const names[] = {
		[IBV_EVENT_CQ_ERR] = "IBV_EVENT_CQ_ERR",
		[IBV_EVENT_QP_FATAL] = "IBV_EVENT_QP_FATAL",
		[IBV_EVENT_QP_REQ_ERR] = "IBV_EVENT_QP_REQ_ERR",
		[IBV_EVENT_QP_ACCESS_ERR] = "IBV_EVENT_QP_ACCESS_ERR",
		[IBV_EVENT_COMM_EST] = "IBV_EVENT_COMM_EST",
		[IBV_EVENT_SQ_DRAINED] = "IBV_EVENT_SQ_DRAINED",
		[IBV_EVENT_PATH_MIG] = "IBV_EVENT_PATH_MIG",
		[IBV_EVENT_PATH_MIG_ERR] = "IBV_EVENT_PATH_MIG_ERR",
		[IBV_EVENT_DEVICE_FATAL] = "IBV_EVENT_DEVICE_FATAL",
		[IBV_EVENT_PORT_ACTIVE] = "IBV_EVENT_PORT_ACTIVE",
		[IBV_EVENT_PORT_ERR] = "IBV_EVENT_PORT_ERR",
		[IBV_EVENT_LID_CHANGE] = "IBV_EVENT_LID_CHANGE",
		[IBV_EVENT_PKEY_CHANGE] = "IBV_EVENT_PKEY_CHANGE",
		[IBV_EVENT_SM_CHANGE] = "IBV_EVENT_SM_CHANGE",
		[IBV_EVENT_SRQ_ERR] = "IBV_EVENT_SRQ_ERR",
		[IBV_EVENT_SRQ_LIMIT_REACHED] = "IBV_EVENT_SRQ_LIMIT_REACHED",
		[IBV_EVENT_QP_LAST_WQE_REACHED] = "IBV_EVENT_QP_LAST_WQE_REACHED",
		[IBV_EVENT_CLIENT_REREGISTER] = "IBV_EVENT_CLIENT_REREGISTER",
		[IBV_EVENT_GID_CHANGE] = "IBV_EVENT_GID_CHANGE",
	};

	return (unsigned int)type < sizeof names / sizeof *names ? names[type] : "unexpected";
}

static void print_event(const struct ibv_async_event *event)
{
	const unsigned int type = event->event_type & ~IBV_XRC_QP_EVENT_FLAG;

	printf("  event_type %s (%u)", event_name(type), type);
	if (event->event_type & IBV_XRC_QP_EVENT_FLAG) {
		printf(", XRC receive QP 0x%06x\n", event->element.xrc_qp_num);
		return;
	}
	switch (type) {
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		printf(", port %d", event->element.port_num);
		break;
	default:
		break;
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"ib-dev", required_argument, NULL, 'd'}, {}};
	static const char *const help[] = {"use IB device <dev> (default first device found)"};
	static const struct tool tool = {"print the asynchronous events of a device", options,
					 help};
	struct ibv_async_event event;
	struct ibv_context *context;
	const char *name = NULL;
	int c, err;

	while ((c = tool_option(argc, argv, &tool)) != -1)
		if (c == 'd')
			name = optarg;
	context = pp_open_device(name);
	if (!context)
		return 1;
	/* Show each event at once, also if the output is a pipe. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%s: async event FD %d\n", ibv_get_device_name(context->device), context->async_fd);

	for (;;) {
		errno = 0;
		if (!ibv_get_async_event(context, &event)) {
			print_event(&event);
			ibv_ack_async_event(&event);
		} else if (errno != EINTR) {
			break;
		}
	}
	pp_fail(errno, "The device may have been removed or reset.", "Couldn't read events of %s",
		ibv_get_device_name(context->device));
	err = ibv_close_device(context);
	if (err)
		pp_fail(err, NULL, "Couldn't close the device");
	return 1;
}
