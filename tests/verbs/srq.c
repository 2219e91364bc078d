// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: SRQs of RC QPs: fed to several QPs in order, also when they come back in another,
 * RNR when empty, the limit event once, sizes and limits refused, not flushed by an error of a QP;
 * LAST_WQE_REACHED for each QP that ends, however it ends; in use is EBUSY.
 */
#include "verbs_test.h"

static struct side s;

static struct ibv_srq *make_srq(uint32_t max_wr, uint32_t max_sge, struct ibv_srq_init_attr *init)
{
	struct ibv_srq *srq;

	*init = (struct ibv_srq_init_attr){.srq_context = init,
					   .attr = {.max_wr = max_wr, .max_sge = max_sge}};
	srq = ibv_create_srq(s.pd, init);
	CHECK(srq);
	CHECK(srq->srq_context == init);
	CHECK(init->attr.max_wr >= max_wr && init->attr.max_sge >= max_sge);
	return srq;
}

static void feed(void)
{
	struct ibv_srq_init_attr init;
	struct ibv_srq *srq = make_srq(30, 2, &init);
	struct ibv_srq_attr attr;
	struct ibv_qp *a[3], *b[3];
	uint32_t n;

	CHECK_EQ(ibv_query_srq(srq, &attr), 0);
	CHECK_EQ(attr.max_wr, init.attr.max_wr);
	CHECK_EQ(attr.max_sge, init.attr.max_sge);
	CHECK_EQ(attr.srq_limit, 0);
	for (int i = 0; i < 3; i++) {
		a[i] = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
		b[i] = make_qp(&s, IBV_QPT_RC, srq, NULL, NULL);
		CHECK(b[i]->srq == srq);
		CHECK(post_recv1(b[i], &s, 0, 0, 64)); /* the QP has no receive queue */
		connect_pair(&s, a[i], b[i]);
	}
	CHECK_EQ(ibv_destroy_srq(srq), EBUSY);
	/* As many receives as granted, and one more is refused. */
	for (n = 0; n < init.attr.max_wr; n++)
		CHECK_EQ(post_srq1(srq, &s, n, 4096 + n % 64 * 64, 64), 0);
	CHECK(post_srq1(srq, &s, n, 4096, 64));
	for (uint32_t i = 0; i < n; i++) {
		struct ibv_wc wc;

		fill(s.buf, 64, i);
		CHECK_EQ(post_send1(a[i % 3], &s, i, 0, 64, IBV_SEND_SIGNALED), 0);
		expect_wc(s.scq, i, IBV_WC_SUCCESS);
		wc = expect_wc(s.rcq, i, IBV_WC_SUCCESS);
		CHECK_EQ(wc.qp_num, b[i % 3]->qp_num);
		CHECK_EQ(differs(s.buf + 4096 + i % 64 * 64, 64, i), -1);
	}
	/* The SRQ is empty: the sends wait. */
	for (int i = 0; i < 3; i++)
		CHECK_EQ(post_send1(a[i], &s, i, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_silence(s.scq, 3);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(post_srq1(srq, &s, 200 + i, 4096, 64), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(next_wc(s.scq).status, IBV_WC_SUCCESS);
		expect_wc(s.rcq, 200 + i, IBV_WC_SUCCESS);
	}
	/* Receives of an SRQ stay when one of its QPs ends; the other QPs take them. */
	CHECK_EQ(post_srq1(srq, &s, 300, 4096, 64), 0);
	CHECK_EQ(to_state(b[0], IBV_QPS_ERR), 0);
	CHECK(expect_event(s.context, IBV_EVENT_QP_LAST_WQE_REACHED).element.qp == b[0]);
	expect_silence(s.rcq, 1);
	CHECK_EQ(post_send1(a[1], &s, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 300, IBV_WC_SUCCESS);
	/*
	 * A message that is too long ends its own receive and the QP, and is the last of that QP.
	 */
	CHECK_EQ(post_srq1(srq, &s, 301, 4096, 64), 0);
	CHECK_EQ(post_send1(a[1], &s, 2, 0, 65, 0), 0);
	expect_wc(s.scq, 2, IBV_WC_REM_INV_REQ_ERR);
	expect_wc(s.rcq, 301, IBV_WC_LOC_LEN_ERR);
	CHECK(expect_event(s.context, IBV_EVENT_QP_LAST_WQE_REACHED).element.qp == b[1]);
	CHECK(!event_pending(s.context));
	/* The event comes again when the QP ends again. */
	CHECK_EQ(to_state(b[0], IBV_QPS_RESET), 0);
	connect_pair(&s, b[0], b[0]);
	CHECK_EQ(to_state(b[0], IBV_QPS_ERR), 0);
	CHECK(expect_event(s.context, IBV_EVENT_QP_LAST_WQE_REACHED).element.qp == b[0]);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(ibv_destroy_qp(a[i]), 0);
		CHECK_EQ(ibv_destroy_qp(b[i]), 0);
	}
	CHECK_EQ(ibv_destroy_srq(srq), 0);
}

/*
 * Two CQs, polled one after the other: receives come back in another order than they were posted
 * in, many times around.
 */
static void out_of_order(void)
{
	struct ibv_srq_init_attr init;
	struct ibv_srq *srq = make_srq(10, 1, &init);
	struct ibv_cq *cq[2] = {s.rcq, ibv_create_cq(s.context, 16, NULL, NULL, 0)};
	struct ibv_qp *a[2], *b[2];

	CHECK(cq[1]);
	for (int i = 0; i < 2; i++) {
		s.rcq = cq[i];
		a[i] = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
		b[i] = make_qp(&s, IBV_QPT_RC, srq, NULL, NULL);
		connect_pair(&s, a[i], b[i]);
	}
	s.rcq = cq[0];
	for (uint32_t lap = 0; lap < 40; lap++) {
		uint32_t n = 4 + lap % 7;

		for (uint32_t i = 0; i < n; i++)
			CHECK_EQ(post_srq1(srq, &s, i, 4096 + i * 64, 64), 0);
		for (uint32_t i = 0; i < n; i++) {
			fill(s.buf, 64, lap * 16 + i);
			CHECK_EQ(post_send1(a[i % 2], &s, i, 0, 64, IBV_SEND_SIGNALED), 0);
			expect_wc(s.scq, i, IBV_WC_SUCCESS);
		}
		for (int odd = 1; odd >= 0; odd--)
			for (uint32_t i = odd; i < n; i += 2)
				CHECK_EQ(expect_wc(cq[odd], i, IBV_WC_SUCCESS).qp_num,
					 b[odd]->qp_num);
		for (uint32_t i = 0; i < n; i++)
			CHECK_EQ(differs(s.buf + 4096 + i * 64, 64, lap * 16 + i), -1);
	}
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(ibv_destroy_qp(a[i]), 0);
		CHECK_EQ(ibv_destroy_qp(b[i]), 0);
	}
	CHECK_EQ(ibv_destroy_cq(cq[1]), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
}

static void limit(void)
{
	struct ibv_srq_init_attr init;
	struct ibv_srq *srq = make_srq(16, 1, &init);
	struct ibv_qp *a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL),
		      *b = make_qp(&s, IBV_QPT_RC, srq, NULL, NULL);
	struct ibv_srq_attr attr = {.srq_limit = 5};

	connect_pair(&s, a, b);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 8; i++)
			CHECK_EQ(post_srq1(srq, &s, i, 4096, 64), 0);
		attr.srq_limit = 5;
		CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
		CHECK_EQ(ibv_query_srq(srq, &attr), 0);
		CHECK_EQ(attr.srq_limit, 5);
		for (int i = 0; i < 8; i++) {
			CHECK_EQ(post_send1(a, &s, i, 0, 64, IBV_SEND_SIGNALED), 0);
			expect_wc(s.scq, i, IBV_WC_SUCCESS);
			expect_wc(s.rcq, i, IBV_WC_SUCCESS);
			/* After the fourth message four receives are left: fewer than five. */
			if (i == 3)
				CHECK(expect_event(s.context, IBV_EVENT_SRQ_LIMIT_REACHED)
					      .element.srq == srq);
			CHECK(!event_pending(s.context));
		}
	}
	/* The limit is disarmed before it is reached. */
	for (int i = 0; i < 2; i++)
		CHECK_EQ(post_srq1(srq, &s, i, 4096, 64), 0);
	attr.srq_limit = 2;
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	attr.srq_limit = 0;
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(post_send1(a, &s, i, 0, 64, IBV_SEND_SIGNALED), 0);
		expect_wc(s.scq, i, IBV_WC_SUCCESS);
		expect_wc(s.rcq, i, IBV_WC_SUCCESS);
	}
	CHECK(!event_pending(s.context));
	/* Values that are refused. */
	attr.srq_limit = init.attr.max_wr + 1;
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	attr.max_wr = 32;
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	CHECK_EQ(ibv_query_srq(srq, &attr), 0);
	CHECK_EQ(attr.srq_limit, 0);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
}

int main(void)
{
	test_begin();
	side_open(&s, 16384, 64, 0);
	feed();
	out_of_order();
	limit();
	while (event_pending(s.context))
		skip_established(s.context);
	side_close(&s);
	return 0;
}
