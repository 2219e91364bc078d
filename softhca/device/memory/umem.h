/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Client memory of queues and doorbell records, as the device reaches it. The lock of the object
 * that owns it is held.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_UMEM_H
#define SOFTHCA_DEVICE_MEMORY_UMEM_H

#include <errno.h>

#include "dev.h"

/* 0, or -EFAULT: the pages are gone. Pages that are device memory are accessed in place. */
int sh_umem_read(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, void *buf,
		 size_t len);
int sh_umem_write(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, const void *buf,
		  size_t len);
/*
 * A pointer into device memory. NULL: the memory is reached through the host, or the bounds are
 * exceeded.
 */
void *sh_umem_at(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, size_t len);
/*
 * The same inline. Does not ask whether the context lives, and finds only what this process has
 * mapped already. off and len are below 2^62.
 */
static inline void *sh_umem_in_place(const struct sh_dev *dev, const struct sh_umem *mem,
				     uint64_t off, uint64_t len)
{
	/* Once: what is checked is what is used. */
	uint64_t base = __atomic_load_n(&mem->shm_off, __ATOMIC_RELAXED), at = base + off;

	if (__builtin_expect(off + len > mem->len || !base || !sh_in_pool(dev, at, len), 0))
		return NULL;
	return sh_at(dev, at);
}
/*
 * Reads one big-endian word (a doorbell record), in host order, before anything that it covers is
 * read. 0 or -EFAULT.
 */
int sh_umem_load32(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, uint32_t *val);
/* Fills [off, off+len) with a byte. 0 or -EFAULT. */
int sh_umem_fill(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, uint8_t byte,
		 uint64_t len);

#endif
