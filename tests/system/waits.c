// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * For show_waits.sh: processes that wait, each for what its argument says, until they are killed.
 * The program prints "pid=... peer=..." when all of them are about to wait.
 *
 *	receive		two connected QPs with receives, of which neither sends
 *	rnr		a sender whose peer has no receive
 *	stopped		the same, and the peer is stopped
 *	doze		more polling processes than the one processor that they have
 *	event		a thread that reads completion events
 *	accept		a thread that waits for a connection of TCP, in a system call as any program makes them
 *	daemon		commands, without end, one after the other
 *	copy		messages, without end, between processes that may not reach each other's memory
 */
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define POLLERS 4

struct card {
	uint32_t qpn;
	uint16_t lid;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static char buffer[4096] __attribute__((aligned(4096))) = {1}; /* of a file: it is copied */

static void check(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static struct card prepare(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {16, 16, 1, 1, 0}};
	struct ibv_port_attr port;

	check(list && list[0], "find a device");
	context = ibv_open_device(list[0]);
	check(context != NULL, "open");
	pd = ibv_alloc_pd(context);
	channel = ibv_create_comp_channel(context);
	check(pd && channel, "allocate a PD and a channel");
	cq = ibv_create_cq(context, 32, NULL, channel, 0);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	check(cq && mr, "create a CQ and a region");
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	check(qp && !ibv_query_port(context, 1, &port), "create a QP");
	ibv_free_device_list(list);
	return (struct card){qp->qp_num, port.lid};
}

static void connect_to(struct card peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	check(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	      "INIT");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer.qpn,
		.max_dest_rd_atomic = 1,
		.ah_attr = {.dlid = peer.lid, .port_num = 1},
	};
	check(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER),
	      "RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	check(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	      "RTS");
}

static void post_receive(void)
{
	struct ibv_sge sge = {(uintptr_t)buffer, sizeof(buffer), mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	check(!ibv_post_recv(qp, &wr, &bad), "post a receive");
}

static void post_send(void)
{
	struct ibv_sge sge = {(uintptr_t)buffer, 8, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	check(!ibv_post_send(qp, &wr, &bad), "post a send");
}

static void poll_for_ever(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) >= 0)
		;
}

static void pause_for_ever(void)
{
	for (;;)
		pause();
}

/* The one has no capabilities any more, and the other one is nobody's to look at. */
static void copies(int first)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};
	struct ibv_wc wc;
	int n;

	check(first ? !syscall(SYS_capset, &head, none) : !prctl(PR_SET_DUMPABLE, 0), "give up");
	for (;;) {
		if (first)
			post_send();
		else
			post_receive();
		while (!(n = ibv_poll_cq(cq, 1, &wc)))
			usleep(1000);
		check(n == 1 && wc.status == IBV_WC_SUCCESS, "a completion");
	}
}

/* One of two processes. in and out are pipes to the other one. */
static void one_of_two(const char *what, int first, pid_t other, int in, int out)
{
	struct card mine = prepare(), peer = {0};
	char word = 0;

	check(write(out, &mine, sizeof(mine)) == sizeof(mine) &&
		      read(in, &peer, sizeof(peer)) == sizeof(peer),
	      "exchange");
	connect_to(peer);
	if (!strcmp(what, "receive"))
		for (int i = 0; i < 3; i++)
			post_receive();
	check(write(out, &word, 1) == 1 && read(in, &word, 1) == 1, "exchange");
	if (!first) {
		if (!strcmp(what, "copy"))
			copies(0);
		if (!strcmp(what, "stopped"))
			raise(SIGSTOP);
		pause_for_ever();
	}
	if (strcmp(what, "receive") && strcmp(what, "copy"))
		post_send();
	printf("pid=%d peer=%d\n", (int)getpid(), (int)other);
	fflush(stdout);
	if (!strcmp(what, "copy"))
		copies(1);
	pause_for_ever();
}

static void two(const char *what)
{
	int to[2], from[2];
	pid_t other;

	check(!pipe(to) && !pipe(from), "pipe");
	other = fork();
	check(other >= 0, "fork");
	if (!other) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		one_of_two(what, 0, 0, to[0], from[1]);
	}
	one_of_two(what, 1, other, from[0], to[1]);
}

static void crowd(void)
{
	const pid_t first = getpid();
	cpu_set_t allowed, one;

	check(!sched_getaffinity(0, sizeof(allowed), &allowed), "ask for processors");
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &allowed)) {
			CPU_SET(i, &one);
			break;
		}
	check(!sched_setaffinity(0, sizeof(one), &one), "have one processor");
	for (int i = 1; i < POLLERS; i++) {
		pid_t pid = fork();

		check(pid >= 0, "fork");
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			break;
		}
	}
	prepare();
	/* The other processes end with this one. */
	if (getpid() == first)
		printf("pid=%d peer=0\n", (int)first);
	fflush(stdout);
	poll_for_ever();
}

static int listen_anywhere(void)
{
	int sock = socket(AF_INET, SOCK_STREAM, 0);

	check(sock >= 0 && !listen(sock, 1), "listen");
	return sock;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct ibv_cq *of;
	void *arg;

	if (!strcmp(what, "receive") || !strcmp(what, "rnr") || !strcmp(what, "stopped") ||
	    !strcmp(what, "copy"))
		two(what);
	if (!strcmp(what, "doze"))
		crowd();
	prepare();
	check(!ibv_req_notify_cq(cq, 0), "arm the CQ");
	printf("pid=%d peer=0\n", (int)getpid());
	fflush(stdout);
	if (!strcmp(what, "event"))
		ibv_get_cq_event(channel, &of, &arg);
	if (!strcmp(what, "accept"))
		accept4(listen_anywhere(), NULL, NULL, 0);
	while (!strcmp(what, "daemon"))
		ibv_dealloc_pd(ibv_alloc_pd(context));
	return 1;
}
