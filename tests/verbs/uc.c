// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: UC between two processes: SEND and WRITE, with and without immediate data, many
 * packets; everything that the receiver cannot take vanishes and the sender does not hear of it; a
 * lost packet loses its message whole; the sender's own mistakes end in SQE, and from there it goes
 * on; what UC does not have is refused.
 */
#include <sys/mman.h>

#include "verbs_test.h"

#define SIZE 65536

enum { QPN = 0, LID = 2, ADDR = 4, RKEY = 5 };

static struct side s;
static struct ibv_qp *qp;

static void connect_to(int me, enum ibv_qp_type type)
{
	struct link l;

	side_open(&s, 2 * SIZE, 64, 0);
	qp = make_qp(&s, type, NULL, NULL, NULL);
	if (me) {
		post(ADDR, (uintptr_t)s.buf);
		post(RKEY, s.mr->rkey);
	}
	post(LID + me, s.lid);
	post(QPN + me, qp->qp_num);
	meet(2);
	link_defaults(&l, (uint16_t)board->word[LID + !me], (uint32_t)board->word[QPN + !me]);
	connect_qp(qp, &l);
}

static void receiver(int arg)
{
	struct ibv_wc wc;

	(void)arg;
	connect_to(1, IBV_QPT_UC);
	memset(s.buf, 0x55, 2 * SIZE);
	CHECK_EQ(post_recv1(qp, &s, 1, 0, SIZE), 0);
	CHECK_EQ(post_recv1(qp, &s, 2, SIZE, 100), 0);
	CHECK_EQ(post_recv1(qp, &s, 3, 0, 0), 0);
	meet(2);
	meet(2);
	wc = expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, SIZE);
	CHECK_EQ(wc.opcode, IBV_WC_RECV);
	CHECK_EQ(differs(s.buf, SIZE, 1), -1);
	wc = expect_wc(s.rcq, 2, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, 10);
	CHECK_EQ(wc.wc_flags, IBV_WC_WITH_IMM);
	CHECK_EQ(wc.imm_data, 0x1234);
	wc = expect_wc(s.rcq, 3, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	CHECK_EQ(wc.byte_len, 5000);
	CHECK_EQ(differs(s.buf + SIZE + 200, 5000, 3), -1);
	CHECK_EQ(differs(s.buf + SIZE + 6000, 300, 4), -1);

	/*
	 * No receive, too short a receive, a bad key: the message is lost without an event, and the
	 * QP goes on.
	 */
	memset(s.buf, 0x55, 2 * SIZE);
	meet(2);
	meet(2);
	CHECK_EQ(post_recv1(qp, &s, 4, 0, 50), 0);
	meet(2);
	meet(2);
	expect_silence(s.rcq, 0);
	CHECK_EQ(s.buf[50], 0x55);
	/* The next message takes the receive of the message that was too long. */
	meet(2);
	meet(2);
	CHECK_EQ(expect_wc(s.rcq, 4, IBV_WC_SUCCESS).byte_len, 50);
	CHECK_EQ(differs(s.buf, 50, 6), -1);
	for (int i = 100; i < 2 * SIZE; i++)
		CHECK_EQ(s.buf[i], 0x55);
	CHECK_EQ(real_state(qp), IBV_QPS_RTS);
	while (event_pending(s.context))
		skip_established(s.context);

	/* One packet of three is lost: the receiver does not see that message, but the next. */
	CHECK_EQ(post_recv1(qp, &s, 5, 0, SIZE), 0);
	meet(2);
	meet(2);
	CHECK_EQ(expect_wc(s.rcq, 5, IBV_WC_SUCCESS).byte_len, 2000);
	CHECK_EQ(differs(s.buf, 2000, 8), -1);
	expect_silence(s.rcq, 0);
	meet(2);
}

static void send_and_see(uint64_t id, size_t off, uint32_t len, uint64_t seed)
{
	fill(s.buf + off, len, seed);
	CHECK_EQ(post_send1(qp, &s, id, off, len, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, id, IBV_WC_SUCCESS);
}

static void write_and_see(uint64_t id, uint32_t len, uint64_t raddr, uint32_t rkey)
{
	CHECK_EQ(post_rdma1(qp, &s, IBV_WR_RDMA_WRITE, id, 0, len, raddr, rkey, IBV_SEND_SIGNALED),
		 0);
	CHECK_EQ(expect_wc(s.scq, id, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
}

static void sender(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	uint64_t raddr;
	uint32_t rkey;

	connect_to(0, IBV_QPT_UC);
	meet(2);
	raddr = board->word[ADDR];
	rkey = (uint32_t)board->word[RKEY];
	send_and_see(1, 0, SIZE, 1);
	sge = (struct ibv_sge){.addr = (uintptr_t)s.buf, .length = 10, .lkey = s.mr->lkey};
	wr.wr_id = 2;
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = 0x1234;
	CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
	expect_wc(s.scq, 2, IBV_WC_SUCCESS);
	fill(s.buf, 5000, 3);
	sge.length = 5000;
	wr.wr_id = 3;
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.wr.rdma.remote_addr = raddr + SIZE + 200;
	wr.wr.rdma.rkey = rkey;
	CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
	expect_wc(s.scq, 3, IBV_WC_SUCCESS);
	fill(s.buf, 300, 4);
	write_and_see(4, 300, raddr + SIZE + 6000, rkey);
	meet(2);
	meet(2);

	send_and_see(5, 0, 50, 5);
	write_and_see(6, 50, raddr, rkey ^ 0x01000000);
	write_and_see(7, 50, raddr + 2 * SIZE - 49, rkey);
	meet(2);
	meet(2);
	send_and_see(8, 0, 51, 5);
	send_and_see(9, 0, 3000, 5);
	meet(2);
	meet(2);
	send_and_see(10, 0, 50, 6);
	meet(2);
	meet(2);
	fabric_fault("drop 1");
	send_and_see(11, 0, 3000, 7);
	send_and_see(12, 0, 2000, 8);
	meet(2);
	meet(2);
}

/* The sender's own errors: SQE, later requests flushed, receives untouched, and back to RTS. */
static void send_errors(enum ibv_qp_type type)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t key_change, len;
		enum ibv_wc_status status;
	} wrong[] = {
		{IBV_WR_SEND, 0x01000000, 64, IBV_WC_LOC_PROT_ERR},
		{IBV_WR_RDMA_WRITE, 0x01000000, 64, IBV_WC_LOC_PROT_ERR},
		{IBV_WR_SEND, 0, 0x40000001, IBV_WC_LOC_LEN_ERR},
		{IBV_WR_RDMA_READ, 0, 64, IBV_WC_LOC_QP_OP_ERR},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, IBV_WC_LOC_QP_OP_ERR},
	};
	struct ibv_qp *a = make_qp(&s, type, NULL, NULL, NULL),
		      *b = make_qp(&s, type, NULL, NULL, NULL);

	connect_pair(&s, a, b);
	CHECK_EQ(post_recv1(a, &s, 50, 4096, 64), 0);
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct ibv_sge sge = {.addr = (uintptr_t)s.buf,
				      .length = wrong[i].len,
				      .lkey = s.mr->lkey ^ wrong[i].key_change};
		struct ibv_send_wr wr = {.wr_id = 1,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = wrong[i].opcode},
				   *bad;

		wr.wr.rdma.remote_addr = (uintptr_t)s.buf + 8192;
		wr.wr.rdma.rkey = s.mr->rkey;
		CHECK_EQ(ibv_post_send(a, &wr, &bad), 0);
		CHECK_EQ(post_send1(a, &s, 2, 0, 64, 0), 0);
		expect_wc(s.scq, 1, wrong[i].status);
		expect_wc(s.scq, 2, IBV_WC_WR_FLUSH_ERR);
		CHECK_EQ(real_state(a), IBV_QPS_SQE);
		expect_silence(s.rcq, 0);
		CHECK_EQ(post_send1(a, &s, 3, 0, 64, 0), 0);
		expect_wc(s.scq, 3, IBV_WC_WR_FLUSH_ERR);
		CHECK_EQ(to_state(a, IBV_QPS_RTS), 0);
		CHECK_EQ(post_recv1(b, &s, 60, 4096, 64), 0);
		CHECK_EQ(post_send1(a, &s, 4, 0, 64, IBV_SEND_SIGNALED), 0);
		expect_wc(s.scq, 4, IBV_WC_SUCCESS);
		expect_wc(s.rcq, 60, IBV_WC_SUCCESS);
	}
	CHECK_EQ(post_send1(b, &s, 5, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 5, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 50, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
}

/* A WQE taken from an SRQ cannot be given back: the lost message completes it with an error. */
static void shared_queue(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(s.pd, &init);
	struct ibv_qp *a = make_qp(&s, IBV_QPT_UC, NULL, NULL, NULL), *b;

	CHECK(srq);
	b = make_qp(&s, IBV_QPT_UC, srq, NULL, NULL);
	connect_pair(&s, a, b);
	CHECK_EQ(post_srq1(srq, &s, 1, 8192, 64), 0);
	CHECK_EQ(post_srq1(srq, &s, 2, 8192, 64), 0);
	CHECK_EQ(post_send1(a, &s, 1, 0, 65, IBV_SEND_SIGNALED), 0);
	CHECK_EQ(post_send1(a, &s, 2, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	expect_wc(s.scq, 2, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 1, IBV_WC_REM_ABORT_ERR);
	expect_wc(s.rcq, 2, IBV_WC_SUCCESS);
	CHECK_EQ(real_state(b), IBV_QPS_RTS);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
}

int main(void)
{
	pid_t child;

	test_begin();
	child = spawn(receiver, 0);
	sender();
	join(child);
	send_errors(IBV_QPT_UC);
	shared_queue();
	CHECK(!event_pending(s.context));
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	side_close(&s);
	return 0;
}
