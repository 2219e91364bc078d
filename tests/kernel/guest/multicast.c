// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: UD QPs attach to a group, get what is sent to it, once each, and nothing after they
 * have detached.
 */

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "guest.h"

#define GROUP	      "239.1.2.3"
#define MULTICAST_QPN 0xffffff
#define MEMBERS	      2
#define SRC	      0
#define DST	      65536
#define LENGTH	      700

static union ibv_gid group_gid(void)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	CHECK_EQ(inet_pton(AF_INET, GROUP, gid.raw + 12), 1);
	return gid;
}

/*
 * The interface receives the group as long as the socket is open: that is a connection manager's
 * part.
 */
static int join(void)
{
	struct ip_mreqn request = {.imr_ifindex = if_nametoindex(NETDEV)};
	int fd;

	CHECK(request.imr_ifindex);
	CHECK_EQ(inet_pton(AF_INET, GROUP, &request.imr_multiaddr), 1);
	CHECK((fd = socket(AF_INET, SOCK_DGRAM, 0)) >= 0);
	CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request)), 0);
	return fd;
}

static void attach_and_refuse(void)
{
	union ibv_gid gid = group_gid(), unicast;
	struct ibv_qp *ud, *rc;
	struct rig rig;

	rig_up(&rig);
	ud = rig_qp(&rig, IBV_QPT_UD, NULL);
	rc = rig_qp(&rig, IBV_QPT_RC, NULL);
	qp_connect(&rig, ud, 0);
	qp_to_init(rc);
	unicast = rig.gid;

	CHECK_EQ(ibv_attach_mcast(rc, &gid, 0), EINVAL);
	CHECK_EQ(ibv_attach_mcast(ud, &unicast, 0), EINVAL);
	CHECK(ibv_detach_mcast(ud, &gid, 0));
	CHECK_EQ(ibv_attach_mcast(ud, &gid, 0), 0);
	CHECK_EQ(ibv_destroy_qp(ud), EBUSY);
	CHECK_EQ(ibv_detach_mcast(ud, &gid, 0), 0);
	CHECK(ibv_detach_mcast(ud, &gid, 0));

	CHECK_EQ(ibv_destroy_qp(ud), 0);
	CHECK_EQ(ibv_destroy_qp(rc), 0);
	rig_down(&rig);
}

static void every_member_receives(void)
{
	union ibv_gid gid = group_gid();
	struct ibv_qp *sender, *member[MEMBERS];
	bool got[MEMBERS] = {false};
	struct ibv_ah_attr attr;
	struct ibv_ah *group;
	struct ibv_wc wc;
	struct rig rig;
	int fd, i;

	rig_up(&rig);
	fd = join();
	sender = rig_qp(&rig, IBV_QPT_UD, NULL);
	qp_connect(&rig, sender, 0);
	for (i = 0; i < MEMBERS; ++i) {
		member[i] = rig_qp(&rig, IBV_QPT_UD, NULL);
		qp_connect(&rig, member[i], 0);
		CHECK_EQ(ibv_attach_mcast(member[i], &gid, 0), 0);
		post_recv(&rig, member[i], DST + i * 4096, GRH_SIZE + LENGTH);
	}
	attr = rig_ah_attr(&rig);
	attr.grh.dgid = gid;
	CHECK(group = ibv_create_ah(rig.pd, &attr));

	fill(rig.buf + SRC, LENGTH, 1);
	post_ud_send(&rig, sender, group, MULTICAST_QPN, SRC, LENGTH);
	for (i = 0; i < MEMBERS + 1; ++i) {
		wc = wait_status(rig.cq, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_SEND)
			continue;
		CHECK_EQ(wc.opcode, IBV_WC_RECV);
		CHECK_EQ(wc.byte_len, GRH_SIZE + LENGTH);
		CHECK_EQ(wc.src_qp, sender->qp_num);
		check_content(rig.buf + wc.wr_id + GRH_SIZE, LENGTH, 1);
		got[(wc.wr_id - DST) / 4096] = true;
	}
	for (i = 0; i < MEMBERS; ++i)
		CHECK(got[i]);

	/*
	 * One of them leaves: the next message is the other's alone. Messages to one QP keep their
	 * order, so that one to each, sent after it, shows what the group's has done.
	 */
	CHECK_EQ(ibv_detach_mcast(member[0], &gid, 0), 0);
	struct ibv_ah *direct = rig_ah(&rig);

	for (i = 0; i < MEMBERS; ++i) {
		post_recv(&rig, member[i], DST + i * 4096, GRH_SIZE + LENGTH);
		post_recv(&rig, member[i], DST + i * 4096 + 2048, GRH_SIZE + LENGTH);
	}
	fill(rig.buf + SRC, LENGTH, 2);
	post_ud_send(&rig, sender, group, MULTICAST_QPN, SRC, LENGTH);
	do
		wc = wait_status(rig.cq, IBV_WC_SUCCESS);
	while (wc.opcode == IBV_WC_SEND);
	CHECK_EQ(wc.qp_num, member[1]->qp_num);
	check_content(rig.buf + wc.wr_id + GRH_SIZE, LENGTH, 2);

	fill(rig.buf + SRC + 4096, LENGTH, 3);
	post_ud_send(&rig, sender, direct, member[0]->qp_num, SRC + 4096, LENGTH);
	do
		wc = wait_status(rig.cq, IBV_WC_SUCCESS);
	while (wc.opcode == IBV_WC_SEND);
	CHECK_EQ(wc.qp_num, member[0]->qp_num);
	check_content(rig.buf + wc.wr_id + GRH_SIZE, LENGTH, 3);

	CHECK_EQ(ibv_detach_mcast(member[1], &gid, 0), 0);
	for (i = 0; i < MEMBERS; ++i)
		CHECK_EQ(ibv_destroy_qp(member[i]), 0);
	CHECK_EQ(ibv_destroy_qp(sender), 0);
	CHECK_EQ(ibv_destroy_ah(group), 0);
	CHECK_EQ(ibv_destroy_ah(direct), 0);
	close(fd);
	rig_down(&rig);
}

static void every_member_receives_numbered(void)
{
	setenv("RXE_AH_NUMBERS", "1", 1);
	every_member_receives();
}

const struct guest_test multicast_tests[] = {
	{"multicast: attaching, detaching, and what is refused", attach_and_refuse},
	{"multicast: every attached QP receives, contents verified", every_member_receives},
	{"multicast: the same with numbered address handles", every_member_receives_numbered},
	{0},
};
