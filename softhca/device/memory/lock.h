/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Locks between processes that survive their holder. The word of a lock names the thread that holds
 * it: by the slot that the thread has for life (struct sh_exec), and by how often that slot was
 * taken before. If the slot is free or another thread has it by now, the holder is dead, and a
 * thread that waits takes the lock in its place. Without contention, taking or releasing a lock is
 * one instruction on the word. The slot's own robust mutex costs several times as much; a thread
 * touches it once in its life.
 *
 *	BITS	OF owner; all 0 = no thread
 *	0-14	number of the slot + 1
 *	15	a thread sleeps on the lower half
 *	32-63	generation of the slot
 *
 * If the kernel does not mark the mutex in the slot of a dead thread, the daemon counts that thread
 * as dead when it learns of the process's end.
 *
 * The releasing thread wakes one sleeper at a time, shortly after it has released the lock. If that
 * sleeper is killed before it takes the lock, the wake-up is lost. So it is if the releasing thread
 * is killed, or stopped, in between. A holder that dies wakes no sleeper; the daemon does so when
 * it learns of the death (orphans.c). So sleepers look again now and then.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_LOCK_H
#define SOFTHCA_DEVICE_MEMORY_LOCK_H

#include <errno.h>

#include "dev.h"
#include "life.h"

#define SH_OWNER_SLOT	    UINT64_C(0x7fff)
#define SH_OWNER_SLEEPERS   UINT64_C(0x8000)
#define SH_OWNER_GENERATION 32

_Static_assert(SH_MAX_EXEC < SH_OWNER_SLOT, "a slot and none");

/* ---- exec.c ---- */

/* The word of this thread, which first gets itself a slot. 0: no slot is free now. */
uint64_t sh_self_word(struct sh_dev *dev);
/* Has the thread that this word of a lock names ended without releasing the lock? */
bool sh_owner_dead(struct sh_dev *dev, uint64_t owner);
/*
 * That thread lives, and others have waited for it for long: ends its life if it is stopped.
 * Returns whether it stands: it is stopped, and its life cannot be ended.
 */
bool sh_owner_stopped(struct sh_dev *dev, uint64_t owner);

/*
 * Remembers to wake a sleeper when this thread leaves the device. False: the caller wakes it.
 */
bool sh_wake_later(struct sh_lock *lock);
/* Makes the wake-ups that are left, before this thread sleeps or copies much. */
void sh_errands(struct sh_dev *dev);

/* ---- lock.c ---- */

/*
 * How long a thread waits for a lock. BOUNDED: for SH_LOCK_WAIT_MS. BRIEFLY: until the holder has
 * stood for SH_BRIEF_MS, because what the thread has to do can be done later. PATIENTLY: until it
 * has stood for SH_PATIENCE_MS, because what the thread has to do is lost otherwise. A thread that
 * has been given up once is given up at once. Both also give up a holder that has the lock for
 * SH_HELD_MS, whatever it does; from then on for as long as one that stands.
 */
enum sh_wait { SH_WAIT_NOT, SH_WAIT_BOUNDED, SH_WAIT_BRIEFLY, SH_WAIT_PATIENTLY, SH_WAIT_EVER };
#define SH_BRIEF_MS    20
#define SH_PATIENCE_MS 2000
#define SH_HELD_MS     10000
/* When a thread looks again at what it has put off because a thread stands. */
#define SH_PUT_OFF_NS UINT64_C(10000000)

/*
 * 0; EOWNERDEAD: taken from a thread that has died, or that cannot exist (damage); -EBUSY: not
 * taken; -EINPROGRESS: the holder was given up.
 */
int sh_hold(struct sh_dev *dev, struct sh_lock *lock, enum sh_wait wait);
/*
 * Also wakes a sleeper. Leaves alone a lock that is not this thread's: in a child forked inside the
 * device, or after damage.
 */
void sh_let_go_slow(struct sh_lock *lock);
/* Wakes a thread that sleeps on the lock; if this thread is in device code, when it leaves. */
void sh_wake_sleeper(struct sh_lock *lock);
void sh_wake_now(struct sh_lock *lock);
/*
 * For a thread that has long tried in vain and will come back: ends the life of a holder that is
 * stopped.
 */
void sh_lock_suspect(struct sh_dev *dev, struct sh_lock *lock);

/* Takes the lock if it is free. True: it is taken now. */
static inline bool sh_hold_free(struct sh_dev *dev, struct sh_lock *lock)
{
	uint64_t nobody = 0;

	return sh_self.word && sh_self.inst == dev->inst &&
	       __atomic_compare_exchange_n(&lock->owner, &nobody, sh_self.word, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void sh_let_go(struct sh_lock *lock)
{
	if (__builtin_expect(__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) != sh_self.word, 0))
		sh_let_go_slow(lock);
	else if (__builtin_expect(__atomic_exchange_n(&lock->owner, 0, __ATOMIC_SEQ_CST) &
					  SH_OWNER_SLEEPERS,
				  0))
		sh_wake_sleeper(lock);
}

#endif
