// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: which devices can be opened: under each version of the driver's ABI, with and
 * without BlueFlame and XRC. An open that fails leaves nothing open or mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-kernel.h"

/*
 * A process cannot change the version once it has opened a device, so each version gets a child. A
 * child returns 0 if its test passes.
 */
static void in_child(int (*test)(int), int arg)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		status = test(arg);
		fk_cleanup();
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int open_descriptors(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 256; ++fd)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static int opens(int abi)
{
	static const uint32_t sizes[] = {32, 64};
	struct ibv_device_attr attr;
	struct ibv_context *ctx;
	struct ibv_cq *cq;
	unsigned int i;
	int before;

	fk_reset();
	fk.driver_abi = abi;
	for (i = 0; i < (abi == 4 ? 2 : 1); ++i) {
		fk.cqe_size = sizes[i];
		ctx = fk_open();
		CHECK(ctx);
		/* The UAR and the BlueFlame page. */
		CHECK(fk.mapped == 2);
		CHECK(fk.last_len[IB_USER_VERBS_CMD_GET_CONTEXT] == 16);
		CHECK(field_get(fk.last[IB_USER_VERBS_CMD_GET_CONTEXT], 6, 2) * 4 ==
		      (abi == 4 ? 24 : 16));
		CHECK(ctx->more_ops);
		CHECK(!ibv_query_device(ctx, &attr));
		CHECK(!strcmp(attr.fw_ver, "2.9.007"));

		cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
		CHECK(cq);
		/*
		 * poll_cq looks where the entry size says: the fake kernel has filled just that
		 * much.
		 */
		CHECK(ibv_poll_cq(cq, 1, &(struct ibv_wc){0}) == 0);
		CHECK(!ibv_destroy_cq(cq));
		before = open_descriptors();
		CHECK(!ibv_close_device(ctx));
		CHECK(open_descriptors() == before - 2);
		CHECK(fk.mapped == 0);
	}
	return 0;
}

static void versions(void **state)
{
	(void)state;
	in_child(opens, 2);
	in_child(opens, 3);
	in_child(opens, 4);
}

/* The device is not in the list, and one line says why. */
static int declined(int abi)
{
	struct ibv_device **list;
	char text[1024] = "";
	int out[2], saved, n = -1;
	ssize_t len;

	fk_reset();
	fk.driver_abi = abi;
	CHECK(!pipe(out));
	saved = dup(2);
	dup2(out[1], 2);
	fk_make_device();
	list = ibv_get_device_list(&n);
	dup2(saved, 2);
	close(out[1]);
	len = read(out[0], text, sizeof(text) - 1);
	CHECK(len > 0);
	CHECK(n == 0);
	CHECK(strstr(text, "libmlx4: Fatal: ABI version"));
	CHECK(strstr(text, "uverbs0"));
	CHECK(strstr(text, "is not supported"));
	/*
	 * One line with the device and the provider's file (this program, which has the provider
	 * linked in), and no second line from libibverbs.
	 */
	CHECK(strstr(text, "mlx4_0"));
	CHECK(strstr(text, "/context ("));
	CHECK(strchr(text, '\n') == text + len - 1);
	if (list)
		ibv_free_device_list(list);
	return 0;
}

static void unknown_versions(void **state)
{
	(void)state;
	in_child(declined, 1);
	in_child(declined, 5);
}

static int recognized(int id)
{
	struct ibv_device **list;
	int n = -1, known = id >> 16;
	char text[16];

	fk_reset();
	fk_make_device();
	snprintf(text, sizeof(text), "0x%04x\n", id & 0xffff);
	fk_put_file("class/infiniband_verbs/uverbs0/device/device", text);
	if (!known)
		dup2(open("/dev/null", O_WRONLY),
		     2); /* libibverbs warns that it has no provider for this device */
	list = ibv_get_device_list(&n);
	CHECK(list);
	CHECK(n == known);
	ibv_free_device_list(list);
	return 0;
}

static void devices(void **state)
{
	static const int known[] = {0x6340, 0x634a, 0x6354, 0x6732, 0x673c, 0x6368, 0x6750,
				    0x6372, 0x675a, 0x6764, 0x6746, 0x676e, 0x6778, 0x1000,
				    0x1001, 0x1002, 0x1003, 0x1004, 0x100f, 0x1010};
	static const int unknown[] = {0x6341, 0x1011, 0x1013, 0x0000};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); ++i)
		in_child(recognized, 1 << 16 | known[i]);
	for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); ++i)
		in_child(recognized, unknown[i]);
}

/* Without XRC everything else works. */
static void without_xrc(void **state)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_XRC,
					.cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_xrc_domain domain = {0};
	struct ibv_context *ctx;
	struct dev_qp qp;
	struct dev_cq cq;
	struct ibv_pd *pd;
	uint32_t qpn;

	(void)state;
	fk_reset();
	fk.cap_flags = 0;
	ctx = fk_open();
	assert_non_null(ctx);
	assert_null(ctx->more_ops);
	pd = ibv_alloc_pd(ctx);
	assert_non_null(pd);
	dev_create_cq(&cq, ctx, 1);
	domain.context = ctx;

	errno = 0;
	assert_null(ibv_open_xrc_domain(ctx, -1, O_CREAT));
	assert_int_equal(errno, ENOSYS);
	errno = 0;
	assert_null(ibv_create_xrc_srq(pd, &domain, cq.cq, &srq_attr));
	assert_int_equal(errno, ENOSYS);
	attr.send_cq = attr.recv_cq = cq.cq;
	attr.xrc_domain = &domain;
	errno = 0;
	assert_null(ibv_create_qp(pd, &attr));
	assert_int_equal(errno, ENOSYS);
	assert_int_equal(ibv_create_xrc_rcv_qp(&attr, &qpn), ENOSYS);
	assert_int_equal(ibv_reg_xrc_rcv_qp(&domain, 1), ENOSYS);
	assert_int_equal(fk.count[IB_USER_VERBS_CMD_OPEN_XRC_DOMAIN], 0);
	assert_int_equal(fk.count[IB_USER_VERBS_CMD_CREATE_QP], 0);

	attr.qp_type = IBV_QPT_RC;
	dev_create_qp(&qp, pd, &attr);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
}

/*
 * The size of the BlueFlame register is 0: inline data goes by the doorbell, and the provider does
 * not map the page.
 */
static void without_blueflame(void **state)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 20}};
	struct ibv_sge sge = {(uintptr_t) "0123456789", 10, 0};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE},
			   *bad;
	struct ibv_context *ctx;
	struct dev_qp qp;
	struct dev_cq cq;
	struct ibv_pd *pd;

	(void)state;
	fk_reset();
	fk.bf_reg_size = 0;
	ctx = fk_open();
	assert_non_null(ctx);
	assert_int_equal(fk.mapped, 1);
	pd = ibv_alloc_pd(ctx);
	dev_create_cq(&cq, ctx, 1);
	attr.send_cq = attr.recv_cq = cq.cq;
	dev_create_qp(&qp, pd, &attr);
	dev_init_qp(&qp);
	memset(fk.uar, 0, 8192);
	assert_int_equal(ibv_post_send(qp.qp, &wr, &bad), 0);
	assert_int_equal(be32_at(fk.uar, 0x14), qp.qp->qp_num << 8);
	assert_int_equal(be32_at(fk.bf, 0), 0);
	assert_memory_equal(qp.sq + 20, "0123456789", 10);

	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
}

static void no_open(int err)
{
	int descriptors = open_descriptors();

	errno = 0;
	assert_null(fk_open());
	assert_int_equal(errno, err);
	assert_int_equal(fk.mapped, 0);
	assert_int_equal(open_descriptors(), descriptors);
}

/* An open fails if a command fails or its answer makes no sense. */
static void refused(void **state)
{
	static const uint32_t tables[] = {0, 3, 262143};
	struct ibv_context *ctx;
	unsigned int i;

	(void)state;
	fk_reset();
	ctx = fk_open();
	assert_non_null(ctx);
	assert_int_equal(ibv_close_device(ctx), 0);

	fk.fail_command = IB_USER_VERBS_CMD_GET_CONTEXT;
	fk.fail_errno = EAGAIN;
	no_open(EAGAIN);
	fk.fail_command = IB_USER_VERBS_CMD_QUERY_DEVICE;
	fk.fail_errno = EIO;
	no_open(EIO);
	for (i = 0; i < 3; ++i) {
		fk_reset();
		fk.qp_tab_size = tables[i];
		no_open(EINVAL);
	}
}

/*
 * Lets each allocation fail in turn. Without its second mapping, BlueFlame's, a device opens all
 * the same.
 */
static void out_of_memory(void **state)
{
	unsigned int n, refused = 0, missing_bf = 0;
	struct ibv_context *ctx;
	int err = dup(2);

	(void)state;
	dup2(open("/dev/null", O_WRONLY), 2);
	for (n = 1;; ++n) {
		fk_reset();
		fk.fail_at = n;
		errno = 0;
		ctx = fk_open();
		if (!ctx) {
			assert_int_equal(errno, ENOMEM);
			assert_int_equal(fk.mapped, 0);
			++refused;
			continue;
		}
		missing_bf += fk.mapped == 1;
		assert_int_equal(ibv_close_device(ctx), 0);
		assert_int_equal(fk.mapped, 0);
		if (fk.fail_at)
			break;
	}
	dup2(err, 2);
	close(err);
	assert_int_equal(refused, 2);
	assert_int_equal(missing_bf, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),	     cmocka_unit_test(unknown_versions),
		cmocka_unit_test(devices),	     cmocka_unit_test(without_xrc),
		cmocka_unit_test(without_blueflame), cmocka_unit_test(refused),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
