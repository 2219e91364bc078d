// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: ranks are killed in the midst of traffic: one that created receive QPs for its node,
 * one that only registered with them, one that only sends. The others go on and lose no message
 * between them: they send what a broken way has not delivered over a new one. A new rank takes the
 * place of the dead one and connects, and its messages arrive.
 */
#include <signal.h>

#include "xrc_peers.h"

#define ROUNDS 30
#define DEATHS 3

enum { PHASE = 0, SENT = 1 }; /* words: deaths so far; SENT + from * MAX_RANKS + to */

/*
 * At first, the first rank of each node creates all receive QPs of the node. After that rank has
 * died once, each rank creates the receive QP for what is sent to it.
 */
static int first(int rank)
{
	int creator = rank / local * local;

	return creator == me || board->rank[creator].life ? rank : creator;
}

static const struct peers_config config = {
	.queues = 2,
	.size = {200, 6000},
	.slots = {64, 32},
	.low = {16, 8},
	.window = 6,
	.mortal = true,
	.first = first,
};

static int victim_of(uint64_t phase)
{
	return phase == 0 ? 0 : phase == 1 ? 1 : total - 1;
}

/* No rank sends to the rank that is to die as one that only sends. */
static bool silent(int to)
{
	return to == total - 1 && !board->rank[to].life;
}

static uint32_t length(unsigned int n)
{
	return sizeof(struct message) + n * 1237 % (6000 - sizeof(struct message));
}

static void say(int to, unsigned int n)
{
	if (to != me && !silent(to))
		peers_send(to, 0, 0, length(n));
}

/* Waits until each living rank has received all that each other rank has sent to it. */
static void settle(void)
{
	peers_flush();
	for (int i = 0; i < total; i++)
		post(SENT + (unsigned int)(me * MAX_RANKS + i),
		     peer[i].life == board->rank[i].life ? peer[i].sent : 0);
	meet((uint32_t)total, peers_work);
	for (int i = 0; i < total; i++)
		if (i != me)
			peers_await(i, (uint32_t)look(SENT + (unsigned int)(i * MAX_RANKS + me)));
	meet((uint32_t)total, peers_work);
}

static void kill_it(int victim)
{
	board->rank[victim].again = 1;
	__atomic_store_n(&board->rank[victim].doomed, 1, __ATOMIC_RELEASE);
	CHECK_EQ(kill(board->rank[victim].pid, SIGKILL), 0);
}

/* The victim sends until it is killed. */
static void be_killed(void)
{
	for (unsigned int n = 0;; n++)
		say((int)(n % (unsigned int)total), n);
}

static void phase(uint64_t p)
{
	int victim = victim_of(p), killer = (victim + 1) % total;

	meet((uint32_t)total, peers_work);
	if (me == victim)
		be_killed();
	for (unsigned int n = 0; n < ROUNDS; n++) {
		for (int i = 1; i < total; i++)
			say((me + i) % total, n);
		if (me == killer && n == ROUNDS / 2)
			kill_it(victim);
	}
	await_count(&board->rank[victim].dead, 1, peers_work);
	if (me == killer)
		post(PHASE, p + 1);
}

static void everybody_says(unsigned int rounds)
{
	for (unsigned int n = 0; n < rounds; n++)
		for (int i = 1; i < total; i++)
			say((me + i) % total, n);
	settle();
}

static void run(void)
{
	uint64_t done = 0;

	peers_open(&config);
	/* A rank in the place of a dead one goes on with the phase after that death. */
	while (my_life && victim_of(done++) != me)
		;
	await(PHASE, done, peers_work);
	everybody_says(ROUNDS);
	for (; done < DEATHS; done++) {
		phase(done);
		everybody_says(ROUNDS);
	}
	/* Each way has been used since the last death, so nothing is left of broken ones. */
	show((uint32_t)total, peers_work);
	peers_close();
}

int main(int argc, char **argv)
{
	return ranks_main(argc, argv, run);
}
