// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: many threads ring at once, on QPs of their own and on a shared one, into one SRQ,
 * while the daemon queries QPs, and breaks and rebuilds one. Every message arrives once, in order
 * for each QP.
 */
#include <endian.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_pair.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/mr.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/transport/doorbell.h"

#define SENDERS 3
#define SHARERS 2
#define COUNT	400

struct scene {
	struct mock *m;
	uint32_t actx, bctx;
	struct tcq acq, bcq;
	struct tsrq srq;
	struct tqp a[SENDERS + 1], b[SENDERS + 1];
	uint8_t *mem;
	pthread_mutex_t post; /* the provider's, for the shared QP */
	uint32_t stop;
};

static struct scene s;

static void wr_of(struct twr *wr, uint32_t who, uint32_t n)
{
	uint8_t *at = s.mem + 4096 * who + 8 * n;

	memcpy(at, &(uint32_t[2]){who, n}, 8);
	*wr = (struct twr){.opcode = MLX4_OPCODE_SEND, .nsge = 1, .sge = {{at, 8, 0x1000}}};
}

/* The mock's timers are for one thread only, so the main thread does their work. */
static int no_defer(void *host, uint64_t deadline, void (*fn)(struct sh_dev *, uint64_t, uint64_t),
		    uint64_t a, uint64_t b, bool once)
{
	(void)host;
	(void)deadline;
	(void)fn;
	(void)a;
	(void)b;
	(void)once;
	return 0;
}

static void ring(struct tqp *qp)
{
	if (!sh_enter(&s.m->dev))
		abort();
	sh_ring(&s.m->dev, qp->ctx, qp->qpn);
	sh_leave(&s.m->dev);
}

static void room(struct tqp *qp)
{
	while (qp->head - __atomic_load_n(&tqp_ctx(qp)->sq_una, __ATOMIC_RELAXED) > 40)
		ring(qp);
}

static void *sender(void *arg)
{
	uint32_t who = (uint32_t)(uintptr_t)arg;
	struct twr wr;

	for (uint32_t n = 0; n < COUNT; n++) {
		room(&s.a[who]);
		wr_of(&wr, who, n);
		tqp_post(&s.a[who], &wr);
		ring(&s.a[who]);
	}
	return NULL;
}

static uint32_t shared_n;

static void *sharer(void *arg)
{
	struct tqp *qp = &s.a[SENDERS];
	struct twr wr;

	(void)arg;
	for (;;) {
		pthread_mutex_lock(&s.post);
		if (shared_n == COUNT) {
			pthread_mutex_unlock(&s.post);
			return NULL;
		}
		room(qp);
		wr_of(&wr, SENDERS, shared_n++);
		tqp_post(qp, &wr);
		pthread_mutex_unlock(&s.post);
		ring(qp);
	}
}

/* A lock that another thread holds is not a failure: the daemon tries again. */
static bool failed(int err)
{
	return err && err != -EINPROGRESS;
}

static void *daemon_looks(void *arg)
{
	struct sh_qp_info info;
	struct sh_qp_attr attr;

	(void)arg;
	while (!__atomic_load_n(&s.stop, __ATOMIC_RELAXED))
		for (uint32_t i = 0; i <= SENDERS; i++)
			if (failed(sh_qp_info(&s.m->daemon, 0, s.a[i].qpn, &info)) ||
			    failed(sh_qp_query(&s.m->daemon, 1, s.b[i].qpn, &attr)))
				abort();
	return NULL;
}

/* Takes another QP of the device through its states over and over. */
static void *breaker(void *arg)
{
	struct tqp qp;
	struct tcq cq;
	struct sh_qp_attr attr = tqp_attr(tlid(s.m, 1), s.b[0].qpn);

	(void)arg;
	tcq_open(&cq, s.m, 0, s.actx, 0xc0, 4);
	tqp_open(&qp, s.m, 0, s.actx, 4, SH_QPT_UD, 0x90, &cq, &cq, NULL);
	while (!__atomic_load_n(&s.stop, __ATOMIC_RELAXED)) {
		tqp_up(&qp, &attr);
		if (tqp_to(&qp, SH_QPS_SQD) || tqp_to(&qp, SH_QPS_RESET))
			abort();
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct mock_config cfg = {.hcas_per_host = 2};
	pthread_t t[SENDERS + SHARERS + 2];
	uint32_t next[SENDERS + 1] = {0}, got = 0, n = 0;
	struct sh_host_ops ops;
	struct mlx4_cqe cqe;

	(void)state;
	s.m = mock_new(&cfg);
	ops = *s.m->dev.ops;
	ops.defer = no_defer;
	s.m->dev.ops = s.m->daemon.ops = &ops;
	s.actx = mock_ctx(s.m, 0);
	s.bctx = mock_ctx(s.m, 1);
	pthread_mutex_init(&s.post, NULL);
	s.mem = aligned_alloc(4096, TMEM);
	assert_non_null(s.mem);
	mock_map(s.m, s.actx, s.mem, TMEM);
	mock_map(s.m, s.bctx, s.mem, TMEM);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(sh_mr_create(&s.m->daemon, i, 0x1000, i ? s.bctx : s.actx, 4,
					      (uintptr_t)s.mem, TMEM, 0xf),
				 0);
	tcq_open(&s.acq, s.m, 0, s.actx, 0x80, 4);
	tcq_open(&s.bcq, s.m, 1, s.bctx, 0x80, 7);
	tsrq_open(&s.srq, s.m, 1, s.bctx, 4, 0x60, 0, 0);
	for (uint32_t i = 0; i <= SENDERS; i++) {
		struct topts o = {.no_rq = true, .srqn = 0x60};
		struct sh_qp_attr a, b;

		tqp_open(&s.a[i], s.m, 0, s.actx, 4, SH_QPT_RC, 0x48 + i, &s.acq, &s.acq, NULL);
		tqp_open(&s.b[i], s.m, 1, s.bctx, 4, SH_QPT_RC, 0x148 + i, &s.bcq, &s.bcq, &o);
		a = tqp_attr(tlid(s.m, 1), s.b[i].qpn);
		b = tqp_attr(tlid(s.m, 0), s.a[i].qpn);
		tqp_up(&s.a[i], &a);
		tqp_up(&s.b[i], &b);
	}
	for (uintptr_t i = 0; i < SENDERS; i++)
		pthread_create(&t[n++], NULL, sender, (void *)i);
	for (int i = 0; i < SHARERS; i++)
		pthread_create(&t[n++], NULL, sharer, NULL);
	pthread_create(&t[n++], NULL, daemon_looks, NULL);
	pthread_create(&t[n++], NULL, breaker, NULL);

	for (uint32_t i = 0; i < 60; i++)
		tsrq_post(&s.srq, &(struct tsge){s.mem + TMEM / 2 + 8 * i, 8, 0x1000}, 1);
	while (got < COUNT * (SENDERS + 1)) {
		uint32_t word[2], index;

		if (!tcq_poll(&s.bcq, &cqe)) {
			/* The work of the helper thread. */
			for (uint32_t i = 0; i <= SENDERS; i++) {
				struct sh_qp *qp = tqp_ctx(&s.a[i]);

				sh_lock(&s.m->dev, &qp->lock);
				qp->rnr_waiting = 0;
				sh_unlock(&s.m->dev, &qp->lock);
				ring(&s.a[i]);
			}
			continue;
		}
		assert_int_equal(cqe.owner_sr_opcode & 0x1f, MLX4_CQE_RECV_SEND);
		index = be16toh((uint16_t)cqe.wqe_index);
		memcpy(word, s.mem + TMEM / 2 + 8 * index, 8);
		assert_in_range(word[0], 0, SENDERS);
		assert_int_equal(be32toh((uint32_t)cqe.vlan_my_qpn), s.b[word[0]].qpn);
		assert_int_equal(word[1], next[word[0]]);
		next[word[0]]++;
		got++;
		/* The WQE returns to the list, behind the newest. */
		{
			uint8_t *at = mock_ptr(&s.srq.buf);
			uint16_t last = htobe16((uint16_t)index);
			static uint32_t tail = 63;

			memcpy(at + (tail << s.srq.shift) + 2, &last, 2);
			tail = index;
		}
		tsrq_post(&s.srq, &(struct tsge){s.mem + TMEM / 2 + 8 * s.srq.head, 8, 0x1000}, 1);
	}
	__atomic_store_n(&s.stop, 1, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	for (uint32_t i = 0; i <= SENDERS; i++)
		assert_int_equal(next[i], COUNT);
	texpect_none(&s.bcq);
	texpect_none(&s.acq);
	mock_free(s.m);
	free(s.mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
