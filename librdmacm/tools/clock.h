// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The clock of the tools. */
#ifndef CLOCK_H
#define CLOCK_H

#include <time.h>

/* Microseconds of a clock that never goes back. */
static inline double clock_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

#endif
