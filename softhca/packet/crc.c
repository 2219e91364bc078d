// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See crc.h. Pure functions. Tables are linear: an entry is the sum (exclusive or) of the entries of
 * its bits. So the source has these alone, and the compiler makes the rest of them.
 */
#include <string.h>

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

/* [k][b]: what byte b adds to the state k bytes later. */
static const uint32_t table32[8][256] = {
	TABLE(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832, 0x1db71064, 0x3b6e20c8, 0x76dc4190, 0xedb88320),
	TABLE(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08, 0x4ac21251, 0x958424a2, 0xf0794f05, 0x3b83984b),
	TABLE(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8, 0x1c26a370, 0x384d46e0, 0x709a8dc0, 0xe1351b80),
	TABLE(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef, 0x5019579f, 0xa032af3e, 0x9b14583d, 0xed59b63b),
	TABLE(0x3d6029b0, 0x7ac05360, 0xf580a6c0, 0x30704bc1, 0x60e09782, 0xc1c12f04, 0x58f35849, 0xb1e6b092),
	TABLE(0xcb5cd3a5, 0x4dc8a10b, 0x9b914216, 0xec53826d, 0x03d6029b, 0x07ac0536, 0x0f580a6c, 0x1eb014d8),
	TABLE(0xa6770bb4, 0x979f1129, 0xf44f2413, 0x33ef4e67, 0x67de9cce, 0xcfbd399c, 0x440b7579, 0x8816eaf2),
	TABLE(0xccaa009e, 0x4225077d, 0x844a0efa, 0xd3e51bb5, 0x7cbb312b, 0xf9766256, 0x299dc2ed, 0x533b85da),
};

static const uint16_t table16[256] =
	TABLE(0x1ba1, 0x3742, 0x6e84, 0xdd08, 0x1a01, 0x3402, 0x6804, 0xd008);
/* [b]: the entry of table32[0] whose highest byte is b. */
static const uint8_t inverse[256] = TABLE(0x41, 0xc3, 0x86, 0x4d, 0x9a, 0x75, 0xea, 0x95);
/* clang-format on */

uint32_t sh_crc32(uint32_t state, const void *data, size_t n)
{
	const uint8_t *p = data;

	/* Eight bytes at once; both machines that softhca knows are little-endian. */
	for (; n >= 8; n -= 8, p += 8) {
		uint64_t word;

		memcpy(&word, p, sizeof(word));
		word ^= state;
		state = table32[7][word & 0xff] ^ table32[6][word >> 8 & 0xff] ^
			table32[5][word >> 16 & 0xff] ^ table32[4][word >> 24 & 0xff] ^
			table32[3][word >> 32 & 0xff] ^ table32[2][word >> 40 & 0xff] ^
			table32[1][word >> 48 & 0xff] ^ table32[0][word >> 56];
	}
	while (n--)
		state = state >> 8 ^ table32[0][(state ^ *p++) & 0xff];
	return state;
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

		difference = (difference ^ table32[0][i]) << 8 | i;
	}
	return difference;
}
