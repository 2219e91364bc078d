// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The spin lock of the data path: one exchange to take, one store to release, nothing called while
 * nobody waits. Private to the process, not recursive, held for a few hundred instructions (longer
 * only around a CQ resize). */
#ifndef MLX4_LOCK_H
#define MLX4_LOCK_H

#include "mlx4-bytes.h"

struct mlx4_lock {
	int free; /* 1, or less: held */
	int skip; /* the application promised a single thread: never taken */
};

/* Out of line, after mlx4_trylock() failed: spins, then gives the processor away in between.
 * Returns with the lock. */
void mlx4_lock_wait(struct mlx4_lock *lock);

static inline void mlx4_lock_init(struct mlx4_lock *lock, int skip)
{
	lock->free = 1;
	lock->skip = skip;
}

/* Whether the lock was free and is ours now. Does not look at skip: for callers that know. */
static inline int mlx4_trylock(struct mlx4_lock *lock)
{
	/* Acquire: pairs with the release in mlx4_unlock(), whose 1 also forgets those who failed
	 * here. */
	return likely(__atomic_sub_fetch(&lock->free, 1, __ATOMIC_ACQUIRE) == 0);
}

static inline void mlx4_lock(struct mlx4_lock *lock)
{
	if (unlikely(lock->skip))
		return;
	if (!mlx4_trylock(lock))
		mlx4_lock_wait(lock);
}

/* Never waits: whether the lock is ours, or not needed. */
static inline int mlx4_lock_if_free(struct mlx4_lock *lock)
{
	return unlikely(lock->skip) || mlx4_trylock(lock);
}

static inline void mlx4_unlock(struct mlx4_lock *lock)
{
	/* Release: pairs with the acquire in mlx4_trylock(). A skipped lock is free already. */
	__atomic_store_n(&lock->free, 1, __ATOMIC_RELEASE);
}

#endif
