// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: how often and how long RC retries. RETRY_EXC and RNR_RETRY_EXC come after exactly
 * the requested number of attempts, which the device counts. With no limit the sender waits for a
 * receiver that is not ready. Progress restores the counters.
 */
#include <time.h>

#include "verbs_test.h"

#define TIMEOUT 8 /* a millisecond */

static struct side s;
static struct ibv_qp *a, *b;

static void make_pair(const struct link *l)
{
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair_as(&s, a, b, l);
}

static void end_pair(void)
{
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
}

static struct link usual(void)
{
	struct link l;

	link_defaults(&l, 0, 0);
	l.timeout = TIMEOUT;
	return l;
}

/*
 * The peer does not answer: retry_cnt attempts after the first, then an error. The QP that they are
 * for counts their packets.
 */
static void no_answer(struct ibv_qp *qp, unsigned int retry_cnt, const char *drops,
		      const struct ibv_qp *counts)
{
	uint64_t retries = hca_counter("retries"), dropped = hca_counter(drops);
	uint64_t vanished = qp_counter(counts->qp_num, "drops");

	CHECK_EQ(post_recv1(qp, &s, 9, 0, 64), 0);
	CHECK_EQ(post_send1(qp, &s, 1, 0, 64, 0), 0);
	CHECK_EQ(post_send1(qp, &s, 2, 0, 64, 0), 0);
	expect_wc(s.scq, 1, IBV_WC_RETRY_EXC_ERR);
	expect_wc(s.scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_wc(s.rcq, 9, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(real_state(qp), IBV_QPS_ERR);
	CHECK_EQ(hca_counter("retries") - retries, retry_cnt);
	/* Each attempt sent both messages, except for attempts before the second was posted. */
	dropped = hca_counter(drops) - dropped;
	CHECK(dropped > retry_cnt && dropped <= 2 * (retry_cnt + 1));
	CHECK_EQ(qp_counter(counts->qp_num, "drops") - vanished, dropped);
}

static void absent(void)
{
	static const uint8_t counts[] = {0, 1, 3, 7};

	for (unsigned int i = 0; i < sizeof(counts); i++) {
		struct ibv_qp *qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
		struct link l = usual();

		l.dlid = s.lid;
		l.dest_qpn = 0x7ffffe;
		l.retry_cnt = counts[i];
		connect_qp(qp, &l);
		no_answer(qp, counts[i], "drops_no_qp", qp);
		CHECK_EQ(ibv_destroy_qp(qp), 0);
	}
}

/* The peer exists but does not receive: in INIT, in ERR, or back in RESET. */
static void deaf(enum ibv_qp_state state)
{
	struct link l = usual();

	l.retry_cnt = 2;
	make_pair(&l);
	CHECK_EQ(to_state(b, state == IBV_QPS_INIT ? IBV_QPS_RESET : state), 0);
	if (state == IBV_QPS_INIT) {
		l.port = 1;
		CHECK_EQ(to_init(b, &l), 0);
	}
	no_answer(a, 2, "drops_state", b);
	end_pair();
}

/* A PSN from the future is refused again and again. */
static void ahead(void)
{
	uint64_t out_of_sequence = hca_counter("out_of_sequence");
	struct link l = usual();

	l.retry_cnt = 2;
	l.psn_mine = l.psn_theirs + 1;
	make_pair(&l);
	CHECK_EQ(post_recv1(b, &s, 9, 0, 64), 0);
	CHECK_EQ(post_send1(a, &s, 1, 0, 64, 0), 0);
	expect_wc(s.scq, 1, IBV_WC_RETRY_EXC_ERR);
	CHECK_EQ(hca_counter("out_of_sequence") - out_of_sequence, 3);
	CHECK_EQ(real_state(b), IBV_QPS_RTS);
	expect_silence(s.rcq, 0);
	end_pair();
}

/* Timeout 0 means no timeout. */
static void never(void)
{
	struct link l = usual();

	l.timeout = 0;
	l.retry_cnt = 0;
	make_pair(&l);
	CHECK_EQ(to_state(b, IBV_QPS_RESET), 0);
	CHECK_EQ(post_send1(a, &s, 1, 0, 64, 0), 0);
	expect_silence(s.scq, 30);
	CHECK_EQ(real_state(a), IBV_QPS_RTS);
	CHECK_EQ(to_state(a, IBV_QPS_ERR), 0);
	expect_wc(s.scq, 1, IBV_WC_WR_FLUSH_ERR);
	end_pair();
}

/* A later attempt finds a peer that comes late. */
static void late(void)
{
	struct link l = usual();

	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	l.dlid = s.lid;
	l.timeout = 17; /* half a second, seven times */
	l.dest_qpn = b->qp_num;
	connect_qp(a, &l);
	fill(s.buf, 5000, 5);
	CHECK_EQ(post_send1(a, &s, 1, 0, 5000, IBV_SEND_SIGNALED), 0);
	l.dest_qpn = a->qp_num;
	CHECK_EQ(to_init(b, &l), 0);
	CHECK_EQ(post_recv1(b, &s, 2, 8192, 8192), 0);
	CHECK_EQ(to_rtr(b, &l), 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(expect_wc(s.rcq, 2, IBV_WC_SUCCESS).byte_len, 5000);
	CHECK_EQ(differs(s.buf + 8192, 5000, 5), -1);
	skip_established(s.context);
	end_pair();
}

/* Each message may be lost twice. One that arrives gives the next one two retries of its own. */
static void progress(void)
{
	uint64_t retries = hca_counter("retries");
	struct link l = usual();

	l.retry_cnt = 2;
	make_pair(&l);
	for (int i = 0; i < 3; i++) {
		fabric_fault("drop 2");
		CHECK_EQ(post_recv1(b, &s, 100 + i, 8192, 64), 0);
		fill(s.buf, 64, i);
		CHECK_EQ(post_send1(a, &s, i, 0, 64, IBV_SEND_SIGNALED), 0);
		expect_wc(s.scq, i, IBV_WC_SUCCESS);
		expect_wc(s.rcq, 100 + i, IBV_WC_SUCCESS);
		CHECK_EQ(differs(s.buf + 8192, 64, i), -1);
		CHECK_EQ(hca_counter("retries") - retries, 2 * (i + 1));
	}
	fabric_fault("drop 3");
	CHECK_EQ(post_send1(a, &s, 9, 0, 64, 0), 0);
	expect_wc(s.scq, 9, IBV_WC_RETRY_EXC_ERR);
	fabric_fault("clear");
	end_pair();
}

static void rnr_exceeded(uint8_t rnr_retry, enum ibv_wr_opcode opcode)
{
	uint64_t naks = hca_counter("rnr_naks_sent"), retries = hca_counter("rnr_retries");
	struct link l = usual();

	l.rnr_retry = rnr_retry;
	make_pair(&l);
	if (opcode == IBV_WR_SEND)
		CHECK_EQ(post_send1(a, &s, 1, 0, 64, 0), 0);
	else
		CHECK_EQ(
			post_rdma1(a, &s, opcode, 1, 0, 64, (uintptr_t)s.buf + 8192, s.mr->rkey, 0),
			0);
	CHECK_EQ(post_send1(a, &s, 2, 0, 64, 0), 0);
	expect_wc(s.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_wc(s.scq, 2, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(real_state(a), IBV_QPS_ERR);
	CHECK_EQ(real_state(b), IBV_QPS_RTS);
	CHECK_EQ(hca_counter("rnr_naks_sent") - naks, rnr_retry + 1);
	CHECK_EQ(hca_counter("rnr_retries") - retries, rnr_retry);
	end_pair();
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* The sender waits at least as long as the responder asks, each time it asks. */
static void rnr_timer(void)
{
	struct link l = usual();
	double start;

	l.rnr_retry = 3;
	l.min_rnr_timer = 18; /* 5.12 ms */
	make_pair(&l);
	start = now_ms();
	CHECK_EQ(post_send1(a, &s, 1, 0, 64, 0), 0);
	expect_wc(s.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	CHECK(now_ms() - start >= 3 * 5.12);
	end_pair();
}

/* 7 means no limit, far beyond seven attempts. Order is kept. */
static void rnr_infinite(void)
{
	uint64_t naks = hca_counter("rnr_naks_sent");
	struct link l = usual();

	l.retry_cnt = 0;
	make_pair(&l);
	for (int i = 0; i < 8; i++) {
		fill(s.buf + i * 64, 64, i);
		CHECK_EQ(post_send1(a, &s, i, (size_t)i * 64, 64, IBV_SEND_SIGNALED), 0);
	}
	while (hca_counter("rnr_naks_sent") - naks < 30)
		expect_silence(s.scq, 1);
	for (int i = 0; i < 8; i++) {
		CHECK_EQ(post_recv1(b, &s, 100 + i, 8192, 64), 0);
		expect_wc(s.rcq, 100 + i, IBV_WC_SUCCESS);
		CHECK_EQ(differs(s.buf + 8192, 64, i), -1);
		expect_wc(s.scq, i, IBV_WC_SUCCESS);
	}
	end_pair();
}

int main(void)
{
	test_begin();
	side_open(&s, 16384, 64, 0);
	absent();
	deaf(IBV_QPS_RESET);
	deaf(IBV_QPS_INIT);
	deaf(IBV_QPS_ERR);
	ahead();
	never();
	late();
	progress();
	rnr_exceeded(0, IBV_WR_SEND);
	rnr_exceeded(1, IBV_WR_SEND);
	rnr_exceeded(6, IBV_WR_SEND);
	rnr_exceeded(2, IBV_WR_RDMA_WRITE_WITH_IMM);
	rnr_timer();
	rnr_infinite();
	CHECK(!event_pending(s.context));
	side_close(&s);
	return 0;
}
