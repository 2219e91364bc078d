// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A program that outlives its instance: it registers memory of the heap, a large block and
 * mappings, and waits until standard input ends. Then all that it had written must still be there:
 * in the registered memory, around it, and in a child. Calls on mappings must mean what they say.
 * An event that its completion channel had must be there as well: a program that has seen it by
 * poll() reads it next, and must not sleep there. No further one can come: whoever waits for it is
 * told so, though a child that does nothing has inherited what its parent had open. The program
 * frees everything as it would beside a card that is gone. The exit status is 0 if all of this was
 * so.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define SMALL 64
#define LARGE (1 << 20)
#define MANY  1000
#define PAGE  4096

static unsigned char *piece[MANY], *large;

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "outlives: %s: %s\n", what, strerror(errno));
	exit(1);
}

static size_t lost(const unsigned char *at, size_t len, int value)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += at[i] != (unsigned char)value;
	return n;
}

static size_t lost_in_all(void)
{
	size_t n = lost(large, LARGE, 'L');

	for (int i = 0; i < MANY; i++)
		n += lost(piece[i], SMALL, i);
	return n;
}

/* Pages that the program maps itself, and their registrations. */
static struct mapped {
	unsigned char *at;
	size_t len;
	struct ibv_mr *mr;
} mapped[] = {{.len = PAGE}, {.len = PAGE}, {.len = 16 * PAGE}};

#define MAPPED (sizeof(mapped) / sizeof(mapped[0]))

static void map(struct ibv_pd *pd)
{
	for (size_t i = 0; i < MAPPED; i++) {
		struct mapped *m = &mapped[i];

		m->at = mmap(NULL, m->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
		must(m->at != MAP_FAILED, "map");
		memset(m->at, 'A' + (int)i, m->len);
		m->mr = ibv_reg_mr(pd, m->at, m->len, IBV_ACCESS_LOCAL_WRITE);
		must(!!m->mr, "register a mapping");
	}
}

/*
 * What has been given up is zeroes, each time. What grows has zeroes behind what there was, and is
 * not the memory of another registration, which may be another program's.
 */
static void change_mappings(void)
{
	unsigned char *more;

	for (int i = 0; i < 2; i++) {
		memset(mapped[2].at, 'x', mapped[2].len);
		must(!madvise(mapped[2].at, 8 * PAGE, MADV_DONTNEED), "give up");
		must(!lost(mapped[2].at, 8 * PAGE, 0), "zeroes");
		must(!lost(mapped[2].at + 8 * PAGE, 8 * PAGE, 'x'), "the rest");
	}
	more = mremap(mapped[0].at, PAGE, 4 * PAGE, MREMAP_MAYMOVE);
	must(more != MAP_FAILED, "grow");
	must(!lost(more, PAGE, 'A') && !lost(more + PAGE, 3 * PAGE, 0), "what has grown");
	memset(more, 'x', 4 * PAGE);
	must(!lost(mapped[1].at, PAGE, 'B'), "the memory beside");
}

/*
 * The first of two receives that are flushed raises an event of its CQ. Arming the CQ again raises
 * another one, this time in the program itself: no event has told of the second receive.
 */
static struct ibv_qp *raise_event(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_cq *of;
	void *context;
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.cap = {.max_send_wr = 1, .max_recv_wr = 2},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	must(!!qp, "QP");
	errno = ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	must(!errno, "INIT");
	must(!ibv_post_recv(qp, &wr, &bad) && !ibv_post_recv(qp, &wr, &bad), "receives");
	must(!ibv_req_notify_cq(cq, 0), "arm");
	attr.qp_state = IBV_QPS_ERR;
	must(!(errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE)), "ERR");
	must(!ibv_get_cq_event(cq->channel, &of, &context) && of == cq, "first event");
	ibv_ack_cq_events(cq, 1);
	must(!ibv_req_notify_cq(cq, 0), "arm again");
	return qp;
}

static int has_event(const struct ibv_comp_channel *channel)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_mr *mr[MANY / 10], *large_mr;
	struct ibv_comp_channel *channel;
	struct ibv_context *ctx = NULL;
	struct ibv_pd *pd = NULL;
	struct ibv_cq *cq = NULL, *of;
	struct ibv_qp *qp;
	void *context;
	size_t n;
	int status;
	pid_t child;

	must(list && *list && (ctx = ibv_open_device(*list)), "open");
	must((pd = ibv_alloc_pd(ctx)) && (channel = ibv_create_comp_channel(ctx)) &&
		     (cq = ibv_create_cq(ctx, 10, NULL, channel, 0)),
	     "PD, CQ");
	qp = raise_event(pd, cq);
	must(has_event(channel), "event");
	must((child = fork()) >= 0, "fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	must(!posix_memalign((void **)&large, 4096, LARGE), "memory");
	large_mr = ibv_reg_mr(pd, large, LARGE, IBV_ACCESS_LOCAL_WRITE);
	must(!!large_mr, "register the large block");
	memset(large, 'L', LARGE);
	for (int i = 0; i < MANY; i++) {
		must(!!(piece[i] = malloc(SMALL)), "memory");
		memset(piece[i], i, SMALL);
	}
	for (int i = 0; i < MANY / 10; i++)
		must(!!(mr[i] = ibv_reg_mr(pd, piece[i * 10], SMALL, IBV_ACCESS_LOCAL_WRITE)),
		     "register");
	map(pd);
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	n = lost_in_all();
	if (n)
		fprintf(stderr, "outlives: %zu bytes of %d are lost\n", n, LARGE + MANY * SMALL);
	change_mappings();
	if (!fork())
		_exit(lost_in_all() != 0);
	must(wait(&status) > 0 && !status, "the child's memory");
	must(has_event(channel) && !ibv_get_cq_event(channel, &of, &context) && of == cq,
	     "the event");
	ibv_ack_cq_events(cq, 1);
	alarm(60); /* ends a sleep without end */
	must(ibv_get_cq_event(channel, &of, &context) && errno == EIO, "no further event");
	kill(child, SIGKILL);
	must(waitpid(child, NULL, 0) == child, "the other child");
	for (int i = 0; i < MANY / 10; i++)
		ibv_dereg_mr(mr[i]);
	ibv_dereg_mr(large_mr);
	for (size_t i = 0; i < MAPPED; i++)
		ibv_dereg_mr(mapped[i].mr);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_destroy_comp_channel(channel);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	ibv_free_device_list(list);
	for (int i = 0; i < MANY; i++)
		free(piece[i]);
	free(large);
	must(!n, "what was lost");
	return 0;
}
