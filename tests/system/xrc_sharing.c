// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: one receive QP for each sender and node, in a domain that the ranks of a node share
 * by a file. The first rank that a sender asks creates the QP, each further one registers with it.
 * Then ranks leave, one on each node at a time. Each of them has created receive QPs that the
 * others still use. Some destroy their objects first, some just end. The QP ends with the last
 * rank.
 */
#include "xrc_peers.h"

#define ROUNDS 20

static const struct peers_config config = {
	.queues = 1,
	.size = {2000},
	.slots = {32},
	.window = 4,
};

/* The rank that leaves a node in a step. It has another place on each node. */
static int leaver(int node, int step)
{
	return node * local + (node + step) % local;
}

static bool has_left(int rank, int steps)
{
	for (int step = 0; step < steps; step++)
		if (leaver(rank / local, step) == rank)
			return true;
	return false;
}

static void traffic(int steps)
{
	uint32_t before[MAX_RANKS];

	for (int i = 0; i < total; i++)
		before[i] = peer[i].received;
	meet((uint32_t)(total - steps * hosts), peers_work);
	for (int n = 0; n < ROUNDS; n++)
		for (int i = 1; i < total; i++)
			if (!has_left((me + i) % total, steps))
				peers_send((me + i) % total, 0, 0,
					   sizeof(struct message) + (uint32_t)(n * 97 + i));
	for (int i = 0; i < total; i++)
		if (i != me && !has_left(i, steps))
			peers_await(i, before[i] + ROUNDS);
	peers_flush();
	meet((uint32_t)(total - steps * hosts), peers_work);
}

/* The receive QPs that the remaining ranks are registered with are as they were. */
static void all_ready(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	for (int i = 0; i < total; i++) {
		if (i == me)
			continue;
		CHECK_EQ(
			ibv_query_xrc_rcv_qp(hca.domain, source[i].qpn, &attr, IBV_QP_STATE, &init),
			0);
		CHECK_EQ(attr.qp_state, IBV_QPS_RTR);
	}
}

static void leave(int step)
{
	uint32_t qpn;

	for (int k = 1; k < total; k++) {
		int i = step % 2 ? (me + k) % total : (me + total - k) % total;

		qpn = source[i].qpn;
		peers_leave(i);
		CHECK_EQ(ibv_unreg_xrc_rcv_qp(hca.domain, qpn), EINVAL);
	}
	if (step % 2)
		exit(0);
	peers_close();
}

static void run(void)
{
	unsigned int created = 0;

	peers_open(&config);
	traffic(0);
	for (int i = 0; i < total; i++)
		created += source[i].mine;
	/* Each rank has created receive QPs that others will need when it leaves. */
	CHECK(created > 0);
	show((uint32_t)total, peers_work);
	for (int step = 0; step < local - 1; step++) {
		if (leaver(host, step) == me) {
			leave(step);
			return;
		}
		traffic(step + 1);
		all_ready();
	}
	/* The objects of the ranks that have left end with their processes. */
	for (int i = 0; i < total; i++)
		if (has_left(i, local - 1))
			await_count(&board->rank[i].ended, 1, peers_work);
	show((uint32_t)hosts, peers_work);
	peers_close();
}

int main(int argc, char **argv)
{
	return ranks_main(argc, argv, run);
}
