// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: fork() in a program that has registered memory is fork(): whatever other threads do
 * meanwhile, with no descriptor left, no /proc or no address space, parent and child each have
 * their own. Run as often as repeat() says.
 *
 * Seconds: 900
 * Quick: half
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "shared_memory_fork_rig.h"

/* ---- threads that allocate, register and post ---- */

static void *works(void *arg)
{
	uint64_t me = (uintptr_t)arg, n = 0;
	struct side own;
	struct ibv_qp *a, *b;

	side_open(&own, 8 * PAGE, 32, 0);
	a = make_qp(&own, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&own, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&own, a, b);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		size_t len = 500 + n * 977 % 9000;
		/* Every other time untouched memory of its own. */
		uint8_t *mem = n & 1 ? pages(3) : malloc(len);
		struct ibv_mr *mr;

		CHECK(mem);
		if (!(n & 1))
			fill(mem, len, me + n);
		mr = ibv_reg_mr(own.pd, mem, len, ACCESS);
		CHECK(mr);
		fill(own.buf, 4 * PAGE, n);
		CHECK_EQ(post_rdma1(a, &own, IBV_WR_RDMA_WRITE, n, 0, (uint32_t)len, (uintptr_t)mem,
				    mr->rkey, IBV_SEND_SIGNALED),
			 0);
		expect_wc(own.scq, n, IBV_WC_SUCCESS);
		CHECK_EQ(differs(mem, len, n), -1);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		CHECK_EQ(differs(mem, len, n), -1);
		if (n++ & 1)
			munmap(mem, 3 * PAGE);
		else
			free(mem);
	}
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&own);
	return NULL;
}

enum { WORKERS = 3, CHILDREN = 6 };

extern char **environ;

/* All ways to create a child, and several children at once. */
static void children(void)
{
	char *args[] = {"true", NULL};
	pid_t pid, many[CHILDREN];
	int status;

	child_is_well(use_heap_if_whole);
	CHECK_EQ(system("true"), 0);
	CHECK_EQ(posix_spawnp(&pid, "true", NULL, NULL, args, environ), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	pid = vfork();
	CHECK(pid >= 0);
	if (!pid) {
		execlp("true", "true", (char *)NULL);
		_exit(9);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	for (int i = 0; i < CHILDREN; i++) {
		many[i] = fork();
		CHECK(many[i] >= 0);
		if (!many[i]) {
			alarm(test_seconds());
			use_heap_if_whole();
			_exit(0);
		}
	}
	for (int i = 0; i < CHILDREN; i++) {
		CHECK_EQ(waitpid(many[i], &status, 0), many[i]);
		CHECK_EQ(status, 0);
	}
}

static void busy_threads(int arg)
{
	pthread_t t[WORKERS];

	(void)arg;
	open_only();
	for (uintptr_t i = 0; i < WORKERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, works, (void *)(i * 1000)), 0);
	for (int i = 0; i < 4; i++) {
		children();
		use_heap();
	}
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	child_is_well(use_heap);
	side_close(&s);
}

/* ---- a child's view ---- */

enum { LOOKED = 20, STORED };

/* After the fork neither process sees what the other stores, whatever is shared with the device. */
static void each_its_own(uint8_t *mem, size_t len)
{
	int status;
	pid_t pid;

	fill(mem, len, 7);
	__atomic_store_n(&board->word[LOOKED], 0, __ATOMIC_RELEASE);
	__atomic_store_n(&board->word[STORED], 0, __ATOMIC_RELEASE);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		alarm(test_seconds());
		await(STORED, 1);
		CHECK_EQ(differs(mem, len, 7), -1);
		fill(mem, len, 8);
		post(LOOKED, 1);
		await(STORED, 2);
		CHECK_EQ(differs(mem, len, 8), -1);
		_exit(0);
	}
	fill(mem, len, 9);
	post(STORED, 1);
	await(LOOKED, 1);
	CHECK_EQ(differs(mem, len, 9), -1);
	fill(mem, len, 10);
	post(STORED, 2);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(differs(mem, len, 10), -1);
}

enum { POOL = 64 };

/* Before meanwhile() it is an untouched pool, after it memory of the heap; with and without another
 * thread. */
static void views(void (*meanwhile)(void))
{
	uint8_t *pool = pages(POOL), *mem;
	struct ibv_mr *one, *two;
	pthread_t t;

	up();
	one = reg(pool, POOL * PAGE);
	mem = malloc(10000);
	CHECK(mem);
	fill(mem, 10000, 6);
	two = reg(mem, 10000);
	CHECK_EQ(differs(mem, 10000, 6), -1);
	if (meanwhile)
		meanwhile();
	for (int i = 0; i < 2; i++) {
		each_its_own(pool, POOL * PAGE);
		each_its_own(mem, 10000);
	}
	if (!meanwhile) {
		through(one, pool + 100, 5 * PAGE, 60);
		through(two, mem, 10000, 61);
	}
	pthread_barrier_init(&steps, NULL, 2);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	pthread_barrier_wait(&steps);
	for (int i = 0; i < 2; i++) {
		each_its_own(pool, POOL * PAGE);
		each_its_own(mem, 10000);
	}
	if (!meanwhile) {
		through(one, pool + 100, 5 * PAGE, 62);
		through(two, mem, 10000, 63);
	}
	pthread_barrier_wait(&steps);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void view(int arg)
{
	(void)arg;
	views(NULL);
}

static void limit_descriptors(void)
{
	(void)use_up_descriptors();
}

static void no_descriptor(int arg)
{
	(void)arg;
	views(limit_descriptors);
}

static void change_root(void)
{
	char dir[] = "/tmp/shared-memory-root.XXXXXX";

	CHECK(mkdtemp(dir));
	CHECK_EQ(chdir(dir), 0);
	CHECK_EQ(rmdir(dir), 0);
	CHECK_EQ(chroot("."), 0);
	CHECK(access("/proc", F_OK));
}

/* In a directory that is removed already, so that nothing is left behind. */
static void no_proc(int arg)
{
	(void)arg;
	if (geteuid()) {
		printf("# chroot() takes a privilege: that part is left out\n");
		return;
	}
	views(change_root);
}

/* ---- no address space left ---- */

#define SPLIT 600 /* pages, each of which becomes a mapping of its own */

extern pid_t _Fork(void) __attribute__((weak));

/*
 * A child stores to every page that it has, and to none of its parent's. False: fork has been
 * refused for want of memory.
 */
static bool stores_everywhere(pid_t (*make)(void), uint8_t *mem, size_t n, bool has_all)
{
	int status, zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	pid_t pid;

	CHECK(zero >= 0);
	pid = make();
	CHECK(pid >= 0 || errno == ENOMEM);
	if (!pid) {
		alarm(test_seconds());
		for (size_t i = 0; i < n; i += 2) {
			if (has_all)
				CHECK_EQ(differs(mem + i * PAGE, PAGE, i), -1);
			if (read(zero, mem + i * PAGE, PAGE) < 0)
				CHECK(errno == EFAULT && !has_all);
		}
		_exit(0);
	}
	close(zero);
	if (pid > 0) {
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(differs(mem + i * PAGE, PAGE, i), -1);
	return pid > 0;
}

/*
 * Beside a thread the pool stays device memory. Where there is no room for a child's copy, fork()
 * is refused. _Fork() is not: a child has private pages there, or none.
 */
static void no_addresses(int arg)
{
	struct rlimit before, limit;
	uint8_t *pool = pages(SPLIT);
	struct ibv_mr *mr;
	pthread_t t;

	(void)arg;
	up();
	mr = reg(pool, SPLIT * PAGE);
	for (size_t i = 0; i < SPLIT; i++)
		fill(pool + i * PAGE, PAGE, i);
	pthread_barrier_init(&steps, NULL, 2);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	pthread_barrier_wait(&steps);
	CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
	for (int split = 0; split < 2; split++) {
		bool made;

		for (size_t i = 1; split && i < SPLIT; i += 2)
			CHECK_EQ(mprotect(pool + i * PAGE, PAGE, PROT_READ), 0);
		limit = before;
		/* Enough for the contents, but for little else; then for nothing. */
		limit.rlim_cur = address_space() + (split ? 0 : (SPLIT + 128) * PAGE);
		CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
		made = stores_everywhere(fork, pool, SPLIT, true);
		CHECK(SANITIZED || made == !split);
		if (_Fork)
			(void)stores_everywhere(_Fork, pool, SPLIT, false);
		CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
		CHECK(stores_everywhere(fork, pool, SPLIT, true));
	}
	pthread_barrier_wait(&steps);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	down();
}

/*
 * A process of one thread whose pool is larger than the room that is left: on a kernel a child takes
 * none, so it must find everything here, too.
 */
static void less_than_the_pool(int arg)
{
	struct rlimit before, limit;
	size_t n = 20 * SPLIT;
	uint8_t *pool = pages(n);
	struct ibv_mr *mr;

	(void)arg;
	up();
	mr = reg(pool, n * PAGE);
	for (size_t i = 0; i < n; i++)
		fill(pool + i * PAGE, PAGE, i);
	CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
	limit = before;
	limit.rlim_cur = address_space() + n * PAGE / 2;
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
	for (int i = 0; i < 3; i++)
		CHECK(stores_everywhere(fork, pool, n, true) || SANITIZED);
	CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(pool, n * PAGE);
	down();
}

/* ---- threads that fork at the same time ---- */

#define FORKERS	 4
#define FORKS_OF 100

static uint8_t *theirs;

static void sees_them(void)
{
	for (int i = 0; i < 16; i++)
		CHECK_EQ(differs(theirs + (size_t)i * PAGE, PAGE, (uint64_t)i), -1);
}

static void *forks(void *arg)
{
	sigset_t before, after;

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
	for (int i = 0, n = each_time(FORKS_OF); i < n; i++)
		child_is_well(sees_them);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
	for (int sig = 1; sig < NSIG; sig++)
		CHECK_EQ(sigismember(&after, sig), sigismember(&before, sig));
	return arg;
}

static void forking_threads(int arg)
{
	struct ibv_mr *mr, *other;
	pthread_t t[FORKERS];

	(void)arg;
	up();
	theirs = pages(16);
	for (int i = 0; i < 16; i++)
		fill(theirs + (size_t)i * PAGE, PAGE, (uint64_t)i);
	mr = reg(theirs, 16 * PAGE);
	for (int i = 0; i < FORKERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, forks, NULL), 0);
	for (int i = 0; i < FORKERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	/* Commands still work, and so do children. */
	other = reg(pages(4), 4 * PAGE);
	through(other, other->addr, 4 * PAGE, 7);
	CHECK_EQ(ibv_dereg_mr(other), 0);
	child_is_well(sees_them);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(theirs, 16 * PAGE);
	down();
}

/* ---- advice about children, while another thread forks ---- */

enum { LITTLE = 16, MUCH = 1536 }; /* pages; a user may lock 8 MiB */

static struct {
	uint8_t *mem;
	int advice, delay_us;
	pthread_barrier_t begins, ends;
} advice;

static void *advises(void *arg)
{
	for (;;) {
		pthread_barrier_wait(&advice.begins);
		if (!advice.advice)
			return arg;
		usleep((useconds_t)advice.delay_us);
		CHECK_EQ(madvise(advice.mem, LITTLE * PAGE, advice.advice), 0);
		pthread_barrier_wait(&advice.ends);
	}
}

/* The child has a copy of its own, or none. Returns true if it has one. */
static bool child_has_own(void)
{
	int status;
	pid_t pid;

	advice.mem[5] = 1;
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler prints */
		_exit(advice.mem[5]++ != 1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(advice.mem[5], 1);
	CHECK(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
	return !status;
}

/* ibv_reg_mr() and ibv_dereg_mr() of other threads give it, after ibv_fork_init(). */
static void advice_beside(int arg)
{
	uint8_t *much = pages(LITTLE + MUCH);
	struct ibv_mr *mr, *other;
	pthread_t thread;

	(void)arg;
	up();
	/* The child's copy of what lies behind takes its time. */
	advice.mem = much;
	much += LITTLE * PAGE;
	memset(advice.mem, 1, LITTLE * PAGE);
	memset(much, 1, MUCH * PAGE);
	mr = reg(advice.mem, LITTLE * PAGE);
	other = reg(much, MUCH * PAGE);
	pthread_barrier_init(&advice.begins, NULL, 2);
	pthread_barrier_init(&advice.ends, NULL, 2);
	CHECK_EQ(pthread_create(&thread, NULL, advises, NULL), 0);
	for (int i = 0, n = each_time(16); i < n; i++) {
		bool keeps = i % 2;

		CHECK_EQ(madvise(advice.mem, LITTLE * PAGE, keeps ? MADV_DOFORK : MADV_DONTFORK),
			 0);
		advice.advice = keeps ? MADV_DONTFORK : MADV_DOFORK;
		advice.delay_us = i % 8 * 200;
		pthread_barrier_wait(&advice.begins);
		(void)child_has_own();
		pthread_barrier_wait(&advice.ends);
		CHECK_EQ(child_has_own(), !keeps);
	}
	advice.advice = 0;
	pthread_barrier_wait(&advice.begins);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dereg_mr(other), 0);
	munmap(advice.mem, (LITTLE + MUCH) * PAGE);
	down();
}

static const struct scenario {
	const char *name;
	void (*fn)(int arg);
} scenario[] = {
	{"busy_threads", busy_threads},	      {"view", view},
	{"no_descriptor", no_descriptor},     {"no_proc", no_proc},
	{"no_addresses", no_addresses},	      {"less_than_the_pool", less_than_the_pool},
	{"forking_threads", forking_threads}, {"advice_beside", advice_beside},
};

int main(int argc, char **argv)
{
	test_begin();
	for (size_t i = 0; i < sizeof(scenario) / sizeof(scenario[0]); i++)
		repeat(argc, argv, scenario[i].name, scenario[i].fn);
	return 0;
}
