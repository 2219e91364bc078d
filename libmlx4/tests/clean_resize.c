// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Description: completions that wait survive a resize from any position to any size, and only those
 * of a destroyed or reset object go when it does, its SRQ's receives being given back; with entries
 * of both sizes. */
#include <errno.h>

#include "fake-kernel.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_xrc_domain *domain;
static struct dev_cq cq;

static void create(struct dev_qp *qp, enum ibv_qp_type type, struct ibv_cq *send,
		   struct ibv_cq *recv, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = send,
		.recv_cq = recv,
		.srq = srq,
		.cap = {.max_send_wr = 60, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};

	if (type == IBV_QPT_XRC)
		attr.xrc_domain = domain;
	dev_create_qp(qp, pd, &attr);
	dev_init_qp(qp);
}

static void post_send(struct dev_qp *qp, uint64_t id)
{
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND},
			   *bad;

	assert_int_equal(ibv_post_send(qp->qp, &wr, &bad), 0);
}

static void post_recv(struct dev_qp *qp, uint64_t id)
{
	struct ibv_recv_wr wr = {.wr_id = id}, *bad;

	assert_int_equal(ibv_post_recv(qp->qp, &wr, &bad), 0);
}

static void expect(struct dev_cq *d, uint64_t id)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(d->cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void expect_empty(struct dev_cq *d)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(d->cq, 1, &wc), 0);
	assert_int_equal(be32_at(d->db, 0), d->producer & 0xffffff);
}

/* Moves producer and consumer on, with completions of no interest. */
static void turn(struct dev_cq *d, struct dev_qp *qp, uint32_t *index, uint32_t n)
{
	while (n--) {
		post_send(qp, 7);
		dev_write_cqe(d, &(struct cqe_fields){.qpn = qp->qp->qp_num,
						      .wqe_index = (*index)++,
						      .sr_opcode = 0x4a});
		expect(d, 7);
	}
}

/*
 * Resize
 */

static struct dev_cq *resizing;

/* What the device does: new owner bits by phase, the marker into the old buffer, and from then on
 * the new one. */
static void on_resize(int command, uint8_t *cmd, uint8_t *resp)
{
	uint32_t i = resizing->producer++, n, p;
	uint8_t *entry;

	(void)resp;
	if (command != IB_USER_VERBS_CMD_RESIZE_CQ)
		return;
	entry = resizing->buf + (size_t)(i & (resizing->entries - 1)) * resizing->entry_size +
		resizing->entry_size - 32;
	memset(entry, 0, 31);
	entry[31] = 0x16 | (i & resizing->entries ? 0x80 : 0);

	resizing->entries = field_get(cmd, 20, 4) + 1;
	resizing->buf = (uint8_t *)(uintptr_t)field_get(cmd, 24, 8);
	for (n = resizing->producer; n < resizing->producer + resizing->entries; ++n) {
		p = n & (resizing->entries - 1);
		memset(resizing->buf + (size_t)p * resizing->entry_size, 0x4c,
		       resizing->entry_size);
		resizing->buf[(size_t)(p + 1) * resizing->entry_size - 1] =
			n & resizing->entries ? 0x4c : 0xcc;
	}
}

static void resize_once(uint32_t cqe_size, int from, int to, uint32_t start, uint32_t waiting)
{
	uint32_t index = 0, i;
	struct dev_qp qp;
	int ret;

	fk.cqe_size = cqe_size;
	dev_create_cq(&cq, ctx, from);
	create(&qp, IBV_QPT_RC, cq.cq, cq.cq, NULL);
	turn(&cq, &qp, &index, start);
	for (i = 0; i < waiting; ++i) {
		post_send(&qp, 1000 + i);
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num,
							.wqe_index = index++,
							.sr_opcode = 0x4a});
	}

	fk.count[IB_USER_VERBS_CMD_RESIZE_CQ] = 0;
	resizing = &cq;
	fk.hook = on_resize;
	ret = ibv_resize_cq(cq.cq, to);
	fk.hook = NULL;
	if ((uint32_t)to < waiting) {
		assert_int_equal(ret, EINVAL);
		assert_int_equal(fk.count[IB_USER_VERBS_CMD_RESIZE_CQ], 0);
		assert_int_equal(cq.cq->cqe, from);
	} else {
		assert_int_equal(ret, 0);
		assert_int_equal(fk.count[IB_USER_VERBS_CMD_RESIZE_CQ], from == to ? 0 : 1);
		assert_int_equal(cq.cq->cqe, to);
		/* The marker is consumed, nothing else. */
		assert_int_equal(be32_at(cq.db, 0), cq.producer - waiting);
	}

	/* More arrive, as many as there is room for. */
	for (i = waiting; i < (uint32_t)cq.cq->cqe; ++i) {
		post_send(&qp, 1000 + i);
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num,
							.wqe_index = index++,
							.sr_opcode = 0x4a});
	}
	for (i = 0; i < (uint32_t)cq.cq->cqe; ++i)
		expect(&cq, 1000 + i);
	expect_empty(&cq);
	turn(&cq, &qp, &index, 3 * cq.entries + 1);
	expect_empty(&cq);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

static void resize_all(uint32_t cqe_size)
{
	static const int sizes[] = {1, 3, 7, 15};
	uint32_t start, waiting;
	unsigned int f, t;

	for (f = 0; f < 4; ++f)
		for (t = 0; t < 4; ++t)
			for (start = 0; start <= 2 * (uint32_t)sizes[f] + 2; ++start)
				for (waiting = 0; waiting <= (uint32_t)sizes[f]; ++waiting)
					resize_once(cqe_size, sizes[f], sizes[t], start, waiting);
}

static void resize_32(void **state)
{
	(void)state;
	resize_all(32);
}

static void resize_64(void **state)
{
	(void)state;
	resize_all(64);
}

/* Every last entry is in use: counting ends all the same, and a kernel's refusal changes nothing.
 */
static void resize_full(void **state)
{
	uint32_t index = 0, i, start;
	struct dev_qp qp;
	int mapped;

	(void)state;
	fk.cqe_size = 32;
	for (start = 0; start < 9; ++start) {
		index = 0;
		dev_create_cq(&cq, ctx, 7);
		create(&qp, IBV_QPT_RC, cq.cq, cq.cq, NULL);
		turn(&cq, &qp, &index, start);
		for (i = 0; i < 8; ++i) {
			post_send(&qp, 1000 + i);
			dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num,
								.wqe_index = index++,
								.sr_opcode = 0x4a});
		}
		mapped = fk.mapped;
		assert_int_equal(ibv_resize_cq(cq.cq, 3), EINVAL);
		fk.fail_command = IB_USER_VERBS_CMD_RESIZE_CQ;
		fk.fail_errno = EBUSY;
		assert_int_equal(ibv_resize_cq(cq.cq, 15), EBUSY);
		assert_int_equal(fk.mapped, mapped);
		assert_int_equal(cq.cq->cqe, 7);
		for (i = 0; i < 8; ++i)
			expect(&cq, 1000 + i);
		expect_empty(&cq);
		assert_int_equal(ibv_destroy_qp(qp.qp), 0);
		assert_int_equal(ibv_destroy_cq(cq.cq), 0);
	}
}

/*
 * Cleaning
 */

/* 3 QPs, one on an SRQ, and an XRC SRQ: entries of all in turn. Then one goes, from any position of
 * the ring. */
enum victim { GOES_QP, GOES_QP_BY_RESET, GOES_QP_ON_SRQ, GOES_XRC_SRQ, GOES_XRC_QP, VICTIMS };

static void reset(struct dev_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	assert_int_equal(ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE), 0);
}

/* How many receives an SRQ takes until it is full. */
static uint32_t room_of(struct dev_srq *srq)
{
	struct ibv_recv_wr wr = {.wr_id = 9}, *bad;
	uint32_t n = 0;

	while (!ibv_post_srq_recv(srq->srq, &wr, &bad))
		++n;
	return n;
}

static void clean_once(uint32_t cqe_size, enum victim victim, uint32_t start, uint32_t waiting)
{
	struct ibv_recv_wr recv = {0}, *bad;
	struct dev_srq srq, xsrq, other_xsrq;
	struct dev_qp a, b, on_srq, xrc;
	uint32_t ia = 0, ib = 0, ix = 0, i, n;
	uint32_t srq_waiting = 0, xsrq_waiting = 0;
	struct {
		uint64_t id;
		int goes;
	} log[64];
	struct cqe_fields f;
	struct ibv_wc wc;

	fk.cqe_size = cqe_size;
	dev_create_cq(&cq, ctx, 15);
	dev_create_srq(&srq, pd, NULL, NULL, 31, 1);
	/* Numbers that differ in one byte only */
	fk.next_srqn = 0x1240;
	dev_create_srq(&xsrq, pd, domain, cq.cq, 31, 1);
	fk.next_srqn = 0x1340;
	dev_create_srq(&other_xsrq, pd, domain, cq.cq, 31, 1);
	create(&a, IBV_QPT_RC, cq.cq, cq.cq, NULL);
	create(&b, IBV_QPT_RC, cq.cq, cq.cq, NULL);
	create(&on_srq, IBV_QPT_RC, cq.cq, cq.cq, srq.srq);
	create(&xrc, IBV_QPT_XRC, cq.cq, cq.cq, NULL);
	turn(&cq, &b, &ib, start);

	for (i = 0; i < waiting; ++i) {
		f = (struct cqe_fields){.sr_opcode = 1};
		log[i].id = 100 + i;
		recv.wr_id = log[i].id;
		switch ((i * 5 + start) % 8) {
		case 0:
			post_send(&a, log[i].id);
			f.qpn = a.qp->qp_num;
			f.wqe_index = ia++;
			f.sr_opcode = 0x4a;
			log[i].goes = victim == GOES_QP || victim == GOES_QP_BY_RESET;
			break;
		case 1:
			post_recv(&a, log[i].id);
			f.qpn = a.qp->qp_num;
			log[i].goes = victim == GOES_QP || victim == GOES_QP_BY_RESET;
			break;
		case 2:
			post_send(&b, log[i].id);
			f.qpn = b.qp->qp_num;
			f.wqe_index = ib++;
			f.sr_opcode = 0x4a;
			log[i].goes = 0;
			break;
		case 3:
			assert_int_equal(ibv_post_srq_recv(srq.srq, &recv, &bad), 0);
			f.qpn = on_srq.qp->qp_num;
			f.wqe_index = dev_take_srq_wqe(&srq);
			log[i].goes = victim == GOES_QP_ON_SRQ;
			++srq_waiting;
			break;
		case 4:
			assert_int_equal(ibv_post_srq_recv(xsrq.srq, &recv, &bad), 0);
			f.qpn = xrc.qp->qp_num; /* the QP is the far end of its connection */
			f.dw2 = xsrq.srq->xrc_srq_num;
			f.wqe_index = dev_take_srq_wqe(&xsrq);
			log[i].goes = victim == GOES_XRC_SRQ;
			++xsrq_waiting;
			break;
		case 5:
			assert_int_equal(ibv_post_srq_recv(other_xsrq.srq, &recv, &bad), 0);
			f.qpn = 0x800099;
			f.dw2 = other_xsrq.srq->xrc_srq_num;
			f.wqe_index = dev_take_srq_wqe(&other_xsrq);
			log[i].goes = 0;
			break;
		case 6:
			post_send(&xrc, log[i].id);
			f.qpn = xrc.qp->qp_num;
			f.wqe_index = ix++;
			f.sr_opcode = 0x4a;
			log[i].goes = victim == GOES_XRC_QP;
			break;
		case 7:
			/* A send whose second word looks like an SRQ's number */
			post_send(&b, log[i].id);
			f.qpn = b.qp->qp_num;
			f.dw2 = xsrq.srq->xrc_srq_num;
			f.wqe_index = ib++;
			f.sr_opcode = 0x4a;
			log[i].goes = 0;
			break;
		}
		dev_write_cqe(&cq, &f);
	}

	switch (victim) {
	case GOES_QP:
		assert_int_equal(ibv_destroy_qp(a.qp), 0);
		break;
	case GOES_QP_BY_RESET:
		reset(&a);
		assert_int_equal(be32_at(a.db, 0), 0);
		break;
	case GOES_QP_ON_SRQ:
		assert_int_equal(ibv_destroy_qp(on_srq.qp), 0);
		assert_int_equal(room_of(&srq), 31);
		break;
	case GOES_XRC_SRQ:
		assert_int_equal(ibv_destroy_srq(xsrq.srq), 0);
		break;
	case GOES_XRC_QP:
		assert_int_equal(ibv_destroy_qp(xrc.qp), 0);
		break;
	default:
		break;
	}

	/* Dropped entries are room for the device at once. */
	for (i = n = 0; i < waiting; ++i)
		n += log[i].goes;
	if (n)
		assert_int_equal(be32_at(cq.db, 0), (cq.producer - (waiting - n)) & 0xffffff);
	for (i = 0; i < waiting; ++i)
		if (!log[i].goes)
			expect(&cq, log[i].id);
	assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 0);

	if (victim == GOES_QP_BY_RESET) {
		/* Counts begin again; the QP is as new. */
		dev_init_qp(&a);
		ia = 0;
		turn(&cq, &a, &ia, 3);
		for (i = 0; i < 64; ++i)
			post_recv(&a, i);
		assert_int_equal(be32_at(a.db, 0), 64);
	}
	turn(&cq, &b, &ib, 40);

	if (victim != GOES_QP)
		assert_int_equal(ibv_destroy_qp(a.qp), 0);
	if (victim != GOES_QP_ON_SRQ)
		assert_int_equal(ibv_destroy_qp(on_srq.qp), 0);
	if (victim != GOES_XRC_QP)
		assert_int_equal(ibv_destroy_qp(xrc.qp), 0);
	if (victim != GOES_XRC_SRQ)
		assert_int_equal(ibv_destroy_srq(xsrq.srq), 0);
	assert_int_equal(ibv_destroy_qp(b.qp), 0);
	assert_int_equal(ibv_destroy_srq(srq.srq), 0);
	assert_int_equal(ibv_destroy_srq(other_xsrq.srq), 0);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

static void clean_all(uint32_t cqe_size)
{
	uint32_t start, waiting;
	int victim;

	for (victim = 0; victim < VICTIMS; ++victim)
		for (start = 0; start < 34; ++start)
			for (waiting = 0; waiting <= 16; ++waiting)
				clean_once(cqe_size, victim, start, waiting);
}

static void clean_32(void **state)
{
	(void)state;
	clean_all(32);
}

static void clean_64(void **state)
{
	(void)state;
	clean_all(64);
}

/* Two queues: the sends' and the receives'. */
static void two_cqs(void **state)
{
	struct dev_cq scq, rcq;
	struct dev_qp a, b;

	(void)state;
	fk.cqe_size = 32;
	dev_create_cq(&rcq, ctx, 7);
	dev_create_cq(&scq, ctx, 7);
	create(&a, IBV_QPT_RC, scq.cq, rcq.cq, NULL);
	create(&b, IBV_QPT_RC, rcq.cq, scq.cq, NULL);
	post_send(&a, 1);
	post_recv(&a, 2);
	post_send(&b, 3);
	post_recv(&b, 4);
	dev_write_cqe(&scq, &(struct cqe_fields){.qpn = a.qp->qp_num, .sr_opcode = 0x4a});
	dev_write_cqe(&scq, &(struct cqe_fields){.qpn = b.qp->qp_num, .sr_opcode = 1});
	dev_write_cqe(&rcq, &(struct cqe_fields){.qpn = a.qp->qp_num, .sr_opcode = 1});
	dev_write_cqe(&rcq, &(struct cqe_fields){.qpn = b.qp->qp_num, .sr_opcode = 0x4a});
	assert_int_equal(ibv_destroy_qp(a.qp), 0);
	expect(&scq, 4);
	expect(&rcq, 3);
	expect_empty(&scq);
	expect_empty(&rcq);
	assert_int_equal(ibv_destroy_qp(b.qp), 0);
	assert_int_equal(ibv_destroy_cq(scq.cq), 0);
	assert_int_equal(ibv_destroy_cq(rcq.cq), 0);
}

/* A kernel that refuses loses nothing: completions, table entry and SRQ links stay. */
static void refused_destroy(void **state)
{
	struct ibv_recv_wr recv = {.wr_id = 5}, *bad;
	struct dev_srq xsrq;
	struct dev_qp a;
	int i;

	(void)state;
	fk.cqe_size = 32;
	dev_create_cq(&cq, ctx, 7);
	create(&a, IBV_QPT_RC, cq.cq, cq.cq, NULL);
	dev_create_srq(&xsrq, pd, domain, cq.cq, 3, 1);
	for (i = 0; i < 2; ++i) {
		post_recv(&a, 4);
		assert_int_equal(ibv_post_srq_recv(xsrq.srq, &recv, &bad), 0);
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = a.qp->qp_num, .sr_opcode = 1});
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = 0x800055,
							.dw2 = xsrq.srq->xrc_srq_num,
							.wqe_index = dev_take_srq_wqe(&xsrq),
							.sr_opcode = 1});
		fk.fail_command = IB_USER_VERBS_CMD_DESTROY_QP;
		fk.fail_errno = EBUSY;
		assert_int_equal(ibv_destroy_qp(a.qp), EBUSY);
		fk.fail_command = IB_USER_VERBS_CMD_DESTROY_SRQ;
		fk.fail_errno = EBUSY;
		assert_int_equal(ibv_destroy_srq(xsrq.srq), EBUSY);
		fk.fail_command = IB_USER_VERBS_CMD_DESTROY_CQ;
		fk.fail_errno = EBUSY;
		assert_int_equal(ibv_destroy_cq(cq.cq), EBUSY);
		fk.fail_command = IB_USER_VERBS_CMD_MODIFY_QP;
		fk.fail_errno = EINVAL;
		assert_int_equal(ibv_modify_qp(a.qp,
					       &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET},
					       IBV_QP_STATE),
				 EINVAL);
		expect(&cq, 4);
		expect(&cq, 5);
	}
	assert_int_equal(ibv_destroy_qp(a.qp), 0);
	assert_int_equal(ibv_destroy_srq(xsrq.srq), 0);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

/* A number that comes back belongs to its new owner, also for a queue that remembers the old one.
 */
static void numbers_come_back(void **state)
{
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad;
	struct dev_srq xsrq, between_srq[3];
	struct dev_qp qp, between[3];
	struct ibv_wc wc;
	int i;

	(void)state;
	fk.cqe_size = 32;
	dev_create_cq(&cq, ctx, 7);
	for (i = 0; i < 3; ++i) {
		/* Someone else may get the memory. */
		fk.next_qpn = 0x1000 + i;
		create(&between[i], IBV_QPT_RC, cq.cq, cq.cq, NULL);
		fk.next_qpn = 0x100;
		create(&qp, IBV_QPT_RC, cq.cq, cq.cq, NULL);
		post_send(&qp, 20 + i);
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = 0x100, .sr_opcode = 0x4a});
		expect(&cq, 20 + i);
		assert_int_equal(ibv_destroy_qp(qp.qp), 0);

		fk.next_srqn = 0x2000 + i;
		dev_create_srq(&between_srq[i], pd, domain, cq.cq, 3, 1);
		fk.next_srqn = 0x200;
		dev_create_srq(&xsrq, pd, domain, cq.cq, 3, 1);
		recv.wr_id = 30 + i;
		assert_int_equal(ibv_post_srq_recv(xsrq.srq, &recv, &bad), 0);
		dev_write_cqe(&cq,
			      &(struct cqe_fields){.qpn = 0x800001, .dw2 = 0x200, .sr_opcode = 1});
		expect(&cq, 30 + i);
		assert_int_equal(ibv_destroy_srq(xsrq.srq), 0);
	}
	/* And to nobody while it has none. */
	dev_write_cqe(&cq, &(struct cqe_fields){.qpn = 0x800001, .dw2 = 0x200, .sr_opcode = 1});
	assert_true(ibv_poll_cq(cq.cq, 1, &wc) < 0);
	dev_write_cqe(&cq, &(struct cqe_fields){.qpn = 0x100, .sr_opcode = 0x4a});
	assert_true(ibv_poll_cq(cq.cq, 1, &wc) < 0);
	for (i = 0; i < 3; ++i) {
		assert_int_equal(ibv_destroy_qp(between[i].qp), 0);
		assert_int_equal(ibv_destroy_srq(between_srq[i].srq), 0);
	}
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

/* Entry size is the context's, so each test has its own. */
static int setup(void **state)
{
	const char *size = *state;

	fk_reset();
	fk.driver_abi = 4;
	fk.dev_caps = 1;
	fk.cqe_size = size ? atoi(size) : 32;
	ctx = fk_open();
	if (!ctx)
		return -1;
	pd = ibv_alloc_pd(ctx);
	domain = ibv_open_xrc_domain(ctx, -1, 0);
	return !pd || !domain;
}

static int teardown(void **state)
{
	(void)state;
	return ibv_close_xrc_domain(domain) || ibv_dealloc_pd(pd) || ibv_close_device(ctx);
}

int main(void)
{
#define TEST(test, size)                                                                           \
	{                                                                                          \
#test, test, setup, teardown, size                                                 \
	}
	const struct CMUnitTest tests[] = {
		TEST(resize_32, "32"),	     TEST(resize_64, "64"),	    TEST(resize_full, "32"),
		TEST(clean_32, "32"),	     TEST(clean_64, "64"),	    TEST(two_cqs, "32"),
		TEST(refused_destroy, "32"), TEST(numbers_come_back, "32"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
