// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: registered memory of the heap is the program's alone, however realloc() shrinks and
 * grows it; fork() of a process that has no room for its child's copies fails, and its child is
 * never without them; a child that _Fork() makes on a registered stack has that; many small
 * registrations do not take the process's mappings.
 *
 * Quick: half
 */
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "shared_memory_test.h"

/* Every byte of it has this value. */
static bool all(const unsigned char *at, size_t len, unsigned char value)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != value)
			return false;
	return true;
}

/* ---- realloc() ---- */

enum { OTHERS = 8 };

static unsigned char *others[OTHERS];

static unsigned char *filled(size_t len, unsigned char value)
{
	unsigned char *p = malloc(len);

	CHECK(p);
	memset(p, value, len);
	return p;
}

/* Buffers whose pages come behind those of what was registered before. */
static void register_others(size_t len)
{
	for (int i = 0; i < OTHERS; i++) {
		others[i] = filled(len, (unsigned char)(i + 1));
		CHECK(reg(others[i], len));
	}
}

/*
 * What the program writes to grown memory is there, and not in the others. What it writes there is
 * not in it.
 */
static void are_apart(unsigned char *grown, size_t grown_len, size_t len)
{
	memset(grown, 0xaa, grown_len);
	for (int i = 0; i < OTHERS; i++)
		CHECK(all(others[i], len, (unsigned char)(i + 1)));
	for (int i = 0; i < OTHERS; i++)
		memset(others[i], 0x55, len);
	CHECK(all(grown, grown_len, 0xaa));
}

/* Registers p, and lets it shrink to so much and then grow. */
static void resize(unsigned char *p, size_t len, size_t small)
{
	enum { GROWN = 900000 };

	memset(p, 0x77, len);
	CHECK(reg(p, len));
	register_others(len);
	p = realloc(p, small);
	CHECK(p && all(p, small, 0x77));
	p = realloc(p, GROWN);
	CHECK(p && all(p, small, 0x77));
	are_apart(p, GROWN, len);
	free(p);
}

static void shrinks_and_grows(int arg)
{
	enum { LEN = 200000 };

	(void)arg;
	up();
	resize(filled(LEN, 0), LEN, 2000);
}

static void page_by_page(int arg)
{
	enum { LEN = 150000, GROWN = 900000 };
	unsigned char *p, *page;

	(void)arg;
	up();
	p = filled(LEN, 0x77);
	page = p - (uintptr_t)p % PAGE;
	for (size_t at = 0; at < (size_t)(p - page) + LEN; at += PAGE)
		CHECK(reg(page + at, PAGE));
	register_others(LEN);
	p = reallocarray(p, GROWN / 100, 100);
	CHECK(p && all(p, LEN, 0x77));
	are_apart(p, GROWN, LEN);
}

/* The C library maps each of them by itself. */
static void one_page_each(int arg)
{
	enum { N = 64, LEN = 4064, GROWN = 8100 };
	unsigned char *p[N];

	(void)arg;
	CHECK(mallopt(M_MMAP_THRESHOLD, 4000));
	up();
	for (int i = 0; i < N; i++) {
		p[i] = filled(LEN, 0x77);
		CHECK(reg(p[i], LEN));
	}
	register_others(LEN);
	for (int i = 0; i < N; i++) {
		p[i] = realloc(p[i], GROWN);
		CHECK(p[i] && all(p[i], LEN, 0x77));
		memset(p[i], 0xaa, GROWN);
	}
	are_apart(p[0], GROWN, LEN);
	for (int i = 1; i < N; i++)
		CHECK(all(p[i], GROWN, 0xaa));
}

/* The chunk is mapped, too, but begins before the program's memory. */
static void aligned(int arg)
{
	enum { LEN = 300000 };
	void *p = NULL;

	(void)arg;
	up();
	CHECK_EQ(posix_memalign(&p, PAGE, LEN), 0);
	resize(p, LEN, 5000);
}

/* ---- fork() without room ---- */

/* The child's memory is right, or there is no child. Returns whether there was one. */
static bool forks(const unsigned char *p, size_t len)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(!all(p, len, 0x77));
	if (pid < 0) {
		CHECK_EQ(errno, ENOMEM);
		return false;
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	return true;
}

static void no_room(int arg)
{
	enum { LEN = 6 << 20 }; /* a user may lock 8 MiB */
	struct rlimit before, less;
	unsigned char *p;

	(void)arg;
	up();
	p = filled(LEN, 0x77);
	CHECK(reg(p, LEN));
	CHECK_EQ(getrlimit(RLIMIT_DATA, &before), 0);
	less = before;
	less.rlim_cur = 1 << 20; /* less than it has already */
	CHECK_EQ(setrlimit(RLIMIT_DATA, &less), 0);
	forks(p, LEN);
	CHECK(all(p, LEN, 0x77));
	CHECK_EQ(setrlimit(RLIMIT_DATA, &before), 0);
	CHECK(forks(p, LEN));
	CHECK(all(p, LEN, 0x77));
}

/* ---- _Fork() on a registered stack ---- */

extern pid_t _Fork(void) __attribute__((weak));

static ucontext_t outside, inside;

static void on_stack(void)
{
	volatile unsigned char here[64];
	int status;
	pid_t pid;

	memset((void *)here, 5, sizeof(here));
	pid = _Fork();
	if (!pid)
		_exit(here[9] != 5);
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void *waits(void *arg)
{
	pause();
	return arg;
}

static void coroutine(int arg)
{
	enum { STACK_PAGES = 256 };
	unsigned char *stack;
	pthread_t thread;

	(void)arg;
	if (!_Fork) /* glibc has it since 2.34 */
		return;
	up();
	stack = pages(STACK_PAGES);
	CHECK(reg(stack, STACK_PAGES * PAGE));
	CHECK_EQ(pthread_create(&thread, NULL, waits, NULL), 0);
	CHECK_EQ(getcontext(&inside), 0);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = STACK_PAGES * PAGE;
	inside.uc_link = &outside;
	makecontext(&inside, on_stack, 0);
	CHECK_EQ(swapcontext(&outside, &inside), 0);
}

/* ---- many registrations ---- */

static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int n = 0, c;

	CHECK(f);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static void many(int arg)
{
	enum { MANY = 600, APART = 3 * (int)PAGE, MOST = 1000 };
	unsigned char *heap;
	int before, status;
	pid_t pid;

	(void)arg;
	up();
	heap = filled((size_t)MANY * APART, 0x77);
	before = mappings();
	for (int i = 0; i < MANY; i++)
		CHECK(reg(heap + (size_t)i * APART, PAGE));
	CHECK(mappings() <= before + MOST);
	CHECK(all(heap, (size_t)MANY * APART, 0x77));
	pid = fork();
	if (!pid)
		_exit(!all(heap, (size_t)MANY * APART, 0x77));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
	test_begin();
	repeat(argc, argv, "shrinks_and_grows", shrinks_and_grows);
	repeat(argc, argv, "page_by_page", page_by_page);
	repeat(argc, argv, "one_page_each", one_page_each);
	repeat(argc, argv, "aligned", aligned);
	repeat(argc, argv, "no_room", no_room);
	repeat(argc, argv, "coroutine", coroutine);
	repeat(argc, argv, "many", many);
	return 0;
}
