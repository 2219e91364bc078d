// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Runs a fuzz target without a fuzzer: over the files named on the command line, or over a bounded number of inputs
 * that a fixed generator makes, always the same ones. FUZZ_RUNS sets the number.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_INPUT 8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t next(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static int run_file(const char *name)
{
	static uint8_t buf[1 << 20];
	FILE *f = fopen(name, "rb");
	size_t n;

	if (!f) {
		perror(name);
		return 1;
	}
	n = fread(buf, 1, sizeof(buf), f);
	fclose(f);
	LLVMFuzzerTestOneInput(buf, n);
	return 0;
}

int main(int argc, char **argv)
{
	const char *env = getenv("FUZZ_RUNS");
	unsigned long runs = env ? strtoul(env, NULL, 0) : 1000, i;
	uint8_t buf[MAX_INPUT];
	uint64_t seed;
	size_t len, at;
	int err = 0;

	if (argc > 1) {
		for (i = 1; i < (unsigned long)argc; i++)
			err |= run_file(argv[i]);
		return err;
	}
	for (i = 0; i < runs; i++) {
		seed = 0x9e3779b97f4a7c15u * (i + 1);
		len = next(&seed) % MAX_INPUT;
		for (at = 0; at < len; at++)
			buf[at] = next(&seed) >> 32;
		LLVMFuzzerTestOneInput(buf, len);
	}
	return 0;
}
