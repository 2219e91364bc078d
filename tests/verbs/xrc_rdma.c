// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: RDMA WRITE (and with immediate), RDMA READ and both atomics over XRC, between two
 * processes; keys are those of the PD of the SRQ that the packet names.
 */
#include "xrc_test.h"

#define SIZE 50000

enum { RCV = 0, LID = 1, SRQN = 2, ADDR = 3, RKEY = 4, SEND = 5, SLID = 6, FOREIGN = 7, BUSY = 8 };

static int fd;

static void target(int arg)
{
	struct ibv_xrc_domain *domain;
	struct ibv_mr *foreign;
	struct ibv_srq *srq;
	struct ibv_pd *pd;
	uint32_t qpn;
	struct side s;
	struct link l;
	struct ibv_wc wc;

	(void)arg;
	side_open(&s, 3 * SIZE, 16, 0);
	domain = domain_of(&s, fd);
	srq = make_xrc_srq(&s, domain, 8);
	qpn = make_rcv_qp(domain);
	pd = ibv_alloc_pd(s.context);
	CHECK(pd);
	foreign = ibv_reg_mr(pd, s.buf, s.size,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ);
	CHECK(foreign);
	post(LID, s.lid);
	post(SRQN, srq->xrc_srq_num);
	post(ADDR, (uintptr_t)s.buf);
	post(RKEY, s.mr->rkey);
	post(FOREIGN, foreign->rkey);
	post(RCV, qpn);
	await(SEND, 1);
	link_defaults(&l, (uint16_t)board->word[SLID], (uint32_t)board->word[SEND]);
	connect_rcv(domain, qpn, &l);
	fill(s.buf, SIZE, 1);
	*(uint64_t *)(s.buf + 2 * SIZE) = 40;
	CHECK_EQ(post_srq1(srq, &s, 5, 0, 0), 0);
	meet(2);

	meet(2);
	CHECK_EQ(differs(s.buf + SIZE, SIZE, 2), -1);
	CHECK_EQ(*(uint64_t *)(s.buf + 2 * SIZE), 77);
	wc = expect_wc(s.rcq, 5, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	CHECK_EQ(wc.imm_data, 4711);
	CHECK_EQ(wc.byte_len, 100);
	meet(2);
	/* The refused request has not changed the memory. */
	CHECK_EQ(differs(s.buf, SIZE, 1), -1);
	expect_event(s.context, (int)(IBV_EVENT_QP_ACCESS_ERR | IBV_XRC_QP_EVENT_FLAG));
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(domain, qpn), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	CHECK_EQ(ibv_dereg_mr(foreign), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	side_close(&s);
}

static struct side s;
static struct ibv_qp *qp;

static void operate(struct ibv_send_wr *wr, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_send_wr *bad;

	wr->wr_id = wr_id;
	wr->xrc_remote_srq_num = (uint32_t)board->word[SRQN];
	wr->send_flags = IBV_SEND_SIGNALED;
	CHECK_EQ(ibv_post_send(qp, wr, &bad), 0);
	expect_wc(s.scq, wr_id, status);
}

int main(void)
{
	struct ibv_xrc_domain *domain;
	struct ibv_send_wr wr = {.num_sge = 1};
	struct ibv_sge sge;
	uint64_t value;
	uint32_t rkey;
	struct link l;
	pid_t child;

	test_begin();
	fd = domain_file();
	child = spawn(target, 0);
	side_open(&s, 3 * SIZE, 16, 0);
	domain = ibv_open_xrc_domain(s.context, -1, 0);
	CHECK(domain);
	qp = make_qp(&s, IBV_QPT_XRC, NULL, domain, NULL);
	post(SLID, s.lid);
	post(SEND, qp->qp_num);
	await(RCV, 1);
	link_defaults(&l, (uint16_t)board->word[LID], (uint32_t)board->word[RCV]);
	connect_qp(qp, &l);
	meet(2);
	rkey = (uint32_t)board->word[RKEY];

	wr.sg_list = &sge;
	sge = (struct ibv_sge){.addr = (uintptr_t)s.buf, .length = SIZE, .lkey = s.mr->lkey};
	wr.opcode = IBV_WR_RDMA_READ;
	wr.wr.rdma.remote_addr = board->word[ADDR];
	wr.wr.rdma.rkey = rkey;
	operate(&wr, 1, IBV_WC_SUCCESS);
	CHECK_EQ(differs(s.buf, SIZE, 1), -1);

	fill(s.buf, SIZE, 2);
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = board->word[ADDR] + SIZE;
	operate(&wr, 2, IBV_WC_SUCCESS);
	sge.length = 100;
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.imm_data = 4711;
	operate(&wr, 3, IBV_WC_SUCCESS);

	sge.length = 8;
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = board->word[ADDR] + 2 * SIZE;
	wr.wr.atomic.rkey = rkey;
	wr.wr.atomic.compare_add = 2;
	operate(&wr, 4, IBV_WC_SUCCESS);
	memcpy(&value, s.buf, 8);
	CHECK_EQ(value, 40);
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 42;
	wr.wr.atomic.swap = 77;
	operate(&wr, 5, IBV_WC_SUCCESS);
	memcpy(&value, s.buf, 8);
	CHECK_EQ(value, 42);
	meet(2);

	/* A key of another PD than the SRQ's. */
	sge.length = 64;
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = board->word[ADDR];
	wr.wr.rdma.rkey = (uint32_t)board->word[FOREIGN];
	operate(&wr, 6, IBV_WC_REM_ACCESS_ERR);
	meet(2);
	join(child);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	side_close(&s);
	return 0;
}
