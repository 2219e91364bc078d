// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what a program asks of its memory by madvise(), posix_madvise(), mmap() or mremap()
 * holds for registered memory and its parts as for any memory: before, during and after the
 * registration, and in a child.
 *
 * Each scenario does the same with two buffers, of which one is registered, and compares what the
 * kernel says of them page by page.
 * Quick: half
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared_memory_test.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

#define N 16 /* pages of a buffer */

static uint8_t *plain, *own; /* `own` is registered */
static struct ibv_mr *mr;

static void compare_at(int line, const uint8_t *a, const uint8_t *b, size_t n)
{
	char one[512], other[512];

	for (size_t i = 0; i < n; i++) {
		attributes_of(a + i * PAGE, one, sizeof(one));
		attributes_of(b + i * PAGE, other, sizeof(other));
		if (strcmp(one, other))
			fprintf(stderr, "line %d, page %zu: without %s with %s", line, i, one,
				other);
		CHECK(!strcmp(one, other));
	}
}

#define compare(a, b, n) compare_at(__LINE__, a, b, n)

/* A child has the same of both buffers. */
static void compare_in_child(void)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		alarm(test_seconds());
		compare(plain, own, N);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void map_both(int flags)
{
	plain = mmap(NULL, (2 * N + 1) * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	CHECK(plain != MAP_FAILED);
	own = plain + (N + 1) * PAGE;
	CHECK_EQ(munmap(plain + N * PAGE, PAGE), 0);
	fill(plain, N * PAGE, 1);
	fill(own, N * PAGE, 1);
}

static bool by_posix; /* by posix_madvise() where that can be asked for */

static int ask(uint8_t *at, size_t len, int advice)
{
	if (by_posix && (advice == POSIX_MADV_NORMAL || advice == POSIX_MADV_RANDOM ||
			 advice == POSIX_MADV_SEQUENTIAL))
		return posix_madvise(at, len, advice);
	return madvise(at, len, advice) ? errno : 0;
}

static void advise(size_t page, size_t n, int advice)
{
	int err = ask(plain + page * PAGE, n * PAGE, advice);

	CHECK_EQ(ask(own + page * PAGE, n * PAGE, advice), err);
	if (err)
		printf("# advice %d: error %d here\n", advice, err);
}

static void share(void)
{
	CHECK(shares(own, N * PAGE, &mr));
}

static void end(void)
{
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	compare(plain, own, N);
	CHECK_EQ(differs(own, N * PAGE, 1), -1);
	compare_in_child();
}

/* ---- from before the registration ---- */

static void before(int flags)
{
	up();
	map_both(flags);
	advise(2, 3, MADV_DONTFORK);
	advise(9, 4, MADV_DONTFORK);
	advise(10, 1, MADV_DOFORK);
	advise(0, 1, MADV_SEQUENTIAL);
	advise(3, 8, MADV_RANDOM);
	advise(6, 1, MADV_NORMAL);
	share();
	for (int i = 0; i < 2; i++) {
		int status;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			static const bool has[N] = {1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1};
			int null = open("/dev/zero", O_RDONLY);

			for (size_t page = 0; page < N; page++)
				CHECK_EQ(read(null, own + page * PAGE, 1), has[page] ? 1 : -1);
			_exit(0);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	end();
	down();
}

/* The kernel tells of the failure, and has marked what there is. */
static void across_a_hole(int arg)
{
	(void)arg;
	up();
	map_both(0);
	/* All of one buffer, the hole between them, and half of the other. */
	CHECK_EQ(madvise(plain, (N + 1 + N / 2) * PAGE, MADV_DONTFORK), -1);
	CHECK_EQ(errno, ENOMEM);
	CHECK_EQ(madvise(plain + N / 2 * PAGE, N / 2 * PAGE, MADV_DOFORK), 0);
	compare(plain, own, N);
	share();
	end();
	down();
}

/* Other memory at the same place has no attributes. */
static void another_at_the_place(int arg)
{
	void *again;

	(void)arg;
	up();
	for (int how = 0; how < 2; how++) {
		map_both(0);
		advise(0, N, MADV_DONTFORK);
		advise(0, N, MADV_SEQUENTIAL);
		if (!how) {
			CHECK_EQ(munmap(plain, N * PAGE), 0);
			CHECK_EQ(munmap(own, N * PAGE), 0);
		}
		again = mmap(plain, N * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		CHECK(again == plain);
		again = mmap(own, N * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		CHECK(again == own);
		fill(own, N * PAGE, 1);
		share();
		end();
	}
	down();
}

/* ---- during the registration ---- */

enum { ONCE, AGAIN, BY_POSIX };

static void meanwhile(int how)
{
	by_posix = how == BY_POSIX;
	up();
	map_both(0);
	share();
	advise(3, 4, MADV_DONTFORK);
	advise(4, 1, MADV_DOFORK);
	advise(0, 3, MADV_RANDOM);
	advise(8, 8, MADV_SEQUENTIAL);
	advise(12, 2, MADV_NORMAL);
	compare_in_child();
	if (how == AGAIN) {
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		share();
	}
	advise(0, N, MADV_RANDOM);
	advise(1, 1, MADV_NORMAL);
	end();
	down();
}

/* The C library's realloc() must find two mappings whatever the program asks for. */
static void stays_apart(int posix)
{
	static const int advice[] = {MADV_RANDOM, MADV_SEQUENTIAL, MADV_NORMAL};
	char first[512], second[512];

	by_posix = posix;
	up();
	map_both(0);
	share();
	for (int i = 0; i < 9; i++) {
		advise(0, i % 2 ? 1 : N, advice[i % 3]);
		advise(1, 3, advice[i / 3]);
		attributes_of(own, first, sizeof(first));
		attributes_of(own + PAGE, second, sizeof(second));
		CHECK(strcmp(first, second));
	}
	end();
	down();
}

static pthread_barrier_t steps;

static void *waits(void *arg)
{
	pthread_barrier_wait(&steps);
	pthread_barrier_wait(&steps);
	return arg;
}

/* Beside a thread the pages stay device memory, and a child has a copy. */
static void beside_a_thread(int flags)
{
	pthread_t t;

	up();
	map_both(flags);
	advise(14, 2, MADV_SEQUENTIAL);
	share();
	pthread_barrier_init(&steps, NULL, 2);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	pthread_barrier_wait(&steps);
	advise(1, 3, MADV_DONTDUMP);
	advise(2, 1, MADV_DODUMP);
	advise(5, 2, MADV_HUGEPAGE);
	advise(8, 2, MADV_NOHUGEPAGE);
	advise(11, 2, MADV_RANDOM);
	advise(13, 1, MADV_DONTFORK);
	compare_in_child();
	pthread_barrier_wait(&steps);
	CHECK_EQ(pthread_join(t, NULL), 0);
	end();
	down();
}

/* ---- memory that moves ---- */

static uint8_t *moved(uint8_t *from, size_t len)
{
	uint8_t *to = pages(2 * N + 2) + PAGE;

	CHECK_EQ(munmap(to - PAGE, (2 * N + 2) * PAGE), 0);
	CHECK(mremap(from, N * PAGE, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
	return to;
}

static void moves(int registered)
{
	up();
	map_both(0);
	advise(0, N, MADV_DONTFORK);
	advise(0, N, MADV_SEQUENTIAL);
	if (registered) {
		uint8_t *to;

		share();
		to = mremap(own, N * PAGE, 2 * N * PAGE, MREMAP_MAYMOVE);
		CHECK(to != MAP_FAILED);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		own = to;
		plain = moved(plain, 2 * N * PAGE);
	} else {
		plain = moved(plain, 2 * N * PAGE);
		own = moved(own, 2 * N * PAGE);
	}
	compare(plain, own, 2 * N);
	/* Half of it, and what has grown. */
	plain += N / 2 * PAGE;
	own += N / 2 * PAGE;
	fill(own, N * PAGE, 1);
	share();
	end();
	down();
}

/* The pages are copied: a mapping beside a thread cannot be moved. */
static void moves_beside_a_thread(int arg)
{
	pthread_t t;
	uint8_t *to;

	(void)arg;
	up();
	map_both(0);
	advise(0, N, MADV_DONTFORK);
	advise(0, N, MADV_RANDOM);
	share();
	pthread_barrier_init(&steps, NULL, 2);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	pthread_barrier_wait(&steps);
	to = mremap(own, N * PAGE, 2 * N * PAGE, MREMAP_MAYMOVE);
	CHECK(to != MAP_FAILED);
	own = to;
	plain = moved(plain, 2 * N * PAGE);
	compare(plain, own, 2 * N);
	compare_in_child();
	pthread_barrier_wait(&steps);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	share();
	end();
	down();
}

/* ---- guards ---- */

/* Can the kernel read the byte for the program? */
static bool readable(const uint8_t *at)
{
	int ends[2];
	bool can;

	CHECK_EQ(pipe(ends), 0);
	can = write(ends[1], at, 1) == 1;
	CHECK(can || errno == EFAULT);
	close(ends[0]);
	close(ends[1]);
	return can;
}

static void guards(int arg)
{
	uint8_t *mem = pages(N);

	(void)arg;
	up();
	if (madvise(mem, PAGE, MADV_GUARD_INSTALL)) {
		printf("# no guards here: that part is left out\n");
		down();
		return;
	}
	CHECK_EQ(madvise(mem, PAGE, MADV_GUARD_REMOVE), 0);
	fill(mem, N * PAGE, 1);
	CHECK(shares(mem, N * PAGE, &mr));
	CHECK_EQ(madvise(mem + 2 * PAGE + 1, PAGE, MADV_GUARD_INSTALL), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(differs(mem, N * PAGE, 1), -1);
	CHECK_EQ(madvise(mem + 2 * PAGE, 2 * PAGE, MADV_GUARD_INSTALL), 0);
	CHECK(!readable(mem + 2 * PAGE));
	refused(mr, mem + 2 * PAGE, 10, IBV_WC_REM_ACCESS_ERR);
	through(mr, mem + 4 * PAGE, 4 * PAGE, 4);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK(!readable(mem + 2 * PAGE) && !readable(mem + 3 * PAGE));
	CHECK(readable(mem + PAGE) && readable(mem + 4 * PAGE));
	CHECK_EQ(madvise(mem + 2 * PAGE, 2 * PAGE, MADV_GUARD_REMOVE), 0);
	for (size_t i = 0; i < 2 * PAGE; i++)
		CHECK_EQ(mem[2 * PAGE + i], 0);
	CHECK_EQ(differs(mem, 2 * PAGE, 1), -1);
	down();
}

/* ---- a fork without memory ---- */

#define MANY 600

extern pid_t _Fork(void) __attribute__((weak));

/*
 * The shim can note nothing of what it keeps from the child, and afterwards knows what the program
 * keeps from it. fork() is refused then, and _Fork() is not.
 */
static void fork_without_memory(int arg)
{
	uint8_t *pool = pages(MANY), *other = pages(MANY);
	struct rlimit limit, before;
	char flags[512];
	pthread_t t;
	pid_t pid;

	(void)arg;
	up();
	/* More marks than a short list has room for. */
	for (size_t i = 0; i < MANY; i += 2)
		CHECK_EQ(madvise(other + i * PAGE, PAGE, MADV_DONTFORK), 0);
	CHECK(shares(pool, MANY * PAGE, &mr));
	pthread_barrier_init(&steps, NULL, 2);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	pthread_barrier_wait(&steps);
	for (size_t i = 0; i < MANY; i += 2)
		CHECK_EQ(mprotect(pool + i * PAGE, PAGE, PROT_READ), 0);
	CHECK_EQ(madvise(pool + (MANY - 3) * PAGE, PAGE, MADV_DONTFORK), 0);
	for (size_t i = 0; i < MANY; i += 2)
		CHECK_EQ(madvise(other + i * PAGE, PAGE, MADV_DONTFORK), 0);
	CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
	limit = before;
	limit.rlim_cur = address_space();
	for (int bare = 0; bare < (_Fork ? 2 : 1); bare++) {
		CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
		pid = bare ? _Fork() : fork();
		if (!pid)
			_exit(0);
		CHECK(pid > 0 || (!bare && errno == ENOMEM));
		CHECK(pid < 0 || bare || SANITIZED);
		CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
		if (pid > 0)
			CHECK_EQ(waitpid(pid, NULL, 0), pid);
		for (size_t i = MANY - 5; i < MANY; i++) {
			attributes_of(pool + i * PAGE, flags, sizeof(flags));
			CHECK_EQ(strstr(flags, " dc") != NULL, i == MANY - 3);
		}
	}
	pthread_barrier_wait(&steps);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	down();
}

static void *nothing(void *arg)
{
	return arg;
}

/*
 * Memory that cannot become private stays what it was: its protection, and two mappings for
 * realloc().
 */
static void thread_without_memory(int arg)
{
	char first[512], second[512];
	struct rlimit limit, before;
	uint8_t *mem = aligned_alloc(PAGE, N * PAGE);
	pthread_t t;

	(void)arg;
	CHECK(mem);
	up();
	fill(mem, N * PAGE, 1);
	CHECK(shares(mem, N * PAGE, &mr));
	CHECK_EQ(getrlimit(RLIMIT_DATA, &before), 0);
	limit = before;
	limit.rlim_cur = PAGE;
	for (int protected = 0; protected < 2; protected ++) {
		if (protected)
			CHECK_EQ(mprotect(mem, PAGE, PROT_READ), 0);
		CHECK_EQ(setrlimit(RLIMIT_DATA, &limit), 0);
		CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), EAGAIN);
		CHECK_EQ(setrlimit(RLIMIT_DATA, &before), 0);
		CHECK_EQ(differs(mem, N * PAGE, 1), -1);
		attributes_of(mem, first, sizeof(first));
		attributes_of(mem + PAGE, second, sizeof(second));
		CHECK(strcmp(first, second));
		CHECK_EQ(strstr(first, " wr") != NULL, !protected);
	}
	CHECK_EQ(mprotect(mem, PAGE, PROT_READ | PROT_WRITE), 0);
	through(mr, mem, 8 * PAGE, 1);
	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	through(mr, mem, 8 * PAGE, 1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(differs(mem, 8 * PAGE, 2), -1);
	free(mem);
	down();
}

/*
 * In processes of their own: what one has asked for changes how the shim looks at the next. With an
 * argument, only the scenario of that name.
 */
int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(int arg);
		int arg;
	} scenario[] = {
		{"before", before, 0},
		{"before, no memory reserved", before, MAP_NORESERVE},
		{"across a hole", across_a_hole, 0},
		{"another at the place", another_at_the_place, 0},
		{"meanwhile", meanwhile, ONCE},
		{"meanwhile, and again", meanwhile, AGAIN},
		{"meanwhile, by posix_madvise()", meanwhile, BY_POSIX},
		{"stays apart", stays_apart, 0},
		{"stays apart, by posix_madvise()", stays_apart, 1},
		{"beside a thread", beside_a_thread, 0},
		{"beside a thread, no memory reserved", beside_a_thread, MAP_NORESERVE},
		{"moves", moves, 0},
		{"moves while it is registered", moves, 1},
		{"moves beside a thread", moves_beside_a_thread, 0},
		{"guards", guards, 0},
		{"fork without memory", fork_without_memory, 0},
		{"thread without memory", thread_without_memory, 0},
	};

	test_begin();
	for (size_t i = 0; i < sizeof(scenario) / sizeof(scenario[0]); i++) {
		if (argc > 1 && strcmp(argv[1], scenario[i].name))
			continue;
		/*
		 * There the region is private before the thread begins, in more than one mapping,
		 * and mremap() moves one mapping only.
		 */
		if (SANITIZED && scenario[i].fn == moves_beside_a_thread)
			continue;
		/* A sanitizer ends a program that has no memory. */
		if (SANITIZED && scenario[i].fn == thread_without_memory)
			continue;
		printf("# %s\n", scenario[i].name);
		fflush(stdout);
		join(spawn(scenario[i].fn, scenario[i].arg));
	}
	return 0;
}
