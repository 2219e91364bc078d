// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: completion events: an armed CQ generates one event; solicited only; several CQs on a
 * channel; poll(), O_NONBLOCK and acknowledgements in batches. A CQ ends only after its events are
 * acknowledged, and its unread events end with it. A read() takes one event, whatever it asks for,
 * and a signal interrupts it as its handler says.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/uio.h>

#include "verbs_test.h"

static struct side s;
static struct ibv_qp *a, *b;

static bool pending(struct ibv_comp_channel *channel)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

/* Takes the event of this CQ, with this context, and does not acknowledge it. */
static void take_event(struct ibv_comp_channel *channel, struct ibv_cq *cq, void *context)
{
	struct ibv_cq *got;
	void *got_context;

	CHECK_EQ(ibv_get_cq_event(channel, &got, &got_context), 0);
	CHECK(got == cq);
	CHECK(got_context == context);
}

static void message(uint64_t id, int flags)
{
	CHECK_EQ(post_recv1(b, &s, id, 4096, 64), 0);
	CHECK_EQ(post_send1(a, &s, id, 0, 64, IBV_SEND_SIGNALED | flags), 0);
	expect_wc(s.scq, id, IBV_WC_SUCCESS);
}

static void arming(void)
{
	/* Not armed: no event. */
	message(1, 0);
	CHECK(!pending(s.channel));
	/* A CQE that is there when the CQ is armed, and has generated no event, generates one at
	 * once or is found by the poll that follows. Here it is polled first. */
	expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_req_notify_cq(s.rcq, 0), 0);
	CHECK(!pending(s.channel));
	message(2, 0);
	message(3, 0);
	CHECK(pending(s.channel));
	take_event(s.channel, s.rcq, &s);
	/* Armed once: one event. */
	CHECK(!pending(s.channel));
	expect_wc(s.rcq, 2, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 3, IBV_WC_SUCCESS);
	/* Arming twice has the effect of arming once. */
	CHECK_EQ(ibv_req_notify_cq(s.rcq, 0), 0);
	CHECK_EQ(ibv_req_notify_cq(s.rcq, 0), 0);
	message(4, 0);
	take_event(s.channel, s.rcq, &s);
	CHECK(!pending(s.channel));
	expect_wc(s.rcq, 4, IBV_WC_SUCCESS);
	ibv_ack_cq_events(s.rcq, 2);
}

static void solicited(void)
{
	struct ibv_send_wr wr = {.wr_id = 20,
				 .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				 .send_flags = IBV_SEND_SOLICITED},
			   *bad;

	CHECK_EQ(ibv_req_notify_cq(s.rcq, 1), 0);
	message(10, 0);
	message(11, 0);
	CHECK(!pending(s.channel));
	message(12, IBV_SEND_SOLICITED);
	CHECK(pending(s.channel));
	take_event(s.channel, s.rcq, &s);
	for (int i = 10; i <= 12; i++)
		expect_wc(s.rcq, i, IBV_WC_SUCCESS);
	/* A WRITE is never solicited; one with immediate data may be. */
	CHECK_EQ(ibv_req_notify_cq(s.rcq, 1), 0);
	CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, 13, 0, 64, (uintptr_t)s.buf + 8192,
			    s.mr->rkey, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED),
		 0);
	expect_wc(s.scq, 13, IBV_WC_SUCCESS);
	CHECK(!pending(s.channel));
	CHECK_EQ(post_recv1(b, &s, 20, 4096, 64), 0);
	CHECK_EQ(ibv_post_send(a, &wr, &bad), 0);
	expect_wc(s.rcq, 20, IBV_WC_SUCCESS);
	take_event(s.channel, s.rcq, &s);
	/* A request for any completion takes precedence over solicited only. */
	CHECK_EQ(ibv_req_notify_cq(s.rcq, 1), 0);
	CHECK_EQ(ibv_req_notify_cq(s.rcq, 0), 0);
	message(14, 0);
	take_event(s.channel, s.rcq, &s);
	expect_wc(s.rcq, 14, IBV_WC_SUCCESS);
	/* An error is not solicited, but generates an event all the same. */
	CHECK_EQ(ibv_req_notify_cq(s.rcq, 1), 0);
	CHECK_EQ(post_recv1(b, &s, 15, 4096, 64), 0);
	CHECK(!pending(s.channel));
	CHECK_EQ(to_state(b, IBV_QPS_ERR), 0);
	expect_wc(s.rcq, 15, IBV_WC_WR_FLUSH_ERR);
	take_event(s.channel, s.rcq, &s);
	ibv_ack_cq_events(s.rcq, 4);
}

static void non_blocking(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(s.context);
	struct ibv_cq *cq[3], *got;
	struct ibv_qp *qp[3];
	void *context;
	int seen[3] = {0};

	CHECK(channel);
	CHECK_EQ(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
	errno = 0;
	CHECK_EQ(ibv_get_cq_event(channel, &got, &context), -1);
	CHECK_EQ(errno, EAGAIN);
	for (int i = 0; i < 3; i++) {
		struct ibv_cq *own = s.scq;

		cq[i] = ibv_create_cq(s.context, 8, &cq[i], channel, 0);
		CHECK(cq[i]);
		CHECK_EQ(channel->refcnt, i + 1);
		s.scq = cq[i];
		qp[i] = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
		s.scq = own;
		connect_pair(&s, qp[i], qp[i]);
		CHECK_EQ(ibv_req_notify_cq(cq[i], 0), 0);
	}
	CHECK_EQ(ibv_destroy_comp_channel(channel), EBUSY);
	/* Events come in the order of the completions. */
	for (int i = 2; i >= 0; i--)
		CHECK_EQ(post_rdma1(qp[i], &s, IBV_WR_RDMA_WRITE, i, 0, 8, (uintptr_t)s.buf + 4096,
				    s.mr->rkey, IBV_SEND_SIGNALED),
			 0);
	for (int i = 2; i >= 0; i--) {
		take_event(channel, cq[i], &cq[i]);
		seen[i]++;
		expect_wc(cq[i], i, IBV_WC_SUCCESS);
	}
	CHECK(seen[0] && seen[1] && seen[2]);
	errno = 0;
	CHECK_EQ(ibv_get_cq_event(channel, &got, &context), -1);
	CHECK_EQ(errno, EAGAIN);
	for (int i = 0; i < 3; i++) {
		ibv_ack_cq_events(cq[i], 1);
		CHECK_EQ(ibv_destroy_cq(cq[i]), EBUSY);
		CHECK_EQ(ibv_destroy_qp(qp[i]), 0);
		CHECK_EQ(ibv_destroy_cq(cq[i]), 0);
	}
	CHECK_EQ(ibv_destroy_comp_channel(channel), 0);
}

static uint32_t acked;

static void *acknowledge_later(void *arg)
{
	struct ibv_cq *cq = arg;

	for (int i = 0; i < 3; i++) {
		sleep_ms(10);
		__atomic_add_fetch(&acked, 1, __ATOMIC_SEQ_CST);
		ibv_ack_cq_events(cq, i == 2 ? 3 : 1);
	}
	return NULL;
}

/* Five events are read, one is not: destroying waits for the five, and the sixth is never seen. */
static void destruction(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(s.context);
	struct ibv_cq *own = s.scq, *cq = ibv_create_cq(s.context, 64, NULL, channel, 0);
	struct ibv_qp *qp;
	pthread_t thread;

	CHECK(channel && cq);
	s.scq = cq;
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	s.scq = own;
	connect_pair(&s, qp, qp);
	for (int i = 0; i < 6; i++) {
		CHECK_EQ(ibv_req_notify_cq(cq, 0), 0);
		CHECK_EQ(post_rdma1(qp, &s, IBV_WR_RDMA_WRITE, i, 0, 8, (uintptr_t)s.buf + 4096,
				    s.mr->rkey, IBV_SEND_SIGNALED),
			 0);
		expect_wc(cq, i, IBV_WC_SUCCESS);
		if (i < 5)
			take_event(channel, cq, NULL);
	}
	CHECK(pending(channel));
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	CHECK_EQ(pthread_create(&thread, NULL, acknowledge_later, cq), 0);
	CHECK_EQ(ibv_destroy_cq(cq), 0);
	CHECK_EQ(__atomic_load_n(&acked, __ATOMIC_SEQ_CST), 3);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK(!pending(channel));
	CHECK_EQ(ibv_destroy_comp_channel(channel), 0);
}

/* What a program reads that asks for more or less than one event. */
static void reads_of_other_sizes(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(s.context);
	struct ibv_cq *own = s.scq, *cq = ibv_create_cq(s.context, 64, NULL, channel, 0);
	struct ibv_async_event event;
	uint64_t in[8];
	struct iovec each[3] = {{in, 8}, {in + 1, 8}, {in + 2, 8}};
	struct ibv_qp *qp;

	CHECK(channel && cq);
	CHECK_EQ(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
	CHECK_EQ(fcntl(s.context->async_fd, F_SETFL, O_NONBLOCK), 0);
	s.scq = cq;
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	s.scq = own;
	connect_pair(&s, qp, qp);
	CHECK_EQ(read(channel->fd, in, 4), -1);
	CHECK_EQ(errno, EAGAIN);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(ibv_req_notify_cq(cq, 0), 0);
		CHECK_EQ(post_rdma1(qp, &s, IBV_WR_RDMA_WRITE, i, 0, 8, (uintptr_t)s.buf + 4096,
				    s.mr->rkey, IBV_SEND_SIGNALED),
			 0);
		expect_wc(cq, i, IBV_WC_SUCCESS);
	}
	CHECK_EQ(read(channel->fd, in, 4), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(read(channel->fd, in, 12), 8);
	CHECK_EQ(read(channel->fd, in + 1, 16), 8);
	CHECK(in[0] == in[1]);
	CHECK_EQ(readv(channel->fd, each, 2), 16);
	take_event(channel, cq, NULL);
	CHECK(!pending(channel));
	ibv_ack_cq_events(cq, 5);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	CHECK_EQ(ibv_destroy_cq(cq), 0);
	CHECK_EQ(ibv_destroy_comp_channel(channel), 0);

	/* An asynchronous event has 16 octets. */
	port_change("pkey 3 0x8001");
	port_change("pkey 4 0x8002");
	CHECK_EQ(read(s.context->async_fd, in, 8), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(read(s.context->async_fd, in, sizeof(in)), 16);
	CHECK_EQ(ibv_get_async_event(s.context, &event), 0);
	CHECK_EQ(event.event_type, IBV_EVENT_PKEY_CHANGE);
	ibv_ack_async_event(&event);
	CHECK_EQ(read(s.context->async_fd, in, 8), -1);
	CHECK_EQ(errno, EAGAIN);
}

/*
 * ThreadSanitizer keeps a signal back until the thread makes its next call, so none reaches a
 * thread in read().
 */
#if defined(__SANITIZE_THREAD__)
#define SIGNALS_ARRIVE 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIGNALS_ARRIVE 0
#endif
#endif
#ifndef SIGNALS_ARRIVE
#define SIGNALS_ARRIVE 1
#endif

static int interrupted, next_fd;

/* The number that the next file will have that this process opens. */
static int lowest_fd(void)
{
	int fd = dup(0);

	CHECK(fd >= 0);
	CHECK_EQ(close(fd), 0);
	return fd;
}

static void on_signal(int sig)
{
	(void)sig;
	__atomic_fetch_add(&interrupted, 1, __ATOMIC_RELAXED);
}

/*
 * Signals the thread that reads until its handler has run often; then raises the event that it
 * waits for.
 */
static void *interrupts(void *reader)
{
	for (int n; (n = __atomic_load_n(&interrupted, __ATOMIC_RELAXED)) < 50;) {
		CHECK_EQ(pthread_kill(*(pthread_t *)reader, SIGUSR1), 0);
		while (__atomic_load_n(&interrupted, __ATOMIC_RELAXED) == n)
			sched_yield();
		usleep(1000);
		/*
		 * A read that waits has no files of its own, which others would see and might
		 * close.
		 */
		CHECK_EQ(lowest_fd(), next_fd);
	}
	message(9, 0);
	return NULL;
}

/*
 * A read that is too short for an event waits for one all the same; after a signal it goes on if
 * the handler says so.
 */
static void interrupted_reads(void)
{
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	pthread_t thread, self = pthread_self();
	char in[4];

	next_fd = lowest_fd();
	CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
	CHECK_EQ(ibv_req_notify_cq(s.rcq, 0), 0);
	CHECK_EQ(pthread_create(&thread, NULL, interrupts, &self), 0);
	CHECK_EQ(read(s.channel->fd, in, sizeof(in)), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(interrupted, 50);
	take_event(s.channel, s.rcq, &s);
	ibv_ack_cq_events(s.rcq, 1);
	expect_wc(s.rcq, 9, IBV_WC_SUCCESS);

	/* As soon as a handler does not, it ends. */
	act.sa_flags = 0;
	CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
	interrupted = 0;
	CHECK_EQ(ibv_req_notify_cq(s.rcq, 0), 0);
	CHECK_EQ(pthread_create(&thread, NULL, interrupts, &self), 0);
	CHECK_EQ(read(s.channel->fd, in, sizeof(in)), -1);
	CHECK_EQ(errno, EINTR);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	take_event(s.channel, s.rcq, &s);
	ibv_ack_cq_events(s.rcq, 1);
	expect_wc(s.rcq, 9, IBV_WC_SUCCESS);
}

static void bad_vector(void)
{
	CHECK(s.context->num_comp_vectors >= 1);
	CHECK(!ibv_create_cq(s.context, 8, NULL, s.channel, s.context->num_comp_vectors));
	CHECK_EQ(errno, EINVAL);
	CHECK(!ibv_create_cq(s.context, 0x400000, NULL, NULL, 0));
	CHECK_EQ(errno, EINVAL);
}

int main(void)
{
	test_begin();
	side_open(&s, 16384, 64, SIDE_CHANNEL);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
	arming();
	if (SIGNALS_ARRIVE)
		interrupted_reads();
	solicited();
	non_blocking();
	destruction();
	reads_of_other_sizes();
	bad_vector();
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
	return 0;
}
