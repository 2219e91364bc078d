// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Faces: ofed
 * Description: two XRC QPs of ibv_create_qp, connected to each other, each sending and being sent
 * to, as MVAPICH 1.x laid XRC out. A mainline kernel has no such QP.
 */
#include "xrc_test.h"

#define ROUNDS 200
#define LEN    700

enum { QPN = 0, LID = 2, SRQN = 4 };

static int fd;

static void peer(int me)
{
	struct ibv_xrc_domain *domain;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct side s;
	struct link l;

	side_open(&s, 2 * 4096, 64, 0);
	domain = me ? domain_of(&s, fd) : ibv_open_xrc_domain(s.context, -1, 0);
	CHECK(domain);
	srq = make_xrc_srq(&s, domain, 8);
	qp = make_qp(&s, IBV_QPT_XRC, NULL, domain, NULL);
	CHECK(qp->qp_num & (1 << 23));
	CHECK_EQ(post_srq1(srq, &s, 1, 0, LEN), 0);
	post(SRQN + me, srq->xrc_srq_num);
	post(LID + me, s.lid);
	post(QPN + me, qp->qp_num);
	await(QPN + !me, 1);
	link_defaults(&l, (uint16_t)board->word[LID + !me], (uint32_t)board->word[QPN + !me]);
	connect_qp(qp, &l);
	meet(2);
	for (int n = 0; n < ROUNDS; n++) {
		struct ibv_wc wc;

		fill(s.buf + 4096, LEN, n * 2 + me);
		CHECK_EQ(post_xrc(qp, &s, 100 + n, 4096, LEN, (uint32_t)board->word[SRQN + !me],
				  IBV_SEND_SIGNALED),
			 0);
		wc = expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
		CHECK_EQ(wc.qp_num, qp->qp_num);
		CHECK_EQ(wc.src_qp, srq->xrc_srq_num);
		CHECK_EQ(differs(s.buf, LEN, n * 2 + !me), -1);
		CHECK_EQ(post_srq1(srq, &s, 1, 0, LEN), 0);
		expect_wc(s.scq, 100 + n, IBV_WC_SUCCESS);
	}
	meet(2);
	/* The QP has no receive queue of its own. */
	CHECK(post_recv1(qp, &s, 1, 0, LEN));
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	side_close(&s);
}

int main(void)
{
	pid_t child;

	test_begin();
	fd = domain_file();
	child = spawn(peer, 1);
	peer(0);
	join(child);
	return 0;
}
