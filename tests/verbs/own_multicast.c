// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a QP that blocks its own datagrams to groups, as newer libraries create it by the
 * extended CREATE_QP. Such a QP gets what others send to its groups, and others get what it sends.
 * OFED kernels have no such command.
 * Faces: mainline
 */
#include <dlfcn.h>

#include <infiniband/kern-abi.h>

#include "verbs_test.h"

#define QKEY	   0x11111111 /* set by to_init() */
#define GRH	   40
#define BLOCK_SELF 0x2
#define EXTENDED   0x80000000u
#define CORE                                                                                       \
	64 /* bytes of the extended command between its headers and the provider's part, at most */
#define CORE_OLDEST 56

/* What the next CREATE_QP is to have, if it is to be the extended one. */
static struct {
	bool set;
	uint32_t len, comp_mask, flags;
	uint8_t reserved;
} extra;

static struct side s;
static struct ibv_ah *ah;
static const union ibv_gid group = {.raw = {0xff, 0x12, 0xa0, 0x1c, [15] = 7}};
static const uint16_t mlid = 0xc007;

/* Our library knows no flags. So its command is written as the extended one. */
static ssize_t extended(ssize_t (*real)(int, const void *, size_t), int fd,
			const struct ibv_create_qp *cmd, size_t len)
{
	struct {
		uint32_t command;
		uint16_t in_words, out_words;
		uint64_t response;
		uint16_t provider_in_words, provider_out_words;
		uint32_t reserved;
		unsigned char rest[CORE + 256];
	} ex = {
		.command = IB_USER_VERBS_CMD_CREATE_QP | EXTENDED,
		.in_words = extra.len / 8,
		.out_words = 5,
		.provider_in_words = (len - sizeof(*cmd)) / 8,
	};
	uint32_t answer[10], tail[4] = {extra.comp_mask, extra.flags, 0, 0};
	size_t driver = len - sizeof(*cmd), size = 24 + extra.len + driver;
	ssize_t ret;

	extra.set = false;
	ex.response = (uintptr_t)answer;
	memset(answer, 0xff, sizeof(answer));
	memcpy(ex.rest, &cmd->user_handle, 48);
	ex.rest[47] = extra.reserved;
	memcpy(ex.rest + 48, tail, extra.len - 48);
	memcpy(ex.rest + extra.len, cmd + 1, driver);
	ret = real(fd, &ex, size);
	if (ret != (ssize_t)size)
		return ret;
	CHECK_EQ(answer[8], 0);	 /* comp_mask */
	CHECK_EQ(answer[9], 40); /* response_length */
	memcpy((void *)(uintptr_t)cmd->response, answer, sizeof(struct ibv_create_qp_resp));
	return (ssize_t)len;
}

ssize_t write(int fd, const void *buf, size_t len)
{
	static ssize_t (*real)(int, const void *, size_t);
	uint32_t command = 0;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "write");
	if (!extra.set || len < sizeof(struct ibv_create_qp) || len > 256)
		return real(fd, buf, len);
	memcpy(&command, buf, sizeof(command));
	if (command != IB_USER_VERBS_CMD_CREATE_QP)
		return real(fd, buf, len);
	return extended(real, fd, buf, len);
}

static struct ibv_qp *create(enum ibv_qp_type type, uint32_t len, uint32_t comp_mask,
			     uint32_t flags, uint8_t reserved)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s.scq,
		.recv_cq = s.rcq,
		.qp_type = type,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp;

	extra.set = true;
	extra.len = len;
	extra.comp_mask = comp_mask;
	extra.flags = flags;
	extra.reserved = reserved;
	errno = 0;
	qp = ibv_create_qp(s.pd, &attr);
	CHECK(!extra.set);
	return qp;
}

static void refused(enum ibv_qp_type type, uint32_t comp_mask, uint32_t flags, uint8_t reserved)
{
	CHECK(!create(type, CORE, comp_mask, flags, reserved));
	CHECK_EQ(errno, EINVAL);
}

static struct ibv_qp *member(bool blocks)
{
	struct ibv_qp *qp = create(IBV_QPT_UD, CORE, 0, blocks ? BLOCK_SELF : 0, 0);
	struct link l;

	CHECK(qp);
	link_defaults(&l, 0, 0);
	connect_qp(qp, &l);
	return qp;
}

static void to_group(struct ibv_qp *from, uint64_t id, int n)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s.buf, .length = 64, .lkey = s.mr->lkey};
	struct ibv_send_wr wr[4] = {{0}}, *bad;

	for (int i = 0; i < n; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = id + i,
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.ud = {.ah = ah, .remote_qpn = 0xffffff, .remote_qkey = QKEY},
		};
	CHECK_EQ(ibv_post_send(from, wr, &bad), 0);
	for (int i = 0; i < n; i++)
		expect_wc(s.scq, id + i, IBV_WC_SUCCESS);
}

static void receives(struct ibv_qp *qp, uint64_t id, int n)
{
	for (int i = 0; i < n; i++)
		CHECK_EQ(post_recv1(qp, &s, id, 8192 * id, 4136), 0);
}

/* So many datagrams of this sender have come with each id, and no more. */
static void came(const struct ibv_qp *from, int first, int second)
{
	int seen[3] = {0};

	for (int n = 0; n < first + second; n++) {
		struct ibv_wc wc = next_wc(s.rcq);

		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.src_qp, from->qp_num);
		seen[wc.wr_id]++;
	}
	CHECK_EQ(seen[1], first);
	CHECK_EQ(seen[2], second);
	expect_silence(s.rcq, 0);
}

int main(void)
{
	struct ibv_ah_attr attr = {.dlid = mlid, .port_num = 1, .is_global = 1};
	struct ibv_qp *blocks, *plain, *old;
	uint64_t drops;

	test_begin();
	side_open(&s, 65536, 256, 0);
	attr.grh.dgid = group;
	ah = ibv_create_ah(s.pd, &attr);
	CHECK(ah);

	/* The device has the flag for UD alone, no other one, and no table of receive queues. */
	refused(IBV_QPT_RC, 0, BLOCK_SELF, 0);
	refused(IBV_QPT_UC, 0, BLOCK_SELF, 0);
	refused(IBV_QPT_UD, 0, 0x4, 0);
	refused(IBV_QPT_UD, 0, 0x80000000, 0);
	refused(IBV_QPT_UD, 1, 0, 0);
	refused(IBV_QPT_UD, 0x80000000, 0, 0);
	refused(IBV_QPT_UD, 0, 0, 1);
	refused(IBV_QPT_UD, 0, BLOCK_SELF, 1);
	/* Without flags it is any QP, and old libraries write less. */
	old = create(IBV_QPT_RC, CORE, 0, 0, 0);
	CHECK(old);
	CHECK_EQ(ibv_destroy_qp(old), 0);
	old = create(IBV_QPT_UD, CORE_OLDEST, 0, BLOCK_SELF, 0);
	CHECK(old);
	CHECK_EQ(ibv_destroy_qp(old), 0);

	blocks = member(true);
	plain = member(false);
	CHECK_EQ(ibv_attach_mcast(blocks, &group, mlid), 0);
	receives(blocks, 1, 8);
	receives(plain, 2, 8);
	/* Alone in its group it gets nothing back, and that is no loss. */
	drops = hca_counter("drops_mcast");
	to_group(blocks, 10, 1);
	to_group(blocks, 11, 3);
	came(blocks, 0, 0);
	CHECK_EQ(hca_counter("drops_mcast"), drops);
	to_group(plain, 20, 2);
	came(plain, 2, 0);

	CHECK_EQ(ibv_attach_mcast(plain, &group, mlid), 0);
	to_group(blocks, 30, 2);
	came(blocks, 0, 2);
	to_group(plain, 40, 2);
	came(plain, 2, 2);

	/* The way from RESET does not change it. */
	CHECK_EQ(to_state(blocks, IBV_QPS_RESET), 0);
	{
		struct link l;

		link_defaults(&l, 0, 0);
		connect_qp(blocks, &l);
	}
	receives(blocks, 1, 4);
	to_group(blocks, 50, 1);
	came(blocks, 0, 1);

	CHECK_EQ(ibv_detach_mcast(blocks, &group, mlid), 0);
	to_group(plain, 60, 1);
	came(plain, 0, 1);
	CHECK_EQ(ibv_detach_mcast(plain, &group, mlid), 0);
	CHECK_EQ(ibv_destroy_qp(blocks), 0);
	CHECK_EQ(ibv_destroy_qp(plain), 0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	side_close(&s);
	return 0;
}
