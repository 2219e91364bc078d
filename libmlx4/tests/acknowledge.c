// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: destroying an object waits until its events are acknowledged. Until then the thread
 * that is to acknowledge them can make other objects: with the same number, which the kernel has
 * given out again; with a number that has the same place in the provider's table; or with any other
 * number. The completions of the old object disappear, and those of the new object stay.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "kinds.h"

enum { DEADLINE = 60 }; /* seconds, after which a thread counts as hanging */

static struct dev_cq cq;
/* The kernel has carried out the destroying command and reported an event to acknowledge. */
static int reported;

static void report_event(int command, uint8_t *cmd, uint8_t *resp)
{
	(void)cmd;
	if (command != IB_USER_VERBS_CMD_DESTROY_QP && command != IB_USER_VERBS_CMD_DESTROY_SRQ)
		return;
	field_put(resp, 0, 4, 1);
	fk.hook = NULL;
	__atomic_store_n(&reported, 1, __ATOMIC_RELEASE);
}

static void *destroy_qp(void *qp)
{
	return (void *)(intptr_t)ibv_destroy_qp(qp);
}

static void *destroy_srq(void *srq)
{
	return (void *)(intptr_t)ibv_destroy_srq(srq);
}

static void start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	reported = 0;
	fk.hook = report_event;
	assert_int_equal(pthread_create(thread, NULL, fn, arg), 0);
	while (!__atomic_load_n(&reported, __ATOMIC_ACQUIRE))
		usleep(100);
}

static void must_end(pthread_t thread)
{
	struct timespec deadline;
	void *result = (void *)1;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += DEADLINE;
	if (pthread_timedjoin_np(thread, &result, &deadline)) {
		printf("Bail out! a thread waits for ever\n");
		fflush(stdout);
		_exit(1);
	}
	assert_null(result);
}

struct job {
	struct lane *lane;
	enum kind kind;
};

static void *make(void *arg)
{
	struct job *job = arg;

	lane_open(job->lane, job->kind, &cq, &cq);
	return NULL;
}

/* What the number of the new object and that of the old one have in common. */
enum number { SAME, SAME_PLACE, OTHER, NUMBERS };

static uint32_t number_like(uint32_t old, enum number how)
{
	old &= ~(1u << 23);
	return how == SAME ? old : how == SAME_PLACE ? old ^ fk.qp_tab_size : old + 100;
}

static void qp_destroyed(enum kind kind)
{
	struct ibv_async_event event = {.event_type = IBV_EVENT_QP_FATAL};
	pthread_t destroyer, maker;
	struct lane old, new;
	enum number how;

	for (how = 0; how < NUMBERS; ++how) {
		dev_create_cq(&cq, ctx, 31);
		lane_open(&old, kind, &cq, &cq);
		lane_do(&old, SENT, 1);
		lane_do(&old, RECEIVED, 2);
		lane_do(&old, SENT, 3);
		lane_do(&old, RECEIVED, 4);
		lane_expect(&old, SENT, 1);
		event.element.qp = old.qp.qp;
		start(&destroyer, destroy_qp, old.qp.qp);

		fk.next_qpn = number_like(old.qp.qp->qp_num, how);
		assert_int_equal(pthread_create(&maker, NULL, make, &(struct job){&new, kind}), 0);
		must_end(maker);
		lane_do(&new, SENT, 11);
		lane_do(&new, RECEIVED, 12);
		lane_do(&new, SENT, 13);
		lane_do(&new, RECEIVED, 14);
		if (how != OTHER) {
			if (is_xrc(kind)) {
				/* Receives of XRC belong to the SRQ, which stays. */
				lane_expect(&old, RECEIVED, 2);
				lane_expect(&old, RECEIVED, 4);
			}
			lane_expect(&new, SENT, 11);
		}
		ibv_ack_async_event(&event);
		must_end(destroyer);
		old.qp.qp = NULL;

		if (how == OTHER) {
			if (is_xrc(kind)) {
				lane_expect(&old, RECEIVED, 2);
				lane_expect(&old, RECEIVED, 4);
			}
			lane_expect(&new, SENT, 11);
		}
		lane_expect(&new, RECEIVED, 12);
		lane_expect(&new, SENT, 13);
		lane_expect(&new, RECEIVED, 14);
		lane_do(&new, SENT, 15);
		lane_do(&new, RECEIVED, 16);
		lane_expect(&new, SENT, 15);
		lane_expect(&new, RECEIVED, 16);
		expect_empty(&cq);
		lane_close(&old);
		lane_close(&new);
		assert_int_equal(ibv_destroy_cq(cq.cq), 0);
	}
}

static void srq_destroyed(enum kind kind)
{
	struct ibv_async_event event = {.event_type = IBV_EVENT_SRQ_LIMIT_REACHED};
	pthread_t destroyer, maker;
	struct lane old, new;
	enum number how;
	uint32_t number;

	for (how = 0; how < NUMBERS; ++how) {
		dev_create_cq(&cq, ctx, 31);
		lane_open(&old, kind, &cq, &cq);
		lane_do(&old, RECEIVED, 1);
		lane_do(&old, SENT, 2);
		lane_do(&old, RECEIVED, 3);
		lane_do(&old, SENT, 4);
		number = old.srq->srq->xrc_srq_num;
		if (is_xrc(kind)) {
			lane_expect(&old, RECEIVED, 1);
		} else {
			lane_destroy_qp(&old);
			number = fk.next_srqn - 1;
		}
		event.element.srq = old.srq->srq;
		start(&destroyer, destroy_srq, old.srq->srq);

		fk.next_srqn = number_like(number, how);
		assert_int_equal(pthread_create(&maker, NULL, make, &(struct job){&new, kind}), 0);
		must_end(maker);
		lane_do(&new, RECEIVED, 11);
		lane_do(&new, SENT, 12);
		lane_do(&new, RECEIVED, 13);
		ibv_ack_async_event(&event);
		must_end(destroyer);
		old.own_srq.srq = NULL;

		if (is_xrc(kind)) {
			lane_expect(&old, SENT, 2);
			lane_expect(&old, SENT, 4);
		}
		lane_expect(&new, RECEIVED, 11);
		lane_expect(&new, SENT, 12);
		lane_expect(&new, RECEIVED, 13);
		expect_empty(&cq);
		lane_close(&old);
		lane_close(&new);
		assert_int_equal(ibv_destroy_cq(cq.cq), 0);
	}
}

#define NO_SRQ "it has no SRQ"

int main(void)
{
	static const struct kind_case cases[] = {
		{.name = "qp_destroyed", .run = qp_destroyed},
		{.name = "srq_destroyed",
		 .run = srq_destroyed,
		 .left_out = {{NO_SRQ, KIND_RC}, {NO_SRQ, KIND_UC}, {NO_SRQ, KIND_UD}}},
	};

	return run_kinds("acknowledge", cases, sizeof(cases) / sizeof(cases[0]));
}
