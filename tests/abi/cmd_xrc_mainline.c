// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the legacy XRC calls on a mainline kernel. The library writes the exact bytes of
 * that kernel's commands. Whatever the kernel answers, errnos, registration and EBUSY are those of
 * the OFED API.
 */
#include "fake_mainline.h"

static struct ibv_xrc_domain domain;

static int setup(void **state)
{
	mainline_setup(state);
	return mainline_open(&domain, -1, O_CREAT);
}

static void open_and_close(void **state)
{
	struct {
		struct ibv_open_xrc_domain_resp core;
		uint32_t driver[2];
	} resp = {.driver = {0x11, 0x22}};
	struct ibv_xrc_domain d = {.context = &context};

	(void)state;
	assert_int_equal(ibv_cmd_open_xrc_domain(&context, 1, O_CREAT | O_EXCL, &d, &resp.core,
						 sizeof(resp)),
			 0);
	mainline_expect(0, OPEN_XRCD, 24, 12, U64(8, PTR(&resp)), U32(16, 1),
			U32(20, O_CREAT | O_EXCL));
	assert_int_equal(d.handle, mainline.next_handle);
	/* The kernel's driver has written nothing here. */
	assert_int_equal(resp.driver[0], 0x11);
	mainline_forget();

	assert_int_equal(ibv_cmd_close_xrc_domain(&d), 0);
	mainline_expect(0, CLOSE_XRCD, 12, 0, U32(8, d.handle));
	mainline_forget();

	/* The domain is not open any more. The library knows, and does not ask the kernel. */
	assert_int_equal(ibv_cmd_close_xrc_domain(&d), EINVAL);
	mainline_silent();
}

static void refused_domains(void **state)
{
	static const int errors[] = {EBADF, EAGAIN, EINVAL, ENOMEM, EPERM};
	struct ibv_open_xrc_domain_resp resp;
	struct ibv_xrc_domain d = {.context = &context, .handle = 5};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); ++i) {
		fake.refuse = errors[i];
		assert_int_equal(
			ibv_cmd_open_xrc_domain(&context, 12345, 0, &d, &resp, sizeof(resp)),
			errors[i]);
		assert_int_equal(errno, errors[i]);
		assert_int_equal(d.handle, 5);
	}
	cmd_check_refusals(ibv_cmd_open_xrc_domain(&context, -1, 0, &d, &resp, sizeof(resp)));
	assert_int_equal(d.handle, 5);
	assert_int_equal(ibv_cmd_close_xrc_domain(&d), EINVAL);

	fake.refuse = EBUSY;
	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), EBUSY);
	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), 0);
}

struct srq_cmd {
	struct ibv_create_xrc_srq core;
	uint64_t driver[2];
};

struct srq_resp {
	struct ibv_create_srq_resp core;
	uint32_t driver[2];
};

static int create_srq(struct ibv_srq *object, uint32_t domain_handle, struct srq_resp *resp)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 100, .max_sge = 3, .srq_limit = 17}};
	struct srq_cmd cmd = {.driver = {0x444, 0x555}};
	int ret;

	ret = ibv_cmd_create_xrc_srq(&pd, object, &attr, domain_handle, 0xc0, &cmd.core,
				     sizeof(cmd), &resp->core, sizeof(*resp));
	assert_int_equal(attr.attr.max_wr, ret ? 100 : 127);
	assert_int_equal(attr.attr.max_sge, ret ? 3 : 4);
	return ret;
}

static void xrc_srq(void **state)
{
	struct srq_resp resp = {.driver = {0, 0x22}};

	(void)state;
	assert_int_equal(create_srq(&srq, domain.handle, &resp), 0);
	mainline_expect(0, CREATE_XSRQ, 72, 24, U64(8, PTR(&resp)), U64(16, PTR(&srq)), U32(24, 1),
			U32(28, 0x9d), U32(32, 100), U32(36, 3), U32(40, 17),
			U32(48, domain.handle), U32(52, 0xc0), U64(56, 0x444), U64(64, 0x555));
	assert_int_equal(srq.handle, mainline.next_handle);
	assert_int_equal(srq.xrc_srq_num, 0x5151);
	assert_int_equal(resp.driver[0], 0x7777);
	assert_int_equal(resp.driver[1], 0x22);
	mainline_forget();

	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), EBUSY);
	assert_int_equal(errno, EBUSY);
	mainline_silent();
	/* If the kernel refuses to destroy the SRQ, the SRQ keeps the domain. */
	fake.refuse = EBUSY;
	assert_int_equal(ibv_cmd_destroy_srq(&srq), EBUSY);
	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), EBUSY);
	assert_int_equal(ibv_cmd_destroy_srq(&srq), 0);
	mainline_commands(DESTROY_SRQ, DESTROY_SRQ);
	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), 0);
}

static void refused_xrc_srq(void **state)
{
	struct srq_resp resp;

	(void)state;
	srq.handle = 6;
	cmd_check_refusals(create_srq(&srq, domain.handle, &resp));
	assert_int_equal(srq.handle, 6);
	mainline_forget();
	assert_int_equal(create_srq(&srq, domain.handle + 1, &resp), EINVAL);
	mainline_silent();
	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), 0);
}

static int create_send_qp(struct ibv_qp_init_attr *attr)
{
	struct {
		struct ibv_create_qp core;
		uint64_t driver;
	} cmd = {.driver = 0x333};
	struct ibv_create_qp_resp resp;

	return ibv_cmd_create_qp(&pd, &qp, attr, &cmd.core, sizeof(cmd), &resp, sizeof(resp));
}

static void send_qp(void **state)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = &send_cq,
		.recv_cq = &recv_cq,
		.cap = {.max_send_wr = 10,
			.max_recv_wr = 20,
			.max_send_sge = 3,
			.max_recv_sge = 1,
			.max_inline_data = 5},
		.qp_type = IBV_QPT_XRC,
		.sq_sig_all = 1,
		.xrc_domain = &domain,
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr qp_attr;
	struct ibv_query_qp query;

	(void)state;
	mainline.qpn = 0x42;
	assert_int_equal(create_send_qp(&attr), 0);
	mainline_expect(0, CREATE_QP, 72, 32, U64(16, PTR(&qp)), U32(24, 0x9d), U32(28, 0x5c),
			U32(32, 0x4c), U32(40, 10), U32(48, 3), U32(56, 5), U8(60, 1), U8(61, 9),
			U64(64, 0x333));
	assert_int_equal(qp.qp_num, 0x42);
	assert_int_equal(attr.qp_type, IBV_QPT_XRC);
	assert_int_equal(attr.cap.max_send_wr, 63);
	mainline_forget();

	qp.qp_type = IBV_QPT_XRC;
	qp.xrc_domain = &domain;
	assert_int_equal(ibv_cmd_query_qp(&qp, &qp_attr, 0, &init, &query, sizeof(query)), 0);
	assert_int_equal(init.qp_type, IBV_QPT_XRC);
	assert_ptr_equal(init.xrc_domain, &domain);
	mainline_commands(QUERY_QP);

	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), EBUSY);
	mainline_silent();
	qp.events_completed = 3;
	assert_int_equal(ibv_cmd_destroy_qp(&qp), 0);
	mainline_commands(DESTROY_QP);
	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), 0);
}

static void refused_send_qp(void **state)
{
	struct ibv_xrc_domain closed = {.context = &context, .handle = 0x7fff};
	struct ibv_qp_init_attr attr = {
		.send_cq = &send_cq,
		.recv_cq = &recv_cq,
		.qp_type = IBV_QPT_XRC,
		.xrc_domain = &domain,
	};

	(void)state;
	cmd_check_refusals(create_send_qp(&attr));
	mainline_forget();
	attr.srq = &srq;
	assert_int_equal(create_send_qp(&attr), EINVAL);
	attr.srq = NULL;
	attr.xrc_domain = NULL;
	assert_int_equal(create_send_qp(&attr), EINVAL);
	attr.xrc_domain = &closed;
	assert_int_equal(create_send_qp(&attr), EINVAL);
	mainline_silent();
	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), 0);
}

#define DEST IBV_QP_MAX_DEST_RD_ATOMIC
#define RNR  IBV_QP_MIN_RNR_TIMER

/*
 * Attributes of the receiving direction, for a send QP: the library accepts them where an OFED
 * kernel does, and never passes them on.
 */
static void send_qp_attributes(void **state)
{
	static const struct {
		int from, to, mask;
		int ret;
	} cases[] = {
		{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE | IBV_QP_AV | DEST | RNR, 0},
		{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE | IBV_QP_AV | DEST, EINVAL},
		{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE | IBV_QP_AV | RNR, EINVAL},
		{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE | IBV_QP_AV, EINVAL},
		{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT, 0},
		{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT | RNR, EINVAL},
		{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC, 0},
		{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE | RNR, 0},
		{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE | DEST, EINVAL},
		{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS | RNR, 0},
		{IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_STATE, 0},
		{IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_STATE | RNR, EINVAL},
		{IBV_QPS_SQD, IBV_QPS_SQD, IBV_QP_STATE | DEST | RNR, 0},
		{IBV_QPS_SQD, IBV_QPS_SQD, DEST | IBV_QP_RETRY_CNT, 0},
		{IBV_QPS_SQD, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_CUR_STATE | RNR, 0},
		{IBV_QPS_RTS, IBV_QPS_RESET, IBV_QP_STATE, 0},
		{IBV_QPS_RTS, IBV_QPS_ERR, IBV_QP_STATE | DEST, EINVAL},
	};
	struct ibv_qp_attr attr;
	struct ibv_modify_qp cmd;
	unsigned int i;

	(void)state;
	qp.qp_type = IBV_QPT_XRC;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
		memset(&attr, 0, sizeof(attr));
		qp.state = cases[i].from;
		attr.qp_state = cases[i].to;
		attr.cur_qp_state = cases[i].from;
		if (ibv_cmd_modify_qp(&qp, &attr, cases[i].mask, &cmd, sizeof(cmd)) != cases[i].ret)
			fail_msg("case %u: not %d", i, cases[i].ret);
		if (cases[i].ret) {
			mainline_silent();
			continue;
		}
		assert_int_equal(field_get(mainline.bytes[0], 76, 4),
				 cases[i].mask & ~(DEST | RNR));
		mainline_commands(MODIFY_QP);
	}

	/* For other QPs the library passes all of them on. */
	qp.qp_type = IBV_QPT_RC;
	assert_int_equal(ibv_cmd_modify_qp(&qp, &attr, DEST | RNR, &cmd, sizeof(cmd)), 0);
	assert_int_equal(field_get(mainline.bytes[0], 76, 4), DEST | RNR);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, mainline_teardown)
	static const struct CMUnitTest tests[] = {
		TEST(open_and_close),	  TEST(refused_domains), TEST(xrc_srq),
		TEST(refused_xrc_srq),	  TEST(send_qp),	 TEST(refused_send_qp),
		TEST(send_qp_attributes),
	};

	return cmocka_run_group_tests_name("XRC on mainline", tests, cmd_group_setup,
					   cmd_group_teardown);
}
