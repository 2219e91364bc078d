// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a kernel does wrong, or the device goes away while it is open: commands that the
 * kernel takes half, responses that never come, event records that are cut short or about nothing
 * known. In each case the call ends with an error, waits for nothing, and follows no pointer to an
 * object that does not exist.
 */
#include "fake_mainline.h"

#include <signal.h>

static struct ibv_xrc_domain domain = {.context = &context};
static struct ibv_comp_channel channel = {.context = &context};
static int event_fds[2];
static int gone; /* errno from a device that is gone */

static void obey(void)
{
	mainline_obey();
	if (gone)
		fake.refuse = gone;
}

static int setup(void **state)
{
	mainline_setup(state);
	if (pipe2(event_fds, O_CLOEXEC))
		return -1;
	context.async_fd = event_fds[0];
	channel.fd = event_fds[0];
	gone = 0;
	fake.hook = obey;
	return 0;
}

static int teardown(void **state)
{
	close(event_fds[1]);
	return mainline_teardown(state);
}

/*
 * Makes every command that there is, each with the arguments of success, and calls check() with its
 * name and result.
 */
static void each_command(void (*check)(const char *name, int ret))
{
	union {
		struct ibv_get_context get_context;
		struct ibv_query_device query_device;
		struct ibv_query_port query_port;
		struct ibv_alloc_pd alloc_pd;
		struct ibv_reg_mr reg_mr;
		struct ibv_create_cq create_cq;
		struct ibv_resize_cq resize_cq;
		struct ibv_create_srq create_srq;
		struct ibv_modify_srq modify_srq;
		struct ibv_query_srq query_srq;
		struct ibv_create_qp create_qp;
		struct ibv_query_qp query_qp;
		struct ibv_modify_qp modify_qp;
		struct ibv_create_xrc_srq create_xrc_srq;
	} cmd;
	union {
		struct ibv_get_context_resp get_context;
		struct ibv_alloc_pd_resp alloc_pd;
		struct ibv_reg_mr_resp reg_mr;
		struct ibv_create_cq_resp create_cq;
		struct ibv_resize_cq_resp resize_cq;
		struct ibv_create_srq_resp create_srq;
		struct ibv_create_qp_resp create_qp;
		struct ibv_open_xrc_domain_resp open_xrc_domain;
	} resp;
	struct ibv_qp_init_attr init = {
		.send_cq = &send_cq, .recv_cq = &recv_cq, .qp_type = IBV_QPT_RC};
	struct ibv_qp_init_attr xrc_init = {.xrc_domain = &domain};
	struct ibv_context new_context = {.cmd_fd = context.cmd_fd};
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 1}};
	struct ibv_qp_attr qp_attr = {.qp_state = IBV_QPS_INIT};
	struct ibv_ah_attr ah_attr = {.dlid = 1};
	struct ibv_ah ah = {.context = &context};
	struct ibv_mr mr = {.context = &context};
	struct ibv_device_attr device_attr;
	struct ibv_srq_attr srq_attr = {.max_wr = 1};
	struct ibv_port_attr port_attr;
	union ibv_gid gid = {.raw = {0xff}};
	struct ibv_pd new_pd;
	struct ibv_cq new_cq;
	uint64_t fw;
	uint32_t qpn;

	memset(&new_cq, 0, sizeof(new_cq));
	memset(&new_pd, 0, sizeof(new_pd));
#define CHECK(name, ...) check(#name, ibv_cmd_##name(__VA_ARGS__))
#define CMD(name)	 &cmd.name, sizeof(cmd.name)
#define RESP(name)	 &resp.name, sizeof(resp.name)
	CHECK(get_context, &new_context, CMD(get_context), RESP(get_context));
	CHECK(query_device, &context, &device_attr, &fw, CMD(query_device));
	CHECK(query_port, &context, 1, &port_attr, CMD(query_port));
	CHECK(alloc_pd, &context, &new_pd, CMD(alloc_pd), RESP(alloc_pd));
	CHECK(dealloc_pd, &pd);
	CHECK(reg_mr, &pd, &gid, sizeof(gid), 0, 0, &mr, CMD(reg_mr), RESP(reg_mr));
	CHECK(dereg_mr, &mr);
	CHECK(create_cq, &context, 10, NULL, 0, &new_cq, CMD(create_cq), RESP(create_cq));
	CHECK(resize_cq, &send_cq, 10, CMD(resize_cq), RESP(resize_cq));
	CHECK(req_notify_cq, &send_cq, 0);
	CHECK(destroy_cq, &send_cq);
	CHECK(create_srq, &pd, &srq, &srq_init, CMD(create_srq), RESP(create_srq));
	CHECK(modify_srq, &srq, &srq_attr, 1, CMD(modify_srq));
	CHECK(query_srq, &srq, &srq_attr, CMD(query_srq));
	CHECK(destroy_srq, &srq);
	CHECK(create_qp, &pd, &qp, &init, CMD(create_qp), RESP(create_qp));
	CHECK(query_qp, &qp, &qp_attr, 0, &init, CMD(query_qp));
	CHECK(modify_qp, &qp, &qp_attr, IBV_QP_STATE, CMD(modify_qp));
	CHECK(destroy_qp, &qp);
	CHECK(create_ah, &pd, &ah, &ah_attr);
	CHECK(destroy_ah, &ah);
	CHECK(attach_mcast, &qp, &gid, 1);
	CHECK(detach_mcast, &qp, &gid, 1);
	CHECK(open_xrc_domain, &context, -1, 0, &domain, RESP(open_xrc_domain));
	CHECK(create_xrc_srq, &pd, &srq, &srq_init, domain.handle, 1, CMD(create_xrc_srq),
	      RESP(create_srq));
	CHECK(create_xrc_rcv_qp, &xrc_init, &qpn);
	CHECK(modify_xrc_rcv_qp, &domain, 0x800777, &qp_attr, IBV_QP_STATE);
	CHECK(query_xrc_rcv_qp, &domain, 0x800777, &qp_attr, 0, &init);
	CHECK(reg_xrc_rcv_qp, &domain, 0x800777);
	check(NULL, 0);
}

static void must_fail(const char *name, int ret)
{
	int must = gone ? gone : EIO;

	if (!name)
		return;
	if (ret != must || errno != must)
		fail_msg("ibv_cmd_%s: %d, errno %d, must be %d", name, ret, errno, must);
}

/* A device goes away while the program has an XRC domain and a receive QP. */
static void vanished(void **state)
{
	static const int errors[] = {EIO, ENODEV};
	struct ibv_xrc_domain held;
	struct ibv_qp_init_attr init = {.xrc_domain = &held};
	struct ibv_async_event event;
	struct ibv_cq *event_cq;
	void *event_context;
	uint32_t qpn;
	int i;

	(void)state;
	assert_int_equal(mainline_open(&held, -1, 0), 0);
	assert_int_equal(ibv_cmd_create_xrc_rcv_qp(&init, &qpn), 0);
	domain.handle = held.handle;
	for (i = 0; i < 2; ++i) {
		gone = errors[i];
		each_command(must_fail);
		assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&held, qpn), errors[i]);
		assert_int_equal(ibv_cmd_close_xrc_domain(&held), EBUSY);
		assert_null(ibv_create_comp_channel(&context));
		assert_int_equal(errno, errors[i]);
	}

	/* Its events end, too. */
	close(event_fds[1]);
	event_fds[1] = -1;
	assert_int_equal(ibv_get_async_event(&context, &event), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(ibv_get_cq_event(&channel, &event_cq, &event_context), -1);
	assert_int_equal(errno, EIO);
}

static void take_half(void)
{
	mainline_obey();
	if (!fake.refuse)
		fake.shorten = 4;
}

static void half_taken(void **state)
{
	struct ibv_xrc_domain held;

	(void)state;
	assert_int_equal(mainline_open(&held, -1, 0), 0);
	domain.handle = held.handle;
	fake.hook = take_half;
	each_command(must_fail);
	assert_null(ibv_create_comp_channel(&context));
	assert_int_equal(errno, EIO);
}

static void say_nothing(void)
{
	mainline_obey();
	fake.response_len = 0;
}

/*
 * A call may succeed or fail here. Trouble would come from a garbage descriptor, or from a garbage
 * count of events to wait for.
 */
static void must_do_something(const char *name, int ret)
{
	if (name && !strcmp(name, "get_context"))
		assert_int_equal(ret, EIO);
	else if (name && ret && ret != EINVAL)
		fail_msg("ibv_cmd_%s: %d", name, ret);
}

static void no_response(void **state)
{
	(void)state;
	fake.hook = say_nothing;
	alarm(20);
	each_command(must_do_something);
	alarm(60);
	assert_null(ibv_create_comp_channel(&context));
	assert_int_equal(errno, EIO);
}

static void put(const void *data, size_t size)
{
	assert_int_equal(write(event_fds[1], data, size), size);
}

static void records(void **state)
{
	static const uint32_t types[] = {
		IBV_EVENT_DEVICE_FATAL,
		IBV_EVENT_CLIENT_REREGISTER,
		18,
		19,
		99,
		0x7fffffff,
		0x80000000,
		0xffffffff,
	};
	struct ibv_async_event event;
	struct ibv_xrc_domain held;
	uint64_t record[2];
	unsigned int i;

	(void)state;
	assert_int_equal(mainline_open(&held, -1, 0), 0);

	/*
	 * The record is about an object that the library does not know, so the library follows no
	 * pointer in it.
	 */
	for (i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
		record[0] = 0xdead000000000001ull;
		record[1] = types[i];
		put(record, sizeof(record));
		assert_int_equal(ibv_get_async_event(&context, &event), 0);
		assert_int_equal((uint32_t)event.event_type, types[i]);
		ibv_ack_async_event(&event);
	}

	put(record, 8);
	assert_int_equal(ibv_get_async_event(&context, &event), -1);
	assert_int_equal(errno, EIO);

	/* Now read() itself fails, as it does on a real device. */
	close(event_fds[0]);
	context.async_fd = open("/", O_RDONLY | O_CLOEXEC);
	assert_int_equal(ibv_get_async_event(&context, &event), -1);
	assert_int_equal(errno, EISDIR);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(vanished),
		TEST(half_taken),
		TEST(no_response),
		TEST(records),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("a bad kernel", tests, cmd_group_setup,
					   cmd_group_teardown);
}
