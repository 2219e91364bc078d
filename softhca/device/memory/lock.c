// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ways into a lock that is held (look again, then sleep), and out of one that a thread sleeps
 * on. lock.h has the rules.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "announce.h"
#include "lock.h"
#include "txn.h"

#define LOOK_MS 100 /* the longest sleep */
/* A holder that makes others sleep for so long may be stopped. */
#define SUSPECT_MS 4
#define SPIN	   64 /* pauses in the last of the rounds before sleeping; about 5 us in all */

static inline void spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* The half of the word that the kernel compares. */
static uint32_t *lower(struct sh_lock *lock)
{
	return (uint32_t *)&lock->owner + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

void sh_wake_now(struct sh_lock *lock)
{
	syscall(SYS_futex, lower(lock), FUTEX_WAKE, 1, NULL, NULL, 0);
}

void sh_wake_sleeper(struct sh_lock *lock)
{
	if (sh_wake_later(lock))
		return;
	sh_wake_now(lock);
	sh_rearm();
}

void sh_let_go_slow(struct sh_lock *lock)
{
	uint64_t owner = __atomic_load_n(&lock->owner, __ATOMIC_RELAXED);

	if (!sh_self.word || (owner & ~SH_OWNER_SLEEPERS) != sh_self.word)
		return;
	/* Released before the wake-up: the woken thread must find the lock free. */
	__atomic_store_n(&lock->owner, 0, __ATOMIC_SEQ_CST);
	sh_wake_sleeper(lock);
}

static bool possible(uint64_t owner)
{
	uint64_t slot = owner & SH_OWNER_SLOT;

	return slot && slot <= SH_MAX_EXEC &&
	       !((uint32_t)owner & ~(SH_OWNER_SLOT | SH_OWNER_SLEEPERS));
}

/* Changes the word from one value to another. False: it had another value. */
static inline bool exchange(struct sh_lock *lock, uint64_t *was, uint64_t is)
{
	return __atomic_compare_exchange_n(&lock->owner, was, is, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/* Tries once. Returns what sh_hold() returns; after -EBUSY, *owner is the holder. */
static int look(struct sh_dev *dev, struct sh_lock *lock, uint64_t me, uint64_t *owner)
{
	bool damaged;

	*owner = __atomic_load_n(&lock->owner, __ATOMIC_RELAXED);
	if (!*owner)
		return exchange(lock, owner, me) ? 0 : -EBUSY;
	damaged = !possible(*owner);
	if (!damaged && !sh_owner_dead(dev, *owner))
		return -EBUSY;
	/* Threads that slept on the lock still do. */
	if (!exchange(lock, owner, me | SH_OWNER_SLEEPERS))
		return -EBUSY;
	if (damaged)
		dev->ops->complain(dev->host, "a damaged lock", 0, 0);
	return EOWNERDEAD;
}

/*
 * Waits without sleeping for a lock that another thread may hold. Most locks are held for less time
 * than it takes to sleep and be woken. It looks less and less often, because each look takes the
 * line from the thread that is about to release the lock.
 */
static bool spin(struct sh_lock *lock, uint64_t me)
{
	for (unsigned int wait = 4; wait <= SPIN; wait *= 2) {
		uint64_t nobody = 0;

		if (!__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) && exchange(lock, &nobody, me))
			return true;
		for (unsigned int i = 0; i < wait; i++)
			spin_pause();
	}
	return false;
}

/* Sleeps until that holder releases the lock, at most for so long. */
static void sleep_on(struct sh_lock *lock, uint64_t owner, unsigned int ms)
{
	const struct timespec limit = {.tv_nsec = ms * 1000000L};

	if (!(owner & SH_OWNER_SLEEPERS)) {
		if (!exchange(lock, &owner, owner | SH_OWNER_SLEEPERS))
			return;
		owner |= SH_OWNER_SLEEPERS;
	}
	syscall(SYS_futex, lower(lock), FUTEX_WAIT, (uint32_t)owner, &limit, NULL, 0);
	sh_rearm();
}

static uint64_t now_ms(const struct sh_dev *dev)
{
	return dev->ops->now(dev->host) / 1000000;
}

void sh_lock_suspect(struct sh_dev *dev, struct sh_lock *lock)
{
	uint64_t owner = __atomic_load_n(&lock->owner, __ATOMIC_RELAXED);

	if (possible(owner))
		sh_owner_stopped(dev, owner);
}

/*
 * In dev->given_up: that thread did not stand, as far as could be seen. No bit of an owner's word.
 */
#define SLOW (UINT64_C(1) << 16)

/* What a waiting thread has seen of the thread that it waits for. Moments in ms; 0: not. */
struct seen {
	uint64_t owner;
	uint64_t since; /* it has had the lock */
	uint64_t stood; /* it has stood without a break */
};

/* Looks at the holder after the thread has slept for ms. Is it to be given up? */
static bool given_up(struct sh_dev *dev, struct seen *seen, uint64_t owner, enum sh_wait wait,
		     unsigned int ms)
{
	uint64_t *last = &dev->given_up[(owner & SH_OWNER_SLOT) % SH_GIVEN_UP];
	const uint64_t was = __atomic_load_n(last, __ATOMIC_RELAXED);
	const bool known = was == owner, slow = was == (owner | SLOW);
	const unsigned int limit = wait == SH_WAIT_BRIEFLY ? SH_BRIEF_MS : SH_PATIENCE_MS;
	const uint64_t now = now_ms(dev);

	if (seen->owner != owner)
		*seen = (struct seen){.owner = owner, .since = now};
	if ((ms < SUSPECT_MS && !known) || !sh_owner_stopped(dev, owner)) {
		seen->stood = 0;
		if (now - seen->since < (slow ? limit : SH_HELD_MS))
			return false;
		__atomic_store_n(last, owner | SLOW, __ATOMIC_RELAXED);
		return true;
	}
	if (!seen->stood)
		seen->stood = now;
	if (!known && now - seen->stood < limit)
		return false;
	__atomic_store_n(last, owner, __ATOMIC_RELAXED);
	return true;
}

int sh_hold(struct sh_dev *dev, struct sh_lock *lock, enum sh_wait wait)
{
	uint64_t me = sh_self_word(dev), owner, until = 0;
	struct seen seen = {0};
	int err;

	if (!me)
		return -EBUSY;
	if (wait == SH_WAIT_NOT)
		return look(dev, lock, me, &owner);
	if (spin(lock, me))
		return 0;
	if (wait == SH_WAIT_BOUNDED)
		until = now_ms(dev) + SH_LOCK_WAIT_MS;
	sh_errands(dev);
	/* Each thread that gets here waits for longer than the announcement takes. */
	sh_wait_begin(dev, SH_WAITS_LOCK, (uint64_t)((char *)lock - (char *)dev->inst), 0);
	/*
	 * A thread that has slept cannot tell whether others sleep, so it takes the lock with the
	 * bit set.
	 */
	for (unsigned int ms = 1;
	     (err = look(dev, lock, me | SH_OWNER_SLEEPERS, &owner)) == -EBUSY;) {
		uint64_t left = until ? until - now_ms(dev) : ms;

		if ((int64_t)left <= 0)
			break;
		if (owner && (wait == SH_WAIT_BRIEFLY || wait == SH_WAIT_PATIENTLY)) {
			if (given_up(dev, &seen, owner & ~SH_OWNER_SLEEPERS, wait, ms)) {
				err = -EINPROGRESS;
				break;
			}
		} else if (owner && ms >= SUSPECT_MS) {
			sh_owner_stopped(dev, owner);
		}
		if (owner)
			sleep_on(lock, owner, left < ms ? (unsigned int)left : ms);
		ms = ms * 2 > LOOK_MS ? LOOK_MS : ms * 2;
	}
	sh_wait_end(dev);
	/* It may have been woken in place of one that waits on. */
	if (err == -EINPROGRESS)
		sh_wake_now(lock);
	return err;
}
