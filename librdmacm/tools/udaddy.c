// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Finds the datagram service of the server N times, and exchanges datagrams. The client sends
 * first; the server learns from each id's first datagram where the replies go.
 */

#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

#include "connect.h"

/* A datagram is preceded by the GRH, and brings the sender's QP number. */
enum { GRH = 40, PATIENCE = 30000 };

static int learn(struct talk *talk, struct talker *talker, struct ibv_wc *wc)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (talker->ah)
		return 0;
	talker->ah = ibv_create_ah_from_wc(talker->id->pd, wc, (struct ibv_grh *)talker->buf,
					   talker->id->port_num);
	if (!talker->ah)
		return talk_fail(talk, "failed to create reply AH");
	talker->remote_qpn = ntohl(wc->imm_data);
	if (rdma_seterrno(ibv_query_qp(talker->id->qp, &attr, IBV_QP_QKEY, &init)))
		return talk_fail(talk, "unable to query the QP");
	talker->remote_qkey = attr.qkey;
	return 0;
}

static int client(struct talk *talk)
{
	if (!talk->count)
		return 0;
	printf("initiating data transfers\n");
	if (talk_send(talk) || talk_wait(talk, true))
		return -1;
	printf("receiving data transfers\n");
	if (talk_wait(talk, false))
		return -1;
	printf("data transfers complete\n");
	return 0;
}

static int server(struct talk *talk)
{
	if (!talk->count)
		return 0;
	printf("receiving data transfers\n");
	if (talk_wait(talk, false))
		return -1;
	printf("sending replies\n");
	if (talk_send(talk) || talk_wait(talk, true))
		return -1;
	printf("data transfers complete\n");
	return 0;
}

static int usage(const char *name, int status)
{
	printf("usage: %s\n" TALK_USAGE_ADDRESSES "\t    udp or ipoib\n" TALK_USAGE_MESSAGES
	       "\t[-t type_of_service]\n" TALK_USAGE_SPACE,
	       name, RDMA_PS_UDP, RDMA_PS_IPOIB);
	return status;
}

int main(int argc, char **argv)
{
	struct talk talk = {
		.name = "udaddy",
		.port = "7174",
		.hints = {.ai_port_space = RDMA_PS_UDP, .ai_qp_type = IBV_QPT_UD},
		.connections = 1,
		.count = 10,
		.size = 100,
		.tos = -1,
		.ack_timeout = -1,
		.grh = GRH,
		.patience = PATIENCE,
		.message = learn,
	};
	int option;

	while ((option = getopt(argc, argv, "hs:b:c:C:S:t:p:P:f:")) != -1) {
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
			if (talk_port_space(&talk, optarg))
				return 1;
			break;
		default:
			if (talk_option(&talk, option, optarg))
				return 1;
		}
	}
	return connect_run(&talk, client, server);
}
