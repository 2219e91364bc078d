// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: which registered memory is shared does not depend on softhca's own thread: pages
 * right beside its stack are shared, those of the stack never are, not even before the thread has
 * begun to run; and a thread that was joined a moment ago does not count.
 *
 * Seconds: 900
 * Quick: half
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "shared_memory_test.h"

enum { JOINED = 30, THREAD = 40, SEEN, REAP };

/* ---- the thread, held up before its first instruction ---- */

static void *(*helper)(void *);
static void *helper_arg;
static uint8_t *on_its_stack; /* an address on its stack */
static sem_t arrived, released;
static bool hold;

static void *held(void *arg)
{
	uint8_t here;

	(void)arg;
	on_its_stack = &here;
	CHECK_EQ(sem_post(&arrived), 0);
	while (sem_wait(&released) < 0)
		CHECK_EQ(errno, EINTR);
	return helper(helper_arg);
}

typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* Replaces pthread_create() for softhca, which creates its thread with it. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	create *real = (create *)dlsym(RTLD_NEXT, "pthread_create");

	CHECK(real);
	if (!hold)
		return real(thread, attr, fn, arg);
	hold = false;
	helper = fn;
	helper_arg = arg;
	return real(thread, attr, held, NULL);
}

/* ---- its stack ---- */

/* Finds the mapping that contains the address: its protection, start and end. */
static bool mapping_of(uint64_t addr, char perms[5], uint64_t *start, uint64_t *end)
{
	FILE *f = fopen("/proc/self/maps", "r");
	bool found = false;
	char line[4096];

	CHECK(f);
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%lx-%lx %4s", start, end, perms) == 3 && *start <= addr &&
			addr < *end;
	fclose(f);
	return found;
}

static void is_shared(uint64_t at, bool expected)
{
	struct ibv_mr *mr;

	CHECK_EQ(shares((void *)(uintptr_t)at, PAGE, &mr), expected);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
}

/*
 * Maps a page right below an address. That is where the kernel puts the next mapping, so a
 * sanitizer may have been faster with something of its own: the page is then mapped right below
 * that.
 */
static uint64_t map_below(uint64_t end)
{
	uint64_t at, next;
	char perms[5];
	void *p;

	do {
		while (mapping_of(end - 1, perms, &at, &next))
			end = at;
		p = mmap((void *)(uintptr_t)(end - PAGE), PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	} while (p == MAP_FAILED && errno == EEXIST);
	CHECK((uintptr_t)p == end - PAGE);
	return end - PAGE;
}

/* Opens the device while the thread is held up. Returns the page of its stack that the thread
 * uses. */
static uint64_t open_held(void)
{
	CHECK_EQ(sem_init(&arrived, 0, 0), 0);
	CHECK_EQ(sem_init(&released, 0, 0), 0);
	hold = true;
	s.context = open_device(0);
	CHECK(!hold);
	s.pd = ibv_alloc_pd(s.context);
	CHECK(s.pd);
	while (sem_wait(&arrived) < 0)
		CHECK_EQ(errno, EINTR);
	return (uintptr_t)on_its_stack & ~(PAGE - 1);
}

static void close_it(void)
{
	CHECK_EQ(ibv_dealloc_pd(s.pd), 0);
	CHECK_EQ(ibv_close_device(s.context), 0);
}

static void its_stack(int arg)
{
	uint64_t here = open_held(), start, end;
	char perms[5];

	(void)arg;
	is_shared(here, false);
	CHECK(mapping_of(here, perms, &start, &end));
	is_shared(start, false);
	CHECK_EQ(sem_post(&released), 0);
	is_shared(here, false);
	is_shared(start, false);
	close_it();
}

static void below_its_stack(int arg)
{
	uint64_t here = open_held(), start, guard, end, page;
	char perms[5];

	(void)arg;
	CHECK_EQ(sem_post(&released), 0);
	CHECK(mapping_of(here, perms, &start, &end));
	CHECK(mapping_of(start - 1, perms, &guard, &end));
	CHECK(!strcmp(perms, "---p"));
	page = map_below(guard);
	for (int i = 0; i < 5; i++) {
		is_shared(page, true);
		sleep_ms(1);
	}
	close_it();
}

/* ---- threads that are no more ---- */

static void *nothing(void *arg)
{
	return arg;
}

static void joined_before(int arg)
{
	uint8_t *mem = pages(4);

	(void)arg;
	up();
	fill(mem, 4 * PAGE, 7);
	for (int i = 0; i < JOINED; i++) {
		struct ibv_mr *mr;
		pthread_t t[4];
		uint64_t shared = hca_counter("regions_shared");

		for (int k = 0; k < 4; k++)
			CHECK_EQ(pthread_create(&t[k], NULL, nothing, NULL), 0);
		for (int k = 0; k < 4; k++)
			CHECK_EQ(pthread_join(t[k], NULL), 0);
		mr = reg(mem, 4 * PAGE);
		CHECK_EQ(hca_counter("regions_shared"), shared + 1);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	CHECK_EQ(differs(mem, 4 * PAGE, 7), -1);
	munmap(mem, 4 * PAGE);
	down();
}

static void *waits_to_be_seen(void *arg)
{
	post(THREAD, (uint64_t)gettid());
	await(SEEN, 1);
	return arg;
}

/* A debugger learns of the thread's end a little later. The thread exists until then. */
static void debugger(int arg)
{
	pid_t tid;

	(void)arg;
	await(THREAD, 1);
	tid = (pid_t)board->word[THREAD];
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0) {
		printf("# no debugger here: that part is left out\n");
		post(SEEN, 2);
		return;
	}
	post(SEEN, 1);
	await(REAP, 1);
	sleep_ms(200);
	CHECK_EQ(waitpid(tid, NULL, __WALL), tid);
}

static void joined_late(int arg)
{
	uint8_t *mem = pages(4);
	struct ibv_mr *mr;
	uint64_t shared;
	char path[64];
	pthread_t t;
	pid_t pid;

	(void)arg;
	board->word[THREAD] = board->word[SEEN] = board->word[REAP] = 0;
	/* Touched pages: untouched ones can be shared beside threads. */
	fill(mem, 4 * PAGE, 8);
	pid = spawn(debugger, 0);
	s.context = open_device(0);
	s.pd = ibv_alloc_pd(s.context);
	CHECK(s.pd);
	CHECK_EQ(pthread_create(&t, NULL, waits_to_be_seen, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	snprintf(path, sizeof(path), "/proc/self/task/%d", (int)board->word[THREAD]);
	if (board->word[SEEN] == 1)
		CHECK_EQ(access(path, F_OK), 0);
	shared = hca_counter("regions_shared");
	post(REAP, 1);
	mr = reg(mem, 4 * PAGE);
	CHECK_EQ(hca_counter("regions_shared"), shared + 1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	join(pid);
	munmap(mem, 4 * PAGE);
	close_it();
}

int main(int argc, char **argv)
{
	test_begin();
	repeat(argc, argv, "its_stack", its_stack);
	repeat(argc, argv, "below_its_stack", below_its_stack);
	repeat(argc, argv, "joined_before", joined_before);
	repeat(argc, argv, "joined_late", joined_late);
	return 0;
}
