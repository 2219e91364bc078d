// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the layout of a PGAS runtime. Two neighbouring ranks form a supernode, which has one
 * XRC domain. A host can have several supernodes. Each rank has one send QP for each other
 * supernode, and two SRQs: one for requests, one for replies. A request takes a credit. Its reply
 * brings the credit back, with what the request asked for. The SRQ for requests has a receive for
 * each credit that is out, so a request always finds a receive.
 */
#include "xrc_peers.h"

#define CREDITS 3
#define ROUNDS	30

enum { REQUEST = 1, REPLY };

static int supernode(int rank)
{
	return rank / 2;
}

static int choose(const struct message *m)
{
	return m->kind == REPLY;
}

static struct pending {
	int to;
	uint32_t value;
} pending[CREDITS * MAX_RANKS];
static unsigned int pendings, replied;
static unsigned int credits[MAX_RANKS];
static uint32_t requested[MAX_RANKS], answered[MAX_RANKS];

static uint32_t question(int from, int to, uint32_t n)
{
	return (uint32_t)from << 24 | (uint32_t)to << 16 | n;
}

static void received(const struct message *m)
{
	int from = (int)m->from;

	if (m->kind == REQUEST) {
		CHECK(pendings < sizeof(pending) / sizeof(pending[0]));
		pending[pendings++] = (struct pending){from, m->value};
		return;
	}
	CHECK_EQ(m->kind, REPLY);
	CHECK_EQ(m->value, ~question(me, from, answered[from]));
	answered[from]++;
	credits[from]++;
	CHECK(credits[from] <= CREDITS);
}

/* Sends replies outside of the code that polls, since a reply may have to wait for a free place. */
static bool serve(void)
{
	bool busy = peers_work();

	if (!pendings)
		return busy;
	struct pending p = pending[0];
	pendings--;
	memmove(pending, pending + 1, pendings * sizeof(pending[0]));
	peers_send(p.to, REPLY, ~p.value, sizeof(struct message) + p.value % 200);
	replied++;
	return true;
}

static void run(void)
{
	struct peers_config config = {
		.queues = 2,
		.size = {600, 600},
		.window = 8,
		.group = supernode,
		.choose = choose,
		.received = received,
	};
	unsigned int remote = 0, times = 0, left;

	for (int i = 0; i < total; i++) {
		credits[i] = CREDITS;
		remote += supernode(i) != supernode(me);
	}
	config.slots[0] = config.slots[1] = CREDITS * remote;
	peers_open(&config);
	meet((uint32_t)total, peers_work);
	do {
		left = 0;
		for (int k = 1; k < total; k++) {
			int to = (me + k) % total;

			if (supernode(to) == supernode(me))
				continue;
			left += answered[to] < ROUNDS;
			if (requested[to] == ROUNDS || !credits[to])
				continue;
			credits[to]--;
			times = 0;
			peers_send(to, REQUEST, question(me, to, requested[to]),
				   sizeof(struct message) + requested[to] * 17);
			requested[to]++;
		}
		if (serve())
			times = 0;
		else
			idle(times++);
	} while (left || replied < remote * ROUNDS);
	peers_flush();
	show((uint32_t)total, peers_work);
	peers_close();
}

int main(int argc, char **argv)
{
	return ranks_main(argc, argv, run);
}
