// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: signal handlers of programs that open no verbs device, which use umad, issm, rdma_cm
 * and counter files, fork, or jump away by siglongjmp(), while the program does the same. All calls
 * return, and do what they do without a signal; so does the process's very first one, and fork() in
 * a program that uses no file of a device.
 *
 * The program sets the timer anew for each signal, later each time. So the handler interrupts a
 * call in many places, and the program goes on however long the handler takes.
 * Quick: half
 */
#include <endian.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>

#include <rdma/ib_user_mad.h>
#include <rdma/rdma_cma_abi.h>

#include "verbs_test.h"

/*
 * Of them, the quick tier sends a third, and the full one half: where many programs share a
 * processor, a fork takes long.
 */
#define SIGNALS 400
#define FIRSTS	60

static timer_t timer;
static int umad, cm;
static uint32_t agent;
static void (*in_handler)(void);
static volatile sig_atomic_t ran;
static sigjmp_buf back;

/* ---- what a program does, in itself and in its handler ---- */

static void nothing(void)
{
}

static void open_umad(void)
{
	int fd = open("/dev/infiniband/umad0", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(close(fd), 0);
}

static void write_umad(void)
{
	struct {
		struct ib_user_mad_hdr hdr;
		uint8_t mad[256];
	} m = {.hdr = {.id = agent, .lid = htobe16(1)}, .mad = {1, 0x32, 1, 3, [39] = 5}};

	CHECK_EQ(write(umad, &m, sizeof(m)), sizeof(m));
}

/*
 * Only one program at a time is a port's subnet manager: another one that asks without sleeping is
 * told so.
 */
static void open_issm(void)
{
	int fd = open("/dev/infiniband/issm0", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	CHECK(fd >= 0 || errno == EAGAIN);
	if (fd >= 0)
		CHECK_EQ(close(fd), 0);
}

static void read_counter(void)
{
	int fd = open("/sys/class/infiniband/mlx4_0/ports/1/counters/port_xmit_data",
		      O_RDONLY | O_CLOEXEC);
	char text[32];

	CHECK(fd >= 0);
	CHECK(read(fd, text, sizeof(text)) > 0);
	CHECK_EQ(close(fd), 0);
}

static void open_cm(void)
{
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(close(fd), 0);
}

static void write_cm(void)
{
	struct ucma_abi_create_id_resp made;
	struct ucma_abi_destroy_id_resp gone;
	struct ucma_abi_create_id create = {
		.hdr = {UCMA_CMD_CREATE_ID, sizeof(create) - sizeof(create.hdr), sizeof(made)},
		.response = (uintptr_t)&made,
		.ps = 0x106,
		.qp_type = 2,
	};
	struct ucma_abi_destroy_id destroy = {
		.hdr = {UCMA_CMD_DESTROY_ID, sizeof(destroy) - sizeof(destroy.hdr), sizeof(gone)},
		.response = (uintptr_t)&gone,
	};

	CHECK_EQ(write(cm, &create, sizeof(create)), sizeof(create));
	destroy.id = made.id;
	CHECK_EQ(write(cm, &destroy, sizeof(destroy)), sizeof(destroy));
}

/* The child begins with the mask of its parent. */
static void fork_and(void (*in_child)(void))
{
	sigset_t before, now;
	pid_t pid, ended;
	int status;

	CHECK_EQ(sigprocmask(SIG_BLOCK, NULL, &before), 0);
	pid = fork();
	CHECK(pid >= 0);
	CHECK_EQ(sigprocmask(SIG_BLOCK, NULL, &now), 0);
	for (int sig = 1; sig < SIGRTMIN; sig++)
		CHECK_EQ(sigismember(&now, sig), sigismember(&before, sig));
	if (!pid) {
		alarm(test_seconds());
		in_child();
		_exit(0);
	}
	while ((ended = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
		;
	CHECK_EQ(ended, pid);
	CHECK_EQ(status, 0);
}

static void fork_plainly(void)
{
	fork_and(nothing);
}

static void fork_to_write(void)
{
	fork_and(write_umad);
}

static void jump(void)
{
	siglongjmp(back, 1);
}

/* ---- the storm ---- */

static int share_of(int n)
{
	const char *tier = getenv("TIER"), *rows = getenv("ROWS");

	if (rows && !strcmp(rows, "all"))
		return n;
	return tier && !strcmp(tier, "full") ? n / 2 : n / 3;
}

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	ran++;
	in_handler();
	errno = saved;
}

static void set_timer(long usec)
{
	struct itimerspec once = {.it_value = {0, usec * 1000}};

	CHECK_EQ(timer_settime(timer, 0, &once, NULL), 0);
}

static void make_timer(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};

	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
}

static void set_handler(void (*does)(void))
{
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	in_handler = does;
	CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
}

static const struct storm {
	const char *what;
	void (*does)(void), (*handler)(void);
} storms[] = {
	{"umad opened", open_umad, open_umad},
	{"umad written", write_umad, write_umad},
	{"umad written, jumps", write_umad, jump},
	{"umad written, forks", write_umad, fork_to_write},
	{"issm opened", open_issm, open_issm},
	{"counter read", read_counter, read_counter},
	{"rdma_cm opened", open_cm, open_cm},
	{"rdma_cm written", write_cm, write_cm},
	{"forks with a file", fork_to_write, fork_to_write},
	{"forks", fork_plainly, fork_plainly},
};

static void open_files(void)
{
	struct ib_user_mad_reg_req r = {
		.qpn = 1, .mgmt_class = 0x33, .mgmt_class_version = 1, .oui = {0, 0, 5}};

	umad = open("/dev/infiniband/umad0", O_RDWR | O_CLOEXEC);
	CHECK(umad >= 0);
	CHECK_EQ(ioctl(umad, IB_USER_MAD_ENABLE_PKEY), 0);
	CHECK_EQ(ioctl(umad, IB_USER_MAD_REGISTER_AGENT, &r), 0);
	agent = r.id;
	cm = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	CHECK(cm >= 0);
}

static void storm(int n)
{
	const struct storm *s = &storms[n];

	printf("%s\n", s->what);
	fflush(stdout);
	set_handler(s->handler);
	make_timer();
	if (s->does != fork_plainly)
		open_files();
	for (volatile int i = 0; i < share_of(SIGNALS); i++) {
		volatile sig_atomic_t before = ran;

		if (!sigsetjmp(back, 1)) {
			set_timer(1 + i * 37 % 700);
			while (ran == before)
				s->does();
		}
	}
	/* No lock is held. */
	s->does();
}

/* ---- the first call of a process, which two threads make ---- */

static void *open_one(void *arg)
{
	(void)arg;
	open_umad();
	return NULL;
}

static void first(int n)
{
	pthread_t thread;

	set_handler(n % 2 ? open_umad : read_counter);
	make_timer();
	CHECK_EQ(pthread_create(&thread, NULL, open_one, NULL), 0);
	set_timer(1 + n * 53 % 900);
	while (!ran)
		open_umad();
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

int main(void)
{
	test_begin();
	/* The parent uses no device, so each child has a first request of its own. */
	for (size_t i = 0; i < sizeof(storms) / sizeof(*storms); i++)
		join(spawn(storm, (int)i));
	for (int i = 0; i < share_of(FIRSTS); i++)
		join(spawn(first, i));
	return 0;
}
