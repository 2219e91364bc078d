// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Converts between host order and the device's big-endian types, which let sparse find a missing
 * swap.
 */
#ifndef MLX4_BYTES_H
#define MLX4_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <linux/types.h>

#ifdef __CHECKER__
#define MLX4_FORCE __attribute__((force))
#else
#define MLX4_FORCE
#endif

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Words for copying memory that has objects of any type. */
typedef uint64_t __attribute__((may_alias)) mlx4_raw64;
typedef unsigned long __attribute__((may_alias)) mlx4_raw_word;

/* The conversion is the same in both directions, and is valid in constant initializers. */
#if __BYTE_ORDER == __LITTLE_ENDIAN
#define MLX4_BE32(x) ((MLX4_FORCE __be32)__builtin_bswap32(x))
#else
#define MLX4_BE32(x) ((MLX4_FORCE __be32)(x))
#endif

static inline __be16 to_be16(uint16_t x)
{
	return (MLX4_FORCE __be16)htobe16(x);
}

static inline __be32 to_be32(uint32_t x)
{
	return (MLX4_FORCE __be32)htobe32(x);
}

static inline __be64 to_be64(uint64_t x)
{
	return (MLX4_FORCE __be64)htobe64(x);
}

static inline uint16_t from_be16(__be16 x)
{
	return be16toh((MLX4_FORCE uint16_t)x);
}

static inline uint32_t from_be32(__be32 x)
{
	return be32toh((MLX4_FORCE uint32_t)x);
}

static inline uint64_t from_be64(__be64 x)
{
	return be64toh((MLX4_FORCE uint64_t)x);
}

#endif
