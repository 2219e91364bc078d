/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A thread's life in device code, and how others end it while the thread is stopped (SIGSTOP, Ctrl-Z).
 *
 * A life is a slot of struct sh_exec and its generation. It ends with the thread. It also ends when the thread is stopped and
 * somebody waits for what it holds: after that its locks count as a dead thread's (lock.h), recovery carries out what it had
 * committed (txn.h), and a grace period does not wait for it. The rule that makes this safe:
 *
 *	A thread whose life was ended executes no further instruction of that life.
 *
 * The kernel enforces it. Between sh_catch() and its return the thread's restartable-sequence descriptor (rseq(2), registered
 * by the C library) is its door, "armed". The door is closed: it names no instruction, so nothing ever aborts. The thread or
 * daemon that ends the life opens it for the one instruction where the thread is stopped. Before the thread returns to user
 * mode, the kernel compares that instruction with the door, as it does after every switch, and sends the thread to the landing
 * in sh_catch() instead. There sh_thrown() begins the thread's next life, in which it does the same work anew.
 *
 * Linux does that up to 6.18. From 6.19 on it skips the comparison for a thread that comes out of a system call, and leaves
 * the door armed below a signal handler that begins there. A thread on such a kernel is never armed (life.c finds out).
 *
 * A thread or daemon that ends a life (host/stopped.c)
 *  0. takes the slot's lock `ending`, so that no other opens the same door for another instruction meanwhile;
 *  1. sees the thread stopped and off its processor; notes its switch count and its next instruction;
 *  2. sees that the door is armed, and that it is the thread's whose slot it is (word, and the stack that the kernel says the
 *     thread is on); opens it;
 *  3. sees the thread stopped and off its processor still, with the same switch count: it has not run since 1, so it cannot
 *     run now without passing the door;
 *  4. changes the generation.
 * If 3 fails, the door stays open. The thread may then come out of sh_catch() in a life that nobody has ended: it ends that
 * life by itself. That is harmless for the same reason as any other end.
 *
 * Between any two of these steps the one that takes them may itself be stopped for hours. So a door never moves and never
 * becomes other memory: it belongs to a slot's number in an address space, and is there as long as the address space.
 *
 * A debugger that comes between 4 and the moment when the thread goes on can break the rule: when it lets the thread run from
 * elsewhere (a call from the debugger) and puts the old instruction back, the kernel has disarmed the door.
 *
 * The kernel disarms the door (NULL) when it lets the thread go on anywhere else, be it after a switch or into a signal
 * handler. So what is armed is known exactly, a handler on top of device code never is, and a thread that was switched out
 * shortly before it was stopped may not be. Then others wait for it as long as it is stopped, as they do where there are no
 * restartable sequences. It is armed again with the next message (sh_rearm).
 *
 * Two kinds of work are done "pinned", which is not armed. One has to be left in order, because the process goes on: mutexes
 * of the process, its heap of timers, descriptors. The other must not be done twice, and the thread would do it twice since
 * it sends again what the receiver has not committed: what an atomic operation or the last packet of an RDMA WRITE does to
 * memory, which the receiver can see before the commit; an event; a QP's way into ERR.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_LIFE_H
#define SOFTHCA_DEVICE_MEMORY_LIFE_H

#include "dev.h"

/* struct rseq_cs of the kernel. The 32 bits in front of abort_ip's instruction are its signature. */
struct sh_door {
	uint32_t version, flags;
	uint64_t start_ip;
	uint64_t len;			/* 0: closed */
	uint64_t abort_ip;
} __attribute__((aligned(32)));

/*
 * The engine of a QP that this thread ran last (requester.c): what to put in order after a throw. It runs still if the QP
 * says the same token, which no other engine of the QP has.
 */
struct sh_engine {
	struct sh_qp *qp;		/* NULL: none */
	uint32_t token;
	bool has_floor;
	uint64_t floor;			/* sq_una and una_psn before the message that the receiver has not committed */
};

/* This thread. word, as in locks: 0 outside of the instance, and where it has no slot yet. Written by exec.c. */
struct sh_self {
	const struct sh_instance *inst;
	uint64_t word;
	struct sh_door *armed;		/* catches, inside of sh_catch() and not pinned */
	uint64_t *cs;			/* where the kernel looks: struct rseq.rseq_cs; never NULL where word is not 0 */
	void *sp;			/* of sh_catch() */
	struct sh_door *catches;	/* its door; NULL: this thread cannot be thrown */
	uint64_t mark;			/* SH_MAGIC: for who looks from outside */
	uint64_t witness;		/* the address space's, likewise */
	bool again;			/* for fn of sh_catch(): its thread was thrown out of it before; the caller clears it */
	struct sh_engine engine;
};
extern __thread struct sh_self sh_self __attribute__((tls_model("initial-exec")));

_Static_assert(sizeof(struct sh_door) == 32 && offsetof(struct sh_door, abort_ip) == 24, "the kernel's");
_Static_assert(offsetof(struct sh_self, armed) == 16 && offsetof(struct sh_self, cs) == 24 &&
	       offsetof(struct sh_self, sp) == 32 && offsetof(struct sh_self, catches) == 40, "life.c has them in assembler");

typedef void sh_caught_fn(struct sh_dev *dev, uint32_t a, uint32_t b, uint64_t c);

/*
 * fn(dev, a, b, c), armed. A thread that is thrown out of its middle calls sh_thrown(), and then fn again until that comes
 * to its end: it looks at queues, which say what is left.
 */
void sh_catch(struct sh_dev *dev, uint32_t a, uint32_t b, uint64_t c, sh_caught_fn *fn);
/* Where this thread lands, and where the kernel looks; catches is set if it can be thrown. Of the slot with this number. */
void sh_life_prepare(const struct sh_dev *dev, uint64_t slot);
/* The thread was thrown: its next life, in which it has entered already, and its QP's engine in order. exec.c */
void sh_thrown(struct sh_dev *dev);
/* The same for the engine. requester.c */
void sh_requester_thrown(struct sh_dev *dev);

/* The kernel may have disarmed it. */
static inline void sh_rearm(void)
{
	__atomic_store_n(sh_self.cs, (uintptr_t)sh_self.armed, __ATOMIC_RELAXED);
}

/* Until sh_unpin(), or to the end of sh_catch(): not armed. The compiler must not move anything out of it. */
static inline struct sh_door *sh_pin(void)
{
	struct sh_door *was = sh_self.armed;

	if (was) {
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
		sh_self.armed = was;
		sh_rearm();
	}
}

/* As host.h's extend(), which has a lock of the process. */
static inline int sh_extend(const struct sh_dev *dev, uint64_t off, uint64_t len)
{
	struct sh_door *door = sh_pin();
	int err = dev->ops->extend(dev->host, off, len);

	sh_unpin(door);
	return err;
}

/* As host.h's defer(). That has locks of the process; the system call that wakes its helper thread needs none. */
static inline int sh_defer(struct sh_dev *dev, uint64_t deadline, void (*fn)(struct sh_dev *, uint64_t, uint64_t), uint64_t a,
			   uint64_t b)
{
	struct sh_door *door = sh_pin();
	int err = dev->ops->defer(dev->host, deadline, fn, a, b);

	sh_unpin(door);
	if (err <= 0)
		return err;
	dev->ops->wake(dev->host, dev->proc);
	return 0;
}

#endif
