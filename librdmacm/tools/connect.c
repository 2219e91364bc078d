// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The way of ucmatose and udaddy from addresses to connections: what each event leads to. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "connect.h"

enum {
	TIMEOUT = 2000,
	/* Kernels newer than this library have it. */
	OPTION_ACK_TIMEOUT = 3
};

static int set_options(struct talk *talk, struct rdma_cm_id *id)
{
	uint8_t value;

	if (talk->tos >= 0) {
		value = talk->tos;
		if (rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &value, sizeof(value)))
			return talk_fail(talk, "set TOS option failed");
	}
	if (talk->ack_timeout >= 0) {
		value = talk->ack_timeout;
		if (rdma_set_option(id, RDMA_OPTION_ID, OPTION_ACK_TIMEOUT, &value, sizeof(value)))
			return talk_fail(talk, "set ack timeout option failed");
	}
	return 0;
}

static int resolved(struct talk *talk, struct talker *talker)
{
	if (set_options(talk, talker->id))
		return -1;
	return rdma_resolve_route(talker->id, TIMEOUT) ? talk_fail(talk, "resolve route failed")
						       : 0;
}

static struct rdma_conn_param parameters(const struct talk *talk)
{
	struct rdma_conn_param param = {.rnr_retry_count = 7, .retry_count = 7};

	if (!talk->grh)
		param.responder_resources = param.initiator_depth = 1;
	return param;
}

static int ask(struct talk *talk, struct talker *talker)
{
	struct rdma_conn_param param = parameters(talk);

	if ((talk->grh && talk_check_mtu(talk, talker)) || talk_prepare(talk, talker))
		return -1;
	/* What an AF_IB id has to send in front. */
	param.private_data = talk->res->ai_connect;
	param.private_data_len = talk->res->ai_connect_len;
	return rdma_connect(talker->id, &param) ? talk_fail(talk, "failure connecting") : 0;
}

/* Finds a talker that waits for a request. */
static struct talker *vacant(struct talk *talk)
{
	long i;

	for (i = 0; i < talk->connections; i++)
		if (!talk->talkers[i].id)
			return &talk->talkers[i];
	return NULL;
}

static int answer(struct talk *talk, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = parameters(talk);
	struct talker *talker = vacant(talk);

	if (!talker) {
		fprintf(stderr,
			"%s: failing connection request: there are %ld already; -c sets how many\n",
			talk->name, talk->connections);
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return 0;
	}
	talker->id = id;
	id->context = talker;
	if ((talk->grh && talk_check_mtu(talk, talker)) || talk_prepare(talk, talker)) {
		fprintf(stderr, "%s: failing connection request\n", talk->name);
		rdma_reject(id, NULL, 0);
		return -1;
	}
	param.qp_num = id->qp->qp_num;
	if (rdma_accept(id, &param))
		return talk_fail(talk, "failure accepting");
	/* No event says that a datagram service has got the answer. */
	if (talk->grh) {
		talker->connected = true;
		talk->awaited--;
	}
	return 0;
}

static int ended(struct talk *talk, struct talker *talker)
{
	talker->over = true;
	rdma_disconnect(talker->id);
	if (talker->connected)
		return 0;
	fprintf(stderr, "%s: connection %d: the peer has gone before it was established\n",
		talk->name, talker->number);
	talk->awaited--;
	return -1;
}

int connect_event(struct talk *talk, struct talker *talker, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return resolved(talk, talker);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return ask(talk, talker);
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return answer(talk, event->id);
	case RDMA_CM_EVENT_ESTABLISHED:
		talker->connected = true;
		talk->awaited--;
		return talk->grh ? talk_reach(talk, talker, &event->param.ud) : 0;
	case RDMA_CM_EVENT_DISCONNECTED:
		return ended(talk, talker);
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return 0;
	default:
		return talk_bad_event(talk, event);
	}
}

/* One that has failed does not keep the others from being tried: the message of each counts. */
static int wait_for_all(struct talk *talk)
{
	int ret = 0;

	while (talk->awaited > 0) {
		int before = talk->awaited;

		if (!talk_event(talk))
			continue;
		ret = -1;
		if (talk->awaited == before)
			break;
	}
	return ret;
}

int connect_all(struct talk *talk)
{
	long i;

	printf("%s: starting client\n", talk->name);
	if (talk_addresses(talk, talk->server))
		return -1;
	printf("%s: connecting\n", talk->name);
	fflush(stdout);
	for (i = 0; i < talk->connections; i++)
		if (rdma_resolve_addr(talk->talkers[i].id, talk->res->ai_src_addr,
				      talk->res->ai_dst_addr, TIMEOUT)) {
			talk_fail(talk, "failure getting addr");
			fprintf(stderr, "%s: the server is %s%s%s\n", talk->name, talk->server,
				talk->bind ? ", the own address " : "",
				talk->bind ? talk->bind : "");
			return -1;
		}
	return wait_for_all(talk);
}

int connect_listen(struct talk *talk, struct rdma_cm_id **listener)
{
	printf("%s: starting server\n", talk->name);
	if (talk_listen(talk, listener, talk->connections))
		return -1;
	fflush(stdout);
	return wait_for_all(talk);
}

int connect_run(struct talk *talk, int (*client)(struct talk *), int (*server)(struct talk *))
{
	struct rdma_cm_id *listener = NULL;
	int ret;

	talk->event = connect_event;
	ret = talk_open(talk, talk->server != NULL);
	if (!ret)
		ret = talk->server ? connect_all(talk) : connect_listen(talk, &listener);
	if (!ret)
		ret = talk->server ? client(talk) : server(talk);
	if (listener)
		rdma_destroy_id(listener);
	talk_close(talk);
	return talk_end(talk, ret);
}
