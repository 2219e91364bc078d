// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the first XRC call of a context finds out which XRC the kernel has, by two commands
 * of exact bytes. Every answer that a kernel can give leads to the right command numbers or to an
 * error that is reported. The library asks once.
 */
#include "fake_mainline.h"

static struct ibv_xrc_domain domain;
static uint32_t capabilities;
static int query_error;

static int query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	(void)ctx;
	memset(attr, 0, sizeof(*attr));
	attr->device_cap_flags = capabilities;
	return query_error;
}

static int setup(void **state)
{
	int ret = mainline_setup(state);

	capabilities = IBV_DEVICE_XRC;
	query_error = 0;
	context.ops.query_device = query_device;
	return ret;
}

static int open_domain(void)
{
	struct ibv_open_xrc_domain_resp resp;

	return ibv_cmd_open_xrc_domain(&context, -1, 0, &domain, &resp, sizeof(resp));
}

static void mainline_kernel(void **state)
{
	(void)state;
	assert_int_equal(open_domain(), 0);
	assert_int_equal(mainline.probes, 2);
	mainline_commands(OPEN_XRCD);
	assert_int_equal(open_domain(), 0);
	assert_int_equal(mainline.probes, 2);
}

static void ofed_kernel(void **state)
{
	(void)state;
	mainline.probe_1 = EINVAL;
	assert_int_equal(open_domain(), 0);
	assert_int_equal(mainline.probes, 1);
	mainline_commands(38);
	assert_int_equal(open_domain(), 0);
	assert_int_equal(mainline.probes, 1);
}

/* The kernel has mainline's commands, under mainline's numbers. */
static void mixed_kernel(void **state)
{
	struct ibv_qp_init_attr init = {.xrc_domain = &domain};
	uint32_t qpn;

	(void)state;
	domain.context = &context;
	mainline.probe_2 = ENOSPC;
	assert_int_equal(open_domain(), 0);
	assert_int_equal(ibv_cmd_create_xrc_rcv_qp(&init, &qpn), 0);
	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&domain, qpn), 0);
	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), 0);
	assert_int_equal(mainline.probes, 2);
	mainline_commands(OPEN_XRCD, CREATE_QP, DESTROY_QP, CLOSE_XRCD);
}

/* The kernel knows these commands, but the device's driver does not. That is a mixed kernel too. */
static void mixed_and_masked(void **state)
{
	(void)state;
	mainline.probe_2 = EOPNOTSUPP;
	assert_int_equal(open_domain(), 0);
	mainline_commands(OPEN_XRCD);
}

static void no_xrc(void **state)
{
	static const int answers[] = {ENOSYS, EOPNOTSUPP, 0};
	unsigned int i;

	for (i = 0; i < 3; ++i) {
		setup(state);
		mainline.probe_1 = answers[i];
		assert_int_equal(open_domain(), ENOSYS);
		assert_int_equal(errno, ENOSYS);
		assert_int_equal(open_domain(), ENOSYS);
		assert_int_equal(mainline.probes, 1);
		mainline_silent();
	}
}

static void no_capability(void **state)
{
	(void)state;
	capabilities = ~IBV_DEVICE_XRC;
	assert_int_equal(open_domain(), ENOSYS);
	assert_int_equal(fake.commands, 0);
}

/* The question stays open until a device answers. */
static void gone_for_a_while(void **state)
{
	(void)state;
	query_error = EIO;
	assert_int_equal(open_domain(), EIO);
	assert_int_equal(fake.commands, 0);
	query_error = 0;

	mainline.probe_1 = ENODEV;
	assert_int_equal(open_domain(), ENODEV);
	assert_int_equal(errno, ENODEV);
	mainline.probe_1 = ENOSPC;
	mainline.probe_2 = EIO;
	assert_int_equal(open_domain(), EIO);
	mainline_silent();

	mainline.probe_2 = EINVAL;
	assert_int_equal(open_domain(), 0);
	mainline_commands(OPEN_XRCD);
}

static void unknown_numbering(void **state)
{
	char text[512];
	int saved, fds[2];
	ssize_t len;

	(void)state;
	mainline.probe_2 = 0;
	assert_int_equal(pipe(fds), 0);
	saved = dup(2);
	dup2(fds[1], 2);
	assert_int_equal(open_domain(), ENOSYS);
	dup2(saved, 2);
	close(saved);
	close(fds[1]);
	len = read(fds[0], text, sizeof(text) - 1);
	close(fds[0]);
	assert_true(len > 0);
	text[len] = 0;
	assert_non_null(strstr(text, "libibverbs: Warning: "));
	assert_non_null(strstr(text, "numbers its XRC commands"));
	assert_non_null(strstr(text, "mlx4_7"));
	assert_ptr_equal(strchr(text, '\n'), text + len - 1);

	assert_int_equal(open_domain(), ENOSYS);
	assert_int_equal(mainline.probes, 2);
	mainline_silent();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, mainline_teardown)
	static const struct CMUnitTest tests[] = {
		TEST(mainline_kernel),	TEST(ofed_kernel),
		TEST(mixed_kernel),	TEST(mixed_and_masked),
		TEST(no_xrc),		TEST(no_capability),
		TEST(gone_for_a_while), TEST(unknown_numbering),
	};

	return cmocka_run_group_tests_name("which XRC the kernel has", tests, cmd_group_setup,
					   cmd_group_teardown);
}
