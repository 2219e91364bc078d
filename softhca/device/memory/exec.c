// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Threads in device code: the slots that keep what a thread has looked up valid, and doorbells that
 * a signal handler rings while its own thread is inside. A slot belongs to the thread that holds
 * its mutex; the thread keeps it for life.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "exec.h"
#include "objects.h"

#define LATER	64
#define ERRANDS 8
#define LOOK_MS 100
/* For proc: the slot is that of a dead thread and cannot be taken. */
#define LOST	    UINT32_MAX
#define SHARED_SLOT (SH_MAX_EXEC - 1)

#if __GLIBC_PREREQ(2, 30)
#define LOOK_CLOCK CLOCK_MONOTONIC
#else
/*
 * The only clock that a sleeper for a mutex could name. While it is set back, sleepers look later.
 */
#define LOOK_CLOCK				     CLOCK_REALTIME
#define pthread_mutex_clocklock(mutex, clock, until) pthread_mutex_timedlock(mutex, until)
#endif

static uint64_t look_clock(const struct sh_dev *dev)
{
	struct timespec now = {0};

	if (LOOK_CLOCK == CLOCK_MONOTONIC)
		return dev->ops->now(dev->host);
	syscall(SYS_clock_gettime, LOOK_CLOCK, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Doorbells that did not fit; a function to call when this thread is outside. */
enum missed { MISSED_RINGS = 1, MISSED_CALL = 2 };

struct later {
	sh_later_fn *fn;
	uint32_t ctx, number, dw0, dw1;
};

/*
 * The thread writes this, and so do signal handlers on top of it. So only the thread changes head;
 * tail is advanced by one instruction; and an entry below tail is complete whenever the thread
 * itself runs. A handler on top of another one may find an entry that is not complete: its fn is
 * NULL until the rest is stored.
 */
static __thread struct {
	struct sh_instance *inst; /* the slot is one of this instance */
	struct sh_exec *slot;
	uint32_t inside;
	uint32_t head, tail;
	uint32_t missed; /* enum missed */
	void (*after)(void);
	uint32_t nerrands; /* wake-ups that are left for the way out */
	struct errand {
		struct sh_lock *lock; /* a thread that sleeps on it; NULL: see proc */
		uint32_t proc;	      /* its dozing threads */
	} errand[ERRANDS];
	struct later later[LATER];
} self __attribute__((tls_model("initial-exec")));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key;

static void forget_slot(void)
{
	self.slot = NULL;
	self.inst = NULL;
	sh_self.inst = NULL;
	sh_self.word = 0;
	sh_self.catches = NULL;
}

/*
 * Signals are blocked: a handler that comes half-way would enter with a slot that others can take
 * already. By the system call itself: AddressSanitizer, which checks what pthread_sigmask() is
 * given, still has the redzones of frames that a cancelled thread never left.
 */
static void leave_slot(void *slot)
{
	struct sh_exec *e = slot;
	uint64_t all = ~(1ull << (SIGBUS - 1)), before;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof(all));
	forget_slot();
	__atomic_store_n(&e->self_at, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&e->epoch, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&e->proc, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&e->owner);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
}

void sh_exec_forked(void)
{
	forget_slot();
	self.inside = 0;
	self.head = self.tail = self.missed = self.nerrands = 0;
	memset(self.later, 0, sizeof(self.later));
	if (have_key)
		pthread_setspecific(key, NULL);
}

static void prepare(void)
{
	have_key = !pthread_key_create(&key, leave_slot);
	pthread_atfork(NULL, NULL, sh_exec_forked);
}

static struct sh_exec *slots(const struct sh_dev *dev)
{
	return sh_at(dev, SH_EXEC_OFF);
}

/*
 * This thread has the owner mutex now. From here on, what the thread before it may have held counts
 * as held by a dead thread.
 */
static void begin_life(struct sh_instance *inst, struct sh_exec *e, uint32_t tid)
{
	uint32_t life;

	if (__atomic_load_n(&e->epoch, __ATOMIC_RELAXED))
		__atomic_add_fetch(&inst->died_inside, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&e->waits, 0, __ATOMIC_RELAXED);
	/* Cleared first: together with another thread's number it would name the wrong door. */
	__atomic_store_n(&e->self_at, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&e->tid, tid, __ATOMIC_RELAXED);
	life = __atomic_add_fetch(&e->generation, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&e->life, life, __ATOMIC_SEQ_CST);
}

static uint32_t own_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/*
 * Has another thread ended the life that announced an epoch, without its thread having noticed yet?
 * Read the epoch first.
 */
static bool life_over(const struct sh_exec *e)
{
	uint32_t generation = __atomic_load_n(&e->generation, __ATOMIC_SEQ_CST);

	return __atomic_load_n(&e->life, __ATOMIC_SEQ_CST) != generation;
}

/*
 * The word of the life that the slot's thread has begun. It must not be that of a life after it,
 * which begins when another thread ends this one.
 */
static uint64_t word_of(const struct sh_dev *dev, const struct sh_exec *e)
{
	return (uint64_t)__atomic_load_n(&e->life, __ATOMIC_RELAXED) << SH_OWNER_GENERATION |
	       (uint64_t)(e - slots(dev) + 1);
}

static struct sh_exec *take_slot(struct sh_dev *dev)
{
	struct sh_instance *inst = dev->inst;
	struct sh_exec *e = slots(dev);
	uint32_t i;

	for (i = 0; i < SHARED_SLOT; i++, e++) {
		int err = pthread_mutex_trylock(&e->owner);
		uint32_t used;

		if (err == EOWNERDEAD)
			err = pthread_mutex_consistent(&e->owner);
		if (err)
			continue;
		/* pairs with lose() */
		__atomic_store_n(&e->proc, dev->proc, __ATOMIC_SEQ_CST);
		begin_life(inst, e, own_tid());
		__atomic_store_n(&e->epoch, 0, __ATOMIC_RELEASE);
		used = __atomic_load_n(&inst->exec_used, __ATOMIC_RELAXED);
		while (used <= i &&
		       !__atomic_compare_exchange_n(&inst->exec_used, &used, i + 1, false,
						    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
		return e;
	}
	return NULL;
}

void sh_exec_prepare(struct sh_dev *dev)
{
	if (self.slot && self.inst == dev->inst)
		return;
	pthread_once(&once, prepare);
	if (self.slot)
		leave_slot(self.slot);
	self.slot = take_slot(dev);
	self.inst = dev->inst;
	sh_self.inst = dev->inst;
	sh_self.word = self.slot ? word_of(dev, self.slot) : 0;
	sh_life_prepare(dev, self.slot ? (uint64_t)(self.slot - slots(dev)) : SHARED_SLOT);
	if (self.slot && sh_self.catches)
		__atomic_store_n(&self.slot->self_at, (uintptr_t)&sh_self, __ATOMIC_RELEASE);
	if (self.slot && have_key)
		pthread_setspecific(key, self.slot);
}

/*
 * A robust mutex wakes its sleepers one at a time. If a sleeper is killed after its wake-up and
 * before its turn, and the thread that took the mutex meanwhile does not know of sleepers, the
 * wake-up is lost. So sleepers look now and then.
 */
static int wait_for(struct sh_dev *dev, pthread_mutex_t *mutex)
{
	struct timespec until;
	int err;

	do {
		uint64_t end = look_clock(dev) + LOOK_MS * 1000000;

		until.tv_sec = (time_t)(end / 1000000000);
		until.tv_nsec = (long)(end % 1000000000);
		err = pthread_mutex_clocklock(mutex, LOOK_CLOCK, &until);
	} while (err == ETIMEDOUT);
	return err;
}

/* The slot for threads that found none: one thread at a time. */
static __attribute__((noinline)) struct sh_exec *lock_shared(struct sh_dev *dev)
{
	struct sh_exec *e = slots(dev) + SHARED_SLOT;

	sh_self.catches = NULL;
	if (wait_for(dev, &e->owner) == EOWNERDEAD)
		pthread_mutex_consistent(&e->owner);
	__atomic_store_n(&e->proc, dev->proc, __ATOMIC_SEQ_CST);
	begin_life(dev->inst, e, own_tid());
	sh_self.word = word_of(dev, e);
	__atomic_store_n(&dev->inst->exec_used, SH_MAX_EXEC, __ATOMIC_SEQ_CST);
	return e;
}

uint64_t sh_self_word(struct sh_dev *dev)
{
	if (sh_self.inst != dev->inst || !sh_self.word)
		sh_exec_prepare(dev);
	return sh_self.word;
}

void sh_exec_release(void)
{
	if (have_key)
		pthread_setspecific(key, NULL);
	if (self.slot)
		leave_slot(self.slot);
	forget_slot();
}

bool sh_enter(struct sh_dev *dev)
{
	struct sh_exec *e;

	if (self.inside)
		return false;
	self.inside = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(self.inst != dev->inst, 0))
		sh_exec_prepare(dev);
	/*
	 * Pairs with sh_grace_over(): it sees this epoch, or what this thread looks up from here on
	 * is invalid already.
	 */
	e = self.slot;
	if (__builtin_expect(!e, 0))
		e = lock_shared(dev);
	__atomic_store_n(&e->epoch, __atomic_load_n(&dev->inst->epoch, __ATOMIC_ACQUIRE),
			 __ATOMIC_SEQ_CST);
	return true;
}

static void serve_later(struct sh_dev *dev)
{
	while (self.head != __atomic_load_n(&self.tail, __ATOMIC_ACQUIRE)) {
		struct later l = self.later[self.head % LATER];

		__atomic_store_n(&self.later[self.head % LATER].fn, NULL, __ATOMIC_RELAXED);
		__atomic_store_n(&self.head, self.head + 1, __ATOMIC_RELEASE);
		l.fn(dev, l.ctx, l.number, l.dw0, l.dw1);
	}
	if (self.missed & MISSED_RINGS) {
		struct sh_proc *proc = sh_proc(dev, dev->proc);

		/* A signal handler may set a bit at this moment. */
		__atomic_fetch_and(&self.missed, ~(uint32_t)MISSED_RINGS, __ATOMIC_RELAXED);
		if (!proc)
			return;
		/*
		 * The helper thread looks at the queues that the callers of sh_later() have marked.
		 */
		__atomic_store_n(&proc->ring_lost, 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&proc->attention, 1, __ATOMIC_SEQ_CST);
		dev->ops->wake(dev->host, dev->proc);
	}
}

/*
 * Dozing threads sleep on a word of their own, so that the helper thread of the process can sleep
 * on.
 */
static void rouse(struct sh_dev *dev, uint32_t proc)
{
	struct sh_proc *p = sh_proc(dev, proc);

	if (!p)
		return;
	__atomic_add_fetch(&p->roused, 1, __ATOMIC_SEQ_CST);
	dev->ops->rouse(dev->host, proc);
}

/*
 * A thread that wakes others is often switched out for them, and then it is not armed (life.h). So
 * it wakes them when no thread waits for it.
 */
SH_OUTLINE void run_errands(struct sh_dev *dev)
{
	while (self.nerrands) {
		struct errand e = self.errand[--self.nerrands];

		if (e.lock)
			sh_wake_now(e.lock);
		else
			rouse(dev, e.proc);
	}
	sh_rearm();
}

static void add_errand(struct sh_dev *dev, struct errand e)
{
	if (self.nerrands == ERRANDS)
		run_errands(dev);
	self.errand[self.nerrands++] = e;
}

void sh_errands(struct sh_dev *dev)
{
	if (self.nerrands)
		run_errands(dev);
}

bool sh_wake_later(struct sh_lock *lock)
{
	if (!self.inside || self.nerrands == ERRANDS)
		return false;
	for (uint32_t i = 0; i < self.nerrands; i++)
		if (self.errand[i].lock == lock)
			return true;
	self.errand[self.nerrands++] = (struct errand){.lock = lock};
	return true;
}

/*
 * The wake-up is a system call, so a client makes it when it holds no lock. The daemon does not
 * enter the device, and calls at once. One wake-up is enough until the thread announces again that
 * it dozes.
 */
void sh_cq_rouse(struct sh_dev *dev, struct sh_ctx *ctx)
{
	uint32_t proc = ctx->proc;

	if (!__atomic_exchange_n(&ctx->dozing, 0, __ATOMIC_SEQ_CST))
		return;
	if (!self.inside) {
		rouse(dev, proc);
		return;
	}
	add_errand(dev, (struct errand){.proc = proc});
}

bool sh_inside(void)
{
	return self.inside;
}

bool sh_inside_still(struct sh_dev *dev, uint64_t word)
{
	const uint64_t slot = word & SH_OWNER_SLOT;
	const struct sh_exec *e = slots(dev) + slot - 1;

	return slot && slot <= SH_MAX_EXEC && __atomic_load_n(&e->epoch, __ATOMIC_SEQ_CST) != 0 &&
	       __atomic_load_n(&e->generation, __ATOMIC_SEQ_CST) == word >> SH_OWNER_GENERATION;
}

bool sh_after_leave(void (*fn)(void))
{
	if (!self.inside)
		return false;
	self.after = fn;
	__atomic_fetch_or(&self.missed, MISSED_CALL, __ATOMIC_RELAXED);
	return true;
}

/*
 * This thread is outside. Enters again for doorbells that are left, or makes the call. The call
 * does not return if it lets a handler run that jumps away.
 */
SH_OUTLINE bool again(struct sh_dev *dev)
{
	if (self.head != __atomic_load_n(&self.tail, __ATOMIC_RELAXED) ||
	    (self.missed & MISSED_RINGS))
		return sh_enter(dev);
	self.missed = 0;
	self.after();
	return false;
}

void sh_leave(struct sh_dev *dev)
{
	/*
	 * A handler that comes after inside is 0 enters by itself; one that came before has left an
	 * entry.
	 */
	do {
		struct sh_exec *e = self.slot ? self.slot : slots(dev) + SHARED_SLOT;

		serve_later(dev);
		__atomic_store_n(&e->epoch, 0, __ATOMIC_RELEASE);
		if (!self.slot) {
			sh_self.word = 0;
			pthread_mutex_unlock(&e->owner);
		}
		if (__builtin_expect(self.nerrands, 0))
			run_errands(dev);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		self.inside = 0;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} while (__builtin_expect(self.head != __atomic_load_n(&self.tail, __ATOMIC_RELAXED) ||
					  self.missed,
				  0) &&
		 again(dev));
}

bool sh_later(sh_later_fn *fn, uint32_t ctx, uint32_t number, uint32_t dw0, uint32_t dw1)
{
	struct later *l;
	uint32_t i;

	for (i = self.head; i != __atomic_load_n(&self.tail, __ATOMIC_RELAXED); i++) {
		const struct later *old = &self.later[i % LATER];

		if (__atomic_load_n(&old->fn, __ATOMIC_ACQUIRE) == fn && old->ctx == ctx &&
		    old->number == number && old->dw0 == dw0 && old->dw1 == dw1)
			return true;
	}
	if (i - self.head >=
	    LATER - 8) { /* handlers may nest a few deep between this look and the next line */
		__atomic_fetch_or(&self.missed, MISSED_RINGS, __ATOMIC_RELAXED);
		return false;
	}
	l = &self.later[__atomic_fetch_add(&self.tail, 1, __ATOMIC_RELAXED) % LATER];
	l->ctx = ctx;
	l->number = number;
	l->dw0 = dw0;
	l->dw1 = dw1;
	__atomic_store_n(&l->fn, fn, __ATOMIC_RELEASE);
	return true;
}

/* ---- the dead ---- */

/* Frees the slot of a dead thread. False: its owner lives. */
static bool bury(struct sh_dev *dev, struct sh_exec *e)
{
	int err = pthread_mutex_trylock(&e->owner);

	if (err == EOWNERDEAD)
		err = pthread_mutex_consistent(&e->owner);
	if (err)
		return false;
	begin_life(dev->inst, e, 0);
	__atomic_store_n(&e->epoch, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&e->proc, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&e->owner);
	return true;
}

/* ---- the stopped ---- */

/*
 * Takes away what the thread has announced in that life. The thread is in no system call any more,
 * and will not go on with the copy.
 */
static void forget_reach(struct sh_dev *dev, uint32_t tid, uint32_t life)
{
	uint64_t *words = dev->inst->moves.reaching;
	unsigned int n = sh_reaches(&dev->inst->moves);

	for (unsigned int i = 0; i < n; i++) {
		uint64_t word = __atomic_load_n(&words[i], __ATOMIC_SEQ_CST);

		if (word & ~(uint64_t)UINT32_MAX &&
		    (word & ~(uint64_t)UINT32_MAX) == sh_reach_word(tid, life))
			__atomic_compare_exchange_n(&words[i], &word, 0, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST);
	}
}

/* The caller holds e->ending. */
static void divert_and_end(struct sh_dev *dev, struct sh_exec *e)
{
	uint32_t life = __atomic_load_n(&e->generation, __ATOMIC_SEQ_CST);
	const struct sh_proc *p = sh_proc(dev, __atomic_load_n(&e->proc, __ATOMIC_SEQ_CST));
	uint64_t self_at = __atomic_load_n(&e->self_at, __ATOMIC_ACQUIRE);
	uint32_t tid = __atomic_load_n(&e->tid, __ATOMIC_RELAXED);

	if (!p || !self_at || life_over(e))
		return;
	/*
	 * A thread that took the slot meanwhile has another word, and has changed the generation.
	 */
	if (dev->ops->divert(dev->host, p->pid, tid, self_at, word_of(dev, e)) &&
	    __atomic_compare_exchange_n(&e->generation, &life, life + 1, false, __ATOMIC_SEQ_CST,
					__ATOMIC_RELAXED))
		forget_reach(dev, tid, life);
}

static void end_if_stopped(struct sh_dev *dev, struct sh_exec *e)
{
	if (!__atomic_load_n(&e->self_at, __ATOMIC_RELAXED) || !dev->ops->divert)
		return;
	if (sh_hold(dev, &e->ending, SH_WAIT_NOT) >= 0) {
		divert_and_end(dev, e);
		sh_let_go(&e->ending);
	}
}

/*
 * Is the thread of that life stopped? It may be another thread's number by the time of the answer.
 */
static bool stands(const struct sh_dev *dev, const struct sh_exec *e, uint64_t owner)
{
	const struct sh_proc *p = sh_proc(dev, __atomic_load_n(&e->proc, __ATOMIC_SEQ_CST));
	uint32_t tid = __atomic_load_n(&e->tid, __ATOMIC_RELAXED);

	return p && dev->ops->stands && dev->ops->stands(dev->host, p->pid, tid) &&
	       __atomic_load_n(&e->generation, __ATOMIC_SEQ_CST) == owner >> SH_OWNER_GENERATION;
}

bool sh_owner_stopped(struct sh_dev *dev, uint64_t owner)
{
	uint64_t slot = owner & SH_OWNER_SLOT;
	struct sh_exec *e = slots(dev) + slot - 1;
	struct sh_door *door;
	bool still;

	if (!slot || slot > SHARED_SLOT || e == self.slot)
		return false;
	/* Pinned: it opens files, and may hold a lock that no other thread waits for. */
	door = sh_pin();
	end_if_stopped(dev, e);
	still = stands(dev, e, owner);
	sh_unpin(door);
	return still;
}

extern void __asan_handle_no_return(void) __attribute__((weak));
extern void __asan_unpoison_memory_region(void const volatile *addr, size_t size)
	__attribute__((weak));

/*
 * No frame below the caller's returns. AddressSanitizer takes itself for a frame that oversteps its
 * variables, if what it calls to learn that lies where one of them was. So that goes first.
 */
static void forget_frames(void)
{
	const size_t deepest = 64 << 10; /* more stack than device code uses */

	if (!&__asan_handle_no_return)
		return;
	if (&__asan_unpoison_memory_region)
		__asan_unpoison_memory_region((char *)__builtin_frame_address(0) - deepest,
					      deepest);
	__asan_handle_no_return();
}

/*
 * Ends this life, if no other thread has done so. Then begins the next one, which is inside the
 * device as the old one was.
 */
void sh_thrown(struct sh_dev *dev)
{
	uint32_t life = (uint32_t)(sh_self.word >> SH_OWNER_GENERATION);
	struct sh_exec *e = self.slot;

	forget_frames();
	__atomic_store_n(&sh_self.catches->len, 0, __ATOMIC_RELAXED);
	sh_self.again = true;
	__atomic_store_n(&e->waits, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&e->epoch, 0, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(&e->generation, &life, life + 1, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
	/* pairs with life_over(): the epoch is of this life */
	__atomic_store_n(&e->life, __atomic_load_n(&e->generation, __ATOMIC_SEQ_CST),
			 __ATOMIC_SEQ_CST);
	sh_self.word = word_of(dev, e);
	__atomic_store_n(&e->epoch, __atomic_load_n(&dev->inst->epoch, __ATOMIC_ACQUIRE),
			 __ATOMIC_SEQ_CST);
	if (dev->ops->gave_up)
		dev->ops->gave_up(dev->host);
	sh_requester_thrown(dev);
}

bool sh_owner_dead(struct sh_dev *dev, uint64_t owner)
{
	struct sh_exec *e = slots(dev) + (owner & SH_OWNER_SLOT) - 1;
	struct sh_door *door;
	bool dead;

	if (__atomic_load_n(&e->generation, __ATOMIC_SEQ_CST) != owner >> SH_OWNER_GENERATION)
		return true;
	/*
	 * It takes a mutex of the C library's, which keeps a list of those that this thread holds.
	 */
	door = sh_pin();
	dead = bury(dev, e);
	sh_unpin(door);
	return dead;
}

/* ---- the daemon's side ---- */

uint64_t sh_grace_begin(struct sh_dev *dev)
{
	return __atomic_add_fetch(&dev->inst->epoch, 1, __ATOMIC_SEQ_CST);
}

bool sh_grace_holder(struct sh_dev *dev, uint64_t since, uint64_t moment, uint32_t *at,
		     uint32_t *proc)
{
	uint32_t used = __atomic_load_n(&dev->inst->exec_used, __ATOMIC_SEQ_CST);

	while (*at < used && *at < SH_MAX_EXEC) {
		struct sh_exec *e = slots(dev) + (*at)++;
		uint64_t seen = e == self.slot ? 0 : __atomic_load_n(&e->epoch, __ATOMIC_SEQ_CST);

		if (!seen || seen < since || seen >= moment || life_over(e))
			continue;
		*proc = __atomic_load_n(&e->proc, __ATOMIC_SEQ_CST);
		if (*proc != LOST && !bury(dev, e))
			return true;
	}
	return false;
}

bool sh_grace_over(struct sh_dev *dev, uint64_t since, uint64_t moment)
{
	uint32_t at = 0, proc;

	return !sh_grace_holder(dev, since, moment, &at, &proc);
}

void sh_grace_suspect(struct sh_dev *dev, uint64_t moment)
{
	uint32_t at = 0, proc;

	while (sh_grace_holder(dev, 0, moment, &at, &proc))
		end_if_stopped(dev, slots(dev) + at - 1);
}

/*
 * The kernel has not marked the mutex of the slot, and never will: it gives up after 2048 mutexes
 * that a thread held, and at the first that it cannot reach. The slot stays as it is, but what its
 * thread held is free. A thread that takes the slot at this moment stores its process first and
 * changes the generation after that.
 */
static void lose(struct sh_dev *dev, struct sh_exec *e, uint32_t proc)
{
	uint32_t generation = __atomic_load_n(&e->generation, __ATOMIC_SEQ_CST);

	if (__atomic_load_n(&e->epoch, __ATOMIC_RELAXED))
		__atomic_add_fetch(&dev->inst->died_inside, 1, __ATOMIC_SEQ_CST);
	if (__atomic_compare_exchange_n(&e->proc, &proc, LOST, false, __ATOMIC_SEQ_CST,
					__ATOMIC_RELAXED))
		__atomic_compare_exchange_n(&e->generation, &generation, generation + 1, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

void sh_proc_gone(struct sh_dev *dev, uint32_t proc, bool certain)
{
	uint32_t i, used = __atomic_load_n(&dev->inst->exec_used, __ATOMIC_SEQ_CST);

	for (i = 0; i < used && i < SH_MAX_EXEC; i++)
		if (__atomic_load_n(&slots(dev)[i].proc, __ATOMIC_RELAXED) == proc &&
		    !bury(dev, slots(dev) + i) && certain)
			lose(dev, slots(dev) + i, proc);
}
