// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what ibv_poll_cq() does for a thread that polls in vain, told by the system calls
 * that it makes. Pairs of processes on one processor, beside one that computes there, sleep for
 * each other's messages, and senders wake them. A program that computes for 5 us between its polls
 * gives no processor away, and neither does one whose polls find something.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "verbs_test.h"

#define MOST_PAIRS  16
#define PAIRS_QUICK 3
#define ROUNDS	    200
#define LEN	    8
#define FOUND	    1000  /* polls that find something */
#define COMPUTES    10000 /* polls between which the program computes */
#define COMPUTE_NS  5000
/*
 * Limits for an average wait, an order of magnitude from what is there under load: about a hundred
 * empty polls, and a sleep, from which nearly always a sender wakes. A time slice has over twenty
 * thousand empty polls.
 */
#define EMPTY_POLLS 1000
#define MANY	    10

/* Of the board. */
enum { EMPTY, YIELDS, SLEEPS, WOKEN, OTHERS, COUNTS, QPN = COUNTS, LID = QPN + 2 * MOST_PAIRS };

/*
 * The calls of this thread's polls: softhca also makes some elsewhere, and has a thread of its own.
 */
static __thread bool polling;
static __thread uint64_t count[COUNTS];

/* In front of the C library's, for softhca as well. */
__attribute__((visibility("default"))) long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long arg[6], ret;
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	ret = real(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	if (!polling)
		return ret;
	if (number == SYS_sched_yield) {
		count[YIELDS]++;
	} else if (number == SYS_futex && (arg[1] & FUTEX_CMD_MASK) == FUTEX_WAIT) {
		count[SLEEPS]++;
		/* EAGAIN: woken before it slept */
		count[WOKEN] += !ret || errno == EAGAIN;
	} else {
		count[OTHERS]++;
	}
	return ret;
}

static int poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n;

	polling = true;
	n = ibv_poll_cq(cq, 1, wc);
	polling = false;
	CHECK(n >= 0);
	if (!n)
		count[EMPTY]++;
	else
		CHECK_EQ(wc->status, IBV_WC_SUCCESS);
	return n;
}

static void take_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (!poll_one(cq, &wc))
		;
}

/* ---- pairs that send to each other ---- */

static uint32_t sides;

static void side(int me)
{
	struct side s;
	struct ibv_qp *qp;
	struct link l;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	side_open(&s, 4096, 64, 0);
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	post(QPN + (unsigned int)me, qp->qp_num);
	post(LID, s.lid);
	meet(sides + 1);
	link_defaults(&l, s.lid, (uint32_t)board->word[QPN + (me ^ 1)]);
	connect_qp(qp, &l);
	CHECK_EQ(post_recv1(qp, &s, 0, 1024, LEN), 0);
	meet(sides + 1);
	on_one_processor();
	meet(sides + 1);
	for (int n = 0; n < 2 * ROUNDS; n++) {
		if (n % 2 == (me & 1)) {
			CHECK_EQ(post_send1(qp, &s, 1, 0, LEN, IBV_SEND_SIGNALED), 0);
			take_one(s.scq);
		} else {
			take_one(s.rcq);
			CHECK_EQ(post_recv1(qp, &s, 0, 1024, LEN), 0);
		}
	}
	for (int i = 0; i < COUNTS; i++)
		__atomic_fetch_add(&board->word[i], count[i], __ATOMIC_SEQ_CST);
	meet(sides + 1);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	side_close(&s);
}

static void compute(int unused)
{
	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	on_one_processor();
	for (volatile unsigned int n = 0;; n++)
		;
}

static void pairs(uint32_t number)
{
	uint64_t waits = (uint64_t)2 * number * ROUNDS, *n = board->word;
	pid_t pid[2 * MOST_PAIRS], busy;

	sides = 2 * number;
	for (int i = 0; i < (int)sides; i++)
		pid[i] = spawn(side, i);
	meet(sides + 1);
	meet(sides + 1);
	busy = spawn(compute, 0);
	meet(sides + 1);
	meet(sides + 1);
	CHECK_EQ(kill(busy, SIGKILL), 0);
	join_killed(busy, SIGKILL);
	for (int i = 0; i < (int)sides; i++)
		join(pid[i]);
	printf("# %u pairs, %llu waits: %llu empty polls, %llu yields, %llu sleeps, %llu of them "
	       "until woken, %llu other calls\n",
	       number, (unsigned long long)waits, (unsigned long long)n[EMPTY],
	       (unsigned long long)n[YIELDS], (unsigned long long)n[SLEEPS],
	       (unsigned long long)n[WOKEN], (unsigned long long)n[OTHERS]);
	fflush(stdout);
	CHECK(n[EMPTY] < waits * EMPTY_POLLS);
	/*
	 * What computes gets its time slice for each yield. A poller that only yielded would do so in each wait; one
	 * that sleeps does now and then, more often where other programs compute, too.
	 */
	CHECK(n[YIELDS] < waits / 2);
	CHECK(n[SLEEPS] > waits / MANY * 2);
	/* Others end by themselves: where the other side had no processor for so long. */
	CHECK(n[WOKEN] > waits / MANY);
}

/* ---- programs that are not idle ---- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static long switches(void)
{
	struct rusage usage;

	CHECK_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nivcsw;
}

static void not_idle(int unused)
{
	struct side s;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	long before;

	(void)unused;
	side_open(&s, 4096, 64, 0);
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, qp, qp);
	memset(count, 0, sizeof(count));
	for (int i = 0; i < FOUND; i++) {
		CHECK_EQ(post_recv1(qp, &s, 0, 1024, LEN), 0);
		CHECK_EQ(post_send1(qp, &s, 1, 0, LEN, IBV_SEND_SIGNALED), 0);
		CHECK_EQ(poll_one(s.scq, &wc), 1);
		CHECK_EQ(poll_one(s.rcq, &wc), 1);
	}
	for (int i = 0; i < COUNTS; i++)
		CHECK_EQ(count[i], 0);
	before = switches();
	for (int i = 0; i < COMPUTES; i++) {
		uint64_t until = now_ns() + COMPUTE_NS;

		while (now_ns() < until)
			;
		CHECK_EQ(poll_one(s.rcq, &wc), 0);
	}
	CHECK_EQ(count[EMPTY], COMPUTES);
	CHECK_EQ(count[YIELDS], 0);
	CHECK_EQ(count[SLEEPS], 0);
	/* A poll that comes late asks whether the thread has had no processor. */
	CHECK(count[OTHERS] <= 2 + 2 * (uint64_t)(switches() - before));
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	side_close(&s);
}

int main(void)
{
	const char *tier = getenv("TIER");
	uint32_t number = tier && !strcmp(tier, "full") ? MOST_PAIRS : PAIRS_QUICK;

	test_begin();
	pairs(number);
	join(spawn(not_idle, 0));
	return 0;
}
