// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A field of a command or a response, by its offset and its size of 1, 2, 4 or 8 bytes, in the byte
 * order of this machine. The tests of libibverbs use this header too. It is here because the
 * package of libmlx4 has to build alone.
 */
#ifndef FIELDS_H
#define FIELDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t field_get(const void *from, size_t offset, size_t size)
{
	const uint8_t *p = (const uint8_t *)from + offset;
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;

	switch (size) {
	case 8:
		memcpy(&u64, p, 8);
		return u64;
	case 4:
		memcpy(&u32, p, 4);
		return u32;
	case 2:
		memcpy(&u16, p, 2);
		return u16;
	default:
		return *p;
	}
}

static inline void field_put(void *to, size_t offset, size_t size, uint64_t value)
{
	uint8_t *p = (uint8_t *)to + offset;
	uint32_t u32 = value;
	uint16_t u16 = value;

	switch (size) {
	case 8:
		memcpy(p, &value, 8);
		break;
	case 4:
		memcpy(p, &u32, 4);
		break;
	case 2:
		memcpy(p, &u16, 2);
		break;
	default:
		*p = value;
	}
}

#endif
