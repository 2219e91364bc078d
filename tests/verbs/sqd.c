// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the send queue drains: what was begun is finished, what is posted meanwhile is held,
 * and SQ_DRAINED comes when it was asked for, once, and not before the last acknowledgement;
 * attributes change in SQD; RTS goes on with what waits.
 */
#include "verbs_test.h"

static struct side s;
static struct ibv_qp *a, *b;

static void make_pair(enum ibv_qp_type type)
{
	a = make_qp(&s, type, NULL, NULL, NULL);
	b = make_qp(&s, type, NULL, NULL, NULL);
	connect_pair(&s, a, b);
}

static void end_pair(void)
{
	CHECK(!event_pending(s.context));
	expect_silence(s.scq, 0);
	expect_silence(s.rcq, 0);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
}

static int drain(int notify)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify};

	return ibv_modify_qp(a, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

static int draining(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_EQ(ibv_query_qp(a, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_SQD);
	return attr.sq_draining;
}

static void idle(enum ibv_qp_type type)
{
	make_pair(type);
	CHECK_EQ(drain(1), 0);
	CHECK(expect_event(s.context, IBV_EVENT_SQ_DRAINED).element.qp == a);
	CHECK_EQ(draining(), 0);
	CHECK_EQ(post_recv1(b, &s, 1, 4096, 64), 0);
	CHECK_EQ(post_recv1(b, &s, 2, 4096, 64), 0);
	CHECK_EQ(post_send1(a, &s, 11, 0, 64, IBV_SEND_SIGNALED), 0);
	CHECK_EQ(post_send1(a, &s, 12, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_silence(s.scq, 3);
	expect_silence(s.rcq, 0);
	/* The other direction goes on. */
	CHECK_EQ(post_recv1(a, &s, 3, 8192, 64), 0);
	CHECK_EQ(post_send1(b, &s, 21, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 21, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 3, IBV_WC_SUCCESS);
	CHECK_EQ(to_state(a, IBV_QPS_RTS), 0);
	expect_wc(s.scq, 11, IBV_WC_SUCCESS);
	expect_wc(s.scq, 12, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 2, IBV_WC_SUCCESS);
	/* Not requested: no event. */
	CHECK_EQ(drain(0), 0);
	CHECK(!event_pending(s.context));
	CHECK_EQ(to_state(a, IBV_QPS_RTS), 0);
	CHECK_EQ(to_state(a, IBV_QPS_SQD), 0);
	CHECK(!event_pending(s.context));
	end_pair();
}

/*
 * The queue has begun two messages: one for which the receiver is not ready, and one after it that
 * has been sent, too.
 */
static void busy(void)
{
	make_pair(IBV_QPT_RC);
	fill(s.buf, 64, 1);
	CHECK_EQ(post_send1(a, &s, 11, 0, 64, IBV_SEND_SIGNALED), 0);
	CHECK_EQ(drain(1), 0);
	CHECK_EQ(post_send1(a, &s, 12, 0, 64, IBV_SEND_SIGNALED), 0);
	CHECK_EQ(draining(), 1);
	expect_silence(s.scq, 5);
	CHECK(!event_pending(s.context));
	CHECK_EQ(post_recv1(b, &s, 1, 4096, 64), 0);
	CHECK_EQ(post_recv1(b, &s, 2, 4096, 64), 0);
	CHECK(expect_event(s.context, IBV_EVENT_SQ_DRAINED).element.qp == a);
	expect_wc(s.scq, 11, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(differs(s.buf + 4096, 64, 1), -1);
	CHECK_EQ(draining(), 0);
	expect_silence(s.scq, 3);
	expect_silence(s.rcq, 0);
	CHECK_EQ(to_state(a, IBV_QPS_RTS), 0);
	expect_wc(s.scq, 12, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 2, IBV_WC_SUCCESS);
	end_pair();
}

/* Changes what the peer may do to this QP while its own sends rest. */
static void attributes(void)
{
	struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_READ,
				   .retry_cnt = 3,
				   .rnr_retry = 2,
				   .timeout = 9,
				   .max_rd_atomic = 1,
				   .max_dest_rd_atomic = 2,
				   .min_rnr_timer = 5},
			   got;
	struct ibv_qp_init_attr init;

	make_pair(IBV_QPT_RC);
	CHECK_EQ(drain(0), 0);
	CHECK_EQ(ibv_modify_qp(a, &attr,
			       IBV_QP_ACCESS_FLAGS | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_TIMEOUT | IBV_QP_MAX_QP_RD_ATOMIC |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		 0);
	CHECK_EQ(ibv_query_qp(a, &got, ~0, &init), 0);
	CHECK_EQ(got.qp_state, IBV_QPS_SQD);
	CHECK_EQ(got.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	CHECK_EQ(got.retry_cnt, 3);
	CHECK_EQ(got.rnr_retry, 2);
	CHECK_EQ(got.timeout, 9);
	CHECK_EQ(got.max_rd_atomic, 1);
	CHECK_EQ(got.max_dest_rd_atomic, 2);
	CHECK_EQ(got.min_rnr_timer, 5);
	CHECK_EQ(post_rdma1(b, &s, IBV_WR_RDMA_READ, 1, 0, 64, (uintptr_t)s.buf + 4096, s.mr->rkey,
			    IBV_SEND_SIGNALED),
		 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(post_rdma1(b, &s, IBV_WR_RDMA_WRITE, 2, 0, 64, (uintptr_t)s.buf + 4096, s.mr->rkey,
			    0),
		 0);
	expect_wc(s.scq, 2, IBV_WC_REM_INV_REQ_ERR);
	expect_event(s.context, IBV_EVENT_QP_REQ_ERR);
	CHECK_EQ(real_state(a), IBV_QPS_ERR);
	end_pair();
}

/* From SQD to ERR, held requests are flushed; to RESET, they are dropped. */
static void ends(void)
{
	for (int reset = 0; reset < 2; reset++) {
		make_pair(IBV_QPT_RC);
		CHECK_EQ(drain(0), 0);
		CHECK_EQ(post_send1(a, &s, 1, 0, 64, 0), 0);
		CHECK_EQ(post_send1(a, &s, 2, 0, 64, 0), 0);
		CHECK_EQ(to_state(a, reset ? IBV_QPS_RESET : IBV_QPS_ERR), 0);
		for (int i = 1; !reset && i <= 2; i++)
			expect_wc(s.scq, i, IBV_WC_WR_FLUSH_ERR);
		end_pair();
	}
}

int main(void)
{
	test_begin();
	side_open(&s, 16384, 64, 0);
	idle(IBV_QPT_RC);
	idle(IBV_QPT_UC);
	busy();
	attributes();
	ends();
	side_close(&s);
	return 0;
}
