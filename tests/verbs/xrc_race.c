// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: of N processes that open one file's domain with O_CREAT and O_EXCL at once exactly
 * one succeeds, every time; the others get EINVAL.
 */
#include <fcntl.h>

#include "verbs_test.h"

#define RACERS 8
#define ROUNDS 40

static int fd;

static void racer(int me)
{
	struct ibv_context *context = open_device(0);

	(void)me;
	for (int round = 0; round < ROUNDS; round++) {
		struct ibv_xrc_domain *domain;
		int err;

		meet(RACERS);
		domain = ibv_open_xrc_domain(context, fd, O_CREAT | O_EXCL);
		err = errno;
		__atomic_add_fetch(&board->word[domain ? 0 : 1], 1, __ATOMIC_RELAXED);
		if (!domain)
			CHECK_EQ(err, EINVAL);
		meet(RACERS);
		CHECK_EQ(board->word[0], round + 1);
		CHECK_EQ(board->word[1], (uint64_t)(round + 1) * (RACERS - 1));
		if (domain)
			CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	}
	ibv_close_device(context);
}

int main(void)
{
	char path[] = "/tmp/xrc-race-XXXXXX";
	pid_t child[RACERS];

	test_begin();
	fd = mkstemp(path);
	CHECK(fd >= 0);
	unlink(path);
	for (int i = 0; i < RACERS; i++)
		child[i] = spawn(racer, i);
	for (int i = 0; i < RACERS; i++)
		join(child[i]);
	return 0;
}
