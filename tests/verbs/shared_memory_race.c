// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: no increment is lost in memory that is being registered and deregistered, in pieces
 * that overlap: neither one of the thread that registers, nor one of another thread, nor one of a
 * signal handler. Run as often as repeat() says.
 *
 * Seconds: 900
 * Quick: half
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "shared_memory_test.h"

#define PAGES	24
#define WORDS	(2 * PAGES * 8) /* eight in each page */
#define HELD	6
#define THREADS 3
#define TURNS	30

/* Half of the pages are the application's own mapping, half are the heap's. */
static uint8_t *mapped, *heap;
/* What the words must hold; not in memory that is registered. */
static _Atomic uint64_t expected[WORDS];
static _Atomic uint32_t signals, registrations;
static atomic_bool ends;

static _Atomic uint64_t *word(unsigned int i)
{
	uint8_t *page = (i & 1 ? heap : mapped) + i / 16 * PAGE;

	return (_Atomic uint64_t *)(page + (i / 2 % 8) * 504);
}

static void increment(unsigned int i)
{
	atomic_fetch_add(word(i), 1);
	atomic_fetch_add(&expected[i], 1);
}

static uint32_t next(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static void on_signal(int sig)
{
	uint32_t n = atomic_fetch_add(&signals, 1);

	(void)sig;
	for (unsigned int i = 0; i < 16; i++)
		increment((n * 16 + i * 37) % WORDS);
}

static void *increments(void *arg)
{
	uint32_t state = (uint32_t)(uintptr_t)arg;

	while (!atomic_load_explicit(&ends, memory_order_relaxed))
		increment(next(&state) % WORDS);
	return NULL;
}

static void registers(uint32_t seed, unsigned int turns)
{
	struct ibv_mr *held[HELD] = {NULL};
	uint32_t state = seed;

	for (unsigned int i = 0; i < turns; i++) {
		unsigned int k = next(&state) % HELD, first = next(&state) % PAGES;
		unsigned int n = 1 + next(&state) % (PAGES - first);
		uint8_t *from = (next(&state) & 1 ? heap : mapped) + first * PAGE;

		if (held[k])
			CHECK_EQ(ibv_dereg_mr(held[k]), 0);
		held[k] = reg(from + 8, n * PAGE - 16);
		atomic_fetch_add(&registrations, 1);
		for (unsigned int w = 0; w < 8; w++)
			increment(next(&state) % WORDS);
	}
	for (unsigned int k = 0; k < HELD; k++)
		if (held[k])
			CHECK_EQ(ibv_dereg_mr(held[k]), 0);
}

static void nothing_lost(void)
{
	for (unsigned int i = 0; i < WORDS; i++)
		CHECK_EQ(atomic_load(word(i)), atomic_load(&expected[i]));
}

static void set_timer(long us)
{
	struct itimerval timer = {.it_interval = {0, us}, .it_value = {0, us}};

	CHECK_EQ(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

static void nothing_is_lost(int arg)
{
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	uint32_t seed = ((uint32_t)random() ^ (uint32_t)getpid() << 8) | 1;

	(void)arg;
	up();
	mapped = pages(PAGES);
	CHECK_EQ(posix_memalign((void **)&heap, PAGE, PAGES * PAGE), 0);
	memset(heap, 0, PAGES * PAGE);
	/* The alarm of the test is kept: the limit of the run bounds this process. */
	CHECK_EQ(sigaction(SIGALRM, &act, NULL), 0);
	for (int phase = 0; phase < 4; phase++) {
		pthread_t t[THREADS];
		bool threads = phase & 1;

		set_timer(503);
		ends = false;
		for (uintptr_t i = 0; threads && i < THREADS; i++)
			CHECK_EQ(pthread_create(&t[i], NULL, increments, (void *)(i + 1)), 0);
		registers(seed + (uint32_t)phase * 2, TURNS);
		ends = true;
		for (int i = 0; threads && i < THREADS; i++)
			CHECK_EQ(pthread_join(t[i], NULL), 0);
		set_timer(0);
		nothing_lost();
	}
	printf("# %u registrations, %u signals\n", registrations, signals);
	fflush(stdout);
	free(heap);
	munmap(mapped, PAGES * PAGE);
	down();
}

int main(int argc, char **argv)
{
	test_begin();
	test_seed();
	repeat(argc, argv, "nothing_is_lost", nothing_is_lost);
	return 0;
}
