// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: CQs: granted sizes, refused sizes, EBUSY; resized again and again while another
 * process sends, without losing or repeating a completion; overrun: CQ_ERR for the CQ, QP_FATAL and
 * the error state for the QP that caused it, and the CQEs before it intact.
 */
#include "verbs_test.h"

#define MESSAGES 6000
#define WINDOW	 200

enum { QPN = 0, LID = 2 };

static struct side s;
static const struct ibv_qp_cap deep = {
	.max_send_wr = WINDOW, .max_recv_wr = WINDOW, .max_send_sge = 1, .max_recv_sge = 1};

static void sizes(void)
{
	struct ibv_cq *cq;

	side_open(&s, 4096, 16, 0);
	for (int want = 1; want < 5000; want = want * 3 + 1) {
		int got = 1;

		cq = ibv_create_cq(s.context, want, NULL, NULL, 0);
		CHECK(cq);
		while (got < want + 1)
			got <<= 1;
		CHECK_EQ(cq->cqe, got - 1);
		CHECK_EQ(ibv_resize_cq(cq, 4 * want), 0);
		CHECK(cq->cqe >= 4 * want);
		CHECK_EQ(ibv_destroy_cq(cq), 0);
	}
	CHECK(!ibv_create_cq(s.context, 4194304, NULL, NULL, 0));
	CHECK_EQ(errno, EINVAL);
	cq = ibv_create_cq(s.context, 16, NULL, NULL, 0);
	CHECK(cq);
	CHECK_EQ(ibv_resize_cq(cq, 4194304), EINVAL);
	CHECK_EQ(ibv_resize_cq(cq, 0), EINVAL);
	CHECK_EQ(cq->cqe, 31);
	CHECK_EQ(ibv_destroy_cq(cq), 0);
}

static void connect_to(int me)
{
	struct ibv_qp *qp;
	struct link l;

	side_open(&s, 65536, 16, 0);
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, &deep);
	post(LID + me, s.lid);
	post(QPN + me, qp->qp_num);
	await(QPN + !me, 1);
	link_defaults(&l, (uint16_t)board->word[LID + !me], (uint32_t)board->word[QPN + !me]);
	connect_qp(qp, &l);
	meet(2);
	if (me) { /* the sender */
		uint64_t sent = 0, seen = 0;

		CHECK_EQ(ibv_resize_cq(s.scq, WINDOW), 0);
		while (seen < MESSAGES) {
			struct ibv_wc wc;

			if (sent < MESSAGES && sent - seen < WINDOW / 2) {
				memcpy(s.buf + sent % WINDOW * 8, &sent, 8);
				CHECK_EQ(post_send1(qp, &s, sent, sent % WINDOW * 8, 8,
						    IBV_SEND_SIGNALED),
					 0);
				sent++;
			}
			if (ibv_poll_cq(s.scq, 1, &wc) == 1) {
				CHECK_EQ(wc.status, IBV_WC_SUCCESS);
				CHECK_EQ(wc.wr_id, seen);
				seen++;
			}
		}
		meet(2);
	} else {
		static const int steps[] = {400, 1000, 255, 256, 300, 4000, 201, 511};
		uint64_t posted = 0, taken = 0;
		unsigned int resizes = 0;

		CHECK_EQ(ibv_resize_cq(s.rcq, WINDOW), 0);
		while (taken < MESSAGES) {
			struct ibv_wc wc[7];
			int n;

			while (posted < taken + WINDOW && posted < MESSAGES) {
				CHECK_EQ(post_recv1(qp, &s, posted, posted % WINDOW * 8, 8), 0);
				posted++;
			}
			n = ibv_poll_cq(s.rcq, 1 + resizes % 7, wc);
			CHECK(n >= 0);
			for (int i = 0; i < n; i++, taken++) {
				CHECK_EQ(wc[i].status, IBV_WC_SUCCESS);
				CHECK_EQ(wc[i].wr_id, taken);
				CHECK_EQ(memcmp(s.buf + taken % WINDOW * 8, &taken, 8), 0);
			}
			if (taken / 20 > resizes) {
				int cqe = steps[resizes++ % 8];

				CHECK_EQ(ibv_resize_cq(s.rcq, cqe), 0);
				CHECK(s.rcq->cqe >= cqe);
			}
		}
		CHECK(resizes >= 200);
		expect_silence(s.rcq, 1);
		meet(2);
	}
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	side_close(&s);
}

/* Completions that are not polled, one more than there is room for. */
static void overrun(bool receive)
{
	struct ibv_cq *own = receive ? s.rcq : s.scq,
		      *cq = ibv_create_cq(s.context, 7, NULL, NULL, 0);
	struct ibv_async_event event;
	struct ibv_qp *a, *b, *victim;
	int room, cq_err = 0, fatal = 0, n = 0;
	struct ibv_wc wc;

	CHECK(cq);
	CHECK_EQ(cq->cqe, 7);
	room = cq->cqe;
	*(receive ? &s.rcq : &s.scq) = cq;
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, &deep);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, &deep);
	*(receive ? &s.rcq : &s.scq) = own;
	victim = receive ? b : a;
	connect_pair(&s, a, b);
	CHECK_EQ(ibv_destroy_cq(cq), EBUSY);
	for (int i = 0; i < 32; i++)
		CHECK_EQ(post_recv1(b, &s, i, 0, 8), 0);
	for (int i = 0; i < room; i++)
		CHECK_EQ(post_send1(a, &s, i, 0, 8, IBV_SEND_SIGNALED), 0);
	sleep_ms(2);
	while (event_pending(s.context))
		skip_established(s.context);
	CHECK_EQ(real_state(victim), IBV_QPS_RTS);
	for (int i = room; i < room + 4; i++)
		CHECK_EQ(post_send1(a, &s, i, 0, 8, IBV_SEND_SIGNALED), 0);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(ibv_get_async_event(s.context, &event), 0);
		ibv_ack_async_event(&event);
		if (event.event_type == IBV_EVENT_CQ_ERR) {
			CHECK(event.element.cq == cq);
			cq_err++;
		} else {
			CHECK_EQ(event.event_type, IBV_EVENT_QP_FATAL);
			CHECK(event.element.qp == victim);
			fatal++;
		}
	}
	CHECK(cq_err == 1 && fatal == 1);
	CHECK_EQ(real_state(victim), IBV_QPS_ERR);
	while (ibv_poll_cq(cq, 1, &wc) == 1) {
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.wr_id, n);
		n++;
	}
	CHECK(n >= room && n <= room + 1);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	CHECK_EQ(ibv_destroy_cq(cq), 0);
	while (ibv_poll_cq(receive ? s.scq : s.rcq, 1, &wc) == 1)
		;
}

static void sender(int arg)
{
	connect_to(arg);
}

int main(void)
{
	pid_t child;

	test_begin();
	child = spawn(sender, 1);
	connect_to(0);
	join(child);
	sizes();
	overrun(true);
	overrun(false);
	CHECK(!event_pending(s.context));
	side_close(&s);
	return 0;
}
