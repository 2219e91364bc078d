// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A ping-pong by RDMA. For each ping the client tells the server where its data is; the server
 * reads it, says so, is told where the answer goes, writes the data there and says so. What the two
 * tell each other is struct advert, in network order; the server's messages say nothing but "go
 * on".
 */

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "tool.h"

enum { DEPTH = 16, MIN_SIZE = 24, MAX_SIZE = 65536 };

struct advert {
	uint64_t addr;
	uint32_t rkey;
	uint32_t size;
};

struct ping {
	bool server, verbose, validate, debug, persistent;
	const char *address, *source, *port;
	size_t size;
	long count;

	struct rdma_cm_id *id;
	struct advert send, recv;
	char *source_buf, *sink_buf; /* the client's */
	char *buf;		     /* the server's */
	struct ibv_mr *send_mr, *recv_mr, *source_mr, *sink_mr, *buf_mr;
	bool gone; /* nothing more can come */
	bool left; /* since the peer has ended the connection */
};

static int debug(const struct ping *p, const char *what)
{
	if (p->debug)
		printf("%s\n", what);
	return 0;
}

/* ---- Completions, and the end of the connection ---- */

static void look_at_event(struct ping *p)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(p->id->channel, &event)) {
		if (errno == EINTR || errno == EAGAIN)
			return;
		/* The channel is readable for ever, but tells nothing more: the device is gone. */
		(void)tool_fail("rdma_get_cm_event");
		p->gone = true;
		return;
	}
	if (event->event == RDMA_CM_EVENT_DISCONNECTED) {
		fprintf(stderr, "%s DISCONNECT EVENT...\n", p->server ? "server" : "client");
		p->gone = p->left = true;
	} else if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		fprintf(stderr, "cma detected device removal!!!!\n");
		p->gone = true;
	}
	rdma_ack_cm_event(event);
}

/* Waits for a completion, or for the peer's departure. */
static int wait_for(struct ping *p, struct ibv_cq *cq, struct ibv_comp_channel *channel)
{
	struct pollfd fds[2] = {{.fd = channel->fd, .events = POLLIN},
				{.fd = p->id->channel->fd, .events = POLLIN}};
	struct ibv_cq *of;
	struct ibv_wc wc;
	void *context;
	int n;

	for (;;) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (!n) {
			if (rdma_seterrno(ibv_req_notify_cq(cq, 0)))
				return tool_fail("ibv_req_notify_cq");
			n = ibv_poll_cq(cq, 1, &wc);
		}
		if (n < 0) {
			fprintf(stderr, "poll error %d\n", n);
			return -1;
		}
		if (n) {
			if (wc.status == IBV_WC_SUCCESS)
				return 0;
			/* A peer that has left acknowledges nothing. */
			if (!p->gone && poll(&fds[1], 1, 0) > 0)
				look_at_event(p);
			if (wc.status != IBV_WC_WR_FLUSH_ERR && !p->gone)
				fprintf(stderr, "cq completion failed: %s\n",
					ibv_wc_status_str(wc.status));
			return -1;
		}
		if (p->gone)
			return -1;
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return tool_fail("poll");
		if (fds[0].revents) {
			if (ibv_get_cq_event(channel, &of, &context))
				return tool_fail("ibv_get_cq_event");
			ibv_ack_cq_events(of, 1);
		} else if (fds[1].revents) {
			look_at_event(p);
		}
	}
}

static int sent(struct ping *p)
{
	return wait_for(p, p->id->send_cq, p->id->send_cq_channel);
}

static int received(struct ping *p)
{
	return wait_for(p, p->id->recv_cq, p->id->recv_cq_channel);
}

static int post_recv(struct ping *p)
{
	if (rdma_post_recv(p->id, NULL, &p->recv, sizeof(p->recv), p->recv_mr))
		return tool_fail("ibv_post_recv");
	return 0;
}

static int say(struct ping *p, void *addr, const struct ibv_mr *mr, size_t size)
{
	p->send.addr = htobe64((uintptr_t)addr);
	p->send.rkey = htonl(mr ? mr->rkey : 0);
	p->send.size = htonl((uint32_t)size);
	if (rdma_post_send(p->id, NULL, &p->send, sizeof(p->send), p->send_mr, IBV_SEND_SIGNALED))
		return tool_fail("ibv_post_send");
	return sent(p);
}

/* ---- Memory and QP ---- */

static char *memory(struct ping *p, struct ibv_mr **mr)
{
	char *buf = calloc(1, p->size);

	if (!buf) {
		tool_fail("calloc");
		return NULL;
	}
	*mr = ibv_reg_mr(p->id->pd, buf, p->size,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (!*mr) {
		tool_fail("ibv_reg_mr");
		free(buf);
		return NULL;
	}
	return buf;
}

static int set_up(struct ping *p)
{
	struct ibv_qp_init_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.cap.max_send_wr = DEPTH;
	attr.cap.max_recv_wr = 2;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	attr.qp_type = IBV_QPT_RC;
	if (rdma_create_qp(p->id, NULL, &attr))
		return tool_fail("rdma_create_qp");
	debug(p, "created qp");

	p->send_mr = rdma_reg_msgs(p->id, &p->send, sizeof(p->send));
	p->recv_mr = rdma_reg_msgs(p->id, &p->recv, sizeof(p->recv));
	if (!p->send_mr || !p->recv_mr)
		return tool_fail("ibv_reg_mr");
	if (p->server) {
		p->buf = memory(p, &p->buf_mr);
		return p->buf ? post_recv(p) : -1;
	}
	p->source_buf = memory(p, &p->source_mr);
	p->sink_buf = p->source_buf ? memory(p, &p->sink_mr) : NULL;
	return p->sink_buf ? post_recv(p) : -1;
}

static void release(struct ibv_mr **mr)
{
	if (*mr)
		ibv_dereg_mr(*mr);
	*mr = NULL;
}

static void tear_down(struct ping *p)
{
	rdma_destroy_qp(p->id);
	release(&p->send_mr);
	release(&p->recv_mr);
	release(&p->source_mr);
	release(&p->sink_mr);
	release(&p->buf_mr);
	free(p->source_buf);
	free(p->sink_buf);
	free(p->buf);
	p->source_buf = p->sink_buf = p->buf = NULL;
}

/* ---- The server ---- */

static int serve_ping(struct ping *p)
{
	struct advert from, to;

	if (received(p))
		return -1;
	from = p->recv;
	debug(p, "server received sink adv");
	if (ntohl(from.size) > p->size) {
		fprintf(stderr, "Received bogus data, size %u; this end has -S %zu\n",
			ntohl(from.size), (size_t)p->size);
		return -1;
	}
	if (post_recv(p) || rdma_post_read(p->id, NULL, p->buf, ntohl(from.size), p->buf_mr,
					   IBV_SEND_SIGNALED, be64toh(from.addr), ntohl(from.rkey)))
		return tool_fail("server rdma read");
	if (sent(p))
		return -1;
	debug(p, "server received read complete");
	if (p->verbose)
		printf("server ping data: %.*s\n", (int)p->size, p->buf);
	if (say(p, NULL, NULL, 0) || received(p))
		return -1;
	to = p->recv;
	if (!to.size || ntohl(to.size) > p->size) {
		fprintf(stderr, "Received bogus data, size %u; this end has -S %zu\n",
			ntohl(to.size), (size_t)p->size);
		return -1;
	}
	if (post_recv(p) ||
	    rdma_post_write(p->id, NULL, p->buf, strnlen(p->buf, ntohl(to.size) - 1) + 1, p->buf_mr,
			    IBV_SEND_SIGNALED, be64toh(to.addr), ntohl(to.rkey)))
		return tool_fail("server rdma write");
	if (sent(p))
		return -1;
	debug(p, "server rdma write complete");
	/*
	 * With this answer the client may end: what acknowledges it can be lost with the client's
	 * QP.
	 */
	return say(p, NULL, NULL, 0) && !p->left ? -1 : 0;
}

/* Serves the client of this request until either end ends. */
static int serve_one(struct ping *p)
{
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7};
	long done = 0;
	int ret = -1;

	if (!set_up(p)) {
		if (rdma_accept(p->id, &param)) {
			tool_fail("rdma_accept");
		} else {
			/* The client says when it ends. With -C it may not end before. */
			while (!serve_ping(p))
				done++;
			ret = p->gone && done >= p->count ? 0 : -1;
			rdma_disconnect(p->id);
		}
	}
	tear_down(p);
	rdma_destroy_id(p->id);
	return ret;
}

/* ---- With -P: a thread for each client ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects clients */
static pthread_cond_t one_less = PTHREAD_COND_INITIALIZER;
static int clients;

static void count_client(int by)
{
	pthread_mutex_lock(&lock);
	clients += by;
	if (by < 0)
		pthread_cond_signal(&one_less);
	pthread_mutex_unlock(&lock);
}

static void *serve_in_thread(void *arg)
{
	/* It has said what failed, and another client need not hear of that. */
	(void)serve_one(arg);
	free(arg);
	count_client(-1);
	return NULL;
}

/* 0, or an errno: then the caller still has the request. */
static int start_thread(const struct ping *p, struct rdma_cm_id *id)
{
	struct ping *own = malloc(sizeof(*own));
	pthread_t thread;
	int ret;

	if (!own)
		return ENOMEM;
	*own = *p;
	own->id = id;
	count_client(1);
	ret = pthread_create(&thread, NULL, serve_in_thread, own);
	if (ret) {
		count_client(-1);
		free(own);
		return ret;
	}
	pthread_detach(thread);
	return 0;
}

/* Ends when no more requests can come, and the clients that there were have ended. */
static int serve_all(struct ping *p, struct rdma_cm_id *listen_id)
{
	struct rdma_cm_id *id;

	for (;;) {
		if (rdma_get_request(listen_id, &id)) {
			if (errno == EINTR)
				continue;
			tool_fail("rdma_get_request");
			break;
		}
		errno = start_thread(p, id);
		if (errno) {
			tool_fail("pthread_create");
			rdma_destroy_id(id);
		}
	}
	pthread_mutex_lock(&lock);
	while (clients)
		pthread_cond_wait(&one_less, &lock);
	pthread_mutex_unlock(&lock);
	return -1;
}

static int serve(struct ping *p)
{
	struct rdma_addrinfo *res = tool_address(p->address, p->port, RAI_PASSIVE, IBV_QPT_RC);
	struct rdma_cm_id *listen_id;
	int ret = -1;

	if (!res)
		return -1;
	if (rdma_create_id(NULL, &listen_id, NULL, RDMA_PS_TCP)) {
		tool_fail("rdma_create_id");
		goto free;
	}
	if (rdma_bind_addr(listen_id, res->ai_src_addr)) {
		tool_fail_at("rdma_bind_addr", res->ai_src_addr);
		goto destroy;
	}
	debug(p, "rdma_bind_addr successful");
	if (rdma_listen(listen_id, p->persistent ? 8 : 1)) {
		tool_fail("rdma_listen");
		goto destroy;
	}
	if (p->persistent)
		ret = serve_all(p, listen_id);
	else if (rdma_get_request(listen_id, &p->id))
		tool_fail("rdma_get_request");
	else
		ret = serve_one(p);
destroy:
	rdma_destroy_id(listen_id);
free:
	rdma_freeaddrinfo(res);
	return ret;
}

/* ---- The client ---- */

static void fill(struct ping *p, long number)
{
	size_t i = snprintf(p->source_buf, p->size, "rdma-ping-%ld: ", number);
	int letter = 'A' + number % ('z' - 'A' + 1);

	for (; i < p->size - 1; i++) {
		p->source_buf[i] = letter;
		letter = letter == 'z' ? 'A' : letter + 1;
	}
	p->source_buf[p->size - 1] = 0;
}

static int ping(struct ping *p, long number)
{
	fill(p, number);
	if (say(p, p->source_buf, p->source_mr, p->size) || received(p) || post_recv(p) ||
	    say(p, p->sink_buf, p->sink_mr, p->size) || received(p) || post_recv(p))
		return -1;
	if (p->validate && memcmp(p->source_buf, p->sink_buf, p->size)) {
		fprintf(stderr, "data mismatch!\n");
		return -1;
	}
	if (p->verbose)
		printf("ping data: %.*s\n", (int)p->size, p->sink_buf);
	return 0;
}

static int run_pings(struct ping *p)
{
	struct rdma_conn_param param = {.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = 7,
					.rnr_retry_count = 7};
	long done = 0;

	if (rdma_connect(p->id, &param))
		return tool_fail_at("rdma_connect", rdma_get_peer_addr(p->id));
	debug(p, "rdma_connect successful");
	while (!p->count || done < p->count) {
		if (ping(p, done))
			break;
		done++;
	}
	if (!p->gone)
		rdma_disconnect(p->id);
	return p->count && done == p->count ? 0 : -1;
}

static int resolve(struct ping *p, struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *source = NULL;
	int ret;

	if (p->source) {
		source = tool_address(p->source, NULL, RAI_PASSIVE, IBV_QPT_RC);
		if (!source)
			return -1;
	}
	ret = rdma_resolve_addr(p->id, source ? source->ai_src_addr : NULL, res->ai_dst_addr, 2000);
	if (source)
		rdma_freeaddrinfo(source);
	if (ret && p->source) /* either address may be the wrong one */
		return tool_fail("rdma_resolve_addr");
	if (ret)
		return tool_fail_at("rdma_resolve_addr", res->ai_dst_addr);
	if (rdma_resolve_route(p->id, 2000))
		return tool_fail("rdma_resolve_route");
	return 0;
}

static int client(struct ping *p)
{
	struct rdma_addrinfo *res = tool_address(p->address, p->port, 0, IBV_QPT_RC);
	int ret = -1;

	if (!res)
		return -1;
	if (rdma_create_id(NULL, &p->id, NULL, RDMA_PS_TCP)) {
		tool_fail("rdma_create_id");
		goto free;
	}
	if (!resolve(p, res)) {
		if (!set_up(p))
			ret = run_pings(p);
		tear_down(p);
	}
	rdma_destroy_id(p->id);
free:
	rdma_freeaddrinfo(res);
	return ret;
}

static int usage(int status)
{
	printf("rping -s [-vVd] [-S size] [-C count] [-a addr] [-p port] [-P]\n"
	       "rping -c [-vVd] [-S size] [-C count] [-I addr] -a addr [-p port]\n"
	       "\t-c\t\tclient side\n"
	       "\t-I\t\tSource address to bind to for client.\n"
	       "\t-s\t\tserver side.  To bind to any address with IPv6 use -a ::0\n"
	       "\t-v\t\tdisplay ping data to stdout\n"
	       "\t-V\t\tvalidate ping data\n"
	       "\t-d\t\tdebug printfs\n"
	       "\t-S size \tping data size\n"
	       "\t-C count\tping count times\n"
	       "\t-a addr\t\taddress\n"
	       "\t-p port\t\tport\n"
	       "\t-P\t\tpersistent server mode allowing multiple connections\n");
	return status;
}

int main(int argc, char **argv)
{
	struct ping p = {.port = "7174", .size = 64};
	bool is_client = false;
	int option;
	long value;

	while ((option = getopt(argc, argv, "ha:I:Pp:C:S:scvVd")) != -1) {
		switch (option) {
		case 'a':
			p.address = optarg;
			break;
		case 'I':
			p.source = optarg;
			break;
		case 'P':
			p.persistent = true;
			break;
		case 'p':
			if (tool_port("rping", optarg, &p.port))
				return 1;
			break;
		case 'C':
			if (!tool_number(optarg, 1, INT32_MAX, &p.count)) {
				fprintf(stderr, "Invalid count %s\n", optarg);
				return 1;
			}
			break;
		case 'S':
			if (!tool_number(optarg, MIN_SIZE, MAX_SIZE, &value)) {
				fprintf(stderr, "Invalid size %s (valid range is %d to %d)\n",
					optarg, MIN_SIZE, MAX_SIZE);
				return 1;
			}
			p.size = value;
			break;
		case 's':
			p.server = true;
			break;
		case 'c':
			is_client = true;
			break;
		case 'v':
			p.verbose = true;
			break;
		case 'V':
			p.validate = true;
			break;
		case 'd':
			p.debug = true;
			break;
		case 'h':
			return usage(0);
		default:
			return usage(1);
		}
	}
	if (p.server == is_client || (is_client && !p.address))
		return usage(1);
	if (!p.address)
		p.address = "0.0.0.0";
	return (p.server ? serve(&p) : client(&p)) ? 1 : 0;
}
