// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * For wire.sh, and for tests/kernel/guest/wire.sh, where one of the two has another device. A pair of
 * processes in two instances, which agree over TCP and then do every operation of RC between them,
 * with their contents verified:
 *
 *	wire_peers all|lossy|killed|old|new|soak|outlives|stopped|standing|left|last|uc|ud -p PORT		waits for the other one
 *	wire_peers all|lossy|killed|old|new|soak|outlives|stopped|standing|left|last|uc|ud -p PORT ADDRESS	connects, and does the work
 *
 * With the index of a GID in the environment variable GID_INDEX, the process names its port by that GID
 * alone, as peers without LIDs do. DEVICE: the name of the device, else the first.
 *
 * The environment variable PSN has the number of the QPs' first packet. Without it the PSNs wrap in the middle of a SEND of 5
 * packets (all), of a WRITE of 20 or 65 (lossy, uc), or of a SEND of 20 (last).
 *
 * all: SENDs, WRITEs, READs, atomics, a receive that comes late, and a key that is wrong.
 *
 * lossy: the same with less data, for a wire that loses packets. If an answer is lost that no other
 * one follows, the requester waits for its time-out, here four times 134 ms; so the sizes are few. The
 * wrong key is left out: a responder in ERR does not repeat its NAK, so whoever loses it gets the
 * completion that a dead node gives.
 *
 * outlives: the second process kills those whose numbers are in the environment variable KILLED, while
 * it sends. These are daemons, and nobody notices.
 *
 * stopped: the same with SIGSTOP, for a peer's daemon and what sends for it. A QP with a short time-out gets the completion that a dead
 * node gives. Then they go on, and the first QP has lost nothing.
 *
 * standing: the second process stops the first one, and reads and writes its memory all the same.
 *
 * left: as outlives, with daemons and what sends for them. The second process gets a completion for each
 * request: those that are on their way then, or that it posts until the first one fails, and those on another QP after that.
 *
 * last: the second process sends more than a window holds, destroys its QP at once, and ends.
 *
 * uc: WRITEs over UC, with and without immediate data. ud: datagrams with and without it. A wire that
 * loses packets would lose some of these for good.
 *
 * old: the first process is killed while the second one sends, which goes on until the retries have
 * run out, for some seconds.
 *
 * new: as lossy, again and again on the same QPs, until the process whose number is in the environment
 * variable OLD has ended: one of "old", which sends to a QP that had the number of the first process's.
 *
 * soak: the same until any other process has ended. Both sleep a little where there is no completion, and the second one says how often
 * it has done all.
 *
 * killed: the first process is killed while the second one sends. After that, the second one gets
 * the completion that a dead node gives, on another QP with a short time-out.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define HALF ((size_t)2 << 20)
/* active() has sent 108 packets when it comes to messages of 4097 bytes; with few sizes 92 when it comes to a WRITE of 20001. */
#define PSN	 (0x1000000 - 110)
#define PSN_LAST (0x1000000 - 8)

struct place {
	uint64_t addr;
	uint32_t qpn, rkey;
	uint16_t lid, pad;
	uint32_t pad2;
	union ibv_gid gid; /* with lid 0 */
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static unsigned char *buf; /* the first half is for sending, the second for what comes */
static struct place mine, theirs;
static uint8_t gid_index;
static uint32_t first_psn = PSN;
static enum ibv_qp_type type = IBV_QPT_RC;
static bool sleeps; /* where there is no completion */
static int tcp;

#define NEED(what)                                                                                 \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "line %d: not true: %s\n", __LINE__, #what);               \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static void connect_tcp(int port, const char *host)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	if (host) {
		NEED(inet_pton(AF_INET, host, &at.sin_addr) == 1);
		NEED(!connect(fd, (struct sockaddr *)&at, sizeof(at)));
		tcp = fd;
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		NEED(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 1));
		tcp = accept(fd, NULL, NULL);
		NEED(tcp >= 0);
	}
	setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void say(void)
{
	NEED(write(tcp, "x", 1) == 1);
}

static void hear(void)
{
	char byte;

	NEED(read(tcp, &byte, 1) == 1);
}

static void make(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;
	const char *index = getenv("GID_INDEX"), *name = getenv("DEVICE");

	NEED(list && list[0]);
	while (name && *list && strcmp(ibv_get_device_name(*list), name))
		list++;
	NEED(*list);
	ctx = ibv_open_device(*list);
	NEED(ctx && !posix_memalign((void **)&buf, 4096, 2 * HALF));
	cq = ibv_create_cq(ctx, 256, NULL, NULL, 0);
	pd = ibv_alloc_pd(ctx);
	NEED(cq && pd);
	mr = ibv_reg_mr(pd, buf, 2 * HALF,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_ATOMIC);
	NEED(mr && !ibv_query_port(ctx, 1, &port));
	mine = (struct place){
		.addr = (uintptr_t)buf, .rkey = mr->rkey, .lid = index ? 0 : port.lid};
	if (index) {
		gid_index = (uint8_t)atoi(index);
		NEED(!ibv_query_gid(ctx, 1, gid_index, &mine.gid));
	}
}

/* Makes a QP, and connects it to the one that the other process makes. */
static void join(int timeout, int retries)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
		.sq_sig_all = 1,
		.send_cq = cq,
		.recv_cq = cq,
	};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_READ |
						   IBV_ACCESS_REMOTE_WRITE |
						   IBV_ACCESS_REMOTE_ATOMIC};

	qp = ibv_create_qp(pd, &init);
	NEED(qp);
	mine.qpn = qp->qp_num;
	NEED(write(tcp, &mine, sizeof(mine)) == sizeof(mine));
	NEED(recv(tcp, &theirs, sizeof(theirs), MSG_WAITALL) == sizeof(theirs));
	NEED(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = theirs.qpn,
		.rq_psn = first_psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.dlid = theirs.lid,
			    .is_global = !theirs.lid,
			    .grh = {.dgid = theirs.gid, .sgid_index = gid_index, .hop_limit = 64},
			    .port_num = 1}};
	NEED(!ibv_modify_qp(
		qp, &a,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			(type == IBV_QPT_UC ? 0
					    : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)));
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = (uint8_t)timeout,
				 .retry_cnt = (uint8_t)retries,
				 .rnr_retry = 7,
				 .sq_psn = first_psn,
				 .max_rd_atomic = 4};
	NEED(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_SQ_PSN |
				    (type == IBV_QPT_UC ? 0
							: IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
								  IBV_QP_RNR_RETRY |
								  IBV_QP_MAX_QP_RD_ATOMIC)));
}

#define QKEY 0x11111111
static struct ibv_ah *ah;

/* Makes a QP of UD, and an address for that of the other process. */
static void join_ud(void)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.send_cq = cq,
		.recv_cq = cq,
	};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_ah_attr to;

	qp = ibv_create_qp(pd, &init);
	NEED(qp);
	mine.qpn = qp->qp_num;
	NEED(write(tcp, &mine, sizeof(mine)) == sizeof(mine));
	NEED(recv(tcp, &theirs, sizeof(theirs), MSG_WAITALL) == sizeof(theirs));
	NEED(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	a.qp_state = IBV_QPS_RTR;
	NEED(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_RTS;
	NEED(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
	to = (struct ibv_ah_attr){
		.dlid = theirs.lid,
		.is_global = !theirs.lid,
		.grh = {.dgid = theirs.gid, .sgid_index = gid_index, .hop_limit = 64},
		.port_num = 1};
	ah = ibv_create_ah(pd, &to);
	NEED(ah);
}

static void post(enum ibv_wr_opcode opcode, size_t local, uint32_t len, uint64_t remote,
		 uint32_t rkey, uint64_t add, uint64_t swap)
{
	struct ibv_sge sge = {(uintptr_t)buf + local, len, mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .opcode = opcode,
					 .sg_list = &sge,
					 .num_sge = len ? 1 : 0,
					 .imm_data = htonl(len ^ 0x5a5a),
				 };

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = add;
		wr.wr.atomic.swap = swap;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = rkey;
	}
	NEED(!ibv_post_send(qp, &wr, &bad));
}

static void post_receive(size_t local, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)buf + local, len, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	NEED(!ibv_post_recv(qp, &wr, &bad));
}

static struct ibv_wc completion(void)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		if (sleeps)
			usleep(500);
	NEED(n == 1);
	return wc;
}

static void done(void)
{
	struct ibv_wc wc = completion();

	if (wc.status)
		fprintf(stderr, "status: %s\n", ibv_wc_status_str(wc.status));
	NEED(wc.status == IBV_WC_SUCCESS);
}

static unsigned char pattern(size_t i, uint32_t len)
{
	return (unsigned char)(i * 7 + i / 251 + len);
}

static void fill(uint32_t len)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = pattern(i, len);
}

static void check(uint32_t len)
{
	for (size_t i = 0; i < len; i++)
		NEED(buf[HALF + i] == pattern(i, len));
}

static const uint32_t sizes[] = {0, 1, 2, 3, 4, 5, 1023, 1024, 1025, 2048, 4097, 65537, 1048579};
/* For a wire that loses packets: those that fill a window, and end in every way, but few. */
static const uint32_t few[] = {0, 1025, 4097, 20001};
static const uint32_t *size = sizes;
static size_t nsizes = sizeof(sizes) / sizeof(sizes[0]);

static void passive(void)
{
	uint64_t word = 40;

	memcpy(buf + 2 * HALF - 8, &word, sizeof(word));
	for (size_t i = 0; i < nsizes; i++) {
		struct ibv_wc wc;

		post_receive(HALF, HALF - 8);
		say();
		wc = completion(); /* a SEND */
		NEED(!wc.status && wc.byte_len == size[i] && !(wc.wc_flags & IBV_WC_WITH_IMM));
		check(size[i]);
		memset(buf + HALF, 0, size[i]);
		post_receive(0, 1);
		say();
		wc = completion(); /* a WRITE with immediate data */
		NEED(!wc.status && wc.wc_flags & IBV_WC_WITH_IMM &&
		     ntohl(wc.imm_data) == (size[i] ^ 0x5a5a));
		check(size[i]);
		say();
		hear();
	}
	/* A receive that comes after the message. */
	hear();
	post_receive(HALF, HALF - 8);
	done();
	check(4097);
	hear();
	memcpy(&word, buf + 2 * HALF - 8, sizeof(word));
	NEED(word == 1000);
	say();
	hear();
}

static void active(void)
{
	uint64_t word;

	for (size_t i = 0; i < nsizes; i++) {
		hear();
		fill(size[i]);
		post(IBV_WR_SEND, 0, size[i], 0, 0, 0, 0);
		done();
		hear();
		post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, size[i], theirs.addr + HALF, theirs.rkey, 0, 0);
		done();
		hear();
		memset(buf + HALF, 0, size[i]);
		/* Several at once, so that one of them waits for others. */
		post(IBV_WR_RDMA_WRITE, 0, size[i], theirs.addr + HALF, theirs.rkey, 0, 0);
		for (int k = 0; k < 6; k++)
			post(IBV_WR_RDMA_READ, HALF, size[i], theirs.addr + HALF, theirs.rkey, 0,
			     0);
		for (int k = 0; k < 7; k++)
			done();
		check(size[i]);
		say();
	}
	fill(4097);
	post(IBV_WR_SEND, 0, 4097, 0, 0, 0, 0);
	usleep(20000); /* so that it comes too early, as a rule */
	say();
	done();
	for (uint64_t k = 0; k < 10; k++) {
		post(IBV_WR_ATOMIC_FETCH_AND_ADD, HALF, 8, theirs.addr + 2 * HALF - 8, theirs.rkey,
		     1, 0);
		done();
		memcpy(&word, buf + HALF, 8);
		NEED(word == 40 + k);
	}
	post(IBV_WR_ATOMIC_CMP_AND_SWP, HALF, 8, theirs.addr + 2 * HALF - 8, theirs.rkey, 50, 1000);
	done();
	memcpy(&word, buf + HALF, 8);
	NEED(word == 50);
	say();
	hear();
	if (size == sizes) {
		post(IBV_WR_RDMA_READ, HALF, 8, theirs.addr, theirs.rkey ^ 1, 0, 0);
		NEED(completion().status == IBV_WC_REM_ACCESS_ERR);
	}
	say();
}

/* ---- without acknowledgements ---- */

/* What a datagram may carry, at the edges of its padding. */
static const uint32_t short_sizes[] = {0, 1, 2, 3, 4, 5, 1023, 1024};

/*
 * A WRITE, and one with immediate data that follows it: when that has come, so has the first, of the
 * same contents, behind it.
 */
static void uc_passive(void)
{
	for (size_t i = 0; i < nsizes && size[i] < HALF / 4; i++) {
		struct ibv_wc wc;

		memset(buf + HALF, 0, HALF);
		post_receive(0, 1);
		say();
		wc = completion();
		NEED(!wc.status && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
		     wc.wc_flags & IBV_WC_WITH_IMM && wc.byte_len == size[i] &&
		     ntohl(wc.imm_data) == (size[i] ^ 0x5a5a));
		check(size[i]);
		NEED(!memcmp(buf + HALF, buf + HALF + HALF / 2, size[i]));
		/* Not a byte more. */
		NEED(!buf[HALF + size[i]] && !buf[HALF + HALF / 2 + size[i]]);
	}
}

static void uc_active(void)
{
	for (size_t i = 0; i < nsizes && size[i] < HALF / 4; i++) {
		hear();
		fill(size[i]);
		post(IBV_WR_RDMA_WRITE, 0, size[i], theirs.addr + HALF + HALF / 2, theirs.rkey, 0,
		     0);
		post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, size[i], theirs.addr + HALF, theirs.rkey, 0, 0);
		done();
		done();
	}
}

#define GRH 40

static void ud_passive(void)
{
	for (size_t i = 0; i < 2 * sizeof(short_sizes) / sizeof(short_sizes[0]); i++) {
		uint32_t len = short_sizes[i / 2];
		struct ibv_wc wc;

		post_receive(HALF - GRH, GRH + 1024);
		say();
		wc = completion();
		NEED(!wc.status && wc.byte_len == GRH + len && wc.src_qp == theirs.qpn &&
		     (!theirs.lid || wc.slid == theirs.lid));
		NEED(!(wc.wc_flags & IBV_WC_WITH_IMM) == !(i & 1));
		NEED(!(i & 1) || ntohl(wc.imm_data) == (len ^ 0x5a5a));
		check(len);
	}
}

static void ud_active(void)
{
	for (size_t i = 0; i < 2 * sizeof(short_sizes) / sizeof(short_sizes[0]); i++) {
		uint32_t len = short_sizes[i / 2];
		struct ibv_sge sge = {(uintptr_t)buf, len, mr->lkey};
		struct ibv_send_wr *bad, wr = {.opcode = i & 1 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
					       .sg_list = &sge,
					       .num_sge = len ? 1 : 0,
					       .imm_data = htonl(len ^ 0x5a5a)};

		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = theirs.qpn;
		wr.wr.ud.remote_qkey = QKEY;
		hear();
		fill(len);
		NEED(!ibv_post_send(qp, &wr, &bad));
		done();
	}
}

static void without_answers(bool client)
{
	if (type == IBV_QPT_UC)
		join(0, 0);
	else
		join_ud();
	say();
	hear();
	if (type == IBV_QPT_UC && client)
		uc_active();
	else if (type == IBV_QPT_UC)
		uc_passive();
	else if (client)
		ud_active();
	else
		ud_passive();
}

/* Has the other process ended? */
static bool alone(void)
{
	char byte;
	ssize_t n = recv(tcp, &byte, 1, MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static void signal_them(int number)
{
	const char *list = getenv("KILLED");
	char *end;

	NEED(list && *list);
	for (; *list; list = end) {
		NEED(!kill((pid_t)strtol(list, &end, 10), number) && end != list);
		end += strspn(end, " ");
	}
}

static void waits(void)
{
	while (!alone())
		usleep(1000);
}

#define DEPTH 8 /* requests that are on their way at a time */

/* WRITEs and READs of all lengths. Each half of the peer's memory holds what was written last. */
static void post_some(unsigned int i)
{
	uint32_t len = sizes[i % 13];

	post(i % 3 == 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, i % 3 == 2 ? HALF : 0, len,
	     theirs.addr, theirs.rkey, 0, 0);
}

/* They are stopped until a request of the second QP has failed. Returns how many of the first QP's have ended meanwhile. */
static unsigned int stop_them(struct ibv_qp *first, struct ibv_qp *second)
{
	unsigned int ended = 0;
	struct ibv_wc wc;

	signal_them(SIGSTOP);
	qp = second;
	post_some(0);
	while ((wc = completion()).qp_num == first->qp_num) {
		NEED(!wc.status);
		ended++;
	}
	NEED(wc.status == IBV_WC_RETRY_EXC_ERR);
	signal_them(SIGCONT);
	qp = first;
	return ended;
}

/* Without a second QP they get that signal. */
static void outlives(struct ibv_qp *first, struct ibv_qp *second, int number)
{
	const unsigned int all = 400;
	unsigned int posted = 0;

	qp = first;
	fill(HALF);
	for (unsigned int i = 0; i < all; i++) {
		if (i == all / 4 && second)
			i += stop_them(first, second);
		else if (i == all / 4)
			signal_them(number);
		/* All that were on their way may have ended meanwhile. */
		while (posted < all && posted < i + DEPTH)
			post_some(posted++);
		done();
	}
	post(IBV_WR_RDMA_WRITE, 0, HALF, theirs.addr, theirs.rkey, 0, 0);
	done();
	memset(buf + HALF, 0, HALF);
	post(IBV_WR_RDMA_READ, HALF, HALF, theirs.addr, theirs.rkey, 0, 0);
	done();
	check(HALF);
}

/* Each of n requests of this QP ends, the first that fails as one whose peer has died. */
static void all_end(unsigned int n, bool failed)
{
	while (n--) {
		struct ibv_wc wc = completion();

		NEED(wc.qp_num == qp->qp_num);
		if (!wc.status && !failed)
			continue;
		NEED(wc.status == (failed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR));
		failed = true;
	}
	NEED(failed);
}

static void is_left(struct ibv_qp *first, struct ibv_qp *second)
{
	unsigned int posted = 0, ended = 0;
	struct ibv_wc wc;

	qp = first;
	do {
		while (posted < ended + DEPTH)
			post_some(posted++);
		if (ended == 100) {
			/* At any instant of what the engine does with these. */
			usleep((useconds_t)(getpid() % 16) * 100);
			signal_them(SIGKILL);
		}
		/*
		 * All that were posted before may be done by then, and a killed process may take a moment to end. So requests
		 * follow each other until one of them fails.
		 */
		wc = completion();
		ended++;
	} while (!wc.status);
	NEED(ended > 100 && wc.qp_num == first->qp_num && wc.status == IBV_WC_RETRY_EXC_ERR);
	all_end(posted - ended, true);
	qp = second;
	post_some(0);
	post_some(2);
	all_end(2, false);
}

#define LAST	  5 /* messages */
#define LAST_SIZE 20001
#define LAST_ROOM ((size_t)32768)

static void last_passive(void)
{
	for (int i = 0; i < LAST; i++)
		post_receive(HALF + (size_t)i * LAST_ROOM, LAST_ROOM);
	say();
	for (int i = 0; i < LAST; i++) {
		struct ibv_wc wc = completion();

		NEED(!wc.status && wc.byte_len == LAST_SIZE);
		memmove(buf + HALF, buf + HALF + (size_t)i * LAST_ROOM, LAST_SIZE);
		check(LAST_SIZE);
	}
}

/* Nobody looks at the completions. */
static void last_active(void)
{
	fill(LAST_SIZE);
	hear();
	for (int i = 0; i < LAST; i++)
		post(IBV_WR_SEND, 0, LAST_SIZE, 0, 0, 0, 0);
}

static void is_killed(void)
{
	while (!*(volatile unsigned char *)buf)
		usleep(100);
	raise(SIGKILL);
}

/*
 * The first QP has messages on their way when the other process dies. What becomes of them takes as
 * long as that QP is patient, so the second one tells.
 */
static void survives(struct ibv_qp *first, struct ibv_qp *second)
{
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};

	memset(buf, 1, HALF);
	qp = first;
	post(IBV_WR_RDMA_WRITE, 0, HALF, theirs.addr, theirs.rkey, 0, 0);
	while (!alone())
		if (!wc.status && ibv_poll_cq(cq, 1, &wc) == 1 && !wc.status)
			post(IBV_WR_RDMA_WRITE, 0, HALF, theirs.addr, theirs.rkey, 0, 0);
	qp = second;
	/* The other instance may take a moment to see it. */
	do {
		post(IBV_WR_RDMA_WRITE, 0, 8, theirs.addr, theirs.rkey, 0, 0);
		do
			wc = completion();
		while (wc.qp_num != second->qp_num);
	} while (!wc.status);
	NEED(wc.status == IBV_WC_RETRY_EXC_ERR);
	NEED(!ibv_destroy_qp(first));
}

/* WRITEs go on into the other process's memory, whoever has it, until nobody answers. */
static void is_old(void)
{
	struct ibv_wc wc;

	memset(buf, 0xee, HALF);
	do {
		post(IBV_WR_RDMA_WRITE, 0, 4097, theirs.addr, theirs.rkey, 0, 0);
		wc = completion();
	} while (!wc.status);
	NEED(wc.status == IBV_WC_RETRY_EXC_ERR);
}

/* Round by round, until the old process has ended. */
static void are_new(bool client)
{
	const char *old = getenv("OLD");
	unsigned long rounds = 0;
	char more = 'x';

	NEED(!client || old);
	while (more == 'x') {
		if (client) {
			active();
			rounds++;
			more = kill((pid_t)atoi(old), 0) ? 'e' : 'x';
			NEED(write(tcp, &more, 1) == 1);
		} else {
			passive();
			NEED(read(tcp, &more, 1) == 1);
		}
	}
	if (client && sleeps)
		printf("%lu rounds\n", rounds);
}

int main(int argc, char **argv)
{
	const char *psn = getenv("PSN");
	bool old, new, killed, lossy, out, stopped, standing, left, last, client = argc == 5;
	struct ibv_qp *first;

	NEED((argc == 4 || client) && !strcmp(argv[2], "-p"));
	old = !strcmp(argv[1], "old");
	sleeps = !strcmp(argv[1], "soak");
	new = sleeps || !strcmp(argv[1], "new");
	killed = !strcmp(argv[1], "killed");
	lossy = !strcmp(argv[1], "lossy");
	out = !strcmp(argv[1], "outlives");
	stopped = !strcmp(argv[1], "stopped");
	standing = !strcmp(argv[1], "standing");
	left = !strcmp(argv[1], "left");
	last = !strcmp(argv[1], "last");
	if (psn)
		first_psn = (uint32_t)strtoul(psn, NULL, 0);
	else if (last)
		first_psn = PSN_LAST;
	if (lossy || new) {
		size = few;
		nsizes = sizeof(few) / sizeof(few[0]);
	}
	connect_tcp(atoi(argv[3]), client ? argv[4] : NULL);
	make();
	if (!strcmp(argv[1], "uc") || !strcmp(argv[1], "ud")) {
		type = argv[1][1] == 'c' ? IBV_QPT_UC : IBV_QPT_UD;
		without_answers(client);
		return 0;
	}
	join(lossy || old ? 15 : left ? 12 : 17, left ? 2 : 7);
	first = qp;
	if (!client)
		fprintf(stderr, "QP 0x%x\n", qp->qp_num);
	if (killed || left || stopped)
		join(12, 2);
	say();
	hear();
	if (killed && client)
		survives(first, qp);
	else if (new)
		are_new(client);
	else if (old && client)
		is_old();
	else if (killed || old)
		is_killed();
	else if (client && (out || stopped || standing))
		outlives(first, stopped ? qp : NULL, out ? SIGKILL : SIGSTOP);
	else if (client && left)
		is_left(first, qp);
	else if (out || left || stopped || standing)
		waits();
	else if (last && client)
		last_active();
	else if (last)
		last_passive();
	else if (client)
		active();
	else
		passive();
	if (client && standing)
		signal_them(SIGCONT);
	/* Commands fail without a daemon. */
	NEED(out || left || !ibv_destroy_qp(qp));
	return 0;
}
