// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A queue shared with the kernel: struct rxe_queue_buf in a mapping of the device file. Each side writes one index,
 * with release after it is done with the element, and loads the other's with acquire before it touches one. Nothing
 * here locks.
 *
 *	OFFSET	SIZE	MEANING
 *	0	4	log2 of an element's size
 *	4	4	index mask: number of slots - 1; one slot always stays free
 *	128	4	producer index
 *	256	4	consumer index; equal to the producer's: empty
 *	384		elements
 */

#ifndef TESTS_KERNEL_RING_H
#define TESTS_KERNEL_RING_H

#include <rdma/rdma_user_rxe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

_Static_assert(offsetof(struct rxe_queue_buf, log2_elem_size) == 0, "ring");
_Static_assert(offsetof(struct rxe_queue_buf, index_mask) == 4, "ring");
_Static_assert(offsetof(struct rxe_queue_buf, producer_index) == 128, "ring");
_Static_assert(offsetof(struct rxe_queue_buf, consumer_index) == 256, "ring");
_Static_assert(offsetof(struct rxe_queue_buf, data) == 384, "ring");

struct rxe_ring {
	struct rxe_queue_buf *buf; /* NULL: not mapped */
	size_t size;
};

/*
 * Maps what the kernel offers and checks that its elements have at least elem_size bytes and its
 * slots are in the mapping. 0 or -errno: of mmap(), or -EPROTO for a queue that is not as
 * announced.
 */
int rxe_ring_map(struct rxe_ring *ring, int fd, const struct mminfo *offer, size_t elem_size);
/* Unmaps; nothing is done to a ring that is not mapped. */
void rxe_ring_unmap(struct rxe_ring *ring);

/* The other side's index. Pairs with the release with which the kernel moves it. */
static inline uint32_t ring_load_acquire(const __u32 *index)
{
	return __atomic_load_n(index, __ATOMIC_ACQUIRE);
}

/* Our index. Pairs with the acquire with which the kernel loads it. */
static inline void ring_store_release(__u32 *index, uint32_t value)
{
	__atomic_store_n(index, value, __ATOMIC_RELEASE);
}

static inline size_t ring_elem_size(const struct rxe_ring *ring)
{
	return (size_t)1 << ring->buf->log2_elem_size;
}

static inline void *ring_slot(const struct rxe_ring *ring, uint32_t index)
{
	return ring->buf->data +
	       ((size_t)(index & ring->buf->index_mask) << ring->buf->log2_elem_size);
}

/* The oldest element, when we are the consumer; NULL: empty. */
static inline const void *ring_head(const struct rxe_ring *ring)
{
	uint32_t index = ring->buf->consumer_index;

	if (index == ring_load_acquire(&ring->buf->producer_index))
		return NULL;

	return ring_slot(ring, index);
}

/* Gives the oldest element back. */
static inline void ring_consume(struct rxe_ring *ring)
{
	ring_store_release(&ring->buf->consumer_index,
			   (ring->buf->consumer_index + 1) & ring->buf->index_mask);
}

/* The slot to fill next, when we are the producer; NULL: full. */
static inline void *ring_free_slot(const struct rxe_ring *ring)
{
	uint32_t index = ring->buf->producer_index;

	if (((index + 1) & ring->buf->index_mask) == ring_load_acquire(&ring->buf->consumer_index))
		return NULL;

	return ring_slot(ring, index);
}

/* Hands the filled slot over. */
static inline void ring_produce(struct rxe_ring *ring)
{
	ring_store_release(&ring->buf->producer_index,
			   (ring->buf->producer_index + 1) & ring->buf->index_mask);
}

#endif /* TESTS_KERNEL_RING_H */
