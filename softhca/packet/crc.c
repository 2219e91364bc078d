// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See crc.h. Pure functions. Tables are linear: an entry is the sum (exclusive or) of the entries
 * of its bits. So the source has these alone, and the compiler makes the rest of them.
 */
#ifndef SH_CRC_ALONE
#include <libdeflate.h>
#endif

#include "crc.h"

/* clang-format off */
#define BIT(i, n, v) ((i) >> (n) & 1 ? (v) : 0)
#define ENTRY(i, a, b, c, d, e, f, g, h)                                                            \
	(BIT(i, 0, a) ^ BIT(i, 1, b) ^ BIT(i, 2, c) ^ BIT(i, 3, d) ^ BIT(i, 4, e) ^                 \
	 BIT(i, 5, f) ^ BIT(i, 6, g) ^ BIT(i, 7, h))
#define FOUR(i, ...)                                                                                \
	ENTRY((i), __VA_ARGS__), ENTRY((i) + 1, __VA_ARGS__), ENTRY((i) + 2, __VA_ARGS__),           \
		ENTRY((i) + 3, __VA_ARGS__)
#define SIXTEEN(i, ...)                                                                             \
	FOUR(i, __VA_ARGS__), FOUR((i) + 4, __VA_ARGS__), FOUR((i) + 8, __VA_ARGS__),                \
		FOUR((i) + 12, __VA_ARGS__)
#define SIXTY_FOUR(i, ...)                                                                          \
	SIXTEEN(i, __VA_ARGS__), SIXTEEN((i) + 16, __VA_ARGS__), SIXTEEN((i) + 32, __VA_ARGS__),     \
		SIXTEEN((i) + 48, __VA_ARGS__)
#define TABLE(...)                                                                                  \
	{SIXTY_FOUR(0, __VA_ARGS__), SIXTY_FOUR(64, __VA_ARGS__), SIXTY_FOUR(128, __VA_ARGS__),      \
	 SIXTY_FOUR(192, __VA_ARGS__)}

static const uint32_t table32[256] =
	TABLE(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832, 0x1db71064, 0x3b6e20c8, 0x76dc4190, 0xedb88320);
static const uint16_t table16[256] =
	TABLE(0x1ba1, 0x3742, 0x6e84, 0xdd08, 0x1a01, 0x3402, 0x6804, 0xd008);
/* [b]: the entry of table32 whose highest byte is b. */
static const uint8_t inverse[256] = TABLE(0x41, 0xc3, 0x86, 0x4d, 0x9a, 0x75, 0xea, 0x95);
/* clang-format on */

/* Where no other library may be loaded, a byte at a time. */
uint32_t sh_crc32(uint32_t state, const void *data, size_t n)
{
#ifdef SH_CRC_ALONE
	const uint8_t *p = data;

	while (n--)
		state = state >> 8 ^ table32[(state ^ *p++) & 0xff];
	return state;
#else
	/* Without data it would begin anew. */
	return n ? ~libdeflate_crc32(~state, data, n) : state;
#endif
}

uint16_t sh_crc16(uint16_t state, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n--)
		state = (uint16_t)(state >> 8 ^ table16[(state ^ *p++) & 0xff]);
	return state;
}

uint32_t sh_crc32_undo(uint32_t difference, size_t n)
{
	while (n--) {
		uint32_t i = inverse[difference >> 24];

		difference = (difference ^ table32[i]) << 8 | i;
	}
	return difference;
}
