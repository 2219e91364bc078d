// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A program for trace.sh, which says what is to be seen of it. It prints the numbers that it got.
 *
 *	fail	verbs that fail
 *	all	a group, an SRQ that reaches its limit, an XRC receive QP: the verbs that the others leave out
 *	polled	one thread posts, and another one polls
 *	threads	two threads and a child, each with a CQ of its own
 *	killed	is killed while one thread waits in a verb and another one calls verbs
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define MESSAGES 20
#define CALLS	 300

static struct ibv_context *context;

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	check(list && *list, "ibv_get_device_list");
	context = ibv_open_device(*list);
	check(context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
}

static int fail(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.cap = {.max_send_wr = 1, .max_send_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_sge pieces[64] = {{0}};
	struct ibv_send_wr wr = {.wr_id = 7,
				 .sg_list = pieces,
				 .num_sge = 64,
				 .opcode = IBV_WR_SEND},
			   *bad;
	struct ibv_qp *qp;

	check(pd && cq, "objects");
	qp = ibv_create_qp(pd, &init);
	check(qp != NULL, "ibv_create_qp");
	printf("qp 0x%06x\n", qp->qp_num);
	errno = 0;
	check(!ibv_create_cq(context, 1 << 30, NULL, NULL, 0) && errno == EINVAL, "too large a CQ");
	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == EINVAL, "RESET to RTS");
	check(ibv_dealloc_pd(pd) == EBUSY, "a PD in use");
	check(ibv_post_send(qp, &wr, &bad) != 0, "too many pieces");
	return 0;
}

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static struct ibv_port_attr port;
static uint8_t memory[1024];

/* A receive QP has a number only. */
static void receive_qp_of_xrc(void)
{
	struct ibv_xrc_domain *domain = ibv_open_xrc_domain(context, -1, O_CREAT);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_XRC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	uint32_t number = 0;

	init.xrc_domain = domain;
	check(domain && !ibv_create_xrc_rcv_qp(&init, &number), "an XRC receive QP");
	check(!ibv_modify_xrc_rcv_qp(domain, number, &attr,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					     IBV_QP_ACCESS_FLAGS),
	      "INIT");
	check(!ibv_query_xrc_rcv_qp(domain, number, &attr, IBV_QP_STATE | IBV_QP_PORT, &init),
	      "ibv_query_xrc_rcv_qp");
	check(!ibv_reg_xrc_rcv_qp(domain, number), "ibv_reg_xrc_rcv_qp");
	check(!ibv_unreg_xrc_rcv_qp(domain, number), "ibv_unreg_xrc_rcv_qp");
	check(!ibv_close_xrc_domain(domain), "ibv_close_xrc_domain");
}

static void to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 5};

	check(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	      "INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
}

/* Sends itself a message, whose receive takes the SRQ below its limit. */
static void to_itself(struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_sge sge = {(uintptr_t)memory, 512, mr->lkey};
	struct ibv_recv_wr receive = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad_receive;
	struct ibv_send_wr wr = {.wr_id = 2,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_srq_attr limit = {.srq_limit = 1};
	struct ibv_async_event event;
	struct ibv_ah *back;
	struct ibv_wc wc;
	int done = 0;

	check(!ibv_post_srq_recv(srq, &receive, &bad_receive), "ibv_post_srq_recv");
	check(!ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), "ibv_modify_srq");
	sge.addr += 512;
	sge.length = 100;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qp->qp_num;
	wr.wr.ud.remote_qkey = 5;
	check(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	while (done < 2) {
		int n = ibv_poll_cq(cq, 1, &wc);

		check(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS), "ibv_poll_cq");
		done += n;
		if (!n || !(wc.opcode & IBV_WC_RECV))
			continue;
		back = ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)memory, 1);
		check(back && !ibv_destroy_ah(back), "ibv_create_ah_from_wc");
	}
	check(!ibv_get_async_event(context, &event), "ibv_get_async_event");
	ibv_ack_async_event(&event);
}

static int all(void)
{
	struct ibv_srq_init_attr queue = {.attr = {.max_wr = 3, .max_sge = 1}};
	struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 1, .max_send_sge = 1},
					.qp_type = IBV_QPT_UD};
	union ibv_gid gid = {{0}}, group = {.raw = {0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80, [15] = 1}};
	struct ibv_ah_attr way = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}};
	struct ibv_device_attr device;
	struct ibv_qp_attr attr;
	struct ibv_ah *ah;
	struct ibv_qp *qp;
	uint16_t pkey;

	check(!ibv_query_device(context, &device) && !ibv_query_port(context, 1, &port) &&
		      !ibv_query_gid(context, 1, 0, &gid) && !ibv_query_pkey(context, 1, 0, &pkey),
	      "the device");
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	check(pd && cq && !ibv_resize_cq(cq, 7), "a CQ");
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	srq = ibv_create_srq(pd, &queue);
	check(mr && srq && !ibv_query_srq(srq, &queue.attr), "an SRQ");
	init.send_cq = init.recv_cq = cq;
	init.srq = srq;
	qp = ibv_create_qp(pd, &init);
	check(qp != NULL, "ibv_create_qp");
	printf("0x%06x %d\n", qp->qp_num, port.lid);
	to_rts(qp);
	check(!ibv_query_qp(qp, &attr, IBV_QP_QKEY, &init), "ibv_query_qp");
	check(!ibv_attach_mcast(qp, &group, 0xc001) && !ibv_detach_mcast(qp, &group, 0xc001),
	      "a group");
	way.dlid = port.lid;
	way.grh.dgid = gid;
	ah = ibv_create_ah(pd, &way);
	check(ah != NULL, "ibv_create_ah");
	to_itself(qp, ah);
	check(!ibv_destroy_ah(ah) && !ibv_destroy_qp(qp) && !ibv_destroy_srq(srq), "the end");
	receive_qp_of_xrc();
	check(!ibv_dereg_mr(mr) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) &&
		      !ibv_close_device(context),
	      "the end");
	return 0;
}

/* Each thread sees nothing but its own verbs. */
static void *poll_empty(void *unused)
{
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_wc wc;

	(void)unused;
	check(cq != NULL, "ibv_create_cq");
	for (int i = 0; i < CALLS; i++) {
		check(ibv_poll_cq(cq, 1, &wc) == 0, "ibv_poll_cq");
		check(ibv_poll_cq(cq, 1, &wc) == 0, "ibv_poll_cq");
		check(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
	}
	printf("%ld\n", syscall(SYS_gettid));
	fflush(stdout);
	return NULL;
}

static int threads(void)
{
	pthread_t thread[2];
	int status;
	pid_t pid;

	/*
	 * softhca wraps the operations of a context in a command that follows the first object's,
	 * and the trace goes around that when the verb returns. Another thread's polls in between
	 * reach the trace from inside: it counts softhca's second look at the CQ as well.
	 */
	for (int i = 0; i < 2; i++)
		check(ibv_create_cq(context, 1, NULL, NULL, 0) != NULL, "ibv_create_cq");
	for (int i = 0; i < 2; i++)
		check(!pthread_create(&thread[i], NULL, poll_empty, NULL), "pthread_create");
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	pid = fork();
	if (!pid) {
		open_device();
		poll_empty(NULL);
		_exit(0);
	}
	check(pid > 0 && waitpid(pid, &status, 0) == pid && !status, "the child");
	return 0;
}

/* It waits in polls until something comes, so most of them have begun before the post. */
static void *poll_all(void *unused)
{
	struct ibv_wc wc;

	(void)unused;
	for (int done = 0; done < 2 * MESSAGES;) {
		int n = ibv_poll_cq(cq, 1, &wc);

		check(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS), "ibv_poll_cq");
		done += n;
	}
	return NULL;
}

static int polled(void)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD};
	struct ibv_sge sge;
	struct ibv_recv_wr receive = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad_receive;
	struct ibv_send_wr wr = {.wr_id = 2,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_ah_attr way = {.port_num = 1};
	pthread_t thread;

	check(!ibv_query_port(context, 1, &port), "the port");
	pd = ibv_alloc_pd(context);
	init.send_cq = init.recv_cq = cq = ibv_create_cq(context, 2 * MESSAGES, NULL, NULL, 0);
	check(pd && cq, "objects");
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	wr.wr.ud.remote_qkey = 5;
	way.dlid = port.lid;
	wr.wr.ud.ah = ibv_create_ah(pd, &way);
	check(mr && wr.wr.ud.ah, "memory and a way");
	check(!pthread_create(&thread, NULL, poll_all, NULL), "pthread_create");
	for (int i = 0; i < MESSAGES; i++) {
		struct ibv_qp *qp = ibv_create_qp(pd, &init);

		check(qp != NULL, "ibv_create_qp");
		to_rts(qp);
		wr.wr.ud.remote_qpn = qp->qp_num;
		sge = (struct ibv_sge){(uintptr_t)memory, 512, mr->lkey};
		check(!ibv_post_recv(qp, &receive, &bad_receive), "ibv_post_recv");
		/* The other thread falls asleep in a poll meanwhile. */
		usleep(3000);
		sge = (struct ibv_sge){(uintptr_t)memory + 512, 100, mr->lkey};
		check(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	}
	pthread_join(thread, NULL);
	return 0;
}

static void *wait_for_event(void *channel)
{
	struct ibv_cq *cq;
	void *cq_context;

	ibv_get_cq_event(channel, &cq, &cq_context);
	return NULL;
}

static int killed(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	pthread_t thread;

	check(channel && cq, "objects");
	printf("channel fd %d\n", channel->fd);
	fflush(stdout);
	check(!pthread_create(&thread, NULL, wait_for_event, channel), "pthread_create");
	/* The descriptors of a program are its own: the trace keeps none that this would close. */
	for (int fd = 3; fd < 1024; fd++)
		if (fd != channel->fd && fd != context->cmd_fd && fd != context->async_fd)
			close(fd);
	/* trace.sh kills it. */
	while (!ibv_req_notify_cq(cq, 0))
		;
	return 1;
}

int main(int argc, char **argv)
{
	check(argc == 2, "one argument");
	open_device();
	if (!strcmp(argv[1], "fail"))
		return fail();
	if (!strcmp(argv[1], "all"))
		return all();
	if (!strcmp(argv[1], "polled"))
		return polled();
	return strcmp(argv[1], "threads") ? killed() : threads();
}
