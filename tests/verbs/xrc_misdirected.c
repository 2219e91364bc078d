// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what a send QP does that is connected to another sender's receive QP. No packet says
 * which QP it comes from, so the receive QP takes a request that has the number it expects next.
 * The request of its own sender with that number is a repetition then: it completes with success
 * and never arrives. This is why the libraries never guess the number of a receive QP.
 */
#include <fcntl.h>

#include "xrc_test.h"

#define LEN 300

static struct side rightful, stray, receiver;
static struct ibv_xrc_domain *mine, *other, *theirs;

/* Two senders of a node, and the receive QP of the first one. */
struct meeting {
	struct ibv_srq *srq;
	struct ibv_qp *owner, *intruder;
	uint32_t rcv;
};

static void meet_at(struct meeting *m, uint32_t psn_owner, uint32_t psn_intruder)
{
	struct link l;

	m->srq = make_xrc_srq(&receiver, theirs, 8);
	m->owner = make_qp(&rightful, IBV_QPT_XRC, NULL, mine, NULL);
	m->intruder = make_qp(&stray, IBV_QPT_XRC, NULL, other, NULL);
	m->rcv = make_rcv_qp(theirs);
	link_defaults(&l, rightful.lid, m->owner->qp_num);
	l.access = IBV_ACCESS_REMOTE_WRITE;
	l.psn_theirs = psn_owner;
	connect_rcv(theirs, m->rcv, &l);
	link_defaults(&l, receiver.lid, m->rcv);
	l.psn_mine = psn_owner;
	connect_qp(m->owner, &l);
	l.psn_mine = psn_intruder;
	l.timeout = 5;
	l.retry_cnt = 2;
	connect_qp(m->intruder, &l);
}

static void part(struct meeting *m)
{
	CHECK_EQ(ibv_destroy_qp(m->owner), 0);
	CHECK_EQ(ibv_destroy_qp(m->intruder), 0);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(theirs, m->rcv), 0);
	CHECK_EQ(ibv_destroy_srq(m->srq), 0);
}

static void send_filled(struct ibv_qp *qp, struct side *s, struct ibv_srq *srq, uint64_t seed)
{
	fill(s->buf, LEN, seed);
	CHECK_EQ(post_xrc(qp, s, seed, 0, LEN, srq->xrc_srq_num, IBV_SEND_SIGNALED), 0);
}

static void write_filled(struct ibv_qp *qp, struct side *s, struct ibv_srq *srq, uint64_t seed,
			 size_t to)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s->buf, .length = LEN, .lkey = s->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = seed,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.xrc_remote_srq_num = srq->xrc_srq_num,
		.wr.rdma = {.remote_addr = (uintptr_t)receiver.buf + to, .rkey = receiver.mr->rkey},
	};
	struct ibv_send_wr *bad;

	fill(s->buf, LEN, seed);
	CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
}

static void sent(void)
{
	struct meeting m;

	meet_at(&m, 4711, 4711);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(post_srq1(m.srq, &receiver, i, (size_t)i * LEN, LEN), 0);
	/*
	 * The message is delivered. Its completion status means nothing, because the answers go to
	 * the owner.
	 */
	send_filled(m.intruder, &stray, m.srq, 66);
	CHECK_EQ(next_wc(stray.scq).wr_id, 66);
	expect_wc(receiver.rcq, 0, IBV_WC_SUCCESS);
	CHECK_EQ(differs(receiver.buf, LEN, 66), -1);
	/* The receive QP takes the owner's first message for that one. Only the second is new. */
	send_filled(m.owner, &rightful, m.srq, 1);
	expect_wc(rightful.scq, 1, IBV_WC_SUCCESS);
	send_filled(m.owner, &rightful, m.srq, 2);
	expect_wc(rightful.scq, 2, IBV_WC_SUCCESS);
	expect_wc(receiver.rcq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(differs(receiver.buf + LEN, LEN, 2), -1);
	CHECK_EQ(ibv_poll_cq(receiver.rcq, 1, &(struct ibv_wc){0}), 0);
	part(&m);
}

static void written(void)
{
	struct meeting m;

	meet_at(&m, 4711, 4711);
	memset(receiver.buf, 0x55, 3 * LEN);
	write_filled(m.intruder, &stray, m.srq, 66, 0);
	CHECK_EQ(next_wc(stray.scq).wr_id, 66);
	write_filled(m.owner, &rightful, m.srq, 1, LEN);
	expect_wc(rightful.scq, 1, IBV_WC_SUCCESS);
	write_filled(m.owner, &rightful, m.srq, 2, 2 * LEN);
	expect_wc(rightful.scq, 2, IBV_WC_SUCCESS);
	CHECK_EQ(differs(receiver.buf, LEN, 66), -1);
	for (int i = 0; i < LEN; i++)
		CHECK_EQ(receiver.buf[LEN + i], 0x55);
	CHECK_EQ(differs(receiver.buf + 2 * LEN, LEN, 2), -1);
	part(&m);
}

/* Another PSN does no harm, but the intruder cannot know that it is another one. */
static void by_luck(uint32_t psn)
{
	struct meeting m;

	meet_at(&m, 4711, psn);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(post_srq1(m.srq, &receiver, i, (size_t)i * LEN, LEN), 0);
	send_filled(m.intruder, &stray, m.srq, 66);
	CHECK_EQ(next_wc(stray.scq).wr_id, 66);
	send_filled(m.owner, &rightful, m.srq, 1);
	expect_wc(rightful.scq, 1, IBV_WC_SUCCESS);
	expect_wc(receiver.rcq, 0, IBV_WC_SUCCESS);
	CHECK_EQ(differs(receiver.buf, LEN, 1), -1);
	part(&m);
}

int main(void)
{
	test_begin();
	side_open(&rightful, 4096, 16, 0);
	side_open(&stray, 4096, 16, 0);
	side_open(&receiver, 4096, 16, 0);
	mine = ibv_open_xrc_domain(rightful.context, -1, O_CREAT);
	other = ibv_open_xrc_domain(stray.context, -1, O_CREAT);
	theirs = domain_of(&receiver, domain_file());
	CHECK(mine && other);
	sent();
	written();
	by_luck(4710);
	by_luck(4712);
	CHECK_EQ(ibv_close_xrc_domain(mine), 0);
	CHECK_EQ(ibv_close_xrc_domain(other), 0);
	CHECK_EQ(ibv_close_xrc_domain(theirs), 0);
	side_close(&rightful);
	side_close(&stray);
	side_close(&receiver);
	return 0;
}
