/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A thread's life in device code, and how another thread or the daemon ends it while the thread is
 * stopped (SIGSTOP, Ctrl-Z, a cgroup's freezer).
 *
 * A life is named by a slot of struct sh_exec and the slot's generation. It ends with its thread.
 * While the thread is stopped, another thread or the daemon can end it, if it waits for something
 * that the stopped thread holds. From then on the locks of that life count as a dead thread's
 * (lock.h), recovery carries out what the thread had committed (txn.h), and a grace does not wait
 * for the thread. One rule makes this safe:
 *
 *	A thread whose life was ended executes no further instruction of that life.
 *
 * The kernel enforces the rule, by means of restartable sequences (rseq(2), which the C library
 * registers). The descriptor of such a sequence is the thread's door. Inside of sh_catch() the
 * thread is armed: the word in which the kernel looks for a descriptor points to the door. As a
 * rule the door is closed: it covers no instruction, and the kernel aborts nothing. The thread or
 * daemon that ends the life opens the door for one instruction, the one at which the thread is
 * stopped. When the thread is about to return to user mode, the kernel compares its next
 * instruction with the door, as it does after every switch. It finds the instruction there, and
 * sends the thread to the landing in sh_catch() instead: the thread is thrown. At the landing
 * sh_thrown() begins the thread's next life, in which the thread does the same work anew.
 *
 * Linux makes that comparison up to 6.18. From 6.19 on it skips the comparison for a thread that
 * comes out of a system call, and leaves the door armed below a signal handler that begins there. A
 * thread on such a kernel is never armed (life.c finds out).
 *
 * A thread or daemon that ends a life (host/stopped.c)
 *  0. takes the slot's lock `ending`, so that no other thread opens the same door for another
 *     instruction meanwhile;
 *  1. sees the thread stopped and off its processor; notes its switch count and its next
 *     instruction;
 *  2. sees that the door is armed, or that the thread looks at it itself (below), and that it is
 *     the door of the thread that has the slot (word, and the stack that the kernel says the thread
 *     is on); opens the door;
 *  3. sees the thread still stopped and off its processor, with the same switch count: it has not
 *     run since 1, so it cannot run now without passing the door;
 *  4. changes the generation.
 * If 3 fails, the door stays open. The thread may then be thrown in a life that no other thread has
 * ended. It ends that life itself, which is as harmless as any other end.
 *
 * The thread or daemon that takes these steps may itself be stopped for hours between any two of
 * them. So a door never moves, and its memory never becomes anything else: an address space has one
 * door for each number of a slot, as long as the address space exists.
 *
 * A debugger can break the rule between 4 and the moment when the thread goes on. It may let the
 * thread run elsewhere (a call from the debugger), for which the kernel disarms the door, and then
 * put the old instruction back.
 *
 * The kernel disarms a thread, by a NULL in its word, when it lets the thread go on anywhere but at
 * an instruction that the door covers, be it after a switch or into a signal handler. So it is
 * known exactly what is armed. A signal handler on top of device code never is. A thread that was
 * switched out shortly before it was stopped may not be; then the others wait for it as long as it
 * is stopped, as they do where there are no restartable sequences. The thread arms itself again
 * (sh_rearm()) some times in each message, and now and then during a long copy.
 *
 * Most switches come in system calls, and the kernel may disarm a thread on its way out of one and
 * stop it before the thread has executed anything. A thread that reaches into another process, or
 * writes an event, looks at its door itself when it comes out of such a call (sh_reach_call()):
 * there its door can be opened for it although it is not armed. Not if it has a seccomp filter:
 * while a filter's supervisor decides, a signal makes the kernel begin the call anew, which then
 * takes place before the look.
 *
 * Two kinds of work are done pinned, that is, not armed:
 *  - Work that the thread must leave in order, because its process goes on: on mutexes of the
 *    process, its heap of timers, descriptors.
 *  - Work that must not be done twice. A thread that was thrown sends again what the receiver has
 *    not committed. So it is pinned while it moves a QP to ERR. It is not pinned while it raises an
 *    event: the thread that goes on with that knows whether it was written (event.c). Only where
 *    the host cannot tell is it pinned there.
 *
 * The end of an RDMA WRITE and of an atomic operation must not be done twice either: the receiver
 * sees it before the commit, and may store something else there. Where that memory is device
 * memory, the thread is not pinned. One instruction stores the last word (struct sh_last), and the
 * next one commits (sh_once()). At that next instruction no other thread opens the door. If the
 * thread is stopped at any other, either nothing is to be seen yet or all is committed. Other
 * memory takes a system call, which commits as well: the place of the commit, as the process at the
 * other end has it mapped, is the last piece that the system copies to (the host's seal()). A
 * thread is never stopped within a system call: it stands before its instruction, or after it. Only
 * where the host cannot do both in one call is the thread pinned from the copy to the commit.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_LIFE_H
#define SOFTHCA_DEVICE_MEMORY_LIFE_H

#include "dev.h"

/*
 * The kernel's struct rseq_cs. The 32 bits in front of the instruction at abort_ip are a signature.
 */
struct sh_door {
	uint32_t version, flags;
	uint64_t start_ip;
	uint64_t len; /* 0: closed */
	uint64_t abort_ip;
} __attribute__((aligned(32)));

/*
 * The engine that this thread ran last (requester.c), which a thread that was thrown puts in order.
 * The engine still runs if its QP has the same token: no other engine of that QP has this one.
 */
struct sh_engine {
	struct sh_qp *qp; /* NULL: none */
	uint32_t token;
};

/*
 * What a thread keeps of itself. word: as in locks; 0: the thread is not part of the instance, or
 * has no slot yet. exec.c writes it.
 */
struct sh_self {
	const struct sh_instance *inst;
	uint64_t word;
	struct sh_door *armed; /* catches, inside of sh_catch() unless pinned; else NULL */
	/* The kernel's word, struct rseq.rseq_cs; never NULL while word is not 0. */
	uint64_t *cs;
	void *sp;		 /* of sh_catch() */
	struct sh_door *catches; /* its door; NULL: this thread cannot be thrown */
	uint64_t mark;		 /* SH_MAGIC: for the process that reads this from outside */
	uint64_t witness;	 /* the address space's, likewise */
	/* For fn: its thread was thrown out of it before. The caller of sh_catch() clears it. */
	bool again;
	struct sh_engine engine;
	uint64_t once;	/* where sh_once() stores; 0: nowhere */
	uint64_t reach; /* the system call in sh_reach_call(); 0: none */
};
extern __thread struct sh_self sh_self __attribute__((tls_model("initial-exec")));

_Static_assert(sizeof(struct sh_door) == 32 && offsetof(struct sh_door, abort_ip) == 24,
	       "the kernel's");
_Static_assert(offsetof(struct sh_self, armed) == 16 && offsetof(struct sh_self, cs) == 24 &&
		       offsetof(struct sh_self, sp) == 32 &&
		       offsetof(struct sh_self, catches) == 40,
	       "life.c has them in assembler");

typedef void sh_caught_fn(struct sh_dev *dev, uint32_t a, uint32_t b, uint64_t c);

/*
 * Calls fn(dev, a, b, c), armed. A thread that is thrown out of fn calls sh_thrown() and then fn
 * again, until fn comes to its end. fn looks at queues, which say what is left to do.
 */
void sh_catch(struct sh_dev *dev, uint32_t a, uint32_t b, uint64_t c, sh_caught_fn *fn);
/*
 * Prepares this thread, whose slot has this number: its door, its landing and the kernel's word.
 * Sets catches if the thread can be thrown.
 */
void sh_life_prepare(const struct sh_dev *dev, uint64_t slot);
/*
 * For a thread that was thrown: begins its next life, in which it has entered the device already,
 * and puts its engine in order. exec.c
 */
void sh_thrown(struct sh_dev *dev);
/* The part of it that concerns the engine. transport/requester_return.c */
void sh_requester_thrown(struct sh_dev *dev);

/*
 * In sh_once() each of these many bytes has the instruction of one size of store at its beginning,
 * and the commit that follows it at this offset.
 */
#define SH_ONCE_EACH   16
#define SH_ONCE_SIZES  4
#define SH_ONCE_COMMIT 3

/* Is the instruction at ip a commit in sh_once()? */
static inline bool sh_once_commits(const struct sh_self *self, uint64_t ip)
{
	uint64_t at = ip - self->once;

	return self->once && at < SH_ONCE_EACH * SH_ONCE_SIZES &&
	       at % SH_ONCE_EACH == SH_ONCE_COMMIT;
}

/*
 * Stores size bytes of val (1, 2, 4 or 8), and then word to *commit. The caller takes a place for
 * val that does not cross a line.
 */
void sh_once(void *at, uint64_t val, unsigned int size, uint64_t *commit, uint64_t word);

/*
 * A system call, by its number and arguments, of a thread that is armed. The life of the thread can
 * be ended behind the call, too, where the kernel has disarmed the thread. Only for device code: a
 * signal handler on top of it must not be thrown. And only for calls that the kernel does not begin
 * anew by itself after a signal. Returns what the kernel does, or -errno. Leaves errno alone on
 * x86-64.
 */
long sh_reach_call(long number, long a, long b, long c, long d, long e);

/* Arms this thread again, which the kernel may have disarmed. */
static inline void sh_rearm(void)
{
	__atomic_store_n(sh_self.cs, (uintptr_t)sh_self.armed, __ATOMIC_RELAXED);
}

/*
 * Pins this thread until sh_unpin(), or to the end of sh_catch(). The compiler must not move
 * anything out from between. Returns what sh_unpin() needs: the door, or NULL if the thread has
 * none, and in bit 0 whether the kernel had disarmed the thread. It stays disarmed then: this may
 * be a signal handler on top of device code, which must not be thrown.
 */
#define SH_DISARMED 1

static inline struct sh_door *sh_pin(void)
{
	struct sh_door *was = sh_self.armed;

	if (was) {
		if (!__atomic_load_n(sh_self.cs, __ATOMIC_RELAXED))
			was = (struct sh_door *)((uintptr_t)was | SH_DISARMED);
		sh_self.armed = NULL;
		__atomic_store_n(sh_self.cs, 0, __ATOMIC_RELAXED);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return was;
}

static inline void sh_unpin(struct sh_door *was)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (was) {
		sh_self.armed = (struct sh_door *)((uintptr_t)was & ~(uintptr_t)SH_DISARMED);
		if (!((uintptr_t)was & SH_DISARMED))
			sh_rearm();
	}
}

/*
 * What is left to do of a change of the receiver's memory, together with the commit. In device
 * memory that is to store the last of it; in other memory, all of it. size 0 and ctx 0: nothing.
 */
struct sh_last {
	void *at;
	uint64_t val;
	unsigned int size; /* of val, for at; 0: see ctx */
	uint32_t ctx;	   /* whose memory `to` is */
	/* len bytes from these pieces, or from val if there are none. */
	struct sh_seg to;
	uint32_t from_ctx, nfrom;
	const struct sh_seg *from;
	uint64_t len;
};

/* For memory that takes a system call. copy.c */
enum sh_copy sh_commit_far(struct sh_dev *dev, const struct sh_last *last, uint64_t *commit,
			   uint64_t word);

/*
 * Does it, and commits by storing word. If it fails, nothing is committed; only what takes a system
 * call can fail.
 */
static inline enum sh_copy sh_commit_last(struct sh_dev *dev, const struct sh_last *last,
					  uint64_t *commit, uint64_t word)
{
	if (__builtin_expect(last->size != 0, 1))
		sh_once(last->at, last->val, last->size, commit, word);
	else if (last->ctx)
		return sh_commit_far(dev, last, commit, word);
	else
		__atomic_store_n(commit, word, __ATOMIC_RELEASE);
	return SH_COPY_OK;
}

/*
 * What a thread announces in struct sh_moves when it reaches into a process, without the number of
 * that process.
 */
static inline uint64_t sh_reach_word(uint32_t tid, uint64_t generation)
{
	return ((generation << SH_MOVES_LIFE & UINT32_MAX) | tid) << 32;
}

/* How many words of reaching[] may be taken. */
static inline unsigned int sh_reaches(const struct sh_moves *moves)
{
	uint32_t more = __atomic_load_n(&moves->more, __ATOMIC_SEQ_CST);

	return more < SH_REACHES - SH_MOVES ? SH_MOVES + more : SH_REACHES;
}

/* The host's extend() (host.h), pinned: it takes a lock of the process. */
static inline int sh_extend(const struct sh_dev *dev, uint64_t off, uint64_t len)
{
	struct sh_door *door = sh_pin();
	int err = dev->ops->extend(dev->host, off, len);

	sh_unpin(door);
	return err;
}

/*
 * The host's defer() (host.h), pinned: it takes locks of the process. The system call that wakes
 * the helper thread needs none.
 */
static inline int sh_defer_as(struct sh_dev *dev, uint64_t deadline,
			      void (*fn)(struct sh_dev *, uint64_t, uint64_t), uint64_t a,
			      uint64_t b, bool once)
{
	struct sh_door *door = sh_pin();
	int err = dev->ops->defer(dev->host, deadline, fn, a, b, once);

	sh_unpin(door);
	if (err <= 0)
		return err;
	dev->ops->wake(dev->host, dev->proc);
	return 0;
}

static inline int sh_defer(struct sh_dev *dev, uint64_t deadline,
			   void (*fn)(struct sh_dev *, uint64_t, uint64_t), uint64_t a, uint64_t b)
{
	return sh_defer_as(dev, deadline, fn, a, b, false);
}

/* What a program may ask for again and again until the call comes. */
static inline int sh_defer_once(struct sh_dev *dev, uint64_t deadline,
				void (*fn)(struct sh_dev *, uint64_t, uint64_t), uint64_t a,
				uint64_t b)
{
	return sh_defer_as(dev, deadline, fn, a, b, true);
}

#endif
