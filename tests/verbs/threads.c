// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: threads: each with QPs and a CQ of its own, all on one QP and one CQ, receiving from
 * one SRQ, waiting for completion events, and making and ending objects while the others work.
 * Nothing is lost and nothing comes twice.
 */
#include <pthread.h>

#include "verbs_test.h"

#define THREADS	 4
#define MESSAGES 1500

static struct side s;
static struct ibv_qp *shared_a, *shared_b;
static struct ibv_srq *srq;
static uint8_t seen[THREADS][MESSAGES];
static uint8_t received[THREADS * MESSAGES];
static unsigned int done, taken, posted, stop;

static void run(void *(*fn)(void *), int n)
{
	pthread_t thread[THREADS];

	for (intptr_t i = 0; i < n; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, fn, (void *)i), 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
}

/* Threads share only the context and the PD. Half of them wait for events. */
static void *alone(void *arg)
{
	intptr_t me = (intptr_t)arg;
	struct side mine = s;
	struct ibv_qp *a, *b;

	mine.channel = ibv_create_comp_channel(s.context);
	CHECK(mine.channel);
	mine.scq = ibv_create_cq(s.context, 16, NULL, NULL, 0);
	mine.rcq = ibv_create_cq(s.context, 16, NULL, mine.channel, 0);
	CHECK(mine.scq && mine.rcq);
	mine.buf = s.buf + me * 8192;
	a = make_qp(&mine, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&mine, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&mine, a, b);
	for (uint64_t i = 0; i < MESSAGES; i++) {
		if (me % 2)
			CHECK_EQ(ibv_req_notify_cq(mine.rcq, 0), 0);
		CHECK_EQ(post_recv1(b, &mine, i, 4096, 100), 0);
		fill(mine.buf, 100, i * THREADS + me);
		CHECK_EQ(post_send1(a, &mine, i, 0, 100, IBV_SEND_SIGNALED), 0);
		if (me % 2) {
			struct ibv_cq *cq;
			void *context;

			CHECK_EQ(ibv_get_cq_event(mine.channel, &cq, &context), 0);
			CHECK(cq == mine.rcq);
			ibv_ack_cq_events(cq, 1);
		}
		expect_wc(mine.rcq, i, IBV_WC_SUCCESS);
		expect_wc(mine.scq, i, IBV_WC_SUCCESS);
		CHECK_EQ(differs(mine.buf + 4096, 100, i * THREADS + me), -1);
	}
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	CHECK_EQ(ibv_destroy_cq(mine.scq), 0);
	CHECK_EQ(ibv_destroy_cq(mine.rcq), 0);
	CHECK_EQ(ibv_destroy_comp_channel(mine.channel), 0);
	return NULL;
}

static void poll_shared(void)
{
	struct ibv_wc wc[3];
	int n = ibv_poll_cq(s.scq, 3, wc);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		CHECK_EQ(wc[i].status, IBV_WC_SUCCESS);
		CHECK_EQ(__atomic_fetch_add(&seen[wc[i].wr_id >> 32][(uint32_t)wc[i].wr_id], 1,
					    __ATOMIC_RELAXED),
			 0);
		__atomic_add_fetch(&done, 1, __ATOMIC_RELEASE);
	}
}

/* All threads post to one QP, and poll one CQ for completions of all of them. */
static void *together(void *arg)
{
	uint64_t me = (uintptr_t)arg;

	for (uint64_t i = 0; i < MESSAGES; i++) {
		/* The requests of the other threads may fill the queue. */
		while (post_rdma1(shared_a, &s, IBV_WR_RDMA_WRITE, me << 32 | i, me * 64, 64,
				  (uintptr_t)s.buf + 65536 + me * 64, s.mr->rkey,
				  IBV_SEND_SIGNALED))
			poll_shared();
		poll_shared();
	}
	while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < THREADS * MESSAGES)
		poll_shared();
	return NULL;
}

static void poll_received(void)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(s.rcq, 1, &wc);

	CHECK(n >= 0);
	if (!n)
		return;
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(__atomic_fetch_add(&received[wc.wr_id], 1, __ATOMIC_RELAXED), 0);
	__atomic_add_fetch(&taken, 1, __ATOMIC_RELEASE);
}

/* The first thread sends. The others post receives to the SRQ, which is full at times, and poll. */
static void *one_srq(void *arg)
{
	struct ibv_wc wc;
	unsigned int id;

	if (!arg) {
		for (int sent = 0; sent < THREADS * MESSAGES;) {
			sent += !post_send1(shared_a, &s, 1, 0, 64, IBV_SEND_SIGNALED);
			while (ibv_poll_cq(s.scq, 1, &wc) == 1)
				CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		}
		return NULL;
	}
	while ((id = __atomic_fetch_add(&posted, 1, __ATOMIC_RELAXED)) < THREADS * MESSAGES) {
		while (post_srq1(srq, &s, id, 131072 + id % 64 * 64, 64))
			poll_received();
		poll_received();
	}
	while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) < THREADS * MESSAGES)
		poll_received();
	return NULL;
}

/* Creates and destroys objects during traffic. */
static void *churn(void *arg)
{
	intptr_t me = (intptr_t)arg;

	if (me == 0) {
		for (int i = 0; i < 2 * MESSAGES; i++) {
			CHECK_EQ(post_rdma1(shared_a, &s, IBV_WR_RDMA_WRITE, i, 0, 64,
					    (uintptr_t)s.buf + 4096, s.mr->rkey, IBV_SEND_SIGNALED),
				 0);
			expect_wc(s.scq, i, IBV_WC_SUCCESS);
		}
		__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
		return NULL;
	}
	do {
		struct side mine = s;
		struct ibv_qp *qp;

		mine.pd = ibv_alloc_pd(s.context);
		mine.scq = mine.rcq = ibv_create_cq(s.context, 8, NULL, NULL, 0);
		CHECK(mine.pd && mine.scq);
		mine.mr = ibv_reg_mr(mine.pd, s.buf + 8192 * me, 4096,
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		CHECK(mine.mr);
		mine.buf = s.buf + 8192 * me;
		qp = make_qp(&mine, IBV_QPT_RC, NULL, NULL, NULL);
		connect_pair(&mine, qp, qp);
		CHECK_EQ(post_rdma1(qp, &mine, IBV_WR_RDMA_WRITE, 1, 0, 64,
				    (uintptr_t)mine.buf + 64, mine.mr->rkey, IBV_SEND_SIGNALED),
			 0);
		expect_wc(mine.scq, 1, IBV_WC_SUCCESS);
		CHECK_EQ(ibv_destroy_qp(qp), 0);
		CHECK_EQ(ibv_dereg_mr(mine.mr), 0);
		CHECK_EQ(ibv_destroy_cq(mine.scq), 0);
		CHECK_EQ(ibv_dealloc_pd(mine.pd), 0);
	} while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE));
	return NULL;
}

int main(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 32, .max_sge = 1}};

	test_begin();
	side_open(&s, 1 << 18, 256, 0);
	run(alone, THREADS);

	shared_a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	shared_b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, shared_a, shared_b);
	run(together, THREADS);
	for (int t = 0; t < THREADS; t++)
		for (int i = 0; i < MESSAGES; i++)
			CHECK_EQ(seen[t][i], 1);
	expect_silence(s.scq, 0);
	run(churn, THREADS);
	CHECK_EQ(ibv_destroy_qp(shared_a), 0);
	CHECK_EQ(ibv_destroy_qp(shared_b), 0);

	srq = ibv_create_srq(s.pd, &init);
	CHECK(srq);
	shared_a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	shared_b = make_qp(&s, IBV_QPT_RC, srq, NULL, NULL);
	connect_pair(&s, shared_a, shared_b);
	run(one_srq, THREADS);
	for (int i = 0; i < THREADS * MESSAGES; i++)
		CHECK_EQ(received[i], 1);
	CHECK_EQ(ibv_destroy_qp(shared_a), 0);
	CHECK_EQ(ibv_destroy_qp(shared_b), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	side_close(&s);
	return 0;
}
