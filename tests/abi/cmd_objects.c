// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the commands for contexts, protection domains, regions, address handles and
 * multicast groups have their exact bytes, with every reserved byte zero, and their responses reach
 * the caller.
 */
#include "cmd.h"

static void get_context(void **state)
{
	struct {
		struct ibv_get_context core;
		uint64_t driver;
	} cmd = {.driver = 0x1122334455667788};
	struct {
		struct ibv_get_context_resp core;
		uint64_t driver;
	} resp = {.driver = 0};

	(void)state;
	memset(&cmd.core, 0xee, sizeof(cmd.core));
	fake_answer(16, U32(0, 77), U32(4, 3), U64(8, 0xfeedf00d12345678));
	assert_int_equal(
		ibv_cmd_get_context(&context, &cmd.core, sizeof(cmd), &resp.core, sizeof(resp)), 0);
	fake_expect(0, 24, 16, U64(8, PTR(&resp)), U64(16, 0x1122334455667788));
	assert_int_equal(context.async_fd, 77);
	assert_int_equal(context.num_comp_vectors, 3);
	assert_true(resp.driver == 0xfeedf00d12345678);

	context.async_fd = -5;
	context.num_comp_vectors = -6;
	cmd_check_refusals(
		ibv_cmd_get_context(&context, &cmd.core, sizeof(cmd), &resp.core, sizeof(resp)));
	assert_int_equal(context.async_fd, -5);
	assert_int_equal(context.num_comp_vectors, -6);
}

/* The fields that a response and struct ibv_device_attr have under the same name. */
/* clang-format off */
#define DEVICE_FIELDS(X)                                                                               \
	X(node_guid) X(sys_image_guid) X(max_mr_size) X(page_size_cap) X(vendor_id) X(vendor_part_id)  \
	X(hw_ver) X(max_qp) X(max_qp_wr) X(device_cap_flags) X(max_sge) X(max_sge_rd) X(max_cq)        \
	X(max_cqe) X(max_mr) X(max_pd) X(max_qp_rd_atom) X(max_ee_rd_atom) X(max_res_rd_atom)          \
	X(max_qp_init_rd_atom) X(max_ee_init_rd_atom) X(atomic_cap) X(max_ee) X(max_rdd) X(max_mw)     \
	X(max_raw_ipv6_qp) X(max_raw_ethy_qp) X(max_mcast_grp) X(max_mcast_qp_attach)                  \
	X(max_total_mcast_qp_attach) X(max_ah) X(max_fmr) X(max_map_per_fmr) X(max_srq)                \
	X(max_srq_wr) X(max_srq_sge) X(max_pkeys) X(local_ca_ack_delay) X(phys_port_cnt)
/* clang-format on */

static void query_device(void **state)
{
	struct {
		struct ibv_query_device core;
		uint64_t driver;
	} cmd = {.driver = 42};
	struct ibv_query_device_resp answer;
	struct ibv_device_attr attr;
	unsigned char *byte = (unsigned char *)&answer;
	uint64_t fw = 0;
	size_t i;

	(void)state;
	memset(&cmd.core, 0xee, sizeof(cmd.core));
	for (i = 0; i < sizeof(answer); ++i)
		byte[i] = 1 + i % 120;
	memcpy(fake.response, &answer, sizeof(answer));
	fake.response_len = sizeof(answer);
	memset(&attr, 0xee, sizeof(attr));

	assert_int_equal(ibv_cmd_query_device(&context, &attr, &fw, &cmd.core, sizeof(cmd)), 0);
	fake_expect(1, 24, 176, U64(16, 42));
	assert_true(fw == answer.fw_ver);
	for (i = 0; i < sizeof(attr.fw_ver); ++i)
		assert_int_equal(attr.fw_ver[i], 0);
#define X(name) assert_true((uint64_t)attr.name == (uint64_t)answer.name);
	DEVICE_FIELDS(X)
#undef X

	fw = 5;
	attr.max_qp = 99;
	cmd_check_refusals(ibv_cmd_query_device(&context, &attr, &fw, &cmd.core, sizeof(cmd)));
	assert_int_equal(attr.max_qp, 99);
	assert_true(fw == 5);
}

/* clang-format off */
#define PORT_FIELDS(X)                                                                                 \
	X(state) X(max_mtu) X(active_mtu) X(gid_tbl_len) X(port_cap_flags) X(max_msg_sz)               \
	X(bad_pkey_cntr) X(qkey_viol_cntr) X(pkey_tbl_len) X(lid) X(sm_lid) X(lmc) X(max_vl_num)       \
	X(sm_sl) X(subnet_timeout) X(init_type_reply) X(active_width) X(active_speed) X(phys_state)    \
	X(link_layer)
/* clang-format on */

static void query_port(void **state)
{
	struct {
		struct ibv_query_port core;
		uint64_t driver;
	} cmd = {.driver = 43};
	struct ibv_query_port_resp answer;
	struct ibv_port_attr attr;
	unsigned char *byte = (unsigned char *)&answer;
	size_t i;

	(void)state;
	memset(&cmd.core, 0xee, sizeof(cmd.core));
	for (i = 0; i < sizeof(answer); ++i)
		byte[i] = 1 + i;
	memcpy(fake.response, &answer, sizeof(answer));
	fake.response_len = sizeof(answer);

	assert_int_equal(ibv_cmd_query_port(&context, 2, &attr, &cmd.core, sizeof(cmd)), 0);
	fake_expect(2, 32, 40, U8(16, 2), U64(24, 43));
#define X(name) assert_true((uint64_t)attr.name == (uint64_t)answer.name);
	PORT_FIELDS(X)
#undef X

	attr.lid = 0x7777;
	cmd_check_refusals(ibv_cmd_query_port(&context, 2, &attr, &cmd.core, sizeof(cmd)));
	assert_int_equal(attr.lid, 0x7777);
}

static void protection_domain(void **state)
{
	struct {
		struct ibv_alloc_pd core;
		uint64_t driver;
	} cmd = {.driver = 0x77};
	struct {
		struct ibv_alloc_pd_resp core;
		uint32_t driver[2];
	} resp = {.driver = {0}};
	struct ibv_pd new_pd = {.context = &context, .handle = 1};

	(void)state;
	memset(&cmd.core, 0xee, sizeof(cmd.core));
	fake_answer(12, U32(0, 0xabcd), U32(4, 0x1234), U32(8, 0x5678));
	assert_int_equal(ibv_cmd_alloc_pd(&context, &new_pd, &cmd.core, sizeof(cmd), &resp.core,
					  sizeof(resp)),
			 0);
	fake_expect(3, 24, 12, U64(8, PTR(&resp)), U64(16, 0x77));
	assert_int_equal(new_pd.handle, 0xabcd);
	assert_int_equal(resp.driver[0], 0x1234);
	assert_int_equal(resp.driver[1], 0x5678);

	new_pd.handle = 0x66;
	cmd_check_refusals(ibv_cmd_alloc_pd(&context, &new_pd, &cmd.core, sizeof(cmd), &resp.core,
					    sizeof(resp)));
	assert_int_equal(new_pd.handle, 0x66);

	assert_int_equal(ibv_cmd_dealloc_pd(&pd), 0);
	fake_expect(4, 12, 0, U32(8, 0x9d));
	cmd_check_refusals(ibv_cmd_dealloc_pd(&pd));
}

static void memory_region(void **state)
{
	struct {
		struct ibv_reg_mr core;
		uint64_t driver;
	} cmd = {.driver = 44};
	struct {
		struct ibv_reg_mr_resp core;
		uint32_t driver;
	} resp = {.driver = 0};
	struct ibv_mr mr = {.context = &context, .pd = &pd, .handle = 1, .lkey = 2, .rkey = 3};
	/* More than 32 bits, where pointers have more. */
	void *addr = (void *)(uintptr_t)0x7f0012345678;
	const size_t length = (size_t)0x100200300;

	(void)state;
	memset(&cmd.core, 0xee, sizeof(cmd.core));
	fake_answer(16, U32(0, 0x3333), U32(4, 0x4444), U32(8, 0x5555), U32(12, 0x6666));
	assert_int_equal(ibv_cmd_reg_mr(&pd, addr, length, 0x99000000aa, 0x1f, &mr, &cmd.core,
					sizeof(cmd), &resp.core, sizeof(resp)),
			 0);
	fake_expect(9, 56, 16, U64(8, PTR(&resp)), U64(16, PTR(addr)), U64(24, length),
		    U64(32, 0x99000000aa), U32(40, 0x9d), U32(44, 0x1f), U64(48, 44));
	assert_int_equal(mr.handle, 0x3333);
	assert_int_equal(mr.lkey, 0x4444);
	assert_int_equal(mr.rkey, 0x5555);
	assert_int_equal(resp.driver, 0x6666);

	mr.handle = 9;
	cmd_check_refusals(ibv_cmd_reg_mr(&pd, addr, 4096, 0, 1, &mr, &cmd.core, sizeof(cmd),
					  &resp.core, sizeof(resp)));
	assert_int_equal(mr.handle, 9);

	assert_int_equal(ibv_cmd_dereg_mr(&mr), 0);
	fake_expect(13, 12, 0, U32(8, 9));
	cmd_check_refusals(ibv_cmd_dereg_mr(&mr));
}

static void address_handle(void **state)
{
	struct ibv_ah_attr attr = {
		.grh = {.flow_label = 0x12345,
			.sgid_index = 0x11,
			.hop_limit = 0x22,
			.traffic_class = 0x33},
		.dlid = 0x4455,
		.sl = 0x6,
		.src_path_bits = 0x77,
		.static_rate = 0x8,
		.is_global = 1,
		.port_num = 2,
	};
	struct ibv_ah ah = {.context = &context, .pd = &pd};
	int i;

	(void)state;
	for (i = 0; i < 16; ++i)
		attr.grh.dgid.raw[i] = 0xa0 + i;

	fake_answer(4, U32(0, 0xa7));
	assert_int_equal(ibv_cmd_create_ah(&pd, &ah, &attr), 0);
	fake_expect(5, 64, 4, U64(16, PTR(&ah)), U32(24, 0x9d), U64(32, 0xa7a6a5a4a3a2a1a0),
		    U64(40, 0xafaeadacabaaa9a8), U32(48, 0x12345), U8(52, 0x11), U8(53, 0x22),
		    U8(54, 0x33), U16(56, 0x4455), U8(58, 6), U8(59, 0x77), U8(60, 8), U8(61, 1),
		    U8(62, 2));
	assert_int_equal(ah.handle, 0xa7);

	ah.handle = 0x31;
	cmd_check_refusals(ibv_cmd_create_ah(&pd, &ah, &attr));
	assert_int_equal(ah.handle, 0x31);

	assert_int_equal(ibv_cmd_destroy_ah(&ah), 0);
	fake_expect(8, 12, 0, U32(8, 0x31));
	cmd_check_refusals(ibv_cmd_destroy_ah(&ah));
}

static void multicast(void **state)
{
	union ibv_gid gid;
	int i;

	(void)state;
	for (i = 0; i < 16; ++i)
		gid.raw[i] = 0xf0 - i;

	assert_int_equal(ibv_cmd_attach_mcast(&qp, &gid, 0xc001), 0);
	fake_expect(30, 32, 0, U64(8, 0xe9eaebecedeeeff0), U64(16, 0xe1e2e3e4e5e6e7e8),
		    U32(24, 0x99), U16(28, 0xc001));
	cmd_check_refusals(ibv_cmd_attach_mcast(&qp, &gid, 0xc001));

	assert_int_equal(ibv_cmd_detach_mcast(&qp, &gid, 0xc002), 0);
	fake_expect(31, 32, 0, U64(8, 0xe9eaebecedeeeff0), U64(16, 0xe1e2e3e4e5e6e7e8),
		    U32(24, 0x99), U16(28, 0xc002));
	cmd_check_refusals(ibv_cmd_detach_mcast(&qp, &gid, 0xc002));
}

static void comp_channel(void **state)
{
	struct ibv_comp_channel *channel;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	fake_answer(4, U32(0, fd));
	channel = ibv_create_comp_channel(&context);
	assert_non_null(channel);
	fake_expect(17, 16, 4, NOTHING);
	assert_ptr_equal(channel->context, &context);
	assert_int_equal(channel->fd, fd);
	assert_int_equal(channel->refcnt, 0);

	channel->refcnt = 1;
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	channel->refcnt = 0;
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1);

	fake.refuse = EMFILE;
	assert_null(ibv_create_comp_channel(&context));
	assert_int_equal(errno, EMFILE);
	fake.shorten = 4;
	assert_null(ibv_create_comp_channel(&context));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, cmd_setup)
	static const struct CMUnitTest tests[] = {
		TEST(get_context),	 TEST(query_device),  TEST(query_port),
		TEST(protection_domain), TEST(memory_region), TEST(address_handle),
		TEST(multicast),	 TEST(comp_channel),
	};

	return cmocka_run_group_tests_name("commands of objects", tests, cmd_group_setup,
					   cmd_group_teardown);
}
