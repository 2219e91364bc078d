// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * For wire.sh, and for tests/kernel/guest/wire.sh, where one of the two has another device. A pair
 * of processes in two instances, which agree over TCP and then do every operation of RC between
 * them, with their contents verified. WAY is a word of below:
 *
 *	wire_peers WAY -p PORT		waits for the other one
 *	wire_peers WAY -p PORT ADDRESS	connects, and does the work
 *
 * With the index of a GID in the environment variable GID_INDEX, the process names its port by that
 * GID alone, as peers without LIDs do. DEVICE: the name of the device, else the first.
 *
 * The environment variable PSN has the number of the QPs' first packet. Without it the PSNs wrap in
 * the middle of a SEND of 5 packets (all), of a WRITE of 20 or 65 (lossy, uc), or of a SEND of 20
 * (last).
 *
 * all: SENDs, WRITEs, READs, atomics, a receive that comes late, and a key that is wrong.
 *
 * lossy: the same with less data, for a wire that loses packets. If an answer is lost that no other
 * one follows, the requester waits for its time-out, here four times 134 ms; so the sizes are few.
 * The wrong key is left out: a responder in ERR does not repeat its NAK, so whoever loses it gets
 * the completion that a dead node gives.
 *
 * outlives: the second process kills those whose numbers are in the environment variable KILLED,
 * while it sends. These are daemons, and nobody notices.
 *
 * stopped: the same with SIGSTOP, for a peer's daemon and what sends for it. A QP with a short
 * time-out gets the completion that a dead node gives. Then they go on, and the first QP has lost
 * nothing.
 *
 * standing: the second process stops the first one, and reads and writes its memory all the same.
 *
 * left: as outlives, with daemons and what sends for them. The second process gets a completion for
 * each request: those that are on their way then, or that it posts until the first one fails, and
 * those on another QP after that.
 *
 * last: the second process sends more than a window holds, destroys its QP at once, and ends.
 *
 * The environment variable PATH_MTU has the path MTU of the QPs in bytes, if it is not 1024; or two
 * with a comma, the first process's and the second one's.
 *
 * uc: WRITEs over UC, with and without immediate data. ud: datagrams with and without it. A wire
 * that loses packets would lose some of these for good.
 *
 * uc_lossy: SENDs over UC, on a wire that loses packets, until some have come and some have not.
 *
 * mtus: for a PATH_MTU of two numbers. What is longer than a packet fails.
 *
 * old: the first process is killed while the second one sends, which goes on until the retries have
 * run out, for some seconds.
 *
 * new: as lossy, again and again on the same QPs, until the process whose number is in the
 * environment variable OLD has ended: one of "old", which sends to a QP that had the number of the
 * first process's.
 *
 * soak: the same until any other process has ended. Both sleep a little where there is no
 * completion, and the second one says how often it has done all.
 *
 * killed: the first process is killed while the second one sends. After that, the second one gets
 * the completion that a dead node gives, on another QP with a short time-out.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "wire_peers.h"

/*
 * active() has sent 108 packets when it comes to messages of 4097 bytes; with few sizes 92 when it
 * comes to a WRITE of 20001.
 */
#define PSN	 (0x1000000 - 110)
#define PSN_LAST (0x1000000 - 8)

static const struct way {
	const char *name;
	void (*active)(void), (*passive)(void);
	enum ibv_qp_type type; /* 0: RC */
	int timeout, retries;  /* of the first QP; 0: 17 and 7 */
	uint32_t first_psn;    /* 0: PSN */
	bool second;	       /* there is a second QP */
	bool few;	       /* sizes */
	bool ends;	       /* so do the daemons, and commands fail without them */
} ways[] = {
	{.name = "all", .active = active, .passive = passive},
	{.name = "lossy", .active = active, .passive = passive, .timeout = 15, .few = true},
	{.name = "new", .active = new_active, .passive = new_passive, .few = true},
	{.name = "soak", .active = new_active, .passive = new_passive, .few = true},
	{.name = "last", .active = last_active, .passive = last_passive, .first_psn = PSN_LAST},
	{.name = "uc", .active = uc_active, .passive = uc_passive, .type = IBV_QPT_UC},
	{.name = "ud", .active = ud_active, .passive = ud_passive, .type = IBV_QPT_UD},
	{.name = "uc_lossy",
	 .active = uc_lossy_active,
	 .passive = uc_lossy_passive,
	 .type = IBV_QPT_UC},
	{.name = "mtus", .active = mtus_active, .passive = mtus_passive},
	{.name = "killed", .active = survives, .passive = is_killed, .second = true},
	{.name = "old", .active = is_old, .passive = is_killed, .timeout = 15},
	{.name = "outlives", .active = outlives, .passive = waits, .ends = true},
	{.name = "stopped", .active = stopped, .passive = waits, .second = true},
	{.name = "standing", .active = standing, .passive = waits},
	{.name = "left",
	 .active = is_left,
	 .passive = waits,
	 .timeout = 12,
	 .retries = 2,
	 .second = true,
	 .ends = true},
};

static const struct way *way_of(const char *name)
{
	const struct way *w = ways;

	while (strcmp(w->name, name))
		CHECK(++w < ways + sizeof(ways) / sizeof(ways[0]));
	return w;
}

int main(int argc, char **argv)
{
	const char *psn = getenv("PSN"), *mtu = getenv("PATH_MTU");
	bool client = argc == 5;
	const struct way *w;

	CHECK((argc == 4 || client) && !strcmp(argv[2], "-p"));
	w = way_of(argv[1]);
	sleeps = !strcmp(w->name, "soak");
	first_psn = psn ? (uint32_t)strtoul(psn, NULL, 0) : w->first_psn ?: PSN;
	path_mtu = mtu ? (unsigned int)atoi(client && strchr(mtu, ',') ? strchr(mtu, ',') + 1 : mtu)
		       : 1024;
	if (w->few)
		few_sizes();
	connect_tcp(atoi(argv[3]), client ? argv[4] : NULL);
	make();
	if (w->type == IBV_QPT_UD)
		join_ud();
	else
		join(w->type ?: IBV_QPT_RC, w->timeout ?: 17, w->retries ?: 7);
	first = qp;
	if (!client)
		fprintf(stderr, "QP 0x%x\n", qp->qp_num);
	if (w->second) {
		join(IBV_QPT_RC, 12, 2);
		second = qp;
	}
	say();
	hear();
	if (client)
		w->active();
	else
		w->passive();
	CHECK(w->ends || !ibv_destroy_qp(qp));
	return 0;
}
