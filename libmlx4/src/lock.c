// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The slow path of the spin lock: waiting. */
#include <sched.h>

#include "mlx4-barrier.h"
#include "mlx4-lock.h"

#ifdef MLX4_TSAN
char mlx4_through_device;
#endif

#if defined(__x86_64__) || defined(__i386__)
#define cpu_relax() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define cpu_relax() __asm__ volatile("yield" ::: "memory")
#else
#define cpu_relax() __asm__ volatile("" ::: "memory")
#endif

enum { SPINS_BEFORE_YIELD = 1000 };

void mlx4_lock_wait(struct mlx4_lock *lock)
{
	unsigned int spins = 0;

	do {
		/*
		 * Only reads while the lock is held, so that the cache line stays with the holder.
		 */
		while (__atomic_load_n(&lock->free, __ATOMIC_RELAXED) <= 0) {
			if (++spins < SPINS_BEFORE_YIELD) {
				cpu_relax();
			} else {
				spins = 0;
				sched_yield();
			}
		}
	} while (!mlx4_trylock(lock));
}
