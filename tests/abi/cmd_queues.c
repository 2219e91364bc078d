// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the commands for CQs, SRQs and QPs have their exact bytes, with every reserved byte
 * zero, and their responses reach the caller. The library does not touch what the structures of an
 * application built with headers before XRC do not have.
 */
#include <sys/mman.h>

#include "cmd.h"

static void create_cq(void **state)
{
	struct {
		struct ibv_create_cq core;
		uint64_t driver[2];
	} cmd = {.driver = {0x111, 0x222}};
	struct {
		struct ibv_create_cq_resp core;
		uint64_t driver;
	} resp = {.driver = 0};
	struct ibv_comp_channel channel = {.context = &context, .fd = 0x31};
	struct ibv_cq *cq = &recv_cq;

	(void)state;
	memset(&cmd.core, 0xee, sizeof(cmd.core));
	fake_answer(16, U32(0, 0xc9), U32(4, 255), U64(8, 0xd1));
	assert_int_equal(ibv_cmd_create_cq(&context, 200, &channel, 2, cq, &cmd.core, sizeof(cmd),
					   &resp.core, sizeof(resp)),
			 0);
	fake_expect(18, 56, 16, U64(8, PTR(&resp)), U64(16, PTR(cq)), U32(24, 200), U32(28, 2),
		    U32(32, 0x31), U64(40, 0x111), U64(48, 0x222));
	assert_int_equal(cq->handle, 0xc9);
	assert_int_equal(cq->cqe, 255);
	assert_true(resp.driver == 0xd1);

	assert_int_equal(ibv_cmd_create_cq(&context, 1, NULL, 0, cq, &cmd.core, sizeof(cmd),
					   &resp.core, sizeof(resp)),
			 0);
	fake_expect(18, 56, 16, U64(16, PTR(cq)), U32(24, 1), U32(32, 0xffffffff), U64(40, 0x111),
		    U64(48, 0x222));

	cq->handle = 7;
	cq->cqe = 8;
	cmd_check_refusals(ibv_cmd_create_cq(&context, 200, NULL, 0, cq, &cmd.core, sizeof(cmd),
					     &resp.core, sizeof(resp)));
	assert_int_equal(cq->handle, 7);
	assert_int_equal(cq->cqe, 8);
}

static void poll_cq(void **state)
{
	struct ibv_wc wc[3];

	(void)state;
	fake_answer(8 + 2 * 48, U32(0, 2), U64(8, 0x1111222233334444), U32(16, 5), U32(20, 0x81),
		    U32(24, 0x77), U32(28, 4096), U32(32, 0xaabbccdd), U32(36, 0x123),
		    U32(40, 0x456), U32(44, 3), U16(48, 0x55), U16(50, 0x66), U8(52, 7), U8(53, 9),
		    U64(56, 2));
	memset(wc, 0, sizeof(wc));
	assert_int_equal(ibv_cmd_poll_cq(&send_cq, 3, wc), 2);
	fake_expect(21, 24, 8 + 3 * 48, U32(16, 0x5c), U32(20, 3));
	assert_true(wc[0].wr_id == 0x1111222233334444);
	assert_int_equal(wc[0].status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc[0].vendor_err, 0x77);
	assert_int_equal(wc[0].byte_len, 4096);
	assert_int_equal(wc[0].imm_data, 0xaabbccdd);
	assert_int_equal(wc[0].qp_num, 0x123);
	assert_int_equal(wc[0].src_qp, 0x456);
	assert_int_equal(wc[0].wc_flags, 3);
	assert_int_equal(wc[0].pkey_index, 0x55);
	assert_int_equal(wc[0].slid, 0x66);
	assert_int_equal(wc[0].sl, 7);
	assert_int_equal(wc[0].dlid_path_bits, 9);
	assert_true(wc[1].wr_id == 2);

	fake.refuse = EINVAL;
	assert_true(ibv_cmd_poll_cq(&send_cq, 3, wc) < 0);
}

static void req_notify_cq(void **state)
{
	(void)state;
	assert_int_equal(ibv_cmd_req_notify_cq(&send_cq, 1), 0);
	fake_expect(23, 16, 0, U32(8, 0x5c), U32(12, 1));
	assert_int_equal(ibv_cmd_req_notify_cq(&send_cq, 0), 0);
	fake_expect(23, 16, 0, U32(8, 0x5c));
	cmd_check_refusals(ibv_cmd_req_notify_cq(&send_cq, 0));
}

static void resize_cq(void **state)
{
	struct {
		struct ibv_resize_cq core;
		uint64_t driver;
	} cmd = {.driver = 0x333};
	struct ibv_resize_cq_resp resp;

	(void)state;
	memset(&cmd.core, 0xee, sizeof(cmd.core));
	/* The kernel returns the first four bytes only. */
	fake_answer(4, U32(0, 511));
	send_cq.cqe = 1;
	assert_int_equal(
		ibv_cmd_resize_cq(&send_cq, 500, &cmd.core, sizeof(cmd), &resp, sizeof(resp)), 0);
	fake_expect(19, 32, 8, U64(8, PTR(&resp)), U32(16, 0x5c), U32(20, 500), U64(24, 0x333));
	assert_int_equal(send_cq.cqe, 511);

	send_cq.cqe = 1;
	cmd_check_refusals(
		ibv_cmd_resize_cq(&send_cq, 500, &cmd.core, sizeof(cmd), &resp, sizeof(resp)));
	assert_int_equal(send_cq.cqe, 1);
}

/* All events reported are acknowledged, so no call waits. */
static void destroys(void **state)
{
	(void)state;
	fake_answer(8, U32(0, 3), U32(4, 0xfffffffe));
	send_cq.comp_events_completed = 3;
	send_cq.async_events_completed = 0xfffffffe;
	assert_int_equal(ibv_cmd_destroy_cq(&send_cq), 0);
	fake_expect(20, 24, 8, U32(16, 0x5c));
	cmd_check_refusals(ibv_cmd_destroy_cq(&send_cq));

	fake_answer(4, U32(0, 2));
	srq.events_completed = 2;
	assert_int_equal(ibv_cmd_destroy_srq(&srq), 0);
	fake_expect(35, 24, 4, U32(16, 0x54));
	cmd_check_refusals(ibv_cmd_destroy_srq(&srq));

	qp.events_completed = 2;
	assert_int_equal(ibv_cmd_destroy_qp(&qp), 0);
	fake_expect(27, 24, 4, U32(16, 0x99));
	cmd_check_refusals(ibv_cmd_destroy_qp(&qp));
}

static void create_srq(void **state)
{
	struct {
		struct ibv_create_srq core;
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
	assert_int_equal(ibv_cmd_create_srq(&pd, &srq, &attr, &cmd.core, sizeof(cmd), &resp.core,
					    sizeof(resp)),
			 0);
	fake_expect(32, 56, 24, U64(8, PTR(&resp)), U64(16, PTR(&srq)), U32(24, 0x9d), U32(28, 100),
		    U32(32, 3), U32(36, 17), U64(40, 0x444), U64(48, 0x555));
	assert_int_equal(srq.handle, 0x5a);
	assert_int_equal(attr.attr.max_wr, 127);
	assert_int_equal(attr.attr.max_sge, 4);
	assert_true(resp.driver == 0x77);

	srq.handle = 6;
	attr.attr.max_wr = 100;
	cmd_check_refusals(ibv_cmd_create_srq(&pd, &srq, &attr, &cmd.core, sizeof(cmd), &resp.core,
					      sizeof(resp)));
	assert_int_equal(srq.handle, 6);
	assert_int_equal(attr.attr.max_wr, 100);
}

static void modify_and_query_srq(void **state)
{
	struct {
		struct ibv_modify_srq core;
		uint64_t driver;
	} modify = {.driver = 0x666};
	struct {
		struct ibv_query_srq core;
		uint64_t driver;
	} query = {.driver = 0x777};
	struct ibv_srq_attr attr = {.max_wr = 64, .max_sge = 5, .srq_limit = 8};

	(void)state;
	memset(&modify.core, 0xee, sizeof(modify.core));
	memset(&query.core, 0xee, sizeof(query.core));
	assert_int_equal(ibv_cmd_modify_srq(&srq, &attr, 3, &modify.core, sizeof(modify)), 0);
	fake_expect(33, 32, 0, U32(8, 0x54), U32(12, 3), U32(16, 64), U32(20, 8), U64(24, 0x666));
	cmd_check_refusals(ibv_cmd_modify_srq(&srq, &attr, 3, &modify.core, sizeof(modify)));

	fake_answer(16, U32(0, 1000), U32(4, 2), U32(8, 30));
	assert_int_equal(ibv_cmd_query_srq(&srq, &attr, &query.core, sizeof(query)), 0);
	fake_expect(34, 32, 16, U32(16, 0x54), U64(24, 0x777));
	assert_int_equal(attr.max_wr, 1000);
	assert_int_equal(attr.max_sge, 2);
	assert_int_equal(attr.srq_limit, 30);

	attr.max_wr = 3;
	cmd_check_refusals(ibv_cmd_query_srq(&srq, &attr, &query.core, sizeof(query)));
	assert_int_equal(attr.max_wr, 3);
}

/*
 * A structure of the size before XRC, at the end of a page, with nothing mapped behind it: code
 * that touches more dies.
 */
static struct ibv_qp_init_attr *old_init_attr(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED);
	assert_int_equal(munmap(pages + page, page), 0);
	return (void *)(pages + page - offsetof(struct ibv_qp_init_attr, xrc_domain));
}

static void free_init_attr(struct ibv_qp_init_attr *attr)
{
	size_t page = sysconf(_SC_PAGESIZE);

	munmap((void *)((uintptr_t)attr & ~(page - 1)), page);
}

static void create_qp(void **state)
{
	struct {
		struct ibv_create_qp core;
		uint64_t driver[3];
	} cmd = {.driver = {1, 2, 3}};
	struct {
		struct ibv_create_qp_resp core;
		uint64_t driver;
	} resp = {.driver = 0};
	struct ibv_qp_init_attr *attr = old_init_attr();

	(void)state;
	memset(&cmd.core, 0xee, sizeof(cmd.core));
	attr->send_cq = &send_cq;
	attr->recv_cq = &recv_cq;
	attr->srq = &srq;
	attr->cap.max_send_wr = 10;
	attr->cap.max_recv_wr = 20;
	attr->cap.max_send_sge = 30;
	attr->cap.max_recv_sge = 40;
	attr->cap.max_inline_data = 50;
	attr->qp_type = IBV_QPT_UC;
	attr->sq_sig_all = 1;

	fake_answer(40, U32(0, 0x9a), U32(4, 0x123456), U32(8, 11), U32(12, 22), U32(16, 33),
		    U32(20, 44), U32(24, 55), U64(32, 0xd0));
	assert_int_equal(
		ibv_cmd_create_qp(&pd, &qp, attr, &cmd.core, sizeof(cmd), &resp.core, sizeof(resp)),
		0);
	fake_expect(24, 88, 40, U64(8, PTR(&resp)), U64(16, PTR(&qp)), U32(24, 0x9d), U32(28, 0x5c),
		    U32(32, 0x4c), U32(36, 0x54), U32(40, 10), U32(44, 20), U32(48, 30),
		    U32(52, 40), U32(56, 50), U8(60, 1), U8(61, 3), U8(62, 1), U64(64, 1),
		    U64(72, 2), U64(80, 3));
	assert_int_equal(qp.handle, 0x9a);
	assert_int_equal(qp.qp_num, 0x123456);
	assert_int_equal(attr->cap.max_send_wr, 11);
	assert_int_equal(attr->cap.max_recv_wr, 22);
	assert_int_equal(attr->cap.max_send_sge, 33);
	assert_int_equal(attr->cap.max_recv_sge, 44);
	assert_int_equal(attr->cap.max_inline_data, 55);
	assert_true(resp.driver == 0xd0);

	attr->srq = NULL;
	attr->sq_sig_all = 0;
	assert_int_equal(
		ibv_cmd_create_qp(&pd, &qp, attr, &cmd.core, sizeof(cmd), &resp.core, sizeof(resp)),
		0);
	fake_expect(24, 88, 40, U64(16, PTR(&qp)), U32(24, 0x9d), U32(28, 0x5c), U32(32, 0x4c),
		    U32(40, 11), U32(44, 22), U32(48, 33), U32(52, 44), U32(56, 55), U8(61, 3),
		    U64(64, 1), U64(72, 2), U64(80, 3));

	qp.handle = 1;
	qp.qp_num = 2;
	attr->cap.max_send_wr = 10;
	cmd_check_refusals(ibv_cmd_create_qp(&pd, &qp, attr, &cmd.core, sizeof(cmd), &resp.core,
					     sizeof(resp)));
	assert_int_equal(qp.handle, 1);
	assert_int_equal(qp.qp_num, 2);
	assert_int_equal(attr->cap.max_send_wr, 10);
	free_init_attr(attr);
}

/* The command has the domain's handle where the SRQ's would be. */
static void create_xrc_qp(void **state)
{
	struct ibv_xrc_domain domain = {.context = &context, .handle = 0xd0d0};
	struct ibv_qp_init_attr attr = {
		.send_cq = &send_cq,
		.recv_cq = &recv_cq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
		.qp_type = IBV_QPT_XRC,
		.xrc_domain = &domain,
	};
	struct ibv_create_qp cmd;
	struct ibv_create_qp_resp resp;

	(void)state;
	memset(&cmd, 0xee, sizeof(cmd));
	fake_answer(32, U32(0, 0x9b), U32(4, 0x800001));
	assert_int_equal(ibv_cmd_create_qp(&pd, &qp, &attr, &cmd, sizeof(cmd), &resp, sizeof(resp)),
			 0);
	fake_expect(24, 64, 32, U64(16, PTR(&qp)), U32(24, 0x9d), U32(28, 0x5c), U32(32, 0x4c),
		    U32(36, 0xd0d0), U32(40, 1), U32(48, 1), U8(61, 5));
	assert_int_equal(qp.qp_num, 0x800001);
	assert_ptr_equal(attr.xrc_domain, &domain);
}

static void query_qp(void **state)
{
	struct {
		struct ibv_query_qp core;
		uint64_t driver;
	} cmd = {.driver = 0x888};
	struct ibv_qp_init_attr *init = old_init_attr();
	struct ibv_qp_attr attr;
	size_t i;

	(void)state;
	memset(&cmd.core, 0xee, sizeof(cmd.core));
	fake.response_len = 128;
	for (i = 0; i < 128; ++i)
		fake.response[i] = i + 1;
	memset(&attr, 0xee, sizeof(attr));
	qp.qp_context = &cmd;
	qp.srq = &srq;
	assert_int_equal(ibv_cmd_query_qp(&qp, &attr, 0x1fffff, init, &cmd.core, sizeof(cmd)), 0);
	fake_expect(25, 32, 128, U32(16, 0x99), U32(20, 0x1fffff), U64(24, 0x888));

#define IS(field, offset)                                                                          \
	assert_true((uint64_t)attr.field == field_get(fake.response, offset, sizeof(attr.field)))
#define IS8(field, offset) assert_int_equal(attr.field, fake.response[offset])
	assert_memory_equal(attr.ah_attr.grh.dgid.raw, fake.response, 16);
	IS(ah_attr.grh.flow_label, 16);
	IS(ah_attr.dlid, 20);
	IS(ah_attr.grh.sgid_index, 24);
	IS(ah_attr.grh.hop_limit, 25);
	IS(ah_attr.grh.traffic_class, 26);
	IS(ah_attr.sl, 27);
	IS(ah_attr.src_path_bits, 28);
	IS(ah_attr.static_rate, 29);
	IS(ah_attr.is_global, 30);
	IS(ah_attr.port_num, 31);
	assert_memory_equal(attr.alt_ah_attr.grh.dgid.raw, fake.response + 32, 16);
	IS(alt_ah_attr.grh.flow_label, 48);
	IS(alt_ah_attr.dlid, 52);
	IS(alt_ah_attr.grh.sgid_index, 56);
	IS(alt_ah_attr.grh.hop_limit, 57);
	IS(alt_ah_attr.grh.traffic_class, 58);
	IS(alt_ah_attr.sl, 59);
	IS(alt_ah_attr.src_path_bits, 60);
	IS(alt_ah_attr.static_rate, 61);
	IS(alt_ah_attr.is_global, 62);
	IS(alt_ah_attr.port_num, 63);
	IS(cap.max_send_wr, 64);
	IS(cap.max_recv_wr, 68);
	IS(cap.max_send_sge, 72);
	IS(cap.max_recv_sge, 76);
	IS(cap.max_inline_data, 80);
	IS(qkey, 84);
	IS(rq_psn, 88);
	IS(sq_psn, 92);
	IS(dest_qp_num, 96);
	IS(qp_access_flags, 100);
	IS(pkey_index, 104);
	IS(alt_pkey_index, 106);
	IS8(qp_state, 108);
	IS8(cur_qp_state, 109);
	IS8(path_mtu, 110);
	IS8(path_mig_state, 111);
	IS(sq_draining, 112);
	IS(max_rd_atomic, 113);
	IS(max_dest_rd_atomic, 114);
	IS(min_rnr_timer, 115);
	IS(port_num, 116);
	IS(timeout, 117);
	IS(retry_cnt, 118);
	IS(rnr_retry, 119);
	IS(alt_port_num, 120);
	IS(alt_timeout, 121);
	/* No kernel returns this. */
	assert_int_equal(attr.en_sqd_async_notify, 0);
	assert_int_equal(init->sq_sig_all, fake.response[122]);
	assert_int_equal(init->cap.max_send_wr, field_get(fake.response, 64, 4));
	assert_int_equal(init->cap.max_inline_data, field_get(fake.response, 80, 4));
	assert_ptr_equal(init->qp_context, &cmd);
	assert_ptr_equal(init->send_cq, &send_cq);
	assert_ptr_equal(init->recv_cq, &recv_cq);
	assert_ptr_equal(init->srq, &srq);
	assert_int_equal(init->qp_type, IBV_QPT_RC);

	attr.qkey = 5;
	init->sq_sig_all = 99;
	cmd_check_refusals(ibv_cmd_query_qp(&qp, &attr, 1, init, &cmd.core, sizeof(cmd)));
	assert_int_equal(attr.qkey, 5);
	assert_int_equal(init->sq_sig_all, 99);
	free_init_attr(init);
}

static void query_xrc_qp(void **state)
{
	struct ibv_xrc_domain domain = {.context = &context, .handle = 1};
	struct ibv_qp_init_attr init = {.xrc_domain = NULL};
	struct ibv_query_qp cmd;
	struct ibv_qp_attr attr;

	(void)state;
	memset(&cmd, 0xee, sizeof(cmd));
	qp.qp_type = IBV_QPT_XRC;
	qp.xrc_domain = &domain;
	fake_answer(128, U8(108, 3));
	assert_int_equal(ibv_cmd_query_qp(&qp, &attr, 1, &init, &cmd, sizeof(cmd)), 0);
	assert_ptr_equal(init.xrc_domain, &domain);
	assert_int_equal(init.qp_type, IBV_QPT_XRC);
}

static void modify_qp(void **state)
{
	struct {
		struct ibv_modify_qp core;
		uint64_t driver;
	} cmd = {.driver = 0x999};
	struct ibv_qp_attr attr;
	unsigned char *byte = (unsigned char *)&attr;
	size_t i;

	(void)state;
	memset(&cmd.core, 0xee, sizeof(cmd.core));
	for (i = 0; i < sizeof(attr); ++i)
		byte[i] = 1 + i % 100;
	attr.qp_state = 1;
	attr.cur_qp_state = 2;
	attr.path_mtu = 3;
	attr.path_mig_state = 4;

	assert_int_equal(ibv_cmd_modify_qp(&qp, &attr, 0x1fffff, &cmd.core, sizeof(cmd)), 0);
	fake_expect(26, 128, 0, AV(8, attr.ah_attr), AV(40, attr.alt_ah_attr), U32(72, 0x99),
		    U32(76, 0x1fffff), U32(80, attr.qkey), U32(84, attr.rq_psn),
		    U32(88, attr.sq_psn), U32(92, attr.dest_qp_num), U32(96, attr.qp_access_flags),
		    U16(100, attr.pkey_index), U16(102, attr.alt_pkey_index), U8(104, 1),
		    U8(105, 2), U8(106, 3), U8(107, 4), U8(108, attr.en_sqd_async_notify),
		    U8(109, attr.max_rd_atomic), U8(110, attr.max_dest_rd_atomic),
		    U8(111, attr.min_rnr_timer), U8(112, attr.port_num), U8(113, attr.timeout),
		    U8(114, attr.retry_cnt), U8(115, attr.rnr_retry), U8(116, attr.alt_port_num),
		    U8(117, attr.alt_timeout), U64(120, 0x999));
	cmd_check_refusals(ibv_cmd_modify_qp(&qp, &attr, 1, &cmd.core, sizeof(cmd)));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, cmd_setup)
	static const struct CMUnitTest tests[] = {
		TEST(create_cq),     TEST(poll_cq),    TEST(req_notify_cq),	   TEST(resize_cq),
		TEST(destroys),	     TEST(create_srq), TEST(modify_and_query_srq), TEST(create_qp),
		TEST(create_xrc_qp), TEST(query_qp),   TEST(query_xrc_qp),	   TEST(modify_qp),
	};

	return cmocka_run_group_tests_name("commands of queues", tests, cmd_group_setup,
					   cmd_group_teardown);
}
