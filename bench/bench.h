/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the programs of message benchmarks share: where they run, what time it is, and what a
 * run comes down to.
 */
#ifndef BENCH_H
#define BENCH_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BLOCKS 40

static inline double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* Ends the program when this process may not run there. */
static inline void pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("pin to a CPU");
		exit(1);
	}
}

static inline int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline double median_of(double *values, int n)
{
	qsort(values, n, sizeof(*values), by_value);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Of BLOCKS equal parts of a run: what interrupts a few of them does not show in the median. */
struct timing {
	double median, mean;	/* of one step, microseconds */
};

/*
 * What a call of step() takes: iterations of them, after a tenth as many for the warmth. Both
 * sides of a ping-pong call this with the same number.
 */
static inline struct timing time_of(void (*step)(void), int iterations)
{
	int per_block = iterations / BLOCKS + !(iterations / BLOCKS);
	double blocks[BLOCKS], all = 0;

	for (int i = 0; i < iterations / 10 + 1; i++)
		step();
	for (int b = 0; b < BLOCKS; b++) {
		double began = now_us();

		for (int i = 0; i < per_block; i++)
			step();
		blocks[b] = (now_us() - began) / per_block;
		all += blocks[b];
	}
	return (struct timing){median_of(blocks, BLOCKS), all / BLOCKS};
}

#endif
