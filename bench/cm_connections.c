// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections by address: the program that bench/connections runs, also for tests.
 *
 *	cm_connections serve BACKLOG		accepts what comes, until standard input ends
 *	cm_connections loop THREADS COUNT	COUNT connections of each thread, one after the other
 *	cm_connections at-once COUNT		that many, each step of all before the next one
 *	cm_connections alone COUNT		a command of rdma_cm, and the life of a QP, by themselves
 *	cm_connections bare COUNT		the exchange of messages that a command is at least
 *	cm_connections tcp THREADS COUNT	as loop, with sockets; serves them as well
 *
 * Prints a JSON object: microseconds of each step, connections a second. A server prints "ready".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "bench.h"

#define PORT	    7471
#define MAX_THREADS 64

enum step { CREATE, ADDRESS, ROUTE, QP, CONNECT, DISCONNECT, DESTROY, STEPS };
static const char *const names[STEPS] = {"create_id", "resolve_addr", "resolve_route", "create_qp",
					 "connect",   "disconnect",   "destroy"};

struct worker {
	pthread_t thread;
	int count;
	double us[STEPS];
	struct rdma_event_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static void die(const char *what)
{
	fprintf(stderr, "cm_connections: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void check(int failed, const char *what)
{
	if (failed)
		die(what);
}

static struct sockaddr_in address(void)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(PORT),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* PD and CQ are made once: they are no part of a connection. */
static void make_qp(struct worker *w, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	if (!w->pd) {
		w->pd = ibv_alloc_pd(id->verbs);
		w->cq = w->pd ? ibv_create_cq(id->verbs, 16, NULL, NULL, 0) : NULL;
		check(!w->cq, "CQ");
	}
	attr.send_cq = attr.recv_cq = w->cq;
	check(rdma_create_qp(id, w->pd, &attr), "rdma_create_qp");
}

static struct rdma_cm_id *next(struct worker *w, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	do {
		check(rdma_get_cm_event(w->channel, &e), "rdma_get_cm_event");
		id = e->id;
		/* The time-wait of an earlier connection. */
		if (e->event != wanted && e->event != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
			fprintf(stderr, "cm_connections: %s instead of %s, status %d\n",
				rdma_event_str(e->event), rdma_event_str(wanted), e->status);
			exit(1);
		}
		wanted = e->event == wanted ? RDMA_CM_EVENT_TIMEWAIT_EXIT : wanted;
		rdma_ack_cm_event(e);
	} while (wanted != RDMA_CM_EVENT_TIMEWAIT_EXIT);
	return id;
}

static void end(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	check(rdma_destroy_id(id), "rdma_destroy_id");
}

static void call(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};

	check(rdma_connect(id, &param), "rdma_connect");
}

/* ---- the server ---- */

static void serve_event(struct worker *w)
{
	struct rdma_conn_param param = {.rnr_retry_count = 7};
	enum rdma_cm_event_type type;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	check(rdma_get_cm_event(w->channel, &e), "rdma_get_cm_event");
	type = e->event;
	id = e->id;
	rdma_ack_cm_event(e);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		make_qp(w, id);
		/* The client may have gone. */
		if (rdma_accept(id, &param))
			end(id);
	} else if (type != RDMA_CM_EVENT_ESTABLISHED) {
		rdma_disconnect(id);
		end(id);
	}
}

static int serve(int backlog)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct worker w = {.channel = rdma_create_event_channel()};
	struct rdma_cm_id *id;
	struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN}};

	check(!w.channel, "rdma_create_event_channel");
	check(rdma_create_id(w.channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(rdma_bind_addr(id, (struct sockaddr *)&any), "rdma_bind_addr");
	check(rdma_listen(id, backlog), "rdma_listen");
	puts("ready");
	fflush(stdout);
	p[1] = (struct pollfd){.fd = w.channel->fd, .events = POLLIN};
	while (poll(p, 2, -1) >= 0 && !p[0].revents)
		if (p[1].revents)
			serve_event(&w);
	return 0;
}

/* ---- clients ---- */

static void *loop(void *arg)
{
	struct sockaddr_in to = address();
	struct worker *w = arg;

	for (int i = 0; i < w->count; i++) {
		double t[STEPS + 1];
		struct rdma_cm_id *id;

		t[CREATE] = now_us();
		check(rdma_create_id(w->channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
		t[ADDRESS] = now_us();
		check(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000),
		      "rdma_resolve_addr");
		next(w, RDMA_CM_EVENT_ADDR_RESOLVED);
		t[ROUTE] = now_us();
		check(rdma_resolve_route(id, 2000), "rdma_resolve_route");
		next(w, RDMA_CM_EVENT_ROUTE_RESOLVED);
		t[QP] = now_us();
		make_qp(w, id);
		t[CONNECT] = now_us();
		call(id);
		next(w, RDMA_CM_EVENT_ESTABLISHED);
		t[DISCONNECT] = now_us();
		check(rdma_disconnect(id), "rdma_disconnect");
		next(w, RDMA_CM_EVENT_DISCONNECTED);
		t[DESTROY] = now_us();
		end(id);
		t[STEPS] = now_us();
		for (int s = 0; s < STEPS; s++)
			w->us[s] += t[s + 1] - t[s];
	}
	return NULL;
}

static int at_once(int count)
{
	struct rdma_cm_id **id = calloc(count, sizeof(*id));
	struct worker w = {.channel = rdma_create_event_channel()};
	struct sockaddr_in to = address();
	double began = now_us();
	int i;

	check(!id || !w.channel, "a channel");
	for (i = 0; i < count; i++) {
		check(rdma_create_id(w.channel, &id[i], NULL, RDMA_PS_TCP), "rdma_create_id");
		check(rdma_resolve_addr(id[i], NULL, (struct sockaddr *)&to, 2000),
		      "rdma_resolve_addr");
	}
	for (i = 0; i < count; i++)
		next(&w, RDMA_CM_EVENT_ADDR_RESOLVED);
	for (i = 0; i < count; i++)
		check(rdma_resolve_route(id[i], 2000), "rdma_resolve_route");
	for (i = 0; i < count; i++)
		make_qp(&w, next(&w, RDMA_CM_EVENT_ROUTE_RESOLVED));
	for (i = 0; i < count; i++)
		call(id[i]);
	for (i = 0; i < count; i++)
		next(&w, RDMA_CM_EVENT_ESTABLISHED);
	printf("{\"established\": %d, \"per_second\": %.0f}\n", count,
	       count * 1e6 / (now_us() - began));
	for (i = 0; i < count; i++)
		check(rdma_disconnect(id[i]), "rdma_disconnect");
	for (i = 0; i < count; i++)
		next(&w, RDMA_CM_EVENT_DISCONNECTED);
	for (i = 0; i < count; i++)
		end(id[i]);
	free(id);
	return 0;
}

/* ---- what connections are made of ---- */

static void modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	check(ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE), "ibv_modify_qp");
}

/* All that a connection does with a QP, at one of its ends. */
static void life_of_qp(struct worker *w)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.send_cq = w->cq,
		.recv_cq = w->cq,
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr in = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_4096,
				  .ah_attr = {.port_num = 1, .dlid = 1},
				  .max_dest_rd_atomic = 1};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = 16,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = 1};
	struct ibv_qp *qp = ibv_create_qp(w->pd, &init);

	check(!qp, "ibv_create_qp");
	rtr.dest_qp_num = qp->qp_num;
	modify(qp, in, IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
	/* librdmacm does that twice: when the QP is made, and when the connection is. */
	modify(qp, in, IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
	modify(qp, rtr,
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify(qp, rts,
	       IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC);
	modify(qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, 0);
	check(ibv_destroy_qp(qp), "ibv_destroy_qp");
}

static int alone(int count)
{
	struct worker w = {.channel = rdma_create_event_channel()};
	struct sockaddr_in to = address();
	struct rdma_cm_id *id, *other;
	double began, command, qp;

	check(!w.channel, "rdma_create_event_channel");
	check(rdma_create_id(w.channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000), "rdma_resolve_addr");
	next(&w, RDMA_CM_EVENT_ADDR_RESOLVED);
	make_qp(&w, id);
	rdma_destroy_qp(id);
	began = now_us();
	for (int i = 0; i < count; i++) {
		check(rdma_create_id(w.channel, &other, NULL, RDMA_PS_TCP), "rdma_create_id");
		end(other);
	}
	command = (now_us() - began) / count / 2;
	began = now_us();
	for (int i = 0; i < count; i++)
		life_of_qp(&w);
	qp = (now_us() - began) / count;
	printf("{\"command_us\": %.2f, \"qp_us\": %.2f}\n", command, qp);
	return 0;
}

/* ---- what a command is at least ---- */

/* A command with its head in softhca, which has 24 to 280 bytes more, and the answer. */
enum { REQUEST = 120, ANSWER = 8, BATCH = 20 };

/* As the daemon waits and answers, without what it does in between. */
static void echo(int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(0);
	char data[512] = {0};

	check(epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll");
	while (epoll_wait(epoll, &event, 1, -1) == 1 && recv(fd, data, sizeof(data), 0) > 0)
		check(send(fd, data, ANSWER, 0) != ANSWER, "send");
	_exit(0);
}

/*
 * Both processes on one CPU. The least of the averages of batches: other programs take time from
 * the others.
 */
static int bare(int count)
{
	char data[512] = {0};
	double least = 0;
	cpu_set_t one;
	int ends[2];

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	check(sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
	check(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), "socketpair");
	if (!fork()) {
		close(ends[0]);
		echo(ends[1]);
	}
	close(ends[1]);
	for (int i = 0; i < count; i += BATCH) {
		double began = now_us(), us;

		for (int n = 0; n < BATCH; n++)
			check(send(ends[0], data, REQUEST, 0) != REQUEST ||
				      recv(ends[0], data, sizeof(data), 0) != ANSWER,
			      "an exchange");
		us = (now_us() - began) / BATCH;
		least = least && least < us ? least : us;
	}
	printf("{\"exchange_us\": %.2f}\n", least);
	return 0;
}

/* ---- sockets ---- */

static int listening;

static void *tcp_serve(void *arg)
{
	int fd;
	char byte;

	(void)arg;
	while ((fd = accept(listening, NULL, NULL)) >= 0) {
		/* As a connection ends: the client first. */
		(void)!read(fd, &byte, 1);
		close(fd);
	}
	return NULL;
}

static void *tcp_loop(void *arg)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	socklen_t len = sizeof(to);
	struct worker *w = arg;

	check(getsockname(listening, (struct sockaddr *)&to, &len), "getsockname");
	for (int i = 0; i < w->count; i++) {
		double began = now_us(), connected;
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		check(fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)), "connect");
		connected = now_us();
		close(fd);
		w->us[CONNECT] += connected - began;
		w->us[DESTROY] += now_us() - connected;
	}
	return NULL;
}

/* In a process of its own, as the other server is. */
static void tcp_server(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	listening = socket(AF_INET, SOCK_STREAM, 0);
	check(listening < 0 || bind(listening, (struct sockaddr *)&any, sizeof(any)) ||
		      listen(listening, 1024),
	      "a socket");
	if (!fork()) {
		alarm(600);
		tcp_serve(NULL);
		_exit(0);
	}
}

/* ---- threads ---- */

static int threads(int n, int count, void *(*fn)(void *), bool sockets)
{
	static struct worker w[MAX_THREADS];
	double began, us, total = 0;

	if (n < 1 || n > MAX_THREADS)
		return 2;
	if (sockets)
		tcp_server();
	for (int i = 0; i < n; i++) {
		w[i].count = count;
		w[i].channel = sockets ? NULL : rdma_create_event_channel();
		check(!sockets && !w[i].channel, "rdma_create_event_channel");
	}
	began = now_us();
	for (int i = 0; i < n; i++)
		check(pthread_create(&w[i].thread, NULL, fn, &w[i]), "a thread");
	for (int i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
	us = now_us() - began;
	printf("{\"threads\": %d, \"count\": %d, \"per_second\": %.0f, \"us\": {", n, n * count,
	       n * count * 1e6 / us);
	for (int s = 0; s < STEPS; s++) {
		double of_step = 0;

		for (int i = 0; i < n; i++)
			of_step += w[i].us[s] / count / n;
		total += of_step;
		if (!sockets || of_step > 0)
			printf("\"%s\": %.2f, ", names[s], of_step);
	}
	printf("\"total\": %.2f}}\n", total);
	fflush(stdout);
	if (sockets)
		shutdown(listening, SHUT_RD);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	int a = argc > 2 ? atoi(argv[2]) : 0, b = argc > 3 ? atoi(argv[3]) : 0;

	if (!strcmp(what, "serve"))
		return serve(a);
	if (!strcmp(what, "loop") && b > 0)
		return threads(a, b, loop, false);
	if (!strcmp(what, "tcp") && b > 0)
		return threads(a, b, tcp_loop, true);
	if (!strcmp(what, "at-once") && a > 0)
		return at_once(a);
	if (!strcmp(what, "alone") && a > 0)
		return alone(a);
	if (!strcmp(what, "bare") && a > 0)
		return bare(a);
	fputs("usage: cm_connections serve BACKLOG | loop THREADS COUNT | at-once COUNT | alone "
	      "COUNT | bare COUNT | "
	      "tcp THREADS COUNT\n",
	      stderr);
	return 2;
}
