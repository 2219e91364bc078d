// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Runs a fuzz target without a fuzzer: on the files and directories named on the command line. If
 * none is named, it runs the target on its corpus ($srcdir/corpus/PROGRAM) and then on a number of
 * inputs from a fixed generator, which are always the same: 100, in the full tier 300, or
 * FUZZ_RUNS. FUZZ_SEED=N runs only input N. If an input ends the program, the driver first prints
 * its name and the command that repeats it.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGEST 8192
#define SECONDS 60 /* for one input; no target waits */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t next(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* The input that is running; empty: none. */
static char running[4096];

static void say_which(void)
{
	if (running[0] && write(STDERR_FILENO, running, strlen(running)) < 0)
		return;
	running[0] = 0;
}

/* The sanitizer calls this before its report. It handles SIGSEGV itself. */
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

/* Copies the input to memory of exactly its size, so that a sanitizer sees a read behind it. */
static int run(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len);

	if (!copy && len) {
		perror("malloc");
		return 1;
	}
	if (len)
		memcpy(copy, data, len);
	alarm(SECONDS);
	LLVMFuzzerTestOneInput(copy, len);
	alarm(0);
	free(copy);
	running[0] = 0;
	return 0;
}

static int run_number(unsigned long number)
{
	uint64_t seed = 0x9e3779b97f4a7c15u * number;
	uint8_t buf[LONGEST];
	size_t len, at;

	len = next(&seed) % LONGEST;
	for (at = 0; at < len; at++)
		buf[at] = next(&seed) >> 32;
	snprintf(running, sizeof(running), "input %lu: repeat it with FUZZ_SEED=%lu %s\n", number,
		 number, program_invocation_name);
	return run(buf, len);
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
	snprintf(running, sizeof(running), "input %s: repeat it with %s %s\n", name,
		 program_invocation_name, name);
	return run(buf, n);
}

static int is_input(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* A corpus that is missing or empty is an error, because it would prove nothing. */
static int run_directory(const char *name)
{
	struct dirent **entry;
	int err = 0, i, n = scandir(name, &entry, is_input, alphasort);
	char path[4096];

	if (n <= 0) {
		fprintf(stderr, "%s: %s\n", name, n < 0 ? strerror(errno) : "no inputs there");
		return 1;
	}
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", name, entry[i]->d_name);
		err |= run_file(path);
		free(entry[i]);
	}
	free(entry);
	printf("%d inputs of %s\n", n, name);
	return err;
}

static int run_path(const char *name)
{
	struct stat st;

	return stat(name, &st) == 0 && S_ISDIR(st.st_mode) ? run_directory(name) : run_file(name);
}

static int run_corpus(void)
{
	const char *srcdir = getenv("srcdir");
	char path[2048];

	snprintf(path, sizeof(path), "%s/corpus/%s", srcdir ? srcdir : ".",
		 program_invocation_short_name);
	return run_directory(path);
}

int main(int argc, char **argv)
{
	const char *env = getenv("FUZZ_RUNS"), *tier = getenv("TIER");
	unsigned long runs = tier && !strcmp(tier, "full") ? 300 : 100, i;
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
			err |= run_path(argv[i]);
		return err;
	}
	if (one)
		return run_number(strtoul(one, NULL, 0));
	if (env)
		runs = strtoul(env, NULL, 0);
	err = run_corpus();
	for (i = 1; i <= runs; i++)
		err |= run_number(i);
	return err;
}
