// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a process is stopped between two calls, in every role that it can have. As an HCA
 * needs no process: receives posted earlier are filled, through a receive queue, an SRQ and an XRC
 * SRQ, and completed; its memory is written, read and changed by atomics; its completion event is
 * raised. Its peer takes everything of its own apart while it is stopped, and each verb of that
 * succeeds. A message that the stopped process was about to repeat (receiver not ready) arrives
 * when it goes on.
 * Again: SOFTHCA_QUEUES=copy
 * Quick: half
 */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "xrc_test.h"

#define LEN	       3000
#define EACH	       8 /* messages to each queue */
#define QUEUES	       3
#define SLOT(queue, n) (((size_t)(queue)*EACH + (n)) * LEN)
#define WRITTEN	       SLOT(QUEUES, 0)
#define READ	       SLOT(QUEUES, 1)
#define COUNTED	       (SLOT(QUEUES, 3) & ~7UL)
#define SIZE	       (SLOT(QUEUES, 4))
#define LATE	       77 /* wr_id */

/* Words of the stopped process and of its peer. */
enum {
	LID = 1,
	ADDR = 2,
	RKEY = 3,
	RCV_QPN = 4,
	SRQN = 5,
	QPN = 8 /* .. 11 */,
	PEER_LID = 16,
	PEER_QPN = 18 /* .. 21 */,
	STOPPED = 32,
	DONE = 33,
	RECEIVED = 34
};
enum { RQ, SRQ, XRC, BACK, QPS }; /* BACK: the stopped one sends */

static int fd;

static struct ibv_srq *make_srq(struct side *s)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = EACH, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(s->pd, &attr);

	CHECK(srq);
	return srq;
}

static void link_to(struct link *l, unsigned int lid, unsigned int qpn)
{
	link_defaults(l, (uint16_t)board->word[lid], (uint32_t)board->word[qpn]);
	/* Two thirds of a second, so that nothing is repeated before the process is stopped. */
	l->min_rnr_timer = 0;
}

static void check_received(struct side *s)
{
	uint32_t got[QUEUES] = {0};

	for (int i = 0; i < QUEUES * EACH; i++) {
		struct ibv_wc wc = next_wc(s->rcq);
		size_t queue = wc.wr_id / EACH, n = wc.wr_id % EACH;

		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK(queue < QUEUES);
		CHECK_EQ(n, got[queue]++);
		CHECK_EQ(wc.byte_len, LEN);
		CHECK_EQ(differs(s->buf + SLOT(queue, n), LEN, queue * EACH + n), -1);
	}
	CHECK_EQ(differs(s->buf + WRITTEN, LEN, 1000), -1);
	CHECK_EQ(*(uint64_t *)(s->buf + COUNTED), 42 + 5);
}

static void stopped(int arg)
{
	struct ibv_xrc_domain *domain;
	struct ibv_srq *srq, *xsrq;
	struct ibv_qp *qp[QPS] = {NULL};
	struct ibv_cq *cq;
	void *context;
	struct side s;
	struct link l;
	uint32_t rcv;

	(void)arg;
	side_open(&s, SIZE, 64, SIDE_CHANNEL);
	domain = domain_of(&s, fd);
	srq = make_srq(&s);
	xsrq = make_xrc_srq(&s, domain, EACH);
	rcv = make_rcv_qp(domain);
	qp[RQ] = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	qp[SRQ] = make_qp(&s, IBV_QPT_RC, srq, NULL, NULL);
	qp[BACK] = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	for (size_t n = 0; n < EACH; n++) {
		CHECK_EQ(post_srq1(srq, &s, SRQ * EACH + n, SLOT(SRQ, n), LEN), 0);
		CHECK_EQ(post_srq1(xsrq, &s, XRC * EACH + n, SLOT(XRC, n), LEN), 0);
	}
	fill(s.buf + READ, LEN, 2000);
	*(uint64_t *)(s.buf + COUNTED) = 42;
	CHECK_EQ(ibv_req_notify_cq(s.rcq, 0), 0);
	post(LID, s.lid);
	post(ADDR, (uintptr_t)s.buf);
	post(RKEY, s.mr->rkey);
	post(RCV_QPN, rcv);
	post(SRQN, xsrq->xrc_srq_num);
	post(QPN + RQ, qp[RQ]->qp_num);
	post(QPN + SRQ, qp[SRQ]->qp_num);
	post(QPN + BACK, qp[BACK]->qp_num);
	meet(2);
	link_to(&l, PEER_LID, PEER_QPN + XRC);
	connect_rcv(domain, rcv, &l);
	for (int i = 0; i < QPS; i++) {
		if (!qp[i])
			continue;
		link_to(&l, PEER_LID, PEER_QPN + i);
		connect_qp(qp[i], &l);
	}
	for (size_t n = 0; n < EACH; n++)
		CHECK_EQ(post_recv1(qp[RQ], &s, RQ * EACH + n, SLOT(RQ, n), LEN), 0);
	meet(2);
	/* The peer has no receive for it yet, so the device must repeat it. */
	CHECK_EQ(post_send1(qp[BACK], &s, LATE, READ, LEN, IBV_SEND_SIGNALED), 0);
	CHECK_EQ(raise(SIGSTOP), 0);
	CHECK_EQ(ibv_get_cq_event(s.channel, &cq, &context), 0);
	CHECK(cq == s.rcq);
	ibv_ack_cq_events(cq, 1);
	check_received(&s);
	await(RECEIVED, 1);
	expect_wc(s.scq, LATE, IBV_WC_SUCCESS);
	for (int i = 0; i < QPS; i++)
		if (qp[i])
			CHECK_EQ(ibv_destroy_qp(qp[i]), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_destroy_srq(xsrq), 0);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(domain, rcv), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	side_close(&s);
}

static void send_all(struct side *s, struct ibv_qp **qp)
{
	for (size_t queue = 0; queue < QUEUES; queue++) {
		for (size_t n = 0; n < EACH; n++) {
			uint64_t id = queue * EACH + n;

			fill(s->buf, LEN, id);
			if (queue == XRC)
				CHECK_EQ(post_xrc(qp[XRC], s, id, 0, LEN,
						  (uint32_t)board->word[SRQN], IBV_SEND_SIGNALED),
					 0);
			else
				CHECK_EQ(post_send1(qp[queue], s, id, 0, LEN, IBV_SEND_SIGNALED),
					 0);
			expect_wc(s->scq, id, IBV_WC_SUCCESS);
		}
	}
}

static void reach(struct side *s, struct ibv_qp *qp)
{
	uint64_t addr = board->word[ADDR];
	uint32_t rkey = (uint32_t)board->word[RKEY];
	struct ibv_sge sge = {
		.addr = (uintptr_t)s->buf + COUNTED, .length = 8, .lkey = s->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .wr_id = 102,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.atomic = {.remote_addr = addr + COUNTED,
							 .rkey = rkey,
							 .compare_add = 5},
				   },
			   *bad;

	fill(s->buf, LEN, 1000);
	CHECK_EQ(post_rdma1(qp, s, IBV_WR_RDMA_WRITE, 100, 0, LEN, addr + WRITTEN, rkey,
			    IBV_SEND_SIGNALED),
		 0);
	expect_wc(s->scq, 100, IBV_WC_SUCCESS);
	CHECK_EQ(post_rdma1(qp, s, IBV_WR_RDMA_READ, 101, 0, LEN, addr + READ, rkey,
			    IBV_SEND_SIGNALED),
		 0);
	expect_wc(s->scq, 101, IBV_WC_SUCCESS);
	CHECK_EQ(differs(s->buf, LEN, 2000), -1);
	CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
	expect_wc(s->scq, 102, IBV_WC_SUCCESS);
	CHECK_EQ(*(uint64_t *)(s->buf + COUNTED), 42);
}

static void peer(int arg)
{
	struct ibv_xrc_domain *domain;
	struct ibv_qp *qp[QPS];
	struct ibv_mr *mr;
	struct side s;
	struct link l;

	(void)arg;
	side_open(&s, SIZE, 64, 0);
	domain = domain_of(&s, fd);
	for (int i = 0; i < QPS; i++)
		qp[i] = make_qp(&s, i == XRC ? IBV_QPT_XRC : IBV_QPT_RC, NULL,
				i == XRC ? domain : NULL, NULL);
	post(PEER_LID, s.lid);
	for (int i = 0; i < QPS; i++)
		post(PEER_QPN + i, qp[i]->qp_num);
	meet(2);
	for (int i = 0; i < QPS; i++) {
		link_to(&l, LID, i == XRC ? RCV_QPN : (unsigned int)QPN + i);
		connect_qp(qp[i], &l);
	}
	meet(2);
	await(STOPPED, 1);
	send_all(&s, qp);
	reach(&s, qp[RQ]);
	mr = ibv_reg_mr(s.pd, s.buf, LEN, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	for (int i = 0; i < QPS; i++)
		CHECK_EQ(real_state(qp[i]), IBV_QPS_RTS);
	/* The stopped process does not keep this one from destroying its objects. */
	CHECK_EQ(to_state(qp[RQ], IBV_QPS_ERR), 0);
	CHECK_EQ(to_state(qp[SRQ], IBV_QPS_RESET), 0);
	for (int i = 0; i < QUEUES; i++)
		CHECK_EQ(ibv_destroy_qp(qp[i]), 0);
	CHECK_EQ(post_recv1(qp[BACK], &s, LATE, 0, LEN), 0);
	post(DONE, 1);
	expect_wc(s.rcq, LATE, IBV_WC_SUCCESS);
	CHECK_EQ(differs(s.buf, LEN, 2000), -1);
	post(RECEIVED, 1);
	CHECK_EQ(ibv_destroy_qp(qp[BACK]), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	side_close(&s);
}

int main(void)
{
	pid_t first, second;
	int status;

	test_begin();
	fd = domain_file();
	first = spawn(stopped, 0);
	second = spawn(peer, 0);
	CHECK_EQ(waitpid(first, &status, WUNTRACED), first);
	CHECK(WIFSTOPPED(status));
	post(STOPPED, 1);
	await(DONE, 1);
	CHECK_EQ(kill(first, SIGCONT), 0);
	join(first);
	join(second);
	return 0;
}
