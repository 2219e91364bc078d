// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Allocates the provider's memory: pages shared with the device, and objects. Holds no state, takes
 * no lock. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "mlx4.h"

int mlx4_alloc_buf(struct mlx4_context *ctx, struct mlx4_buf *buf, size_t size)
{
	size_t length = mlx4_align(size ? size : 1, ctx->page_size);
	void *addr;
	int err;

	addr = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (addr == MAP_FAILED)
		return -errno;

	if (ibv_dontfork_range(addr, length)) {
		err = errno ? -errno : -ENOMEM;
		munmap(addr, length);
		return err;
	}

	buf->addr = addr;
	buf->length = length;
	return 0;
}

void mlx4_free_buf(struct mlx4_buf *buf)
{
	if (!buf->addr)
		return;
	ibv_dofork_range(buf->addr, buf->length);
	munmap(buf->addr, buf->length);
	buf->addr = NULL;
}

void *mlx4_zalloc(size_t size)
{
	void *p;
	int err;

	err = posix_memalign(&p, 64, size);
	if (err) {
		errno = err;
		return NULL;
	}
	return memset(p, 0, size);
}
