// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Runs a fuzz target without a fuzzer: over the files named on the command line, or over a bounded number of inputs
 * that a fixed generator makes, always the same ones. FUZZ_RUNS sets the number; FUZZ_SEED=N runs
 * input N alone. An input that ends the program says its number first.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_INPUT 8192
#ifndef FUZZ_DEFAULT_RUNS
#define FUZZ_DEFAULT_RUNS 1000
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t next(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static volatile unsigned long running;

static void say_which(void)
{
	char line[96];
	int len;

	if (!running)
		return;
	len = snprintf(line, sizeof(line), "input %lu: repeat it with FUZZ_SEED=%lu\n", running, running);
	if (write(STDERR_FILENO, line, len) < 0)
		return;
	running = 0;
}

/* The sanitizer calls it before its report, and takes SIGSEGV for itself. */
void __asan_on_error(void);
void __asan_on_error(void)
{
	say_which();
}

static void on_signal(int sig)
{
	say_which();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void run_input(unsigned long number)
{
	uint64_t seed = 0x9e3779b97f4a7c15u * number;
	uint8_t buf[MAX_INPUT];
	size_t len, at;

	len = next(&seed) % MAX_INPUT;
	for (at = 0; at < len; at++)
		buf[at] = next(&seed) >> 32;
	running = number;
	LLVMFuzzerTestOneInput(buf, len);
	running = 0;
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
	unsigned long runs = env ? strtoul(env, NULL, 0) : FUZZ_DEFAULT_RUNS, i;
	const char *one = getenv("FUZZ_SEED");
	int err = 0;

	atexit(say_which);
	signal(SIGABRT, on_signal);
	signal(SIGALRM, on_signal);
#ifndef __SANITIZE_ADDRESS__
	signal(SIGSEGV, on_signal);
	signal(SIGBUS, on_signal);
	signal(SIGTRAP, on_signal);
	signal(SIGILL, on_signal);
#endif
	if (argc > 1) {
		for (i = 1; i < (unsigned long)argc; i++)
			err |= run_file(argv[i]);
		return err;
	}
	if (one) {
		run_input(strtoul(one, NULL, 0));
		return 0;
	}
	for (i = 1; i <= runs; i++)
		run_input(i);
	return 0;
}
