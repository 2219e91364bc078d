// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: each rank has one SRQ and one CQ for all messages. A rank is stopped. Messages to it
 * still arrive as long as it has receives, since an HCA needs no process for that. The other ranks
 * go on among themselves. Messages that find no receive wait, and arrive when the rank continues.
 * Then a rank is stopped and continued in the midst of traffic, and killed while it is stopped.
 */
#include <signal.h>
#include <unistd.h>

#include "xrc_peers.h"

#define ROUNDS 30
#define SLOTS  64
#define STOPS  6

static struct peers_config config = {
	.queues = 1,
	.size = {1500},
	.slots = {SLOTS},
	.window = 6,
	.mortal = true,
};
static uint32_t expected[MAX_RANKS];
static int victim;

static void say(int to, unsigned int n)
{
	peers_send(to, 0, 0, sizeof(struct message) + n * 211 % 1400);
}

/* Each rank sends to each of the first ranks, which are those that live. */
static void chat(int living)
{
	for (unsigned int n = 0; n < ROUNDS; n++)
		for (int i = 1; i < total; i++)
			if ((me + i) % total < living)
				say((me + i) % total, n);
	for (int i = 0; i < living; i++) {
		if (i == me)
			continue;
		expected[i] += ROUNDS;
		peers_await(i, expected[i]);
	}
	peers_flush();
}

/* Whether the process is stopped, and not just about to be. */
static bool is_stopped(pid_t pid)
{
	char path[64], line[256];
	const char *state;
	bool stopped;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	CHECK(f && fgets(line, sizeof(line), f));
	fclose(f);
	state = strrchr(line, ')');
	stopped = state && state[2] == 'T';
	return stopped;
}

static void await_stop(void)
{
	unsigned int times = 0;

	while (!is_stopped(board->rank[victim].pid))
		idle(times++);
}

/* The victim stops outside of device code, between two calls. */
static void stopped_outside(void)
{
	uint32_t most = SLOTS / (uint32_t)(total - 1);

	meet((uint32_t)total, peers_work);
	if (me == victim) {
		CHECK_EQ(raise(SIGSTOP), 0);
	} else {
		await_stop();
		/*
		 * The victim has that many receives for each sender, so these complete while it is
		 * stopped.
		 */
		for (unsigned int n = 0; n < most; n++)
			say(victim, n);
		peers_flush();
		chat(victim);
		CHECK(is_stopped(board->rank[victim].pid));
		meet((uint32_t)total - 1, peers_work);
		/* These wait until the victim posts receives again. */
		for (unsigned int n = 0; n < 4; n++)
			say(victim, n);
		if (me == 0)
			CHECK_EQ(kill(board->rank[victim].pid, SIGCONT), 0);
		peers_flush();
	}
	for (int i = 0; me == victim && i < victim; i++) {
		expected[i] += most + 4;
		peers_await(i, expected[i]);
	}
	meet((uint32_t)total, peers_work);
}

/* The victim is stopped anywhere. Messages to it and from it may wait as long as it is stopped. */
static void stopped_anywhere(void)
{
	for (int n = 0; n < STOPS; n++) {
		if (me == 0) {
			CHECK_EQ(kill(board->rank[victim].pid, SIGSTOP), 0);
			usleep(2000);
			CHECK_EQ(kill(board->rank[victim].pid, SIGCONT), 0);
		}
		chat(total);
	}
}

static void killed_while_stopped(void)
{
	meet((uint32_t)total, peers_work);
	if (me == victim) {
		CHECK_EQ(raise(SIGSTOP), 0);
		CHECK(!"it continued");
	}
	await_stop();
	for (unsigned int n = 0; n < SLOTS / (unsigned int)(total - 1); n++)
		say(victim, n);
	peers_flush();
	meet((uint32_t)total - 1, peers_work);
	if (me == 0) {
		__atomic_store_n(&board->rank[victim].doomed, 1, __ATOMIC_RELEASE);
		CHECK_EQ(kill(board->rank[victim].pid, SIGKILL), 0);
	}
	await_count(&board->rank[victim].dead, 1, peers_work);
	chat(victim);
}

static void run(void)
{
	/* The last rank, so that those that live are the first ones. */
	victim = total - 1;
	peers_open(&config);
	meet((uint32_t)total, peers_work);
	chat(total);
	stopped_outside();
	stopped_anywhere();
	/* Unlike a death, a stop breaks no way. */
	CHECK_EQ(peers_breaks(), 0);
	show((uint32_t)total, peers_work);
	killed_while_stopped();
	show((uint32_t)total - 1, peers_work);
	peers_close();
}

int main(int argc, char **argv)
{
	return ranks_main(argc, argv, run);
}
