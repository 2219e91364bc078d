/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the programs of message benchmarks share: CPU pinning, the clock, and the figures of a run.
 */
#ifndef BENCH_H
#define BENCH_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BLOCK_US  20.0
#define MAX_BLOCK 64

static inline double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* Pins the process to cpu. Ends the program if the process may not run there. */
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

struct timing {
	double median, mean; /* of one step, microseconds */
};

/*
 * Times iterations calls of step(), after a tenth as many to warm up. The median is over blocks of
 * steps. A block is long enough that reading the clock does not count, and short enough that other
 * processes interrupt few blocks. Both sides of a ping-pong call this with the same number.
 */
static inline struct timing time_of(void (*step)(void), int iterations)
{
	double *blocks = malloc(iterations * sizeof(*blocks)), least = BLOCK_US, all = 0;
	int per_block, n = 0;

	if (!blocks) {
		perror("memory");
		exit(1);
	}
	for (int i = 0; i < iterations / 10 + 1; i++) {
		double began = now_us(), took;

		step();
		took = now_us() - began;
		least = took < least ? took : least;
	}
	per_block = least > 0 && BLOCK_US / least < MAX_BLOCK ? BLOCK_US / least : MAX_BLOCK;
	for (int done = 0; done < iterations; n++) {
		int steps = iterations - done < per_block ? iterations - done : per_block;
		double began = now_us();

		for (int i = 0; i < steps; i++)
			step();
		blocks[n] = (now_us() - began) / steps;
		all += blocks[n] * steps;
		done += steps;
	}
	all /= iterations;
	return (struct timing){median_of(blocks, n), all};
}

#endif
