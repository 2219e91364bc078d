/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A child of a process with registered memory, which finds out whether its heap is intact.
 */
#ifndef SHARED_MEMORY_FORK_RIG_H
#define SHARED_MEMORY_FORK_RIG_H

#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared_memory_test.h"

static inline void open_only(void)
{
	side_open(&s, 4 * PAGE, 16, 0);
}

/* A child finds out whether its heap is intact. It ends with _exit(), because it must not end what
 * is its parent's. */
static inline void use_heap(void)
{
	void *p[64];

	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 64; i++) {
			size_t n = (size_t)(1 + (i * 37 + round * 101) % 3000);

			p[i] = malloc(n);
			CHECK(p[i]);
			memset(p[i], i, n);
		}
		for (int i = 0; i < 64; i++)
			free(p[i]);
	}
}

/* The same in a child of a process whose other threads may be using the heap. */
static inline void use_heap_if_whole(void)
{
	if (!SANITIZED)
		use_heap();
}

/*
 * Runs fn in a child, which must exit with 0 in time. False: fork() has been refused, with errno.
 */
static inline bool child_is_well_if_made(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return false;
	if (!pid) {
		alarm(test_seconds());
		fn();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	return true;
}

static inline void child_is_well(void (*fn)(void))
{
	CHECK(child_is_well_if_made(fn));
}

static pthread_barrier_t steps;
static bool over;

static inline void *waits(void *arg)
{
	(void)arg;
	use_heap();
	pthread_barrier_wait(&steps);
	pthread_barrier_wait(&steps);
	use_heap();
	return NULL;
}

#endif
