// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The lines that tools of rsockets print of their transfers. */
#ifndef FIGURES_H
#define FIGURES_H

#include <stdbool.h>

/* One test: a name, and how much is sent each way. */
struct figures {
	const char *name;
	long size;	/* bytes of a transfer */
	long transfers; /* in one direction before the other one's turn */
	long iterations; /* of both directions; 0: transfers are of both, and there are no iterations */
};

/* Prints the line above the figures, of tests with iterations or of those without. */
void figures_head(bool iterations);

/* Prints what a test has taken. */
void figures_print(const struct figures *test, double microseconds);

#endif
