// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Mapping of the queues shared with the kernel. The kernel keeps its offer until it is mapped, and
 * the memory until it is unmapped.
 */

#include <errno.h>
#include <infiniband/driver.h>
#include <sys/mman.h>

#include "ring.h"

int rxe_ring_map(struct rxe_ring *ring, int fd, const struct mminfo *offer, size_t elem_size)
{
	struct rxe_ring new;
	size_t slots;

	new.size = offer->size;
	new.buf = mmap(NULL, new.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offer->offset);
	if (new.buf == MAP_FAILED)
		return -errno;

	if (new.size < sizeof(*new.buf) || new.buf->log2_elem_size >= 32)
		goto err;
	slots = (size_t) new.buf->index_mask + 1;
	if (ring_elem_size(&new) < elem_size || slots & (slots - 1) ||
	    slots > (new.size - sizeof(*new.buf)) >> new.buf->log2_elem_size)
		goto err;

	if (ibv_dontfork_range(new.buf, new.size))
		goto err;

	*ring = new;
	return 0;

err:
	munmap(new.buf, new.size);
	return -EPROTO;
}

void rxe_ring_unmap(struct rxe_ring *ring)
{
	if (!ring->buf)
		return;

	ibv_dofork_range(ring->buf, ring->size);
	munmap(ring->buf, ring->size);
	ring->buf = NULL;
}
