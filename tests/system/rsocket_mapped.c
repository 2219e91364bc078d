// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: riomap() and riounmap() that have to wait change nothing until they go on: a signal
 * leaves what was mapped, and what another thread maps meanwhile stays mapped.
 */
#include <endian.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>

#include <rdma/rdma_cma.h>

#include "rsocket_pair.h"

/*
 * The CQ of the end that maps. While it is held, this end learns of no completion, and soon has no
 * room left to tell its peer of mappings.
 */
static struct ibv_cq *mapper;
static volatile bool held, waits;
static unsigned int told, known;

static int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int (*poll_cq)(struct ibv_cq *cq, int n, struct ibv_wc *wc);
static int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);

enum { TELLS_OF_MAPPING = 6 };

static int watched_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM &&
	    be32toh(wr->imm_data) >> 29 == TELLS_OF_MAPPING) {
		mapper = qp->send_cq;
		told++;
	}
	return post_send(qp, wr, bad);
}

static int held_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got, i;

	if (held && cq == mapper)
		return 0;
	got = poll_cq(cq, n, wc);
	for (i = 0; i < got; i++)
		if (cq == mapper && !(wc[i].opcode & IBV_WC_RECV) && wc[i].wr_id & 1)
			known++;
	return got;
}

/* Whoever asks is about to sleep, and gives the lock away no sooner. */
static int watched_notify(struct ibv_cq *cq, int solicited_only)
{
	int ret = req_notify_cq(cq, solicited_only);

	if (held && cq == mapper)
		waits = true;
	return ret;
}

static void watch(void)
{
	struct ibv_context **devices;
	int n, i;

	devices = rdma_get_devices(&n);
	CHECK(devices && n > 0);
	for (i = 0; i < n; i++) {
		post_send = devices[i]->ops.post_send;
		poll_cq = devices[i]->ops.poll_cq;
		req_notify_cq = devices[i]->ops.req_notify_cq;
		devices[i]->ops.post_send = watched_post;
		devices[i]->ops.poll_cq = held_poll;
		devices[i]->ops.req_notify_cq = watched_notify;
	}
	rdma_free_devices(devices);
}

enum { OUTSTANDING = 8, APART = 10000 };
static char memory[OUTSTANDING + 2][4096];
static int ends[2];

static off_t map(int i)
{
	return riomap(ends[1], memory[i], sizeof(memory[i]), PROT_WRITE, 0, (off_t)i * APART);
}

static int unmap(int i)
{
	return riounmap(ends[1], memory[i], sizeof(memory[i]));
}

/* The peer knows of all that was mapped and taken away before. */
static void settle(void)
{
	char data;

	CHECK(rsend(ends[1], "s", 1, 0) == 1);
	CHECK(rrecv(ends[0], &data, 1, 0) == 1);
}

static bool reaches(int i)
{
	if (riowrite(ends[0], "x", 1, (off_t)i * APART, 0) == 1)
		return true;
	CHECK(errno == EFAULT);
	return false;
}

/* From now on a call that has to tell the peer waits. */
static void use_up(void)
{
	char data;
	int i;

	alarm(LONG_MS / 1000);
	watch();
	wish.iomap = OUTSTANDING + 2;
	pair(ends);
	CHECK(map(0) == 0);
	settle();
	while (known != told)
		FAILS(rrecv(ends[1], &data, 1, MSG_DONTWAIT), EAGAIN);
	held = true;
	for (i = 1; i <= OUTSTANDING; i++)
		CHECK(map(i) == (off_t)i * APART);
}

struct call {
	int ret, error;
	volatile bool done;
};

static void *unmap_first(void *arg)
{
	struct call *call = arg;

	call->ret = unmap(0);
	call->error = errno;
	call->done = true;
	return NULL;
}

static pthread_t start_unmapping(struct call *call)
{
	pthread_t thread;

	use_up();
	CHECK(!pthread_create(&thread, NULL, unmap_first, call));
	while (!waits)
		usleep(1000);
	return thread;
}

static void interrupt(int signal)
{
	(void)signal;
}

static void test_interrupted(void)
{
	struct sigaction action = {.sa_handler = interrupt};
	struct call call = {0};
	pthread_t thread;

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	thread = start_unmapping(&call);
	while (!call.done) {
		CHECK(!pthread_kill(thread, SIGUSR1));
		usleep(5000);
	}
	CHECK(!pthread_join(thread, NULL));
	CHECK(call.ret == -1 && call.error == EINTR);
	held = false;
	settle();
	CHECK(reaches(0));
	CHECK(!unmap(0));
	settle();
	CHECK(!reaches(0));
	CHECK(reaches(1));
	close_pair(ends);
}

static void test_two_threads(void)
{
	struct call call = {0};
	pthread_t thread = start_unmapping(&call);

	held = false;
	/* This wakes the other one, which has to tell the peer then. */
	CHECK(map(OUTSTANDING + 1) == (off_t)(OUTSTANDING + 1) * APART);
	CHECK(!pthread_join(thread, NULL));
	CHECK(!call.ret);
	settle();
	CHECK(reaches(OUTSTANDING + 1));
	CHECK(!reaches(0));
	CHECK(reaches(OUTSTANDING));
	close_pair(ends);
}

static const struct rsocket_test tests[] = {
	{"interrupted", test_interrupted},
	{"two_threads", test_two_threads},
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
