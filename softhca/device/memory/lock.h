/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Locks between processes that survive their holder. The word of a lock says which thread holds it, by the slot that
 * the thread has for life (struct sh_exec) and how often that slot was taken before: whose slot is free, or somebody
 * else's by now, is dead, and who waits takes the lock in his place. An uncontended way in or out is one instruction on the
 * word; the slot's own robust mutex, which costs several times as much, is touched once in the life of a thread.
 *
 *	BITS	OF owner; all 0 = nobody
 *	0-14	number of the slot + 1
 *	15	somebody sleeps on the lower half
 *	32-63	generation of the slot
 *
 * Where the kernel does not mark the slot's mutex of a dead thread, the daemon tells when it learns of the process's end.
 *
 * Sleepers are woken one at a time. One that is killed between its wake-up and its turn takes the wake-up along.
 * Those of a holder that dies are woken by the daemon when it learns of the death (orphans.c). So they look now and then.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_LOCK_H
#define SOFTHCA_DEVICE_MEMORY_LOCK_H

#include <errno.h>

#include "dev.h"
#include "life.h"

#define SH_OWNER_SLOT		UINT64_C(0x7fff)
#define SH_OWNER_SLEEPERS	UINT64_C(0x8000)
#define SH_OWNER_GENERATION	32

_Static_assert(SH_MAX_EXEC < SH_OWNER_SLOT, "a slot and none");

/* ---- exec.c ---- */

/* The word of this thread, after it has got itself a slot; 0: there is none to be had now. */
uint64_t sh_self_word(struct sh_dev *dev);
/* The thread that this word of a lock means has ended without letting go. */
bool sh_owner_dead(struct sh_dev *dev, uint64_t owner);
/* That thread lives, and others have waited for it for long: end its life if it is stopped. */
void sh_owner_stopped(struct sh_dev *dev, uint64_t owner);

/* ---- lock.c ---- */

/* SH_WAIT_BOUNDED: SH_LOCK_WAIT_MS. */
enum sh_wait { SH_WAIT_NOT, SH_WAIT_BOUNDED, SH_WAIT_EVER };

/* 0; EOWNERDEAD: taken from somebody who has died, or from nobody who can be (damage); -EBUSY: not taken. */
int sh_hold(struct sh_dev *dev, struct sh_lock *lock, enum sh_wait wait);
/* Wake a sleeper, too; and leave alone what is not ours: a child forked inside the device, or damage. */
void sh_let_go_slow(struct sh_lock *lock);
void sh_wake_sleeper(struct sh_lock *lock);
/* For who has tried in vain for long, and will come back: end the life of a holder that is stopped. */
void sh_lock_suspect(struct sh_dev *dev, struct sh_lock *lock);

/* Whether it was free and is taken now. */
static inline bool sh_hold_free(struct sh_dev *dev, struct sh_lock *lock)
{
	uint64_t nobody = 0;

	return sh_self.word && sh_self.inst == dev->inst &&
	       __atomic_compare_exchange_n(&lock->owner, &nobody, sh_self.word, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void sh_let_go(struct sh_lock *lock)
{
	if (__builtin_expect(__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) != sh_self.word, 0))
		sh_let_go_slow(lock);
	else if (__builtin_expect(__atomic_exchange_n(&lock->owner, 0, __ATOMIC_SEQ_CST) & SH_OWNER_SLEEPERS, 0))
		sh_wake_sleeper(lock);
}

#endif
