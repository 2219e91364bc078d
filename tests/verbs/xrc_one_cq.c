// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Faces: ofed
 * Description: XRC QPs of ibv_create_qp with one CQ for both directions: two of one process
 * connected to each other, as latency tests of OFED's time make them, and one connected to itself;
 * each sends and receives in every order and each completion is polled alone and in batches, with a
 * CQ that is resized meanwhile, an error, and a QP that goes. A mainline kernel has no such QP.
 */
#include "xrc_test.h"

#define LEN	300
#define DEPTH	8 /* receives posted to an SRQ */
#define SLOT(n) ((size_t)(n)*512)

/* A QP, with the SRQ that its peer sends to. The two SRQs may be the same. */
struct end {
	struct ibv_qp *qp;
	struct ibv_srq *srq, *peers_srq;
	uint32_t peer_qpn;
	uint64_t sent, received; /* contents of the next */
};

static struct side s;
static struct ibv_xrc_domain *domain;

static void open_ends(struct end *e, int n)
{
	for (int i = 0; i < n; i++) {
		e[i] = (struct end){.srq = make_xrc_srq(&s, domain, DEPTH),
				    .qp = make_qp(&s, IBV_QPT_XRC, NULL, domain, NULL)};
		CHECK(e[i].qp->send_cq == e[i].qp->recv_cq);
		for (int k = 0; k < DEPTH; k++)
			CHECK_EQ(post_srq1(e[i].srq, &s, 1000 + k, SLOT(k + i * DEPTH), LEN), 0);
	}
	for (int i = 0; i < n; i++) {
		e[i].peers_srq = e[n - 1 - i].srq;
		e[i].peer_qpn = e[n - 1 - i].qp->qp_num;
	}
	connect_pair(&s, e[0].qp, e[n - 1].qp);
}

static void close_ends(struct end *e, int n)
{
	for (int i = 0; i < n; i++) {
		if (e[i].qp)
			CHECK_EQ(ibv_destroy_qp(e[i].qp), 0);
		CHECK_EQ(ibv_destroy_srq(e[i].srq), 0);
	}
}

static void send_one(struct end *e)
{
	size_t from = SLOT(2 * DEPTH + e->sent % DEPTH);

	fill(s.buf + from, LEN, e->qp->qp_num * 1000 + e->sent);
	CHECK_EQ(post_xrc(e->qp, &s, e->sent, from, LEN, e->peers_srq->xrc_srq_num,
			  IBV_SEND_SIGNALED),
		 0);
	e->sent++;
}

static struct end *end_of(struct end *e, int n, const struct ibv_wc *wc)
{
	for (int i = 0; i < n; i++)
		if (e[i].qp->qp_num == wc->qp_num)
			return &e[i];
	CHECK(!"a completion of a QP that is there");
	return NULL;
}

/* Each message has two completions. Takes one, and returns whether it was the receive. */
static bool take(struct end *e, int n, const struct ibv_wc *wc, uint64_t done[2])
{
	struct end *at = end_of(e, n, wc);
	int i = (int)(at - e), slot;

	CHECK_EQ(wc->status, IBV_WC_SUCCESS);
	if (wc->opcode == IBV_WC_SEND) {
		CHECK_EQ(wc->wr_id, done[i]);
		done[i]++;
		return false;
	}
	CHECK_EQ(wc->opcode, IBV_WC_RECV);
	CHECK_EQ(wc->byte_len, LEN);
	CHECK_EQ(wc->src_qp, at->srq->xrc_srq_num);
	slot = (int)wc->wr_id - 1000;
	CHECK(slot >= 0 && slot < DEPTH);
	CHECK_EQ(differs(s.buf + SLOT(slot + i * DEPTH), LEN, at->peer_qpn * 1000 + at->received),
		 -1);
	at->received++;
	CHECK_EQ(post_srq1(at->srq, &s, wc->wr_id, SLOT(slot + i * DEPTH), LEN), 0);
	return true;
}

/* Takes 2 * messages completions, up to want at a time. */
static void take_all(struct end *e, int n, int messages, int want, uint64_t done[2])
{
	struct ibv_wc wc[32];
	int receives = 0, total = 0;

	while (total < 2 * messages) {
		int got = ibv_poll_cq(s.rcq, want, wc);

		CHECK(got >= 0 && got <= want);
		for (int k = 0; k < got; k++)
			receives += take(e, n, &wc[k], done);
		total += got;
	}
	CHECK_EQ(receives, messages);
	CHECK_EQ(ibv_poll_cq(s.rcq, 1, wc), 0);
}

/* All orders in which n ends send 6 messages, and batches of all sizes. */
static void every_order(int n)
{
	enum { MESSAGES = 6 };
	uint64_t done[2] = {0};
	struct end e[2];

	open_ends(e, n);
	/* One at a time first: both completions are polled before the other end sends. */
	for (int round = 0; round < 20; round++) {
		send_one(&e[round % n]);
		take_all(e, n, 1, 1, done);
	}
	for (int want = 1; want <= 2 * MESSAGES + 4; want++) {
		for (int order = 0; order < (n == 1 ? 1 : 1 << MESSAGES); order++) {
			for (int i = 0; i < MESSAGES; i++)
				send_one(&e[order >> i & 1]);
			take_all(e, n, MESSAGES, want, done);
		}
	}
	/* Completions of both directions survive a resize. */
	for (int cqe = 15; cqe < 200; cqe = cqe * 2 + 1) {
		for (int i = 0; i < MESSAGES; i++)
			send_one(&e[i % n]);
		CHECK_EQ(ibv_resize_cq(s.rcq, cqe), 0);
		take_all(e, n, MESSAGES, 5, done);
	}
	close_ends(e, n);
}

/* An SRQ that does not exist: the sender gets an error, and the CQ goes on for other QPs. */
static void no_such_srq(int n)
{
	uint64_t done[2] = {0};
	struct end e[2], other[2];
	struct ibv_wc wc;

	open_ends(e, n);
	open_ends(other, n);
	send_one(&e[0]);
	take_all(e, n, 1, 1, done);
	CHECK_EQ(post_xrc(e[0].qp, &s, 55, 0, LEN, 0xfffff0, IBV_SEND_SIGNALED), 0);
	wc = next_wc(s.rcq);
	CHECK_EQ(wc.wr_id, 55);
	CHECK(wc.status != IBV_WC_SUCCESS);
	CHECK_EQ(wc.qp_num, e[0].qp->qp_num);
	CHECK_EQ(post_xrc(e[0].qp, &s, 56, 0, LEN, e[0].peers_srq->xrc_srq_num, IBV_SEND_SIGNALED),
		 0);
	CHECK_EQ(expect_wc(s.rcq, 56, IBV_WC_WR_FLUSH_ERR).qp_num, e[0].qp->qp_num);
	done[0] = done[1] = 0;
	for (int i = 0; i < 4; i++)
		send_one(&other[i % n]);
	take_all(other, n, 4, 3, done);
	close_ends(e, n);
	close_ends(other, n);
}

/*
 * The QP that received is destroyed while its completions wait: receives belong to the SRQ and
 * stay, sends are removed.
 */
static void receiver_goes(int n)
{
	uint32_t gone;
	struct end e[2];
	struct ibv_wc wc;

	open_ends(e, n);
	for (int i = 0; i < 3; i++)
		send_one(&e[0]);
	gone = e[n - 1].qp->qp_num;
	CHECK_EQ(ibv_destroy_qp(e[n - 1].qp), 0);
	e[n - 1].qp = NULL;
	for (int i = 0; i < (n == 1 ? 3 : 6); i++) {
		wc = next_wc(s.rcq);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_RECV) {
			CHECK_EQ(wc.qp_num, gone);
			CHECK_EQ(wc.src_qp, e[n - 1].srq->xrc_srq_num);
		} else {
			CHECK_EQ(n, 2);
			CHECK_EQ(wc.qp_num, e[0].qp->qp_num);
		}
	}
	CHECK_EQ(ibv_poll_cq(s.rcq, 1, &wc), 0);
	close_ends(e, n);
}

int main(void)
{
	test_begin();
	side_open(&s, SLOT(3 * DEPTH), 31, SIDE_ONE_CQ);
	domain = ibv_open_xrc_domain(s.context, -1, 0);
	CHECK(domain);
	for (int n = 1; n <= 2; n++) {
		every_order(n);
		no_such_srq(n);
		receiver_goes(n);
	}
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	side_close(&s);
	return 0;
}
