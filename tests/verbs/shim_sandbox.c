// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a program that confines itself, and ends for each system call that it has no use
 * for, registers memory as before: softhca makes no such call for it, alone, beside a thread and
 * around fork(). A program that has given up its system calls posts and polls, and a verb that is a
 * command fails. One that answers system calls itself, in a handler for SIGSYS, lives on. Softhca
 * lets others trace the program where the kernel has Yama, and nowhere else. That part needs root.
 * Quick: half
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

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

/* ---- without system calls: posting and polling take none on a card ---- */

#define EMPTY 100000 /* polls */

enum { SENT = 10, LATE, QUERY, REG, COPY, WRITTEN };

static struct ibv_qp *qp;

static void opens(void)
{
	side_open(&s, 4 * PAGE, 16, 0);
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, qp, qp);
}

/* Polls for ever: the limit of the test ends this. */
static enum ibv_wc_status polls(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (!n);
	return n < 0 ? IBV_WC_GENERAL_ERR : wc.status;
}

static void sends(void)
{
	struct ibv_wc wc;

	if (post_recv1(qp, &s, 1, PAGE, PAGE) ||
	    post_send1(qp, &s, 2, 0, PAGE, IBV_SEND_SIGNALED) || polls(s.scq) != IBV_WC_SUCCESS ||
	    polls(s.rcq) != IBV_WC_SUCCESS)
		return;
	for (int i = 0; i < EMPTY; i++)
		if (ibv_poll_cq(s.rcq, 1, &wc))
			return;
	post(SENT, 1);
}

static void strict(int arg)
{
	(void)arg;
	opens();
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0), 0);
	for (int i = 0; i < 3; i++)
		sends();
	if (write(STDOUT_FILENO, "# strict\n", 9) == 9)
		syscall(SYS_exit, 0);
	syscall(SYS_exit, 1);
}

#define ALLOWED(call)                                                                              \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),                                           \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Everything else fails with this error. */
static void allow_few(uint32_t error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOWED(SYS_read),
		ALLOWED(SYS_write),
		ALLOWED(SYS_exit),
		ALLOWED(SYS_exit_group),
		ALLOWED(SYS_rt_sigreturn),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0), 0);
}

/*
 * A message whose receive comes late arrives, by softhca's own thread, which is not confined. A
 * verb that is a command fails, and so does a command written to a copy of the device's descriptor:
 * it must not end up in the file that stands for the device.
 */
static void few_calls(int error)
{
	static const uint8_t command[8];
	struct ibv_port_attr port;
	int copy;

	opens();
	copy = dup(s.context->cmd_fd);
	CHECK(copy >= 0);
	allow_few((uint32_t)error);
	sends();
	if (!post_send1(qp, &s, 2, 0, 8, IBV_SEND_SIGNALED) && !post_recv1(qp, &s, 1, PAGE, PAGE) &&
	    polls(s.scq) == IBV_WC_SUCCESS)
		post(LATE, 1);
	post(QUERY, (uint64_t)ibv_query_port(s.context, 1, &port));
	errno = 0;
	if (!ibv_reg_mr(s.pd, s.buf, 8, 0))
		post(REG, (uint64_t)errno);
	errno = 0;
	post(WRITTEN, (uint64_t)write(copy, command, sizeof(command)));
	post(COPY, (uint64_t)errno);
	_exit(0);
}

static void without_calls(void)
{
	static const int errors[] = {EPERM, ENOSYS};

	board->word[SENT] = 0;
	join(spawn(strict, 0));
	CHECK_EQ(board->word[SENT], 1);
	for (int i = 0; i < 2; i++) {
		for (int word = SENT; word <= WRITTEN; word++)
			board->word[word] = 0;
		join(spawn(few_calls, errors[i]));
		CHECK_EQ(board->word[SENT], 1);
		CHECK_EQ(board->word[LATE], 1);
		CHECK_EQ(board->word[QUERY], errors[i]);
		CHECK_EQ(board->word[REG], errors[i]);
		CHECK_EQ(board->word[WRITTEN], -1);
		CHECK_EQ(board->word[COPY], errors[i]);
	}
}

/* ---- a filter that has the program answer ---- */

enum { FORKS, CREATES, REGISTERS, DEREGISTERS, WAYS };

static void answers(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig, (void)info;
#if defined(__x86_64__)
	uc->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
#elif defined(__aarch64__)
	uc->uc_mcontext.regs[0] = (uint64_t)-ENOSYS;
#endif
}

static void trap(uint32_t call)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	struct sigaction act = {.sa_sigaction = answers, .sa_flags = SA_SIGINFO};

	CHECK_EQ(sigaction(SIGSYS, &act, NULL), 0);
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0), 0);
}

static void *nothing(void *arg)
{
	return arg;
}

/* The process lives, and its memory is as it was, whatever else the answer means. */
static void trapped(int which)
{
	static const uint32_t calls[] = {SYS_openat,	 SYS_readlinkat, SYS_fcntl,
					 SYS_getdents64, SYS_newfstatat, SYS_prlimit64};
	const size_t len = 64 * PAGE;
	struct ibv_mr *mr;
	uint8_t *mem;
	pthread_t t;
	pid_t pid;

	up();
	mem = aligned_alloc(PAGE, len);
	CHECK(mem);
	fill(mem, len, 9);
	mr = which % WAYS == REGISTERS ? NULL : reg(mem, len);
	trap(calls[which / WAYS]);
	switch (which % WAYS) {
	case FORKS:
		pid = fork();
		if (!pid)
			_exit(0);
		if (pid > 0)
			CHECK_EQ(waitpid(pid, NULL, 0), pid);
		break;
	case CREATES:
		if (!pthread_create(&t, NULL, nothing, NULL))
			CHECK_EQ(pthread_join(t, NULL), 0);
		break;
	case REGISTERS:
		(void)ibv_reg_mr(s.pd, mem, len, ACCESS);
		break;
	case DEREGISTERS:
		(void)ibv_dereg_mr(mr);
		break;
	}
	CHECK_EQ(differs(mem, len, 9), -1);
	_exit(0);
}

/* ---- who may trace the program ---- */

#define OPENS "opens" /* the argument of a program that opens the device */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOW(n) (offsetof(struct seccomp_data, args) + 8 * (n))
#else
#define LOW(n) (offsetof(struct seccomp_data, args) + 8 * (n) + 4)
#endif

/* Ends the process where it lets every other one trace it. */
static void keep_tracers(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW(0)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PTRACER, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW(1)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)PR_SET_PTRACER_ANY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0), 0);
}

/* A program of this process opens the device, where it finds a kernel with Yama, or one without. */
static void traced(int yama)
{
	const struct rlimit none = {0};

	CHECK_EQ(unshare(CLONE_NEWNS), 0);
	CHECK_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	CHECK_EQ(mount("none", "/proc/sys/kernel", "tmpfs", 0, NULL), 0);
	if (yama)
		CHECK_EQ(mkdir("/proc/sys/kernel/yama", 0755), 0);
	CHECK_EQ(setrlimit(RLIMIT_CORE, &none), 0);
	keep_tracers();
	execl("/proc/self/exe", "shim_sandbox", OPENS, (char *)NULL);
	CHECK(false);
}

static void try_mount(int arg)
{
	(void)arg;
	_exit(unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	      mount("none", "/proc/sys/kernel", "tmpfs", 0, NULL));
}

static void tracers(void)
{
	int status;
	pid_t pid = spawn(try_mount, 0);

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (status) {
		puts("# no mount below /proc here: the part about tracers is left out");
		return;
	}
	join(spawn(traced, false));
	join_killed(spawn(traced, true), SIGSYS);
}

/* The parent is not confined, and asks whether the memory was shared all the same. */
int main(int argc, char **argv)
{
	uint64_t shared;

	test_begin();
	if (argc > 1 && !strcmp(argv[1], OPENS)) {
		opens();
		sends();
		return 0;
	}
	tracers();
	for (int early = 0; early < 2; early++) {
		shared = hca_counter("regions_shared");
		join(spawn(confined, early));
		CHECK(hca_counter("regions_shared") - shared >= 4);
	}
	/* A sanitizer makes system calls of its own. */
	if (!SANITIZED)
		without_calls();
	for (int which = 0; which < 6 * WAYS && !SANITIZED; which++)
		join(spawn(trapped, which));
	return 0;
}
