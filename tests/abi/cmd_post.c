// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: posting through the kernel: the requests of a chain, then all their scatter entries,
 * in their exact bytes. On a failure *bad_wr is the request that the kernel names, or else the
 * first.
 */
#include "cmd.h"

static struct ibv_sge sge[3] = {
	{.addr = 0x1000, .length = 0x10, .lkey = 0x100},
	{.addr = 0x2000, .length = 0x20, .lkey = 0x200},
	{.addr = 0x3000, .length = 0x30, .lkey = 0x300},
};

#define SGE(at, i) U64(at, 0x1000 * (i)), U32(at + 8, 0x10 * (i)), U32(at + 12, 0x100 * (i))

static void post_send(void **state)
{
	struct ibv_send_wr wr[3] = {
		{
			.wr_id = 0x1111,
			.next = &wr[1],
			.sg_list = sge,
			.num_sge = 2,
			.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
			.send_flags = IBV_SEND_SIGNALED,
			.imm_data = 0x78563412,
			.wr.rdma = {.remote_addr = 0xabcdef0123, .rkey = 0x77},
		},
		{
			.wr_id = 0x2222,
			.next = &wr[2],
			.sg_list = NULL,
			.num_sge = 0,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_FENCE,
		},
		{
			.wr_id = 0x3333,
			.sg_list = &sge[2],
			.num_sge = 1,
			.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
			.wr.atomic = {.remote_addr = 0x55,
				      .compare_add = 0x66,
				      .swap = 0x7788,
				      .rkey = 0x99},
		},
	};
	struct ibv_send_wr *bad = NULL;

	(void)state;
	assert_int_equal(ibv_cmd_post_send(&qp, wr, &bad), 0);
	assert_null(bad);
	fake_expect(28, 32 + 3 * 56 + 3 * 16, 4, U32(16, 0x99), U32(20, 3), U32(24, 3), U32(28, 56),
		    U64(32, 0x1111), U32(40, 2), U32(44, 1), U32(48, 2), U32(52, 0x78563412),
		    U64(56, 0xabcdef0123), U32(64, 0x77), U64(88, 0x2222), U32(100, 2), U32(104, 1),
		    U64(144, 0x3333), U32(152, 1), U32(156, 5), U64(168, 0x55), U64(176, 0x66),
		    U64(184, 0x7788), U32(192, 0x99), SGE(200, 1), SGE(216, 2), SGE(232, 3));

	/* The kernel answers which request it refused, counted from one. */
	fake_answer(4, U32(0, 2));
	fake.refuse = ENOMEM;
	assert_int_equal(ibv_cmd_post_send(&qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[1]);

	bad = NULL;
	fake_answer(4, U32(0, 0));
	fake.refuse = EINVAL;
	assert_int_equal(ibv_cmd_post_send(&qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, wr);
}

static void post_send_ud(void **state)
{
	struct ibv_ah ah = {.context = &context, .pd = &pd, .handle = 0xa4};
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = 7,
		.wr.ud = {.ah = &ah, .remote_qpn = 0x123, .remote_qkey = 0x11111111},
	};
	struct ibv_send_wr *bad = NULL;

	(void)state;
	qp.qp_type = IBV_QPT_UD;
	assert_int_equal(ibv_cmd_post_send(&qp, &wr, &bad), 0);
	fake_expect(28, 32 + 56 + 16, 4, U32(16, 0x99), U32(20, 1), U32(24, 1), U32(28, 56),
		    U64(32, 1), U32(40, 1), U32(44, 3), U32(52, 7), U32(56, 0xa4), U32(60, 0x123),
		    U32(64, 0x11111111), SGE(88, 1));
}

static struct ibv_recv_wr recv_wr[2] = {
	{.wr_id = 0xaaaa, .next = &recv_wr[1], .sg_list = sge, .num_sge = 1},
	{.wr_id = 0xbbbb, .sg_list = &sge[1], .num_sge = 2},
};

#define RECV_REQUESTS                                                                              \
	U32(20, 2), U32(24, 3), U32(28, 16), U64(32, 0xaaaa), U32(40, 1), U64(48, 0xbbbb),         \
		U32(56, 2), SGE(64, 1), SGE(80, 2), SGE(96, 3)

static void post_recv(void **state)
{
	struct ibv_recv_wr *bad = NULL;

	(void)state;
	assert_int_equal(ibv_cmd_post_recv(&qp, recv_wr, &bad), 0);
	assert_null(bad);
	fake_expect(29, 32 + 2 * 16 + 3 * 16, 4, U32(16, 0x99), RECV_REQUESTS);

	fake_answer(4, U32(0, 2));
	fake.refuse = ENOMEM;
	assert_int_equal(ibv_cmd_post_recv(&qp, recv_wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &recv_wr[1]);

	fake.response_len = 0;
	fake.refuse = EFAULT;
	assert_int_equal(ibv_cmd_post_recv(&qp, recv_wr, &bad), EFAULT);
	assert_ptr_equal(bad, recv_wr);
}

static void post_srq_recv(void **state)
{
	struct ibv_recv_wr *bad = NULL;

	(void)state;
	assert_int_equal(ibv_cmd_post_srq_recv(&srq, recv_wr, &bad), 0);
	assert_null(bad);
	fake_expect(36, 32 + 2 * 16 + 3 * 16, 4, U32(16, 0x54), RECV_REQUESTS);

	fake_answer(4, U32(0, 1));
	fake.refuse = ENOMEM;
	assert_int_equal(ibv_cmd_post_srq_recv(&srq, recv_wr, &bad), ENOMEM);
	assert_ptr_equal(bad, recv_wr);
}

/* The library refuses what no command can express, and does not ask the kernel. */
static void never_sent(void **state)
{
	struct ibv_recv_wr recv[2] = {{.next = &recv[1]}, {.num_sge = -1}}, *bad_recv = NULL;
	struct ibv_send_wr send[2] = {{.next = &send[1], .opcode = IBV_WR_SEND},
				      {.num_sge = 1 << 20}};
	struct ibv_send_wr *bad_send = NULL;

	(void)state;
	assert_int_equal(ibv_cmd_post_recv(&qp, recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, recv);
	bad_recv = NULL;
	recv[1].num_sge = 1 << 20;
	assert_int_equal(ibv_cmd_post_srq_recv(&srq, recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, recv);
	assert_int_equal(ibv_cmd_post_send(&qp, send, &bad_send), EINVAL);
	assert_ptr_equal(bad_send, send);

	/* The command has no field for the number of an SRQ. */
	qp.qp_type = IBV_QPT_XRC;
	bad_send = NULL;
	send[1].num_sge = 0;
	assert_int_equal(ibv_cmd_post_send(&qp, send, &bad_send), EINVAL);
	assert_ptr_equal(bad_send, send);
	assert_int_equal(fake.commands, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, cmd_setup)
	static const struct CMUnitTest tests[] = {
		TEST(post_send),     TEST(post_send_ud), TEST(post_recv),
		TEST(post_srq_recv), TEST(never_sent),
	};

	return cmocka_run_group_tests_name("commands of posting", tests, cmd_group_setup,
					   cmd_group_teardown);
}
