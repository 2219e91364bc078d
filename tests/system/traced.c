// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A program for trace.sh, which says what is to be seen of it. It prints the numbers that it got.
 *
 *	fail	verbs that fail
 *	threads	two threads and a child, each with a CQ of its own
 *	killed	is killed while one thread waits in a verb and another one calls verbs
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define CALLS 300

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
	printf("qp %#x\n", qp->qp_num);
	errno = 0;
	check(!ibv_create_cq(context, 1 << 30, NULL, NULL, 0) && errno == EINVAL, "too large a CQ");
	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == EINVAL, "RESET to RTS");
	check(ibv_dealloc_pd(pd) == EBUSY, "a PD in use");
	check(ibv_post_send(qp, &wr, &bad) != 0, "too many pieces");
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
	return strcmp(argv[1], "threads") ? killed() : threads();
}
