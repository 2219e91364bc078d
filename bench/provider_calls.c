// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Calls one operation of a provider COUNT times, each time through a function named measured_*(),
 * so that callgrind counts the instructions inside (bench/provider). Runs on any libibverbs.so.1:
 * the layouts that it uses are the same in OFED's library and in rdma-core's. It calls the
 * operation that the provider put into the context, before softhca has wrapped it. So callgrind
 * counts only the provider and libc. The program rings the device's doorbell afterwards.
 *
 * Usage: provider_calls OPERATION. Prints how many calls (for batches: how many requests) were
 * measured.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#define COUNT 64
#define DEPTH 256
#define BATCH 16

static struct ibv_context *context;
static struct ibv_context_ops ops; /* as the provider set them */
static struct ibv_pd *pd;
static struct ibv_cq *scq, *rcq;
static struct ibv_srq *srq;
static struct ibv_qp *qp, *peer;
static struct ibv_mr *mr;
static char buf[65536] __attribute__((aligned(4096)));
static uint32_t remote_srqn;

static void die(const char *what)
{
	fprintf(stderr, "provider_calls: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- the measured functions: callgrind counts them and their callees ---- */

#define KEEP asm volatile("" ::: "memory") /* no tail call: the return is counted, too */

__attribute__((noinline)) static int
measured_send(int (*op)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **),
	      struct ibv_qp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int ret = op(q, wr, bad);

	KEEP;
	return ret;
}

__attribute__((noinline)) static int
measured_recv(int (*op)(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **),
	      struct ibv_qp *q, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int ret = op(q, wr, bad);

	KEEP;
	return ret;
}

__attribute__((noinline)) static int
measured_srq(int (*op)(struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **),
	     struct ibv_srq *q, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int ret = op(q, wr, bad);

	KEEP;
	return ret;
}

__attribute__((noinline)) static int measured_poll(int (*op)(struct ibv_cq *, int, struct ibv_wc *),
						   struct ibv_cq *q, int n, struct ibv_wc *wc)
{
	int ret = op(q, n, wc);

	KEEP;
	return ret;
}

/* The cost of the functions above alone. Two of the instructions are this function's own. */
__attribute__((noinline)) static int nothing(struct ibv_qp *q, struct ibv_send_wr *wr,
					     struct ibv_send_wr **bad)
{
	(void)q;
	(void)wr;
	(void)bad;
	return 0;
}

/* ---- setting up ---- */

static void connect_to(struct ibv_qp *from, uint32_t qpn, uint16_t lid)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	if (ibv_modify_qp(from, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("modify QP to INIT");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.dlid = lid, .port_num = 1},
	};
	if (ibv_modify_qp(from, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("modify QP to RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	if (ibv_modify_qp(from, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("modify QP to RTS");
}

static struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_srq *with,
			      struct ibv_xrc_domain *domain)
{
	struct ibv_qp_init_attr init = {
		.send_cq = scq,
		.recv_cq = rcq,
		.srq = with,
		.qp_type = type,
		.xrc_domain = domain,
		.cap = {.max_send_wr = DEPTH, .max_send_sge = 1, .max_inline_data = 28},
	};
	struct ibv_qp *made;

	if (!with && type != IBV_QPT_XRC) {
		init.cap.max_recv_wr = DEPTH;
		init.cap.max_recv_sge = 1;
	}
	made = ibv_create_qp(pd, &init);
	if (!made)
		die("create QP");
	return made;
}

static void set_up(const char *what)
{
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	if (!list || !list[0])
		die("no device");
	context = ibv_open_device(list[0]);
	if (!context)
		die("open device");
	ops = context->ops;
	pd = ibv_alloc_pd(context);
	scq = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
	rcq = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!pd || !scq || !rcq || !mr || ibv_query_port(context, 1, &port))
		die("set up");
	if (!strncmp(what, "xrc", 3)) {
		/* Only the legacy API has these. dlsym() tells whether the library does. */
		struct ibv_xrc_domain *(*open_domain)(struct ibv_context *, int, int) =
			dlsym(RTLD_DEFAULT, "ibv_open_xrc_domain");
		struct ibv_srq *(*create)(struct ibv_pd *, struct ibv_xrc_domain *, struct ibv_cq *,
					  struct ibv_srq_init_attr *) =
			dlsym(RTLD_DEFAULT, "ibv_create_xrc_srq");
		int (*create_rcv)(struct ibv_qp_init_attr *, uint32_t *) =
			dlsym(RTLD_DEFAULT, "ibv_create_xrc_rcv_qp");
		int (*modify_rcv)(struct ibv_xrc_domain *, uint32_t, struct ibv_qp_attr *, int) =
			dlsym(RTLD_DEFAULT, "ibv_modify_xrc_rcv_qp");
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
		struct ibv_qp_init_attr init = {0};
		struct ibv_xrc_domain *domain;
		uint32_t rcv = 0;

		if (!open_domain || !create || !create_rcv || !modify_rcv) {
			fputs("provider_calls: this library has no legacy XRC\n", stderr);
			exit(77);
		}
		domain = open_domain(context, -1, O_CREAT);
		srq = domain ? create(pd, domain, rcq, &srq_init) : NULL;
		init.xrc_domain = domain;
		if (!srq || create_rcv(&init, &rcv))
			die("XRC objects");
		remote_srqn = srq->xrc_srq_num;
		qp = make_qp(IBV_QPT_XRC, NULL, domain);
		if (modify_rcv(domain, rcv, &attr,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS))
			die("modify receive QP");
		attr = (struct ibv_qp_attr){
			.qp_state = IBV_QPS_RTR,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = qp->qp_num,
			.max_dest_rd_atomic = 1,
			.min_rnr_timer = 1,
			.ah_attr = {.dlid = port.lid, .port_num = 1},
		};
		if (modify_rcv(domain, rcv, &attr,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER))
			die("modify receive QP");
		connect_to(qp, rcv, port.lid);
		return;
	}
	if (!strcmp(what, "post_srq_recv")) {
		srq = ibv_create_srq(pd, &srq_init);
		if (!srq)
			die("create SRQ");
	}
	qp = make_qp(IBV_QPT_RC, NULL, NULL);
	peer = make_qp(IBV_QPT_RC, srq, NULL);
	connect_to(peer, qp->qp_num, port.lid);
	connect_to(qp, peer->qp_num, port.lid);
}

/* ---- the operations ---- */

static struct ibv_sge sge;
static struct ibv_send_wr swr[BATCH], *bad_swr;
static struct ibv_recv_wr rwr, *bad_rwr;

static void prepare(enum ibv_wr_opcode opcode, int flags, uint32_t len)
{
	sge = (struct ibv_sge){.addr = (uintptr_t)buf, .length = len, .lkey = mr->lkey};
	for (int i = 0; i < BATCH; i++) {
		swr[i] = (struct ibv_send_wr){
			.wr_id = i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = flags,
			.wr.rdma = {.remote_addr = (uintptr_t)buf + 4096, .rkey = mr->rkey},
			.xrc_remote_srq_num = remote_srqn,
		};
	}
	rwr = (struct ibv_recv_wr){.sg_list = &sge, .num_sge = 1};
}

static void post_receives(int n)
{
	for (int i = 0; i < n; i++)
		if (srq ? ibv_post_srq_recv(srq, &rwr, &bad_rwr)
			: ibv_post_recv(peer, &rwr, &bad_rwr))
			die("post receive");
}

static int drain(struct ibv_cq *cq, int n)
{
	struct ibv_wc wc;
	int got = 0;

	while (got < n) {
		int one = ibv_poll_cq(cq, 1, &wc);

		if (one < 0 || (one && wc.status != IBV_WC_SUCCESS))
			die("completion");
		got += one;
	}
	return got;
}

static int measure_sends(int per_call)
{
	for (int i = 0; i < per_call; i++)
		swr[i].next = i + 1 < per_call ? &swr[i + 1] : NULL;
	post_receives(COUNT + 8);
	for (int i = 0; i < COUNT / per_call; i++)
		if (measured_send(ops.post_send, qp, swr, &bad_swr))
			die("post send");
	/* The device has not been told of any of them. Post one more, through softhca's wrapper. */
	swr[0].next = NULL;
	swr[0].send_flags = IBV_SEND_SIGNALED;
	swr[0].opcode = IBV_WR_SEND;
	if (ibv_post_send(qp, swr, &bad_swr))
		die("post send");
	drain(scq, 1);
	return COUNT;
}

/* Has COUNT messages complete in both CQs, and polls those of one CQ in batches. */
static int measure_polls(struct ibv_cq *cq, int batch)
{
	struct ibv_wc wc[BATCH];

	post_receives(COUNT);
	for (int i = 0; i < COUNT; i++) {
		swr[0].next = NULL;
		if (ibv_post_send(qp, swr, &bad_swr))
			die("post send");
	}
	for (int i = 0; i < COUNT / batch; i++)
		if (measured_poll(ops.poll_cq, cq, batch, wc) != batch ||
		    wc[0].status != IBV_WC_SUCCESS)
			die("poll");
	return COUNT;
}

static int measure(const char *what)
{
	if (!strcmp(what, "nothing")) {
		for (int i = 0; i < COUNT; i++)
			measured_send(nothing, qp, swr, &bad_swr);
		return COUNT;
	}
	prepare(IBV_WR_SEND, IBV_SEND_SIGNALED, 8);
	if (!strcmp(what, "poll_send"))
		return measure_polls(scq, 1);
	if (!strcmp(what, "poll_recv") || !strcmp(what, "xrc_poll_recv"))
		return measure_polls(rcq, 1);
	if (!strcmp(what, "poll_send_16"))
		return measure_polls(scq, BATCH);
	if (!strcmp(what, "poll_recv_16"))
		return measure_polls(rcq, BATCH);
	prepare(IBV_WR_SEND, 0, 8);
	if (!strcmp(what, "send") || !strcmp(what, "xrc_send"))
		return measure_sends(1);
	if (!strcmp(what, "send_chain_16"))
		return measure_sends(BATCH);
	prepare(IBV_WR_SEND, IBV_SEND_INLINE, 28);
	if (!strcmp(what, "send_inline_28"))
		return measure_sends(1);
	prepare(IBV_WR_RDMA_WRITE, 0, 8);
	if (!strcmp(what, "rdma_write"))
		return measure_sends(1);
	if (!strcmp(what, "poll_empty")) {
		struct ibv_wc wc;

		for (int i = 0; i < COUNT; i++)
			if (measured_poll(ops.poll_cq, scq, 1, &wc))
				die("poll of an empty CQ");
		return COUNT;
	}
	if (!strcmp(what, "post_recv")) {
		for (int i = 0; i < COUNT; i++)
			if (measured_recv(ops.post_recv, peer, &rwr, &bad_rwr))
				die("post receive");
		return COUNT;
	}
	if (!strcmp(what, "post_srq_recv")) {
		for (int i = 0; i < COUNT; i++)
			if (measured_srq(ops.post_srq_recv, srq, &rwr, &bad_rwr))
				die("post to SRQ");
		return COUNT;
	}
	fprintf(stderr, "provider_calls: no operation \"%s\"\n", what);
	exit(2);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	set_up(argv[1]);
	printf("%d\n", measure(argv[1]));
	return 0;
}
