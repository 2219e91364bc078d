// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the differences between the kernel ABI versions 1 to 6: command numbers, lengths of
 * commands and responses, where the provider finds its part of a response, what the calls return
 * and wait for, and the single channel of old versions.
 */
#include "cmd.h"

static uint32_t comp_fd;

static void get_context_v2(void)
{
	uint32_t fd = comp_fd = fcntl(fake.fd, F_DUPFD_CLOEXEC, 0);

	/* The kernel stores the descriptor for completion events. */
	memcpy((void *)(uintptr_t)field_get(fake.command, 16, 8), &fd, sizeof(fd));
	fake.hook = NULL;
}

/*
 * Opens the context as a provider does at ABI 1 and 2. Returns the descriptor of the completion
 * channel.
 */
static void open_v2(int abi)
{
	struct {
		struct ibv_get_context core;
		uint64_t driver;
	} cmd = {.driver = 0x55};
	struct {
		struct ibv_get_context_resp core;
		uint64_t driver;
	} resp = {.driver = 0};

	cmd_set_abi(abi);
	memset(&cmd.core, 0xee, sizeof(cmd.core));
	fake.hook = get_context_v2;
	fake_answer(16, U32(0, 77), U32(4, 9), U64(8, 0x66));
	assert_int_equal(
		ibv_cmd_get_context(&context, &cmd.core, sizeof(cmd), &resp.core, sizeof(resp)), 0);
	fake_expect(1, 32, 16, U64(8, PTR(&resp)), U64(16, field_get(fake.command, 16, 8)),
		    U64(24, 0x55));
	assert_int_equal(context.async_fd, 77);
	assert_int_equal(context.num_comp_vectors, 1);
	assert_true(resp.driver == 0x66);
	assert_non_null(context.abi_compat);
}

static void one_channel(void **state)
{
	struct ibv_comp_channel *channel;
	struct ibv_create_cq_resp resp;
	struct {
		struct ibv_create_cq core;
		uint64_t driver;
	} cmd = {.driver = 0x1234};
	int abi;

	(void)state;
	memset(&cmd.core, 0xee, sizeof(cmd.core));
	for (abi = 1; abi <= 2; ++abi) {
		open_v2(abi);

		fake.commands = 0;
		channel = ibv_create_comp_channel(&context);
		assert_non_null(channel);
		assert_int_equal(channel->fd, comp_fd);
		assert_int_equal(fake.commands, 0);
		assert_null(ibv_create_comp_channel(&context));

		fake_answer(8, U32(0, 0xc9), U32(4, 63));
		assert_int_equal(ibv_cmd_create_cq(&context, 50, channel, 0, &recv_cq, &cmd.core,
						   sizeof(cmd), &resp, sizeof(resp)),
				 0);
		fake_expect(20, 40, 8, U64(8, PTR(&resp)), U64(16, PTR(&recv_cq)), U32(24, 50),
			    U64(32, 0x1234));
		assert_int_equal(recv_cq.handle, 0xc9);
		assert_int_equal(recv_cq.cqe, 63);

		/* A channel that was given back can be had again. */
		assert_int_equal(ibv_destroy_comp_channel(channel), 0);
		channel = ibv_create_comp_channel(&context);
		assert_non_null(channel);
		assert_int_equal(ibv_destroy_comp_channel(channel), 0);
		close(comp_fd);
		free(context.abi_compat);
		context.abi_compat = NULL;
	}
}

static void numbers_v2(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_ah_attr ah_attr = {.dlid = 1};
	struct ibv_mr mr = {.context = &context, .pd = &pd, .handle = 1};
	struct ibv_ah ah = {.context = &context, .pd = &pd, .handle = 2};
	struct ibv_qp_init_attr init = {
		.send_cq = &send_cq, .recv_cq = &recv_cq, .qp_type = IBV_QPT_RC};
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv;
	struct ibv_send_wr send = {.wr_id = 1}, *bad_send;
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 1}};
	struct ibv_srq_attr srq_attr = {.max_wr = 1};
	struct ibv_device_attr device_attr;
	struct ibv_port_attr port_attr;
	struct ibv_query_device query_device;
	struct ibv_query_port query_port;
	struct ibv_alloc_pd alloc_pd;
	struct ibv_alloc_pd_resp alloc_pd_resp;
	struct ibv_reg_mr reg_mr;
	struct ibv_reg_mr_resp reg_mr_resp;
	struct ibv_resize_cq resize_cq;
	struct ibv_resize_cq_resp resize_cq_resp;
	struct ibv_create_qp create_qp;
	struct ibv_create_qp_resp create_qp_resp;
	struct ibv_query_qp query_qp;
	struct ibv_modify_qp modify_qp;
	struct ibv_create_srq create_srq;
	struct ibv_create_srq_resp create_srq_resp;
	struct ibv_modify_srq modify_srq;
	struct ibv_query_srq query_srq;
	union ibv_gid gid = {.raw = {0xff}};
	struct ibv_wc wc;
	uint64_t fw;

#define NUMBER(call, number)                                                                       \
	do {                                                                                       \
		call;                                                                              \
		assert_int_equal(field_get(fake.command, 0, 4), number);                           \
	} while (0)

	(void)state;
	cmd_set_abi(2);
	NUMBER(ibv_cmd_query_device(&context, &device_attr, &fw, &query_device,
				    sizeof(query_device)),
	       2);
	NUMBER(ibv_cmd_query_port(&context, 1, &port_attr, &query_port, sizeof(query_port)), 3);
	NUMBER(ibv_cmd_alloc_pd(&context, &pd, &alloc_pd, sizeof(alloc_pd), &alloc_pd_resp,
				sizeof(alloc_pd_resp)),
	       6);
	NUMBER(ibv_cmd_dealloc_pd(&pd), 7);
	NUMBER(ibv_cmd_create_ah(&pd, &ah, &ah_attr), 8);
	NUMBER(ibv_cmd_destroy_ah(&ah), 11);
	NUMBER(ibv_cmd_reg_mr(&pd, &wc, 1, 0, 0, &mr, &reg_mr, sizeof(reg_mr), &reg_mr_resp,
			      sizeof(reg_mr_resp)),
	       12);
	NUMBER(ibv_cmd_dereg_mr(&mr), 16);
	NUMBER(ibv_cmd_resize_cq(&send_cq, 1, &resize_cq, sizeof(resize_cq), &resize_cq_resp,
				 sizeof(resize_cq_resp)),
	       21);
	fake_answer(8, U32(0, 0));
	NUMBER(ibv_cmd_destroy_cq(&send_cq), 22);
	NUMBER(ibv_cmd_poll_cq(&recv_cq, 1, &wc), 23);
	NUMBER(ibv_cmd_req_notify_cq(&recv_cq, 0), 25);
	NUMBER(ibv_cmd_create_qp(&pd, &qp, &init, &create_qp, sizeof(create_qp), &create_qp_resp,
				 sizeof(create_qp_resp)),
	       26);
	NUMBER(ibv_cmd_query_qp(&qp, &attr, 1, &init, &query_qp, sizeof(query_qp)), 27);
	NUMBER(ibv_cmd_modify_qp(&qp, &attr, 1, &modify_qp, sizeof(modify_qp)), 28);
	NUMBER(ibv_cmd_post_send(&qp, &send, &bad_send), 30);
	NUMBER(ibv_cmd_post_recv(&qp, &recv, &bad_recv), 31);
	NUMBER(ibv_cmd_attach_mcast(&qp, &gid, 1), 32);
	NUMBER(ibv_cmd_detach_mcast(&qp, &gid, 1), 33);
	NUMBER(ibv_cmd_destroy_qp(&qp), 29);
	NUMBER(ibv_cmd_create_srq(&pd, &srq, &srq_init, &create_srq, sizeof(create_srq),
				  &create_srq_resp, sizeof(create_srq_resp)),
	       34);
	NUMBER(ibv_cmd_modify_srq(&srq, &srq_attr, 1, &modify_srq, sizeof(modify_srq)), 35);
	NUMBER(ibv_cmd_query_srq(&srq, &srq_attr, &query_srq, sizeof(query_srq)), 36);
	NUMBER(ibv_cmd_post_srq_recv(&srq, &recv, &bad_recv), 38);
	NUMBER(ibv_cmd_destroy_srq(&srq), 37);
}

/*
 * ABI 1 returns no counts, so the calls wait for nothing, even though an event is not acknowledged.
 */
static void destroys_v1(void **state)
{
	(void)state;
	cmd_set_abi(1);
	send_cq.comp_events_completed = 5;
	assert_int_equal(ibv_cmd_destroy_cq(&send_cq), 0);
	fake_expect(22, 12, 0, U32(8, 0x5c));
	qp.events_completed = 5;
	assert_int_equal(ibv_cmd_destroy_qp(&qp), 0);
	fake_expect(29, 12, 0, U32(8, 0x99));
	srq.events_completed = 5;
	assert_int_equal(ibv_cmd_destroy_srq(&srq), 0);
	fake_expect(37, 12, 0, U32(8, 0x54));
}

/*
 * The core of the response is shorter here, and the provider's part follows it. The provider still
 * finds its part where it is behind a whole core.
 */
static void create_qp_short(void **state)
{
	static const struct {
		int abi;
		size_t core;
	} kernels[] = {{1, 8}, {2, 8}, {3, 8}, {4, 28}, {5, 32}, {6, 32}};
	struct ibv_create_qp cmd;
	struct {
		struct ibv_create_qp_resp core;
		uint32_t driver[4];
	} resp;
	size_t i;

	(void)state;
	memset(&cmd, 0xee, sizeof(cmd));
	for (i = 0; i < sizeof(kernels) / sizeof(kernels[0]); ++i) {
		struct ibv_qp_init_attr attr = {
			.send_cq = &send_cq,
			.recv_cq = &recv_cq,
			.cap = {10, 20, 30, 40, 50},
			.qp_type = IBV_QPT_RC,
		};
		size_t core = kernels[i].core;

		cmd_set_abi(kernels[i].abi);
		memset(&resp, 0, sizeof(resp));
		fake_answer(48, U32(8, 11), U32(12, 22), U32(16, 33), U32(20, 44), U32(24, 55),
			    U32(0, 0x9b), U32(4, 0x123), U32(core, 0xa1), U32(core + 4, 0xa2),
			    U32(core + 8, 0xa3), U32(core + 12, 0xa4));
		assert_int_equal(ibv_cmd_create_qp(&pd, &qp, &attr, &cmd, sizeof(cmd), &resp.core,
						   sizeof(resp)),
				 0);
		assert_int_equal(field_get(fake.command, 6, 2) * 4, 48);
		assert_int_equal(qp.handle, 0x9b);
		assert_int_equal(qp.qp_num, 0x123);
		assert_int_equal(resp.driver[0], 0xa1);
		assert_int_equal(resp.driver[1], 0xa2);
		assert_int_equal(resp.driver[2], 0xa3);
		assert_int_equal(resp.driver[3], 0xa4);
		assert_int_equal(attr.cap.max_send_wr, core > 8 ? 11 : 10);
		assert_int_equal(attr.cap.max_inline_data, core > 8 ? 55 : 50);
	}
}

static void create_srq_short(void **state)
{
	struct ibv_create_srq cmd;
	struct {
		struct ibv_create_srq_resp core;
		uint32_t driver[2];
	} resp;
	int abi;

	(void)state;
	memset(&cmd, 0xee, sizeof(cmd));
	for (abi = 1; abi <= 6; ++abi) {
		struct ibv_srq_init_attr attr = {.attr = {.max_wr = 100, .max_sge = 3}};
		size_t core = abi <= 5 ? 4 : 16;

		cmd_set_abi(abi);
		memset(&resp, 0, sizeof(resp));
		fake_answer(24, U32(4, 127), U32(8, 4), U32(0, 0x5b), U32(core, 0xa1),
			    U32(core + 4, 0xa2));
		assert_int_equal(ibv_cmd_create_srq(&pd, &srq, &attr, &cmd, sizeof(cmd), &resp.core,
						    sizeof(resp)),
				 0);
		assert_int_equal(field_get(fake.command, 6, 2) * 4, 24);
		assert_int_equal(srq.handle, 0x5b);
		assert_int_equal(resp.driver[0], 0xa1);
		assert_int_equal(resp.driver[1], 0xa2);
		assert_int_equal(attr.attr.max_wr, abi <= 5 ? 100 : 127);
		assert_int_equal(attr.attr.max_sge, abi <= 5 ? 3 : 4);
	}
}

static void modify_srq_v3(void **state)
{
	struct {
		struct ibv_modify_srq core;
		uint64_t driver;
	} cmd;
	struct ibv_srq_attr attr = {.max_wr = 64, .max_sge = 5, .srq_limit = 8};

	(void)state;
	memset(&cmd.core, 0xee, sizeof(cmd.core));
	cmd_set_abi(3);
	cmd.driver = 0x666;
	assert_int_equal(ibv_cmd_modify_srq(&srq, &attr, 3, &cmd.core, sizeof(cmd)), 0);
	fake_expect(33, 40, 0, U32(8, 0x54), U32(12, 3), U32(16, 64), U32(20, 5), U32(24, 8),
		    U64(32, 0x666));

	cmd_set_abi(4);
	assert_int_equal(ibv_cmd_modify_srq(&srq, &attr, 3, &cmd.core, sizeof(cmd)), 0);
	fake_expect(33, 32, 0, U32(8, 0x54), U32(12, 3), U32(16, 64), U32(20, 8), U64(24, 0x666));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, cmd_setup)
	static const struct CMUnitTest tests[] = {
		TEST(one_channel),     TEST(numbers_v2),       TEST(destroys_v1),
		TEST(create_qp_short), TEST(create_srq_short), TEST(modify_srq_v3),
	};

	return cmocka_run_group_tests_name("kernel ABI versions", tests, cmd_group_setup,
					   cmd_group_teardown);
}
