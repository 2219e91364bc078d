// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: two processes share one domain through one file, each with an XRC SRQ of its own; a
 * third delivers to both by SRQ number over one send QP and one receive QP. The creator of domain
 * and receive QP is killed in mid-traffic with SIGKILL; the other goes on receiving, in order,
 * nothing lost or twice.
 */
#include <signal.h>

#include "xrc_test.h"

#define SLOTS	 64
#define LEN	 512
#define MESSAGES 600 /* to the survivor, in total */
#define KILL_AT	 200 /* messages that the survivor has when the other is killed */

enum {
	RCV_QPN = 0,
	LID = 1,
	SRQN = 2 /* and 3 */,
	SEND_QPN = 4,
	SEND_LID = 5,
	READY = 6,
	GOT = 8 /* and 9 */
};

static int fd;

static void receive(struct side *s, struct ibv_srq *srq, int me, uint32_t rcv_qpn)
{
	for (uint64_t n = 0;; n++) {
		struct ibv_wc wc = next_wc(s->rcq);
		uint64_t slot = wc.wr_id;

		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.opcode, IBV_WC_RECV);
		CHECK_EQ(wc.byte_len, LEN);
		CHECK_EQ(wc.qp_num, rcv_qpn);
		CHECK_EQ(differs(s->buf + slot * LEN, LEN, n * 2 + me), -1);
		memset(s->buf + slot * LEN, 0, LEN);
		CHECK_EQ(post_srq1(srq, s, slot, slot * LEN, LEN), 0);
		post(GOT + me, n + 1);
		if (me == 1 && n + 1 == MESSAGES)
			return;
	}
}

static void receiver(int me)
{
	struct ibv_xrc_domain *domain;
	struct ibv_srq *srq;
	struct side s;
	struct link l;

	side_open(&s, SLOTS * LEN, SLOTS, 0);
	if (me == 1)
		await(RCV_QPN, 1); /* the other one creates the domain */
	domain = domain_of(&s, fd);
	srq = make_xrc_srq(&s, domain, SLOTS);
	for (int i = 0; i < SLOTS; i++)
		CHECK_EQ(post_srq1(srq, &s, i, (size_t)i * LEN, LEN), 0);
	post(SRQN + me, srq->xrc_srq_num);
	if (me == 0) {
		uint32_t qpn = make_rcv_qp(domain);

		post(LID, s.lid);
		post(RCV_QPN, qpn);
		await(SEND_QPN, 1);
		link_defaults(&l, (uint16_t)board->word[SEND_LID], (uint32_t)board->word[SEND_QPN]);
		connect_rcv(domain, qpn, &l);
	} else {
		CHECK_EQ(ibv_reg_xrc_rcv_qp(domain, (uint32_t)board->word[RCV_QPN]), 0);
	}
	meet(3);
	receive(&s, srq, me, (uint32_t)board->word[RCV_QPN]);

	CHECK_EQ(ibv_unreg_xrc_rcv_qp(domain, (uint32_t)board->word[RCV_QPN]), 0);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(domain, (uint32_t)board->word[RCV_QPN]), EINVAL);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	side_close(&s);
}

/*
 * Sends alternately to both while both live. A message that the dead process does not take ends the
 * sends to it, not those to the other.
 */
static void sender(int arg)
{
	struct ibv_xrc_domain *domain;
	struct ibv_qp *qp;
	struct side s;
	struct link l;
	bool one_left = false;

	(void)arg;
	side_open(&s, 4096, 64, 0);
	domain = ibv_open_xrc_domain(s.context, -1, 0);
	CHECK(domain);
	qp = make_qp(&s, IBV_QPT_XRC, NULL, domain, NULL);
	post(SEND_LID, s.lid);
	post(SEND_QPN, qp->qp_num);
	await(RCV_QPN, 1);
	await(LID, 1);
	link_defaults(&l, (uint16_t)board->word[LID], (uint32_t)board->word[RCV_QPN]);
	connect_qp(qp, &l);
	meet(3);
	for (uint64_t n = 0; n < MESSAGES; n++) {
		if (!one_left && __atomic_load_n(&board->word[READY], __ATOMIC_ACQUIRE))
			one_left = true;
		for (int to = one_left ? 1 : 0; to < 2; to++) {
			fill(s.buf, LEN, n * 2 + to);
			CHECK_EQ(post_xrc(qp, &s, n, 0, LEN, (uint32_t)board->word[SRQN + to],
					  IBV_SEND_SIGNALED),
				 0);
			expect_wc(s.scq, n, IBV_WC_SUCCESS);
		}
		/*
		 * Waits before the kill, so that it falls between two messages to the dead
		 * process's SRQ.
		 */
		if (n == KILL_AT) {
			await(GOT + 1, KILL_AT);
			post(READY + 1, 1);
			await(READY, 1);
		}
	}
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	side_close(&s);
}

int main(void)
{
	pid_t creator, survivor, third;

	test_begin();
	fd = domain_file();
	creator = spawn(receiver, 0);
	survivor = spawn(receiver, 1);
	third = spawn(sender, 0);
	await(READY + 1, 1);
	CHECK_EQ(kill(creator, SIGKILL), 0);
	join_killed(creator, SIGKILL);
	post(READY, 1);
	join(survivor);
	join(third);
	CHECK_EQ(board->word[GOT + 1], MESSAGES);
	return 0;
}
