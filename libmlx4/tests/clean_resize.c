// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the completions in a CQ survive a resize from any position to any size. When an
 * object is destroyed or reset, only its own completions go, and its SRQ gets the receives back.
 * All this holds for entries of both sizes.
 */
#include <errno.h>

#include "kinds.h"

static struct dev_cq cq;

/* Moves producer and consumer on by n completions that no test looks at. */
static void turn(struct lane *l, uint32_t n)
{
	while (n--) {
		lane_do(l, SENT, 7);
		lane_expect(l, SENT, 7);
	}
}

/*
 * The completions that wait alternate between sends and receives. start says which of them comes
 * first.
 */
static enum event event_at(uint32_t i, uint32_t start)
{
	return (i + start / 2) & 1 ? RECEIVED : SENT;
}

/*
 * Resize
 */

static void resize_once(enum kind kind, int from, int to, uint32_t start, uint32_t waiting)
{
	struct lane l;
	uint32_t i;
	int ret;

	dev_create_cq(&cq, ctx, from);
	lane_open(&l, kind, &cq, &cq);
	turn(&l, start);
	for (i = 0; i < waiting; ++i)
		lane_do(&l, event_at(i, start), 1000 + i);

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
		/* The provider has consumed the marker and nothing else. */
		assert_int_equal(be32_at(cq.db, 0), cq.producer - waiting);
	}

	/* More completions arrive, until the CQ is full. */
	for (i = waiting; i < (uint32_t)cq.cq->cqe; ++i)
		lane_do(&l, event_at(i, start), 1000 + i);
	for (i = 0; i < (uint32_t)cq.cq->cqe; ++i)
		lane_expect(&l, event_at(i, start), 1000 + i);
	expect_empty(&cq);
	turn(&l, 3 * cq.entries + 1);
	expect_empty(&cq);
	lane_close(&l);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

/*
 * Begins at positions so far apart, which are often odd and often even, and with as many
 * completions that wait, none among them. With ROWS=all, as in the long tier, at each and with
 * each; in the quick tier with a few.
 */
static uint32_t positions_apart(void)
{
	const char *rows = getenv("ROWS"), *tier = getenv("TIER");

	if (rows && !strcmp(rows, "all"))
		return 1;
	return tier && !strcmp(tier, "full") ? 3 : 7;
}

static void resize(enum kind kind)
{
	static const int sizes[] = {1, 3, 7, 15};
	uint32_t start, waiting;
	unsigned int f, t;

	for (f = 0; f < 4; ++f)
		for (t = 0; t < 4; ++t)
			for (start = 0; start <= 2 * (uint32_t)sizes[f] + 2;
			     start += positions_apart())
				for (waiting = 0; waiting <= (uint32_t)sizes[f];
				     waiting += positions_apart())
					resize_once(kind, sizes[f], sizes[t], start, waiting);
}

/*
 * All entries are in use. The provider's count of them still comes to an end, and if the kernel
 * refuses the resize, nothing changes.
 */
static void resize_full(enum kind kind)
{
	struct lane l;
	uint32_t i, start;
	int mapped;

	for (start = 0; start < 9; ++start) {
		dev_create_cq(&cq, ctx, 7);
		lane_open(&l, kind, &cq, &cq);
		turn(&l, start);
		for (i = 0; i < 8; ++i)
			lane_do(&l, event_at(i, start), 1000 + i);
		mapped = fk.mapped;
		assert_int_equal(ibv_resize_cq(cq.cq, 3), EINVAL);
		fk.fail_command = IB_USER_VERBS_CMD_RESIZE_CQ;
		fk.fail_errno = EBUSY;
		assert_int_equal(ibv_resize_cq(cq.cq, 15), EBUSY);
		assert_int_equal(fk.mapped, mapped);
		assert_int_equal(cq.cq->cqe, 7);
		for (i = 0; i < 8; ++i)
			lane_expect(&l, event_at(i, start), 1000 + i);
		expect_empty(&cq);
		lane_close(&l);
		assert_int_equal(ibv_destroy_cq(cq.cq), 0);
	}
}

/*
 * Cleaning
 */

/* What goes. Receives through an XRC SRQ belong to the SRQ, all others to the QP. */
enum victim { QP_DESTROYED, QP_RESET, SRQ_DESTROYED };

static int goes(enum victim victim, enum kind kind, enum event e)
{
	if (is_xrc(kind) && is_recv(e))
		return victim == SRQ_DESTROYED;
	return victim != SRQ_DESTROYED;
}

/* Returns how many receives the SRQ takes until it is full. */
static uint32_t room_of(struct dev_srq *srq)
{
	struct ibv_recv_wr wr = {.wr_id = 9}, *bad;
	uint32_t n = 0;

	while (!ibv_post_srq_recv(srq->srq, &wr, &bad))
		++n;
	return n;
}

static void make_victim(struct lane *l, enum victim victim, uint32_t xrc_left)
{
	switch (victim) {
	case QP_DESTROYED:
		lane_destroy_qp(l);
		break;
	case QP_RESET:
		lane_reset_qp(l);
		if (!l->srq)
			assert_int_equal(be32_at(l->qp.db, 0), 0);
		break;
	case SRQ_DESTROYED:
		lane_destroy_srq(l);
		break;
	}
	/*
	 * The SRQ got the receives of dropped completions back. A completion that waits still holds
	 * its place.
	 */
	if (l->own_srq.srq)
		assert_int_equal(room_of(&l->own_srq), LANE_RECVS - xrc_left);
}

/*
 * The CQ has entries of the victim, which is of this kind, and of one more QP of each kind, on an
 * SRQ of its own where the kind has one. They come in turn, the victim's more often. Then the
 * victim goes, from each position of the ring.
 */
static void clean_once(enum kind kind, enum victim victim, uint32_t start, uint32_t waiting)
{
	enum { OTHERS = KINDS };
	struct lane l[1 + OTHERS];
	struct {
		const struct lane *lane;
		enum event event;
		int goes;
	} log[16];
	uint32_t i, n = 0, which, xrc_left = 0;
	struct ibv_wc wc;

	dev_create_cq(&cq, ctx, 15);
	for (i = 0; i < 1 + OTHERS; ++i) {
		/* The numbers differ in one byte only. */
		fk.next_srqn = 0x1240 + (i << 8);
		fk.next_qpn = 0x1240 + (i << 8);
		lane_open(&l[i], i ? i - 1 : kind, &cq, &cq);
	}
	turn(&l[1], start);

	for (i = 0; i < waiting; ++i) {
		which = (i * 5 + start) % (3 + 2 * OTHERS);
		which = which < 4 ? 0 : which / 2 - 1;
		log[i].lane = &l[which];
		log[i].event = (i * 3 + start / 3) & 1 ? RECEIVED : SENT;
		log[i].goes = !which && goes(victim, kind, log[i].event);
		n += log[i].goes;
		if (!which && is_xrc(kind) && is_recv(log[i].event))
			++xrc_left;
		lane_do(&l[which], log[i].event, 100 + i);
	}

	make_victim(&l[0], victim, xrc_left);

	/* The device can use the dropped entries at once. */
	if (n)
		assert_int_equal(be32_at(cq.db, 0), (cq.producer - (waiting - n)) & 0xffffff);
	for (i = 0; i < waiting; ++i)
		if (!log[i].goes)
			lane_expect(log[i].lane, log[i].event, 100 + i);
	assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 0);

	if (victim == QP_RESET && !l[0].srq) {
		/* The counts begin again, as for a new QP. */
		for (i = 0; i < LANE_RECVS; ++i)
			lane_post_recv(&l[0], i);
		assert_int_equal(be32_at(l[0].qp.db, 0), LANE_RECVS);
	}
	if (victim == QP_RESET)
		turn(&l[0], 3);
	turn(&l[1], 40);

	for (i = 0; i < 1 + OTHERS; ++i)
		lane_close(&l[i]);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

static void clean_all(enum kind kind, enum victim victim)
{
	static const uint32_t waiting[] = {0, 1, 2, 7, 15, 16};
	uint32_t start;
	size_t i;

	for (start = 0; start < 34; ++start)
		for (i = 0; i < sizeof(waiting) / sizeof(waiting[0]); ++i)
			clean_once(kind, victim, start, waiting[i]);
}

static void destroyed(enum kind kind)
{
	clean_all(kind, QP_DESTROYED);
}

static void reset(enum kind kind)
{
	clean_all(kind, QP_RESET);
}

static void srq_destroyed(enum kind kind)
{
	clean_all(kind, SRQ_DESTROYED);
}

/*
 * A QP and an SRQ have the same number. When one of them goes, the completions of the other stay.
 */
static void same_number(enum kind kind)
{
	struct lane l, other;
	int srq_goes;

	for (srq_goes = 0; srq_goes < 2; ++srq_goes) {
		dev_create_cq(&cq, ctx, 15);
		lane_open(&l, kind, &cq, &cq);
		fk.next_srqn = l.qp.qp->qp_num;
		lane_open(&other, KIND_XRC_RCV_QP, &cq, &cq);
		lane_do(&l, SENT, 1);
		lane_do(&other, RECEIVED, 2);
		lane_do(&l, RECEIVED, 3);
		lane_do(&other, SENT, 4);
		lane_do(&other, RECEIVED, 5);
		lane_do(&l, SENT, 6);
		if (srq_goes) {
			lane_destroy_srq(&other);
			lane_expect(&l, SENT, 1);
			lane_expect(&l, RECEIVED, 3);
			lane_expect(&other, SENT, 4);
			lane_expect(&l, SENT, 6);
		} else {
			lane_destroy_qp(&l);
			lane_expect(&other, RECEIVED, 2);
			if (is_xrc(kind))
				lane_expect(&l, RECEIVED, 3);
			lane_expect(&other, SENT, 4);
			lane_expect(&other, RECEIVED, 5);
		}
		expect_empty(&cq);
		lane_close(&l);
		lane_close(&other);
		assert_int_equal(ibv_destroy_cq(cq.cq), 0);
	}
}

/*
 * A QP of XRC is gone. Receive completions with its number still wait in the CQ of the SRQ, and
 * more of them arrive: a peer's QP was connected to it, or the number belongs to another QP by now.
 */
static void receives_outlive_qp(enum kind kind)
{
	struct lane l;
	int after_send, i;

	for (after_send = 0; after_send < 2; ++after_send) {
		dev_create_cq(&cq, ctx, 15);
		lane_open(&l, kind, &cq, &cq);
		if (after_send)
			turn(&l, 1);
		for (i = 0; i < 4; ++i)
			lane_do(&l, RECEIVED, i);
		lane_do(&l, SENT, 7);
		lane_expect(&l, RECEIVED, 0);
		lane_destroy_qp(&l);
		for (i = 4; i < 10; ++i)
			lane_do(&l, i & 1 ? RECEIVED : RECV_FLUSHED, i);
		for (i = 1; i < 10; ++i)
			lane_expect(&l, i < 4 || i & 1 ? RECEIVED : RECV_FLUSHED, i);
		expect_empty(&cq);
		assert_int_equal(room_of(&l.own_srq), LANE_RECVS);
		lane_close(&l);
		assert_int_equal(ibv_destroy_cq(cq.cq), 0);
	}
}

/* The QP has two CQs: one for sends, one for receives. */
static void two_cqs(enum kind kind)
{
	struct dev_cq scq, rcq;
	struct lane a, b;
	int other, round;

	for (other = 0; other < KINDS; ++other) {
		dev_create_cq(&rcq, ctx, 7);
		dev_create_cq(&scq, ctx, 7);
		lane_open(&a, kind, &scq, &rcq);
		lane_open(&b, other, &rcq, &scq);
		for (round = 0; round < 2; ++round) {
			lane_do(&a, SENT, 1);
			lane_do(&a, RECEIVED, 2);
			lane_do(&b, SENT, 3);
			lane_do(&b, RECEIVED, 4);
			if (round)
				break;
			lane_expect(&a, SENT, 1);
			lane_expect(&b, RECEIVED, 4);
			lane_expect(&a, RECEIVED, 2);
			lane_expect(&b, SENT, 3);
		}
		lane_destroy_qp(&a);
		lane_expect(&b, RECEIVED, 4);
		if (is_xrc(kind))
			lane_expect(&a, RECEIVED, 2);
		lane_expect(&b, SENT, 3);
		expect_empty(&scq);
		expect_empty(&rcq);
		lane_close(&a);
		lane_close(&b);
		assert_int_equal(ibv_destroy_cq(scq.cq), 0);
		assert_int_equal(ibv_destroy_cq(rcq.cq), 0);
	}
}

static void refuse_next(int command, int err)
{
	fk.fail_command = command;
	fk.fail_errno = err;
}

/*
 * If the kernel refuses to destroy an object, the provider keeps its completions, its entry in the
 * table and the links of its SRQ.
 */
static void refused_destroy(enum kind kind)
{
	struct ibv_qp_attr to_reset = {.qp_state = IBV_QPS_RESET};
	struct lane l;
	int i;

	dev_create_cq(&cq, ctx, 7);
	lane_open(&l, kind, &cq, &cq);
	for (i = 0; i < 2; ++i) {
		lane_do(&l, SENT, 4);
		lane_do(&l, RECEIVED, 5);
		refuse_next(IB_USER_VERBS_CMD_DESTROY_QP, EBUSY);
		assert_int_equal(ibv_destroy_qp(l.qp.qp), EBUSY);
		if (l.srq) {
			refuse_next(IB_USER_VERBS_CMD_DESTROY_SRQ, EBUSY);
			assert_int_equal(ibv_destroy_srq(l.srq->srq), EBUSY);
		}
		refuse_next(IB_USER_VERBS_CMD_DESTROY_CQ, EBUSY);
		assert_int_equal(ibv_destroy_cq(cq.cq), EBUSY);
		refuse_next(IB_USER_VERBS_CMD_MODIFY_QP, EINVAL);
		assert_int_equal(ibv_modify_qp(l.qp.qp, &to_reset, IBV_QP_STATE), EINVAL);
		lane_expect(&l, SENT, 4);
		lane_expect(&l, RECEIVED, 5);
	}
	lane_close(&l);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

/*
 * When the kernel gives a number out again, the number belongs to its new object, even for a CQ
 * that remembers the old one.
 */
static void numbers_given_out_again(enum kind kind)
{
	struct lane l, between[3];
	struct cqe_fields f[2];
	struct ibv_wc wc;
	int i;

	dev_create_cq(&cq, ctx, 7);
	for (i = 0; i < 3; ++i) {
		/* Another object may get the memory of the old one. */
		fk.next_qpn = 0x1000 + 2 * i;
		fk.next_srqn = 0x2000 + i;
		lane_open(&between[i], kind, &cq, &cq);
		fk.next_qpn = 0x100;
		fk.next_srqn = 0x200;
		lane_open(&l, kind, &cq, &cq);
		lane_do(&l, SENT, 20 + i);
		lane_expect(&l, SENT, 20 + i);
		lane_do(&l, RECEIVED, 30 + i);
		lane_expect(&l, RECEIVED, 30 + i);
		f[0] = (struct cqe_fields){.qpn = l.qp.qp->qp_num, .sr_opcode = 0x4a};
		f[1] = (struct cqe_fields){.qpn = l.recv_qpn, .dw2 = 0x200, .sr_opcode = 1};
		lane_close(&l);
	}
	/* A number without an object belongs to nothing. */
	for (i = 0; i < 2; ++i) {
		dev_write_cqe(&cq, &f[i]);
		assert_true(ibv_poll_cq(cq.cq, 1, &wc) < 0);
	}
	for (i = 0; i < 3; ++i)
		lane_close(&between[i]);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

#define NO_XRC_SRQ   "it has no SRQ that can be destroyed before its QP"
#define QPS_RECEIVES "its receives go with the QP, as the case destroyed shows"

int main(void)
{
	static const struct kind_case cases[] = {
		{.name = "resize", .run = resize},
		{.name = "resize_full", .run = resize_full},
		{.name = "destroyed", .run = destroyed},
		{.name = "reset", .run = reset},
		{.name = "srq_destroyed",
		 .run = srq_destroyed,
		 .left_out = {{NO_XRC_SRQ, KIND_RC},
			      {NO_XRC_SRQ, KIND_UC},
			      {NO_XRC_SRQ, KIND_UD},
			      {NO_XRC_SRQ, KIND_RC_SRQ},
			      {NO_XRC_SRQ, KIND_UC_SRQ},
			      {NO_XRC_SRQ, KIND_UD_SRQ}}},
		{.name = "same_number", .run = same_number},
		{.name = "receives_outlive_qp",
		 .run = receives_outlive_qp,
		 .left_out = {{QPS_RECEIVES, KIND_RC},
			      {QPS_RECEIVES, KIND_UC},
			      {QPS_RECEIVES, KIND_UD},
			      {QPS_RECEIVES, KIND_RC_SRQ},
			      {QPS_RECEIVES, KIND_UC_SRQ},
			      {QPS_RECEIVES, KIND_UD_SRQ}}},
		{.name = "two_cqs", .run = two_cqs},
		{.name = "refused_destroy", .run = refused_destroy},
		{.name = "numbers_given_out_again", .run = numbers_given_out_again},
	};

	return run_kinds("clean_resize", cases, sizeof(cases) / sizeof(cases[0]));
}
