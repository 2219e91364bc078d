// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a provider needs from the machine: 64-bit byte order and barriers that order memory as an HCA
 * sees it. Header only, never part of the ABI. */

#ifndef INFINIBAND_ARCH_H
#define INFINIBAND_ARCH_H

#include <stdint.h>
#include <endian.h>

/* Host to network order of 64 bits. Not by htobe64(), which strict ISO C hides. */
static inline uint64_t htonll(uint64_t x)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap64(x);
#else
	return x;
#endif
}

/* The inverse, which is the same. */
static inline uint64_t ntohll(uint64_t x)
{
	return htonll(x);
}

/*
 * mb()      loads and stores before it come before loads and stores after it
 * rmb()     loads before it come before loads after it: valid bit first, then the rest of a CQE
 * wmb()     stores to memory before it come before stores after it: WQE first, then its doorbell
 * wc_wmb()  write-combined stores before it leave the CPU before any store after it
 *
 * On x86-64 mb() is what it was in OFED, which does not keep a store before a later load: where that is
 * needed (arm, then look at the queue once more) use __atomic_thread_fence(__ATOMIC_SEQ_CST).
 */
#if defined(__x86_64__)

#define mb() __asm__ volatile("lfence" ::: "memory")
#define rmb() __asm__ volatile("lfence" ::: "memory")
#define wmb() __asm__ volatile("" ::: "memory")
#define wc_wmb() __asm__ volatile("sfence" ::: "memory")

#elif defined(__i386__)

#define mb() __asm__ volatile("lock; addl $0,0(%%esp)" ::: "memory")
#define rmb() mb()
#define wmb() __asm__ volatile("" ::: "memory")
#define wc_wmb() mb()

#elif defined(__aarch64__)

#define mb() __asm__ volatile("dmb osh" ::: "memory")
#define rmb() __asm__ volatile("dmb oshld" ::: "memory")
#define wmb() __asm__ volatile("dmb oshst" ::: "memory")
#define wc_wmb() __asm__ volatile("dsb st" ::: "memory")

#elif defined(__powerpc64__)

#define mb() __asm__ volatile("sync" ::: "memory")
#define rmb() __asm__ volatile("lwsync" ::: "memory")
#define wmb() mb()
#define wc_wmb() mb()

#elif defined(__powerpc__)

#define mb() __asm__ volatile("sync" ::: "memory")
#define rmb() mb()
#define wmb() mb()
#define wc_wmb() mb()

#elif defined(__ia64__)

#define mb() __asm__ volatile("mf" ::: "memory")
#define rmb() mb()
#define wmb() mb()
#define wc_wmb() __asm__ volatile("fwb" ::: "memory")

#else

#define mb() __sync_synchronize()
#define rmb() mb()
#define wmb() mb()
#define wc_wmb() mb()

#endif

#endif /* INFINIBAND_ARCH_H */
