// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: QPs of any kind send and receive on a CQ, alone or beside QPs of any other kind. In
 * every order and in batches of every size, each completion has the values of its own request; also
 * with errors, and after an entry that belongs to no object.
 */
#include <errno.h>

#include "kinds.h"

static struct dev_cq cq;

static void sends(enum kind kind)
{
	static const struct {
		uint8_t code;
		enum ibv_wc_opcode opcode;
		int flags;
		uint32_t length; /* 0: not checked */
	} v[] = {
		{0x0a, IBV_WC_SEND, 0, 0},
		{0x0b, IBV_WC_SEND, IBV_WC_WITH_IMM, 0},
		{0x08, IBV_WC_RDMA_WRITE, 0, 0},
		{0x09, IBV_WC_RDMA_WRITE, IBV_WC_WITH_IMM, 0},
		{0x10, IBV_WC_RDMA_READ, 0, LANE_LENGTH},
		{0x11, IBV_WC_COMP_SWAP, 0, 8},
		{0x12, IBV_WC_FETCH_ADD, 0, 8},
		{0x18, IBV_WC_BIND_MW, 0, 0},
		{0x00, IBV_WC_SEND, 0, 0},
	};
	struct ibv_wc wc;
	struct lane l;
	size_t i;

	dev_create_cq(&cq, ctx, 15);
	lane_open(&l, kind, &cq, &cq);
	for (i = 0; i < sizeof(v) / sizeof(v[0]); ++i) {
		lane_post_send(&l, 100 + i);
		lane_cqe(&l, 1, v[i].code, 0);
		memset(&wc, 0xee, sizeof(wc));
		assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, 100 + i);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, v[i].opcode);
		assert_int_equal(wc.wc_flags, v[i].flags);
		assert_int_equal(wc.qp_num, l.qp.qp->qp_num);
		if (v[i].length)
			assert_int_equal(wc.byte_len, v[i].length);
	}
	lane_close(&l);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

/* A completion retires the unsignalled requests before it, too. */
static void unsignalled(enum kind kind)
{
	struct lane l;
	int round, i;

	dev_create_cq(&cq, ctx, 15);
	lane_open(&l, kind, &cq, &cq);
	for (round = 0; round < 20; ++round) {
		for (i = 0; i < 10; ++i)
			lane_post_send(&l, 200 + i);
		l.sent += 6;
		lane_cqe(&l, 1, 0x0a, 0);
		lane_expect(&l, SENT, 206);
		lane_do(&l, RECEIVED, 300);
		lane_expect(&l, RECEIVED, 300);
		l.sent += 2;
		lane_cqe(&l, 1, 0x0a, 0);
		lane_expect(&l, SENT, 209);
	}
	lane_close(&l);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

/* The fields that only UD has are checked in poll.c. */
static void receives(enum kind kind)
{
	static const struct {
		uint8_t code;
		enum ibv_wc_opcode opcode;
		int flags;
	} v[] = {{0, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM},
		 {1, IBV_WC_RECV, 0},
		 {2, IBV_WC_RECV, IBV_WC_WITH_IMM},
		 {3, IBV_WC_RECV, 0}};
	struct ibv_wc wc;
	struct lane l;
	size_t i;
	int after_send;

	dev_create_cq(&cq, ctx, 15);
	lane_open(&l, kind, &cq, &cq);
	for (after_send = 0; after_send < 2; ++after_send) {
		for (i = 0; i < 4; ++i) {
			if (after_send) {
				lane_do(&l, SENT, 7);
				lane_expect(&l, SENT, 7);
			}
			lane_post_recv(&l, 300 + i);
			lane_cqe(&l, 0, v[i].code, 0);
			memset(&wc, 0xee, sizeof(wc));
			assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
			assert_int_equal(wc.wr_id, 300 + i);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, v[i].opcode);
			assert_int_equal(wc.wc_flags, v[i].flags);
			assert_int_equal(wc.byte_len, LANE_LENGTH);
			/* The immediate data is as it was in the entry. */
			assert_int_equal(be32_at(&wc.imm_data, 0), LANE_IMM);
			assert_int_equal(wc.qp_num, l.recv_qpn);
			assert_int_equal(wc.src_qp, is_xrc(kind) ? l.srq->srq->xrc_srq_num : 0);
			assert_int_equal(wc.slid, 0);
			assert_int_equal(wc.sl, 0);
			assert_int_equal(wc.dlid_path_bits, 0);
		}
	}
	lane_close(&l);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

static void errors(enum kind kind)
{
	static const struct {
		uint8_t syndrome;
		enum ibv_wc_status status;
	} v[] = {
		{0x01, IBV_WC_LOC_LEN_ERR},    {0x02, IBV_WC_LOC_QP_OP_ERR},
		{0x04, IBV_WC_LOC_PROT_ERR},   {0x05, IBV_WC_WR_FLUSH_ERR},
		{0x06, IBV_WC_MW_BIND_ERR},    {0x10, IBV_WC_BAD_RESP_ERR},
		{0x11, IBV_WC_LOC_ACCESS_ERR}, {0x12, IBV_WC_REM_INV_REQ_ERR},
		{0x13, IBV_WC_REM_ACCESS_ERR}, {0x14, IBV_WC_REM_OP_ERR},
		{0x15, IBV_WC_RETRY_EXC_ERR},  {0x16, IBV_WC_RNR_RETRY_EXC_ERR},
		{0x22, IBV_WC_REM_ABORT_ERR},  {0x03, IBV_WC_GENERAL_ERR},
		{0x20, IBV_WC_GENERAL_ERR},    {0x21, IBV_WC_GENERAL_ERR},
		{0x23, IBV_WC_GENERAL_ERR},    {0x24, IBV_WC_GENERAL_ERR},
		{0xff, IBV_WC_GENERAL_ERR},    {0x00, IBV_WC_GENERAL_ERR},
	};
	struct ibv_wc wc;
	struct lane l;
	size_t i;
	int is_send;

	dev_create_cq(&cq, ctx, 15);
	lane_open(&l, kind, &cq, &cq);
	for (i = 0; i < sizeof(v) / sizeof(v[0]); ++i) {
		for (is_send = 0; is_send < 2; ++is_send) {
			if (is_send)
				lane_post_send(&l, 500);
			else
				lane_post_recv(&l, 501);
			lane_cqe(&l, is_send, 0x1e, v[i].syndrome);
			assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
			assert_int_equal(wc.wr_id, is_send ? 500 : 501);
			assert_int_equal(wc.status, v[i].status);
			assert_int_equal(wc.vendor_err, 0xf9);
			assert_int_equal(wc.qp_num, is_send ? l.qp.qp->qp_num : l.recv_qpn);
		}
	}
	lane_close(&l);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

/* A completion that poll_batches() expects. It polls n of them in batches of want. */
struct expected {
	const struct lane *lane;
	enum event event;
	uint64_t id;
};

static void poll_batches(const struct expected *log, int n, int want)
{
	struct ibv_wc wc[72];
	int total, got, k;

	for (total = 0; total < n; total += got) {
		/*
		 * The end of the ring does not cut a batch short, and poll_cq writes nothing behind
		 * the batch.
		 */
		memset(wc, 0xee, sizeof(wc[0]) * (want + 1));
		got = ibv_poll_cq(cq.cq, want, wc);
		assert_int_equal(got, want < n - total ? want : n - total);
		for (k = 0; k < got; ++k)
			lane_check(log[total + k].lane, log[total + k].event, log[total + k].id,
				   &wc[k]);
		assert_int_equal(wc[got].qp_num, 0xeeeeeeee);
	}
	expect_empty(&cq);
}

/* Sends and receives of one QP, as if it were connected to itself. */
static void every_order(enum kind kind)
{
	enum { LENGTH = 8 };
	static const enum event events[2][2] = {{SENT, RECEIVED}, {SEND_FLUSHED, RECV_FLUSHED}};
	struct expected log[LENGTH];
	uint32_t order;
	struct lane l;
	int want, i;

	dev_create_cq(&cq, ctx, 15);
	lane_open(&l, kind, &cq, &cq);
	for (want = 1; want <= LENGTH + 1; ++want) {
		for (order = 0; order < 2 << LENGTH; ++order) {
			for (i = 0; i < LENGTH; ++i) {
				log[i] = (struct expected){
					&l, events[order >> LENGTH & (i == 3)][order >> i & 1],
					order * 16 + i};
				lane_do(&l, log[i].event, log[i].id);
			}
			poll_batches(log, LENGTH, want);
		}
	}
	lane_close(&l);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

/*
 * Two QPs. The second is of each kind in turn, and at last one on the same SRQ as the first, if
 * that has an SRQ.
 */
static void every_order_of_two(enum kind kind)
{
	enum { LENGTH = 4 };
	struct expected log[LENGTH];
	struct lane l[2];
	uint32_t order;
	int other, want, i;

	dev_create_cq(&cq, ctx, 15);
	lane_open(&l[0], kind, &cq, &cq);
	for (other = 0; other <= KINDS; ++other) {
		if (other < KINDS)
			lane_open(&l[1], other, &cq, &cq);
		else
			lane_open_beside(&l[1], &l[0]);
		for (want = 1; want <= LENGTH; ++want) {
			for (order = 0; order < 1 << 2 * LENGTH; ++order) {
				for (i = 0; i < LENGTH; ++i) {
					log[i] = (struct expected){&l[order >> 2 * i & 1],
								   order >> 2 * i & 2 ? SENT
										      : RECEIVED,
								   order * 16 + i};
					lane_do((struct lane *)log[i].lane, log[i].event,
						log[i].id);
				}
				poll_batches(log, LENGTH, want);
			}
		}
		lane_close(&l[1]);
	}
	lane_close(&l[0]);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

/*
 * QPs of all kinds, two of them of this kind, and all events, on one CQ. The batch sizes go up to
 * one more than there are completions.
 */
static void large_batches(enum kind kind)
{
	enum { MOST = 63 };
	struct expected log[MOST];
	struct lane l[KINDS + 1];
	uint32_t random = 12345 + kind;
	int want, i, n, which;

	dev_create_cq(&cq, ctx, MOST);
	for (i = 0; i < KINDS; ++i)
		lane_open(&l[i], i, &cq, &cq);
	lane_open_beside(&l[KINDS], &l[kind]);
	for (want = 1; want <= MOST + 1; ++want) {
		for (n = MOST; n > MOST - 5; --n) {
			for (i = 0; i < n; ++i) {
				random = random * 1664525 + 1013904223;
				which = random >> 28 < KINDS ? (int)(random >> 28)
					: random >> 27 & 1   ? (int)kind
							     : KINDS;
				log[i] = (struct expected){&l[which], (random >> 8) % EVENTS,
							   random};
				lane_do(&l[which], log[i].event, log[i].id);
			}
			poll_batches(log, n, want);
		}
	}
	for (i = KINDS; i >= 0; --i)
		lane_close(&l[i]);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

/*
 * Runs of one direction begin at every place of the ring. So the end of the ring falls on every
 * place of a run and of a batch.
 */
static void runs(enum kind kind)
{
	struct expected log[15];
	int want, start, i;
	enum event e;
	struct lane l;

	dev_create_cq(&cq, ctx, 15);
	lane_open(&l, kind, &cq, &cq);
	for (e = SENT; e <= RECEIVED; ++e) {
		for (want = 1; want <= 15; ++want) {
			for (start = 0; start < 16; ++start) {
				for (i = 0; i < 15; ++i) {
					log[i] = (struct expected){&l, e, 700 + i};
					lane_do(&l, e, log[i].id);
				}
				poll_batches(log, 15, want);
			}
		}
	}
	lane_close(&l);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

/*
 * The QP receives only through XRC SRQs. A receive completion has the QP's number, in which bit 23
 * is missing, or else the entry names an SRQ that does not exist. No device writes such an entry:
 * poll_cq fails, and no other completion is lost.
 */
static void impossible_receives(enum kind kind)
{
	struct ibv_wc wc[4];
	struct lane l;
	int round, batch;

	dev_create_cq(&cq, ctx, 15);
	lane_open(&l, kind, &cq, &cq);
	for (round = 0; round < 8; ++round) {
		batch = round & 1;
		if (round & 2) {
			lane_do(&l, SENT, 1);
			if (!batch)
				lane_expect(&l, SENT, 1);
		}
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = l.qp.qp->qp_num,
							.sr_opcode = round & 4 ? 0x1e : 1});
		if (round & 2 && batch) {
			assert_int_equal(ibv_poll_cq(cq.cq, 4, wc), 1);
			lane_check(&l, SENT, 1, &wc[0]);
		}
		assert_true(ibv_poll_cq(cq.cq, 4, wc) < 0);
		lane_do(&l, RECEIVED, 2);
		lane_expect(&l, RECEIVED, 2);
		expect_empty(&cq);
	}
	lane_close(&l);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

/*
 * Receives are posted to the QP if its kind has a receive queue, before and after the QP has been
 * used and reset. post_recv accepts exactly as many as were granted; a QP without a receive queue
 * refuses each.
 */
static void receive_queue(enum kind kind)
{
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	int own = kind_info[kind].from == OWN_QUEUE, round, n;
	struct lane l;

	dev_create_cq(&cq, ctx, 15);
	lane_open(&l, kind, &cq, &cq);
	for (round = 0; round < 3; ++round) {
		for (n = 0; n < 5; ++n) {
			lane_do(&l, SENT, n);
			lane_do(&l, RECEIVED, n);
			lane_expect(&l, SENT, n);
			lane_expect(&l, RECEIVED, n);
		}
		for (n = 0; own && n < LANE_RECVS + 1; ++n)
			assert_int_equal(ibv_post_recv(l.qp.qp, &wr, &bad), 0);
		bad = NULL;
		assert_int_equal(ibv_post_recv(l.qp.qp, &wr, &bad), own ? ENOMEM : EINVAL);
		assert_ptr_equal(bad, &wr);
		lane_reset_qp(&l);
	}
	lane_close(&l);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

#define HAS_RECEIVES "a receive completion with its QP's number is an ordinary one"

int main(void)
{
	static const struct kind_case cases[] = {
		{.name = "sends", .run = sends},
		{.name = "unsignalled", .run = unsignalled},
		{.name = "receives",
		 .run = receives,
		 .left_out = {{"poll.c checks the fields of UD completions", KIND_UD},
			      {"poll.c checks the fields of UD completions", KIND_UD_SRQ}}},
		{.name = "errors", .run = errors},
		{.name = "every_order", .run = every_order},
		{.name = "every_order_of_two", .run = every_order_of_two},
		{.name = "large_batches", .run = large_batches},
		{.name = "runs", .run = runs},
		{.name = "impossible_receives",
		 .run = impossible_receives,
		 .left_out = {{HAS_RECEIVES, KIND_RC},
			      {HAS_RECEIVES, KIND_UC},
			      {HAS_RECEIVES, KIND_UD},
			      {HAS_RECEIVES, KIND_RC_SRQ},
			      {HAS_RECEIVES, KIND_UC_SRQ},
			      {HAS_RECEIVES, KIND_UD_SRQ}}},
		{.name = "receive_queue", .run = receive_queue},
	};

	return run_kinds("poll_kinds", cases, sizeof(cases) / sizeof(cases[0]));
}
