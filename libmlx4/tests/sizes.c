// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the sizes of the queues of a QP, an SRQ and a CQ are exactly those that the device
 * and the kernel compute, and the capabilities granted follow from them. The provider refuses
 * impossible sizes before it asks the kernel.
 */
#include <errno.h>

#include "fake-kernel.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct dev_cq cq;
static struct ibv_xrc_domain *domain;

static struct ibv_qp_init_attr attr_of(enum ibv_qp_type type, uint32_t wr, uint32_t sge,
				       uint32_t inl)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq.cq,
		.recv_cq = cq.cq,
		.cap = {.max_send_wr = wr,
			.max_recv_wr = 1,
			.max_send_sge = sge,
			.max_recv_sge = 1,
			.max_inline_data = inl},
		.qp_type = type,
	};

	if (type == IBV_QPT_XRC)
		attr.xrc_domain = domain;
	return attr;
}

static void vectors(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		uint32_t wr, sge, inl;
		uint32_t shift, spare, slots;
		uint32_t got_sge, got_wr, got_inl;
	} v[] = {
		{IBV_QPT_RC, 1, 1, 0, 6, 33, 64, 2, 31, 28},
		{IBV_QPT_RC, 1, 1, 64, 7, 17, 32, 6, 15, 88},
		{IBV_QPT_RC, 100, 1, 0, 6, 33, 256, 2, 223, 28},
		{IBV_QPT_RC, 128, 4, 0, 7, 17, 256, 6, 239, 88},
		{IBV_QPT_RC, 10, 1, 400, 9, 5, 16, 30, 11, 448},
		{IBV_QPT_RC, 16351, 32, 0, 10, 3, 16384, 32, 16351, 912},
		{IBV_QPT_UC, 16, 1, 0, 6, 33, 64, 2, 31, 28},
		{IBV_QPT_XRC, 1, 1, 0, 6, 33, 64, 2, 31, 28},
		{IBV_QPT_UD, 1, 1, 0, 7, 17, 32, 4, 15, 60},
		{IBV_QPT_UD, 64, 2, 100, 8, 9, 128, 12, 119, 180},
	};
	struct ibv_qp_init_attr attr, queried;
	struct ibv_qp_attr qp_attr;
	struct dev_qp qp;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(v) / sizeof(v[0]); ++i) {
		attr = attr_of(v[i].type, v[i].wr, v[i].sge, v[i].inl);
		dev_create_qp(&qp, pd, &attr);
		assert_int_equal(qp.sq_shift, v[i].shift);
		assert_int_equal(qp.sq_slots, v[i].slots);
		assert_int_equal(attr.cap.max_send_wr, v[i].got_wr);
		assert_int_equal(attr.cap.max_send_sge, v[i].got_sge);
		assert_int_equal(attr.cap.max_inline_data, v[i].got_inl);
		if (attr.cap.max_send_wr != 16351) /* there the device's own limit is lower */
			assert_int_equal(qp.sq_slots - attr.cap.max_send_wr, v[i].spare);
		/* sq_no_prefetch and the reserved bytes */
		assert_int_equal(field_get(fk.last[IB_USER_VERBS_CMD_CREATE_QP], 82, 2), 0);
		assert_int_equal(field_get(fk.last[IB_USER_VERBS_CMD_CREATE_QP], 84, 4), 0);

		memset(&queried, 0, sizeof(queried));
		assert_int_equal(ibv_query_qp(qp.qp, &qp_attr, IBV_QP_CAP, &queried), 0);
		assert_int_equal(queried.cap.max_send_wr, v[i].got_wr);
		assert_int_equal(queried.cap.max_send_sge, v[i].got_sge);
		assert_int_equal(qp_attr.cap.max_inline_data, v[i].got_inl);
		assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	}
}

/* An inline size one larger than the largest is refused, and nothing changes. */
static void inline_limits(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		uint32_t max;
	} v[] = {{IBV_QPT_RC, 912}, {IBV_QPT_UC, 912}, {IBV_QPT_XRC, 912}, {IBV_QPT_UD, 884}};
	struct ibv_qp_init_attr attr;
	struct dev_qp qp;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(v) / sizeof(v[0]); ++i) {
		attr = attr_of(v[i].type, 1, 1, v[i].max);
		dev_create_qp(&qp, pd, &attr);
		assert_true(attr.cap.max_inline_data >= v[i].max);
		assert_int_equal(ibv_destroy_qp(qp.qp), 0);

		attr = attr_of(v[i].type, 1, 1, v[i].max + 1);
		errno = 0;
		assert_null(ibv_create_qp(pd, &attr));
		assert_int_equal(errno, EINVAL);
		assert_int_equal(attr.cap.max_inline_data, v[i].max + 1);
	}
}

static void refusals(void **state)
{
	static const struct ibv_qp_cap bad[] = {
		{16352, 1, 1, 1, 0},	  {1, 16352, 1, 1, 0},	    {1, 1, 33, 1, 0},
		{1, 1, 1, 33, 0},	  {1, 1, 1, 1, 0xffffffff}, {0xffffffff, 1, 1, 1, 0},
		{1, 0xffffffff, 1, 1, 0},
	};
	unsigned int asked = fk.count[IB_USER_VERBS_CMD_CREATE_QP];
	struct ibv_srq_init_attr srq_attr = {0};
	struct ibv_qp_init_attr attr;
	struct dev_srq srq;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
		attr = attr_of(IBV_QPT_RC, 1, 1, 0);
		attr.cap = bad[i];
		errno = 0;
		assert_null(ibv_create_qp(pd, &attr));
		assert_int_equal(errno, EINVAL);
		assert_memory_equal(&attr.cap, &bad[i], sizeof(bad[i]));
	}

	attr = attr_of(7, 1, 1, 0);
	assert_null(ibv_create_qp(pd, &attr));
	assert_int_equal(errno, EINVAL);

	dev_create_srq(&srq, pd, NULL, NULL, 4, 1);
	attr = attr_of(IBV_QPT_XRC, 1, 1, 0);
	attr.srq = srq.srq;
	assert_null(ibv_create_qp(pd, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_srq(srq.srq), 0);

	attr = attr_of(IBV_QPT_XRC, 1, 1, 0);
	attr.xrc_domain = NULL;
	assert_null(ibv_create_qp(pd, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(fk.count[IB_USER_VERBS_CMD_CREATE_QP], asked);

	srq_attr.attr.max_wr = 65537;
	srq_attr.attr.max_sge = 1;
	assert_null(ibv_create_srq(pd, &srq_attr));
	assert_int_equal(errno, EINVAL);
	srq_attr.attr.max_wr = 1;
	srq_attr.attr.max_sge = 65;
	assert_null(ibv_create_srq(pd, &srq_attr));
	assert_int_equal(errno, EINVAL);

	errno = 0;
	assert_null(ibv_create_cq(ctx, 0x400000, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(ctx, 0, NULL, NULL, 0));
	assert_null(ibv_create_cq(ctx, -1, NULL, NULL, 0));
	assert_int_equal(ibv_resize_cq(cq.cq, 0x400000), EINVAL);
	assert_int_equal(ibv_resize_cq(cq.cq, 0), EINVAL);
}

static void receive_queues(void **state)
{
	static const struct {
		uint32_t wr, sge, slots, shift;
	} v[] = {{0, 0, 1, 4}, {1, 1, 1, 4}, {3, 2, 4, 5}, {100, 3, 128, 6}, {16, 32, 16, 9}};
	struct ibv_qp_init_attr attr;
	struct dev_srq srq;
	struct dev_qp qp;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(v) / sizeof(v[0]); ++i) {
		attr = attr_of(IBV_QPT_RC, 1, 1, 0);
		attr.cap.max_recv_wr = v[i].wr;
		attr.cap.max_recv_sge = v[i].sge;
		dev_create_qp(&qp, pd, &attr);
		assert_int_equal(qp.rq_slots, v[i].slots);
		assert_int_equal(qp.rq_shift, v[i].shift);
		assert_int_equal(attr.cap.max_recv_wr, v[i].slots);
		assert_int_equal(attr.cap.max_recv_sge, (1u << v[i].shift) / 16);
		assert_non_null(qp.db);
		assert_int_equal(be32_at(qp.db, 0), 0);
		assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	}

	/* A QP without a receive queue has no doorbell record, and no receives are granted. */
	dev_create_srq(&srq, pd, NULL, NULL, 4, 1);
	attr = attr_of(IBV_QPT_RC, 1, 1, 0);
	attr.srq = srq.srq;
	attr.cap.max_recv_wr = 10;
	dev_create_qp(&qp, pd, &attr);
	assert_null(qp.db);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	assert_int_equal(attr.cap.max_recv_sge, 0);
	assert_int_equal(field_get(fk.last[IB_USER_VERBS_CMD_CREATE_QP], 44, 4), 0);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	assert_int_equal(ibv_destroy_srq(srq.srq), 0);

	attr = attr_of(IBV_QPT_XRC, 1, 1, 0);
	attr.cap.max_recv_wr = 10;
	dev_create_qp(&qp, pd, &attr);
	assert_null(qp.db);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

/* The WQEs of a new SRQ are linked in a ring, and all their entries are terminators. */
static void srq_links(void **state)
{
	static const struct {
		uint32_t wr, sge, slots, shift;
	} v[] = {{1, 1, 2, 5}, {3, 1, 4, 5}, {4, 2, 8, 6}, {100, 31, 128, 9}};
	struct dev_srq srq;
	uint8_t *wqe;
	uint32_t k, n;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(v) / sizeof(v[0]); ++i) {
		dev_create_srq(&srq, pd, NULL, NULL, v[i].wr, v[i].sge);
		assert_int_equal(srq.slots, v[i].slots);
		assert_int_equal(srq.shift, v[i].shift);
		assert_int_equal(be32_at(srq.db, 0), 0);
		for (k = 0; k < srq.slots; ++k) {
			wqe = srq.buf + ((size_t)k << srq.shift);
			assert_int_equal(be16_at(wqe, 2), (k + 1) & (srq.slots - 1));
			for (n = 16; n < 1u << srq.shift; n += 16) {
				assert_int_equal(be32_at(wqe, n), 0);
				assert_int_equal(be32_at(wqe, n + 4), 0x100);
			}
		}
		assert_int_equal(ibv_destroy_srq(srq.srq), 0);
	}
}

static void cq_entries(void **state)
{
	static const int v[][2] = {{1, 2},   {2, 4},	{3, 4},	     {4, 8},
				   {63, 64}, {64, 128}, {1000, 1024}};
	struct dev_cq d;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(v) / sizeof(v[0]); ++i) {
		dev_create_cq(&d, ctx, v[i][0]);
		assert_int_equal(d.entries, v[i][1]);
		assert_int_equal(d.cq->cqe, v[i][1] - 1);
		assert_int_equal((uintptr_t)d.buf % 4096, 0);
		assert_int_equal((uintptr_t)d.db % 8, 0);
		assert_int_equal(be64_at(d.db, 0), 0);
		assert_int_equal(ibv_destroy_cq(d.cq), 0);
	}
}

/*
 * Which of the two queues comes first in the buffer: the posts show where the provider puts them.
 */
static void layout(void **state)
{
	static const struct {
		uint32_t recv_sge, send_sge;
	} v[] = {{1, 1}, {4, 1}, {8, 1}, {32, 2}, {8, 4}};
	struct ibv_sge sge = {.addr = 0x1122334455667788, .length = 7, .lkey = 9};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_qp_init_attr attr;
	struct dev_qp qp;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(v) / sizeof(v[0]); ++i) {
		attr = attr_of(IBV_QPT_RC, 1, v[i].send_sge, 0);
		attr.cap.max_recv_wr = 5;
		attr.cap.max_recv_sge = v[i].recv_sge;
		dev_create_qp(&qp, pd, &attr);
		dev_init_qp(&qp);
		assert_int_equal(ibv_post_recv(qp.qp, &recv, &bad_recv), 0);
		assert_int_equal(ibv_post_recv(qp.qp, &recv, &bad_recv), 0);
		assert_int_equal(ibv_post_send(qp.qp, &send, &bad_send), 0);
		assert_int_equal(be64_at(qp.rq, 8), sge.addr);
		assert_int_equal(be64_at(qp.rq + (1 << qp.rq_shift), 8), sge.addr);
		assert_int_equal(be64_at(qp.sq, 24), sge.addr);
		assert_int_equal((uintptr_t)qp.sq % 64, 0);
		assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	}
}

static int setup(void **state)
{
	(void)state;
	fk_reset();
	ctx = fk_open();
	if (!ctx)
		return -1;
	pd = ibv_alloc_pd(ctx);
	domain = ibv_open_xrc_domain(ctx, -1, 0);
	dev_create_cq(&cq, ctx, 15);
	return !pd || !domain;
}

static int teardown(void **state)
{
	(void)state;
	return ibv_destroy_cq(cq.cq) || ibv_close_xrc_domain(domain) || ibv_dealloc_pd(pd) ||
	       ibv_close_device(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors),   cmocka_unit_test(inline_limits),
		cmocka_unit_test(refusals),  cmocka_unit_test(receive_queues),
		cmocka_unit_test(srq_links), cmocka_unit_test(cq_entries),
		cmocka_unit_test(layout),
	};

	return cmocka_run_group_tests(tests, setup, teardown) ? 1 : 0;
}
