// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Messages between two processes in two instances on one wire, and what they are compared with: one
 * process waits, the other one connects to it and measures (bench/wire).
 *
 * Usage: wire_messages TEST SIZE ITERATIONS CPU PORT [ADDRESS]. The second process prints a number.
 *	send	RC SENDs to and fro; both processes poll. Half a round trip in microseconds
 *	udp	datagrams of 60 bytes to and fro, which is what a SEND of 8 bytes takes; sleeping. The same
 *	chain	RC SENDs in lists of 32, up to 64 at a time. Thousands of messages a second
 *	dgrams	datagrams of 60 bytes, 32 with each system call; the other process acknowledges every 32. The same
 *	write	RC WRITEs, up to 4 at a time. MB/s
 *	tcp	a stream. MB/s
 *	mmsg	datagrams of 4132 bytes, as many as a WRITE has packets, 8 with each system call; the other
 *		process acknowledges every 16. MB/s
 *	gso	the same, 15 with each system call: the kernel takes them apart for the network
 *		(UDP_SEGMENT), and the other process gets them together (UDP_GRO) and acknowledges them. MB/s
 *	least	as gso, and each process copies each packet once and computes its CRC-32, which is the least that has to be done for a
 *		packet between a program's memory and the network. MB/s
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "bench.h"
#include "softhca/packet/crc.h"

#define PATIENCE 120 /* seconds; a run that takes longer has failed */
#define DEPTH	 4   /* WRITEs at a time */
#define CHAIN	 32
#define RECEIVES 1024
#define DATAGRAM 60
#define HEADS	 32   /* in front of the 4096 bytes of a packet */
#define PACKET	 4132 /* UDP payload of a packet with 4096 bytes */
#define BATCH	 8
/* Two of them fit into the receive buffer that a stock kernel grants. */
#define WINDOW	 16
#define SEGMENTS 15  /* a datagram has 64 KiB at most */
#define SEGMENT	 103 /* UDP_SEGMENT and UDP_GRO; headers of glibc before 2.30 do not have them */
#define GRO	 104

struct place {
	uint64_t addr;
	uint32_t qpn, rkey;
	uint16_t lid, pad;
	uint32_t pad2;
};

static size_t size;
static int iterations, control, udp;
static bool measures;
static char *buf;
static struct ibv_qp *qp;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct place theirs;

static void die(const char *what)
{
	fprintf(stderr, "wire_messages: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void need(bool ok, const char *what)
{
	if (!ok)
		die(what);
}

static void connect_control(int port, const char *address)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	need(fd >= 0, "socket");
	if (address) {
		need(inet_pton(AF_INET, address, &at.sin_addr) == 1, address);
		for (int i = 0; connect(fd, (struct sockaddr *)&at, sizeof(at)); i++) {
			need(i < 1000, "connect");
			usleep(10000);
		}
		control = fd;
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		need(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 1), "listen");
		control = accept(fd, NULL, NULL);
		need(control >= 0, "accept");
	}
	setsockopt(control, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void put(const void *data, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = send(control, (const char *)data + done, n - done, 0);

		need(got > 0, "send");
		done += (size_t)got;
	}
}

static void get(void *data, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = recv(control, (char *)data + done, n - done, 0);

		need(got > 0, "receive");
		done += (size_t)got;
	}
}

/* ---- over the wire ---- */

static void receive(void)
{
	struct ibv_sge sge = {(uintptr_t)buf, (uint32_t)size, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	need(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void open_qp(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 2 * CHAIN,
			.max_recv_wr = RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_port_attr port;
	struct place mine;
	struct ibv_pd *pd;

	need(ctx, "open the device");
	pd = ibv_alloc_pd(ctx);
	init.send_cq = init.recv_cq = cq = ibv_create_cq(ctx, 2 * RECEIVES, NULL, NULL, 0);
	need(pd && cq, "make a PD and a CQ");
	mr = ibv_reg_mr(pd, buf, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	qp = ibv_create_qp(pd, &init);
	need(mr && qp && !ibv_query_port(ctx, 1, &port), "make an MR and a QP");
	mine = (struct place){(uintptr_t)buf, qp->qp_num, mr->rkey, port.lid, 0, 0};
	put(&mine, sizeof(mine));
	get(&theirs, sizeof(theirs));
	need(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				 .path_mtu = port.active_mtu,
				 .dest_qp_num = theirs.qpn,
				 .max_dest_rd_atomic = 1,
				 .min_rnr_timer = 12,
				 .ah_attr = {.dlid = theirs.lid, .port_num = 1}};
	need(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 1};
	need(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
	/* One has one buffer: what comes is not looked at. */
	for (int i = 0; i < RECEIVES; i++)
		receive();
	put("x", 1);
	get(&(char){0}, 1);
}

static void post(enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {(uintptr_t)buf, (uint32_t)size, mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = opcode, .sg_list = &sge, .num_sge = 1};

	wr.wr.rdma.remote_addr = theirs.addr;
	wr.wr.rdma.rkey = theirs.rkey;
	need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

/* The completion of a request, or of a receive. */
static bool complete_one(bool of_receive)
{
	struct ibv_wc wc;
	int got = ibv_poll_cq(cq, 1, &wc);

	need(got >= 0 && (!got || !wc.status), "a completion");
	return got && (wc.opcode == IBV_WC_RECV) == of_receive;
}

static void await_message(void)
{
	while (!complete_one(true))
		;
	receive();
}

static void send_round_trip(void)
{
	if (!measures)
		await_message();
	post(IBV_WR_SEND);
	if (measures)
		await_message();
}

static void post_chain(int n)
{
	struct ibv_sge sge = {(uintptr_t)buf, (uint32_t)size, mr->lkey};
	struct ibv_send_wr *bad, wr[CHAIN];

	for (int i = 0; i < n; i++)
		wr[i] = (struct ibv_send_wr){.opcode = IBV_WR_SEND,
					     .next = i + 1 < n ? &wr[i + 1] : NULL,
					     .sg_list = &sge,
					     .num_sge = 1};
	need(!ibv_post_send(qp, wr, &bad), "ibv_post_send");
}

static void send_chains(void)
{
	for (int posted = 0, done = 0; done < iterations; done += complete_one(false)) {
		int n = iterations - posted < CHAIN ? iterations - posted : CHAIN;

		if (n && posted - done <= CHAIN) {
			post_chain(n);
			posted += n;
		}
	}
}

static void take_chains(void)
{
	for (int got = 0; got < iterations; got++)
		await_message();
}

static void write_all(void)
{
	for (int posted = 0, done = 0; done < iterations; done += complete_one(false))
		for (; posted < iterations && posted - done < DEPTH; posted++)
			post(IBV_WR_RDMA_WRITE);
}

/* ---- over sockets ---- */

/* The other end's datagram socket has the address and port of its control connection. */
static void open_udp(void)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	int buffer = 4 << 20;

	udp = socket(AF_INET, SOCK_DGRAM, 0);
	need(udp >= 0 && !getsockname(control, (struct sockaddr *)&at, &len) &&
		     !bind(udp, (struct sockaddr *)&at, len) &&
		     !getpeername(control, (struct sockaddr *)&at, &len) &&
		     !connect(udp, (struct sockaddr *)&at, len),
	     "datagram socket");
	(void)setsockopt(udp, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	put("x", 1);
	get(&(char){0}, 1);
}

static void udp_round_trip(void)
{
	char data[DATAGRAM] = {0};

	if (!measures)
		need(recv(udp, data, sizeof(data), 0) > 0, "recv");
	need(send(udp, data, sizeof(data), 0) > 0, "send");
	if (measures)
		need(recv(udp, data, sizeof(data), 0) > 0, "recv");
}

static int packets(void)
{
	return (int)((size + 4095) / 4096) * iterations;
}

/*
 * A one-way stream of datagrams by sendmmsg() and recvmmsg(), at most two windows ahead of the
 * receiver's answers.
 */
struct stream {
	int at_once; /* datagrams a call, at most CHAIN */
	int window;  /* datagrams an answer */
	size_t size; /* bytes of a datagram */
};
static const struct stream batches = {.at_once = BATCH, .window = WINDOW, .size = PACKET};
static const struct stream datagrams = {.at_once = CHAIN, .window = CHAIN, .size = DATAGRAM};

static void send_stream(const struct stream *s, int total)
{
	struct iovec iov = {buf, s->size};
	struct mmsghdr msg[CHAIN];
	char ack;

	memset(msg, 0, sizeof(msg));
	for (int i = 0; i < s->at_once; i++)
		msg[i].msg_hdr = (struct msghdr){.msg_iov = &iov, .msg_iovlen = 1};
	for (int sent = 0, acked = 0; sent < total; sent += s->at_once) {
		for (; sent + s->at_once - acked > 2 * s->window; acked += s->window)
			need(recv(udp, &ack, 1, 0) == 1, "recv");
		need(sendmmsg(udp, msg, (unsigned int)s->at_once, 0) == s->at_once, "sendmmsg");
	}
}

static void take_stream(const struct stream *s, int total)
{
	static char data[CHAIN][PACKET];
	struct mmsghdr msg[CHAIN];
	struct iovec iov[CHAIN];
	int acked = 0;

	memset(msg, 0, sizeof(msg));
	for (int i = 0; i < s->at_once; i++) {
		iov[i] = (struct iovec){data[i], s->size};
		msg[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
	}
	for (int got = 0; got < total;) {
		int n = recvmmsg(udp, msg, (unsigned int)s->at_once, MSG_WAITFORONE, NULL);

		need(n > 0, "recvmmsg");
		for (got += n; got - acked >= s->window; acked += s->window)
			need(send(udp, "x", 1, 0) == 1, "send");
	}
}

/* n packets, of which the first one has this number: from their places, or to them. */
static uint32_t place_packets(char *packets, int number, int n, bool leave)
{
	uint32_t crcs = 0;

	for (int i = 0; i < n; i++) {
		char *at = packets + (size_t)i * PACKET;
		char *place = buf + (size_t)(number + i) * 4096 % size;

		if (leave)
			memcpy(at + HEADS, place, 4096);
		crcs += sh_crc32(SH_CRC32_BEGIN, at, HEADS + 4096);
		if (!leave)
			memcpy(place, at + HEADS, 4096);
	}
	return crcs;
}

static bool works; /* least, not gso */
static volatile uint32_t sum;

static void send_merged(void)
{
	static char data[SEGMENTS * PACKET];
	int of = PACKET;
	char ack;

	need(!setsockopt(udp, IPPROTO_UDP, SEGMENT, &of, sizeof(of)), "UDP_SEGMENT");
	for (int sent = 0, acked = 0; sent < packets(); sent += SEGMENTS) {
		for (; sent + SEGMENTS - acked > 2 * SEGMENTS; acked += SEGMENTS)
			need(recv(udp, &ack, 1, 0) == 1, "recv");
		if (works)
			sum = place_packets(data, sent, SEGMENTS, true);
		need(send(udp, works ? data : buf, sizeof(data), 0) == sizeof(data), "send");
	}
}

static void take_merged(void)
{
	static char data[1 << 16];
	int on = 1, acked = 0;
	ssize_t n;

	need(!setsockopt(udp, IPPROTO_UDP, GRO, &on, sizeof(on)), "UDP_GRO");
	for (int got = 0; got < packets();) {
		n = recv(udp, data, sizeof(data), 0);
		need(n > 0, "recv");
		if (works)
			sum = place_packets(data, got, (int)n / PACKET, false);
		for (got += (int)n / PACKET; got - acked >= SEGMENTS; acked += SEGMENTS)
			need(send(udp, "x", 1, 0) == 1, "send");
	}
}

/* ---- */

static void run(const char *test)
{
	bool to_and_fro = !strcmp(test, "send") || !strcmp(test, "udp");
	void (*step)(void) = !strcmp(test, "send") ? send_round_trip : udp_round_trip;
	double began;

	if (to_and_fro) {
		struct timing t = time_of(step, iterations);

		if (measures)
			printf("%.4f\n", t.median / 2);
		return;
	}
	works = !strcmp(test, "least");
	began = now_us();
	if (!strcmp(test, "write") && measures)
		write_all();
	else if (!strcmp(test, "chain"))
		(measures ? send_chains : take_chains)();
	else if (!strcmp(test, "dgrams"))
		(measures ? send_stream : take_stream)(&datagrams, iterations);
	else if (!strcmp(test, "mmsg"))
		(measures ? send_stream : take_stream)(&batches, packets());
	else if (!strcmp(test, "gso") || works)
		(measures ? send_merged : take_merged)();
	for (int i = 0; i < iterations && !strcmp(test, "tcp"); i++)
		(measures ? (void (*)(void *, size_t))put : get)(buf, size);
	/* All has arrived. */
	if (!measures)
		put("x", 1);
	else
		get(&(char){0}, 1);
	if (!measures)
		return;
	if (!strcmp(test, "chain") || !strcmp(test, "dgrams"))
		printf("%.4f\n", 1000.0 * iterations / (now_us() - began));
	else
		printf("%.4f\n", (double)size * iterations / (now_us() - began));
}

int main(int argc, char **argv)
{
	static const char *const tests[] = {"send", "udp",  "chain", "dgrams", "write",
					    "tcp",  "mmsg", "gso",   "least"};
	const unsigned int n = sizeof(tests) / sizeof(tests[0]);
	unsigned int test = 0;

	while (argc > 1 && test < n && strcmp(argv[1], tests[test]))
		test++;
	if (argc < 6 || argc > 7 || test == n) {
		fputs("Usage: wire_messages send|udp|chain|dgrams|write|tcp|mmsg|gso|least SIZE "
		      "ITERATIONS CPU PORT [ADDRESS]\n",
		      stderr);
		return 2;
	}
	size = strtoul(argv[2], NULL, 0);
	iterations = atoi(argv[3]);
	measures = argc == 7;
	need(!posix_memalign((void **)&buf, 4096, size + PACKET), "memory");
	memset(buf, 1, size + PACKET);
	alarm(PATIENCE);
	pin_to(atoi(argv[4]));
	connect_control(atoi(argv[5]), measures ? argv[6] : NULL);
	/* Whole lists. */
	if (!strcmp(argv[1], "dgrams"))
		iterations = (iterations + CHAIN - 1) / CHAIN * CHAIN;
	if (!strcmp(argv[1], "send") || !strcmp(argv[1], "write") || !strcmp(argv[1], "chain"))
		open_qp();
	else
		open_udp();
	run(argv[1]);
	/* Until both have done all. */
	put("x", 1);
	get(&(char){0}, 1);
	return fflush(stdout) ? 1 : 0;
}
