// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Measures the steps of connections. The client takes all its connections through one step before
 * the next step begins; the server accepts, and destroys what is disconnected, until it is stopped.
 * One thread does everything. */

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "talk.h"

enum step {
	CREATE_ID,
	BIND,
	RESOLVE_ADDR,
	RESOLVE_ROUTE,
	CREATE_QP,
	CONNECT,
	DISCONNECT,
	DESTROY,
	STEPS
};

static const struct {
	const char *name, *doing;
} steps[STEPS] = {
	[CREATE_ID] = {"create id", "creating id"},
	[BIND] = {"bind addr", "binding source address"},
	[RESOLVE_ADDR] = {"resolve addr", "resolving address"},
	[RESOLVE_ROUTE] = {"resolve route", "resolving route"},
	[CREATE_QP] = {"create qp", "creating qp"},
	[CONNECT] = {"connect", "connecting"},
	[DISCONNECT] = {"disconnect", "disconnecting"},
	[DESTROY] = {"destroy", "destroying id"},
};

/* Times are in microseconds. */
struct connection {
	struct rdma_cm_id *id;
	long retries; /* that are left for this step */
	bool failed;
	double started, took[STEPS];
	bool done[STEPS];
};

static struct talk talk = {
	.name = "cmtime",
	.port = "7471",
	.hints = {.ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC},
	.connections = 100,
};
static long retries = 2, timeout = 2000;
static struct connection *connections;
static double totals[STEPS];
static long pending; /* connections that the present step waits for */

static struct ibv_qp_init_attr smallest(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
}

static struct rdma_conn_param parameters(void)
{
	return (struct rdma_conn_param){.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = 7,
					.rnr_retry_count = 7};
}

/* ---- The client's steps ---- */

/* Each starts a step of one connection. Returns 0 if it is done, 1 if an event says when, or -1. */

static int create_id(struct connection *c)
{
	return rdma_create_id(talk.channel, &c->id, c, RDMA_PS_TCP);
}

static int bind_addr(struct connection *c)
{
	return rdma_bind_addr(c->id, talk.res->ai_src_addr);
}

static int resolve_addr(struct connection *c)
{
	return rdma_resolve_addr(c->id, talk.res->ai_src_addr, talk.res->ai_dst_addr, timeout) ? -1
											       : 1;
}

static int resolve_route(struct connection *c)
{
	return rdma_resolve_route(c->id, timeout) ? -1 : 1;
}

static int create_qp(struct connection *c)
{
	struct ibv_qp_init_attr attr = smallest();

	return rdma_create_qp(c->id, NULL, &attr);
}

static int connect_id(struct connection *c)
{
	struct rdma_conn_param param = parameters();

	return rdma_connect(c->id, &param) ? -1 : 1;
}

static int disconnect(struct connection *c)
{
	return rdma_disconnect(c->id) ? -1 : 1;
}

static int destroy(struct connection *c)
{
	if (c->id->qp)
		rdma_destroy_qp(c->id);
	rdma_destroy_id(c->id);
	c->id = NULL;
	return 0;
}

static int (*const actions[STEPS])(struct connection *) = {
	[CREATE_ID] = create_id,	 [BIND] = bind_addr,	  [RESOLVE_ADDR] = resolve_addr,
	[RESOLVE_ROUTE] = resolve_route, [CREATE_QP] = create_qp, [CONNECT] = connect_id,
	[DISCONNECT] = disconnect,	 [DESTROY] = destroy,
};

static void finish(struct connection *c, enum step step)
{
	c->took[step] = clock_us() - c->started;
	c->done[step] = true;
}

static int fail(struct connection *c, enum step step)
{
	fprintf(stderr, "cmtime: connection %ld: failure %s: %s\n", (long)(c - connections) + 1,
		steps[step].doing, strerror(errno));
	c->failed = true;
	return -1;
}

/* ---- The client's events ---- */

static void try_again(struct connection *c, enum step step, const struct rdma_cm_event *event)
{
	if (c->retries-- > 0) {
		if (actions[step](c) >= 0)
			return;
		fail(c, step);
	} else {
		fprintf(stderr, "%s, error: %d\n", rdma_event_str(event->event), event->status);
		c->failed = true;
	}
	pending--;
}

static void take(struct connection *c, enum step step, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		try_again(c, step, event);
		return;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (step == DISCONNECT)
			break;
		fprintf(stderr, "cmtime: connection %ld: the server has disconnected\n",
			(long)(c - connections) + 1);
		rdma_disconnect(c->id);
		c->failed = true;
		return;
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return;
	default:
		fprintf(stderr, "event: %s, error: %d\n", rdma_event_str(event->event),
			event->status);
		c->failed = true;
		pending--;
		return;
	}
	finish(c, step);
	pending--;
}

/* Waits for an event and acknowledges it. 0, or -1 */
static int next_event(struct rdma_cm_event *copy)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(talk.channel, &event))
		if (errno != EINTR) {
			talk_fail(&talk, "failure in rdma_get_cm_event");
			return -1;
		}
	*copy = *event;
	rdma_ack_cm_event(event);
	return 0;
}

/* ---- The client ---- */

static int run_step(enum step step)
{
	struct rdma_cm_event event;
	struct connection *c;
	double start = clock_us();
	int ret;

	printf("%s\n", steps[step].doing);
	fflush(stdout);
	for (c = connections; c < connections + talk.connections; c++) {
		if (step == DESTROY ? !c->id : c->failed)
			continue;
		c->retries = retries;
		c->started = clock_us();
		ret = actions[step](c);
		if (ret < 0)
			fail(c, step);
		else if (ret)
			pending++;
		else
			finish(c, step);
	}
	while (pending > 0) {
		if (next_event(&event))
			return -1;
		take(event.id->context, step, &event);
	}
	totals[step] = clock_us() - start;
	return 0;
}

static void report(enum step step)
{
	double max = 0, min = 0;
	struct connection *c;
	bool any = false;

	for (c = connections; c < connections + talk.connections; c++) {
		if (!c->done[step])
			continue;
		if (!any || c->took[step] < min)
			min = c->took[step];
		if (c->took[step] > max)
			max = c->took[step];
		any = true;
	}
	printf("%-13s: %11.2f%11.2f%11.2f%11.2f\n", steps[step].name, totals[step] / 1000,
	       max / 1000, min, totals[step] / talk.connections);
}

static int client(void)
{
	long failed = 0;
	enum step step;
	long i;

	if (talk_addresses(&talk, talk.server))
		return -1;
	connections = calloc(talk.connections, sizeof(*connections));
	if (!connections)
		return talk_fail(&talk, "unable to allocate memory for connections");
	for (step = 0; step < STEPS; step++)
		if ((step != BIND || talk.bind) && run_step(step))
			return -1;
	printf("step              total ms     max ms     min us  us / conn\n");
	for (step = 0; step < STEPS; step++)
		if (step != BIND || talk.bind)
			report(step);
	for (i = 0; i < talk.connections; i++)
		failed += connections[i].failed;
	if (!failed)
		return 0;
	fprintf(stderr, "cmtime: %ld of %ld connections to %s failed\n", failed, talk.connections,
		talk.server);
	return -1;
}

/* ---- The server ---- */

static void answer(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = smallest();
	struct rdma_conn_param param = parameters();

	if (rdma_create_qp(id, NULL, &attr)) {
		talk_fail(&talk, "failure creating qp");
	} else if (rdma_accept(id, &param)) {
		/* The client has gone, or has lost its patience. */
		talk_fail(&talk, "failure accepting");
		rdma_destroy_qp(id);
	} else {
		return;
	}
	fprintf(stderr, "failing connection request\n");
	rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
}

static void serve(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		answer(event->id);
		return;
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(event->id);
		break;
	default:
		fprintf(stderr, "event: %s, error: %d\n", rdma_event_str(event->event),
			event->status);
	}
	if (event->id->qp)
		rdma_destroy_qp(event->id);
	rdma_destroy_id(event->id);
}

/* Returns only if it can no longer listen. */
static int server(void)
{
	struct rdma_cm_id *listener = NULL;
	struct rdma_cm_event event;

	if (!talk_listen(&talk, &listener, 0)) {
		while (!next_event(&event) && event.id != listener)
			serve(&event);
		fprintf(stderr, "cmtime: the server can no longer listen\n");
	}
	if (listener)
		rdma_destroy_id(listener);
	return -1;
}

static int usage(const char *name, int status)
{
	printf("usage: %s\n"
	       "\t[-s server_address]\n"
	       "\t[-b bind_address]\n"
	       "\t[-c connections]\n"
	       "\t[-p port_number]\n"
	       "\t[-r retries]\n"
	       "\t[-t timeout_ms]\n",
	       name);
	return status;
}

int main(int argc, char **argv)
{
	int option, ret;

	while ((option = getopt(argc, argv, "hs:b:c:p:r:t:")) != -1) {
		switch (option) {
		case 'h':
			return usage(argv[0], 0);
		case '?':
			return usage(argv[0], 1);
		case 'p':
			if (tool_port(talk.name, optarg, &talk.port))
				return 1;
			break;
		case 'r':
			if (tool_named_number(talk.name, "number of retries", optarg, 0, 1000000,
					      &retries))
				return 1;
			break;
		case 't':
			if (tool_named_number(talk.name, "time in ms", optarg, 1, 1000000,
					      &timeout))
				return 1;
			break;
		default:
			if (talk_option(&talk, option, optarg))
				return 1;
		}
	}
	ret = talk_open(&talk, false);
	if (!ret)
		ret = talk.server ? client() : server();
	free(connections);
	talk_close(&talk);
	return ret ? 1 : 0;
}
