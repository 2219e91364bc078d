// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The lines that tools of rsockets print of their transfers. */

#include <stdio.h>

#include "figures.h"

enum { TEXT = 32 };

void figures_head(bool iterations)
{
	printf("%-10s%-8s%-8s%s%-8s%8s %10s%13s\n", "name", "bytes", "xfers",
	       iterations ? "iters   " : "", "total", "time", "Gb/sec", "usec/xfer");
	fflush(stdout);
}

/* In the largest of three units that fits, with one decimal below 10. */
static const char *short_form(char *text, long long value, long long unit, const char *letters)
{
	long long part = 1;
	int letter = -1;

	while (letter < 2 && value >= part * unit) {
		part *= unit;
		letter++;
	}
	if (letter < 0)
		snprintf(text, TEXT, "%lld", value);
	else if (value < 10 * part && value * 10 / part % 10)
		snprintf(text, TEXT, "%lld.%lld%c", value / part, value * 10 / part % 10,
			 letters[letter]);
	else
		snprintf(text, TEXT, "%lld%c", value / part, letters[letter]);
	return text;
}

void figures_print(const struct figures *test, double microseconds)
{
	long long exchanges =
		test->iterations ? 2LL * test->transfers * test->iterations : test->transfers;
	long long bytes = exchanges * test->size;
	char text[TEXT];

	printf("%-10s", test->name);
	printf("%-8s", short_form(text, test->size, 1024, "kmg"));
	printf("%-8s", short_form(text, test->transfers, 1000, "kmb"));
	if (test->iterations)
		printf("%-8s", short_form(text, test->iterations, 1000, "kmb"));
	printf("%-8s", short_form(text, bytes, 1024, "kmg"));
	printf("%8.2fs%10.2f%11.2f\n", microseconds / 1e6, bytes * 8.0 / (1000 * microseconds),
	       microseconds / exchanges);
	fflush(stdout);
}
