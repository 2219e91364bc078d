// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a thread does that polls CQs and finds nothing. On a machine with a processor for every such
 * thread it goes on polling, as on hardware. With fewer processors it would use up its time slice
 * while the process that is about to send to it waits for that processor. So a thread that has
 * polled in vain for some microseconds yields. If other threads ran meanwhile several times, or one
 * of them for long, or if the kernel took the processor away, it dozes: it sleeps until a CQE comes
 * to one of the process's contexts. It sleeps for two milliseconds at most, since the program may
 * wait for something else as well.
 *
 * How no CQE is missed: the thread announces that it will doze (sh_ctx.dozing), and goes back to
 * the program. It sleeps only when it comes to the same CQ again, because the program has then
 * polled everything that it polls in turn. It sleeps on a word that every later CQE changes. The
 * sender reads the announcement in sh_cq_let_go().
 *
 * A program that computes between its polls is not idle. The clock shows that, and the count starts
 * anew. All state is the thread's own, and nothing is locked. A handler that jumps out of here
 * leaves at worst an announcement, which costs one sender one needless system call.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "softhca/device/memory/announce.h"
#include "softhca/device/memory/dev.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/compiler.h"
#include "softhca/shim/files/context.h"
#include "idle.h"
#include "softhca/shim/sandbox.h"

#define US UINT64_C(1000)
#define MS (1000 * US)

#define LOOK_EVERY 64	      /* polls between two looks at a thread that is not idle */
#define BUSY	   (3 * US)   /* if more passes between two polls, the program does other work */
#define PREEMPTED  (200 * US) /* if more passes, the kernel may have preempted the thread */

/*
 * How long a thread polls in vain before its first yield: longer than a message between processors
 * takes. In a crowd the time halves after each sleep of PATIENCE_MAX or more, and doubles after
 * each shorter one: two threads that sleep so briefly would only wake each other.
 */
#define PATIENCE     (8 * US)
#define PATIENCE_MIN (1 * US)
#define PATIENCE_MAX (32 * US)

#define RAN_OTHERS (3 * US)   /* a yield that took longer has let another thread run */
#define RAN_LONG   (300 * US) /* a yield this long let a thread run that does not yield itself */
#define PAUSE_MIN  (10 * US)  /* until the next yield, after one that let no thread run */
#define PAUSE_MAX  (320 * US)
#define YIELDS	   3	      /* in a row that let others run, before the thread dozes */
#define CROWD	   (100 * MS) /* how long the machine counts as crowded; then it yields again */
#define DOZE_MIN   (250 * US)
#define DOZE_MAX   (2 * MS)

TLS int32_t shim_polls_left;

static TLS struct {
	uint64_t since; /* start of polling in vain; 0: not idle, as far as is known */
	uint64_t last;	/* time of the poll before */
	uint64_t next;	/* when to give way */
	uint64_t pause;
	uint64_t crowd;	       /* the machine counts as crowded until then */
	uint64_t patience;     /* how long to poll in vain, in a crowd */
	uint64_t doze;	       /* how long to sleep at most */
	long switches;	       /* involuntary ones of this thread, last count; -1: not counted */
	unsigned int yields;   /* in a row that let others run */
	const void *announced; /* the thread dozes when it polls this CQ again */
	uint32_t word;	       /* sh_proc.roused at the announcement */
} idle = {.patience = PATIENCE, .doze = DOZE_MIN, .switches = -1};

/* The machine's, also where the program has a clock of its own (libfaketime). */
static uint64_t clock_ns(void)
{
	return shim_dev.ops->now(shim_dev.host);
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
	idle.switches++; /* the kernel counts the yield as involuntary */
	idle.pause = 0;
	idle.next = after;
	if (++idle.yields >= YIELDS || took > RAN_LONG)
		idle.crowd = after + CROWD;
	return true;
}

/*
 * The entry of this process, whose word senders change. NULL: no sender would change it, as in a
 * forked child that has its parent's contexts.
 */
static struct sh_proc *own_proc(void)
{
	return shim_stale() ? NULL : sh_proc(&shim_dev, shim_dev.proc);
}

/* True when the thread has slept, or another thread has run. */
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
			/* Pairs with the exchange in sh_cq_let_go() that releases a CQ. */
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
	uint64_t now;
	int saved = errno;
	bool again;

	/* To poll takes no system call on a card, so the program may not be allowed any. */
	if (sandbox_told()) {
		shim_polls_left = LOOK_EVERY;
		return false;
	}
	now = clock_ns();
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
