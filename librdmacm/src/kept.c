// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See kept.h: a bit for each number. The bit is cleared before the descriptor is closed: from then
 * on the number may be any file's.
 */

#include "cm.h"

enum { MOST = 1 << 20, BITS = 8 * sizeof(unsigned long) };

static unsigned long kept[MOST / BITS];
static int end; /* behind the highest number that was ever kept */

int cm_keep(int fd)
{
	int was = __atomic_load_n(&end, __ATOMIC_RELAXED);

	if (fd < 0 || fd >= MOST)
		return fd;
	__atomic_fetch_or(&kept[fd / BITS], 1UL << fd % BITS, __ATOMIC_RELAXED);
	while (was <= fd && !__atomic_compare_exchange_n(&end, &was, fd + 1, false,
							 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return fd;
}

void cm_give_up(int fd)
{
	if (fd >= 0 && fd < MOST)
		__atomic_fetch_and(&kept[fd / BITS], ~(1UL << fd % BITS), __ATOMIC_RELAXED);
}

int cm_next_kept(int from)
{
	int last = __atomic_load_n(&end, __ATOMIC_ACQUIRE), fd = from < 0 ? 0 : from;

	while (fd < last) {
		unsigned long word = __atomic_load_n(&kept[fd / BITS], __ATOMIC_RELAXED);

		word >>= fd % BITS;
		if (word)
			return fd + __builtin_ctzl(word);
		fd += BITS - fd % BITS;
	}
	return -1;
}
