// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Order between this CPU's accesses and the device's, and stores to device pages. All barriers of
 * the provider are here. mlx4-lock.h and __atomic loads and stores order threads. */
#ifndef MLX4_BARRIER_H
#define MLX4_BARRIER_H

#include <stdint.h>
#include <linux/types.h>

#include "mlx4-bytes.h"

/*
 * udma_to_device_barrier()    makes earlier stores to memory visible to the device before later
 *                             stores, to memory or to a device page
 * udma_from_device_barrier()  later loads of memory that the device writes do not return older data
 *                             than earlier loads
 * udma_taken_barrier()        completes earlier loads of memory that the device writes before later
 *                             stores, which tell the device that it may write there again
 * mmio_flush_writes()         makes earlier write-combined stores leave the CPU before later stores
 *
 * None of them orders a store before a later load. x86 keeps write-back and uncached stores in
 * order, and loads too, so only the compiler must be kept from reordering them.
 */
#if defined(__x86_64__)
#define udma_to_device_barrier()   __asm__ volatile("" ::: "memory")
#define udma_from_device_barrier() __asm__ volatile("" ::: "memory")
#define udma_taken_barrier()	   __asm__ volatile("" ::: "memory")
#define mmio_flush_writes()	   __asm__ volatile("sfence" ::: "memory")
#elif defined(__i386__)
#define udma_to_device_barrier()   __asm__ volatile("" ::: "memory")
#define udma_from_device_barrier() __asm__ volatile("lock; addl $0,0(%%esp)" ::: "memory")
#define udma_taken_barrier()	   __asm__ volatile("" ::: "memory")
#define mmio_flush_writes()	   __asm__ volatile("lock; addl $0,0(%%esp)" ::: "memory")
#elif defined(__aarch64__)
#define udma_to_device_barrier()   __asm__ volatile("dsb st" ::: "memory")
#define udma_from_device_barrier() __asm__ volatile("dsb ld" ::: "memory")
#define udma_taken_barrier()	   __asm__ volatile("dmb oshld" ::: "memory")
#define mmio_flush_writes()	   __asm__ volatile("dsb st" ::: "memory")
#elif defined(__powerpc64__)
#define udma_to_device_barrier()   __asm__ volatile("sync" ::: "memory")
#define udma_from_device_barrier() __asm__ volatile("lwsync" ::: "memory")
#define udma_taken_barrier()	   __asm__ volatile("lwsync" ::: "memory")
#define mmio_flush_writes()	   __asm__ volatile("sync" ::: "memory")
#elif defined(__powerpc__)
#define udma_to_device_barrier()   __asm__ volatile("sync" ::: "memory")
#define udma_from_device_barrier() __asm__ volatile("sync" ::: "memory")
#define udma_taken_barrier()	   __asm__ volatile("sync" ::: "memory")
#define mmio_flush_writes()	   __asm__ volatile("sync" ::: "memory")
#elif defined(__riscv)
#define udma_to_device_barrier()   __asm__ volatile("fence ow,ow" ::: "memory")
#define udma_from_device_barrier() __asm__ volatile("fence ir,ir" ::: "memory")
#define udma_taken_barrier()	   __asm__ volatile("fence r,w" ::: "memory")
#define mmio_flush_writes()	   __asm__ volatile("fence ow,ow" ::: "memory")
#elif defined(__ia64__)
#define udma_to_device_barrier()   __asm__ volatile("mf" ::: "memory")
#define udma_from_device_barrier() __asm__ volatile("mf" ::: "memory")
#define udma_taken_barrier()	   __asm__ volatile("mf" ::: "memory")
#define mmio_flush_writes()	   __asm__ volatile("fwb" ::: "memory")
#else
#define udma_to_device_barrier()   __sync_synchronize()
#define udma_from_device_barrier() __sync_synchronize()
#define udma_taken_barrier()	   __sync_synchronize()
#define mmio_flush_writes()	   __sync_synchronize()
#endif

/*
 * ThreadSanitizer sees threads, but not the device. All that a thread did before it told the device
 * happens before what a thread does that has heard from the device. A device page is not memory, so
 * stores to it cannot race.
 */
#if defined(__SANITIZE_THREAD__)
#define MLX4_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MLX4_TSAN 1
#endif
#endif
#ifdef MLX4_TSAN
#include <sanitizer/tsan_interface.h>
extern char mlx4_through_device; /* represents the order through the device; in lock.c */
#undef udma_to_device_barrier
#undef udma_from_device_barrier
#define udma_to_device_barrier()   __tsan_release(&mlx4_through_device)
#define udma_from_device_barrier() __tsan_acquire(&mlx4_through_device)
#define MLX4_DEVICE_PAGE	   __attribute__((no_sanitize("thread"), noinline))
#else
#define MLX4_DEVICE_PAGE
#endif

/*
 * Neither orders anything that the device or another thread could see. Both keep the compiler from
 * rewrites that take more instructions: to gather adjacent words in a vector for one store, and to
 * compute a value again.
 */
#define keep_stores_apart() __asm__("" ::: "memory")
#define keep_value(value)   __asm__("" : "+r"(value))

static inline MLX4_DEVICE_PAGE void mmio_write32(void *addr, __be32 value)
{
	*(volatile __be32 *)addr = value;
}

#if __SIZEOF_LONG__ == 8
static inline MLX4_DEVICE_PAGE void mmio_write64(void *addr, __be64 value)
{
	*(volatile __be64 *)addr = value;
}
#endif

/* Copies whole 64-byte chunks between aligned addresses, with the widest stores that all machines
 * of the kind have. memcpy() would not do: ascending order is part of the protocol. */
#if defined(__SSE2__)
typedef long long __attribute__((vector_size(16), may_alias)) mlx4_raw_block;
#else
typedef mlx4_raw_word mlx4_raw_block;
#endif

enum { MLX4_BLOCKS = 64 / sizeof(mlx4_raw_block) };

static inline MLX4_DEVICE_PAGE void mmio_copy_chunks(void *dst, const void *src, unsigned int bytes)
{
	volatile mlx4_raw_block *d = dst;
	const mlx4_raw_block *s = src;
	unsigned int i;

	do {
		for (i = 0; i < MLX4_BLOCKS; i += 4) {
			d[i] = s[i];
			d[i + 1] = s[i + 1];
			d[i + 2] = s[i + 2];
			d[i + 3] = s[i + 3];
		}
		d += MLX4_BLOCKS;
		s += MLX4_BLOCKS;
		bytes -= 64;
	} while (bytes);
}

#endif
