// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: an event of an XRC receive QP reaches every process that is registered with it once,
 * with IBV_XRC_QP_EVENT_FLAG and the QP's number, and nobody else; acknowledging it does not
 * disturb anything.
 */
#include "xrc_test.h"

#define LISTENERS 3

enum { RCV = 0, LID = 1, SRQN = 2, SEND = 3, SLID = 4 };

static int fd;

/* 0 creates the QP, 1 registers twice, 2 has only the domain open. */
static void listener(int me)
{
	struct ibv_xrc_domain *domain;
	struct ibv_async_event event;
	struct ibv_srq *srq = NULL;
	struct side s;
	struct link l;
	uint32_t qpn;

	side_open(&s, 4096, 16, 0);
	domain = domain_of(&s, fd);
	if (me == 0) {
		srq = make_xrc_srq(&s, domain, 8);
		CHECK_EQ(post_srq1(srq, &s, 1, 0, 64), 0);
		qpn = make_rcv_qp(domain);
		post(SRQN, srq->xrc_srq_num);
		post(LID, s.lid);
		post(RCV, qpn);
		await(SEND, 1);
		link_defaults(&l, (uint16_t)board->word[SLID], (uint32_t)board->word[SEND]);
		connect_rcv(domain, qpn, &l);
	}
	await(RCV, 1);
	qpn = (uint32_t)board->word[RCV];
	if (me == 1) {
		CHECK_EQ(ibv_reg_xrc_rcv_qp(domain, qpn), 0);
		CHECK_EQ(ibv_reg_xrc_rcv_qp(domain, qpn), 0);
	}
	meet(LISTENERS + 1);
	meet(LISTENERS + 1);
	/* One message in RTR raised COMM_EST; a bad one was refused. */
	if (me < 2) {
		CHECK_EQ(ibv_get_async_event(s.context, &event), 0);
		CHECK_EQ((unsigned int)event.event_type,
			 (unsigned int)(IBV_EVENT_COMM_EST | IBV_XRC_QP_EVENT_FLAG));
		CHECK_EQ(event.element.xrc_qp_num, qpn);
		ibv_ack_async_event(&event);
		event = expect_event(s.context,
				     (int)(IBV_EVENT_QP_REQ_ERR | IBV_XRC_QP_EVENT_FLAG));
		CHECK_EQ(event.element.xrc_qp_num, qpn);
	}
	CHECK(!event_pending(s.context));
	meet(LISTENERS + 1);
	if (me < 2)
		CHECK_EQ(ibv_unreg_xrc_rcv_qp(domain, qpn), 0);
	if (srq)
		CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	side_close(&s);
}

int main(void)
{
	struct ibv_xrc_domain *domain;
	pid_t child[LISTENERS];
	struct ibv_qp *qp;
	struct side s;
	struct link l;

	test_begin();
	fd = domain_file();
	for (int i = 0; i < LISTENERS; i++)
		child[i] = spawn(listener, i);
	side_open(&s, 4096, 16, 0);
	domain = ibv_open_xrc_domain(s.context, -1, 0);
	CHECK(domain);
	qp = make_qp(&s, IBV_QPT_XRC, NULL, domain, NULL);
	post(SLID, s.lid);
	post(SEND, qp->qp_num);
	await(RCV, 1);
	link_defaults(&l, (uint16_t)board->word[LID], (uint32_t)board->word[RCV]);
	connect_qp(qp, &l);
	meet(LISTENERS + 1);
	CHECK_EQ(post_xrc(qp, &s, 1, 0, 64, (uint32_t)board->word[SRQN], IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(post_xrc(qp, &s, 2, 0, 64, 0xffffff, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 2, IBV_WC_REM_INV_REQ_ERR);
	meet(LISTENERS + 1);
	meet(LISTENERS + 1);
	for (int i = 0; i < LISTENERS; i++)
		join(child[i]);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	side_close(&s);
	return 0;
}
