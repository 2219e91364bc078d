// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The spin lock of the data path: one exchange takes it, one store releases it, and without
 * contention no function is called. It belongs to one process and is not recursive. Threads hold it
 * for a few hundred instructions, and longer only during a CQ resize. */
#ifndef MLX4_LOCK_H
#define MLX4_LOCK_H

#include "mlx4-bytes.h"

struct mlx4_lock {
	int free; /* 1: free; less: held */
	int skip; /* the application uses a single thread: the lock is never taken */
};

/* Takes the lock after mlx4_trylock() has failed: spins, and yields the processor at times. */
void mlx4_lock_wait(struct mlx4_lock *lock);

static inline void mlx4_lock_init(struct mlx4_lock *lock, int skip)
{
	lock->free = 1;
	lock->skip = skip;
}

/* Takes the lock if it is free. Returns whether it did. Does not check skip: the caller knows
 * it. */
static inline int mlx4_trylock(struct mlx4_lock *lock)
{
	/* Acquire: pairs with the release in mlx4_unlock(), which stores 1 and so resets what
	 * failed attempts have subtracted. */
	return likely(__atomic_sub_fetch(&lock->free, 1, __ATOMIC_ACQUIRE) == 0);
}

static inline void mlx4_lock(struct mlx4_lock *lock)
{
	if (unlikely(lock->skip))
		return;
	if (!mlx4_trylock(lock))
		mlx4_lock_wait(lock);
}

/* Takes the lock if it is free, without waiting. Returns true if the caller has the lock or does
 * not need it. */
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
