// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a thread that sleeps on a word in a page which is registered or deregistered
 * meanwhile is woken: on a mutex or condition that processes may share, and until another thread
 * has ended. Run as often as repeat() says.
 *
 * Seconds: 900
 * Quick: half
 */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared_memory_test.h"

struct shared {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint64_t before, after;
	bool told;
};

static void *sleeps(void *arg)
{
	struct shared *w = arg;

	/* Sleeps until told: first on the mutex, then on the condition. */
	CHECK_EQ(pthread_mutex_lock(&w->mutex), 0);
	while (!w->told)
		CHECK_EQ(pthread_cond_wait(&w->cond, &w->mutex), 0);
	CHECK_EQ(pthread_mutex_unlock(&w->mutex), 0);
	return NULL;
}

/* Is that thread of this process asleep, and in futex()? */
static bool asleep(pid_t tid)
{
	char name[64], state = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", (int)tid);
	f = fopen(name, "r");
	if (!f)
		return false;
	CHECK_EQ(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
	fclose(f);
	return state == 'S';
}

static pid_t sleeper;

static void *sleeps_there(void *arg)
{
	__atomic_store_n(&sleeper, gettid(), __ATOMIC_RELEASE);
	return sleeps(arg);
}

static void await_sleeper(void)
{
	for (int i = 0; i < 2000; i++) {
		pid_t tid = __atomic_load_n(&sleeper, __ATOMIC_ACQUIRE);

		if (tid && asleep(tid))
			return;
		sleep_ms(1);
	}
	CHECK(false);
}

/* A word of a mutex that processes may share: the kernel knows its futex by what is mapped
 * there. */
static void sleeping(bool on_mutex, bool within)
{
	struct ibv_mr *mr = NULL;
	struct shared *w;
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;
	pthread_t t;

	side_open(&s, PAGE, 16, 0);
	w = (void *)(pages(2) + 512);
	if (within)
		mr = reg((uint8_t *)w - 256, 100);
	pthread_mutexattr_init(&ma);
	pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&ma, PTHREAD_MUTEX_ROBUST);
	pthread_condattr_init(&ca);
	pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED);
	CHECK_EQ(pthread_mutex_init(&w->mutex, &ma), 0);
	CHECK_EQ(pthread_cond_init(&w->cond, &ca), 0);
	if (on_mutex)
		CHECK_EQ(pthread_mutex_lock(&w->mutex), 0);
	CHECK_EQ(pthread_create(&t, NULL, sleeps_there, w), 0);
	await_sleeper();
	if (within)
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	else
		mr = reg((uint8_t *)w - 256, 100);
	if (!on_mutex)
		CHECK_EQ(pthread_mutex_lock(&w->mutex), 0);
	w->told = true;
	CHECK_EQ(pthread_cond_signal(&w->cond), 0);
	CHECK_EQ(pthread_mutex_unlock(&w->mutex), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	if (!within)
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	side_close(&s);
}

static void sleepers(int arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++) {
		sleeper = 0;
		sleeping(i & 1, i & 2);
	}
}

static void *waits_for_word(void *arg)
{
	char word;

	CHECK_EQ(read(*(int *)arg, &word, 1), 1);
	return NULL;
}

static void *joins(void *arg)
{
	__atomic_store_n(&sleeper, gettid(), __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(*(pthread_t *)arg, NULL), 0);
	return NULL;
}

/* A thread waits for the end of another thread, whose stack, with its descriptor at the end, is
 * memory of this process. */
static void joiner(int arg)
{
	size_t size = 64 * PAGE;
	/* In the middle: the first thread's own memory, which is never shared, may be next to what
	 * it maps first. */
	uint8_t *mem = pages(192), *stack = mem + 64 * PAGE;
	pthread_attr_t attr;
	pthread_t t, j;
	struct ibv_mr *mr;
	int ends[2];

	(void)arg;
	side_open(&s, PAGE, 16, 0);
	CHECK_EQ(pipe(ends), 0);
	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setstack(&attr, stack, size), 0);
	CHECK_EQ(pthread_create(&t, &attr, waits_for_word, ends), 0);
	CHECK_EQ(pthread_create(&j, NULL, joins, &t), 0);
	await_sleeper();
	/* As a registration cache does, which registers the whole of what it was asked for. */
	mr = reg(stack + size - 3 * PAGE, 3 * PAGE);
	CHECK_EQ(write(ends[1], "", 1), 1);
	CHECK_EQ(pthread_join(j, NULL), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, 192 * PAGE);
	side_close(&s);
}

int main(int argc, char **argv)
{
	test_begin();
	repeat(argc, argv, "sleepers", sleepers);
	repeat(argc, argv, "joiner", joiner);
	return 0;
}
