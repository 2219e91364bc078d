// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What messages between two processes cost, on the verbs API alone: half round trips, reads and the
 * rate of one QP, for bench/messages. The program forks into two sides before any verb; each side
 * has a core. It verifies the data after the clock has stopped.
 *
 * Usage: verbs_messages [SERVICE-]TEST SIZE ITERATIONS CPU CPU [OFFSET]. Prints one number:
 * microseconds, or million messages a second.
 *	send, xrc	half round trip of a SEND, both sides polling
 *	events		the same over RC, both sides sleeping on a completion channel
 *	write		half round trip of an RDMA WRITE, the target polls its memory
 *	read		one RDMA READ, from the post to its completion; the other side sleeps
 *	rate		SENDs on one QP, one in CHAIN signaled
 *	paced		like send, but each side polls only when the message has arrived: for
 *			counting instructions (bench/device), for which posts and polls are
 *			functions
 * SERVICE is uc, ud, or mcast: UD to a group in which the other side is the only member. Without it
 * messages go over RC. send, rate and paced have services. Nothing repeats a message that UC or UD
 * has lost, so such a run ends by its time limit.
 *
 * With OFFSET the buffers come from the heap, and the receiving one is that much further from the
 * start of its page than the sending one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "bench.h"

#define TX_DEPTH     512
#define RECEIVES     32 /* that a ping-pong keeps posted */
#define SIGNAL_EVERY 16
#define CHAIN	     32	  /* requests per post, when measuring a rate */
#define WINDOW	     2048 /* receives kept posted when measuring a rate */
#define INLINE_MAX   28
#define PATIENCE     120 /* seconds; a run that takes longer has failed */

enum test { SEND, XRC, EVENTS, WRITE, READ, RATE, PACED };
static const char *const names[] = {"send", "xrc", "events", "write", "read", "rate", "paced"};

enum service { RC, UC, UD, MCAST };
static const char *const prefixes[] = {"", "uc-", "ud-", "mcast-"};

#define GRH_LEN 40
#define MLID	0xc001
#define QKEY	0x11

static enum test test;
static enum service service;
static uint32_t size;
static int iterations, side, peer_fd;

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *scq, *rcq;
static struct ibv_srq *srq;
static struct ibv_xrc_domain *domain;
static struct ibv_qp *qp;
static struct ibv_ah *ah;
static uint8_t *out, *in;
static uint64_t *credit; /* UD: how many receives the receiver has posted; both sides map it */
static struct ibv_mr *out_mr, *in_mr;

/* What the sides tell each other. */
static struct card {
	uint64_t in_addr, out_addr;
	uint32_t qpn, rcv_qpn, srqn, in_rkey, out_rkey;
	uint16_t lid;
} mine, theirs;

static void die(const char *what)
{
	fprintf(stderr, "verbs_messages: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void check(int err, const char *what)
{
	if (err) {
		errno = err;
		die(what);
	}
}

/* ---- setting up ---- */

/* Exchanges the cards; also a barrier. */
static void exchange(void)
{
	if (write(peer_fd, &mine, sizeof(mine)) != sizeof(mine) ||
	    recv(peer_fd, &theirs, sizeof(theirs), MSG_WAITALL) != sizeof(theirs))
		die("exchange with the other side");
}

static uint8_t content(int from, uint32_t i)
{
	return (uint8_t)(from * 101 + i * 7 + (i >> 8) + 1);
}

static bool is_datagram(void)
{
	return service == UD || service == MCAST;
}

/* How many bytes are in front of what was received. */
static uint32_t head(void)
{
	return is_datagram() ? GRH_LEN : 0;
}

/* Maps pages that contain nothing else. */
static uint8_t *map_buffer(void)
{
	void *p = mmap(NULL, size + head(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	return p == MAP_FAILED ? NULL : p;
}

static void make_buffers(int offset)
{
	if (offset < 0) {
		out = map_buffer();
		in = map_buffer();
	} else {
		uint8_t *room;

		out = malloc(size);
		room = malloc(size + head() + 4096);
		in = room ? room + (((uintptr_t)out + offset - (uintptr_t)room) & 4095) : NULL;
	}
	if (!out || !in)
		die("memory");
	for (uint32_t i = 0; i < size; i++)
		out[i] = content(side, i);
	memset(in, 0, size + head());
	out_mr = ibv_reg_mr(pd, out, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	in_mr = ibv_reg_mr(pd, in, size + head(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!out_mr || !in_mr)
		die("register memory");
}

static void open_all(int offset)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	if (!list || !list[0])
		die("no device");
	context = ibv_open_device(list[0]);
	if (!context)
		die("open device");
	ibv_free_device_list(list);
	check(ibv_query_port(context, 1, &port), "query port");
	mine.lid = port.lid;
	pd = ibv_alloc_pd(context);
	if (test == EVENTS) {
		channel = ibv_create_comp_channel(context);
		if (!channel)
			die("create completion channel");
	}
	scq = ibv_create_cq(context, TX_DEPTH, NULL, NULL, 0);
	rcq = ibv_create_cq(context, WINDOW, NULL, channel, 0);
	if (!pd || !scq || !rcq)
		die("create PD and CQs");
	make_buffers(offset);
	mine.in_addr = (uintptr_t)in;
	mine.out_addr = (uintptr_t)out;
	mine.in_rkey = in_mr->rkey;
	mine.out_rkey = out_mr->rkey;
}

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                                   \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |            \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK                                                                                   \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |     \
	 IBV_QP_MAX_QP_RD_ATOMIC)

static const struct ibv_qp_attr to_init = {
	.qp_state = IBV_QPS_INIT,
	.port_num = 1,
	.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
};

static struct ibv_qp_attr to_rtr(uint32_t qpn)
{
	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_2048,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.dlid = theirs.lid, .port_num = 1},
	};
}

/* The group of which that side is the only member. */
static union ibv_gid group(int of)
{
	union ibv_gid gid = {.raw = {0xff, 0x12, 0xa0, 0x1b}};

	gid.raw[15] = (uint8_t)(1 + of);
	return gid;
}

/* Brings a QP of UD up, and makes the address of the other side. */
static void start_datagrams(void)
{
	struct ibv_ah_attr to = {.dlid = theirs.lid, .port_num = 1};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	union ibv_gid gid = group(side);

	check(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	      "modify QP to INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE), "modify QP to RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "modify QP to RTS");
	if (service == MCAST) {
		check(ibv_attach_mcast(qp, &gid, MLID), "join the group");
		to.dlid = MLID;
		to.is_global = 1;
		to.grh.dgid = group(!side);
		to.grh.hop_limit = 1;
	}
	ah = ibv_create_ah(pd, &to);
	if (!ah)
		die("create address handle");
}

static void connect_qp(uint32_t to)
{
	const int of_rc = service == RC ? 0 : ~0;
	struct ibv_qp_attr attr = to_init;

	if (service == UC)
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	check(ibv_modify_qp(qp, &attr, INIT_MASK), "modify QP to INIT");
	attr = to_rtr(to);
	check(ibv_modify_qp(qp, &attr,
			    RTR_MASK &
				    ~(of_rc & (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))),
	      "modify QP to RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	check(ibv_modify_qp(qp, &attr, RTS_MASK & ~(of_rc & ~(IBV_QP_STATE | IBV_QP_SQ_PSN))),
	      "modify QP to RTS");
}

static void make_qps(void)
{
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = RECEIVES, .max_sge = 1}};
	struct ibv_qp_init_attr rcv_init = {0}, init = {
							.send_cq = scq,
							.recv_cq = rcq,
							.qp_type = test == XRC	   ? IBV_QPT_XRC
								   : is_datagram() ? IBV_QPT_UD
								   : service == UC ? IBV_QPT_UC
										   : IBV_QPT_RC,
							.cap = {.max_send_wr = TX_DEPTH,
								.max_send_sge = 1,
								.max_inline_data = INLINE_MAX},
						};
	struct ibv_qp_attr attr = to_init;

	if (test == XRC) {
		domain = ibv_open_xrc_domain(context, -1, O_CREAT);
		srq = domain ? ibv_create_xrc_srq(pd, domain, rcq, &srq_init) : NULL;
		if (!srq)
			die("create domain and SRQ");
		mine.srqn = srq->xrc_srq_num;
		init.xrc_domain = rcv_init.xrc_domain = domain;
		check(ibv_create_xrc_rcv_qp(&rcv_init, &mine.rcv_qpn), "create XRC receive QP");
	} else {
		init.cap.max_recv_wr = test == RATE ? WINDOW : RECEIVES;
		init.cap.max_recv_sge = 1;
	}
	qp = ibv_create_qp(pd, &init);
	if (!qp)
		die("create QP");
	mine.qpn = qp->qp_num;
	exchange();
	if (test == XRC) {
		check(ibv_modify_xrc_rcv_qp(domain, mine.rcv_qpn, &attr, INIT_MASK),
		      "receive QP to INIT");
		attr = to_rtr(theirs.qpn);
		check(ibv_modify_xrc_rcv_qp(domain, mine.rcv_qpn, &attr, RTR_MASK),
		      "receive QP to RTR");
	}
	if (is_datagram())
		start_datagrams();
	else
		connect_qp(test == XRC ? theirs.rcv_qpn : theirs.qpn);
}

static void close_all(void)
{
	union ibv_gid gid = group(side);

	if (service == MCAST)
		check(ibv_detach_mcast(qp, &gid, MLID), "leave the group");
	check(ibv_destroy_qp(qp), "destroy QP");
	if (ah)
		check(ibv_destroy_ah(ah), "destroy address handle");
	if (test == XRC)
		check(ibv_unreg_xrc_rcv_qp(domain, mine.rcv_qpn), "unregister receive QP");
	if (srq)
		check(ibv_destroy_srq(srq), "destroy SRQ");
	if (domain)
		check(ibv_close_xrc_domain(domain), "close XRC domain");
	check(ibv_dereg_mr(in_mr), "deregister memory");
	check(ibv_dereg_mr(out_mr), "deregister memory");
	check(ibv_destroy_cq(rcq), "destroy CQ");
	check(ibv_destroy_cq(scq), "destroy CQ");
	if (channel)
		check(ibv_destroy_comp_channel(channel), "destroy completion channel");
	check(ibv_dealloc_pd(pd), "deallocate PD");
	check(ibv_close_device(context), "close device");
}

/* ---- the steps of a message ---- */

static struct ibv_sge send_sge, recv_sge;
static struct ibv_send_wr send_wr[CHAIN], *bad_send;
static struct ibv_recv_wr recv_wr[CHAIN], *bad_recv;
static struct ibv_wc wc[CHAIN];
static unsigned int posted;

static void prepare(void)
{
	send_sge = (struct ibv_sge){(uintptr_t)out, size, out_mr->lkey};
	recv_sge = (struct ibv_sge){(uintptr_t)in, size + head(), in_mr->lkey};
	for (int i = 0; i < CHAIN; i++) {
		recv_wr[i] = (struct ibv_recv_wr){.sg_list = &recv_sge, .num_sge = 1};
		send_wr[i] = (struct ibv_send_wr){
			.sg_list = &send_sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = size <= INLINE_MAX ? IBV_SEND_INLINE : 0,
			.xrc_remote_srq_num = theirs.srqn,
		};
		if (!is_datagram())
			continue;
		send_wr[i].wr.ud.ah = ah;
		send_wr[i].wr.ud.remote_qpn = service == MCAST ? 0xffffff : theirs.qpn;
		send_wr[i].wr.ud.remote_qkey = QKEY;
	}
	if (test == WRITE) {
		send_wr[0].opcode = IBV_WR_RDMA_WRITE;
		send_wr[0].wr.rdma.remote_addr = theirs.in_addr;
		send_wr[0].wr.rdma.rkey = theirs.in_rkey;
	}
	if (test == READ) {
		send_sge = recv_sge;
		send_wr[0].opcode = IBV_WR_RDMA_READ;
		send_wr[0].send_flags = IBV_SEND_SIGNALED;
		send_wr[0].wr.rdma.remote_addr = theirs.out_addr;
		send_wr[0].wr.rdma.rkey = theirs.out_rkey;
	}
	if (test == RATE) {
		for (int i = 0; i + 1 < CHAIN; i++) {
			send_wr[i].next = &send_wr[i + 1];
			recv_wr[i].next = &recv_wr[i + 1];
		}
		send_wr[CHAIN - 1].send_flags |= IBV_SEND_SIGNALED;
	}
}

static __attribute__((noinline)) int measured_send(struct ibv_send_wr *wr)
{
	return ibv_post_send(qp, wr, &bad_send);
}

static __attribute__((noinline)) int measured_recv(void)
{
	return srq ? ibv_post_srq_recv(srq, recv_wr, &bad_recv)
		   : ibv_post_recv(qp, recv_wr, &bad_recv);
}

static __attribute__((noinline)) int measured_poll(struct ibv_cq *cq, int at_most)
{
	return ibv_poll_cq(cq, at_most, wc);
}

/* Polls until there is at least one completion. Returns how many it took. */
static int complete(struct ibv_cq *cq, int at_most)
{
	int n;

	while ((n = measured_poll(cq, at_most)) == 0)
		;
	if (n < 0)
		die("poll CQ");
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "verbs_messages: completion: %s\n",
				ibv_wc_status_str(wc[i].status));
			exit(1);
		}
	}
	return n;
}

static void post_receive(void)
{
	check(measured_recv(), "post receive");
}

/* Posts a send. One in SIGNAL_EVERY is signaled; its completion is taken when the next signaled one
 * is due. */
static void post_one(void)
{
	if (++posted % SIGNAL_EVERY == 0) {
		if (posted > SIGNAL_EVERY)
			complete(scq, 1);
		send_wr[0].send_flags |= IBV_SEND_SIGNALED;
	} else {
		send_wr[0].send_flags &= ~IBV_SEND_SIGNALED;
	}
	check(measured_send(send_wr), "post send");
}

static void receive_asleep(void)
{
	struct ibv_cq *cq;
	void *unused;

	while (measured_poll(rcq, 1) == 0) {
		if (ibv_get_cq_event(channel, &cq, &unused))
			die("get CQ event");
		ibv_ack_cq_events(cq, 1);
		check(ibv_req_notify_cq(cq, 0), "request notification");
	}
	if (wc[0].status != IBV_WC_SUCCESS) {
		fprintf(stderr, "verbs_messages: %s\n", ibv_wc_status_str(wc[0].status));
		exit(1);
	}
}

static void receive(void)
{
	if (test == EVENTS)
		receive_asleep();
	else
		complete(rcq, 1);
}

static void round_trip(void)
{
	if (side == 0)
		post_one();
	receive();
	if (side == 1)
		post_one();
	post_receive();
}

static void paced_round_trip(void)
{
	if (side == 0)
		post_one();
	exchange();
	if (side == 0)
		exchange();
	receive();
	if (side == 1) {
		post_one();
		exchange();
	}
	post_receive();
}

/* The last eight bytes contain the number of the message. */
static void write_round_trip(void)
{
	volatile uint64_t *arrived = (void *)(in + size - 8);
	static uint64_t number;

	number++;
	if (side == 1)
		while (*arrived != number)
			;
	*(uint64_t *)(out + size - 8) = number;
	post_one();
	if (side == 0)
		while (*arrived != number)
			;
}

static void read_once(void)
{
	check(measured_send(send_wr), "post send");
	complete(scq, 1);
}

/* The receiver writes into the sender's memory how many receives it has posted so far. */
static void send_chain(void)
{
	volatile uint64_t *receives = is_datagram() ? credit : (void *)in;
	static uint64_t sent, completed;

	while (sent + CHAIN > *receives)
		;
	while (sent + CHAIN - completed > TX_DEPTH)
		completed += (uint64_t)CHAIN * complete(scq, CHAIN);
	check(measured_send(send_wr), "post send");
	sent += CHAIN;
}

static void receive_chain(void)
{
	static uint64_t receives = WINDOW, credits;
	static int got;
	struct ibv_sge sge = {(uintptr_t)&receives, sizeof(receives), 0};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE,
		.wr.rdma = {.remote_addr = theirs.in_addr, .rkey = theirs.in_rkey},
	};

	while (got < CHAIN)
		got += complete(rcq, CHAIN);
	got -= CHAIN;
	check(measured_recv(), "post receive");
	receives += CHAIN;
	if (receives % (WINDOW / 8))
		return;
	if (is_datagram()) {
		*(volatile uint64_t *)credit = receives;
		return;
	}
	if (++credits % SIGNAL_EVERY == 0) {
		if (credits > SIGNAL_EVERY)
			complete(scq, 1);
		wr.send_flags |= IBV_SEND_SIGNALED;
	}
	check(measured_send(&wr), "post credit");
}

/* ---- one side ---- */

static void verify(void)
{
	uint32_t len = test == WRITE ? size - 8 : size;

	if ((test == READ && side == 1) || (test == RATE && side == 0))
		return;
	for (uint32_t i = 0; i < len; i++) {
		if (in[head() + i] != content(!side, i)) {
			fprintf(stderr, "verbs_messages: byte %u differs\n", i);
			exit(1);
		}
	}
}

static void run_side(int cpu, int offset)
{
	void (*step)(void) = round_trip;
	struct timing t = {0, 0};

	alarm(PATIENCE);
	pin_to(cpu);
	open_all(offset);
	make_qps();
	prepare();
	if (test == WRITE)
		step = write_round_trip;
	else if (test == PACED)
		step = paced_round_trip;
	else if (test == READ)
		step = side == 0 ? read_once : NULL;
	else if (test == RATE)
		step = side == 0 ? send_chain : receive_chain;
	if (test == RATE && side == 0)
		*(volatile uint64_t *)(is_datagram() ? (void *)credit : in) = WINDOW;
	if (test == RATE && side == 1) {
		for (int i = 0; i < WINDOW / CHAIN; i++)
			post_receive();
	} else if (test == SEND || test == XRC || test == EVENTS || test == PACED) {
		for (int i = 0; i < RECEIVES; i++)
			post_receive();
	}
	if (test == EVENTS)
		check(ibv_req_notify_cq(rcq, 0), "request notification");
	exchange();
	if (step)
		t = time_of(step, test == RATE ? iterations / CHAIN : iterations);
	exchange();
	verify();
	if (side == 0 && test == RATE)
		printf("%.4f\n", CHAIN / t.mean);
	else if (side == 0)
		printf("%.4f\n", test == READ ? t.median : t.median / 2);
	close_all();
}

static bool find_test(const char *name)
{
	for (service = UC; service <= MCAST; service++)
		if (!strncmp(name, prefixes[service], strlen(prefixes[service])))
			break;
	if (service > MCAST)
		service = RC;
	name += strlen(prefixes[service]);
	while (test < sizeof(names) / sizeof(*names) && strcmp(name, names[test]))
		test++;
	return test < sizeof(names) / sizeof(*names) &&
	       (service == RC || test == SEND || test == RATE || test == PACED);
}

int main(int argc, char **argv)
{
	int fds[2], cpus[2], offset = -1, status;
	pid_t child;

	if (argc < 6 || argc > 7 || !find_test(argv[1])) {
		fputs("Usage: verbs_messages [uc-|ud-|mcast-]send|rate|paced or xrc|events|write|"
		      "read SIZE ITERATIONS CPU CPU [OFFSET]\n",
		      stderr);
		return 2;
	}
	size = strtoul(argv[2], NULL, 0);
	iterations = atoi(argv[3]);
	cpus[0] = atoi(argv[4]);
	cpus[1] = atoi(argv[5]);
	if (argc == 7)
		offset = atoi(argv[6]) & 4095;
	if (size < 8 || size > 1 << 30 || iterations < 1) {
		fputs("verbs_messages: sizes are 8 bytes to 1 GiB, iterations 1 and more\n",
		      stderr);
		return 2;
	}
	credit = mmap(NULL, sizeof(*credit), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (credit == MAP_FAILED)
		die("shared memory");
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		die("socketpair");
	child = fork();
	if (child < 0)
		die("fork");
	side = child == 0;
	peer_fd = fds[side];
	close(fds[!side]);
	run_side(cpus[side], offset);
	if (side == 1)
		return 0;
	return fflush(stdout) || waitpid(child, &status, 0) < 0 || status ? 1 : 0;
}
