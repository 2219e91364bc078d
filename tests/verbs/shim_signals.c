// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a program uses SIGBUS and signal masks as if softhca did not use them. Its handlers
 * get its own faults, on the stack and beside the calls that it has asked for. What it sets is what
 * it reads back. Threads that block all signals ring doorbells, and so do handlers that interrupt a
 * doorbell, or a wait that blocks all other signals, and what a timer runs in a thread. A child of
 * vfork() changes none of this for its parent.
 * Quick: half
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "verbs_test.h"

static struct side s;
static struct ibv_qp *a, *b, *c, *d;
static char *hole; /* a mapping with nothing behind it */
static sigjmp_buf back;
static void *volatile fault;

static void make_hole(void)
{
	FILE *f = tmpfile();

	CHECK(f);
	hole = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	CHECK(hole != MAP_FAILED);
}

static void on_bus(int sig, siginfo_t *info, void *uc)
{
	(void)sig, (void)uc;
	fault = info->si_addr;
	siglongjmp(back, 1);
}

static void one_message(struct ibv_qp *from, struct ibv_qp *to, uint64_t id)
{
	CHECK_EQ(post_recv1(to, &s, id, 4096, 64), 0);
	CHECK_EQ(post_send1(from, &s, id, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, id, IBV_WC_SUCCESS);
	expect_wc(s.rcq, id, IBV_WC_SUCCESS);
}

static void take_own_fault(void)
{
	fault = NULL;
	if (!sigsetjmp(back, 1))
		*(volatile char *)(hole + 100) = 1;
	CHECK(fault == hole + 100);
	fault = NULL;
	if (!sigsetjmp(back, 1))
		(void)*(volatile char *)(hole + 200);
	CHECK(fault == hole + 200);
}

/* The handler is set before the device is opened, and changed afterwards. */
static void handlers(void)
{
	struct sigaction act = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_NODEFER}, old;

	take_own_fault();
	one_message(a, b, 1);
	CHECK_EQ(sigaction(SIGBUS, NULL, &old), 0);
	CHECK(old.sa_sigaction == on_bus && (old.sa_flags & SA_SIGINFO));
	CHECK((void *)signal(SIGBUS, SIG_IGN) == (void *)on_bus);
	CHECK_EQ(raise(SIGBUS), 0);
	one_message(a, b, 2);
	CHECK_EQ(sigaction(SIGBUS, &act, &old), 0);
	CHECK(old.sa_handler == SIG_IGN);
	one_message(a, b, 3);
	take_own_fault();
	take_own_fault();
}

/* ---- how a handler is run ---- */

static char other_stack[1 << 16];
static int ran_there, ran;

static bool is_there(const void *at)
{
	return (const char *)at >= other_stack &&
	       (const char *)at < other_stack + sizeof(other_stack);
}

static void notes_stack(int sig, siginfo_t *info, void *uc)
{
	stack_t now;

	(void)sig, (void)uc;
	ran++;
	ran_there += is_there(&now);
	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK_EQ(now.ss_flags & SS_ONSTACK, is_there(&now) ? SS_ONSTACK : 0);
	if (info->si_code > 0)
		siglongjmp(back, 1);
}

static void runs_as_asked(int flags, int there)
{
	struct sigaction act = {.sa_sigaction = notes_stack, .sa_flags = SA_SIGINFO | flags};

	CHECK_EQ(sigaction(SIGBUS, &act, NULL), 0);
	ran = ran_there = 0;
	CHECK_EQ(raise(SIGBUS), 0);
	one_message(a, b, 6);
	if (!sigsetjmp(back, 1))
		*(volatile char *)(hole + 300) = 1;
	CHECK_EQ(raise(SIGBUS), 0);
	CHECK_EQ(ran, 3);
	CHECK_EQ(ran_there, there);
}

static void stacks(void)
{
	const stack_t none = {.ss_flags = SS_DISABLE};
	stack_t other = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)}, before;

	CHECK_EQ(sigaltstack(&none, &before), 0); /* a sanitizer has one */
	runs_as_asked(SA_ONSTACK, 0);
	CHECK_EQ(sigaltstack(&other, NULL), 0);
	runs_as_asked(0, 0);
	runs_as_asked(SA_ONSTACK, 3);
	CHECK_EQ(sigaltstack(&before, NULL), 0);
}

static struct {
	pthread_t reader;
	int pipe[2];
	bool restarts;
	int over;
} reading;

static void nothing(int sig)
{
	(void)sig;
	__atomic_add_fetch(&ran, 1, __ATOMIC_RELAXED);
}

static void *interrupts(void *arg)
{
	do {
		sleep_ms(1);
		CHECK_EQ(pthread_kill(reading.reader, SIGBUS), 0);
	} while (reading.restarts ? __atomic_load_n(&ran, __ATOMIC_RELAXED) < 20
				  : !__atomic_load_n(&reading.over, __ATOMIC_RELAXED));
	if (reading.restarts)
		CHECK_EQ(write(reading.pipe[1], "x", 1), 1);
	return arg;
}

static void interrupted_call(bool restarts)
{
	struct sigaction act = {.sa_handler = nothing, .sa_flags = restarts ? SA_RESTART : 0};
	pthread_t thread;
	ssize_t got;
	char byte;

	CHECK_EQ(sigaction(SIGBUS, &act, NULL), 0);
	ran = 0;
	reading.reader = pthread_self();
	reading.restarts = restarts;
	reading.over = 0;
	CHECK_EQ(pipe(reading.pipe), 0);
	CHECK_EQ(pthread_create(&thread, NULL, interrupts, NULL), 0);
	got = read(reading.pipe[0], &byte, 1);
	if (!restarts)
		CHECK_EQ(errno, EINTR);
	__atomic_store_n(&reading.over, 1, __ATOMIC_RELAXED);
	CHECK_EQ(got, restarts ? 1 : -1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	close(reading.pipe[0]);
	close(reading.pipe[1]);
	one_message(a, b, 7);
}

/* Has a child of vfork() that sets its signals, as before an exec, in its parent's memory. */
static __attribute__((noinline)) void has_child(void)
{
	struct sigaction child = {.sa_handler = SIG_DFL};
	sigset_t all;
	pid_t pid;

	sigfillset(&all);
	pid = vfork();
	CHECK(pid >= 0);
	if (!pid) {
		if (sigaction(SIGBUS, &child, NULL) || signal(SIGBUS, SIG_IGN) != SIG_DFL)
			_exit(1);
		sigprocmask(SIG_SETMASK, &all, NULL);
		_exit(0);
	}
	join(pid);
}

static void vfork_child(void)
{
	struct sigaction act = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_NODEFER}, old;
	sigset_t now;

	CHECK_EQ(sigaction(SIGBUS, &act, NULL), 0);
	has_child();
	CHECK_EQ(sigaction(SIGBUS, NULL, &old), 0);
	CHECK(old.sa_sigaction == on_bus && (old.sa_flags & SA_SIGINFO));
	CHECK_EQ(sigprocmask(SIG_BLOCK, NULL, &now), 0);
	CHECK_EQ(sigismember(&now, SIGBUS), 0);
	take_own_fault();
	one_message(a, b, 5);
}

static void *deaf(void *arg)
{
	sigset_t all, now;

	(void)arg;
	sigfillset(&all);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, NULL), 0);
	one_message(a, b, 4);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
	CHECK_EQ(sigismember(&now, SIGBUS), 1);
	CHECK_EQ(sigismember(&now, SIGTERM), 1);
	CHECK_EQ(sigprocmask(SIG_UNBLOCK, &all, &now), 0);
	CHECK_EQ(sigismember(&now, SIGBUS), 1);
	CHECK_EQ(sigprocmask(SIG_BLOCK, NULL, &now), 0);
	CHECK_EQ(sigismember(&now, SIGBUS), 0);
	return NULL;
}

/* The attributes of a thread have a mask that it begins with. */
#if __GLIBC_PREREQ(2, 32)
static void *begins_deaf(void *arg)
{
	sigset_t now;

	(void)arg;
	one_message(a, b, 6);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
	CHECK_EQ(sigismember(&now, SIGTERM), 1);
	return NULL;
}

static void deaf_from_the_start(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;

	sigfillset(&all);
	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setsigmask_np(&attr, &all), 0);
	CHECK_EQ(pthread_create(&thread, &attr, begins_deaf, NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(pthread_attr_destroy(&attr), 0);
}
#else
static void deaf_from_the_start(void)
{
	printf("# no pthread_attr_setsigmask_np(): that part is left out\n");
}
#endif

/* ---- handlers that post ---- */

static volatile sig_atomic_t handled;

static void on_user(int sig)
{
	(void)sig;
	one_message(a, b, 7);
	handled++;
}

/* Waits for a signal in one of the calls that have a mask for the time of the call. */
static void wait_for(const sigset_t *mask, int how)
{
	const struct timespec long_enough = {50, 0};
	struct epoll_event event;
	int fd;

	switch (how) {
	case 0:
		CHECK_EQ(sigsuspend(mask), -1);
		break;
	case 1:
		CHECK_EQ(ppoll(NULL, 0, &long_enough, mask), -1);
		break;
	case 2:
		CHECK_EQ(pselect(0, NULL, NULL, NULL, &long_enough, mask), -1);
		break;
	case 3:
		fd = epoll_create1(0);
		CHECK(fd >= 0);
		CHECK_EQ(epoll_pwait(fd, &event, 1, 50000, mask), -1);
		close(fd);
		break;
	}
}

/* A program that does all its work in a handler blocks all other signals while it waits. */
static void handler_of_a_wait(void)
{
	struct sigaction act = {.sa_handler = on_user};
	sigset_t user, all_others;

	CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
	sigemptyset(&user);
	sigaddset(&user, SIGUSR1);
	sigfillset(&all_others);
	sigdelset(&all_others, SIGUSR1);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &user, NULL), 0);
	for (int how = 0; how < 4; how++) {
		CHECK_EQ(raise(SIGUSR1), 0);
		CHECK_EQ(handled, how);
		wait_for(&all_others, how);
		CHECK_EQ(handled, how + 1);
		one_message(a, b, 8);
	}
	CHECK_EQ(sigprocmask(SIG_UNBLOCK, &user, NULL), 0);
}

static void on_user_bus(int sig)
{
	(void)sig;
	handled++;
}

/* What System V and BSD had for masks and actions. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void old_calls(void)
{
	struct sigaction before, act;
	int mask;

	handled = 0;
	CHECK_EQ(sigaction(SIGBUS, NULL, &before), 0);
	CHECK_EQ(sighold(SIGBUS), 0);
	one_message(a, b, 10);
	CHECK(sigset(SIGBUS, SIG_HOLD) == SIG_HOLD);
	one_message(a, b, 11);
	CHECK_EQ(sigrelse(SIGBUS), 0);
	CHECK_EQ(sigignore(SIGBUS), 0);
	one_message(a, b, 12);
	CHECK_EQ(raise(SIGBUS), 0);
	CHECK(sigset(SIGBUS, on_user_bus) == SIG_IGN);
	one_message(a, b, 13);
	CHECK_EQ(raise(SIGBUS), 0);
	CHECK_EQ(handled, 1);
	mask = sigblock(~0);
	CHECK_EQ(mask & 1 << (SIGBUS - 1), 0);
	one_message(a, b, 14);
	CHECK(sigsetmask(mask) & 1 << (SIGBUS - 1));
	CHECK_EQ(sigblock(0), mask);
	/* A handler that sigset() sets is one that may post. */
	CHECK(sigset(SIGUSR1, on_user) != SIG_ERR);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(handled, 2);
	CHECK_EQ(sigaction(SIGUSR1, NULL, &act), 0);
	CHECK(act.sa_handler == on_user);
	CHECK_EQ(sigset(-1, on_user) == SIG_ERR && errno == EINVAL, true);
	CHECK_EQ(sighold(1000), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(sigaction(SIGBUS, &before, NULL), 0);
}
#pragma GCC diagnostic pop

static void on_user_all(int sig, siginfo_t *info, void *uc)
{
	(void)sig, (void)info;
	sigfillset(&((ucontext_t *)uc)->uc_sigmask);
}

/* A handler that changes the mask of the code that it has interrupted. */
static void handler_that_blocks(void)
{
	struct sigaction act = {.sa_sigaction = on_user_all, .sa_flags = SA_SIGINFO};
	sigset_t before, now;

	CHECK_EQ(sigprocmask(SIG_BLOCK, NULL, &before), 0);
	CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
	CHECK_EQ(raise(SIGUSR1), 0);
	one_message(a, b, 9);
	CHECK_EQ(sigprocmask(SIG_SETMASK, &before, &now), 0);
	CHECK_EQ(sigismember(&now, SIGBUS), 1);
	CHECK_EQ(sigismember(&now, SIGTERM), 1);
	CHECK_EQ(sigprocmask(SIG_BLOCK, NULL, &now), 0);
	CHECK_EQ(sigismember(&now, SIGBUS), 0);
}

#define IN_HANDLER 50
static volatile sig_atomic_t posted;

static void on_alarm(int sig)
{
	(void)sig;
	if (posted < IN_HANDLER && !post_send1(c, &s, 1000, 0, 64, IBV_SEND_SIGNALED))
		posted++;
}

static void posting_handler(void)
{
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	struct sigaction act = {.sa_handler = on_alarm, .sa_flags = SA_RESTART}, old;
	unsigned int sent = 0, seen = 0, done = 0;
	struct ibv_wc wc;

	sigfillset(&act.sa_mask);
	for (int i = 0; i < IN_HANDLER; i++)
		CHECK_EQ(post_recv1(d, &s, 2000, 8192, 64), 0);
	CHECK_EQ(sigaction(SIGVTALRM, &act, &old), 0);
	CHECK_EQ(setitimer(ITIMER_VIRTUAL, &often, NULL), 0);
	while (posted < IN_HANDLER || sent < 2000) {
		CHECK_EQ(post_recv1(b, &s, 3000, 4096, 64), 0);
		CHECK_EQ(post_send1(a, &s, 3000, 0, 64, IBV_SEND_SIGNALED), 0);
		sent++;
		for (done = 0; done < 2;) {
			struct ibv_cq *cq = done ? s.rcq : s.scq;

			if (ibv_poll_cq(cq, 1, &wc) != 1)
				continue;
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			if (wc.wr_id == 3000)
				done++;
			else
				seen++;
		}
	}
	CHECK_EQ(setitimer(ITIMER_VIRTUAL, &never, NULL), 0);
	while (seen < 2 * IN_HANDLER) {
		if (ibv_poll_cq(s.scq, 1, &wc) == 1 || ibv_poll_cq(s.rcq, 1, &wc) == 1) {
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			seen++;
		}
	}
}

/* ---- sigaction() in a handler that has interrupted sigaction() ---- */

static volatile sig_atomic_t set;

static void sets(int sig)
{
	struct sigaction act = {.sa_handler = SIG_DFL}, old;

	(void)sig;
	if (!sigaction(SIGBUS, &act, &old))
		set++;
}

static void handler_that_sets(void)
{
	struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	struct sigaction act = {.sa_handler = sets, .sa_flags = SA_RESTART}, before, old;

	CHECK_EQ(sigaction(SIGBUS, NULL, &before), 0);
	CHECK_EQ(sigaction(SIGVTALRM, &act, &old), 0);
	CHECK_EQ(setitimer(ITIMER_VIRTUAL, &often, NULL), 0);
	while (set < 100)
		CHECK_EQ(sigaction(SIGBUS, &before, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_VIRTUAL, &never, NULL), 0);
	CHECK_EQ(sigaction(SIGVTALRM, &old, NULL), 0);
	CHECK_EQ(sigaction(SIGBUS, &before, NULL), 0);
}

/* ---- the default action ---- */

static void dies_of_fault(int arg)
{
	side_open(&s, 4096, 16, 0);
	signal(SIGBUS, SIG_DFL);
	make_hole();
	if (arg)
		raise(SIGBUS);
	*(volatile char *)hole = 1;
}

static struct told {
	uint64_t id;
	bool done;
} told[3];

/* The C library has all signals blocked here, as long as it is not one that changes that. */
static void notified(union sigval value)
{
	struct told *t = value.sival_ptr;
	sigset_t mask;

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	CHECK_EQ(sigismember(&mask, SIGBUS), sigismember(&mask, SIGUSR2));
	one_message(a, b, t->id);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
	CHECK_EQ(sigismember(&mask, SIGBUS), sigismember(&mask, SIGUSR2));
	__atomic_store_n(&t->done, true, __ATOMIC_RELEASE);
}

static void threads_of_timers(void)
{
	struct itimerspec soon = {.it_value = {.tv_nsec = 1}};

	for (int i = 0; i < 6; i++) {
		struct told *t = &told[i % 3];
		struct sigevent event = {.sigev_notify = SIGEV_THREAD,
					 .sigev_notify_function = notified,
					 .sigev_value = {.sival_ptr = t}};
		timer_t timer;

		*t = (struct told){.id = 700 + (uint64_t)i};
		CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
		CHECK(event.sigev_notify_function == notified && event.sigev_value.sival_ptr == t);
		CHECK_EQ(timer_settime(timer, 0, &soon, NULL), 0);
		while (!__atomic_load_n(&t->done, __ATOMIC_ACQUIRE))
			sleep_ms(1);
		CHECK_EQ(timer_delete(timer), 0);
	}
}

int main(void)
{
	struct sigaction act = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_NODEFER};
	struct ibv_qp_cap cap = {
		.max_send_wr = 128, .max_recv_wr = 128, .max_send_sge = 1, .max_recv_sge = 1};
	pthread_t thread;

	test_begin();
	join_killed(spawn(dies_of_fault, 0), SIGBUS);
	join_killed(spawn(dies_of_fault, 1), SIGBUS);

	CHECK_EQ(sigaction(SIGBUS, &act, NULL), 0);
	make_hole();
	side_open(&s, 16384, 512, 0);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, &cap);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, &cap);
	c = make_qp(&s, IBV_QPT_RC, NULL, NULL, &cap);
	d = make_qp(&s, IBV_QPT_RC, NULL, NULL, &cap);
	connect_pair(&s, a, b);
	connect_pair(&s, c, d);
	handlers();
	vfork_child();
	stacks();
	interrupted_call(false);
	interrupted_call(true);
	CHECK_EQ(sigaction(SIGBUS, &act, NULL), 0);
	CHECK_EQ(pthread_create(&thread, NULL, deaf, NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	posting_handler();
	handler_that_sets();
	deaf_from_the_start();
	handler_of_a_wait();
	old_calls();
	handler_that_blocks();
	threads_of_timers();
	for (struct ibv_qp **qp = (struct ibv_qp *[]){a, b, c, d, NULL}; *qp; qp++)
		CHECK_EQ(ibv_destroy_qp(*qp), 0);
	side_close(&s);
	return 0;
}
