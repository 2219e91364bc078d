// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: every operation of RC between two processes: SEND with and without immediate, RDMA
 * WRITE with and without, RDMA READ, both atomics; contents and completions at both ends.
 */
#include "verbs_test.h"

#define SIZE 70000 /* many packets; not a multiple of the MTU */

enum { QPN = 0, LID = 2, ADDR = 4, RKEY = 6, STEP = 8 };

static struct side s;
static struct ibv_qp *qp;

static void connect_to(int me)
{
	struct link l;

	side_open(&s, 4 * SIZE, 64, 0);
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	post(ADDR + me, (uintptr_t)s.buf);
	post(RKEY + me, s.mr->rkey);
	post(LID + me, s.lid);
	post(QPN + me, qp->qp_num);
	await(QPN + !me, 1);
	link_defaults(&l, (uint16_t)board->word[LID + !me], (uint32_t)board->word[QPN + !me]);
	connect_qp(qp, &l);
}

static void target(int arg)
{
	uint64_t *counter;
	struct ibv_wc wc;

	(void)arg;
	connect_to(1);
	counter = (uint64_t *)(s.buf + 3 * SIZE);
	counter = (uint64_t *)(((uintptr_t)counter + 7) & ~7UL);
	post(STEP + 10, (uintptr_t)counter);
	*counter = 1000;
	CHECK_EQ(post_recv1(qp, &s, 1, 0, SIZE), 0);
	CHECK_EQ(post_recv1(qp, &s, 2, SIZE, SIZE), 0);
	CHECK_EQ(post_recv1(qp, &s, 3, 0, 0), 0);
	meet(2);

	wc = expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, SIZE);
	CHECK_EQ(wc.opcode, IBV_WC_RECV);
	CHECK_EQ(wc.wc_flags, 0);
	CHECK_EQ(wc.qp_num, qp->qp_num);
	CHECK_EQ(differs(s.buf, SIZE, 1), -1);
	wc = expect_wc(s.rcq, 2, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, 1);
	CHECK_EQ(wc.wc_flags, IBV_WC_WITH_IMM);
	CHECK_EQ(wc.imm_data, 0x12345678);
	CHECK_EQ(differs(s.buf + SIZE, 1, 2), -1);
	CHECK_EQ(s.buf[SIZE + 1], 0);
	wc = expect_wc(s.rcq, 3, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	CHECK_EQ(wc.byte_len, 777);
	CHECK_EQ(wc.imm_data, 0x9abcdef0);
	CHECK_EQ(differs(s.buf + 2 * SIZE, 777, 3), -1);
	fill(s.buf, SIZE, 4); /* for the peer to read */
	meet(2);
	meet(2);
	CHECK_EQ(*counter, 5000);
	CHECK_EQ(differs(s.buf, SIZE, 5), -1);
	expect_silence(s.rcq, 2);
}

static void requester(void)
{
	uint64_t raddr, value;
	uint32_t rkey;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc;

	connect_to(0);
	meet(2);
	raddr = board->word[ADDR + 1];
	rkey = (uint32_t)board->word[RKEY + 1];

	fill(s.buf, SIZE, 1);
	CHECK_EQ(post_send1(qp, &s, 101, 0, SIZE, IBV_SEND_SIGNALED), 0);
	CHECK_EQ(expect_wc(s.scq, 101, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	fill(s.buf, 1, 2);
	sge = (struct ibv_sge){.addr = (uintptr_t)s.buf, .length = 1, .lkey = s.mr->lkey};
	wr.wr_id = 102;
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = 0x12345678;
	CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
	expect_wc(s.scq, 102, IBV_WC_SUCCESS);
	fill(s.buf, 777, 3);
	sge.length = 777;
	wr.wr_id = 103;
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.imm_data = 0x9abcdef0;
	wr.wr.rdma.remote_addr = raddr + 2 * SIZE;
	wr.wr.rdma.rkey = rkey;
	CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
	CHECK_EQ(expect_wc(s.scq, 103, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
	meet(2);

	CHECK_EQ(post_rdma1(qp, &s, IBV_WR_RDMA_READ, 104, SIZE, SIZE, raddr, rkey,
			    IBV_SEND_SIGNALED),
		 0);
	wc = expect_wc(s.scq, 104, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode, IBV_WC_RDMA_READ);
	CHECK_EQ(wc.byte_len, SIZE);
	CHECK_EQ(differs(s.buf + SIZE, SIZE, 4), -1);

	sge.length = 8;
	wr.wr_id = 105;
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = board->word[STEP + 10];
	wr.wr.atomic.rkey = rkey;
	wr.wr.atomic.compare_add = 234;
	CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
	CHECK_EQ(expect_wc(s.scq, 105, IBV_WC_SUCCESS).opcode, IBV_WC_FETCH_ADD);
	memcpy(&value, s.buf, 8);
	CHECK_EQ(value, 1000);
	for (int right = 0; right < 2; right++) {
		wr.wr_id = 106;
		wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		wr.wr.atomic.compare_add = right ? 1234 : 1;
		wr.wr.atomic.swap = 5000;
		CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
		CHECK_EQ(expect_wc(s.scq, 106, IBV_WC_SUCCESS).opcode, IBV_WC_COMP_SWAP);
		memcpy(&value, s.buf, 8);
		CHECK_EQ(value, 1234);
	}
	fill(s.buf, SIZE, 5);
	CHECK_EQ(
		post_rdma1(qp, &s, IBV_WR_RDMA_WRITE, 107, 0, SIZE, raddr, rkey, IBV_SEND_SIGNALED),
		0);
	expect_wc(s.scq, 107, IBV_WC_SUCCESS);
	meet(2);
}

int main(void)
{
	pid_t child;

	test_begin();
	child = spawn(target, 0);
	requester();
	join(child);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	side_close(&s);
	return 0;
}
