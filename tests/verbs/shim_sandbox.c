// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a program that confines itself, and ends for each system call that it has no use for,
 * registers memory as before: softhca makes no such call for it, alone, beside a thread and around
 * fork().
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "shared_memory_test.h"

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup    425
#define SYS_io_uring_enter    426
#define SYS_io_uring_register 427
#endif
#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000U
#endif

#define ENDS_FOR(call)                                                                             \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),                                           \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

/* What a list of usual system calls leaves out. */
static void confine(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ENDS_FOR(SYS_io_uring_setup),
		ENDS_FOR(SYS_io_uring_enter),
		ENDS_FOR(SYS_io_uring_register),
		ENDS_FOR(SYS_userfaultfd),
		ENDS_FOR(SYS_get_mempolicy),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0), 0);
}

static void use(uint64_t seed, bool alone)
{
	uint8_t *mem = pages(4);
	struct ibv_mr *mr;
	int status;
	pid_t pid;

	if (alone)
		memset(mem, 1, 4 * PAGE);
	mr = reg(mem, 4 * PAGE);
	through(mr, mem, 4 * PAGE, seed);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(differs(mem, 4 * PAGE, seed + 1) == -1 ? 0 : 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, 4 * PAGE);
}

static pthread_barrier_t steps;

static void *waits(void *arg)
{
	pthread_barrier_wait(&steps);
	return arg;
}

static void confined(int early)
{
	pthread_t t;

	if (early)
		confine();
	up();
	if (!early)
		confine();
	for (int i = 0; i < 3; i++)
		use(20 + (uint64_t)i, true);
	pthread_barrier_init(&steps, NULL, 2);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	use(30, false);
	pthread_barrier_wait(&steps);
	CHECK_EQ(pthread_join(t, NULL), 0);
	use(40, true);
	down();
}

/* The parent is not confined, and asks whether the memory was shared all the same. */
int main(void)
{
	uint64_t shared;

	test_begin();
	for (int early = 0; early < 2; early++) {
		shared = hca_counter("regions_shared");
		join(spawn(confined, early));
		CHECK(hca_counter("regions_shared") - shared >= 4);
	}
	return 0;
}
