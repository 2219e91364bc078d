// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a provider needs from the machine: 64-bit byte order, and barriers that order memory
 * accesses as an HCA sees them. This header is not part of the ABI. */

#ifndef INFINIBAND_ARCH_H
#define INFINIBAND_ARCH_H

#include <stdint.h>
#include <endian.h>

/* Host to network order of 64 bits. htobe64() would do, but strict ISO C hides it. */
static inline uint64_t htonll(uint64_t x)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap64(x);
#else
	return x;
#endif
}

/* Network to host order, which is the same operation. */
static inline uint64_t ntohll(uint64_t x)
{
	return htonll(x);
}

/*
 * mb()      orders earlier loads and stores before later loads and stores
 * rmb()     orders earlier loads before later loads: a CQE's owner bit before the rest of the CQE
 * wmb()     orders earlier stores to memory before later stores: a WQE before its doorbell
 * wc_wmb()  makes earlier write-combined stores leave the CPU before any later store
 *
 * On x86-64 mb() is what it was in OFED, and does not order a store before a later load. Code that
 * needs this (arm the CQ, then poll it once more) uses __atomic_thread_fence(__ATOMIC_SEQ_CST).
 */
#if defined(__x86_64__)

#define mb()	 __asm__ volatile("lfence" ::: "memory")
#define rmb()	 __asm__ volatile("lfence" ::: "memory")
#define wmb()	 __asm__ volatile("" ::: "memory")
#define wc_wmb() __asm__ volatile("sfence" ::: "memory")

#elif defined(__i386__)

#define mb()	 __asm__ volatile("lock; addl $0,0(%%esp)" ::: "memory")
#define rmb()	 mb()
#define wmb()	 __asm__ volatile("" ::: "memory")
#define wc_wmb() mb()

#elif defined(__aarch64__)

#define mb()	 __asm__ volatile("dmb osh" ::: "memory")
#define rmb()	 __asm__ volatile("dmb oshld" ::: "memory")
#define wmb()	 __asm__ volatile("dmb oshst" ::: "memory")
#define wc_wmb() __asm__ volatile("dsb st" ::: "memory")

#elif defined(__powerpc64__)

#define mb()	 __asm__ volatile("sync" ::: "memory")
#define rmb()	 __asm__ volatile("lwsync" ::: "memory")
#define wmb()	 mb()
#define wc_wmb() mb()

#elif defined(__powerpc__)

#define mb()	 __asm__ volatile("sync" ::: "memory")
#define rmb()	 mb()
#define wmb()	 mb()
#define wc_wmb() mb()

#elif defined(__ia64__)

#define mb()	 __asm__ volatile("mf" ::: "memory")
#define rmb()	 mb()
#define wmb()	 mb()
#define wc_wmb() __asm__ volatile("fwb" ::: "memory")

#else

#define mb()	 __sync_synchronize()
#define rmb()	 mb()
#define wmb()	 mb()
#define wc_wmb() mb()

#endif

#endif /* INFINIBAND_ARCH_H */
