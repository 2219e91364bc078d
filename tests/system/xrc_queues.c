// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: X queues. Each rank has three XRC SRQs in one domain, for short, middle and long
 * messages, and names the one that it means by its number. Receives are posted again below a
 * low-water mark: of the middle queue when the rank looks, of the two others only when the SRQ's
 * limit event has come. More messages come than there are receives.
 */
#include "xrc_peers.h"

#define ROUNDS 40

static const struct peers_config config = {
	.queues = 3,
	.size = {128, 1024, 12288},
	.slots = {16, 8, 4},
	.low = {8, 4, 2},
	.limit = {true, false, true},
	.window = 4,
};

/* Lengths, among them the shortest and the longest for each queue. */
static uint32_t length(int n, int to)
{
	static const uint32_t edges[] = {sizeof(struct message),     128,  129, 1024, 1025, 12288,
					 sizeof(struct message) + 1, 2048, 100};

	return edges[(n + to + me) % (int)(sizeof(edges) / sizeof(edges[0]))];
}

static void run(void)
{
	peers_open(&config);
	meet((uint32_t)total, peers_work);
	for (int n = 0; n < ROUNDS; n++)
		for (int i = 1; i < total; i++)
			peers_send((me + i) % total, 0, 0, length(n, (me + i) % total));
	for (int i = 0; i < total; i++)
		if (i != me)
			peers_await(i, ROUNDS);
	peers_flush();
	CHECK(peers_limit_events(0) > 0);
	CHECK_EQ(peers_limit_events(1), 0);
	CHECK(peers_limit_events(2) > 0);
	show((uint32_t)total, peers_work);
	peers_close();
}

int main(int argc, char **argv)
{
	return ranks_main(argc, argv, run);
}
