// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: UD between two processes: address handles with and without GRH, the 40 bytes in
 * front, answers to where a message came from, Q_Keys, lengths, the sender's mistakes, multicast to
 * several members with loopback.
 */
#include <arpa/inet.h>

#include "verbs_test.h"

#define QKEY 0x11111111 /* set by to_init() */
#define GRH  40

enum { QPN = 0, LID = 4, GID = 8 };

static struct side s;
static struct ibv_qp *qp;
static union ibv_gid my_gid;

static void up(int me)
{
	struct link l;

	side_open(&s, 65536, 256, 0);
	CHECK_EQ(ibv_query_gid(s.context, 1, 0, &my_gid), 0);
	qp = make_qp(&s, IBV_QPT_UD, NULL, NULL, NULL);
	link_defaults(&l, 0, 0);
	connect_qp(qp, &l);
	memcpy(&board->word[GID + 2 * me], &my_gid, 16);
	post(LID + me, s.lid);
	post(QPN + me, qp->qp_num);
	meet(2);
}

static struct ibv_ah *make_ah(uint16_t dlid, const union ibv_gid *dgid)
{
	struct ibv_ah_attr attr = {.dlid = dlid, .port_num = 1, .sl = 3};
	struct ibv_ah *ah;

	if (dgid) {
		attr.is_global = 1;
		attr.grh.dgid = *dgid;
		attr.grh.hop_limit = 9;
		attr.grh.flow_label = 0x12345;
		attr.grh.traffic_class = 0x67;
	}
	ah = ibv_create_ah(s.pd, &attr);
	CHECK(ah);
	return ah;
}

static void send_ud(struct ibv_qp *from, uint64_t id, struct ibv_ah *ah, uint32_t qpn,
		    uint32_t qkey, uint32_t len, uint32_t imm)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s.buf, .length = len, .lkey = s.mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .wr_id = id,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
					   .send_flags = IBV_SEND_SIGNALED,
					   .imm_data = imm,
					   .wr.ud = {.ah = ah,
						     .remote_qpn = qpn,
						     .remote_qkey = qkey},
				   },
			   *bad;

	CHECK_EQ(ibv_post_send(from, &wr, &bad), 0);
}

static void check_grh(const uint8_t *at, const union ibv_gid *sgid, const union ibv_gid *dgid,
		      uint32_t payload)
{
	const struct ibv_grh *grh = (const struct ibv_grh *)at;

	CHECK_EQ(ntohl(grh->version_tclass_flow), 6u << 28 | 0x67 << 20 | 0x12345);
	CHECK_EQ(ntohs(grh->paylen), 12 + 8 + ((payload + 3) & ~3u) + 4);
	CHECK_EQ(grh->next_hdr, 0x1b);
	CHECK_EQ(grh->hop_limit, 9);
	CHECK_EQ(memcmp(&grh->sgid, sgid, 16), 0);
	CHECK_EQ(memcmp(&grh->dgid, dgid, 16), 0);
}

static void receiver(int arg)
{
	union ibv_gid peer_gid;
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	(void)arg;
	up(1);
	memcpy(&peer_gid, &board->word[GID], 16);
	memset(s.buf, 0x55, s.size);
	for (int i = 0; i < 6; i++)
		CHECK_EQ(post_recv1(qp, &s, i, (size_t)i * 8192, 4136), 0);
	meet(2);
	meet(2);
	wc = expect_wc(s.rcq, 0, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode, IBV_WC_RECV);
	CHECK_EQ(wc.byte_len, GRH + 100);
	CHECK_EQ(wc.src_qp, board->word[QPN]);
	CHECK_EQ(wc.slid, board->word[LID]);
	CHECK_EQ(wc.sl, 3);
	CHECK_EQ(wc.wc_flags, 0);
	CHECK_EQ(wc.pkey_index, 0);
	CHECK_EQ(differs(s.buf + GRH, 100, 1), -1);
	CHECK_EQ(s.buf[GRH + 100], 0x55);
	/* Without a GRH the address has a LID but no GID. */
	CHECK_EQ(ibv_init_ah_from_wc(s.context, 1, &wc, NULL, &attr), 0);
	CHECK_EQ(attr.is_global, 0);
	CHECK_EQ(attr.dlid, wc.slid);
	CHECK_EQ(attr.sl, 3);

	wc = expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, GRH + 101);
	CHECK_EQ(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	CHECK_EQ(wc.imm_data, 0x98765432);
	check_grh(s.buf + 8192, &peer_gid, &my_gid, 101 + 4);
	CHECK_EQ(differs(s.buf + 8192 + GRH, 101, 2), -1);
	CHECK_EQ(ibv_init_ah_from_wc(s.context, 1, &wc, (struct ibv_grh *)(s.buf + 8192), &attr),
		 0);
	CHECK_EQ(attr.is_global, 1);
	CHECK_EQ(memcmp(&attr.grh.dgid, &peer_gid, 16), 0);
	CHECK_EQ(attr.grh.sgid_index, 0);
	CHECK_EQ(attr.grh.flow_label, 0x12345);
	CHECK_EQ(attr.grh.traffic_class, 0x67);
	/* Sends an answer. */
	ah = ibv_create_ah_from_wc(s.pd, &wc, (struct ibv_grh *)(s.buf + 8192), 1);
	CHECK(ah);
	fill(s.buf + 8192, 64, 3);
	CHECK_EQ(post_recv1(qp, &s, 6, 6 * 8192, 4136), 0);
	memcpy(s.buf, s.buf + 8192, 64);
	send_ud(qp, 9, ah, wc.src_qp, QKEY, 64, 0);
	expect_wc(s.scq, 9, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	meet(2);

	/*
	 * The longest and the shortest message. Those with wrong Q_Keys and QPs in between did not
	 * arrive.
	 */
	wc = expect_wc(s.rcq, 2, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, GRH + 4096);
	CHECK_EQ(differs(s.buf + 2 * 8192 + GRH, 4096, 4), -1);
	CHECK_EQ(expect_wc(s.rcq, 3, IBV_WC_SUCCESS).byte_len, GRH);
	meet(2);
	expect_silence(s.rcq, 0);
	CHECK_EQ(s.buf[4 * 8192], 0x55);
	CHECK_EQ(real_state(qp), IBV_QPS_RTS);
	CHECK(!event_pending(s.context));

	/* The Q_Key changes while the QP runs. */
	{
		struct ibv_qp_attr change = {.qkey = 0x222};

		CHECK_EQ(ibv_modify_qp(qp, &change, IBV_QP_QKEY), 0);
	}
	meet(2);
	meet(2);
	CHECK_EQ(expect_wc(s.rcq, 4, IBV_WC_SUCCESS).byte_len, GRH + 7);
	expect_silence(s.rcq, 0);
	meet(2);
}

static void sender(void)
{
	union ibv_gid peer_gid;
	struct ibv_ah *local, *global;
	uint64_t drops;
	uint32_t qpn;
	struct ibv_wc wc;

	up(0);
	qpn = (uint32_t)board->word[QPN + 1];
	memcpy(&peer_gid, &board->word[GID + 2], 16);
	local = make_ah((uint16_t)board->word[LID + 1], NULL);
	global = make_ah((uint16_t)board->word[LID + 1], &peer_gid);
	meet(2);
	fill(s.buf, 100, 1);
	send_ud(qp, 1, local, qpn, QKEY, 100, 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	fill(s.buf, 101, 2);
	CHECK_EQ(post_recv1(qp, &s, 50, 8192, 4136), 0);
	send_ud(qp, 2, global, qpn, QKEY, 101, 0x98765432);
	CHECK_EQ(expect_wc(s.scq, 2, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	meet(2);
	wc = expect_wc(s.rcq, 50, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wc_flags, IBV_WC_GRH);
	CHECK_EQ(wc.src_qp, qpn);
	CHECK_EQ(differs(s.buf + 8192 + GRH, 64, 3), -1);

	drops = hca_counter("drops_qkey");
	send_ud(qp, 3, local, qpn, QKEY + 1, 100, 0);
	expect_wc(s.scq, 3, IBV_WC_SUCCESS);
	CHECK_EQ(hca_counter("drops_qkey") - drops, 1);
	CHECK_EQ(qp_counter(qpn, "drops"), 1);
	CHECK_EQ(qp_counter(qp->qp_num, "drops"), 0);
	/* No QP has that number, so the sender counts the packet. */
	send_ud(qp, 4, local, 0x7ffff0, QKEY, 100, 0);
	expect_wc(s.scq, 4, IBV_WC_SUCCESS);
	CHECK_EQ(qp_counter(qp->qp_num, "drops"), 1);
	fill(s.buf, 4096, 4);
	send_ud(qp, 5, local, qpn, QKEY, 4096, 0);
	expect_wc(s.scq, 5, IBV_WC_SUCCESS);
	/* Bit 31 of the request's Q_Key selects the QP's own. */
	send_ud(qp, 6, local, qpn, 0x80000123, 0, 0);
	expect_wc(s.scq, 6, IBV_WC_SUCCESS);
	meet(2);
	meet(2);
	meet(2);
	send_ud(qp, 7, local, qpn, QKEY, 7, 0);
	expect_wc(s.scq, 7, IBV_WC_SUCCESS);
	send_ud(qp, 8, local, qpn, 0x222, 7, 0);
	expect_wc(s.scq, 8, IBV_WC_SUCCESS);
	meet(2);
	meet(2);
	CHECK_EQ(ibv_destroy_ah(local), 0);
	CHECK_EQ(ibv_destroy_ah(global), 0);
}

/* ---- within one process ---- */

static struct ibv_qp *member(void)
{
	struct ibv_qp *m = make_qp(&s, IBV_QPT_UD, NULL, NULL, NULL);
	struct link l;

	link_defaults(&l, 0, 0);
	connect_qp(m, &l);
	return m;
}

static void mistakes(void)
{
	struct ibv_pd *other = ibv_alloc_pd(s.context);
	struct ibv_ah_attr attr = {.dlid = s.lid, .port_num = 1};
	struct ibv_ah *ah = make_ah(s.lid, NULL), *foreign = ibv_create_ah(other, &attr);
	struct ibv_sge sge = {.addr = (uintptr_t)s.buf, .length = 16, .lkey = s.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_qp *from;

	CHECK(foreign);
	for (int i = 0; i < 4; i++) {
		enum ibv_wc_status status = IBV_WC_LOC_QP_OP_ERR;

		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
		wr.opcode = IBV_WR_SEND;
		sge.length = 16;
		sge.lkey = s.mr->lkey;
		if (i == 0) {
			sge.length = 4097;
			status = IBV_WC_LOC_LEN_ERR;
		} else if (i == 1) {
			sge.lkey ^= 0x01000000;
			status = IBV_WC_LOC_PROT_ERR;
		} else if (i == 2) {
			wr.wr.ud.ah = foreign;
		} else {
			wr.opcode = IBV_WR_RDMA_WRITE;
		}
		if (ibv_post_send(qp, &wr, &bad)) {
			/* Refused before the device saw it, which is allowed only for an opcode. */
			CHECK_EQ(i, 3);
			CHECK_EQ(real_state(qp), IBV_QPS_RTS);
			continue;
		}
		send_ud(qp, 4, ah, qp->qp_num, QKEY, 16, 0);
		expect_wc(s.scq, 3, status);
		expect_wc(s.scq, 4, IBV_WC_WR_FLUSH_ERR);
		CHECK_EQ(real_state(qp), IBV_QPS_SQE);
		CHECK_EQ(to_state(qp, IBV_QPS_RTS), 0);
	}
	/* The QP goes on. */
	CHECK_EQ(post_recv1(qp, &s, 5, 8192, 4136), 0);
	send_ud(qp, 6, ah, qp->qp_num, QKEY, 16, 0);
	expect_wc(s.scq, 6, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 5, IBV_WC_SUCCESS);
	/* The receive has no room for the 40 bytes: the receiver loses the message. */
	from = member();
	CHECK_EQ(post_recv1(qp, &s, 7, 8192, 55), 0);
	send_ud(from, 8, ah, qp->qp_num, QKEY, 16, 0);
	expect_wc(s.scq, 8, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 7, IBV_WC_LOC_LEN_ERR);
	CHECK_EQ(ibv_destroy_qp(from), 0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	CHECK_EQ(ibv_destroy_ah(foreign), 0);
	CHECK_EQ(ibv_dealloc_pd(other), 0);
}

static void multicast(void)
{
	union ibv_gid group = {.raw = {0xff, 0x12, 0xa0, 0x1c, [15] = 7}}, other = group,
		      unicast = my_gid;
	struct ibv_qp *m[3], *rc = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	uint16_t mlid = 0xc007;
	struct ibv_ah *ah;
	int seen[3];

	other.raw[15] = 8;
	for (int i = 0; i < 3; i++)
		m[i] = member();
	CHECK_EQ(ibv_attach_mcast(m[0], &unicast, mlid), EINVAL);
	CHECK_EQ(ibv_attach_mcast(rc, &group, mlid), EINVAL);
	CHECK_EQ(ibv_detach_mcast(m[0], &group, mlid), EINVAL);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(ibv_attach_mcast(m[i], &group, mlid), 0);
	CHECK_EQ(ibv_attach_mcast(m[0], &group, mlid), 0); /* attaching again has no effect */
	CHECK_EQ(ibv_attach_mcast(m[2], &other, mlid), 0);
	ah = make_ah(mlid, &group);

	/* To all members of the group and no others, the sender included. */
	for (int i = 0; i < 3; i++)
		CHECK_EQ(post_recv1(m[i], &s, i, 8192 * (i + 1), 4136), 0);
	fill(s.buf, 333, 6);
	memset(seen, 0, sizeof(seen));
	send_ud(m[0], 1, ah, 0xffffff, QKEY, 333, 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	for (int n = 0; n < 2; n++) {
		struct ibv_wc wc = next_wc(s.rcq);

		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.byte_len, GRH + 333);
		CHECK(wc.wc_flags & IBV_WC_GRH);
		CHECK_EQ(wc.src_qp, m[0]->qp_num);
		CHECK_EQ(wc.dlid_path_bits, 0);
		CHECK_EQ(wc.qp_num, m[wc.wr_id]->qp_num);
		CHECK_EQ(differs(s.buf + 8192 * (wc.wr_id + 1) + GRH, 333, 6), -1);
		check_grh(s.buf + 8192 * (wc.wr_id + 1), &my_gid, &group, 333);
		seen[wc.wr_id]++;
	}
	CHECK(seen[0] == 1 && seen[1] == 1);
	expect_silence(s.rcq, 0);
	/* A Q_Key that is not that of the members. */
	CHECK_EQ(post_recv1(m[0], &s, 0, 8192, 4136), 0);
	CHECK_EQ(post_recv1(m[1], &s, 1, 16384, 4136), 0);
	send_ud(m[0], 2, ah, 0xffffff, QKEY + 5, 333, 0);
	expect_wc(s.scq, 2, IBV_WC_SUCCESS);
	expect_silence(s.rcq, 0);
	/* A member cannot be destroyed, and a QP that has left receives no messages. */
	CHECK_EQ(ibv_destroy_qp(m[1]), EBUSY);
	CHECK_EQ(ibv_detach_mcast(m[0], &group, mlid), 0);
	CHECK_EQ(ibv_detach_mcast(m[0], &group, mlid), EINVAL);
	send_ud(m[0], 3, ah, 0xffffff, QKEY, 333, 0);
	expect_wc(s.scq, 3, IBV_WC_SUCCESS);
	CHECK_EQ(expect_wc(s.rcq, 1, IBV_WC_SUCCESS).qp_num, m[1]->qp_num);
	expect_silence(s.rcq, 0);
	CHECK_EQ(ibv_detach_mcast(m[1], &group, mlid), 0);
	CHECK_EQ(ibv_detach_mcast(m[2], &other, mlid), 0);
	send_ud(m[0], 4, ah, 0xffffff, QKEY, 333, 0);
	expect_wc(s.scq, 4, IBV_WC_SUCCESS);
	expect_silence(s.rcq, 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(ibv_destroy_qp(m[i]), 0);
	CHECK_EQ(ibv_destroy_qp(rc), 0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
}

int main(void)
{
	pid_t child;

	test_begin();
	child = spawn(receiver, 0);
	sender();
	join(child);
	multicast();
	mistakes();
	CHECK(!event_pending(s.context));
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	side_close(&s);
	return 0;
}
