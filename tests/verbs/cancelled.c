// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: threads that are cancelled asynchronously, at any instruction of a post or a poll,
 * end as cancelled ones do. The process and its other QPs work on.
 * Quick: half
 */
#include <pthread.h>

#include "verbs_test.h"

#define ROUNDS 100
#define LEN    64
#define PEER   4096 /* where in the buffer the data goes */

static struct side s;
static struct ibv_qp *a, *b;
static struct ibv_cq *own;
static uint64_t turns;

/* Has no CHECK() that it could be cancelled in. */
static void *work(void *long_ones)
{
	uint32_t len = long_ones ? 100000 : LEN;
	struct ibv_wc wc;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;) {
		if (post_rdma1(a, &s, IBV_WR_RDMA_WRITE, 1, 0, len, (uintptr_t)s.buf + PEER,
			       s.mr->rkey, IBV_SEND_SIGNALED))
			abort();
		while (!ibv_poll_cq(own, 1, &wc))
			;
		if (wc.status != IBV_WC_SUCCESS)
			abort();
		__atomic_add_fetch(&turns, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

int main(void)
{
	struct ibv_qp *x, *y;

	test_begin();
	test_seed();
	side_open(&s, 1 << 20, 64, 0);
	x = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	y = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, x, y);
	for (long i = 0; i < ROUNDS; i++) {
		struct ibv_cq *scq = s.scq;
		uint64_t before = __atomic_load_n(&turns, __ATOMIC_RELAXED);
		pthread_t thread;
		void *result;

		/* They stay: the thread may have ended with a lock of the provider. */
		own = ibv_create_cq(s.context, 64, NULL, NULL, 0);
		CHECK(own);
		s.scq = own;
		a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
		s.scq = scq;
		b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
		connect_pair(&s, a, b);
		CHECK_EQ(pthread_create(&thread, NULL, work, (void *)(i & 1)), 0);
		while (__atomic_load_n(&turns, __ATOMIC_RELAXED) == before)
			usleep(50);
		usleep((useconds_t)(random() % 1000));
		CHECK_EQ(pthread_cancel(thread), 0);
		CHECK_EQ(pthread_join(thread, &result), 0);
		CHECK(result == PTHREAD_CANCELED);
		fill(s.buf, LEN, (uint64_t)i);
		CHECK_EQ(post_recv1(y, &s, 2, PEER, LEN), 0);
		CHECK_EQ(post_send1(x, &s, 3, 0, LEN, IBV_SEND_SIGNALED), 0);
		expect_wc(s.scq, 3, IBV_WC_SUCCESS);
		expect_wc(s.rcq, 2, IBV_WC_SUCCESS);
		CHECK_EQ(differs(s.buf + PEER, LEN, (uint64_t)i), -1);
	}
	return 0;
}
