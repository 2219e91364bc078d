// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: more polling threads than processors: the whole program runs on one. A thread that
 * polls in vain yields to the thread that it waits for, instead of polling until its time slice
 * ends. It learns of a CQE in any of its CQs, and each message arrives once, in order.
 */
#include <pthread.h>

#include "verbs_test.h"

#define ROUNDS	300
#define LEN	200
#define CQS	3
#define THREADS 3
/* The limit for the average of empty polls per wait. In a time slice there are over twenty
 * thousand; a thread that yields needs about a thousand. */
#define EMPTY_POLLS 5000

enum { QPN = 0, LID = 16 };

static uint64_t empty;

/* The send completes during the post: no packet is lost, and a receive is posted. */
static void send_one(struct ibv_qp *qp, struct side *s, uint64_t id, size_t off)
{
	CHECK_EQ(post_send1(qp, s, id, off, LEN, IBV_SEND_SIGNALED), 0);
	expect_wc(qp->send_cq, id, IBV_WC_SUCCESS);
}

/* Returns the next completion of any of n CQs, polled in turn. */
static struct ibv_wc any_wc(struct ibv_cq **cq, int n, int *which)
{
	struct ibv_wc wc;

	for (int i = 0;; i = (i + 1) % n) {
		int got = ibv_poll_cq(cq[i], 1, &wc);

		CHECK(got >= 0);
		if (got) {
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			*which = i;
			return wc;
		}
		__atomic_add_fetch(&empty, 1, __ATOMIC_RELAXED);
	}
}

static void gave_way(const char *what, uint64_t waits)
{
	if (empty > waits * EMPTY_POLLS)
		fprintf(stderr, "%s: %llu empty polls in %llu waits\n", what,
			(unsigned long long)empty, (unsigned long long)waits);
	CHECK(empty <= waits * EMPTY_POLLS);
}

/* ---- two processes, each with several QPs that have a CQ each ---- */

static void pair(int me)
{
	struct ibv_qp *qp[CQS];
	struct ibv_cq *cq[CQS];
	struct side s;
	struct link l;
	int which;

	on_one_processor();
	side_open(&s, 16384, 64, 0);
	for (int i = 0; i < CQS; i++) {
		struct side mine = s;

		mine.rcq = cq[i] = ibv_create_cq(s.context, 64, NULL, NULL, 0);
		CHECK(cq[i]);
		qp[i] = make_qp(&mine, IBV_QPT_RC, NULL, NULL, NULL);
		post(QPN + 2 * i + me, qp[i]->qp_num);
	}
	post(LID + me, s.lid);
	meet(2);
	for (int i = 0; i < CQS; i++) {
		link_defaults(&l, (uint16_t)board->word[LID + !me],
			      (uint32_t)board->word[QPN + 2 * i + !me]);
		connect_qp(qp[i], &l);
		CHECK_EQ(post_recv1(qp[i], &s, 0, 4096 + i * LEN, LEN), 0);
	}
	meet(2);
	for (int n = 0; n < ROUNDS; n++) {
		/* The first process sends, the second answers, over a different connection each
		 * time. */
		int over = n * 7 / 3 % CQS;

		if (!me) {
			fill(s.buf, LEN, n);
			send_one(qp[over], &s, n, 0);
		}
		any_wc(cq, CQS, &which);
		CHECK_EQ(which, over);
		CHECK_EQ(differs(s.buf + 4096 + over * LEN, LEN, me ? n : n + 1000000), -1);
		CHECK_EQ(post_recv1(qp[over], &s, 0, 4096 + over * LEN, LEN), 0);
		if (me) {
			fill(s.buf, LEN, n + 1000000);
			send_one(qp[over], &s, n, 0);
		}
	}
	meet(2);
	gave_way("a process", ROUNDS);
	for (int i = 0; i < CQS; i++) {
		CHECK_EQ(ibv_destroy_qp(qp[i]), 0);
		CHECK_EQ(ibv_destroy_cq(cq[i]), 0);
	}
	side_close(&s);
}

/* ---- threads of one process that send to each other, in a ring ---- */

static struct side ring;
static struct ibv_qp *to_next[THREADS], *from_last[THREADS];
static struct ibv_cq *cq_of[THREADS];

static void *member(void *arg)
{
	intptr_t me = (intptr_t)arg;
	int which;

	for (int n = 0; n < ROUNDS; n++) {
		if (!me)
			send_one(to_next[me], &ring, n, 0);
		any_wc(&cq_of[me], 1, &which);
		if (me)
			send_one(to_next[me], &ring, n, 4096 + me * LEN);
		else
			CHECK_EQ(differs(ring.buf + 4096, LEN, 5), -1);
		CHECK_EQ(post_recv1(from_last[me], &ring, 0, 4096 + me * LEN, LEN), 0);
	}
	return NULL;
}

static void threads(void)
{
	struct ibv_cq *send_cq[THREADS];
	pthread_t thread[THREADS];

	on_one_processor();
	empty = 0;
	side_open(&ring, 16384, 64, 0);
	fill(ring.buf, LEN, 5);
	for (int i = 0; i < THREADS; i++) {
		struct side mine = ring;

		mine.rcq = cq_of[i] = ibv_create_cq(ring.context, 64, NULL, NULL, 0);
		CHECK(cq_of[i]);
		from_last[i] = make_qp(&mine, IBV_QPT_RC, NULL, NULL, NULL);
		mine.scq = ibv_create_cq(ring.context, 64, NULL, NULL, 0);
		CHECK(mine.scq);
		to_next[i] = make_qp(&mine, IBV_QPT_RC, NULL, NULL, NULL);
	}
	for (int i = 0; i < THREADS; i++) {
		connect_pair(&ring, to_next[i], from_last[(i + 1) % THREADS]);
		CHECK_EQ(post_recv1(from_last[i], &ring, 0, 4096 + i * LEN, LEN), 0);
	}
	for (intptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, member, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	gave_way("the threads", THREADS * ROUNDS);
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(ibv_destroy_qp(from_last[i]), 0);
		send_cq[i] = to_next[i]->send_cq;
		CHECK_EQ(ibv_destroy_qp(to_next[i]), 0);
		CHECK_EQ(ibv_destroy_cq(cq_of[i]), 0);
		CHECK_EQ(ibv_destroy_cq(send_cq[i]), 0);
	}
	side_close(&ring);
}

int main(void)
{
	pid_t child;

	test_begin();
	child = spawn(pair, 1);
	pair(0);
	join(child);
	threads();
	return 0;
}
