// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a thread does that polls CQs and finds nothing. On a machine with a processor for every such
 * thread it goes on polling, as on hardware. With fewer processors it would burn its time slice
 * while the process that is to send to it waits for that processor. So a thread that has polled in
 * vain for some microseconds yields. If others ran meanwhile several times, or one of them for
 * long, or if the kernel took the processor away, it dozes: it sleeps until a CQE comes to one of
 * the process's contexts, for two milliseconds at most, since the program may wait for something
 * else as well.
 *
 * How no CQE is missed: the thread announces that it will doze (sh_ctx.dozing), and goes back to
 * the program. Only when it comes to the same CQ again, so that everything that the program polls
 * in turn was polled after the announcement, does it sleep, on a word that every later CQE changes.
 * The sender looks at the announcement in sh_cq_let_go().
 *
 * A program that computes between its polls is not idle: a look at the clock tells, and starts the
 * count anew. All state is the thread's own; nothing is locked, and a handler that jumps out of
 * here leaves at worst an announcement, which costs one sender one needless system call.
 */
#include <linux/futex.h>
#include <sys/resource.h>
#include <time.h>

#include "softhca/device/announce.h"
#include "idle.h"

#define US UINT64_C(1000)
#define MS (1000 * US)

#define LOOK_EVERY 64	      /* polls between two looks at a thread that is not idle */
#define BUSY	   (3 * US)   /* between two polls in a row: the program does something else */
#define PREEMPTED  (200 * US) /* the same: unless the kernel has taken the processor away */

/* Polling in vain before the first yield: longer than a message between processors takes. Where
 * there is a crowd: half after each sleep that was worth it, else twice. A sleep that ends before
 * the maximum was not: two such threads would only wake each other. */
#define PATIENCE     (8 * US)
#define PATIENCE_MIN (1 * US)
#define PATIENCE_MAX (32 * US)

#define RAN_OTHERS (3 * US)   /* a yield that took longer has let another thread run */
#define RAN_LONG   (300 * US) /* that one does not give way itself */
#define PAUSE_MIN  (10 * US)  /* until the next yield, after one that found no other thread */
#define PAUSE_MAX  (320 * US)
#define YIELDS	   3	      /* in a row that let others run, before the thread dozes */
#define CROWD	   (100 * MS) /* the machine is taken for crowded, until the next try to yield */
#define DOZE_MIN   (250 * US)
#define DOZE_MAX   (2 * MS)

TLS int32_t shim_polls_left;

static TLS struct {
	uint64_t since; /* polling in vain since then; 0: not idle, as far as known */
	uint64_t last;	/* the poll before */
	uint64_t next;	/* when to give way */
	uint64_t pause;
	uint64_t crowd;	       /* the machine is taken for crowded until then */
	uint64_t patience;     /* where there is a crowd */
	uint64_t doze;	       /* how long to sleep at most */
	long switches;	       /* involuntary ones of this thread, as counted last; -1: not yet */
	unsigned int yields;   /* in a row that let others run */
	const void *announced; /* it will doze when it comes back to this CQ */
	uint32_t word;	       /* sh_proc.roused at the announcement */
} idle = {.patience = PATIENCE, .doze = DOZE_MIN, .switches = -1};

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
}

static long involuntary_switches(void)
{
	struct rusage usage;

	return syscall(SYS_getrusage, RUSAGE_THREAD, &usage) < 0 ? 0 : usage.ru_nivcsw;
}

static bool was_preempted(void)
{
	long before = idle.switches;

	idle.switches = involuntary_switches();
	return before >= 0 && idle.switches != before;
}

void shim_idle_ends(void)
{
	shim_polls_left = LOOK_EVERY;
	idle.since = 0;
	idle.announced = NULL;
	idle.pause = 0;
	idle.yields = 0;
	idle.doze = DOZE_MIN;
}

/* ---- giving way ---- */

static bool yield(uint64_t now)
{
	uint64_t after, took;

	syscall(SYS_sched_yield);
	after = clock_ns();
	took = after - now;
	idle.last = after;
	if (took < RAN_OTHERS) {
		idle.yields = 0;
		idle.pause = idle.pause ? 2 * idle.pause : PAUSE_MIN;
		if (idle.pause > PAUSE_MAX)
			idle.pause = PAUSE_MAX;
		idle.next = after + idle.pause;
		return false;
	}
	idle.switches++; /* the kernel counts it as one that the thread did not want */
	idle.pause = 0;
	idle.next = after;
	if (++idle.yields >= YIELDS || took > RAN_LONG)
		idle.crowd = after + CROWD;
	return true;
}

/* The word of this process that senders change; NULL: none would, as for a forked child with its
 * parent's contexts. */
static struct sh_proc *own_proc(void)
{
	return __atomic_load_n(&shim_stale, __ATOMIC_ACQUIRE) ? NULL
							      : sh_proc(&shim_dev, shim_dev.proc);
}

/* True when the thread has slept. */
static bool doze(const void *cq)
{
	struct sh_proc *proc = own_proc();
	struct timespec ts;

	if (!proc)
		return yield(clock_ns());
	if (idle.announced != cq) {
		if (!idle.announced) {
			idle.word = __atomic_load_n(&proc->roused, __ATOMIC_SEQ_CST);
			shim_contexts_doze();
			/* pairs with the exchange that lets a CQ go: sh_cq_let_go() */
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			idle.announced = cq;
		}
		return false;
	}
	ts.tv_sec = 0;
	ts.tv_nsec = (long)idle.doze;
	sh_wait_begin(&shim_dev, SH_WAITS_DOZE, idle.word, 0);
	syscall(SYS_futex, &proc->roused, FUTEX_WAIT, idle.word, &ts, NULL, 0);
	sh_wait_end(&shim_dev);
	idle.announced = NULL;
	idle.doze = 2 * idle.doze < DOZE_MAX ? 2 * idle.doze : DOZE_MAX;
	idle.next = clock_ns();
	if (idle.next - idle.last < PATIENCE_MAX && 2 * idle.patience <= PATIENCE_MAX)
		idle.patience *= 2;
	else if (idle.next - idle.last >= PATIENCE_MAX && idle.patience / 2 >= PATIENCE_MIN)
		idle.patience /= 2;
	idle.last = idle.next;
	return true;
}

bool shim_idle(const void *cq)
{
	uint64_t now = clock_ns();
	int saved = errno;
	bool again;

	shim_polls_left = 0;
	if (!idle.since) {
		if (idle.switches < 0)
			idle.switches = involuntary_switches();
		idle.since = idle.last = now;
		idle.next = now + (now < idle.crowd ? idle.patience : PATIENCE);
	}
	if (now - idle.last > PREEMPTED && was_preempted()) {
		idle.crowd = now + CROWD;
	} else if (now - idle.last > BUSY) {
		shim_idle_ends();
		errno = saved;
		return false;
	}
	idle.last = now;
	if (now < idle.next)
		return false;
	again = now < idle.crowd ? doze(cq) : yield(now);
	errno = saved;
	return again;
}
