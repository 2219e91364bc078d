// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Joins a multicast group with N ids; sends to it, or receives from it. */

#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

#include "talk.h"

/* Joining returns before all switches know of it. */
enum { GRH = 40, TIMEOUT = 2000, SETTLE = 3 };

static bool sender, unmapped;
static const char *group;

static int join(struct talk *talk, struct talker *talker)
{
	if (talk_check_mtu(talk, talker) || talk_prepare(talk, talker))
		return -1;
	if (!rdma_join_multicast(talker->id, talk->res->ai_dst_addr, talker))
		return 0;
	talk_fail(talk, "failure joining");
	fprintf(stderr, "mckey: the group is %s\n", group);
	return -1;
}

static int joined(struct talk *talk, struct talker *talker, const struct rdma_ud_param *param)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, &param->ah_attr.grh.dgid, text, sizeof(text));
	printf("mckey: joined dgid: %s mlid 0x%x sl %d\n", text, param->ah_attr.dlid,
	       param->ah_attr.sl);
	talker->connected = true;
	talk->awaited--;
	return talk_reach(talk, talker, param);
}

static int take(struct talk *talk, struct talker *talker, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return join(talk, talker);
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		return joined(talk, talker, &event->param.ud);
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return 0;
	default:
		return talk_bad_event(talk, event);
	}
}

/* An address that is a GID already is for an id that has a device by its own address. */
static int start(struct talk *talk, struct talker *talker)
{
	struct rdma_addrinfo *res = talk->res;

	if (res->ai_src_addr && rdma_bind_addr(talker->id, res->ai_src_addr)) {
		talk_fail(talk, "addr bind failure");
		fprintf(stderr, "mckey: the address is %s\n", talk->bind);
		return -1;
	}
	if (unmapped)
		return join(talk, talker);
	if (!rdma_resolve_addr(talker->id, res->ai_src_addr, res->ai_dst_addr, TIMEOUT))
		return 0;
	talk_fail(talk, "resolve addr failure");
	fprintf(stderr, "mckey: the group is %s; -b names the own address\n", group);
	return -1;
}

static int leave(struct talk *talk)
{
	int ret = 0;
	long i;

	for (i = 0; i < talk->connections; i++)
		if (talk->talkers[i].connected &&
		    rdma_leave_multicast(talk->talkers[i].id, talk->res->ai_dst_addr))
			ret = talk_fail(talk, "failure leaving");
	return ret;
}

static int transfer(struct talk *talk)
{
	if (!talk->count)
		return 0;
	printf(sender ? "initiating data transfers\n" : "receiving data transfers\n");
	fflush(stdout);
	if (sender && talk_send(talk))
		return -1;
	if (talk_wait(talk, sender))
		return -1;
	printf("data transfers complete\n");
	return 0;
}

static int run(struct talk *talk)
{
	long i;

	printf("mckey: starting %s\n", sender ? "client" : "server");
	if (talk_open(talk, true) || talk_addresses(talk, group))
		return -1;
	printf("mckey: joining\n");
	fflush(stdout);
	for (i = 0; i < talk->connections; i++)
		if (start(talk, &talk->talkers[i]))
			return -1;
	while (talk->awaited > 0)
		if (talk_event(talk))
			return -1;
	fflush(stdout);
	sleep(SETTLE);
	if (transfer(talk)) {
		leave(talk);
		return -1;
	}
	return leave(talk);
}

static int usage(const char *name, int status)
{
	printf("usage: %s\n"
	       "\t-m multicast_address\n"
	       "\t[-M unmapped_multicast_address]\n"
	       "\t replaces -m and requires -b\n"
	       "\t[-s(ender)]\n"
	       "\t[-b bind_address]\n" TALK_USAGE_MESSAGES TALK_USAGE_SPACE,
	       name, RDMA_PS_UDP, RDMA_PS_IPOIB);
	return status;
}

int main(int argc, char **argv)
{
	struct talk talk = {
		.name = "mckey",
		.hints = {.ai_port_space = RDMA_PS_UDP, .ai_qp_type = IBV_QPT_UD},
		.connections = 1,
		.count = 10,
		.size = 100,
		.grh = GRH,
		.patience = -1,
		.event = take,
	};
	int option, ret;

	while ((option = getopt(argc, argv, "hm:M:sb:c:C:S:p:")) != -1) {
		switch (option) {
		case 'h':
			return usage(argv[0], 0);
		case '?':
			return usage(argv[0], 1);
		case 'm':
			group = optarg;
			unmapped = false;
			break;
		case 'M':
			group = optarg;
			unmapped = true;
			break;
		case 's':
			sender = true;
			break;
		case 'p':
			if (talk_port_space(&talk, optarg))
				return 1;
			break;
		default:
			if (talk_option(&talk, option, optarg))
				return 1;
		}
	}
	if (!group)
		return usage(argv[0], 1);
	if (unmapped && !talk.bind) {
		printf("unmapped multicast address requires binding to source address\n");
		return 1;
	}
	ret = run(&talk);
	talk_close(&talk);
	return talk_end(&talk, ret);
}
