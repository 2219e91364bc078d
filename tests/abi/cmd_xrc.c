// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the XRC commands of OFED kernels have their exact bytes, with every reserved byte
 * zero. Below ABI 6 the library does not send them.
 */
#include "cmd.h"

static struct ibv_xrc_domain domain = {.context = &context, .handle = 0xd0};

static void open_and_close(void **state)
{
	struct {
		struct ibv_open_xrc_domain_resp core;
		uint32_t driver[2];
	} resp = {.driver = {0}};
	struct ibv_xrc_domain d = {.context = &context, .handle = 1};

	(void)state;
	fake_answer(12, U32(0, 0xd1), U32(4, 0x77), U32(8, 0x88));
	assert_int_equal(ibv_cmd_open_xrc_domain(&context, 9, O_CREAT | O_EXCL, &d, &resp.core,
						 sizeof(resp)),
			 0);
	fake_expect(38, 24, 12, U64(8, PTR(&resp)), U32(16, 9), U32(20, O_CREAT | O_EXCL));
	assert_int_equal(d.handle, 0xd1);
	assert_int_equal(resp.driver[0], 0x77);
	assert_int_equal(resp.driver[1], 0x88);

	assert_int_equal(ibv_cmd_open_xrc_domain(&context, -1, 0, &d, &resp.core, sizeof(resp)), 0);
	fake_expect(38, 24, 12, U32(16, 0xffffffff));

	d.handle = 5;
	cmd_check_refusals(ibv_cmd_open_xrc_domain(&context, -1, 0, &d, &resp.core, sizeof(resp)));
	assert_int_equal(d.handle, 5);

	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), 0);
	fake_expect(39, 24, 0, U32(16, 0xd0));
	cmd_check_refusals(ibv_cmd_close_xrc_domain(&domain));
}

static void create_xrc_srq(void **state)
{
	struct {
		struct ibv_create_xrc_srq core;
		uint64_t driver[2];
	} cmd = {.driver = {0x444, 0x555}};
	struct {
		struct ibv_create_srq_resp core;
		uint64_t driver;
	} resp = {.driver = 0};
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 100, .max_sge = 3, .srq_limit = 17}};

	(void)state;
	memset(&cmd.core, 0xee, sizeof(cmd.core));
	fake_answer(24, U32(0, 0x5a), U32(4, 127), U32(8, 4), U64(16, 0x77));
	assert_int_equal(ibv_cmd_create_xrc_srq(&pd, &srq, &attr, 0xd0, 0xc0, &cmd.core,
						sizeof(cmd), &resp.core, sizeof(resp)),
			 0);
	fake_expect(37, 64, 24, U64(8, PTR(&resp)), U64(16, PTR(&srq)), U32(24, 0x9d), U32(28, 100),
		    U32(32, 3), U32(36, 17), U32(40, 0xd0), U32(44, 0xc0), U64(48, 0x444),
		    U64(56, 0x555));
	assert_int_equal(srq.handle, 0x5a);
	assert_int_equal(attr.attr.max_wr, 127);
	assert_int_equal(attr.attr.max_sge, 4);
	assert_true(resp.driver == 0x77);

	srq.handle = 6;
	cmd_check_refusals(ibv_cmd_create_xrc_srq(&pd, &srq, &attr, 0xd0, 0xc0, &cmd.core,
						  sizeof(cmd), &resp.core, sizeof(resp)));
	assert_int_equal(srq.handle, 6);
}

static void create_rcv_qp(void **state)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 2,
			.max_send_sge = 3,
			.max_recv_sge = 4,
			.max_inline_data = 5},
		.qp_type = IBV_QPT_XRC,
		.sq_sig_all = 1,
		.xrc_domain = &domain,
	};
	uint32_t qpn = 0;

	(void)state;
	fake_answer(8, U32(0, 0x800123));
	assert_int_equal(ibv_cmd_create_xrc_rcv_qp(&attr, &qpn), 0);
	fake_expect(40, 56, 8, U32(24, 0xd0), U32(28, 1), U32(32, 2), U32(36, 3), U32(40, 4),
		    U32(44, 5), U8(48, 1), U8(49, 5));
	assert_int_equal(qpn, 0x800123);

	qpn = 7;
	cmd_check_refusals(ibv_cmd_create_xrc_rcv_qp(&attr, &qpn));
	assert_int_equal(qpn, 7);
}

static void modify_rcv_qp(void **state)
{
	struct ibv_qp_attr attr;
	unsigned char *byte = (unsigned char *)&attr;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(attr); ++i)
		byte[i] = 1 + i % 100;
	attr.qp_state = 1;
	attr.cur_qp_state = 2;
	attr.path_mtu = 3;
	attr.path_mig_state = 4;

	assert_int_equal(ibv_cmd_modify_xrc_rcv_qp(&domain, 0x800123, &attr, 0x1fffff), 0);
	fake_expect(41, 128, 0, U32(8, 0xd0), U32(12, 0x800123), AV(16, attr.ah_attr),
		    AV(48, attr.alt_ah_attr), U32(80, 0x1fffff), U32(84, attr.qkey),
		    U32(88, attr.rq_psn), U32(92, attr.sq_psn), U32(96, attr.dest_qp_num),
		    U32(100, attr.qp_access_flags), U16(104, attr.pkey_index),
		    U16(106, attr.alt_pkey_index), U8(108, 1), U8(109, 2), U8(110, 3), U8(111, 4),
		    U8(112, attr.en_sqd_async_notify), U8(113, attr.max_rd_atomic),
		    U8(114, attr.max_dest_rd_atomic), U8(115, attr.min_rnr_timer),
		    U8(116, attr.port_num), U8(117, attr.timeout), U8(118, attr.retry_cnt),
		    U8(119, attr.rnr_retry), U8(120, attr.alt_port_num), U8(121, attr.alt_timeout));
	cmd_check_refusals(ibv_cmd_modify_xrc_rcv_qp(&domain, 0x800123, &attr, 1));
}

static void query_rcv_qp(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)state;
	memset(&init, 0xee, sizeof(init));
	memset(&attr, 0, sizeof(attr));
	fake_answer(128, U16(20, 0x1234), U32(88, 0x999), U8(108, 2), U8(110, 4), U8(116, 1),
		    U8(122, 1));
	assert_int_equal(ibv_cmd_query_xrc_rcv_qp(&domain, 0x800123, &attr, 0x33, &init), 0);
	fake_expect(42, 32, 128, U32(16, 0xd0), U32(20, 0x800123), U32(24, 0x33));
	assert_int_equal(attr.ah_attr.dlid, 0x1234);
	assert_int_equal(attr.rq_psn, 0x999);
	assert_int_equal(attr.qp_state, 2);
	assert_int_equal(attr.path_mtu, 4);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(init.sq_sig_all, 1);
	assert_int_equal(init.cap.max_send_wr, 0);
	assert_int_equal((uintptr_t)init.send_cq & 0xff, 0xee);

	attr.rq_psn = 1;
	cmd_check_refusals(ibv_cmd_query_xrc_rcv_qp(&domain, 0x800123, &attr, 0x33, &init));
	assert_int_equal(attr.rq_psn, 1);
}

static void registration(void **state)
{
	(void)state;
	assert_int_equal(ibv_cmd_reg_xrc_rcv_qp(&domain, 0x800123), 0);
	fake_expect(43, 16, 0, U32(8, 0xd0), U32(12, 0x800123));
	cmd_check_refusals(ibv_cmd_reg_xrc_rcv_qp(&domain, 0x800123));

	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&domain, 0x800124), 0);
	fake_expect(44, 16, 0, U32(8, 0xd0), U32(12, 0x800124));
	cmd_check_refusals(ibv_cmd_unreg_xrc_rcv_qp(&domain, 0x800124));
}

static void not_below_abi_6(void **state)
{
	struct ibv_open_xrc_domain_resp resp;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_XRC, .xrc_domain = &domain};
	struct ibv_xrc_domain d = {.context = &context};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	uint32_t qpn;

	(void)state;
	cmd_set_abi(5);
	assert_int_equal(ibv_cmd_open_xrc_domain(&context, -1, 0, &d, &resp, sizeof(resp)), ENOSYS);
	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), ENOSYS);
	assert_int_equal(ibv_cmd_create_xrc_rcv_qp(&init, &qpn), ENOSYS);
	assert_int_equal(ibv_cmd_modify_xrc_rcv_qp(&domain, 1, &attr, 1), ENOSYS);
	assert_int_equal(ibv_cmd_query_xrc_rcv_qp(&domain, 1, &attr, 1, &init), ENOSYS);
	assert_int_equal(ibv_cmd_reg_xrc_rcv_qp(&domain, 1), ENOSYS);
	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&domain, 1), ENOSYS);
	assert_int_equal(fake.commands, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, cmd_setup)
	static const struct CMUnitTest tests[] = {
		TEST(open_and_close),  TEST(create_xrc_srq), TEST(create_rcv_qp),
		TEST(modify_rcv_qp),   TEST(query_rcv_qp),   TEST(registration),
		TEST(not_below_abi_6),
	};

	return cmocka_run_group_tests_name("commands of XRC", tests, cmd_group_setup,
					   cmd_group_teardown);
}
