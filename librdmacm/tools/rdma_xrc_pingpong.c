// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rdma_xrc_pingpong: the processes of one node and those of another send each other messages over
 * XRC connections that were made by address.
 *
 * The processes of a node share one XRC domain, and each has an SRQ in it. Process I of the client
 * connects to process I of the server, which connects back. Each connection is a send QP here and a
 * receive QP in the domain there, through which the sender reaches the SRQs of all processes: their
 * numbers come with the acceptance.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "clock.h"
#include "tool.h"

/* As many SRQ numbers as the acceptance of a connection has room for. */
enum { MAX_PROCESSES = 49, PORT = 7471 };

static struct {
	const char *server; /* NULL: this is the server */
	const char *address;
	unsigned int port;
	unsigned int processes;
	unsigned int iters; /* from each process to each process */
	unsigned int size;
	bool events;
} opt = {.port = PORT, .processes = 4, .iters = 1000, .size = 4096};

/* What the processes of a node tell each other. */
static struct node {
	pthread_barrier_t barrier;
	uint32_t srqn[MAX_PROCESSES];
	uint32_t receive_qpn[MAX_PROCESSES];
	double seconds[MAX_PROCESSES];
} * node;

/* What a request says, in network order. */
struct request {
	uint32_t processes, iters, size;
	uint16_t port; /* where the client's process listens */
};

struct message {
	uint32_t from;
	uint32_t number; /* of the client's message */
};

static struct process {
	unsigned int me;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_xrc_domain *domain;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint8_t *memory; /* one message for each peer, to send; then the receives */
	struct rdma_cm_id *listener, *in, *out;
	uint32_t peer_srqn[MAX_PROCESSES];
	bool ended; /* a connection */
} p;

static void die(const char *what)
{
	tool_fail(what);
	exit(1);
}

static void check(int failed, const char *what)
{
	if (!failed)
		return;
	if (failed > 0)
		errno = failed;
	die(what);
}

/* Waits for all processes of the node. If one has failed, the parent ends the others. */
static void meet(void)
{
	pthread_barrier_wait(&node->barrier);
}

static unsigned int receives(void)
{
	return 2 * opt.processes;
}

/* ---- Queues ---- */

static void post_receive(unsigned int slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)p.memory + slot * (size_t)opt.size,
			      .length = opt.size,
			      .lkey = p.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

	check(ibv_post_srq_recv(p.srq, &wr, &bad), "ibv_post_srq_recv");
}

/* The domain is that of the file: all processes of the node have it. */
static void create_queues(struct ibv_context *verbs, int domain_file)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = receives(), .max_sge = 1}};
	size_t size = (opt.processes + receives()) * (size_t)opt.size;

	p.verbs = verbs;
	p.pd = ibv_alloc_pd(verbs);
	check(p.pd ? 0 : -1, "ibv_alloc_pd");
	p.memory = calloc(1, size);
	p.mr = p.memory ? ibv_reg_mr(p.pd, p.memory, size, IBV_ACCESS_LOCAL_WRITE) : NULL;
	check(p.mr ? 0 : -1, "ibv_reg_mr");
	p.channel = ibv_create_comp_channel(verbs);
	check(p.channel ? 0 : -1, "ibv_create_comp_channel");
	p.cq = ibv_create_cq(verbs, (int)(opt.processes + receives()), NULL, p.channel, 0);
	check(p.cq ? 0 : -1, "ibv_create_cq");
	p.domain = ibv_open_xrc_domain(verbs, domain_file, O_CREAT);
	check(p.domain ? 0 : -1, "ibv_open_xrc_domain");
	p.srq = ibv_create_xrc_srq(p.pd, p.domain, p.cq, &attr);
	check(p.srq ? 0 : -1, "ibv_create_xrc_srq");
	node->srqn[p.me] = p.srq->xrc_srq_num;
	for (unsigned int i = 0; i < receives(); i++)
		post_receive(opt.processes + i);
}

static void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr;

	if (id->verbs != p.verbs) {
		fprintf(stderr, "the connection came by another device: give its address, -b\n");
		exit(1);
	}
	memset(&attr, 0, sizeof(attr));
	attr.send_cq = attr.recv_cq = p.cq;
	attr.cap.max_send_wr = opt.processes;
	attr.cap.max_send_sge = 1;
	attr.xrc_domain = p.domain;
	attr.sq_sig_all = 1;
	check(rdma_create_qp(id, p.pd, &attr), "rdma_create_qp");
}

/* ---- Connections ---- */

static struct rdma_cm_id *create_id(const char *host, unsigned int port, int flags, int type)
{
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	res = tool_address(host, service, flags, type);
	if (!res)
		exit(1);
	check(rdma_create_ep(&id, res, NULL, NULL), "rdma_create_ep");
	rdma_freeaddrinfo(res);
	return id;
}

/* Asks for the connection on which this process sends. */
static void connect_out(const struct request *request)
{
	struct rdma_conn_param param = {
		.private_data = request,
		.private_data_len = sizeof(*request),
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	uint32_t srqn[MAX_PROCESSES];

	create_qp(p.out);
	check(rdma_connect(p.out, &param), "rdma_connect");
	if (p.out->event->param.conn.private_data_len < sizeof(srqn)) {
		fprintf(stderr, "the answer has no SRQ numbers\n");
		exit(1);
	}
	memcpy(srqn, p.out->event->param.conn.private_data, sizeof(srqn));
	for (unsigned int i = 0; i < opt.processes; i++)
		p.peer_srqn[i] = ntohl(srqn[i]);
}

static void get_request(struct request *request)
{
	const struct rdma_conn_param *param;

	check(rdma_get_request(p.listener, &p.in), "rdma_get_request");
	param = &p.in->event->param.conn;
	memset(request, 0, sizeof(*request));
	if (param->private_data_len >= sizeof(*request))
		memcpy(request, param->private_data, sizeof(*request));
	if (ntohl(request->processes) == opt.processes && ntohl(request->iters) == opt.iters &&
	    ntohl(request->size) == opt.size)
		return;
	fprintf(stderr, "the other side has other options: processes %u, iterations %u, size %u\n",
		ntohl(request->processes), ntohl(request->iters), ntohl(request->size));
	rdma_reject(p.in, NULL, 0);
	exit(1);
}

/* Accepts: the domain gets a receive QP, the peer the numbers of the SRQs. */
static void accept_in(void)
{
	uint32_t srqn[MAX_PROCESSES];
	struct rdma_conn_param param = {
		.private_data = srqn,
		.private_data_len = sizeof(srqn),
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.rnr_retry_count = 7,
	};

	for (unsigned int i = 0; i < MAX_PROCESSES; i++)
		srqn[i] = htonl(node->srqn[i]);
	create_qp(p.in);
	node->receive_qpn[p.me] = p.in->qp->qp_num;
	check(rdma_accept(p.in, &param), "rdma_accept");
}

static void connect_client(int domain_file)
{
	struct request request = {htonl(opt.processes), htonl(opt.iters), htonl(opt.size), 0};
	struct request back;

	p.listener = create_id(opt.address, 0, RAI_PASSIVE, RDMA_XRC_RECV);
	check(rdma_listen(p.listener, 0), "rdma_listen");
	request.port = rdma_get_src_port(p.listener);
	p.out = create_id(opt.server, opt.port + p.me, 0, RDMA_XRC_SEND);
	create_queues(p.out->verbs, domain_file);
	meet(); /* the numbers of all SRQs are there */

	/* The server's first process is the last one that listens. If it answers, all do. */
	if (p.me)
		meet();
	connect_out(&request);
	get_request(&back);
	accept_in();
	if (!p.me)
		meet();
}

static void connect_server(int domain_file)
{
	struct ibv_context **all = NULL;
	struct request request;
	char host[NI_MAXHOST];
	struct sockaddr *addr;

	p.listener = create_id(opt.address, opt.port + p.me, RAI_PASSIVE, RDMA_XRC_RECV);
	if (!p.listener->verbs) {
		all = rdma_get_devices(NULL);
		check(all ? 0 : -1, "rdma_get_devices");
	}
	create_queues(all ? all[0] : p.listener->verbs, domain_file);
	rdma_free_devices(all);
	if (p.me)
		check(rdma_listen(p.listener, 0), "rdma_listen");
	meet();
	if (!p.me)
		check(rdma_listen(p.listener, 0), "rdma_listen");

	get_request(&request);
	accept_in();
	addr = rdma_get_peer_addr(p.in);
	check(getnameinfo(addr,
			  addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						     : sizeof(struct sockaddr_in6),
			  host, sizeof(host), NULL, 0, NI_NUMERICHOST)
		      ? EINVAL
		      : 0,
	      "getnameinfo");
	p.out = create_id(host, ntohs(request.port), 0, RDMA_XRC_SEND);
	connect_out(&request);
}

/* ---- Messages ---- */

/* A peer that ends tells so: without a look, a process would poll for ever. */
static void look_at_connections(int timeout_ms)
{
	struct pollfd fds[] = {
		{.fd = p.in->channel->fd, .events = POLLIN},
		{.fd = p.out->channel->fd, .events = POLLIN},
		{.fd = p.channel->fd, .events = POLLIN},
	};
	struct ibv_cq *cq;
	void *context;

	if (poll(fds, 3, timeout_ms) <= 0)
		return;
	p.ended = fds[0].revents || fds[1].revents;
	if (fds[2].revents) {
		check(ibv_get_cq_event(p.channel, &cq, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
}

static struct ibv_wc completion(void)
{
	unsigned int tries = 0;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(p.cq, 1, &wc))) {
		/* What the peer sent before its end is in the CQ. */
		if (p.ended) {
			fprintf(stderr, "process %u: the connection has ended\n", p.me);
			exit(1);
		}
		if (!opt.events) {
			if (!(++tries % 1024))
				look_at_connections(0);
			continue;
		}
		/* A completion that came before this does not make an event. */
		if (!tries++)
			check(ibv_req_notify_cq(p.cq, 0), "ibv_req_notify_cq");
		else
			look_at_connections(-1), tries = 0;
	}
	check(n < 0 ? EIO : 0, "ibv_poll_cq"); /* which sets no errno */
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "process %u: completion: %s\n", p.me, ibv_wc_status_str(wc.status));
		exit(1);
	}
	return wc;
}

static void send_to(unsigned int peer, uint32_t number)
{
	uint8_t *memory = p.memory + peer * (size_t)opt.size;
	struct message message = {htonl(p.me), htonl(number)};
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = opt.size, .lkey = p.mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = peer,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .xrc_remote_srq_num = p.peer_srqn[peer],
				 };

	memcpy(memory, &message, sizeof(message));
	check(ibv_post_send(p.out->qp, &wr, &bad), "ibv_post_send");
}

/* Takes a message out of its receive, and posts that again. */
static struct message take(const struct ibv_wc *wc)
{
	struct message message;

	memcpy(&message, p.memory + wc->wr_id * (size_t)opt.size, sizeof(message));
	post_receive((unsigned int)wc->wr_id);
	message.from = ntohl(message.from);
	message.number = ntohl(message.number);
	if (wc->byte_len == opt.size && message.from < opt.processes)
		return message;
	fprintf(stderr, "process %u: a message of %u byte%s from %u\n", p.me, wc->byte_len,
		tool_plural(wc->byte_len), message.from);
	exit(1);
}

static void must_be(bool right, const struct message *message)
{
	if (right)
		return;
	fprintf(stderr, "process %u: message %u of process %u is not the next one\n", p.me,
		message->number, message->from);
	exit(1);
}

/* Sends to one process of the server after the other, and waits for each answer. */
static void play_client(void)
{
	unsigned int answered = 0, sent = 0, done = 0, total = opt.iters * opt.processes;
	struct message message;
	struct ibv_wc wc;

	while (answered < total || done < sent) {
		if (answered == sent && sent < total) {
			send_to((p.me + sent) % opt.processes, sent);
			sent++;
		}
		wc = completion();
		if (!(wc.opcode & IBV_WC_RECV)) {
			done++;
			continue;
		}
		message = take(&wc);
		must_be(message.number == answered &&
				message.from == (p.me + answered) % opt.processes,
			&message);
		answered++;
	}
}

static void play_server(void)
{
	unsigned int got = 0, done = 0, total = opt.iters * opt.processes;
	uint32_t next[MAX_PROCESSES];
	struct message message;
	struct ibv_wc wc;

	for (unsigned int i = 0; i < opt.processes; i++)
		next[i] = (p.me + opt.processes - i) % opt.processes;
	while (got < total || done < total) {
		wc = completion();
		if (!(wc.opcode & IBV_WC_RECV)) {
			done++;
			continue;
		}
		message = take(&wc);
		must_be(message.number == next[message.from], &message);
		next[message.from] += opt.processes;
		got++;
		send_to(message.from, message.number);
	}
}

/* ---- A process ---- */

/* Every process keeps the receive QPs of all: one that ends takes none away from the others. */
static void keep_receive_qps(bool keep)
{
	for (unsigned int i = 0; i < opt.processes; i++) {
		if (i == p.me)
			continue;
		if (keep)
			check(ibv_reg_xrc_rcv_qp(p.domain, node->receive_qpn[i]),
			      "ibv_reg_xrc_rcv_qp");
		else
			check(ibv_unreg_xrc_rcv_qp(p.domain, node->receive_qpn[i]),
			      "ibv_unreg_xrc_rcv_qp");
	}
}

static void run_process(unsigned int me, int domain_file)
{
	double begin;

	p.me = me;
	if (opt.server)
		connect_client(domain_file);
	else
		connect_server(domain_file);
	meet();
	keep_receive_qps(true);
	printf("process %u: SRQ 0x%06x, send QP 0x%06x, receive QP 0x%06x\n", me, node->srqn[me],
	       p.out->qp->qp_num, p.in->qp->qp_num);
	fflush(stdout);
	meet();

	begin = clock_us();
	if (opt.server)
		play_client();
	else
		play_server();
	node->seconds[me] = (clock_us() - begin) / 1e6;
	meet();

	/*
	 * A call waits until the peer has ended that connection, too: both begin with the same one.
	 */
	rdma_disconnect(opt.server ? p.out : p.in);
	rdma_disconnect(opt.server ? p.in : p.out);
	keep_receive_qps(false);
	rdma_destroy_ep(p.out);
	rdma_destroy_ep(p.in);
	rdma_destroy_ep(p.listener);
	check(ibv_destroy_srq(p.srq), "ibv_destroy_srq");
	check(ibv_close_xrc_domain(p.domain), "ibv_close_xrc_domain");
	check(ibv_destroy_cq(p.cq), "ibv_destroy_cq");
	check(ibv_destroy_comp_channel(p.channel), "ibv_destroy_comp_channel");
	check(ibv_dereg_mr(p.mr), "ibv_dereg_mr");
	check(ibv_dealloc_pd(p.pd), "ibv_dealloc_pd");
	free(p.memory);
}

static void report(void)
{
	double seconds = 0, bytes = 2.0 * opt.size * opt.iters * opt.processes * opt.processes;

	for (unsigned int i = 0; i < opt.processes; i++)
		if (node->seconds[i] > seconds)
			seconds = node->seconds[i];
	if (seconds <= 0)
		seconds = 1e-9;
	printf("%.0f bytes in %.2f seconds = %.2f Mbit/sec\n", bytes, seconds,
	       bytes * 8 / seconds / 1e6);
	printf("%u iters in %.2f seconds = %.2f usec/iter\n", opt.iters * opt.processes, seconds,
	       seconds * 1e6 / opt.iters / opt.processes);
	printf("success\n");
}

/* ---- All of them ---- */

static int run(void)
{
	pthread_barrierattr_t shared;
	pid_t pids[MAX_PROCESSES], pid, parent = getpid();
	unsigned int i, left = opt.processes;
	FILE *file = tmpfile(); /* its inode names the domain; it stays empty */
	int status, failed = 0;

	if (!file)
		return tool_fail("tmpfile");
	node = mmap(NULL, sizeof(*node), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (node == MAP_FAILED)
		return tool_fail("mmap");
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&node->barrier, &shared, opt.processes);

	fflush(stdout);
	for (i = 0; i < opt.processes; i++) {
		pids[i] = fork(); /* before any verb */
		if (pids[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				exit(1);
			run_process(i, fileno(file));
			exit(0);
		}
		if (pids[i] < 0) {
			failed = tool_fail("fork");
			left = i;
			break;
		}
	}
	while (left) {
		for (i = 0; failed && i < opt.processes && pids[i] >= 0; i++)
			if (pids[i] > 0)
				kill(pids[i], SIGKILL);
		pid = wait(&status);
		if (pid < 0)
			break;
		for (i = 0; i < opt.processes && pids[i] >= 0; i++)
			if (pids[i] == pid)
				pids[i] = 0;
		if (status)
			failed = -1;
		left--;
	}
	if (!failed)
		report();
	fclose(file);
	return failed;
}

static int usage(const char *name, int status)
{
	printf("usage: %s [options]         start a server and wait for a client\n"
	       "       %s [options] <host>  connect to the server at <host>\n\n"
	       "  -p, --port=<port>     listen on/connect to <port> and those that follow it\n"
	       "                        (default %d)\n"
	       "  -b, --bind=<address>  listen at <address> (default: any)\n"
	       "  -c, --processes=<n>   processes on each side (default 4, at most %d)\n"
	       "  -s, --size=<size>     size of message to exchange (default 4096)\n"
	       "  -n, --iters=<iters>   number of exchanges of each pair of processes\n"
	       "                        (default 1000)\n"
	       "  -e, --events          sleep on CQ events (default poll)\n"
	       "  -h, --help            print this, and do nothing\n",
	       name, name, PORT, MAX_PROCESSES);
	return status;
}

/* False: not a number in this range. */
static bool number(const char *text, unsigned int min, unsigned int max, unsigned int *value)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 0);
	if (errno || *end || end == text || *text == '-' || n < min || n > max)
		return false;
	*value = (unsigned int)n;
	return true;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"port", required_argument, NULL, 'p'},
		{"bind", required_argument, NULL, 'b'},
		{"processes", required_argument, NULL, 'c'},
		{"size", required_argument, NULL, 's'},
		{"iters", required_argument, NULL, 'n'},
		{"events", no_argument, NULL, 'e'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	bool ok = true;
	int option;

	while (ok && (option = getopt_long(argc, argv, "hp:b:c:s:n:e", options, NULL)) != -1) {
		switch (option) {
		case 'p':
			ok = number(optarg, 1, 65535 - MAX_PROCESSES, &opt.port);
			break;
		case 'b':
			opt.address = optarg;
			break;
		case 'c':
			ok = number(optarg, 1, MAX_PROCESSES, &opt.processes);
			break;
		case 's':
			ok = number(optarg, sizeof(struct message), 1 << 24, &opt.size);
			break;
		case 'n':
			ok = number(optarg, 1, 1 << 24, &opt.iters);
			break;
		case 'e':
			opt.events = true;
			break;
		case 'h':
			return usage(argv[0], 0);
		default:
			ok = false;
		}
	}
	if (!ok || argc - optind > 1)
		return usage(argv[0], 1);
	opt.server = argv[optind];
	return run() ? 1 : 0;
}
