// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: softhca's own thread does not count as one of the program's. A process ends with the
 * last thread of the program, however its threads end. Calls that only a process with one thread
 * may make (unshare(), setns()) do what they do without a device, and the device goes on working.
 * setuid() ends.
 * Quick: half
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "verbs_test.h"

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { AT_EXIT = 10, QPN, OWNERS_QPN, RKEY, ADDR, CONNECTED };

static struct side s;
static struct ibv_qp *a, *b;

static void up(void)
{
	side_open(&s, 8192, 16, 0);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
}

/* Sends a message whose receive comes late, so that it takes a timer, and registers memory. */
static void works(void)
{
	struct ibv_mr *mr;

	fill(s.buf, 100, 1);
	memset(s.buf + 4096, 0, 100);
	CHECK_EQ(post_send1(a, &s, 1, 0, 100, IBV_SEND_SIGNALED), 0);
	sleep_ms(20);
	CHECK_EQ(post_recv1(b, &s, 2, 4096, 100), 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 2, IBV_WC_SUCCESS);
	CHECK_EQ(differs(s.buf + 4096, 100, 1), -1);
	mr = ibv_reg_mr(s.pd, s.buf, 100, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
}

/* ---- the end of the process ---- */

static void at_exit(void)
{
	post(AT_EXIT, 1);
}

static void *outlives_main(void *arg)
{
	sleep_ms(100);
	works();
	return arg;
}

static void last_is_main(int arg)
{
	(void)arg;
	up();
	works();
	CHECK_EQ(atexit(at_exit), 0);
	pthread_exit(NULL);
}

static void last_is_another(int arg)
{
	pthread_t t;

	(void)arg;
	up();
	CHECK_EQ(pthread_create(&t, NULL, outlives_main, NULL), 0);
	CHECK_EQ(atexit(at_exit), 0);
	pthread_exit(NULL);
}

/* ---- a peer of a process whose main() has ended ---- */

/* The memory stays private, because it was touched and is registered in a process with threads. */
static void *is_reached(void *arg)
{
	struct ibv_mr *mr;
	struct link l;

	sleep_ms(100);
	fill(s.buf, 4096, 5);
	mr = ibv_reg_mr(s.pd, s.buf, 4096,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	CHECK(mr);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	board->word[OWNERS_QPN] = b->qp_num;
	board->word[RKEY] = mr->rkey;
	post(ADDR, (uintptr_t)s.buf);
	await(QPN, 1);
	link_defaults(&l, s.lid, (uint32_t)board->word[QPN]);
	connect_qp(b, &l);
	post(CONNECTED, 1);
	await(CONNECTED, 2);
	CHECK_EQ(differs(s.buf, 4096, 6), -1);
	return arg;
}

static void main_ends(int arg)
{
	pthread_t t;

	(void)arg;
	side_open(&s, 8192, 16, 0);
	CHECK_EQ(pthread_create(&t, NULL, is_reached, NULL), 0);
	pthread_exit(NULL);
}

static void reaches(int arg)
{
	struct link l;
	uint32_t rkey;
	uint64_t addr;

	(void)arg;
	side_open(&s, 8192, 16, 0);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	await(ADDR, 1);
	addr = board->word[ADDR];
	rkey = (uint32_t)board->word[RKEY];
	link_defaults(&l, s.lid, (uint32_t)board->word[OWNERS_QPN]);
	connect_qp(a, &l);
	post(QPN, a->qp_num);
	await(CONNECTED, 1);
	CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_READ, 1, 0, 4096, addr, rkey, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(differs(s.buf, 4096, 5), -1);
	fill(s.buf, 4096, 6);
	CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, 2, 0, 4096, addr, rkey, IBV_SEND_SIGNALED),
		 0);
	expect_wc(s.scq, 2, IBV_WC_SUCCESS);
	post(CONNECTED, 2);
}

static void ends(void (*fn)(int arg))
{
	board->word[AT_EXIT] = 0;
	join(spawn(fn, 0));
	CHECK_EQ(board->word[AT_EXIT], 1);
}

/* ---- threads that end by a direct system call ---- */

#define STATUS 42

/* Returns the process's status. */
static int ends_raw(pid_t pid)
{
	int status = -1;

	for (int i = 0; !waitpid(pid, &status, WNOHANG); i++) {
		if (i == 2000) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			printf("the process goes on, though the program's threads have ended\n");
			CHECK(false);
		}
		sleep_ms(5);
	}
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void exits(int arg)
{
	(void)arg;
	up();
	works();
	syscall(SYS_exit, STATUS);
}

static void *exits_later(void *arg)
{
	sleep_ms(100);
	works();
	syscall(SYS_exit, STATUS);
	return arg;
}

static void *returns_later(void *arg)
{
	sleep_ms(100);
	return arg;
}

/* Others go on when the first thread has ended. */
static void exits_before(void *(*other)(void *))
{
	pthread_t t[3];

	up();
	works();
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, i ? returns_later : other, NULL), 0);
	syscall(SYS_exit, STATUS);
}

static void exits_before_others(int arg)
{
	(void)arg;
	exits_before(exits_later);
}

static void exits_before_returns(int arg)
{
	(void)arg;
	exits_before(returns_later);
}

static void *forks(void *arg)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		exits(0);
	CHECK_EQ(ends_raw(pid), STATUS);
	return arg;
}

/* The child's first thread is one that was not the first of its parent. */
static void child_exits(int open_before)
{
	pthread_t t;

	if (open_before)
		up();
	CHECK_EQ(pthread_create(&t, NULL, forks, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* ---- what a process unshares ---- */

static int to_its_own(int flags)
{
	int fd;

	(void)flags;
	fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	return setns(fd, CLONE_NEWNS) | close(fd);
}

static int by_range(int fd)
{
	return (int)syscall(SYS_close_range, fd, fd, CLOSE_RANGE_UNSHARE);
}

/* After the first of these calls no helper could be created. */
static int one_after_the_other(int flags)
{
	return unshare(CLONE_NEWUSER | CLONE_NEWPID) || unshare(flags);
}

static const struct parting {
	const char *name;
	int (*call)(int flags);
	int flags;
} parting[] = {
	{"address space and handlers", unshare, CLONE_VM | CLONE_SIGHAND},
	{"user namespace", unshare, CLONE_NEWUSER},
	{"user and process namespaces", unshare, CLONE_NEWUSER | CLONE_NEWPID},
	{"mount namespace", to_its_own, 0},
	{"directories", unshare, CLONE_FS},
	{"process namespace, then directories", one_after_the_other, CLONE_FS},
};

static const struct parting descriptors[] = {
	{"descriptors", unshare, CLONE_FILES},
	{"descriptors, by close_range()", by_range, 1 << 20},
};

/*
 * Some of these calls need a privilege, or are forbidden. So a child without a device tries first.
 */
static bool may(const struct parting *p)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid)
		_exit(p->call(p->flags) ? 1 : 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (status)
		printf("# %s: left out, the call is not permitted here\n", p->name);
	return !status;
}

static void parts(int arg)
{
	up();
	works();
	CHECK_EQ(parting[arg].call(parting[arg].flags), 0);
	works();
}

/*
 * Again and again, each time with a timer that is due when softhca's thread has begun anew: the
 * message waits for its receive.
 */
static void parts_again_and_again(int arg)
{
	(void)arg;
	up();
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(post_send1(a, &s, 1, 0, 100, IBV_SEND_SIGNALED), 0);
		for (int n = 0; n < 20; n++)
			CHECK_EQ(unshare(CLONE_FS), 0);
		CHECK_EQ(post_recv1(b, &s, 2, 4096, 100), 0);
		expect_wc(s.scq, 1, IBV_WC_SUCCESS);
		expect_wc(s.rcq, 2, IBV_WC_SUCCESS);
	}
}

/* When this process has closed one end of a pipe, softhca's thread does not keep that end open. */
static void parts_with_descriptors(int by_close_range)
{
	int fd[2];
	char byte;

	up();
	works();
	CHECK_EQ(pipe(fd), 0);
	if (by_close_range) {
		CHECK_EQ(close_range((unsigned int)fd[1], (unsigned int)fd[1],
				     (int)CLOSE_RANGE_UNSHARE),
			 0);
	} else {
		CHECK_EQ(unshare(CLONE_FILES), 0);
		CHECK_EQ(close(fd[1]), 0);
	}
	CHECK_EQ(read(fd[0], &byte, 1), 0);
	works();
}

/* ---- calls that the C library has each thread make ---- */

static void *sleeps_long(void *arg)
{
	pause();
	return arg;
}

/*
 * setuid() asks each thread, softhca's own too, by a signal and waits for it. The program has a
 * thread before it does anything with a device.
 */
static void changes_user(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, sleeps_long, NULL))
		_exit(1);
	test_begin();
	up();
	CHECK_EQ(setuid(getuid()), 0);
	CHECK_EQ(setgid(getgid()), 0);
	works();
	_exit(0);
}

int main(int argc, char **argv)
{
	pid_t owner;

	if (argc > 1)
		changes_user();
	/* A program of its own: a child has a thread of softhca's before its first. */
	owner = fork();
	if (!owner) {
		execl("/proc/self/exe", argv[0], "user", (char *)NULL);
		_exit(127);
	}
	test_begin();
	join(owner);
	ends(last_is_main);
	ends(last_is_another);
	CHECK_EQ(ends_raw(spawn(exits, 0)), STATUS);
	CHECK_EQ(ends_raw(spawn(exits_before_others, 0)), STATUS);
	/* Which thread's status it is depends on the kernel, and on softhca. */
	(void)ends_raw(spawn(exits_before_returns, 0));
	join(spawn(child_exits, 0));
	join(spawn(child_exits, 1));
	owner = spawn(main_ends, 0);
	join(spawn(reaches, 0));
	join(owner);
	for (size_t i = 0; i < sizeof(parting) / sizeof(parting[0]); i++)
		if (may(&parting[i]))
			join(spawn(parts, (int)i));
	join(spawn(parts_again_and_again, 0));
	for (int i = 0; i < 2; i++)
		if (may(&descriptors[i]))
			join(spawn(parts_with_descriptors, i));
	return 0;
}
