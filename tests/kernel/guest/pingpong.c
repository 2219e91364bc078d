// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: two processes bounce messages of many sizes, RC, UC and UD, sleeping on their
 * completion channels; each message is verified at both ends.
 */

#include "guest.h"

#define ROUNDS	60
#define SEND_AT 0
#define RECV_AT 65536
#define LONGEST 60000

static const uint32_t sizes[] = {1, 7, 64, 500, 1000, 1024, 1025, 4096, 8191, LONGEST};

struct side {
	struct rig rig;
	struct ibv_qp *qp;
	struct ibv_ah *ah; /* UD */
	uint32_t peer_qpn;
	uint32_t grh;	    /* bytes before the content */
	int sent, received; /* completed */
	uint32_t byte_len;  /* of the last message */
};

static void poll_all(struct side *side)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(side->rig.cq, 1, &wc))) {
		CHECK_EQ(n, 1);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.qp_num, side->qp->qp_num);
		if (wc.opcode & IBV_WC_RECV) {
			side->byte_len = wc.byte_len;
			++side->received;
		} else {
			++side->sent;
		}
	}
}

/* Sleeps until that many have completed. */
static void sleep_until(struct side *side, int sent, int received)
{
	for (;;) {
		poll_all(side);
		if (side->sent >= sent && side->received >= received)
			return;

		/* What completed before the arming raises no event. */
		CHECK_EQ(ibv_req_notify_cq(side->rig.cq, 0), 0);
		poll_all(side);
		if (side->sent >= sent && side->received >= received)
			return;
		wait_cq_event(side->rig.channel, side->rig.cq);
	}
}

static void ping(struct side *side, uint32_t size, unsigned int seed)
{
	fill(side->rig.buf + SEND_AT, size, seed);
	if (side->ah)
		post_ud_send(&side->rig, side->qp, side->ah, side->peer_qpn, SEND_AT, size);
	else
		post_send(&side->rig, side->qp, SEND_AT, size, 0);
}

static void verify(struct side *side, uint32_t size, unsigned int seed)
{
	CHECK_EQ(side->byte_len, side->grh + size);
	check_content(side->rig.buf + RECV_AT + side->grh, size, seed);
	memset(side->rig.buf + RECV_AT, 0, side->grh + size);
	post_recv(&side->rig, side->qp, RECV_AT, LONGEST);
}

static void bounce(int fd, enum ibv_qp_type type, bool first)
{
	struct side side = {.grh = type == IBV_QPT_UD ? GRH_SIZE : 0};
	uint32_t size;
	int round;

	rig_up(&side.rig);
	side.qp = rig_qp(&side.rig, type, NULL);
	side.peer_qpn = peer_exchange(fd, side.qp->qp_num);
	CHECK(side.peer_qpn != side.qp->qp_num);
	qp_connect(&side.rig, side.qp, side.peer_qpn);
	if (type == IBV_QPT_UD)
		side.ah = rig_ah(&side.rig);
	post_recv(&side.rig, side.qp, RECV_AT, LONGEST);
	peer_exchange(fd, 0);

	for (round = 0; round < ROUNDS; ++round) {
		size = sizes[round % (sizeof(sizes) / sizeof(sizes[0]))];
		if (type == IBV_QPT_UD && size > RIG_MTU)
			size = RIG_MTU;

		if (first)
			ping(&side, size, round);
		sleep_until(&side, first ? round + 1 : round, round + 1);
		verify(&side, size, first ? ~round : round);
		if (!first)
			ping(&side, size, ~round);
	}
	sleep_until(&side, ROUNDS, ROUNDS);

	/* Neither goes before both are done. */
	peer_exchange(fd, 0);
	if (side.ah)
		CHECK_EQ(ibv_destroy_ah(side.ah), 0);
	CHECK_EQ(ibv_destroy_qp(side.qp), 0);
	rig_down(&side.rig);
}

static void rc_peer(int fd)
{
	bounce(fd, IBV_QPT_RC, false);
}

static void rc(void)
{
	struct peer peer = peer_start(rc_peer);

	bounce(peer.fd, IBV_QPT_RC, true);
	peer_finish(&peer);
}

static void uc_peer(int fd)
{
	bounce(fd, IBV_QPT_UC, false);
}

static void uc(void)
{
	struct peer peer = peer_start(uc_peer);

	bounce(peer.fd, IBV_QPT_UC, true);
	peer_finish(&peer);
}

static void ud_peer(int fd)
{
	bounce(fd, IBV_QPT_UD, false);
}

static void ud(void)
{
	struct peer peer = peer_start(ud_peer);

	bounce(peer.fd, IBV_QPT_UD, true);
	peer_finish(&peer);
}

static void ud_numbered(void)
{
	setenv("RXE_AH_NUMBERS", "1", 1);
	ud();
}

const struct guest_test pingpong_tests[] = {
	{"RC ping-pong of two processes, contents verified", rc},
	{"UC ping-pong of two processes, contents verified", uc},
	{"UD ping-pong of two processes, contents verified", ud},
	{"UD ping-pong of two processes with numbered address handles", ud_numbered},
	{0},
};
