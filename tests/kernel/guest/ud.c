// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: UD messages arrive with their GRH, over IPv4 and IPv6; the way back is made from a
 * completion.
 */

#include <arpa/inet.h>

#include "guest.h"

#define SRC    0
#define DST    65536
#define LENGTH 1000

static struct ibv_qp *ud_qp(struct rig *rig)
{
	struct ibv_qp *qp = rig_qp(rig, IBV_QPT_UD, NULL);

	qp_connect(rig, qp, 0);
	return qp;
}

static void over_ipv4(void)
{
	struct in_addr ip;
	struct ibv_qp *a, *b;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct rig rig;

	rig_up(&rig);
	a = ud_qp(&rig);
	b = ud_qp(&rig);
	ah = rig_ah(&rig);
	fill(rig.buf + SRC, LENGTH, 1);
	post_recv(&rig, b, DST, GRH_SIZE + LENGTH);
	post_ud_send(&rig, a, ah, b->qp_num, SRC, LENGTH);

	wc = wait_recv_and_send(rig.cq);
	CHECK_EQ(wc.opcode, IBV_WC_RECV);
	CHECK_EQ(wc.byte_len, GRH_SIZE + LENGTH);
	CHECK_EQ(wc.src_qp, a->qp_num);
	CHECK_EQ(wc.qp_num, b->qp_num);
	CHECK(wc.wc_flags & IBV_WC_GRH);
	check_content(rig.buf + DST + GRH_SIZE, LENGTH, 1);

	/* An IPv4 header fills the last 20 bytes of the GRH's place. */
	CHECK_EQ(rig.buf[DST + 20] >> 4, 4);
	CHECK_EQ(inet_pton(AF_INET, getenv("GUEST_ADDRESS"), &ip), 1);
	CHECK(!memcmp(rig.buf + DST + 32, &ip, sizeof(ip)));
	CHECK(!memcmp(rig.buf + DST + 36, &ip, sizeof(ip)));

	CHECK_EQ(ibv_destroy_ah(ah), 0);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	rig_down(&rig);
}

static void over_ipv4_numbered(void)
{
	setenv("RXE_AH_NUMBERS", "1", 1);
	over_ipv4();
}

static void way_back_over_ipv6(void)
{
	struct ibv_ah *ah, *back;
	struct ibv_ah_attr attr;
	struct ibv_grh *grh;
	struct ibv_qp *a, *b;
	struct ibv_wc wc;
	struct rig rig;

	rig_up(&rig);
	rig.gid_index = find_gid(rig.context, false, &rig.gid);
	a = ud_qp(&rig);
	b = ud_qp(&rig);
	ah = rig_ah(&rig);
	fill(rig.buf + SRC, LENGTH, 2);
	post_recv(&rig, b, DST, GRH_SIZE + LENGTH);
	post_ud_send(&rig, a, ah, b->qp_num, SRC, LENGTH);
	wc = wait_recv_and_send(rig.cq);
	check_content(rig.buf + DST + GRH_SIZE, LENGTH, 2);

	grh = (struct ibv_grh *)(rig.buf + DST);
	CHECK(!memcmp(&grh->sgid, &rig.gid, sizeof(rig.gid)));
	CHECK(!memcmp(&grh->dgid, &rig.gid, sizeof(rig.gid)));
	CHECK_EQ(ibv_init_ah_from_wc(rig.context, 1, &wc, grh, &attr), 0);
	CHECK_EQ(attr.is_global, 1);
	CHECK_EQ(attr.port_num, 1);
	CHECK(!memcmp(&attr.grh.dgid, &rig.gid, sizeof(rig.gid)));

	CHECK(back = ibv_create_ah_from_wc(rig.pd, &wc, grh, 1));
	fill(rig.buf + SRC, LENGTH, 3);
	post_recv(&rig, a, DST, GRH_SIZE + LENGTH);
	post_ud_send(&rig, b, back, wc.src_qp, SRC, LENGTH);
	wc = wait_recv_and_send(rig.cq);
	CHECK_EQ(wc.qp_num, a->qp_num);
	CHECK_EQ(wc.src_qp, b->qp_num);
	check_content(rig.buf + DST + GRH_SIZE, LENGTH, 3);

	/* A destination that is no GID of ours. */
	grh->dgid.raw[15] ^= 0xff;
	CHECK(!ibv_create_ah_from_wc(rig.pd, &wc, grh, 1));

	CHECK_EQ(ibv_destroy_ah(ah), 0);
	CHECK_EQ(ibv_destroy_ah(back), 0);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	rig_down(&rig);
}

static void wrong_qkey_is_dropped(void)
{
	struct ibv_qp *a, *b;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct rig rig;

	rig_up(&rig);
	a = ud_qp(&rig);
	b = ud_qp(&rig);
	ah = rig_ah(&rig);
	sge = rig_sge(&rig, SRC, LENGTH);
	struct ibv_send_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_SEND,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.ud = {.ah = ah,
						     .remote_qpn = b->qp_num,
						     .remote_qkey = RIG_QKEY + 1},
				   },
			   *bad;

	/* The one with the right key comes after it and takes the one receive there is. */
	post_recv(&rig, b, DST, GRH_SIZE + LENGTH);
	fill(rig.buf + SRC, LENGTH, 4);
	CHECK_EQ(ibv_post_send(a, &wr, &bad), 0);
	wc = wait_status(rig.cq, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode, IBV_WC_SEND);
	fill(rig.buf + SRC, LENGTH, 5);
	post_ud_send(&rig, a, ah, b->qp_num, SRC, LENGTH);
	wait_recv_and_send(rig.cq);
	check_content(rig.buf + DST + GRH_SIZE, LENGTH, 5);

	CHECK_EQ(ibv_destroy_ah(ah), 0);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	rig_down(&rig);
}

const struct guest_test ud_tests[] = {
	{"UD over IPv4, contents and header verified", over_ipv4},
	{"UD over IPv4 with numbered address handles", over_ipv4_numbered},
	{"UD over IPv6, and the way back from the completion", way_back_over_ipv6},
	{"UD: a message with the wrong Q_Key is dropped", wrong_qkey_is_dropped},
	{0},
};
