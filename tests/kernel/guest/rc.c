// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: RC and UC requests of every kind do what they say, contents verified; errors have
 * their statuses.
 */

#include <arpa/inet.h>

#include "guest.h"

#define SRC    0
#define DST    65536
#define LENGTH 10000

struct pair {
	struct rig rig;
	struct ibv_qp *a, *b;
};

static void pair_up(struct pair *pair, enum ibv_qp_type type)
{
	rig_up(&pair->rig);
	pair->a = rig_qp(&pair->rig, type, NULL);
	pair->b = rig_qp(&pair->rig, type, NULL);
	connect_pair(&pair->rig, pair->a, pair->b);
}

static void pair_down(struct pair *pair)
{
	CHECK_EQ(ibv_destroy_qp(pair->a), 0);
	CHECK_EQ(ibv_destroy_qp(pair->b), 0);
	rig_down(&pair->rig);
}

/*
 * Posts on the first QP a request on [SRC, SRC + length) that names [DST, ...) as the remote side.
 */
static void post_rdma(struct pair *pair, enum ibv_wr_opcode opcode, uint32_t length, uint32_t rkey)
{
	struct ibv_sge sge = rig_sge(&pair->rig, SRC, length);
	struct ibv_send_wr wr =
				   {
					   .wr_id = opcode,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = opcode,
					   .send_flags = IBV_SEND_SIGNALED,
					   .imm_data = htonl(0xabcd0123),
					   .wr.rdma = {.remote_addr =
							       (uintptr_t)pair->rig.buf + DST,
						       .rkey = rkey},
				   },
			   *bad;

	CHECK_EQ(ibv_post_send(pair->a, &wr, &bad), 0);
}

static void gather_and_scatter(enum ibv_qp_type type)
{
	struct ibv_sge from[3], to[2];
	struct ibv_send_wr send =
				   {
					   .wr_id = 7,
					   .sg_list = from,
					   .num_sge = 3,
					   .opcode = IBV_WR_SEND_WITH_IMM,
					   .send_flags = IBV_SEND_SIGNALED,
					   .imm_data = htonl(0x01020304),
				   },
			   *bad_send;
	struct ibv_recv_wr recv = {.wr_id = 8, .sg_list = to, .num_sge = 2}, *bad_recv;
	struct pair pair;
	struct ibv_wc wc;

	pair_up(&pair, type);
	from[0] = rig_sge(&pair.rig, SRC, 1);
	from[1] = rig_sge(&pair.rig, SRC + 1, 3000);
	from[2] = rig_sge(&pair.rig, SRC + 3001, LENGTH - 3001);
	to[0] = rig_sge(&pair.rig, DST, 1500);
	to[1] = rig_sge(&pair.rig, DST + 1500, LENGTH);
	fill(pair.rig.buf + SRC, LENGTH, type);
	CHECK_EQ(ibv_post_recv(pair.b, &recv, &bad_recv), 0);
	CHECK_EQ(ibv_post_send(pair.a, &send, &bad_send), 0);

	wc = wait_recv_and_send(pair.rig.cq);
	CHECK_EQ(wc.wr_id, 8);
	CHECK_EQ(wc.opcode, IBV_WC_RECV);
	CHECK_EQ(wc.byte_len, LENGTH);
	CHECK(wc.wc_flags & IBV_WC_WITH_IMM);
	CHECK_EQ(wc.imm_data, htonl(0x01020304));
	CHECK_EQ(wc.qp_num, pair.b->qp_num);
	check_content(pair.rig.buf + DST, LENGTH, type);
	pair_down(&pair);
}

static void rc_send(void)
{
	gather_and_scatter(IBV_QPT_RC);
}

static void uc_send(void)
{
	gather_and_scatter(IBV_QPT_UC);
}

static void inline_send(void)
{
	uint8_t own[RIG_INLINE];
	struct ibv_sge sge = {(uintptr_t)own, sizeof(own), 0};
	struct ibv_send_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_SEND,
					   .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
				   },
			   *bad;
	struct pair pair;

	/* Memory that no region covers, and that is ours again at once. */
	pair_up(&pair, IBV_QPT_RC);
	post_recv(&pair.rig, pair.b, DST, sizeof(own));
	fill(own, sizeof(own), 9);
	CHECK_EQ(ibv_post_send(pair.a, &wr, &bad), 0);
	memset(own, 0, sizeof(own));
	wait_recv_and_send(pair.rig.cq);
	check_content(pair.rig.buf + DST, sizeof(own), 9);
	pair_down(&pair);
}

static void rdma_write(void)
{
	struct pair pair;
	struct ibv_wc wc;

	pair_up(&pair, IBV_QPT_RC);
	fill(pair.rig.buf + SRC, LENGTH, 1);
	post_rdma(&pair, IBV_WR_RDMA_WRITE, LENGTH, pair.rig.mr->rkey);
	wc = wait_status(pair.rig.cq, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode, IBV_WC_RDMA_WRITE);
	check_content(pair.rig.buf + DST, LENGTH, 1);

	fill(pair.rig.buf + SRC, LENGTH, 2);
	post_recv(&pair.rig, pair.b, DST + LENGTH, 64);
	post_rdma(&pair, IBV_WR_RDMA_WRITE_WITH_IMM, LENGTH, pair.rig.mr->rkey);
	wc = wait_recv_and_send(pair.rig.cq);
	CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	CHECK_EQ(wc.imm_data, htonl(0xabcd0123));
	CHECK_EQ(wc.byte_len, LENGTH);
	check_content(pair.rig.buf + DST, LENGTH, 2);
	pair_down(&pair);
}

static void rdma_read(void)
{
	struct pair pair;
	struct ibv_wc wc;

	pair_up(&pair, IBV_QPT_RC);
	fill(pair.rig.buf + DST, LENGTH, 3);
	post_rdma(&pair, IBV_WR_RDMA_READ, LENGTH, pair.rig.mr->rkey);
	wc = wait_status(pair.rig.cq, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode, IBV_WC_RDMA_READ);
	CHECK_EQ(wc.wr_id, IBV_WR_RDMA_READ);
	check_content(pair.rig.buf + SRC, LENGTH, 3);
	pair_down(&pair);
}

static uint64_t atomic(struct pair *pair, enum ibv_wr_opcode opcode, uint64_t compare_add,
		       uint64_t swap)
{
	struct ibv_sge sge = rig_sge(&pair->rig, SRC, 8);
	struct ibv_send_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = opcode,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.atomic =
						   {
							   .remote_addr =
								   (uintptr_t)pair->rig.buf + DST,
							   .compare_add = compare_add,
							   .swap = swap,
							   .rkey = pair->rig.mr->rkey,
						   },
				   },
			   *bad;
	struct ibv_wc wc;
	uint64_t before;

	CHECK_EQ(ibv_post_send(pair->a, &wr, &bad), 0);
	wc = wait_status(pair->rig.cq, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode,
		 opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD);
	memcpy(&before, pair->rig.buf + SRC, sizeof(before));
	return before;
}

static void atomics(void)
{
	struct pair pair;
	uint64_t *target;

	pair_up(&pair, IBV_QPT_RC);
	target = (uint64_t *)(pair.rig.buf + DST);
	*target = 1000;
	CHECK_EQ(atomic(&pair, IBV_WR_ATOMIC_FETCH_AND_ADD, 234, 0), 1000);
	CHECK_EQ(*target, 1234);
	CHECK_EQ(atomic(&pair, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 5), 1234);
	CHECK_EQ(*target, 1234);
	CHECK_EQ(atomic(&pair, IBV_WR_ATOMIC_CMP_AND_SWP, 1234, 0x123456789abcdef), 1234);
	CHECK_EQ(*target, 0x123456789abcdef);
	pair_down(&pair);
}

static void wrong_key_is_an_access_error(void)
{
	struct pair pair;
	struct ibv_wc wc;

	pair_up(&pair, IBV_QPT_RC);
	fill(pair.rig.buf + DST, 64, 4);
	post_rdma(&pair, IBV_WR_RDMA_WRITE, 64, pair.rig.mr->rkey ^ 0x5500);
	wc = wait_status(pair.rig.cq, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(wc.wr_id, IBV_WR_RDMA_WRITE);
	CHECK_EQ(qp_queried_state(pair.a), IBV_QPS_ERR);
	CHECK_EQ(pair.a->state, IBV_QPS_ERR);
	check_content(pair.rig.buf + DST, 64, 4);

	/* What follows is flushed. */
	post_send(&pair.rig, pair.a, SRC, 64, 0);
	wait_status(pair.rig.cq, IBV_WC_WR_FLUSH_ERR);
	pair_down(&pair);
}

static void receiver_not_ready(void)
{
	struct ibv_qp_attr attr;
	struct pair pair;
	int mask;

	rig_up(&pair.rig);
	pair.a = rig_qp(&pair.rig, IBV_QPT_RC, NULL);
	pair.b = rig_qp(&pair.rig, IBV_QPT_RC, NULL);
	qp_connect(&pair.rig, pair.b, pair.a->qp_num);
	qp_to_init(pair.a);
	qp_to_rtr(&pair.rig, pair.a, pair.b->qp_num);
	mask = rts_attr(pair.a, &attr);
	attr.rnr_retry = 0;
	CHECK_EQ(ibv_modify_qp(pair.a, &attr, mask), 0);

	post_send(&pair.rig, pair.a, SRC, 64, 0);
	wait_status(pair.rig.cq, IBV_WC_RNR_RETRY_EXC_ERR);
	pair_down(&pair);
}

static void peer_that_does_not_answer(void)
{
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	struct rig rig;
	int mask;

	rig_up(&rig);
	qp = rig_qp(&rig, IBV_QPT_RC, NULL);
	qp_to_init(qp);
	qp_to_rtr(&rig, qp, 0xabcdef);
	mask = rts_attr(qp, &attr);
	attr.timeout = 10;
	attr.retry_cnt = 2;
	CHECK_EQ(ibv_modify_qp(qp, &attr, mask), 0);
	post_send(&rig, qp, SRC, 64, 0);
	wait_status(rig.cq, IBV_WC_RETRY_EXC_ERR);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	rig_down(&rig);
}

static void many_in_flight(void)
{
	struct pair pair;
	struct ibv_wc wc;
	int i, sent = 0, received = 0;

	pair_up(&pair, IBV_QPT_RC);
	for (i = 0; i < RIG_WR; ++i) {
		post_recv(&pair.rig, pair.b, DST + i * 2000, 2000);
		fill(pair.rig.buf + SRC + i * 2000, 2000, i);
	}
	for (i = 0; i < RIG_WR; ++i)
		post_send(&pair.rig, pair.a, SRC + i * 2000, 2000, 0);
	while (sent + received < 2 * RIG_WR) {
		wc = wait_status(pair.rig.cq, IBV_WC_SUCCESS);
		if (wc.opcode & IBV_WC_RECV)
			CHECK_EQ(wc.wr_id, DST + 2000 * received++);
		else
			CHECK_EQ(wc.wr_id, SRC + 2000 * sent++);
	}
	for (i = 0; i < RIG_WR; ++i)
		check_content(pair.rig.buf + DST + i * 2000, 2000, i);
	pair_down(&pair);
}

const struct guest_test rc_tests[] = {
	{"RC send with immediate, gathered and scattered", rc_send},
	{"UC send with immediate, gathered and scattered", uc_send},
	{"RC inline send", inline_send},
	{"RC RDMA write, without and with immediate", rdma_write},
	{"RC RDMA read", rdma_read},
	{"RC atomics", atomics},
	{"RC: a full queue of messages arrives in order", many_in_flight},
	{"RC: a wrong key is a remote access error, and the QP is in error",
	 wrong_key_is_an_access_error},
	{"RC: a receiver that is never ready", receiver_not_ready},
	{"RC: a peer that does not answer", peer_that_does_not_answer},
	{0},
};
