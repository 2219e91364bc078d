// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: busy queues on RC: PSNs that wrap, depth of READs and atomics, fences, unsignaled
 * sends, chains as long as the queue and longer, many SGEs, messages of length 0; all of it with
 * lost and delayed packets, too.
 */
#include "verbs_test.h"

#define AREA 65536
#define FAR  AREA /* offset of the remote half of the buffer */

static struct side s;
static struct ibv_qp *a, *b;

static void make_pair(const struct link *like, const struct ibv_qp_cap *cap)
{
	struct link l;

	link_defaults(&l, 0, 0);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, cap);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, cap);
	connect_pair_as(&s, a, b, like ? like : &l);
}

static void end_pair(void)
{
	expect_silence(s.scq, 0);
	expect_silence(s.rcq, 0);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
}

static uint32_t psn_of(struct ibv_qp *qp, bool send)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_EQ(ibv_query_qp(qp, &attr, IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &init), 0);
	return send ? attr.sq_psn : attr.rq_psn;
}

static void wrap(void)
{
	uint32_t psn = 0xfffff0, lengths[] = {1, 3000, 0, 1024, 1025, 9000, 2048};
	uint64_t value;
	struct link l;

	link_defaults(&l, 0, 0);
	l.psn_mine = l.psn_theirs = psn;
	make_pair(&l, NULL);
	for (uint32_t i = 0; i < 42; i++) {
		uint32_t len = lengths[i % 7];
		struct ibv_send_wr *bad;
		struct ibv_sge sge = {.addr = (uintptr_t)s.buf, .length = 8, .lkey = s.mr->lkey};
		struct ibv_send_wr atomic = {
			.wr_id = 2000 + i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.atomic = {.remote_addr = (uintptr_t)s.buf + FAR + AREA - 8,
				      .compare_add = 3,
				      .rkey = s.mr->rkey},
		};

		CHECK_EQ(post_recv1(b, &s, i, FAR, 16384), 0);
		fill(s.buf, len, i);
		CHECK_EQ(post_send1(a, &s, i, 0, len, IBV_SEND_SIGNALED), 0);
		expect_wc(s.scq, i, IBV_WC_SUCCESS);
		CHECK_EQ(expect_wc(s.rcq, i, IBV_WC_SUCCESS).byte_len, len);
		CHECK_EQ(differs(s.buf + FAR, len, i), -1);
		memset(s.buf, 0, len);
		CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_READ, 1000 + i, 0, len,
				    (uintptr_t)s.buf + FAR, s.mr->rkey, IBV_SEND_SIGNALED),
			 0);
		expect_wc(s.scq, 1000 + i, IBV_WC_SUCCESS);
		CHECK_EQ(differs(s.buf, len, i), -1);
		CHECK_EQ(ibv_post_send(a, &atomic, &bad), 0);
		expect_wc(s.scq, 2000 + i, IBV_WC_SUCCESS);
		memcpy(&value, s.buf, 8);
		CHECK_EQ(value, 3 * i);
		psn = (psn + 2 * (len ? (len + 1023) / 1024 : 1) + 1) & 0xffffff;
		CHECK_EQ(psn_of(a, true), psn);
		CHECK_EQ(psn_of(b, false), psn);
	}
	CHECK(psn < 0xfffff0);
	end_pair();
}

/*
 * More READs and atomics than may be outstanding wait their turn. Their results are right even with
 * losses.
 */
static void depth(uint8_t mine, uint8_t theirs, uint8_t reported)
{
	static const struct ibv_qp_cap cap = {
		.max_send_wr = 48, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct link l;

	link_defaults(&l, 0, 0);
	l.rd_atomic = mine;
	l.dest_rd_atomic = theirs;
	l.timeout = 10;
	make_pair(&l, &cap);
	CHECK_EQ(ibv_query_qp(a, &attr, IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
	CHECK_EQ(attr.max_rd_atomic, reported);
	for (int i = 0; i < 32; i++)
		fill(s.buf + FAR + i * 1500, 1500, i);
	memset(s.buf, 0, AREA);
	for (int i = 0; i < 32; i++)
		CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_READ, i, (size_t)i * 1500, 1500,
				    (uintptr_t)s.buf + FAR + i * 1500, s.mr->rkey,
				    IBV_SEND_SIGNALED),
			 0);
	for (int i = 0; i < 32; i++) {
		expect_wc(s.scq, i, IBV_WC_SUCCESS);
		CHECK_EQ(differs(s.buf + i * 1500, 1500, i), -1);
	}
	end_pair();
}

/* A READ fetches what the fenced WRITE after it sends on: sixteen hops from place to place. */
static void fence(void)
{
	static const struct ibv_qp_cap cap = {
		.max_send_wr = 64, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2};
	struct link l;

	link_defaults(&l, 0, 0);
	l.timeout = 10;
	make_pair(&l, &cap);
	memset(s.buf, 0, 2 * AREA);
	fill(s.buf + FAR, 2500, 1234);
	for (int i = 0; i < 16; i++) {
		uint64_t far_away = (uintptr_t)s.buf + FAR + i * 2500;

		CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_READ, i, (size_t)i * 2500, 2500, far_away,
				    s.mr->rkey, 0),
			 0);
		CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, 100 + i, (size_t)i * 2500, 2500,
				    far_away + 2500, s.mr->rkey,
				    IBV_SEND_FENCE | (i == 15 ? IBV_SEND_SIGNALED : 0)),
			 0);
	}
	expect_wc(s.scq, 115, IBV_WC_SUCCESS);
	CHECK_EQ(differs(s.buf + FAR + 16 * 2500, 2500, 1234), -1);
	end_pair();
}

/* Goes around a small queue many times; only some sends are signaled. */
static void unsignalled(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s.scq,
		.recv_cq = s.rcq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct link l;

	make_pair(NULL, NULL);
	for (uint64_t i = 0; i < 3000; i++) {
		fill(s.buf, 32, i);
		CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, i, 0, 32, (uintptr_t)s.buf + FAR,
				    s.mr->rkey, i % 8 == 7 ? IBV_SEND_SIGNALED : 0),
			 0);
		if (i % 8 != 7)
			continue;
		expect_wc(s.scq, i, IBV_WC_SUCCESS);
		CHECK_EQ(differs(s.buf + FAR, 32, i), -1);
	}
	end_pair();
	/* If the QP signals all sends, all of them complete visibly. */
	a = ibv_create_qp(s.pd, &init);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	CHECK(a);
	link_defaults(&l, 0, 0);
	connect_pair_as(&s, a, b, &l);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, i, 0, 32, (uintptr_t)s.buf + FAR,
				    s.mr->rkey, 0),
			 0);
		expect_wc(s.scq, i, IBV_WC_SUCCESS);
	}
	end_pair();
}

/* One chain that fills the queues completely, and one request too many. */
static void chains(void)
{
	struct ibv_qp_init_attr init = {.send_cq = s.scq,
					.recv_cq = s.rcq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 700,
						.max_recv_wr = 700,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_send_wr *wr, *bad;
	struct ibv_recv_wr *rwr, *rbad;
	struct ibv_sge *sge, *rsge;
	struct link l;
	uint32_t n, m;

	a = ibv_create_qp(s.pd, &init);
	CHECK(a);
	n = init.cap.max_send_wr;
	CHECK(n >= 700);
	b = ibv_create_qp(s.pd, &init);
	CHECK(b);
	m = init.cap.max_recv_wr;
	CHECK(m > n);
	link_defaults(&l, 0, 0);
	connect_pair_as(&s, a, b, &l);
	wr = calloc(n + 1, sizeof(*wr));
	rwr = calloc(m + 1, sizeof(*rwr));
	sge = calloc(n + 1, sizeof(*sge));
	rsge = calloc(m + 1, sizeof(*rsge));
	CHECK(wr && rwr && sge && rsge);
	for (uint32_t i = 0; i <= m; i++) {
		rsge[i] = (struct ibv_sge){
			.addr = (uintptr_t)s.buf + FAR + i * 32, .length = 32, .lkey = s.mr->lkey};
		rwr[i] = (struct ibv_recv_wr){.wr_id = i,
					      .next = i < m ? &rwr[i + 1] : NULL,
					      .sg_list = &rsge[i],
					      .num_sge = 1};
	}
	for (uint32_t i = 0; i <= n; i++) {
		sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)s.buf + i * 32, .length = 32, .lkey = s.mr->lkey};
		wr[i] = (struct ibv_send_wr){.wr_id = i,
					     .next = i < n ? &wr[i + 1] : NULL,
					     .sg_list = &sge[i],
					     .num_sge = 1,
					     .opcode = IBV_WR_SEND,
					     .send_flags = i == n - 1 ? IBV_SEND_SIGNALED : 0};
		fill(s.buf + i * 32, 32, i);
	}
	CHECK(ibv_post_recv(b, rwr, &rbad));
	CHECK(rbad == &rwr[m]);
	CHECK(ibv_post_send(a, wr, &bad));
	CHECK(bad == &wr[n]);
	for (uint32_t i = 0; i < n; i++) {
		expect_wc(s.rcq, i, IBV_WC_SUCCESS);
		CHECK_EQ(differs(s.buf + FAR + i * 32, 32, i), -1);
	}
	expect_wc(s.scq, n - 1, IBV_WC_SUCCESS);
	/* There is room again. */
	CHECK_EQ(post_send1(a, &s, 7, 0, 1, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 7, IBV_WC_SUCCESS);
	expect_wc(s.rcq, n, IBV_WC_SUCCESS);
	/* Too many SGEs: that request is refused as a whole. */
	wr[0].next = NULL;
	wr[0].num_sge = 1000;
	CHECK(ibv_post_send(a, wr, &bad));
	CHECK(bad == &wr[0]);
	end_pair();
	free(wr);
	free(rwr);
	free(sge);
	free(rsge);
}

/*
 * Messages gathered from and scattered to as many pieces as a WQE holds, of uneven lengths, some of
 * length 0.
 */
static void pieces(void)
{
	struct ibv_qp_init_attr init = {.send_cq = s.scq,
					.recv_cq = s.rcq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 8,
						.max_recv_wr = 8,
						.max_send_sge = 32,
						.max_recv_sge = 32}};
	static const uint32_t out[] = {1, 0, 700, 3, 1024, 5, 63, 64, 65, 2000, 0},
			      in[] = {9, 1500, 0, 2, 333};
	struct ibv_sge sge[64], rsge[64];
	struct ibv_send_wr wr = {.sg_list = sge,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_recv_wr rwr = {.sg_list = rsge}, *rbad;
	struct link l;

	a = ibv_create_qp(s.pd, &init);
	CHECK(a);
	CHECK_EQ(init.cap.max_send_sge, 32);
	CHECK_EQ(init.cap.max_recv_sge, 32);
	b = ibv_create_qp(s.pd, &init);
	CHECK(b);
	link_defaults(&l, 0, 0);
	connect_pair_as(&s, a, b, &l);
	for (int n = 0; n <= 32; n++) {
		size_t total = 0, room = 0;
		uint8_t joined[AREA];

		wr.wr_id = rwr.wr_id = n;
		memset(s.buf, 0, 2 * AREA);
		for (int i = 0; i < n; i++) {
			uint32_t len = out[(i + n) % 11];

			/* The pieces are in reverse order. */
			sge[i] = (struct ibv_sge){.addr = (uintptr_t)s.buf + AREA - total - len,
						  .length = len,
						  .lkey = s.mr->lkey};
			fill((void *)(uintptr_t)sge[i].addr, len, n * 100 + i);
			memcpy(joined + total, (void *)(uintptr_t)sge[i].addr, len);
			total += len;
		}
		wr.num_sge = n;
		for (rwr.num_sge = 0; rwr.num_sge < 32 && room < total; rwr.num_sge++) {
			uint32_t len = rwr.num_sge == 31 ? total : in[rwr.num_sge % 5];

			rsge[rwr.num_sge] = (struct ibv_sge){.addr = (uintptr_t)s.buf + FAR + room,
							     .length = len,
							     .lkey = s.mr->lkey};
			room += len;
		}
		CHECK_EQ(ibv_post_recv(b, &rwr, &rbad), 0);
		CHECK_EQ(ibv_post_send(a, &wr, &bad), 0);
		expect_wc(s.scq, n, IBV_WC_SUCCESS);
		CHECK_EQ(expect_wc(s.rcq, n, IBV_WC_SUCCESS).byte_len, total);
		CHECK_EQ(memcmp(joined, s.buf + FAR, total), 0);
		CHECK_EQ(s.buf[FAR + total], 0);
	}
	end_pair();
}

/* A message of length 0 is a message, too. Its key is not checked. */
static void nothing(void)
{
	struct ibv_send_wr wr = {.wr_id = 1,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .send_flags = IBV_SEND_SIGNALED,
				 .imm_data = 5},
			   *bad;
	struct ibv_recv_wr rwr = {.wr_id = 2}, *rbad;
	struct ibv_wc wc;

	make_pair(NULL, NULL);
	memset(s.buf, 0x55, 2 * AREA);
	CHECK_EQ(ibv_post_recv(b, &rwr, &rbad), 0);
	CHECK_EQ(ibv_post_send(a, &wr, &bad), 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	wc = expect_wc(s.rcq, 2, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, 0);
	CHECK_EQ(wc.imm_data, 5);
	CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, 3, 0, 0, 0xdead, 0xbeef, IBV_SEND_SIGNALED),
		 0);
	expect_wc(s.scq, 3, IBV_WC_SUCCESS);
	CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_READ, 4, 0, 0, 0xdead, 0xbeef, IBV_SEND_SIGNALED),
		 0);
	CHECK_EQ(expect_wc(s.scq, 4, IBV_WC_SUCCESS).byte_len, 0);
	for (int i = 0; i < 2 * AREA; i++)
		CHECK_EQ(s.buf[i], 0x55);
	end_pair();
}

static void all(void)
{
	wrap();
	depth(1, 1, 1);
	depth(0, 1, 1);
	depth(3, 4, 4);
	depth(16, 16, 16);
	fence();
	unsignalled();
	pieces();
	nothing();
}

int main(void)
{
	test_begin();
	side_open(&s, 2 * AREA, 2048, 0);
	all();
	chains();
	fabric_fault("drop 5%");
	fabric_fault("delay 5%");
	fabric_fault("duplicate 5%");
	depth(3, 4, 4);
	fence();
	pieces();
	/*
	 * Without the fence a WRITE would overtake the READ before it if that had to be repeated
	 * after a loss. Of more than 5 % a message is lost eight times in a row every few hundred
	 * runs, which ends its QP.
	 */
	fabric_fault("drop 5%");
	for (int i = 0; i < 8; i++)
		fence();
	fabric_fault("clear");
	while (event_pending(s.context))
		skip_established(s.context);
	side_close(&s);
	return 0;
}
