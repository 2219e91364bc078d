// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Sends packets of every opcode that a ConnectX of OFED's time sends: all operations over RC, UC,
 * UD and XRC, with lengths around those of one and two packets, and requests that the other side
 * refuses. For capture.sh, which looks at the packets. All QPs are in this one process.
 */
#include <arpa/inet.h>

#include "../verbs/xrc_test.h"

#define MTU  256
#define ROOM 4096
#define BASE 0xfffff0u /* so that PSNs begin again at 0 in the middle of messages */

static const uint32_t lengths[] = {0,	    1,		 2,	  3,	   4,
				   5,	    MTU - 1,	 MTU,	  MTU + 1, 2 * MTU - 1,
				   2 * MTU, 2 * MTU + 1, 3 * MTU, ROOM - 8};

static struct side s;

static void operate(struct ibv_qp *qp, struct ibv_send_wr *wr, uint32_t len, struct ibv_srq *srq,
		    enum ibv_wc_status status)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s.buf, .length = len, .lkey = s.mr->lkey};
	struct ibv_send_wr *bad;

	fill(s.buf, ROOM, len);
	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->imm_data = htonl(0x01020304);
	wr->send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
	if (srq)
		wr->xrc_remote_srq_num = srq->xrc_srq_num;
	CHECK_EQ(ibv_post_send(qp, wr, &bad), 0);
	expect_wc(s.scq, 0, status);
}

/* Posts a receive to the QP or to the SRQ. */
static void receive(struct ibv_qp *qp, struct ibv_srq *srq)
{
	if (srq)
		CHECK_EQ(post_srq1(srq, &s, 0, 2 * ROOM, ROOM), 0);
	else
		CHECK_EQ(post_recv1(qp, &s, 0, 2 * ROOM, ROOM), 0);
}

/* Everything that a connected QP does. fetches: READ and atomic operations, too. */
static void connected(struct ibv_qp *from, struct ibv_qp *to, struct ibv_srq *srq, bool fetches)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						 IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						 IBV_WR_RDMA_READ};

	for (unsigned int o = 0; o < (fetches ? 5 : 4); o++) {
		for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			struct ibv_send_wr wr = {.opcode = ops[o]};
			bool takes = ops[o] != IBV_WR_RDMA_WRITE && ops[o] != IBV_WR_RDMA_READ;

			if (ops[o] != IBV_WR_SEND && ops[o] != IBV_WR_SEND_WITH_IMM) {
				wr.wr.rdma.remote_addr = (uintptr_t)s.buf + ROOM;
				wr.wr.rdma.rkey = s.mr->rkey;
			}
			if (takes)
				receive(to, srq);
			operate(from, &wr, lengths[i], srq, IBV_WC_SUCCESS);
			if (takes)
				expect_wc(s.rcq, 0, IBV_WC_SUCCESS);
		}
	}
	for (unsigned int o = 0; fetches && o < 2; o++) {
		struct ibv_send_wr wr = {.opcode = o ? IBV_WR_ATOMIC_CMP_AND_SWP
						     : IBV_WR_ATOMIC_FETCH_AND_ADD};

		wr.wr.atomic.remote_addr = (uintptr_t)s.buf + ROOM;
		wr.wr.atomic.rkey = s.mr->rkey;
		wr.wr.atomic.compare_add = 0x1122334455667788;
		wr.wr.atomic.swap = 0x99aabbccddeeff00;
		operate(from, &wr, 8, srq, IBV_WC_SUCCESS);
	}
}

static void pair_of(enum ibv_qp_type type)
{
	struct ibv_qp *a = make_qp(&s, type, NULL, NULL, NULL),
		      *b = make_qp(&s, type, NULL, NULL, NULL);
	struct link l;

	link_defaults(&l, 0, 0);
	l.mtu = IBV_MTU_256;
	l.psn_mine = l.psn_theirs = BASE;
	connect_pair_as(&s, a, b, &l);
	connected(a, b, NULL, type == IBV_QPT_RC);
	if (type == IBV_QPT_RC) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

		/* No receive yet: RNR NAKs until there is one. */
		CHECK_EQ(post_send1(b, &s, 0, 0, 8, IBV_SEND_SIGNALED), 0);
		sleep_ms(20);
		receive(a, NULL);
		expect_wc(s.scq, 0, IBV_WC_SUCCESS);
		expect_wc(s.rcq, 0, IBV_WC_SUCCESS);
		wr.wr.rdma.remote_addr = (uintptr_t)s.buf;
		wr.wr.rdma.rkey = s.mr->rkey ^ 0x5500;
		operate(a, &wr, 8, NULL, IBV_WC_REM_ACCESS_ERR);
	}
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
}

static void over_xrc(void)
{
	struct ibv_xrc_domain *domain = domain_of(&s, domain_file());
	struct ibv_srq *srq = make_xrc_srq(&s, domain, 8);
	struct ibv_qp *qp = make_qp(&s, IBV_QPT_XRC, NULL, domain, NULL);
	uint32_t rcv = make_rcv_qp(domain);
	struct link l;

	link_defaults(&l, s.lid, qp->qp_num);
	l.mtu = IBV_MTU_256;
	l.psn_mine = l.psn_theirs = BASE;
	connect_rcv(domain, rcv, &l);
	l.dest_qpn = rcv;
	connect_qp(qp, &l);
	connected(qp, NULL, srq, true);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(domain, rcv), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
}

static void datagrams(void)
{
	struct ibv_qp *qp = make_qp(&s, IBV_QPT_UD, NULL, NULL, NULL);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11111111};
	struct ibv_ah_attr to = {.dlid = s.lid, .port_num = 1, .sl = 3};

	CHECK_EQ(ibv_modify_qp(qp, &attr,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		 0);
	attr.qp_state = IBV_QPS_RTR;
	CHECK_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = BASE;
	CHECK_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	for (int grh = 0; grh < 2; grh++) {
		struct ibv_ah *ah;

		to.is_global = (uint8_t)grh;
		to.grh.hop_limit = 9;
		to.grh.flow_label = 0x12345;
		to.grh.traffic_class = 0x67;
		CHECK_EQ(ibv_query_gid(s.context, 1, 0, &to.grh.dgid), 0);
		ah = ibv_create_ah(s.pd, &to);
		CHECK(ah);
		for (unsigned int i = 0; i < 2 * 6; i++) {
			struct ibv_send_wr wr = {.opcode = i % 2 ? IBV_WR_SEND_WITH_IMM
								 : IBV_WR_SEND};

			wr.wr.ud.ah = ah;
			wr.wr.ud.remote_qpn = qp->qp_num;
			wr.wr.ud.remote_qkey = 0x11111111;
			receive(qp, NULL);
			operate(qp, &wr, lengths[i / 2], NULL, IBV_WC_SUCCESS);
			expect_wc(s.rcq, 0, IBV_WC_SUCCESS);
		}
		CHECK_EQ(ibv_destroy_ah(ah), 0);
	}
	CHECK_EQ(ibv_destroy_qp(qp), 0);
}

int main(void)
{
	test_begin();
	side_open(&s, 4 * ROOM, 64, 0);
	pair_of(IBV_QPT_RC);
	pair_of(IBV_QPT_UC);
	over_xrc();
	datagrams();
	side_close(&s);
	return 0;
}
