/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Copies that cannot fault and need no other process: between pieces of memory that are device memory, or to them from a
 * plain pointer of this process. The host interface has all the others.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_COPY_H
#define SOFTHCA_DEVICE_MEMORY_COPY_H

#include "dev.h"

/* Zero a known number of bytes in plain stores: for a hundred or two of them "rep stos" takes longer to begin with. */
SH_INLINE void sh_zero(void *at, size_t len)
{
#pragma GCC unroll 16
	for (size_t i = 0; i < len / 16; i++)
		__builtin_memset((char *)at + i * 16, 0, 16);
	__builtin_memset((char *)at + len / 16 * 16, 0, len % 16);
}

/* Where a piece can be touched without a fault. NULL: its pages are not device memory, or not what device memory has. */
SH_INLINE void *sh_shared_at(const struct sh_dev *dev, const struct sh_seg *seg)
{
	uint64_t off = seg->addr & ~SH_SEG_SHARED;

	if (!(seg->addr & SH_SEG_SHARED) || !sh_in_shared(dev, off, seg->len))
		return NULL;
	return sh_at(dev, off);
}

/*
 * Stores before it are visible before those after it, to a reader that polls the later ones and
 * orders its own reads. A message's last byte is such a store: who waits for an RDMA WRITE polls
 * it, and pairs with this by whatever barrier its processor needs between the poll and the data.
 * x86 makes stores visible in their order, so there it only holds the compiler to that order and
 * costs nothing; other processors get the instruction for it, on aarch64 "dmb ish".
 */
static inline void sh_order_stores(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Whether that takes an instruction, so that one for each step of a copy would be too many. */
#ifndef SH_WEAKLY_ORDERED
#if defined(__x86_64__) || defined(__i386__)
#define SH_WEAKLY_ORDERED 0
#else
#define SH_WEAKLY_ORDERED 1
#endif
#endif

/* Forward and in order, the last byte last: receivers poll for it. Overlapping memory is copied as by memmove(). */
void sh_copy_forward(void *to, const void *from, uint64_t len);

/* len bytes of one piece each; src_ctx 0: src is a plain pointer. false: it is not for this file, and nothing was copied. */
SH_INLINE bool sh_copy_one(const struct sh_dev *dev, const struct sh_seg *dst, uint32_t src_ctx, const struct sh_seg *src,
			   uint64_t len)
{
	const char *from = src_ctx ? sh_shared_at(dev, src) : (const void *)(uintptr_t)src->addr;
	char *to = sh_shared_at(dev, dst);
	uint64_t first, last;

	if (!to || !from || len > dst->len || len > src->len)
		return false;
	if (len - sizeof(first) > sizeof(last)) {
		sh_copy_forward(to, from, len);
		return true;
	}
	/* 8 to 16 bytes: both ends, which may overlap. 8 are stored once: who waits for them may have answered in the same place. */
	__builtin_memcpy(&first, from, sizeof(first));
	__builtin_memcpy(&last, from + len - sizeof(last), sizeof(last));
	__builtin_memcpy(to, &first, sizeof(first));
	if (len == sizeof(first))
		return true;
	sh_order_stores();
	__builtin_memcpy(to + len - sizeof(last), &last, sizeof(last));
	return true;
}

#endif
