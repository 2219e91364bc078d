// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How an MPI library lays out XRC, in one program to read. There are several nodes with P processes
 * (ranks) each. Every rank sends to every rank of the other nodes, and checks what it receives.
 *
 *	RC:	a rank has one QP per remote rank		P * (nodes - 1) per rank
 *	XRC:	a rank has one send QP per remote node, and	    nodes - 1   per rank
 *		creates one receive QP per remote node, which	    nodes - 1   per rank
 *		all ranks of its own node receive through
 *
 * With XRC and with --rc-srq the receives of a rank are in one SRQ. With --rc each QP has receives
 * of its own, and one CQ must have room for all of them. With XRC all SRQs of a node are in one
 * domain, which the ranks share through a file. In each message the sender names the SRQ, and so
 * the rank.
 *
 * One process per node forks the ranks before any verb. On node 0 it also serves the exchange of
 * numbers over TCP, which a real MPI library leaves to its launcher.
 *
 *	cc -o xrc_mesh xrc_mesh.c $(pkg-config --cflags --libs libibverbs)
 *
 * builds it (libibverbs-xrc with the Debian packages); docs/hosts.md says how to run it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define MAX_NODES 64
#define MAX_PROCS 64

static int nodes = 2, procs = 4, node = -1, messages = 16, size = 256, hold;
static int slots = 32; /* receives that each receive queue keeps posted */
static int rc, rc_srq; /* neither: XRC */
static const char *server = "127.0.0.1", *service = "18600";

/* What a rank tells all others, in two rounds: before and after it has made its receive QPs. */
struct card {
	uint16_t lid;
	uint32_t srqn;
	/* XRC: the receive QP for the rank at the same place of each node */
	uint32_t rcv_qpn[MAX_NODES];
	uint32_t qpn[]; /* XRC: the send QP to each node. RC: the QP for each rank */
};
static struct card *mine, *cards;
static size_t card_size;

static const struct card *card_of(int rank)
{
	return (const void *)((const char *)cards + rank * card_size);
}

/* A message names its sender and its number; the content follows from these. */
struct header {
	uint32_t from, number;
};

static int me; /* rank: node * procs + place */
static int place;
static int exchange_fd;
static int domain_fd;

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_xrc_domain *domain;
static struct ibv_qp *send_qp[MAX_NODES];
static struct ibv_qp *rc_qp[MAX_NODES * MAX_PROCS];
static struct ibv_mr *mr;
static uint8_t *buf; /* slots of each receive queue, then one send buffer */
static int queues;   /* receive queues with slots in buf; SRQ: one, RC: one per QP */

static void die(const char *what)
{
	fprintf(stderr, "xrc_mesh: rank %d: %s: %s\n", me, what, strerror(errno));
	exit(1);
}

static void check(int err, const char *what)
{
	if (err) {
		errno = err;
		die(what);
	}
}

/* ---- exchange ---- */

static void transfer(int fd, void *data, size_t len, int out)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = out ? write(fd, (char *)data + done, len - done)
				: read(fd, (char *)data + done, len - done);

		if (n == 0)
			errno = ECONNRESET;
		if (n <= 0 && errno != EINTR)
			die("exchange with the other ranks");
		done += n > 0 ? (size_t)n : 0;
	}
}

#define JOIN_SECONDS 300 /* from one rank to the next; a person may start the other nodes */
#define ROUNDS	     5	 /* calls of all_gather() by each rank */

/* Gives the cards of all ranks to all ranks; also a barrier. */
static void all_gather(void)
{
	transfer(exchange_fd, mine, card_size, 1);
	transfer(exchange_fd, cards, card_size * nodes * procs, 0);
}

/*
 * Waits for the next rank and returns its socket, or -1 with errno. Ends the program when a rank of
 * this node has ended, because that one will never join.
 */
static int accept_rank(int listener)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};
	siginfo_t ended = {0};

	for (int waited = 0; waited < JOIN_SECONDS * 10; waited++) {
		if (poll(&p, 1, 100) > 0)
			return accept(listener, NULL, NULL);
		if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) || ended.si_pid) {
			fprintf(stderr,
				"xrc_mesh: a rank of node 0 has ended before all have joined\n");
			exit(1);
		}
	}
	errno = ETIMEDOUT;
	return -1;
}

/* Runs in the parent on node 0: collects and sends out all cards until the ranks are done. */
static void serve(int listener)
{
	int total = nodes * procs, *fds = calloc(total, sizeof(*fds));
	char *all = calloc(total, card_size);

	if (!fds || !all)
		die("memory");
	for (int i = 0; i < total; i++) {
		uint32_t rank;
		int fd = accept_rank(listener);

		if (fd < 0)
			die("wait for the ranks to join");
		transfer(fd, &rank, sizeof(rank), 0);
		if (rank >= (uint32_t)total || fds[rank]) {
			fputs("xrc_mesh: a rank has joined that is not one of these: give all "
			      "nodes the same --nodes and --procs\n",
			      stderr);
			exit(1);
		}
		fds[rank] = fd;
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < total; i++)
			transfer(fds[i], all + i * card_size, card_size, 0);
		for (int i = 0; i < total; i++)
			transfer(fds[i], all, card_size * total, 1);
	}
	for (int i = 0; i < total; i++)
		close(fds[i]);
	free(fds);
	free(all);
}

static struct addrinfo *resolve(void)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *info;

	if (getaddrinfo(server, service, &hints, &info)) {
		fprintf(stderr, "xrc_mesh: cannot resolve the server's address %s:%s\n", server,
			service);
		exit(1);
	}
	return info;
}

static int listen_here(void)
{
	struct addrinfo *info = resolve();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, info->ai_addr, info->ai_addrlen) || listen(fd, nodes * procs))
		die("listen");
	freeaddrinfo(info);
	return fd;
}

static void join_exchange(void)
{
	struct addrinfo *info = resolve();
	uint32_t rank = me;
	int tries = 0;

	for (;;) {
		exchange_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(exchange_fd, info->ai_addr, info->ai_addrlen) == 0)
			break;
		if (++tries == 200)
			die("connect to node 0");
		close(exchange_fd);
		usleep(50000);
	}
	freeaddrinfo(info);
	transfer(exchange_fd, &rank, sizeof(rank), 1);
}

/* ---- queue pairs ---- */

/* A port of RoCE may take less than InfiniBand's. */
static enum ibv_mtu mtu = IBV_MTU_2048;

static void fill_rtr(struct ibv_qp_attr *attr, uint16_t dlid, uint32_t qpn)
{
	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 5,
		.ah_attr = {.dlid = dlid, .port_num = 1},
	};
}

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                                   \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |            \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK                                                                                   \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |     \
	 IBV_QP_MAX_QP_RD_ATOMIC)

static void connect_qp(struct ibv_qp *qp, uint16_t dlid, uint32_t qpn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	check(ibv_modify_qp(qp, &attr, INIT_MASK), "modify QP to INIT");
	fill_rtr(&attr, dlid, qpn);
	check(ibv_modify_qp(qp, &attr, RTR_MASK), "modify QP to RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	check(ibv_modify_qp(qp, &attr, RTS_MASK), "modify QP to RTS");
}

static struct ibv_qp *create_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = type == IBV_QPT_RC ? srq : NULL,
		.xrc_domain = domain,
		.qp_type = type,
		.cap = {.max_send_wr = 8, .max_send_sge = 1},
	};
	struct ibv_qp *qp;

	if (rc) {
		init.cap.max_recv_wr = slots;
		init.cap.max_recv_sge = 1;
	}
	qp = ibv_create_qp(pd, &init);
	if (!qp)
		die("create QP");
	return qp;
}

/* RC: receive queues are numbered by the rank that they receive from, without those of the own
 * node. */
static int rank_of(int queue)
{
	return queue < node * procs ? queue : queue + procs;
}

/* Posts a slot to the queue that it belongs to. */
static void post_slot(int slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(buf + (size_t)slot * size), .length = size, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	check(srq ? ibv_post_srq_recv(srq, &wr, &bad)
		  : ibv_post_recv(rc_qp[rank_of(slot / slots)], &wr, &bad),
	      "post receive");
}

static void fill_queue(int queue)
{
	for (int i = 0; i < slots; i++)
		post_slot(queue * slots + i);
}

/* Round one: the send QPs of this rank. Round two: a receive QP for the rank at the same place of
 * each other node. */
static void connect_xrc(void)
{
	struct ibv_qp_attr attr;

	for (int n = 0; n < nodes; n++) {
		if (n == node)
			continue;
		send_qp[n] = create_qp(IBV_QPT_XRC);
		mine->qpn[n] = send_qp[n]->qp_num;
	}
	all_gather();
	for (int n = 0; n < nodes; n++) {
		struct ibv_qp_init_attr init = {.xrc_domain = domain};
		const struct card *peer = card_of(n * procs + place);

		if (n == node)
			continue;
		check(ibv_create_xrc_rcv_qp(&init, &mine->rcv_qpn[n]), "create XRC receive QP");
		attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
		check(ibv_modify_xrc_rcv_qp(domain, mine->rcv_qpn[n], &attr, INIT_MASK),
		      "modify receive QP to INIT");
		fill_rtr(&attr, peer->lid, peer->qpn[node]);
		check(ibv_modify_xrc_rcv_qp(domain, mine->rcv_qpn[n], &attr, RTR_MASK),
		      "modify receive QP to RTR");
	}
	all_gather();
	for (int n = 0; n < nodes; n++) {
		const struct card *peer = card_of(n * procs + place);

		if (n == node)
			continue;
		connect_qp(send_qp[n], peer->lid, peer->rcv_qpn[node]);
		/* The creator may end before this rank: the registration keeps the QP alive. */
		for (int p = 0; p < procs; p++)
			check(ibv_reg_xrc_rcv_qp(domain, card_of(node * procs + p)->rcv_qpn[n]),
			      "register receive QP");
	}
}

static void connect_rc(void)
{
	for (int r = 0; r < nodes * procs; r++) {
		if (r / procs == node)
			continue;
		rc_qp[r] = create_qp(IBV_QPT_RC);
		mine->qpn[r] = rc_qp[r]->qp_num;
	}
	all_gather();
	for (int r = 0; r < nodes * procs; r++)
		if (r / procs != node)
			connect_qp(rc_qp[r], card_of(r)->lid, card_of(r)->qpn[me]);
	for (int q = 0; rc && q < queues; q++)
		fill_queue(q);
	all_gather();
}

/* ---- traffic ---- */

static uint8_t content(const struct header *h, int i)
{
	return (uint8_t)(h->from * 31 + h->number * 7 + i);
}

static uint32_t expected[MAX_NODES * MAX_PROCS];
static int received;
static int sending;

static void completion(const struct ibv_wc *wc)
{
	const struct header *h;

	if (wc->status != IBV_WC_SUCCESS) {
		fprintf(stderr, "xrc_mesh: rank %d: completion: %s\n", me,
			ibv_wc_status_str(wc->status));
		exit(1);
	}
	if (!(wc->opcode & IBV_WC_RECV)) {
		sending--;
		return;
	}
	h = (const void *)(buf + wc->wr_id * size);
	if ((int)wc->byte_len != size || (int)h->from >= nodes * procs ||
	    h->number != expected[h->from]++) {
		fprintf(stderr, "xrc_mesh: rank %d: message %u of rank %u is not the next one\n",
			me, h->number, h->from);
		exit(1);
	}
	for (int i = sizeof(*h); i < size; i++) {
		if (((const uint8_t *)h)[i] != content(h, i)) {
			fprintf(stderr,
				"xrc_mesh: rank %d: message %u of rank %u differs at byte %d\n", me,
				h->number, h->from, i);
			exit(1);
		}
	}
	received++;
	post_slot((int)wc->wr_id);
}

static void progress(void)
{
	struct ibv_wc wc[8];
	int n = ibv_poll_cq(cq, 8, wc);

	if (n < 0) {
		errno = EIO; /* ibv_poll_cq() sets none */
		die("poll CQ");
	}
	for (int i = 0; i < n; i++)
		completion(&wc[i]);
}

static void send_to(int rank, uint32_t number)
{
	struct header *h = (void *)(buf + (size_t)queues * slots * size);
	struct ibv_sge sge = {.addr = (uintptr_t)h, .length = size, .lkey = mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_SEND,
					   .send_flags = IBV_SEND_SIGNALED,
					   .xrc_remote_srq_num = card_of(rank)->srqn,
				   },
			   *bad;

	*h = (struct header){.from = me, .number = number};
	for (int i = sizeof(*h); i < size; i++)
		((uint8_t *)h)[i] = content(h, i);
	sending = 1;
	check(ibv_post_send(rc_qp[rank] ? rc_qp[rank] : send_qp[rank / procs], &wr, &bad),
	      "post send");
	while (sending)
		progress();
}

static void traffic(void)
{
	for (int number = 0; number < messages; number++)
		for (int r = 0; r < nodes * procs; r++)
			if (r / procs != node)
				send_to(r, number);
	while (received < messages * procs * (nodes - 1))
		progress();
}

/* ---- one rank ---- */

static void open_all(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = slots, .max_sge = 1}};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	if (list && !list[0])
		errno = ENODEV;
	if (!list || !list[0])
		die("no device");
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!context)
		die("open device");
	check(ibv_query_port(context, 1, &port), "query port");
	mine->lid = port.lid;
	if (port.active_mtu < mtu)
		mtu = port.active_mtu;
	pd = ibv_alloc_pd(context);
	/* All posted receives may complete before the next poll; plus one send. */
	queues = rc ? procs * (nodes - 1) : 1;
	cq = pd ? ibv_create_cq(context, queues * slots + 1, NULL, NULL, 0) : NULL;
	if (!cq)
		die("create PD and CQ");
	if (rc_srq) {
		srq = ibv_create_srq(pd, &attr);
	} else if (!rc) {
		domain = ibv_open_xrc_domain(context, domain_fd, O_CREAT);
		if (!domain)
			die("open XRC domain");
		srq = ibv_create_xrc_srq(pd, domain, cq, &attr);
	}
	if (!srq && !rc)
		die("create SRQ");
	if (srq)
		mine->srqn = srq->xrc_srq_num;
	buf = calloc(queues * slots + 1, size);
	mr = buf ? ibv_reg_mr(pd, buf, (size_t)(queues * slots + 1) * size, IBV_ACCESS_LOCAL_WRITE)
		 : NULL;
	if (!mr)
		die("register memory");
	if (srq)
		fill_queue(0);
}

static void close_all(void)
{
	for (int r = 0; r < nodes * procs; r++)
		if (rc_qp[r])
			check(ibv_destroy_qp(rc_qp[r]), "destroy QP");
	for (int n = 0; n < nodes; n++) {
		if (!send_qp[n])
			continue;
		check(ibv_destroy_qp(send_qp[n]), "destroy QP");
		for (int p = 0; p < procs; p++)
			check(ibv_unreg_xrc_rcv_qp(domain, card_of(node * procs + p)->rcv_qpn[n]),
			      "unregister receive QP");
	}
	if (srq)
		check(ibv_destroy_srq(srq), "destroy SRQ");
	if (domain)
		check(ibv_close_xrc_domain(domain), "close XRC domain");
	check(ibv_dereg_mr(mr), "deregister memory");
	check(ibv_destroy_cq(cq), "destroy CQ");
	check(ibv_dealloc_pd(pd), "deallocate PD");
	check(ibv_close_device(context), "close device");
	free(buf);
}

/* Waits so that the user can inspect the instance while the mesh exists. */
static void wait_for_a_line(void)
{
	char c;

	puts("connected");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
		;
}

/* What follows the name of things that are counted. */
static const char *plural(int n)
{
	return n == 1 ? "" : "s";
}

static void run_rank(int p)
{
	const char *name = rc ? "RC" : rc_srq ? "RC with SRQ" : "XRC";
	int queues = rc || rc_srq ? procs * (nodes - 1) : 2 * (nodes - 1);

	place = p;
	me = node * procs + p;
	cards = calloc(nodes * procs, card_size);
	mine = calloc(1, card_size);
	if (!cards || !mine)
		die("memory");
	open_all();
	join_exchange();
	if (rc || rc_srq)
		connect_rc();
	else
		connect_xrc();
	all_gather(); /* all ranks are connected */
	traffic();
	all_gather(); /* all ranks have received all messages */
	if (me == 0 && hold)
		wait_for_a_line();
	all_gather(); /* node 0 has got its line, if it waited for one */
	if (me == 0)
		printf("%s: %d nodes of %d rank%s: %d message%s verified by each rank; %d QP%s per "
		       "rank\n",
		       name, nodes, procs, plural(procs), received, plural(received), queues,
		       plural(queues));
	close_all();
	free(mine);
	free(cards);
	close(exchange_fd);
}

static void usage(int status, const char *wrong)
{
	if (wrong)
		fprintf(stderr, "xrc_mesh: %s\n", wrong);
	fputs("Usage: xrc_mesh [--rc|--rc-srq] [--nodes N] [--procs P] --node K [--server HOST] "
	      "[--port PORT] [--messages M]\n"
	      "                [--size S] [--slots R] [--hold]\n"
	      "Start it once on each node; node 0 is the one that --server names. XRC, unless --rc "
	      "(receives per QP) or\n"
	      "--rc-srq (RC with a shared receive queue). --hold, on node 0: when all messages "
	      "have been verified it prints\n"
	      "\"connected\", and all processes stay until a line, or the end, comes on its "
	      "standard input.\n",
	      status ? stderr : stdout);
	exit(status);
}

static void options(int argc, char **argv)
{
	static const struct option longs[] = {
		{"rc", no_argument, &rc, 1},
		{"rc-srq", no_argument, &rc_srq, 1},
		{"hold", no_argument, &hold, 1},
		{"slots", required_argument, NULL, 'r'},
		{"nodes", required_argument, NULL, 'N'},
		{"procs", required_argument, NULL, 'P'},
		{"node", required_argument, NULL, 'k'},
		{"server", required_argument, NULL, 's'},
		{"port", required_argument, NULL, 'p'},
		{"messages", required_argument, NULL, 'm'},
		{"size", required_argument, NULL, 'S'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};

	for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
		switch (c) {
		case 0:
			break;
		case 'N':
			nodes = atoi(optarg);
			break;
		case 'P':
			procs = atoi(optarg);
			break;
		case 'k':
			node = atoi(optarg);
			break;
		case 's':
			server = optarg;
			break;
		case 'p':
			service = optarg;
			break;
		case 'm':
			messages = atoi(optarg);
			break;
		case 'S':
			size = atoi(optarg);
			break;
		case 'r':
			slots = atoi(optarg);
			break;
		case 'h':
			usage(0, NULL);
			break;
		/* getopt_long() has said what is wrong. */
		default:
			usage(2, NULL);
		}
	}
	if (optind != argc)
		usage(2, "it takes only options");
	if (node < 0)
		usage(2, "--node must say which node this is: 0 for the one that --server names, 1 "
			 "and so on for the others");
	if (nodes < 2 || nodes > MAX_NODES || node >= nodes)
		usage(2, "--nodes must be from 2 to 64, and --node less");
	if (procs < 1 || procs > MAX_PROCS)
		usage(2, "--procs must be from 1 to 64");
	if (messages < 1 || slots < 1 || size < (int)sizeof(struct header))
		usage(2, "--messages and --slots must be at least 1, and --size at least 8");
	if (rc && rc_srq)
		usage(2, "--rc and --rc-srq exclude each other");
	card_size = sizeof(struct card) + sizeof(uint32_t) * nodes * procs;
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/xrc-mesh-XXXXXX";
	int listener = -1, failed = 0, status;

	options(argc, argv);
	/* The file only leads the ranks of this node to the same domain. It needs neither name nor
	 * content. */
	domain_fd = mkstemp(path);
	if (domain_fd < 0)
		die("make a file for the domain");
	unlink(path);
	if (node == 0)
		listener = listen_here();
	fflush(NULL);
	for (int p = 0; p < procs; p++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0) {
			if (listener >= 0)
				close(listener);
			run_rank(p);
			exit(0);
		}
	}
	if (node == 0)
		serve(listener);
	for (int p = 0; p < procs; p++)
		failed |= wait(&status) < 0 || status;
	return failed;
}
