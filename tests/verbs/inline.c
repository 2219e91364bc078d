// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: inline data of every size up to the limit of the QP, on RC, UC and UD, in one piece
 * and in several. It is read during the post, from memory that is not registered. One byte more is
 * refused, and so is an inline READ.
 */
#include "verbs_test.h"

#define FAR 8192
#define GRH 40

static struct side s;
static struct ibv_qp *a, *b;
static struct ibv_ah *ah;
static uint8_t plain[2048];

static uint32_t make_pair(enum ibv_qp_type type, uint32_t inline_wanted, uint32_t sges)
{
	struct ibv_qp_init_attr init = {.send_cq = s.scq,
					.recv_cq = s.rcq,
					.qp_type = type,
					.cap = {.max_send_wr = 4,
						.max_recv_wr = 4,
						.max_send_sge = sges,
						.max_recv_sge = 1,
						.max_inline_data = inline_wanted}};
	struct ibv_qp_init_attr queried;
	struct ibv_qp_attr attr;

	a = ibv_create_qp(s.pd, &init);
	CHECK(a);
	CHECK(init.cap.max_inline_data >= inline_wanted);
	b = make_qp(&s, type, NULL, NULL, NULL);
	connect_pair(&s, a, b);
	CHECK_EQ(ibv_query_qp(a, &attr, IBV_QP_CAP, &queried), 0);
	CHECK_EQ(attr.cap.max_inline_data, init.cap.max_inline_data);
	CHECK_EQ(queried.cap.max_send_wr, init.cap.max_send_wr);
	return init.cap.max_inline_data;
}

/* Cuts size bytes of the plain buffer into up to n uneven pieces. */
static int cut(struct ibv_sge *sge, uint32_t size, int n)
{
	uint32_t at = 0;

	for (int i = 0; i < n; i++) {
		uint32_t len = i == n - 1 ? size - at : (size - at) / 3 + i % 2;

		if (len > size - at)
			len = size - at;
		sge[i] = (struct ibv_sge){.addr = (uintptr_t)plain + at, .length = len, .lkey = 0};
		at += len;
	}
	return n;
}

static void send_one(enum ibv_qp_type type, enum ibv_wr_opcode opcode, uint32_t size, int pieces)
{
	uint32_t off = type == IBV_QPT_UD ? GRH : 0;
	struct ibv_sge sge[32];
	struct ibv_send_wr wr = {.wr_id = size,
				 .sg_list = sge,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE},
			   *bad;

	wr.num_sge = cut(sge, size, pieces);
	if (type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = b->qp_num;
		wr.wr.ud.remote_qkey = 0x11111111;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)s.buf + FAR;
		wr.wr.rdma.rkey = s.mr->rkey;
	}
	memset(s.buf + FAR, 0x55, 2048);
	fill(plain, size, size * 4 + pieces);
	if (opcode == IBV_WR_SEND)
		CHECK_EQ(post_recv1(b, &s, size, FAR, 2048), 0);
	CHECK_EQ(ibv_post_send(a, &wr, &bad), 0);
	memset(plain, 0xee, size);
	expect_wc(s.scq, size, IBV_WC_SUCCESS);
	if (opcode == IBV_WR_SEND)
		CHECK_EQ(expect_wc(s.rcq, size, IBV_WC_SUCCESS).byte_len, size + off);
	CHECK_EQ(differs(s.buf + FAR + off, size, size * 4 + pieces), -1);
	CHECK_EQ(s.buf[FAR + off + size], 0x55);
}

static void refused(enum ibv_qp_type type, uint32_t max)
{
	struct ibv_sge sge = {.addr = (uintptr_t)plain, .length = max + 1};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE,
				 .wr.ud = {.ah = ah, .remote_qpn = b->qp_num}},
			   *bad = NULL;

	CHECK(ibv_post_send(a, &wr, &bad));
	CHECK(bad == &wr);
	if (type != IBV_QPT_RC)
		return;
	sge.length = 8;
	wr.opcode = IBV_WR_RDMA_READ;
	bad = NULL;
	CHECK(ibv_post_send(a, &wr, &bad));
	CHECK(bad == &wr);
}

static void all_sizes(enum ibv_qp_type type, uint32_t wanted, uint32_t sges)
{
	uint32_t max = make_pair(type, wanted, sges);

	for (uint32_t size = 0; size <= max; size++) {
		send_one(type, IBV_WR_SEND, size, 1);
		if (sges > 2)
			send_one(type, IBV_WR_SEND, size, size % sges + 1);
		if (type != IBV_QPT_UD)
			send_one(type, IBV_WR_RDMA_WRITE, size, size % 2 + 1);
	}
	refused(type, max);
	/* Refused requests took no slot: the queue goes on. */
	send_one(type, IBV_WR_SEND, max, 1);
	expect_silence(s.scq, 0);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
}

int main(void)
{
	struct ibv_ah_attr attr = {.port_num = 1};

	test_begin();
	side_open(&s, 16384, 64, 0);
	attr.dlid = s.lid;
	ah = ibv_create_ah(s.pd, &attr);
	CHECK(ah);
	all_sizes(IBV_QPT_RC, 0, 2);
	all_sizes(IBV_QPT_RC, 64, 1);
	all_sizes(IBV_QPT_RC, 400, 5);
	all_sizes(IBV_QPT_RC, 912, 2);
	all_sizes(IBV_QPT_UC, 200, 3);
	all_sizes(IBV_QPT_UD, 100, 2);
	all_sizes(IBV_QPT_UD, 884, 4);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	side_close(&s);
	return 0;
}
