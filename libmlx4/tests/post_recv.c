// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: receives posted to receive queues and SRQs: scatter lists with their terminators,
 * doorbell records, links in the order of completions, and every refusal.
 */
#include <errno.h>

#include "fake-kernel.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct dev_cq cq;
static struct ibv_xrc_domain *domain;

static struct ibv_sge list[4] = {
	{0x1000200030004000, 8, 0x71727374},
	{0x5000600070008000, 0x7fffffff, 0x81828384},
	{0x9000a000b000c000, 1, 0x91929394},
	{0xd000e000f000f100, 77, 0xa1a2a3a4},
};

static void create(struct dev_qp *qp, enum ibv_qp_type type, struct ibv_srq *srq, uint32_t wr,
		   uint32_t sge)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq.cq,
		.recv_cq = cq.cq,
		.srq = srq,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = wr,
			.max_send_sge = 1,
			.max_recv_sge = sge},
		.qp_type = type,
	};

	if (type == IBV_QPT_XRC)
		attr.xrc_domain = domain;
	dev_create_qp(qp, pd, &attr);
	dev_init_qp(qp);
}

/*
 * Asserts that the WQE has the n entries of the list except those of length 0, and then a
 * terminator if there is room.
 */
static void check_scatter(const uint8_t *at, const struct ibv_sge *sges, int n, uint32_t room)
{
	uint32_t used = 0;
	int i;

	for (i = 0; i < n; ++i) {
		if (!sges[i].length)
			continue;
		assert_int_equal(be32_at(at, used * 16), sges[i].length);
		assert_int_equal(be32_at(at, used * 16 + 4), sges[i].lkey);
		assert_int_equal(be64_at(at, used * 16 + 8), sges[i].addr);
		++used;
	}
	if (used < room) {
		assert_int_equal(be32_at(at, used * 16), 0);
		assert_int_equal(be32_at(at, used * 16 + 4), 0x100);
		assert_int_equal(be64_at(at, used * 16 + 8), 0);
	}
}

/* QP type of the running test. It has a receive queue of its own. */
static enum ibv_qp_type type;

static void queue(void **state)
{
	struct ibv_recv_wr wr[3] = {0}, *bad;
	uint32_t index = 0, round;
	struct dev_qp qp;
	struct ibv_wc wc;
	int i;

	(void)state;
	create(&qp, type, NULL, 8, 4);
	for (round = 0; round < 30000; ++round) {
		for (i = 0; i < 3; ++i) {
			wr[i] = (struct ibv_recv_wr){.wr_id = 1000 + index + i,
						     .next = i < 2 ? &wr[i + 1] : NULL,
						     .sg_list = list,
						     .num_sge = (round + i) % 5};
		}
		assert_int_equal(ibv_post_recv(qp.qp, wr, &bad), 0);
		for (i = 0; i < 3; ++i)
			check_scatter(qp.rq + ((size_t)((index + i) % qp.rq_slots) << qp.rq_shift),
				      list, (round + i) % 5, 4);
		index += 3;
		assert_int_equal(be32_at(qp.db, 0), index & 0xffff);
		for (i = 0; i < 3; ++i) {
			dev_write_cqe(&cq,
				      &(struct cqe_fields){.qpn = qp.qp->qp_num, .sr_opcode = 1});
			assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
			assert_int_equal(wc.wr_id, 1000 + index - 3 + i);
		}
	}
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

static void overflow(void **state)
{
	struct ibv_recv_wr wr[3] = {{.sg_list = list, .num_sge = 1}}, *bad;
	struct dev_qp qp;
	struct ibv_wc wc;
	int i;

	(void)state;
	create(&qp, type, NULL, 8, 1);
	for (i = 0; i < 8; ++i)
		assert_int_equal(ibv_post_recv(qp.qp, wr, &bad), 0);
	bad = NULL;
	assert_int_equal(ibv_post_recv(qp.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, wr);
	assert_int_equal(be32_at(qp.db, 0), 8);

	/* Two receives complete, so of a list of three the last is bad. */
	for (i = 0; i < 2; ++i)
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num, .sr_opcode = 1});
	while (ibv_poll_cq(cq.cq, 1, &wc) == 1)
		;
	for (i = 0; i < 3; ++i)
		wr[i] = (struct ibv_recv_wr){
			.sg_list = list, .num_sge = 1, .next = i < 2 ? &wr[i + 1] : NULL};
	assert_int_equal(ibv_post_recv(qp.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[2]);
	assert_int_equal(be32_at(qp.db, 0), 10);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

static void zero_length_entries(void **state)
{
	struct ibv_sge sges[4] = {list[0], {0x1234, 0, 5}, list[2], {0x5678, 0, 6}};
	struct ibv_recv_wr wr = {.sg_list = sges}, *bad;
	struct dev_srq srq;
	struct dev_qp qp;
	int n;

	(void)state;
	create(&qp, type, NULL, 8, 4);
	dev_create_srq(&srq, pd, NULL, NULL, 8, 4);
	for (n = 0; n <= 4; ++n) {
		wr.num_sge = n;
		assert_int_equal(ibv_post_recv(qp.qp, &wr, &bad), 0);
		check_scatter(qp.rq + (n << qp.rq_shift), sges, n, 4);
		assert_int_equal(ibv_post_srq_recv(srq.srq, &wr, &bad), 0);
		check_scatter(srq.buf + (n << srq.shift) + 16, sges, n, 4);
	}
	wr.sg_list = sges + 1;
	wr.num_sge = 1;
	assert_int_equal(ibv_post_recv(qp.qp, &wr, &bad), 0);
	check_scatter(qp.rq + (5 << qp.rq_shift), sges + 1, 1, 4);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	assert_int_equal(ibv_destroy_srq(srq.srq), 0);
}

static void refusals(void **state)
{
	struct ibv_sge huge = {0x1000, 0x80000000, 1}, second_huge[2] = {list[0], huge};
	struct ibv_recv_wr wr[2] = {0}, *bad;
	struct dev_srq srq;
	struct dev_qp qp, on_srq, on_xrc;
	int i;

	(void)state;
	create(&qp, type, NULL, 8, 2);
	dev_create_srq(&srq, pd, NULL, NULL, 8, 2);
	for (i = 0; i < 4; ++i) {
		wr[0] = (struct ibv_recv_wr){.next = &wr[1], .sg_list = list, .num_sge = 1};
		wr[1] = (struct ibv_recv_wr){.sg_list = list, .num_sge = 1};
		switch (i) {
		case 0:
			wr[1].num_sge = 3;
			break;
		case 1:
			wr[1].num_sge = -1;
			break;
		case 2:
			wr[1].sg_list = &huge;
			break;
		case 3:
			wr[1].sg_list = second_huge;
			wr[1].num_sge = 2;
			break;
		}
		bad = NULL;
		assert_int_equal(ibv_post_recv(qp.qp, wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr[1]);
		assert_int_equal(be32_at(qp.db, 0), i + 1);
		bad = NULL;
		assert_int_equal(ibv_post_srq_recv(srq.srq, wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr[1]);
		assert_int_equal(be32_at(srq.db, 0), i + 1);
		/* The bad request comes first in the call. */
		assert_int_equal(ibv_post_recv(qp.qp, &wr[1], &bad), EINVAL);
		assert_int_equal(ibv_post_srq_recv(srq.srq, &wr[1], &bad), EINVAL);
		assert_int_equal(be32_at(qp.db, 0), i + 1);
		assert_int_equal(be32_at(srq.db, 0), i + 1);
	}
	assert_int_equal(ibv_post_recv(qp.qp, NULL, &bad), 0);
	assert_int_equal(ibv_post_srq_recv(srq.srq, NULL, &bad), 0);
	assert_int_equal(be32_at(qp.db, 0), 4);
	assert_int_equal(be32_at(srq.db, 0), 4);

	/* A QP that receives through an SRQ, or is of XRC, has no receive queue. */
	create(&on_srq, IBV_QPT_RC, srq.srq, 0, 0);
	create(&on_xrc, IBV_QPT_XRC, NULL, 0, 0);
	wr[1] = (struct ibv_recv_wr){.sg_list = list, .num_sge = 1};
	bad = NULL;
	assert_int_equal(ibv_post_recv(on_srq.qp, &wr[1], &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	bad = NULL;
	assert_int_equal(ibv_post_recv(on_xrc.qp, &wr[1], &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);

	assert_int_equal(ibv_destroy_qp(on_xrc.qp), 0);
	assert_int_equal(ibv_destroy_qp(on_srq.qp), 0);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	assert_int_equal(ibv_destroy_srq(srq.srq), 0);
}

/*
 * Posts as many receives as fit, lets the device take them and complete them out of order, and
 * repeats. The device takes next what was posted last, and each completion has the wr_id of its
 * WQE.
 */
static void shared_queue(struct dev_srq *srq, uint32_t qpn, uint32_t srqn)
{
	uint32_t taken[64], posted = 0, completed = 0, round, n, k, i, pick, n_sge,
			    room = srq->slots - 1;
	uint64_t id_of[64];
	struct ibv_recv_wr wr, *bad;
	struct ibv_wc wc;

	n = 0; /* taken and not yet completed */
	for (round = 0; round < 12000; ++round) {
		while (posted - completed < room) {
			n_sge = (posted + round) % 3;
			wr = (struct ibv_recv_wr){
				.wr_id = 5000 + posted, .sg_list = list, .num_sge = n_sge};
			assert_int_equal(ibv_post_srq_recv(srq->srq, &wr, &bad), 0);
			++posted;
			assert_int_equal(be32_at(srq->db, 0), posted & 0xffff);
			i = dev_take_srq_wqe(srq);
			check_scatter(srq->buf + ((size_t)i << srq->shift) + 16, list, n_sge, 2);
			id_of[i] = wr.wr_id;
			taken[n++] = i;
		}
		for (i = 0; i < 3; ++i) {
			wr.num_sge = i;
			bad = NULL;
			assert_int_equal(ibv_post_srq_recv(srq->srq, &wr, &bad), ENOMEM);
			assert_ptr_equal(bad, &wr);
		}
		assert_int_equal(be32_at(srq->db, 0), posted & 0xffff);

		for (k = 0; k < 1 + round % room; ++k) {
			pick = (round * 7 + k * 3) % n;
			i = taken[pick];
			taken[pick] = taken[--n];
			dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qpn,
								.dw2 = srqn,
								.wqe_index = i,
								.sr_opcode = 1});
			assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
			assert_int_equal(wc.wr_id, id_of[i]);
			++completed;
		}
	}
	while (n) {
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qpn,
							.dw2 = srqn,
							.wqe_index = taken[--n],
							.sr_opcode = 1});
		assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
	}
}

static void srq(void **state)
{
	struct dev_srq d;
	struct dev_qp qp;

	(void)state;
	dev_create_srq(&d, pd, NULL, NULL, 7, 2);
	create(&qp, IBV_QPT_RC, d.srq, 0, 0);
	shared_queue(&d, qp.qp->qp_num, 0);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	assert_int_equal(ibv_destroy_srq(d.srq), 0);
}

static void xrc_srq(void **state)
{
	struct dev_srq d;

	(void)state;
	dev_create_srq(&d, pd, domain, cq.cq, 20, 2);
	assert_int_equal(d.srq->xrc_srq_num, fk.next_srqn - 1);
	shared_queue(&d, 0x800077, d.srq->xrc_srq_num);
	assert_int_equal(ibv_destroy_srq(d.srq), 0);
}

/*
 * An SRQ made for no entries in a WQE still has room for one. Without an entry the WQE has its
 * terminator.
 */
static void srq_of_no_entries(void **state)
{
	struct ibv_recv_wr wr = {.sg_list = list, .num_sge = 0}, *bad;
	struct dev_srq d;

	(void)state;
	dev_create_srq(&d, pd, NULL, NULL, 3, 0);
	assert_int_equal(ibv_post_srq_recv(d.srq, &wr, &bad), 0);
	check_scatter(d.buf + 16, list, 0, 1);
	wr.num_sge = 1;
	assert_int_equal(ibv_post_srq_recv(d.srq, &wr, &bad), 0);
	check_scatter(d.buf + (1 << d.shift) + 16, list, 1, 1);
	assert_int_equal(ibv_destroy_srq(d.srq), 0);
}

/*
 * The type of QP, and whether the application promises to use a single thread: the provider has
 * code of its own for that.
 */
static struct variant {
	enum ibv_qp_type type;
	const char *single_threaded;
} variants[] = {
	{IBV_QPT_RC, "0"}, {IBV_QPT_UC, "0"}, {IBV_QPT_UD, "0"},
	{IBV_QPT_RC, "1"}, {IBV_QPT_UC, "1"}, {IBV_QPT_UD, "1"},
};

static int setup(void **state)
{
	const struct variant *variant = *state;

	fk_reset();
	type = variant->type;
	setenv("MLX4_SINGLE_THREADED", variant->single_threaded, 1);
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
#define ONE(test, name, n)                                                                         \
	{                                                                                          \
#test "/" name, test, setup, teardown, &variants[n]                                \
	}
/* For types with a receive queue of their own. XRC QPs, and QPs on an SRQ, are in refusals. */
#define OWN_QUEUE(test)                                                                            \
	ONE(test, "RC", 0), ONE(test, "UC", 1), ONE(test, "UD", 2),                                \
		ONE(test, "RC_single_threaded", 3), ONE(test, "UC_single_threaded", 4),            \
		ONE(test, "UD_single_threaded", 5)
/* For plain SRQs and XRC SRQs. */
#define BOTH(test) ONE(test, "all", 0), ONE(test, "all_single_threaded", 3)
	const struct CMUnitTest tests[] = {
		OWN_QUEUE(queue),	 OWN_QUEUE(overflow), OWN_QUEUE(zero_length_entries),
		OWN_QUEUE(refusals),	 BOTH(srq),	      BOTH(xrc_srq),
		BOTH(srq_of_no_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
