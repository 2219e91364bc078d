// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: several threads post to one queue and poll one CQ, and no request is lost or
 * doubled. Each operation waits for the locks that it needs and for no other. The number of
 * operations bounds each test.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "fake-kernel.h"
#include "mlx4.h"

enum { THREADS = 4, EACH = 2000, TOTAL = THREADS * EACH };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct dev_cq cq;
static struct dev_qp qp;
static struct dev_srq srq;
static int failures; /* only the first thread may call cmocka's asserts */

static void run(void *(*body)(void *))
{
	pthread_t thread[THREADS];
	uintptr_t i;

	failures = 0;
	for (i = 0; i < THREADS; ++i)
		assert_int_equal(pthread_create(&thread[i], NULL, body, (void *)i), 0);
	for (i = 0; i < THREADS; ++i)
		pthread_join(thread[i], NULL);
	assert_int_equal(failures, 0);
}

static void count_failure(void)
{
	__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

static uint8_t seen[TOTAL];

static void all_seen_once(void)
{
	int i;

	for (i = 0; i < TOTAL; ++i)
		assert_int_equal(seen[i], 1);
	memset(seen, 0, sizeof(seen));
}

static int xrc; /* whether the running test is of XRC; else it is of RC */
static struct ibv_xrc_domain *domain;

static void create_srq(void)
{
	dev_create_srq(&srq, pd, xrc ? domain : NULL, xrc ? cq.cq : NULL, 15, 1);
}

/* Completes the next receive of the SRQ, as the device does. */
static void complete_srq(void)
{
	dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num,
						.dw2 = xrc ? srq.srq->xrc_srq_num : 0,
						.wqe_index = dev_take_srq_wqe(&srq),
						.sr_opcode = 1});
}

static void create(int max_wr, struct ibv_srq *shared)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq.cq,
		.recv_cq = cq.cq,
		.srq = xrc ? NULL : shared,
		.cap = {.max_send_wr = max_wr,
			.max_recv_wr = shared ? 0 : max_wr,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 16},
		.qp_type = xrc ? IBV_QPT_XRC : IBV_QPT_RC,
	};

	if (xrc)
		attr.xrc_domain = domain;
	dev_create_qp(&qp, pd, &attr);
	dev_init_qp(&qp);
}

static void *post_sends(void *arg)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .num_sge = 1}, *bad;
	uintptr_t thread = (uintptr_t)arg, i;
	uint64_t payload;
	struct ibv_sge sge;

	for (i = 0; i < EACH; ++i) {
		wr.wr_id = payload = thread * EACH + i;
		wr.wr.rdma.remote_addr = wr.wr_id;
		sge = (struct ibv_sge){(uintptr_t)&payload, 8, 0};
		wr.sg_list = &sge;
		/* Plain and inline requests take turns, so that both ways of posting meet. */
		wr.send_flags = i % 3 ? 0 : IBV_SEND_INLINE;
		if (ibv_post_send(qp.qp, &wr, &bad))
			count_failure();
	}
	return NULL;
}

/* Each WQE is whole: it has the remote address that belongs to the wr_id polled for it. */
static void sends(void **state)
{
	struct ibv_wc wc;
	uint32_t i;

	(void)state;
	create(TOTAL, NULL);
	run(post_sends);
	for (i = 0; i < TOTAL; ++i) {
		assert_int_equal(be32_at(dev_sq_slot(&qp, i), 0) >> 31, 0);
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num,
							.wqe_index = i,
							.sr_opcode = 0x48});
		assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
		assert_int_equal(be64_at(dev_sq_slot(&qp, i), 16), wc.wr_id);
		++seen[wc.wr_id];
	}
	assert_int_equal(be32_at(dev_sq_slot(&qp, TOTAL), 0) >> 31, 1);
	all_seen_once();
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

static void *post_recvs(void *arg)
{
	uintptr_t thread = (uintptr_t)arg, i;
	struct ibv_recv_wr wr = {.num_sge = 1}, *bad;
	struct ibv_sge sge = {.length = 1};

	wr.sg_list = &sge;
	for (i = 0; i < EACH; ++i) {
		wr.wr_id = sge.addr = thread * EACH + i;
		if (ibv_post_recv(qp.qp, &wr, &bad))
			count_failure();
	}
	return NULL;
}

static void *poll_share(void *arg)
{
	struct ibv_wc wc[5];
	int n, i;

	(void)arg;
	while ((n = ibv_poll_cq(cq.cq, 5, wc)) > 0) {
		for (i = 0; i < n; ++i)
			if (wc[i].status != IBV_WC_SUCCESS ||
			    __atomic_fetch_add(&seen[wc[i].wr_id], 1, __ATOMIC_RELAXED))
				count_failure();
	}
	if (n < 0)
		count_failure();
	return NULL;
}

static void receives(void **state)
{
	uint32_t i;

	(void)state;
	create(TOTAL, NULL);
	run(post_recvs);
	assert_int_equal(be32_at(qp.db, 0), TOTAL);
	for (i = 0; i < TOTAL; ++i)
		++seen[be64_at(qp.rq + ((size_t)i << qp.rq_shift), 8)];
	all_seen_once();

	/* All threads poll the completions. */
	for (i = 0; i < TOTAL; ++i)
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num, .sr_opcode = 1});
	run(poll_share);
	all_seen_once();
	assert_int_equal(be32_at(cq.db, 0), cq.producer & 0xffffff);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

static uint32_t next_id;
static pthread_mutex_t device = PTHREAD_MUTEX_INITIALIZER;
static uint32_t consumed;

/*
 * The SRQ is too small for all receives. Each thread posts, does the device's part when there is a
 * WQE to take, and polls.
 */
static void *share_srq(void *arg)
{
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	uint32_t id = ~0u;
	struct ibv_wc wc;
	int n, ret;

	(void)arg;
	while (__atomic_load_n(&consumed, __ATOMIC_RELAXED) < TOTAL) {
		if (id == ~0u)
			id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED);
		if (id < TOTAL) {
			wr.wr_id = id;
			ret = ibv_post_srq_recv(srq.srq, &wr, &bad);
			if (!ret)
				id = ~0u;
			else if (ret != ENOMEM)
				count_failure();
		}

		pthread_mutex_lock(&device);
		/* cq.producer counts the WQEs taken, the doorbell record those posted. */
		if ((uint16_t)(be32_at(srq.db, 0) - cq.producer))
			complete_srq();
		pthread_mutex_unlock(&device);

		n = ibv_poll_cq(cq.cq, 1, &wc);
		if (n < 0)
			count_failure();
		if (n > 0) {
			if (wc.wr_id >= TOTAL ||
			    __atomic_fetch_add(&seen[wc.wr_id], 1, __ATOMIC_RELAXED))
				count_failure();
			__atomic_fetch_add(&consumed, 1, __ATOMIC_RELAXED);
		} else {
			sched_yield();
		}
	}
	return NULL;
}

static void shared_receives(void **state)
{
	(void)state;
	create_srq();
	create(1, srq.srq);
	next_id = consumed = 0;
	run(share_srq);
	all_seen_once();
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	assert_int_equal(ibv_destroy_srq(srq.srq), 0);
}

/*
 * Runs one operation while this thread holds a lock. A thread that fails to get the lock changes
 * the lock's count, so the test sees that it has come to the lock.
 */

static int done;

static void *one_send(void *arg)
{
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1}, *bad;

	(void)arg;
	if (ibv_post_send(qp.qp, &wr, &bad))
		count_failure();
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *one_recv(void *arg)
{
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	(void)arg;
	if (ibv_post_recv(qp.qp, &wr, &bad))
		count_failure();
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *one_srq_recv(void *arg)
{
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	(void)arg;
	if (ibv_post_srq_recv(srq.srq, &wr, &bad))
		count_failure();
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *one_poll(void *arg)
{
	struct ibv_wc wc;

	(void)arg;
	if (ibv_poll_cq(cq.cq, 1, &wc) != 1)
		count_failure();
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *one_send_to_full(void *arg)
{
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1}, *bad;

	(void)arg;
	if (ibv_post_send(qp.qp, &wr, &bad) != ENOMEM)
		count_failure();
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void waits_for(struct mlx4_lock *lock, void *(*body)(void *))
{
	pthread_t thread;
	int i;

	failures = done = 0;
	mlx4_lock(lock);
	assert_int_equal(pthread_create(&thread, NULL, body, NULL), 0);
	/* The bound is for a provider that never looks at the lock. */
	for (i = 0; i < 10000000 && __atomic_load_n(&lock->free, __ATOMIC_RELAXED) == 0 &&
		    !__atomic_load_n(&done, __ATOMIC_ACQUIRE);
	     ++i)
		sched_yield();
	assert_int_equal(__atomic_load_n(&done, __ATOMIC_ACQUIRE), 0);
	assert_true(__atomic_load_n(&lock->free, __ATOMIC_RELAXED) < 0);
	mlx4_unlock(lock);
	pthread_join(thread, NULL);
	assert_int_equal(failures, 0);
	assert_int_equal(lock->free, 1);
}

static void waiting(void **state)
{
	int i;

	(void)state;
	create(8, NULL);
	waits_for(&to_mlx4_qp(qp.qp)->sq.lock, one_send);
	if (xrc) {
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num, .sr_opcode = 0x4a});
	} else {
		waits_for(&to_mlx4_qp(qp.qp)->rq.lock, one_recv);
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num, .sr_opcode = 1});
	}
	waits_for(&to_mlx4_cq(cq.cq)->lock, one_poll);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);

	create_srq();
	create(1, srq.srq);
	waits_for(&to_mlx4_srq(srq.srq)->lock, one_srq_recv);
	/*
	 * In the first poll the CQ does not remember the QP or the XRC SRQ yet; in the second it
	 * does.
	 */
	for (i = 0; i < 2; ++i) {
		one_srq_recv(NULL);
		complete_srq();
		waits_for(&to_mlx4_srq(srq.srq)->lock, one_poll);
	}
	/* When the queue is full, post_send takes the CQ's lock and looks again. */
	while (to_mlx4_qp(qp.qp)->sq.head < to_mlx4_qp(qp.qp)->sq.max_post)
		one_send(NULL);
	assert_int_equal(failures, 0);
	waits_for(&to_mlx4_cq(cq.cq)->lock, one_send_to_full);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	assert_int_equal(ibv_destroy_srq(srq.srq), 0);
}

static int setup(void **state)
{
	xrc = *state != NULL;
	fk_reset();
	unsetenv("MLX4_SINGLE_THREADED");
	ctx = fk_open();
	if (!ctx)
		return -1;
	pd = ibv_alloc_pd(ctx);
	domain = ibv_open_xrc_domain(ctx, -1, 0);
	dev_create_cq(&cq, ctx, TOTAL);
	return !pd || !domain;
}

static int teardown(void **state)
{
	(void)state;
	return ibv_destroy_cq(cq.cq) || ibv_close_xrc_domain(domain) || ibv_dealloc_pd(pd) ||
	       ibv_close_device(ctx);
}

int main(void)
{
	static char of_xrc[] = "XRC";
#define RC(test)                                                                                   \
	{                                                                                          \
#test "/RC", test, setup, teardown, NULL                                           \
	}
#define XRC(test)                                                                                  \
	{                                                                                          \
#test "/XRC", test, setup, teardown, of_xrc                                        \
	}
	const struct CMUnitTest tests[] = {
		/* no XRC: it has no receive queue */
		RC(sends),   XRC(sends),   RC(receives), RC(shared_receives), XRC(shared_receives),
		RC(waiting), XRC(waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
