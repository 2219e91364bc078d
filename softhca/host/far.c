// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Picks addresses at random; far.h says where. Maps nothing and takes no lock. */
#include <string.h>
#include <sys/auxv.h>

#include "far.h"
#include "sys.h"

#define PAGE 4096

/*
 * A sandbox may forbid getrandom(). The random bytes that the kernel gave this program at its start
 * are a secret of other code, so they are only mixed in.
 */
static uint64_t random_word(void)
{
	const unsigned char *given = (const void *)getauxval(AT_RANDOM);
	static uint64_t calls;
	uint64_t word = 0, n;

	if (sh_sys(syscall(SYS_getrandom, &word, sizeof(word), 1UL)) == sizeof(word))
		return word;
	if (given)
		memcpy(&word, given, sizeof(word));
	n = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	return (word ^ (uint64_t)getpid()) * UINT64_C(0x9e3779b97f4a7c15) * (2 * n + 1) >> 16;
}

uint64_t sh_far_pick(const struct sh_far *part, uint64_t size)
{
	if (size > part->to - part->from)
		return 0;
	return part->from + random_word() % ((part->to - part->from - size) / PAGE + 1) * PAGE;
}
