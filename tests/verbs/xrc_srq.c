// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what a message to an XRC SRQ meets: an empty one (RNR), its limit event, a number
 * that nobody has, a number of another domain, an SRQ that is destroyed with traffic on the way;
 * too long a message; completions on the SRQ's own CQ.
 */
#include "xrc_test.h"

static struct side s, r;
static struct ibv_xrc_domain *mine, *theirs;
static int fd, other_fd;

struct way {
	struct ibv_qp *send;
	uint32_t rcv;
};

static struct way make_way(uint8_t rnr_retry)
{
	struct way w = {.send = make_qp(&s, IBV_QPT_XRC, NULL, mine, NULL),
			.rcv = make_rcv_qp(theirs)};
	struct link l;

	link_defaults(&l, s.lid, w.send->qp_num);
	connect_rcv(theirs, w.rcv, &l);
	link_defaults(&l, r.lid, w.rcv);
	l.rnr_retry = rnr_retry;
	connect_qp(w.send, &l);
	return w;
}

static void end_way(struct way *w)
{
	CHECK_EQ(ibv_destroy_qp(w->send), 0);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(theirs, w->rcv), 0);
}

static void delivery(void)
{
	struct ibv_srq *srq = make_xrc_srq(&r, theirs, 16);
	struct way w = make_way(7);
	struct ibv_wc wc;

	/* The message is sent first, and received when there is a receive: RNR without limit. */
	fill(s.buf, 3000, 1);
	CHECK_EQ(post_xrc(w.send, &s, 1, 0, 3000, srq->xrc_srq_num,
			  IBV_SEND_SIGNALED | IBV_SEND_SOLICITED),
		 0);
	expect_silence(s.scq, 5);
	CHECK_EQ(post_srq1(srq, &r, 11, 0, 4096), 0);
	wc = expect_wc(r.rcq, 11, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, 3000);
	CHECK_EQ(wc.qp_num, w.rcv);
	CHECK_EQ(differs(r.buf, 3000, 1), -1);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	skip_established(r.context);
	/* No completion comes to the receive CQ of the sender. */
	expect_silence(s.rcq, 1);
	end_way(&w);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
}

static void limit(void)
{
	struct ibv_srq *srq = make_xrc_srq(&r, theirs, 16);
	struct ibv_srq_attr attr = {.srq_limit = 3};
	struct way w = make_way(7);
	struct ibv_async_event event;

	for (int i = 0; i < 6; i++)
		CHECK_EQ(post_srq1(srq, &r, i, (size_t)i * 64, 64), 0);
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	CHECK_EQ(ibv_query_srq(srq, &attr), 0);
	CHECK_EQ(attr.srq_limit, 3);
	for (int i = 0; i < 4; i++) {
		CHECK(!event_pending(r.context));
		CHECK_EQ(post_xrc(w.send, &s, i, 0, 64, srq->xrc_srq_num, IBV_SEND_SIGNALED), 0);
		expect_wc(s.scq, i, IBV_WC_SUCCESS);
		expect_wc(r.rcq, i, IBV_WC_SUCCESS);
		if (i == 0)
			skip_established(r.context);
	}
	/* Two receives are left, fewer than three: one event. */
	event = expect_event(r.context, IBV_EVENT_SRQ_LIMIT_REACHED);
	CHECK(event.element.srq == srq);
	CHECK_EQ(ibv_query_srq(srq, &attr), 0);
	CHECK_EQ(attr.srq_limit, 0);
	CHECK_EQ(post_xrc(w.send, &s, 5, 0, 64, srq->xrc_srq_num, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 5, IBV_WC_SUCCESS);
	CHECK(!event_pending(r.context));
	attr.srq_limit = 1000;
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	end_way(&w);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
}

/*
 * The receive QP may not use the SRQ with this number: the request is invalid, and no memory
 * changes.
 */
static void wrong_number(uint32_t srqn)
{
	struct way w = make_way(7);

	fill(s.buf, 64, 9);
	CHECK_EQ(post_xrc(w.send, &s, 1, 0, 64, srqn, IBV_SEND_SIGNALED), 0);
	CHECK_EQ(post_xrc(w.send, &s, 2, 0, 64, srqn, 0), 0);
	expect_wc(s.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	expect_wc(s.scq, 2, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(real_state(w.send), IBV_QPS_ERR);
	CHECK_EQ(rcv_state(theirs, w.rcv), IBV_QPS_ERR);
	expect_silence(r.rcq, 1);
	/* The event is about the receive QP. */
	CHECK_EQ(expect_event(r.context, (int)(IBV_EVENT_QP_REQ_ERR | IBV_XRC_QP_EVENT_FLAG))
			 .element.xrc_qp_num,
		 w.rcv);
	end_way(&w);
}

static void foreign(void)
{
	struct ibv_xrc_domain *other = domain_of(&r, other_fd);
	struct ibv_srq *srq = make_xrc_srq(&r, other, 8);

	memset(r.buf, 0x55, 64);
	CHECK_EQ(post_srq1(srq, &r, 7, 0, 64), 0);
	wrong_number(srq->xrc_srq_num);
	wrong_number(0);
	wrong_number(0xffffff);
	for (int i = 0; i < 64; i++)
		CHECK_EQ(r.buf[i], 0x55);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_close_xrc_domain(other), 0);
}

static void too_long(void)
{
	struct ibv_srq *srq = make_xrc_srq(&r, theirs, 8);
	struct way w = make_way(7);

	memset(r.buf, 0x55, 4096);
	CHECK_EQ(post_srq1(srq, &r, 7, 0, 64), 0);
	CHECK_EQ(post_xrc(w.send, &s, 1, 0, 65, srq->xrc_srq_num, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	expect_wc(r.rcq, 7, IBV_WC_LOC_LEN_ERR);
	CHECK_EQ(r.buf[64], 0x55);
	CHECK_EQ(rcv_state(theirs, w.rcv), IBV_QPS_ERR);
	/* The completion reports the error, so there is no request error event. */
	skip_established(r.context);
	end_way(&w);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
}

/* Messages wait at an empty SRQ when it is destroyed. */
static void destroyed(void)
{
	struct ibv_srq *srq = make_xrc_srq(&r, theirs, 8);
	struct way w = make_way(7);
	enum ibv_wc_status status;

	for (int i = 0; i < 4; i++)
		CHECK_EQ(post_xrc(w.send, &s, i, 0, 64, srq->xrc_srq_num, IBV_SEND_SIGNALED), 0);
	CHECK_EQ(post_srq1(srq, &r, 7, 0, 64), 0);
	expect_wc(s.scq, 0, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	status = next_wc(s.scq).status;
	CHECK_EQ(status, IBV_WC_REM_INV_REQ_ERR);
	for (int i = 2; i < 4; i++)
		expect_wc(s.scq, i, IBV_WC_WR_FLUSH_ERR);
	expect_event(r.context, (int)(IBV_EVENT_QP_REQ_ERR | IBV_XRC_QP_EVENT_FLAG));
	/* Its completions were removed with it. */
	expect_silence(r.rcq, 1);
	end_way(&w);
}

int main(void)
{
	test_begin();
	fd = domain_file();
	other_fd = domain_file();
	side_open(&s, 16384, 64, 0);
	side_open(&r, 16384, 64, 0);
	mine = ibv_open_xrc_domain(s.context, -1, 0);
	CHECK(mine);
	theirs = domain_of(&r, fd);
	delivery();
	limit();
	foreign();
	too_long();
	destroyed();
	CHECK_EQ(ibv_close_xrc_domain(mine), 0);
	CHECK_EQ(ibv_close_xrc_domain(theirs), 0);
	side_close(&s);
	side_close(&r);
	return 0;
}
