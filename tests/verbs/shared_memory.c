// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: registered memory that has become device memory is still its process's own: it keeps
 * its contents there and back, its neighbours in the page too, while other threads, system calls
 * and the device write to it, and when its context is closed; and what must not be shared is not,
 * and counted, also where a library has put itself before the shim's calls on mappings. Those are
 * shared_memory_mappings.c's.
 *
 * Seconds: 600
 * Quick: half
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared_memory_test.h"

static uint8_t bss[64 * PAGE]; /* its first page may be one of the program file */

static void what_is_shared(void)
{
	static const size_t sizes[] = {1, 100, PAGE, 3 * PAGE + 5};
	uint64_t foreign = hca_counter("copies_foreign");
	struct ibv_mr *mr;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		/* The middle of a buffer: the memory before and after it in its pages belongs to
		 * other data. */
		uint8_t *mem = malloc(sizes[i] + 2000);

		fill(mem, 1000, 1);
		fill(mem + 1000, sizes[i], 2);
		fill(mem + 1000 + sizes[i], 1000, 3);
		CHECK(shares(mem + 1000, sizes[i], &mr));
		CHECK_EQ(differs(mem + 1000, sizes[i], 2), -1);
		through(mr, mem + 1000, sizes[i], 10 + i);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		CHECK_EQ(differs(mem, 1000, 1), -1);
		CHECK_EQ(differs(mem + 1000, sizes[i], 11 + i), -1);
		CHECK_EQ(differs(mem + 1000 + sizes[i], 1000, 3), -1);
		free(mem);
	}
	CHECK(shares(bss + 30 * PAGE + 7, 2 * PAGE, &mr));
	through(mr, bss + 30 * PAGE + 7, 2 * PAGE, 20);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	/* None of the copies took a system call. */
	CHECK_EQ(hca_counter("copies_foreign"), foreign);
}

/* In which order they end does not matter: the pages are private after the last one. */
static void overlapping(void)
{
	uint64_t used = hca_counter("shared_pages_used");
	uint8_t *mem = pages(12);

	fill(mem, 12 * PAGE, 1);
	for (int order = 0; order < 6; order++) {
		static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
						 {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
		struct ibv_mr *mr[3];

		CHECK(shares(mem + PAGE, 4 * PAGE, &mr[0]));
		CHECK(shares(mem + 7 * PAGE, 4 * PAGE, &mr[1]));
		CHECK(!shares(mem + 3 * PAGE, 6 * PAGE, &mr[2]));
		for (int i = 0; i < 3; i++)
			CHECK_EQ(ibv_dereg_mr(mr[orders[order][i]]), 0);
		given_back(used);
		CHECK_EQ(differs(mem, 12 * PAGE, 1), -1);
	}
	munmap(mem, 12 * PAGE);
}

static void what_is_not(void)
{
	uint64_t foreign = hca_counter("copies_foreign");
	char name[] = "/tmp/shared-memory.XXXXXX";
	uint8_t stack[3 * PAGE], *mem;
	int fd = mkstemp(name), status;
	struct ibv_mr *mr;
	pid_t pid;

	CHECK(fd >= 0);
	CHECK_EQ(unlink(name), 0);
	CHECK_EQ(ftruncate(fd, 4 * PAGE), 0);
	CHECK(!shares(stack, sizeof(stack), &mr));
	through(mr, stack, sizeof(stack), 30);
	CHECK_EQ(ibv_dereg_mr(mr), 0);

	mem = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(mem != MAP_FAILED);
	CHECK(!shares(mem, 4 * PAGE, &mr));
	through(mr, mem, 4 * PAGE, 31);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, 4 * PAGE);

	/* Memory that is shared already, with a child or through a file, stays as it is. */
	mem = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(mem != MAP_FAILED);
	CHECK(!shares(mem, 4 * PAGE, &mr));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		fill(mem, 4 * PAGE, 32);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(differs(mem, 4 * PAGE, 32), -1);
	through(mr, mem, 4 * PAGE, 33);
	CHECK_EQ(pread(fd, stack, PAGE, 0), (long)PAGE);
	CHECK_EQ(memcmp(stack, mem, PAGE), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, 4 * PAGE);
	CHECK_EQ(ftruncate(fd, 0), 0);
	close(fd);

	mem = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mem != MAP_FAILED);
	mr = ibv_reg_mr(s.pd, mem, 2 * PAGE, 0);
	CHECK(mr);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(mprotect(mem, PAGE, PROT_READ), 0);
	munmap(mem, 2 * PAGE);
	CHECK(hca_counter("copies_foreign") > foreign);
}

/* One page with several regions; a range that is only partly shared; regions that outlive each
 * other. */
static void neighbours(void)
{
	uint8_t *mem = pages(4);
	struct ibv_mr *one, *two, *three, *four;

	fill(mem, 4 * PAGE, 40);
	CHECK(shares(mem + 100, 50, &one));
	CHECK(shares(mem + 2000, 96, &two));
	CHECK(shares(mem, PAGE, &three));
	CHECK(!shares(mem, 2 * PAGE, &four));
	CHECK_EQ(differs(mem, 4 * PAGE, 40), -1);
	through(four, mem + PAGE - 50, 100, 41);
	CHECK_EQ(ibv_dereg_mr(one), 0);
	CHECK_EQ(ibv_dereg_mr(three), 0);
	through(two, mem + 2000, 96, 42);
	CHECK_EQ(ibv_dereg_mr(two), 0);
	through(four, mem, 2 * PAGE, 43);
	CHECK_EQ(ibv_dereg_mr(four), 0);
	CHECK_EQ(differs(mem, 2 * PAGE, 44), -1);
	munmap(mem, 4 * PAGE);
}

/* The kernel writes on behalf of nobody who can be held off. */
static void rings(void)
{
	unsigned long ring = 0;
	uint8_t *mem = pages(4);
	struct ibv_mr *mr;

	fill(mem, 4 * PAGE, 109);
	CHECK_EQ(syscall(SYS_io_setup, 1, &ring), 0);
	CHECK(!shares(mem, 4 * PAGE, &mr));
	through(mr, mem, 4 * PAGE, 110);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(syscall(SYS_io_destroy, ring), 0);
	/* The process must be still, which may take a moment on a busy machine. */
	for (int i = 0; !shares(mem, 4 * PAGE, &mr); i++) {
		CHECK(i < 500);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		sleep_ms(10);
	}
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, 4 * PAGE);
}

/* ---- writers ---- */

static uint8_t *field;
static bool over;

static void *count_up(void *arg)
{
	volatile uint64_t *word = arg;
	uint64_t n = 0;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		CHECK_EQ(*word, n), *word = ++n;
	return (void *)(uintptr_t)n;
}

static void *read_in(void *arg)
{
	int *ends = arg;
	uint64_t n = 0;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		CHECK_EQ(write(ends[1], &n, sizeof(n)), sizeof(n));
		CHECK_EQ(read(ends[0], field + 2 * PAGE, sizeof(n)), sizeof(n));
		CHECK_EQ(memcmp(field + 2 * PAGE, &n, sizeof(n)), 0);
		n++;
	}
	return NULL;
}

/* Stores of other threads and of system calls while their pages become device memory and private
 * again. */
static void writers(void)
{
	pthread_t up1, up2, in;
	int ends[2];

	field = pages(4);
	memset(field, 0, 4 * PAGE);
	CHECK_EQ(pipe(ends), 0);
	CHECK_EQ(pthread_create(&up1, NULL, count_up, field + 8), 0);
	CHECK_EQ(pthread_create(&up2, NULL, count_up, field + 3 * PAGE + 64), 0);
	CHECK_EQ(pthread_create(&in, NULL, read_in, ends), 0);
	for (int i = 0; i < rounds(300); i++) {
		struct ibv_mr *mr = reg(field + 100, 3 * PAGE);

		CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	CHECK_EQ(pthread_join(up1, NULL), 0);
	CHECK_EQ(pthread_join(up2, NULL), 0);
	CHECK_EQ(pthread_join(in, NULL), 0);
	munmap(field, 4 * PAGE);
}

enum { FRESH = 1024, ROUNDS = 40 };

static int numbers;

/* Every other one through a system call. */
static void *touch_first(void *arg)
{
	uint8_t *mem = arg;

	for (uint64_t i = 0; i < FRESH; i++) {
		uint8_t *at = mem + (i * 389 % FRESH) * PAGE;

		if (i & 1)
			CHECK_EQ(pread(numbers, at, 8, (off_t)(i * 8)), 8);
		else
			*(volatile uint64_t *)at = i + 1;
	}
	return NULL;
}

/* Untouched pages are touched while they become device memory. */
static void first_touches(void)
{
	numbers = memfd_create("numbers", MFD_CLOEXEC);
	CHECK(numbers >= 0);
	for (uint64_t i = 1; i <= FRESH; i++)
		CHECK_EQ(write(numbers, &i, sizeof(i)), sizeof(i));
	for (int round = 0; round < rounds(ROUNDS); round++) {
		uint8_t *mem = pages(FRESH);
		struct ibv_mr *mr;
		pthread_t toucher;

		CHECK_EQ(pthread_create(&toucher, NULL, touch_first, mem), 0);
		mr = reg(mem, FRESH * PAGE);
		CHECK_EQ(pthread_join(toucher, NULL), 0);
		for (uint64_t i = 0; i < FRESH; i++)
			CHECK_EQ(*(uint64_t *)(mem + (i * 389 % FRESH) * PAGE), i + 1);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		munmap(mem, FRESH * PAGE);
	}
	close(numbers);
}

static pthread_barrier_t steps;

static void *nothing(void *arg)
{
	return arg;
}

static void *two_steps(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&steps);
	pthread_barrier_wait(&steps);
	return NULL;
}

/* Can faults of a thread be held up, in system calls, too? */
static bool privileged(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/*
 * A pool that the program has mapped itself stays shared across fork() and beside threads, and one
 * that was never touched can become so there. A sanitizer's heap is such memory, too: there not.
 */
static void pools(void)
{
	uint8_t *pool = pages(16), *late = pages(16), *used = pages(16);
	struct ibv_mr *mr, *late_mr, *used_mr;
	uint64_t foreign;
	pthread_t t;
	pid_t pid;
	int status;

	if (SANITIZED)
		return;
	CHECK(shares(pool, 16 * PAGE, &mr));
	foreign = hca_counter("copies_foreign");
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	through(mr, pool, 8 * PAGE, 120);
	pthread_barrier_init(&steps, NULL, 2);
	CHECK_EQ(pthread_create(&t, NULL, two_steps, NULL), 0);
	pthread_barrier_wait(&steps);
	through(mr, pool, 8 * PAGE, 121);
	fill(used, PAGE, 122);
	CHECK(!shares(used, 16 * PAGE, &used_mr));
	CHECK_EQ(shares(late, 16 * PAGE, &late_mr), privileged());
	CHECK_EQ(hca_counter("copies_foreign"), foreign);
	through(late_mr, late, 8 * PAGE, 123);
	CHECK_EQ(hca_counter("copies_foreign") > foreign, !privileged());
	through(used_mr, used, 8 * PAGE, 124);
	/* It stays shared as long as another region uses it, and a new region shares it at once. */
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(differs(pool, 8 * PAGE, 122), -1);
	CHECK(shares(pool, 16 * PAGE, &mr));
	CHECK_EQ(differs(pool, 8 * PAGE, 122), -1);
	pthread_barrier_wait(&steps);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dereg_mr(late_mr), 0);
	CHECK_EQ(ibv_dereg_mr(used_mr), 0);
	CHECK_EQ(differs(pool, 8 * PAGE, 122), -1);
	munmap(pool, 16 * PAGE);
	munmap(late, 16 * PAGE);
	munmap(used, 16 * PAGE);
}

/* Some pages were written, some only read, some neither. */
static void sparse(void)
{
	uint8_t *mem = pages(FRESH);
	struct ibv_mr *mr;
	int sum = 0;

	for (int i = 0; i < FRESH; i++) {
		if (i % 7 == 3 || i % 200 > 150)
			fill(mem + i * PAGE, PAGE, i);
		else if (i % 5 == 1)
			sum += *(volatile uint8_t *)(mem + i * PAGE);
	}
	CHECK_EQ(sum, 0);
	CHECK(shares(mem, FRESH * PAGE, &mr));
	for (int i = 0; i < FRESH; i++) {
		static const uint8_t zero[PAGE];

		if (i % 7 == 3 || i % 200 > 150)
			CHECK_EQ(differs(mem + i * PAGE, PAGE, i), -1);
		else
			CHECK_EQ(memcmp(mem + i * PAGE, zero, PAGE), 0);
	}
	through(mr, mem + 10 * PAGE, 3 * PAGE, 80);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, FRESH * PAGE);
}

static volatile sig_atomic_t too_large;

static void on_xfsz(int sig)
{
	(void)sig;
	too_large = 1;
}

/* A limit of file sizes is for the program's files. */
static void small_files(void)
{
	struct rlimit was, small;
	struct ibv_mr *mr;
	uint8_t *mem = pages(FRESH);

	fill(mem, FRESH * PAGE, 90);
	signal(SIGXFSZ, on_xfsz);
	CHECK_EQ(getrlimit(RLIMIT_FSIZE, &was), 0);
	small = was;
	small.rlim_cur = PAGE;
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
	CHECK(shares(mem, FRESH * PAGE, &mr));
	CHECK_EQ(differs(mem, FRESH * PAGE, 90), -1);
	through(mr, mem + 10 * PAGE, 3 * PAGE, 91);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(too_large, 0);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &was), 0);
	signal(SIGXFSZ, SIG_DFL);
	munmap(mem, FRESH * PAGE);
}

/* ---- the device writes meanwhile ---- */

enum { ADDR = 14, RKEY = 15, WRITTEN = 16, GO = 17, TIMES = 300 };

/* Writes one number each time, a moment after it was asked for: the last one must be there. */
static void writes_numbers(int arg)
{
	struct ibv_qp *qp;

	(void)arg;
	await(ADDR, 1);
	side_open(&s, PAGE, 64, 0);
	qp = connect_to_other(1, false);
	for (uint64_t n = 1; n <= (uint64_t)rounds(TIMES); n++) {
		while (__atomic_load_n(&board->word[GO], __ATOMIC_ACQUIRE) < n)
			;
		for (volatile unsigned int i = n % 50 * 1000; i; i--)
			;
		memcpy(s.buf, &n, sizeof(n));
		CHECK_EQ(post_rdma1(qp, &s, IBV_WR_RDMA_WRITE, n, 0, sizeof(n), board->word[ADDR],
				    (uint32_t)board->word[RKEY], IBV_SEND_SIGNALED),
			 0);
		expect_wc(s.scq, n, IBV_WC_SUCCESS);
		post(WRITTEN, n);
	}
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	side_close(&s);
}

/* What another process writes through one region is not lost while another region on its page comes
 * and goes. */
static void written_meanwhile(bool shared)
{
	uint8_t *mem = pages(2);
	struct ibv_mr *mr, *beside;
	struct ibv_qp *qp;
	uint64_t before, revoked;
	pid_t pid;

	memset(mem, 0, 2 * PAGE);
	board->word[ADDR] = board->word[WRITTEN] = board->word[GO] = 0;
	/* Fork first, because a fork makes shared memory private. */
	pid = spawn(writes_numbers, 0);
	CHECK(shares(mem + 2000, 8, &mr));
	if (!shared) {
		CHECK_EQ(mprotect(mem, PAGE, PROT_READ), 0);
		CHECK_EQ(mprotect(mem, PAGE, PROT_READ | PROT_WRITE), 0);
		/* The page is still device memory, but not for this region: pages that replace it
		 * are private. */
		CHECK(mmap(mem, PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == mem);
		memset(mem, 0, PAGE);
	}
	board->word[RKEY] = mr->rkey;
	post(ADDR, (uintptr_t)mem + 2000);
	qp = connect_to_other(0, false);
	before = hca_counter("regions_shared");
	revoked = hca_counter("regions_revoked");
	for (uint64_t n = 1; n <= (uint64_t)rounds(TIMES); n++) {
		uint64_t seen;

		post(GO, n);
		beside = reg(mem + 100, 50);
		CHECK_EQ(ibv_dereg_mr(beside), 0);
		await(WRITTEN, n);
		memcpy(&seen, mem + 2000, sizeof(seen));
		CHECK_EQ(seen, n);
	}
	join(pid);
	/* The page never changed its owner, because it is used by one process only. */
	CHECK_EQ(hca_counter("regions_shared"), before + (shared ? (uint64_t)rounds(TIMES) : 0));
	CHECK_EQ(hca_counter("regions_revoked"), revoked);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, 2 * PAGE);
}

static void device_meanwhile(void)
{
	written_meanwhile(true);
}

static void device_beside(void)
{
	written_meanwhile(false);
}

/* ---- leaving ---- */

/* Regions end with their context; the memory still belongs to the process. */
static void closing(void)
{
	uint64_t used = hca_counter("shared_pages_used");
	uint8_t *mem = pages(8);
	struct ibv_context *context = open_device(0);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	int status;
	pid_t pid;

	fill(mem, 8 * PAGE, 95);
	CHECK(pd && ibv_reg_mr(pd, mem, 8 * PAGE, ACCESS));
	CHECK_EQ(hca_counter("shared_pages_used"), used + 8);
	CHECK_EQ(ibv_close_device(context), 0);
	CHECK_EQ(differs(mem, 8 * PAGE, 95), -1);
	fill(mem, 8 * PAGE, 96);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		memset(mem, 0, 8 * PAGE);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(differs(mem, 8 * PAGE, 96), -1);
	munmap(mem, 8 * PAGE);
	CHECK_EQ(hca_counter("shared_pages_used"), used);
}

#ifdef __x86_64__
static int unmap_unseen(void *addr, size_t len)
{
	return (int)syscall(SYS_munmap, addr, len);
}

/* What UCX and Open MPI do to watch mappings: a jump over the first instructions of munmap(). */
static void take_over(char *entry, int (*to)(void *, size_t))
{
	static const unsigned char load[] = {0x49, 0xbb}, jump[] = {0x41, 0xff, 0xe3};
	char *page = entry - (uintptr_t)entry % PAGE;

	CHECK_EQ(mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	memcpy(entry, load, 2); /* mov $to, %r11 */
	memcpy(entry + 2, &to, 8);
	memcpy(entry + 10, jump, 3); /* jmp *%r11 */
	CHECK_EQ(mprotect(page, 2 * PAGE, PROT_READ | PROT_EXEC), 0);
}

/*
 * Memory that was unmapped unseen may be the C library's by now, so nothing becomes shared beside
 * threads any more. What is shared stays so, and threads can be created.
 */
static void taken_over(int arg)
{
	uint8_t *early, *pool, *late, *heap;
	struct ibv_mr *early_mr, *late_mr, *heap_mr;
	pthread_t t, another;

	(void)arg;
	up();
	early = pages(16);
	pool = pages(16);
	late = pages(16);
	CHECK(shares(early, 16 * PAGE, &early_mr));
	pthread_barrier_init(&steps, NULL, 2);
	CHECK_EQ(pthread_create(&t, NULL, two_steps, NULL), 0);
	pthread_barrier_wait(&steps);
	take_over((char *)dlsym(RTLD_DEFAULT, "munmap"), unmap_unseen);
	CHECK_EQ(munmap(pool, 16 * PAGE), 0);
	/* As the C library would for its heap: nobody sees that either. */
	heap = (uint8_t *)syscall(SYS_mmap, pool, 16 * PAGE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(heap == pool);
	CHECK(!shares(heap, 16 * PAGE, &heap_mr));
	CHECK(!shares(late, 16 * PAGE, &late_mr));
	through(early_mr, early, 8 * PAGE, 131);
	through(heap_mr, heap, 8 * PAGE, 132);
	through(late_mr, late, 8 * PAGE, 133);
	CHECK_EQ(pthread_create(&another, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(another, NULL), 0);
	pthread_barrier_wait(&steps);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(ibv_dereg_mr(early_mr), 0);
	CHECK_EQ(ibv_dereg_mr(heap_mr), 0);
	CHECK_EQ(ibv_dereg_mr(late_mr), 0);
	CHECK_EQ(differs(early, 8 * PAGE, 132), -1);
	down();
}
/*
 * Open MPI overwrites the C library's functions. The provider unmaps queues by them, and the
 * program other memory, while children are made.
 */
static void libc_taken_over(int arg)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	struct ibv_mr *mr;
	uint8_t *mem;
	int status;
	pid_t pid;

	(void)arg;
	CHECK(libc);
	up();
	take_over((char *)dlsym(libc, "munmap"), unmap_unseen);
	down();
	up();
	mem = pages(16);
	CHECK(shares(mem, 16 * PAGE, &mr));
	through(mr, mem, 8 * PAGE, 134);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(differs(mem, 8 * PAGE, 135) == -1 ? 0 : 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(munmap(mem, 16 * PAGE), 0);
	down();
	CHECK_EQ(dlclose(libc), 0);
}
#endif

/* Each scenario has the time limit of a test: some take long on a busy machine. */
static void (*const scenario[])(void) = {
	what_is_shared, overlapping,   what_is_not, neighbours,	      sparse,
	small_files,	rings,	       closing,	    device_meanwhile, device_beside,
	writers,	first_touches, pools,
};

int main(void)
{
	uint64_t used;

	test_begin();
#ifdef __x86_64__
	/* The C library's functions are a sanitizer's there. */
	if (!SANITIZED) {
		join(spawn(taken_over, 0));
		join(spawn(libc_taken_over, 0));
	}
#endif
	used = hca_counter("shared_pages_used");
	up();
	for (size_t i = 0; i < sizeof(scenario) / sizeof(scenario[0]); i++) {
		alarm(test_seconds());
		scenario[i]();
	}
	down();
	given_back(used);
	return 0;
}
