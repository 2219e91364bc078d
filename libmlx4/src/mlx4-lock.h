// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The spin lock of the data path: one exchange to take, one store to release, nothing called while nobody waits.
 * Private to the process, not recursive, held for a few hundred instructions (longer only around a CQ resize). */
#ifndef MLX4_LOCK_H
#define MLX4_LOCK_H

#include "mlx4-bytes.h"

struct mlx4_lock {
	int held;
	int skip; /* the application promised a single thread: never taken */
};

/* Out of line: spins, then gives the processor away in between. Returns with the lock held. */
void mlx4_lock_wait(struct mlx4_lock *lock);

static inline void mlx4_lock_init(struct mlx4_lock *lock, int skip)
{
	lock->held = 0;
	lock->skip = skip;
}

static inline void mlx4_lock(struct mlx4_lock *lock)
{
	if (unlikely(lock->skip))
		return;
	/* Acquire: pairs with the release in mlx4_unlock(). */
	if (unlikely(__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE)))
		mlx4_lock_wait(lock);
}

static inline void mlx4_unlock(struct mlx4_lock *lock)
{
	/* Release: pairs with the acquire in mlx4_lock(). A skipped lock is free already. */
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

#endif
