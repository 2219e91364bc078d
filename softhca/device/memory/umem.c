// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue buffers and doorbell records of the clients: accessed in place if their pages are device
 * memory, otherwise through the host interface. Touches nothing of a context whose address space
 * has ended. No locks.
 */
#include <errno.h>
#include <string.h>

#include "mlx4-bytes.h"
#include "life.h"
#include "umem.h"

#define CHUNK 512 /* on the stack, which may be small */

static inline bool inside(const struct sh_umem *mem, uint64_t off, uint64_t len)
{
	return off <= mem->len && len <= mem->len - off;
}

/*
 * Gives in *to where the memory is in device memory. *to is NULL if it is reached through the host,
 * because the pages are the owner's alone, or because this process cannot map them and the owner
 * has. 0, or -EFAULT: the offset is damaged, or the context is gone.
 */
static int place(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, uint64_t len,
		 void **to)
{
	/* Read once, so that what is checked is what is used. */
	uint64_t base = __atomic_load_n(&mem->shm_off, __ATOMIC_RELAXED), at = base + off;
	int err;

	*to = NULL;
	if (!inside(mem, off, len) || !sh_ctx_live(dev, mem->ctx))
		return -EFAULT;
	if (!base)
		return 0;
	if (at < base)
		return -EFAULT;
	if (!sh_in_pool(dev, at, len)) {
		err = at < dev->shared_off ? sh_extend(dev, at, len) : -EINVAL;
		if (err)
			return err == -ENOMEM ? 0 : -EFAULT;
	}
	*to = sh_at(dev, at);
	return 0;
}

void *sh_umem_at(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, size_t len)
{
	void *at;

	return place(dev, mem, off, len, &at) ? NULL : at;
}

static void count_fallback(struct sh_dev *dev, uint32_t ctx)
{
	struct sh_hca *hca = sh_hca(dev, sh_ctx(dev, ctx)->hca);

	if (hca)
		__atomic_fetch_add(&hca->counters.copies_fallback, 1, __ATOMIC_RELAXED);
}

int sh_umem_read(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, void *buf, size_t len)
{
	struct sh_seg src, dst;
	void *at;

	if (place(dev, mem, off, len, &at))
		return -EFAULT;
	if (at) {
		memcpy(buf, at, len);
		return 0;
	}
	src = (struct sh_seg){mem->uaddr + off, len};
	dst = (struct sh_seg){(uintptr_t)buf, len};
	count_fallback(dev, mem->ctx);
	return dev->ops->copy(dev->host, 0, &dst, 1, mem->ctx, &src, 1, len) == SH_COPY_OK
		       ? 0
		       : -EFAULT;
}

int sh_umem_write(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, const void *buf,
		  size_t len)
{
	struct sh_seg src, dst;
	void *at;

	if (place(dev, mem, off, len, &at))
		return -EFAULT;
	if (at) {
		memcpy(at, buf, len);
		return 0;
	}
	src = (struct sh_seg){(uintptr_t)buf, len};
	dst = (struct sh_seg){mem->uaddr + off, len};
	count_fallback(dev, mem->ctx);
	return dev->ops->copy(dev->host, mem->ctx, &dst, 1, 0, &src, 1, len) == SH_COPY_OK
		       ? 0
		       : -EFAULT;
}

int sh_umem_load32(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, uint32_t *val)
{
	uint32_t *at = sh_umem_at(dev, mem, off, sizeof(*at));
	__be32 be;

	if (at && !((uintptr_t)at & 3)) {
		/* pairs with the provider's write barrier before the record */
		be = (MLX4_FORCE __be32)__atomic_load_n(at, __ATOMIC_ACQUIRE);
	} else {
		int err = sh_umem_read(dev, mem, off, &be, sizeof(be));

		if (err)
			return err;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	}
	*val = from_be32(be);
	return 0;
}

int sh_umem_fill(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, uint8_t byte,
		 uint64_t len)
{
	uint8_t chunk[CHUNK];
	void *at;

	if (place(dev, mem, off, len, &at))
		return -EFAULT;
	if (at) {
		memset(at, byte, len);
		return 0;
	}
	memset(chunk, byte, sizeof(chunk));
	while (len) {
		uint64_t n = len < sizeof(chunk) ? len : sizeof(chunk);
		int err = sh_umem_write(dev, mem, off, chunk, n);

		if (err)
			return err;
		off += n;
		len -= n;
	}
	return 0;
}
