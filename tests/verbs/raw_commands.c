// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: commands as no library writes them. Truncated, oversized, unknown and false commands
 * get the errno of the kernel, on the descriptor of a real context. What the instance shows of its
 * objects does not change, and the existing objects still work.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include <infiniband/kern-abi.h>

#include "verbs_test.h"

/*
 * A command number by which the two kernels differ harmlessly: 40 needs 8 bytes for the response on
 * one, 32 on the other.
 */
static bool mainline;
static int fd;
static uint64_t answer[64];
static const volatile uintptr_t nowhere = 16;
#define LONG_ONE (4 * 65536 + 16)

/*
 * Returns the errno of writing this command, or 0 if it succeeds. The words of the header come from
 * the lengths.
 */
static int raw(void *cmd, size_t len, size_t out)
{
	uint16_t words[2] = {len / 4, out / 4};

	memcpy((char *)cmd + 4, words, sizeof(words));
	return write(fd, cmd, len) == (ssize_t)len ? 0 : errno;
}

/* The same for a header and zeroes, with room for the response. */
static int plain(uint32_t number, size_t len, size_t out)
{
	uint32_t cmd[128] = {number};
	uint64_t response = (uintptr_t)answer;

	memcpy(cmd + 2, &response, sizeof(response));
	return raw(cmd, len, out);
}

/*
 * Returns everything that the instance shows, except for counts of commands and memory in reserve.
 */
static char *shown(void)
{
	static const char *const counts[] = {"\"commands\"", "\"failed\"", "\"pool_pages_spare\""};
	char command[4096], line[4096], *text = NULL;
	size_t size;
	FILE *f, *out = open_memstream(&text, &size);

	snprintf(command, sizeof(command), "'%s' show --json '%s'", getenv("SOFTHCA"),
		 getenv("SOFTHCA_INSTANCE"));
	f = popen(command, "r");
	CHECK(f && out);
	while (fgets(line, sizeof(line), f))
		if (!strstr(line, counts[0]) && !strstr(line, counts[1]) &&
		    !strstr(line, counts[2]))
			fputs(line, out);
	CHECK_EQ(pclose(f), 0);
	CHECK_EQ(fclose(out), 0);
	CHECK(size > 100);
	return text;
}

static void framing(void)
{
	uint32_t cmd[4] = {IB_USER_VERBS_CMD_ALLOC_PD, 4 | 3 << 16};
	uint64_t response = (uintptr_t)answer;
	uint32_t length;
	void *long_one;

	memcpy(cmd + 2, &response, sizeof(response));
	/* Written lengths that differ from that of the header, shorter and longer, and odd ones. */
	for (length = 0; length < sizeof(cmd); length++) {
		CHECK_EQ(write(fd, cmd, length), -1);
		CHECK_EQ(errno, EINVAL);
	}
	cmd[1] = 3 | 3 << 16;
	CHECK_EQ(write(fd, cmd, sizeof(cmd)), -1);
	CHECK_EQ(errno, EINVAL);
	cmd[1] = 0xffff | 3 << 16;
	CHECK_EQ(write(fd, cmd, sizeof(cmd)), -1);
	CHECK_EQ(errno, EINVAL);
	/* As long as the header says, but shorter than the structure. */
	CHECK_EQ(plain(IB_USER_VERBS_CMD_ALLOC_PD, 12, 12), mainline ? ENOSPC : EINVAL);
	CHECK_EQ(plain(IB_USER_VERBS_CMD_REG_MR, 44, 12), mainline ? ENOSPC : EINVAL);
	CHECK_EQ(plain(IB_USER_VERBS_CMD_CREATE_QP, 16, 32), mainline ? ENOSPC : EINVAL);
	CHECK_EQ(plain(IB_USER_VERBS_CMD_MODIFY_QP, 116, 0), mainline ? ENOSPC : EINVAL);
	CHECK_EQ(plain(IB_USER_VERBS_CMD_DEALLOC_PD, 8, 0), mainline ? ENOSPC : EINVAL);
	/* Memory that is not mapped. */
	CHECK_EQ(write(fd, (void *)nowhere, 16), -1);
	CHECK_EQ(errno, EFAULT);
	/* More bytes than a header can say. */
	long_one = mmap(NULL, LONG_ONE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(long_one != MAP_FAILED);
	memcpy(long_one, cmd, sizeof(cmd));
	CHECK_EQ(write(fd, long_one, LONG_ONE), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(munmap(long_one, LONG_ONE), 0);
}

static void numbers(void)
{
	static const uint32_t nobody[] = {45, 50, 63, 64, 127, 200, 255, 256, 0x7fffffff};
	static const uint32_t not_mlx4[] = {
		IB_USER_VERBS_CMD_MODIFY_AH,	 IB_USER_VERBS_CMD_QUERY_AH,
		IB_USER_VERBS_CMD_REG_SMR,	 IB_USER_VERBS_CMD_QUERY_MR,
		IB_USER_VERBS_CMD_BIND_MW,	 IB_USER_VERBS_CMD_POLL_CQ,
		IB_USER_VERBS_CMD_PEEK_CQ,	 IB_USER_VERBS_CMD_REQ_NOTIFY_CQ,
		IB_USER_VERBS_CMD_POST_SEND,	 IB_USER_VERBS_CMD_POST_RECV,
		IB_USER_VERBS_CMD_POST_SRQ_RECV,
	};
	uint32_t flagged[32] = {0x80000000u | 200};

	for (size_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++)
		CHECK_EQ(plain(nobody[i], 64, 64), EINVAL);
	for (size_t i = 0; i < sizeof(not_mlx4) / sizeof(not_mlx4[0]); i++)
		CHECK_EQ(plain(not_mlx4[i], 64, 64), mainline ? EOPNOTSUPP : EINVAL);
	/* Extended commands: an OFED kernel has none. */
	CHECK_EQ(raw(flagged, 64, 0), mainline ? EOPNOTSUPP : EINVAL);
	flagged[0] = 0x40000000u;
	CHECK_EQ(raw(flagged, 64, 0), EINVAL);
	/* A file has one context. */
	CHECK_EQ(plain(IB_USER_VERBS_CMD_GET_CONTEXT, 16, 24), EINVAL);
}

/*
 * No room for the response, or an address that cannot be written: the command is not carried out.
 */
static void answers(struct side *s)
{
	struct ibv_reg_mr reg = {
		.command = IB_USER_VERBS_CMD_REG_MR,
		.response = nowhere,
		.start = (uintptr_t)s->buf,
		.length = s->size,
		.hca_va = (uintptr_t)s->buf,
		.pd_handle = s->pd->handle,
		.access_flags = IBV_ACCESS_LOCAL_WRITE,
	};
	struct ibv_alloc_pd pd = {.command = IB_USER_VERBS_CMD_ALLOC_PD, .response = nowhere};
	void *readonly = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK_EQ(raw(&pd, sizeof(pd), 0), ENOSPC);
	CHECK_EQ(raw(&pd, sizeof(pd), 12), EFAULT);
	pd.response = (uintptr_t)readonly;
	CHECK_EQ(raw(&pd, sizeof(pd), 12), EFAULT);
	CHECK_EQ(raw(&reg, sizeof(reg), 8), ENOSPC);
	CHECK_EQ(raw(&reg, sizeof(reg), 12), EFAULT);
	CHECK_EQ(plain(IB_USER_VERBS_CMD_QUERY_DEVICE, 16, 172), ENOSPC);
	CHECK_EQ(plain(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, 16, 0), ENOSPC);
	CHECK_EQ(munmap(readonly, 4096), 0);
}

/* Well-formed commands with false values. */
static void lies(struct side *s, struct ibv_qp *qp)
{
	struct ibv_reg_mr reg = {
		.command = IB_USER_VERBS_CMD_REG_MR,
		.response = (uintptr_t)answer,
		.start = (uintptr_t)s->buf,
		.length = s->size,
		.hca_va = (uintptr_t)s->buf,
		.pd_handle = s->pd->handle,
		.access_flags = IBV_ACCESS_LOCAL_WRITE,
	};
	struct ibv_query_port port = {.command = IB_USER_VERBS_CMD_QUERY_PORT,
				      .response = (uintptr_t)answer};
	struct ibv_query_qp query = {
		.command = IB_USER_VERBS_CMD_QUERY_QP,
		.response = (uintptr_t)answer,
		.qp_handle = 0xffffff,
	};
	struct ibv_dealloc_pd pd = {.command = IB_USER_VERBS_CMD_DEALLOC_PD,
				    .pd_handle = s->pd->handle};
	struct ibv_dereg_mr mr = {.command = IB_USER_VERBS_CMD_DEREG_MR, .mr_handle = 0xfffffff0};
	struct ibv_destroy_cq cq = {
		.command = IB_USER_VERBS_CMD_DESTROY_CQ,
		.response = (uintptr_t)answer,
		.cq_handle = s->scq->handle,
	};
	struct {
		struct ibv_create_qp cmd;
		uint64_t buf_addr, db_addr;
		uint8_t log_sq_bb_count, log_sq_stride, no_prefetch, reserved[5];
	} create = {
		.cmd =
			{
				.command = IB_USER_VERBS_CMD_CREATE_QP,
				.response = (uintptr_t)answer,
				.pd_handle = s->pd->handle,
				.send_cq_handle = s->scq->handle,
				.recv_cq_handle = s->rcq->handle,
				.max_send_wr = 4,
				.max_recv_wr = 4,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.qp_type = IBV_QPT_RC,
			},
		.log_sq_bb_count = 5,
		.log_sq_stride = 6,
	};

	/* Handles: unused, in use, and of another type. */
	CHECK_EQ(raw(&pd, sizeof(pd), 0), EBUSY);
	pd.pd_handle = 0xffffffff;
	CHECK_EQ(raw(&pd, sizeof(pd), 0), mainline ? ENOENT : EINVAL);
	CHECK_EQ(raw(&mr, sizeof(mr), 0), mainline ? ENOENT : EINVAL);
	CHECK_EQ(raw(&cq, sizeof(cq), 8), EBUSY);
	CHECK_EQ(raw(&query, sizeof(query), 128), EINVAL);
	reg.pd_handle = 0x123456;
	CHECK_EQ(raw(&reg, sizeof(reg), 12), EINVAL);
	reg.pd_handle = s->pd->handle;
	/*
	 * Memory: different offsets in the page, impossible access, an unmapped range, a range that
	 * wraps.
	 */
	reg.hca_va++;
	CHECK_EQ(raw(&reg, sizeof(reg), 12), EINVAL);
	reg.hca_va--;
	reg.access_flags = IBV_ACCESS_REMOTE_WRITE;
	CHECK_EQ(raw(&reg, sizeof(reg), 12), EINVAL);
	reg.access_flags = IBV_ACCESS_LOCAL_WRITE;
	reg.start = reg.hca_va = 0x10000;
	CHECK(raw(&reg, sizeof(reg), 12));
	reg.start = reg.hca_va = ~UINT64_C(4095);
	reg.length = 8192;
	CHECK(raw(&reg, sizeof(reg), 12));
	/* Ports that do not exist. */
	CHECK_EQ(raw(&port, sizeof(port), 40), EINVAL);
	port.port_num = 3;
	CHECK_EQ(raw(&port, sizeof(port), 40), EINVAL);
	/*
	 * A QP: without the driver's part, with queues at unmapped addresses, of no type, of sizes
	 * that overflow.
	 */
	CHECK(raw(&create, sizeof(create.cmd), 32));
	CHECK(raw(&create, sizeof(create), 32));
	create.buf_addr = create.db_addr = nowhere;
	CHECK(raw(&create, sizeof(create), 32));
	create.buf_addr = create.db_addr = (uintptr_t)s->buf;
	create.log_sq_bb_count = 77;
	CHECK_EQ(raw(&create, sizeof(create), 32), EINVAL);
	create.log_sq_bb_count = 5;
	create.cmd.max_recv_wr = 0x7fffffff;
	CHECK_EQ(raw(&create, sizeof(create), 32), EINVAL);
	create.cmd.max_recv_wr = 4;
	create.cmd.qp_type = 77;
	CHECK_EQ(raw(&create, sizeof(create), 32), EINVAL);
	create.cmd.qp_type = IBV_QPT_RC;
	create.cmd.send_cq_handle = 0xabcdef;
	CHECK_EQ(raw(&create, sizeof(create), 32), EINVAL);
	CHECK_EQ(real_state(qp), IBV_QPS_RTS);
}

/* A descriptor without context knows no objects. */
static void without_context(void)
{
	int whole = fd;

	fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_EQ(plain(IB_USER_VERBS_CMD_ALLOC_PD, 16, 12), EINVAL);
	CHECK_EQ(plain(IB_USER_VERBS_CMD_QUERY_DEVICE, 16, 176), EINVAL);
	CHECK_EQ(plain(IB_USER_VERBS_CMD_GET_CONTEXT, 16, 4), ENOSPC);
	CHECK_EQ(close(fd), 0);
	fd = whole;
}

int main(void)
{
	struct ibv_qp *a, *b;
	char *before, *after;
	struct side s;

	test_begin();
	side_open(&s, 8192, 16, 0);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
	fd = s.context->cmd_fd;
	mainline = plain(IB_USER_VERBS_CMD_CREATE_XRC_RCV_QP, 56, 8) == ENOSPC;

	before = shown();
	framing();
	numbers();
	answers(&s);
	lies(&s, a);
	without_context();
	after = shown();
	if (strcmp(before, after))
		fprintf(stderr, "before: %s\nafter: %s\n", before, after);
	CHECK(!strcmp(before, after));
	free(before);
	free(after);

	fill(s.buf, 1000, 7);
	CHECK_EQ(post_recv1(b, &s, 1, 4096, 1000), 0);
	CHECK_EQ(post_send1(a, &s, 2, 0, 1000, IBV_SEND_SIGNALED), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(next_wc(i ? s.rcq : s.scq).status, IBV_WC_SUCCESS);
	CHECK_EQ(differs(s.buf + 4096, 1000, 7), -1);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
	return 0;
}
