// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a child's view of registered memory that has become device memory is a private copy;
 * so it is when its parent has ended.
 * Quick: half
 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared_memory_test.h"

static void forking(void)
{
	uint8_t *mem = pages(8);
	struct ibv_mr *mr;
	int status;
	pid_t pid;

	CHECK(shares(mem, 8 * PAGE, &mr));
	for (int i = 0; i < 30; i++) {
		fill(mem, 8 * PAGE, i);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			bool mine = differs(mem, 8 * PAGE, i) == -1;

			memset(mem, 0xcc, 8 * PAGE);
			_exit(mine ? 0 : 1);
		}
		/* At once: a child that used the parent's pages would see it. */
		memset(mem, 0xaa, 8 * PAGE);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
		for (size_t at = 0; at < 8 * PAGE; at++)
			CHECK_EQ(mem[at], 0xaa);
	}
	through(mr, mem, 8 * PAGE, 50);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, 8 * PAGE);
}

/* As daemons do: the process that registered the memory forks and ends, and the child goes on with
 * its copy. */
static void orphan(int arg)
{
	uint8_t *mem;
	struct ibv_mr *mr;
	pid_t pid;

	(void)arg;
	side_open(&s, 16 * PAGE, 64, 0);
	mem = pages(8);
	fill(mem, 8 * PAGE, 51);
	mr = reg(mem, 8 * PAGE);
	CHECK(mr);
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		_exit(0);
	while (getppid() != 1 && hca_counter("shared_pages_used") > board->word[1])
		sleep_ms(1);
	CHECK_EQ(differs(mem, 8 * PAGE, 51), -1);
	memset(mem, 1, 8 * PAGE);
	post(0, 1);
	_exit(0);
}

int main(void)
{
	pid_t pid;

	test_begin();
	board->word[1] = hca_counter("shared_pages_used");
	pid = spawn(orphan, 0);
	join(pid);
	await(0, 1);
	given_back(board->word[1]);
	up();
	forking();
	down();
	given_back(board->word[1]);
	return 0;
}
