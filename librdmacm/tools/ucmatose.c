// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Connects N ids by RC, exchanges messages on all of them, and disconnects. The server sends first
 * and disconnects first. */

#include <stdio.h>
#include <unistd.h>

#include "connect.h"

static bool migrate_ids;

/* Moves all ids to a new channel, and destroys the old one. */
static int migrate(struct talk *talk)
{
	struct rdma_event_channel *channel;
	long i;

	printf("migrating to new event channel\n");
	channel = rdma_create_event_channel();
	if (!channel)
		return talk_fail(talk, "failed to create event channel");
	for (i = 0; i < talk->connections; i++) {
		if (rdma_migrate_id(talk->talkers[i].id, channel)) {
			talk_fail(talk, "failure migrating to channel");
			/* Those that have moved go back, so that each channel can be destroyed. */
			while (i-- > 0)
				rdma_migrate_id(talk->talkers[i].id, talk->channel);
			rdma_destroy_event_channel(channel);
			return -1;
		}
	}
	rdma_destroy_event_channel(talk->channel);
	talk->channel = channel;
	return 0;
}

static int wait_for_ends(struct talk *talk)
{
	long i;

	for (i = 0; i < talk->connections; i++)
		while (!talk->talkers[i].over)
			if (talk_event(talk))
				return -1;
	return 0;
}

static int client(struct talk *talk)
{
	if (talk->count) {
		printf("receiving data transfers\n");
		if (talk_wait(talk, false))
			return -1;
		printf("sending replies\n");
		if (talk_send(talk) || talk_wait(talk, true))
			return -1;
		printf("data transfers complete\n");
	}
	if (migrate_ids && migrate(talk))
		return -1;
	return wait_for_ends(talk);
}

static int server(struct talk *talk)
{
	long i;

	if (talk->count) {
		printf("initiating data transfers\n");
		if (talk_send(talk))
			return -1;
		printf("completing sends\n");
		if (talk_wait(talk, true))
			return -1;
		printf("receiving data transfers\n");
		if (talk_wait(talk, false))
			return -1;
		printf("data transfers complete\n");
	}
	printf("%s: disconnecting\n", talk->name);
	for (i = 0; i < talk->connections; i++)
		if (rdma_disconnect(talk->talkers[i].id))
			return talk_fail(talk, "failure disconnecting");
	if (wait_for_ends(talk))
		return -1;
	printf("disconnected\n");
	return 0;
}

static int usage(const char *name, int status)
{
	printf("usage: %s\n" TALK_USAGE_ADDRESSES "\t    tcp or ib\n" TALK_USAGE_MESSAGES
	       "\t[-t type_of_service]\n"
	       "\t[-p port_number]\n"
	       "\t[-m(igrate)]\n"
	       "\t[-a ack_timeout]\n",
	       name);
	return status;
}

int main(int argc, char **argv)
{
	struct talk talk = {
		.name = "cmatose",
		.port = "7471",
		.hints = {.ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC},
		.connections = 1,
		.count = 10,
		.size = 100,
		.tos = -1,
		.ack_timeout = -1,
		.patience = -1,
	};
	int option;

	while ((option = getopt(argc, argv, "hs:b:f:P:c:C:S:t:p:a:m")) != -1) {
		switch (option) {
		case 'h':
			return usage(argv[0], 0);
		case '?':
			return usage(argv[0], 1);
		case 'P':
			if (talk_space_name(&talk, optarg))
				return usage(argv[0], 1);
			break;
		case 'p':
			if (tool_port(talk.name, optarg, &talk.port))
				return 1;
			break;
		case 'm':
			migrate_ids = true;
			break;
		case 'a':
			if (tool_named_number(talk.name, "ack timeout", optarg, 0, 31,
					      &talk.ack_timeout))
				return 1;
			break;
		default:
			if (talk_option(&talk, option, optarg))
				return 1;
		}
	}
	return connect_run(&talk, client, server);
}
