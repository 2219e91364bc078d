// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a region that is registered under other addresses than those of its memory (hca_va
 * of REG_MR, which later libraries call ibv_reg_mr_iova) is read and written by those addresses
 * only, locally and remotely.
 */
#include <sys/mman.h>

#include <infiniband/driver.h>

#include "verbs_test.h"

#define IOVA UINT64_C(0x7000000000)
#define LEN  3000

int main(void)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_reg_mr_resp resp;
	struct ibv_send_wr wr = {.wr_id = 3,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_recv_wr rwr = {.wr_id = 4, .num_sge = 1}, *bad_r;
	struct ibv_sge out = {.addr = IOVA + 100, .length = LEN},
		       in = {.addr = IOVA + 4096, .length = LEN};
	struct ibv_reg_mr cmd;
	struct ibv_qp *a, *b;
	struct ibv_mr mr = {0};
	uint64_t old;
	struct side s;
	uint8_t *mem;

	test_begin();
	side_open(&s, 16384, 16, 0);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
	mem = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mem != MAP_FAILED);
	CHECK_EQ(ibv_cmd_reg_mr(s.pd, mem, 8192, IOVA + 1, access, &mr, &cmd, sizeof(cmd), &resp,
				sizeof(resp)),
		 EINVAL);
	CHECK_EQ(ibv_cmd_reg_mr(s.pd, mem, 8192, IOVA, access, &mr, &cmd, sizeof(cmd), &resp,
				sizeof(resp)),
		 0);
	mr.context = s.context;
	mr.pd = s.pd;

	fill(s.buf, LEN, 1);
	CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, 1, 0, LEN, IOVA + 100, mr.rkey,
			    IBV_SEND_SIGNALED),
		 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(differs(mem + 100, LEN, 1), -1);
	CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_READ, 2, 8192, LEN, IOVA + 100, mr.rkey,
			    IBV_SEND_SIGNALED),
		 0);
	expect_wc(s.scq, 2, IBV_WC_SUCCESS);
	CHECK_EQ(differs(s.buf + 8192, LEN, 1), -1);

	/* Gathered from it and scattered into it. */
	out.lkey = in.lkey = mr.lkey;
	wr.sg_list = &out;
	rwr.sg_list = &in;
	CHECK_EQ(ibv_post_recv(b, &rwr, &bad_r), 0);
	CHECK_EQ(ibv_post_send(a, &wr, &bad), 0);
	expect_wc(s.scq, 3, IBV_WC_SUCCESS);
	CHECK_EQ(expect_wc(s.rcq, 4, IBV_WC_SUCCESS).byte_len, LEN);
	CHECK_EQ(differs(mem + 4096, LEN, 1), -1);

	*(uint64_t *)(mem + 8) = 40;
	out = (struct ibv_sge){.addr = (uintptr_t)s.buf, .length = 8, .lkey = s.mr->lkey};
	wr.wr_id = 5;
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = IOVA + 8;
	wr.wr.atomic.rkey = mr.rkey;
	wr.wr.atomic.compare_add = 2;
	CHECK_EQ(ibv_post_send(a, &wr, &bad), 0);
	expect_wc(s.scq, 5, IBV_WC_SUCCESS);
	memcpy(&old, s.buf, 8);
	CHECK_EQ(old, 40);
	CHECK_EQ(*(uint64_t *)(mem + 8), 42);

	/* The address of its memory is not an address of the region. */
	CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, 6, 0, 8, (uintptr_t)mem, mr.rkey,
			    IBV_SEND_SIGNALED),
		 0);
	expect_wc(s.scq, 6, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(*(uint64_t *)(mem + 8), 42);

	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	CHECK_EQ(ibv_cmd_dereg_mr(&mr), 0);
	munmap(mem, 8192);
	side_close(&s);
	return 0;
}
