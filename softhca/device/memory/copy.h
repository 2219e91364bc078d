/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Copies that cannot fault and need no other process: between two pieces of device memory, or from
 * a plain pointer of this process into device memory. All other copies go through the host
 * interface.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_COPY_H
#define SOFTHCA_DEVICE_MEMORY_COPY_H

#include "life.h"

/*
 * Zero a known number of bytes in plain stores: for a hundred or two of them "rep stos" takes
 * longer to begin with.
 */
SH_INLINE void sh_zero(void *at, size_t len)
{
#pragma GCC unroll 16
	for (size_t i = 0; i < len / 16; i++)
		__builtin_memset((char *)at + i * 16, 0, 16);
	__builtin_memset((char *)at + len / 16 * 16, 0, len % 16);
}

/*
 * Where a piece can be accessed without a fault. NULL: its pages are not device memory, or lie
 * outside of what this process has mapped.
 */
SH_INLINE void *sh_shared_at(const struct sh_dev *dev, const struct sh_seg *seg)
{
	uint64_t off = seg->addr & ~SH_SEG_SHARED;

	if (!(seg->addr & SH_SEG_SHARED) || !sh_in_shared(dev, off, seg->len))
		return NULL;
	return sh_at(dev, off);
}

/*
 * Stores before this barrier become visible before those after it, to a reader that polls the later
 * ones and orders its own reads. The last byte of a message is such a later store: a program that
 * waits for an RDMA WRITE polls it. The program pairs with this barrier by whatever barrier its
 * processor needs between the poll and the data. x86 makes stores visible in their order, so there
 * this barrier only holds the compiler to that order and costs nothing. Other processors get an
 * instruction for it, on aarch64 "dmb ish".
 */
static inline void sh_order_stores(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Does that barrier take an instruction? Then a copy cannot afford one at each step. */
#ifndef SH_WEAKLY_ORDERED
#if defined(__x86_64__) || defined(__i386__)
#define SH_WEAKLY_ORDERED 0
#else
#define SH_WEAKLY_ORDERED 1
#endif
#endif

/*
 * Copies forward and in order, the last byte last, because receivers poll it. Copies overlapping
 * memory as memmove() does.
 */
void sh_copy_forward(void *to, const void *from, uint64_t len);

/*
 * Copies len bytes from one piece to another. src_ctx 0: src is a plain pointer. False: the copy
 * has to go through the host interface, and nothing was copied.
 */
SH_INLINE bool sh_copy_one(const struct sh_dev *dev, const struct sh_seg *dst, uint32_t src_ctx,
			   const struct sh_seg *src, uint64_t len)
{
	const char *from = src_ctx ? sh_shared_at(dev, src) : (const void *)(uintptr_t)src->addr;
	char *to = sh_shared_at(dev, dst);
	uint64_t first, last;

	if (!to || !from || len > dst->len || len > src->len)
		return false;
	/* A word across two places is more than one store to the reader, in any order. */
	if (len - sizeof(first) > sizeof(last) ||
	    (SH_WEAKLY_ORDERED && len > sizeof(first) && (uintptr_t)(to + len) % sizeof(last))) {
		sh_copy_forward(to, from, len);
		return true;
	}
	/*
	 * 8 to 16 bytes: copies both ends, which may overlap. Stores 8 bytes only once: a program
	 * that waits for them may already have put its answer in the same place.
	 */
	__builtin_memcpy(&first, from, sizeof(first));
	__builtin_memcpy(&last, from + len - sizeof(last), sizeof(last));
	__builtin_memcpy(to, &first, sizeof(first));
	if (len == sizeof(first))
		return true;
	sh_order_stores();
	__builtin_memcpy(to + len - sizeof(last), &last, sizeof(last));
	return true;
}

/* How many of the last bytes of a copy that ends here one instruction stores. */
static inline unsigned int sh_last_size(const char *end, uint64_t len)
{
	for (unsigned int size = 8; size > 1; size /= 2)
		if (len >= size && (uintptr_t)end % size == 0)
			return size;
	return 1;
}

/*
 * Copies as sh_copy_one() does, but leaves the last bytes in *last. False: nothing was copied.
 */
SH_INLINE bool sh_copy_most(const struct sh_dev *dev, const struct sh_seg *dst, uint32_t src_ctx,
			    const struct sh_seg *src, uint64_t len, struct sh_last *last)
{
	const char *from = src_ctx ? sh_shared_at(dev, src) : (const void *)(uintptr_t)src->addr;
	char *to = sh_shared_at(dev, dst);

	if (!to || !from || len > dst->len || len > src->len)
		return false;
	if (!len)
		return true;
	last->size = sh_last_size(to + len, len);
	len -= last->size;
	/* Before the copy, which may overlap it. */
	__builtin_memcpy(&last->val, from + len, last->size);
	last->at = to + len;
	if (len)
		sh_copy_forward(to, from, len);
	sh_order_stores();
	return true;
}

#endif
