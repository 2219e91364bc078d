// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Writes the parts of a WQE, and defines what posting does by opcode and flags. The data path
 * inlines everything here. Apart from doorbells and the position in the queue, the functions write
 * only to the slot that they are given. */
#ifndef MLX4_WQE_H
#define MLX4_WQE_H

#include "mlx4.h"

/* Segments between control and data, and other properties of an opcode. */
enum {
	SEG_XRC = 1 << 0,   /* remote SRQ number in the control segment */
	SEG_RADDR = 1 << 1, /* remote address */
	SEG_CS = 1 << 2,    /* atomics */
	SEG_FA = 1 << 3,
	SEG_UD = 1 << 4,  /* datagram */
	OP_READ = 1 << 5, /* no data to put inline; counts as inline for BlueFlame */
	OP_ATOMIC = SEG_CS | SEG_FA,
};

enum { MLX4_SEND_OPCODES = IBV_WR_ATOMIC_FETCH_AND_ADD + 1 };

struct mlx4_send_op {
	__be32 opcode;
	uint8_t segs;
	uint8_t ds;	 /* size of a WQE with one data segment */
	uint8_t data_at; /* offset of the data */
	int8_t imm_mask; /* -1 if the immediate is sent, else 0 */
};
_Static_assert(sizeof(struct mlx4_send_op) == 8, "indexed in one instruction");

/* The flags that need no special handling. */
enum { MLX4_PLAIN_FLAGS = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED };

struct mlx4_send_flags {
	__be32 ctrl;
	uint32_t fence;
};
_Static_assert(sizeof(struct mlx4_send_flags) == 8, "indexed in one instruction");

/*
 * Writes a data segment: address and key first, then the byte count. The first write to a chunk
 * tells the device that the chunk is complete. Where the machine has 8-byte stores, length and key
 * are one aligned store, which the device sees as a whole. length_lkey is the pair as it is in
 * struct ibv_sge.
 */
#if __SIZEOF_LONG__ == 8
static inline uint64_t mlx4_length_lkey(const struct ibv_sge *sge)
{
	_Static_assert(offsetof(struct ibv_sge, lkey) == offsetof(struct ibv_sge, length) + 4,
		       "one 8-byte load");
	uint64_t pair;

	memcpy(&pair, &sge->length, sizeof(pair));
	return pair;
}

static inline int32_t mlx4_pair_length(uint64_t pair)
{
	return __BYTE_ORDER == __LITTLE_ENDIAN ? (int32_t)pair : (int32_t)(pair >> 32);
}

static inline void mlx4_set_data(void *at, uint64_t addr, uint64_t pair)
{
	struct mlx4_wqe_data *seg = at;
	mlx4_raw64 *out = at;

	seg->addr = to_be64(addr);
	if (__BYTE_ORDER == __LITTLE_ENDIAN) {
		pair = __builtin_bswap64(pair);
		pair = pair << 32 | pair >> 32;
	}
	udma_to_device_barrier(); /* pairs with the device's read of byte_count before addr */
	__atomic_store_n(out, pair, __ATOMIC_RELAXED);
}
#else
static inline uint64_t mlx4_length_lkey(const struct ibv_sge *sge)
{
	return sge->length | (uint64_t)sge->lkey << 32;
}

static inline int32_t mlx4_pair_length(uint64_t pair)
{
	return (int32_t)pair;
}

static inline void mlx4_set_data(void *at, uint64_t addr, uint64_t pair)
{
	struct mlx4_wqe_data *seg = at;

	seg->addr = to_be64(addr);
	seg->lkey = to_be32(pair >> 32);
	udma_to_device_barrier(); /* pairs with the device's read of byte_count before lkey and addr
				   */
	*(volatile __be32 *)&seg->byte_count = to_be32(pair);
}
#endif

/* Ends a scatter list that is shorter than its slot. */
static inline void mlx4_end_list(struct mlx4_wqe_data *seg)
{
	seg->byte_count = 0;
	/* volatile keeps the compiler from merging this with the count: it would load an 8-byte
	 * constant. */
	*(volatile __be32 *)&seg->lkey = MLX4_BE32(MLX4_INVALID_LKEY);
	seg->addr = 0;
}

static inline void *mlx4_set_raddr(void *at, uint64_t addr, uint32_t rkey)
{
	struct mlx4_wqe_raddr *seg = at;

	seg->raddr = to_be64(addr);
	seg->rkey = to_be32(rkey);
	seg->reserved = 0;
	return seg + 1;
}

static inline void *mlx4_set_datagram(void *at, const struct ibv_send_wr *wr)
{
	const struct mlx4_ah *ah = to_mlx4_ah(wr->wr.ud.ah);
	struct mlx4_wqe_datagram *seg = at;

	seg->av = ah->av;
	seg->dqpn = to_be32(wr->wr.ud.remote_qpn);
	seg->qkey = to_be32(wr->wr.ud.remote_qkey);
	seg->vlan = ah->vlan;
	memcpy(seg->mac, ah->mac, sizeof(seg->mac));
	return seg + 1;
}

static inline void mlx4_set_stamp(void *chunk)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a place in a send queue */
	*(volatile __be32 *)chunk = MLX4_BE32(MLX4_STAMP);
}

/* Has any WQE been longer than a chunk? Until then all slots still have their stamps. */
static inline int mlx4_has_long(const struct mlx4_sq *sq)
{
	return unlikely(sq->longest_ds > MLX4_CHUNK / 16);
}

/*
 * Marks the slot that the headroom reaches next as unfinished: stamps all chunks but the first,
 * over the length of the WQE that it held. The first chunk needs no stamp, because its owner bit
 * says the same. index is that of the WQE just posted.
 */
static inline void mlx4_stamp(const struct mlx4_sq *sq, uint32_t index)
{
	struct mlx4_wqe_ctrl *ctrl = mlx4_sq_slot(sq, index + sq->spare);
	uint32_t bytes = (ctrl->fence_size & MLX4_WQE_DS_MASK) * 16;
	uint32_t offset;

	for (offset = MLX4_CHUNK; offset < bytes; offset += MLX4_CHUNK)
		mlx4_set_stamp((char *)ctrl + offset);
}

struct mlx4_block {
	char bytes[16];
} __attribute__((may_alias));

/* Copies up to a chunk and reads no byte outside [src, src + n). A call would take longer than the
 * copy. */
static inline void mlx4_copy_short(char *dst, const char *src, uint32_t n)
{
	if (n >= 16) {
		const struct mlx4_block last = *(const struct mlx4_block *)(src + n - 16);
		uint32_t i;

		for (i = 0; i + 16 < n; i += 16)
			*(struct mlx4_block *)(dst + i) = *(const struct mlx4_block *)(src + i);
		*(struct mlx4_block *)(dst + n - 16) = last;
	} else if (n >= 8) {
		uint64_t first, last;

		memcpy(&first, src, 8);
		memcpy(&last, src + n - 8, 8);
		memcpy(dst, &first, 8);
		memcpy(dst + n - 8, &last, 8);
	} else if (n >= 4) {
		uint32_t first, last;

		memcpy(&first, src, 4);
		memcpy(&last, src + n - 4, 4);
		memcpy(dst, &first, 4);
		memcpy(dst + n - 4, &last, 4);
	} else if (n) {
		dst[0] = src[0];
		dst[n / 2] = src[n / 2];
		dst[n - 1] = src[n - 1];
	}
}

/* Writes the header after the bytes. If the device prefetches the chunk in between, it still sees
 * the stamp. */
static inline void mlx4_end_inline_seg(char *header, uint32_t length)
{
	udma_to_device_barrier(); /* pairs with the device's read of a header before the bytes
				     behind it */
	*(volatile __be32 *)header = to_be32(MLX4_INLINE_SEG | length);
}

static inline void mlx4_next_slot(struct mlx4_sq *sq, struct mlx4_wqe_ctrl *ctrl)
{
	sq->next = (char *)ctrl + sq->stride;
	if (unlikely(sq->next == sq->end)) {
		sq->next = sq->wqes;
		sq->owner ^= MLX4_BE32(MLX4_WQE_OWNER);
	}
}

static inline void mlx4_ring_doorbell(const struct mlx4_sq *sq)
{
	udma_to_device_barrier(); /* all WQEs are in memory before the doorbell */
	mmio_write32(sq->doorbell, sq->doorbell_qpn);
}

#endif
