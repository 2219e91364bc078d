// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: fork() in a program whose registered buffers share pages with other things: the
 * header of an arena, a thread's variables and descriptor, a stack, a FILE. Parent and child each
 * have their own of all of it, also while another process copies from the parent, or has left such
 * a copy by a jump. Run as often as repeat() says.
 *
 * Seconds: 900
 * Quick: half
 */
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <ucontext.h>

#include "shared_memory_fork_rig.h"

static void *has_arena(void *arg)
{
	struct ibv_mr *mr;
	uint8_t *mem = malloc(6000);

	(void)arg;
	CHECK(mem);
	fill(mem, 6000, 1);
	mr = reg(mem, 6000);
	pthread_barrier_wait(&steps);
	pthread_barrier_wait(&steps);
	CHECK_EQ(differs(mem, 6000, 1), -1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	free(mem);
	use_heap();
	return NULL;
}

/* A buffer in the first page of a thread's arena, where the arena has its header. The other thread
 * forks. */
static void arena(int arg)
{
	pthread_t t;

	(void)arg;
	open_only();
	pthread_barrier_init(&steps, NULL, 2);
	CHECK_EQ(pthread_create(&t, NULL, has_arena, NULL), 0);
	pthread_barrier_wait(&steps);
	for (int i = 0; i < 3; i++) {
		child_is_well(use_heap);
		use_heap();
	}
	pthread_barrier_wait(&steps);
	CHECK_EQ(pthread_join(t, NULL), 0);
	use_heap();
	side_close(&s);
}

enum { BUFFERS = 20 };

/* Allocates in the only arena, which the first thread had for itself. */
static void *allocates(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&steps);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		use_heap();
	return NULL;
}

/* Registers buffers of the heap while there is no other thread; then starts one and forks
 * children. */
static void later_thread(int arg)
{
	struct ibv_mr *mr[BUFFERS];
	uint8_t *mem[BUFFERS];
	pthread_t t;

	(void)arg;
	(void)mallopt(M_ARENA_MAX, 1);
	open_only();
	pthread_barrier_init(&steps, NULL, 2);
	for (int i = 0; i < BUFFERS; i++) {
		mem[i] = malloc(3000);
		fill(mem[i], 3000, i);
		mr[i] = reg(mem[i], 3000);
	}
	CHECK_EQ(pthread_create(&t, NULL, allocates, NULL), 0);
	pthread_barrier_wait(&steps);
	for (int i = 0; i < 20; i++) {
		child_is_well(use_heap_if_whole);
		use_heap();
	}
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	CHECK_EQ(pthread_join(t, NULL), 0);
	for (int i = 0; i < BUFFERS; i++) {
		CHECK_EQ(differs(mem[i], 3000, i), -1);
		CHECK_EQ(ibv_dereg_mr(mr[i]), 0);
		CHECK_EQ(differs(mem[i], 3000, i), -1);
		free(mem[i]);
	}
	use_heap();
	side_close(&s);
}

static __thread uint8_t local[3 * PAGE];
static uint8_t *another;

static void *has_local(void *arg)
{
	(void)arg;
	fill(local, sizeof(local), 3);
	another = local;
	pthread_barrier_wait(&steps);
	pthread_barrier_wait(&steps);
	CHECK_EQ(differs(local, sizeof(local), 3), -1);
	return NULL;
}

/* A thread's own variables, with its descriptor in the same pages: the thread exists after a fork,
 * too. */
static void thread_local(int arg)
{
	struct ibv_mr *mr, *theirs;
	pthread_t t;

	(void)arg;
	open_only();
	fill(local, sizeof(local), 4);
	mr = reg(local, sizeof(local));
	child_is_well(use_heap);
	pthread_barrier_init(&steps, NULL, 2);
	CHECK_EQ(pthread_create(&t, NULL, has_local, NULL), 0);
	pthread_barrier_wait(&steps);
	theirs = reg(another, sizeof(local));
	for (int i = 0; i < 3; i++) {
		child_is_well(use_heap);
		CHECK_EQ(pthread_tryjoin_np(t, NULL), EBUSY);
	}
	CHECK_EQ(ibv_dereg_mr(theirs), 0);
	pthread_barrier_wait(&steps);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(differs(local, sizeof(local), 4), -1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	side_close(&s);
}

static struct ibv_mr *deep_mr;

static __attribute__((noinline)) int deeper(uint8_t *mem, size_t len, int depth)
{
	volatile uint8_t frame[1024];

	frame[0] = (uint8_t)depth;
	if (!depth)
		deep_mr = reg(mem, len);
	else
		(void)deeper(mem, len, depth - 1);
	return frame[0];
}

/* The frame ends, but the registration of its buffer does not. */
static __attribute__((noinline)) void registers(void)
{
	uint8_t mem[6 * PAGE];

	fill(mem, sizeof(mem), 5);
	(void)deeper(mem, sizeof(mem), 24);
	CHECK_EQ(differs(mem, sizeof(mem), 5), -1);
}

static __attribute__((noinline)) void shallow(void)
{
	registers();
	for (int i = 0; i < 3; i++)
		child_is_well(use_heap);
	CHECK_EQ(ibv_dereg_mr(deep_mr), 0);
}

static void *runs_shallow(void *arg)
{
	(void)arg;
	shallow();
	return NULL;
}

/* Registers a buffer of a frame from a call chain far below it, where the stack pointer is far
 * away. Then forks from frames above it. */
static void stack_buffer(int arg)
{
	pthread_t t;

	(void)arg;
	open_only();
	shallow();
	CHECK_EQ(pthread_create(&t, NULL, runs_shallow, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	side_close(&s);
}

static ucontext_t back, there;
static struct ibv_mr *stack_mr;

static void on_coroutine(void)
{
	volatile int mine = 1;

	child_is_well(use_heap);
	mine++;
	child_is_well(use_heap);
	CHECK_EQ(mine, 2);
	(void)swapcontext(&there, &back);
	child_is_well(use_heap);
	mine++;
	CHECK_EQ(mine, 3);
}

/* The stack of a coroutine in a registered pool, with and without another thread. */
static void coroutine(int arg)
{
	uint8_t *pool = pages(256);
	pthread_t t;

	(void)arg;
	open_only();
	stack_mr = reg(pool, 256 * PAGE);
	CHECK_EQ(getcontext(&there), 0);
	there.uc_stack.ss_sp = pool + 64 * PAGE;
	there.uc_stack.ss_size = 128 * PAGE;
	there.uc_link = &back;
	makecontext(&there, on_coroutine, 0);
	CHECK_EQ(swapcontext(&back, &there), 0);
	pthread_barrier_init(&steps, NULL, 2);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	pthread_barrier_wait(&steps);
	CHECK_EQ(swapcontext(&back, &there), 0);
	pthread_barrier_wait(&steps);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(ibv_dereg_mr(stack_mr), 0);
	munmap(pool, 256 * PAGE);
	side_close(&s);
}

static FILE *log_file;

static void write_log(void)
{
	CHECK(fprintf(log_file, "child %d\n", (int)getpid()) > 0);
	CHECK_EQ(fflush(log_file), 0);
	use_heap();
}

static void *tries_lock(void *arg)
{
	(void)arg;
	CHECK(ftrylockfile(log_file));
	return NULL;
}

/* A FILE between registered buffers. */
static uint8_t *before, *after;
static struct ibv_mr *one, *two;

static void open_log(void)
{
	open_only();
	before = malloc(900);
	log_file = fopen("/dev/null", "w");
	after = malloc(900);
	CHECK(before && log_file && after);
	one = reg(before, 900);
	two = reg(after, 900);
}

static void close_log(void)
{
	CHECK_EQ(ibv_dereg_mr(one), 0);
	CHECK_EQ(ibv_dereg_mr(two), 0);
	CHECK_EQ(fclose(log_file), 0);
	free(before);
	free(after);
	side_close(&s);
}

/* Each process has a lock of its own. */
static void stream(int arg)
{
	pthread_t t;

	(void)arg;
	open_log();
	for (int i = 0; i < 3; i++) {
		flockfile(log_file);
		child_is_well(write_log);
		/* The lock is still held: a child that resets the lock resets its own. */
		CHECK_EQ(pthread_create(&t, NULL, tries_lock, NULL), 0);
		CHECK_EQ(pthread_join(t, NULL), 0);
		funlockfile(log_file);
		write_log();
	}
	close_log();
}

/* ---- another process copies from this one, for longer than an exchange of pages waits ---- */

enum { COPIED = 32 << 20, TIMES = 32 };

static struct {
	uint32_t copies, jumped, over;
} * shared;
static sigjmp_buf left;

static void leave(int sig)
{
	(void)sig;
	siglongjmp(left, 1);
}

/*
 * The copier's: one call after another; or one, which it leaves by a jump out of a handler, and
 * lives on.
 */
static void copies(const uint8_t *from, bool jumps)
{
	uint8_t *to = malloc(COPIED);
	struct iovec local[TIMES], remote[TIMES];
	struct itimerval soon = {{0, 0}, {0, 20000}};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(to);
	open_only();
	for (int i = 0; i < TIMES; i++) {
		local[i] = (struct iovec){to, COPIED};
		remote[i] = (struct iovec){(void *)(uintptr_t)from, COPIED};
	}
	while (!sigsetjmp(left, 1) && !__atomic_load_n(&shared->over, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&shared->copies, 1, __ATOMIC_RELEASE);
		if (jumps) {
			CHECK(signal(SIGALRM, leave) != SIG_ERR);
			CHECK_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
		}
		CHECK(process_vm_readv(getppid(), local, TIMES, remote, TIMES, 0) > 0);
	}
	__atomic_store_n(&shared->jumped, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shared->over, __ATOMIC_ACQUIRE))
		sleep_ms(1);
	_exit(0);
}

/*
 * A fork may be refused while the copy lasts; a child that is made has all that its C library
 * needs.
 */
static void forks_beside_copy(bool may_refuse)
{
	while (!child_is_well_if_made(write_log)) {
		CHECK(may_refuse);
		CHECK_EQ(errno, EAGAIN);
	}
}

static void beside_copy(bool jumps)
{
	uint8_t *much = malloc(COPIED);
	pid_t copier;

	CHECK(much);
	fill(much, COPIED, 1);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	copier = fork();
	CHECK(copier >= 0);
	if (!copier)
		copies(much, jumps);
	open_log();
	while (!__atomic_load_n(jumps ? &shared->jumped : &shared->copies, __ATOMIC_ACQUIRE))
		sleep_ms(1);
	for (int i = 0; i < 3; i++)
		forks_beside_copy(!jumps);
	__atomic_store_n(&shared->over, 1, __ATOMIC_RELEASE);
	join(copier);
	close_log();
	free(much);
}

static void copied(int arg)
{
	(void)arg;
	beside_copy(false);
}

static void copied_and_left(int arg)
{
	(void)arg;
	beside_copy(true);
}

static const struct scenario {
	const char *name;
	void (*fn)(int arg);
} scenario[] = {
	{"arena", arena},
	{"later_thread", later_thread},
	{"thread_local", thread_local},
	{"stack_buffer", stack_buffer},
	{"coroutine", coroutine},
	{"stream", stream},
	{"copied", copied},
	{"copied_and_left", copied_and_left},
};

int main(int argc, char **argv)
{
	test_begin();
	for (size_t i = 0; i < sizeof(scenario) / sizeof(scenario[0]); i++)
		repeat(argc, argv, scenario[i].name, scenario[i].fn);
	return 0;
}
