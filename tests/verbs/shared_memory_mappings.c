// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: calls on mappings mean for registered memory that has become device memory what they mean for any memory:
 * a child's view is a private copy; munmap, mremap, realloc, madvise and mprotect do what they say, in a signal handler
 * too; and what was mapped in a region's place unseen stays as it is. Memory keeps the attributes that the program gave it.
 * Quick: half
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared_memory_test.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* ---- fork ---- */

static void forking(void)
{
	uint8_t *mem = pages(8);
	struct ibv_mr *mr;
	int status;
	pid_t pid;

	CHECK(shares(mem, 8 * PAGE, &mr));
	for (int i = 0; i < 30; i++) {
		fill(mem, 8 * PAGE, i);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			bool mine = differs(mem, 8 * PAGE, i) == -1;

			memset(mem, 0xcc, 8 * PAGE);
			_exit(mine ? 0 : 1);
		}
		/* At once: a child that used the parent's pages would see it. */
		memset(mem, 0xaa, 8 * PAGE);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
		for (size_t at = 0; at < 8 * PAGE; at++)
			CHECK_EQ(mem[at], 0xaa);
	}
	through(mr, mem, 8 * PAGE, 50);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, 8 * PAGE);
}

/* As daemons do: the process that registered the memory forks and ends, and the child goes on with
 * its copy. */
static void orphan(int arg)
{
	uint8_t *mem;
	struct ibv_mr *mr;
	pid_t pid;

	(void)arg;
	side_open(&s, 16 * PAGE, 64, 0);
	mem = pages(8);
	fill(mem, 8 * PAGE, 51);
	mr = reg(mem, 8 * PAGE);
	CHECK(mr);
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		_exit(0);
	while (getppid() != 1 && hca_counter("shared_pages_used") > board->word[1])
		sleep_ms(1);
	CHECK_EQ(differs(mem, 8 * PAGE, 51), -1);
	memset(mem, 1, 8 * PAGE);
	post(0, 1);
	_exit(0);
}

/* ---- the calls that change mappings ---- */

static void unmapping(void)
{
	uint8_t *mem = pages(8), *other = pages(8);
	struct ibv_mr *mr, *beside;

	CHECK(shares(mem, 8 * PAGE, &mr));
	CHECK(shares(other, 8 * PAGE, &beside));
	fill(mem, 8 * PAGE, 60);
	fill(other, 8 * PAGE, 61);
	CHECK_EQ(munmap(mem + 3 * PAGE, PAGE), 0);
	CHECK_EQ(differs(mem, 3 * PAGE, 60), -1);
	through(mr, mem, 3 * PAGE, 62);
	through(mr, mem + 4 * PAGE, 4 * PAGE, 63);
	refused(mr, mem + 3 * PAGE, 100, IBV_WC_REM_ACCESS_ERR);
	/* Maps other memory there. The device finds it like any memory. */
	CHECK(mmap(mem + 2 * PAGE, 3 * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == mem + 2 * PAGE);
	for (size_t i = 0; i < 3 * PAGE; i++)
		CHECK_EQ(mem[2 * PAGE + i], 0);
	through(mr, mem, 8 * PAGE, 64);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(differs(mem, 8 * PAGE, 65), -1);
	CHECK_EQ(differs(other, 8 * PAGE, 61), -1);
	CHECK(shares(mem, 2 * PAGE, &mr));
	CHECK(mmap(mem, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == mem);
	through(mr, mem, 2 * PAGE, 67);
	CHECK_EQ(munmap(mem, 8 * PAGE), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	through(beside, other, 8 * PAGE, 66);
	CHECK_EQ(ibv_dereg_mr(beside), 0);
	munmap(other, 8 * PAGE);
}

/* Memory that grows must not grow into its neighbour in device memory. */
static void growing(bool by_realloc, size_t shrunk)
{
	size_t n = 64;
	uint8_t *mem = by_realloc ? malloc(n * PAGE) : pages(n), *other = pages(n), *more;
	struct ibv_mr *mr, *beside;

	CHECK(mem);
	fill(mem, n * PAGE, 70);
	CHECK(shares(mem, n * PAGE, &mr));
	fill(other, n * PAGE, 71);
	CHECK(shares(other, n * PAGE, &beside));
	if (shrunk) {
		uint8_t *less =
			by_realloc ? realloc(mem, shrunk) : mremap(mem, n * PAGE, shrunk, 0);

		CHECK(less && less != MAP_FAILED);
		mem = less;
	} else {
		shrunk = n * PAGE;
	}
	more = by_realloc ? realloc(mem, 4 * n * PAGE)
			  : mremap(mem, shrunk, 4 * n * PAGE, MREMAP_MAYMOVE);
	CHECK(more && more != MAP_FAILED);
	CHECK_EQ(differs(more, shrunk, 70), -1);
	fill(more, 4 * n * PAGE, 72);
	CHECK_EQ(differs(other, n * PAGE, 71), -1);
	through(beside, other, 8 * PAGE, 73);
	CHECK_EQ(differs(more, 4 * n * PAGE, 72), -1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dereg_mr(beside), 0);
	CHECK_EQ(differs(more, 4 * n * PAGE, 72), -1);
	if (by_realloc)
		free(more);
	else
		munmap(more, 4 * n * PAGE);
	munmap(other, n * PAGE);
}

static void *idles(void *end)
{
	char byte;

	CHECK_EQ(read(*(int *)end, &byte, 1), 0);
	return NULL;
}

/* The protection of an address, as /proc/self/maps has it; "none" where nothing is mapped. */
static void protection_of(const void *addr, char perms[8])
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], word[8];
	unsigned long from, to;

	CHECK(f);
	strcpy(perms, "none");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %4s", &from, &to, word) == 3 && (uintptr_t)addr >= from &&
		    (uintptr_t)addr < to)
			strcpy(perms, word);
	fclose(f);
}

/*
 * Memory that moves or grows keeps its contents and its protection, as other memory does, beside a
 * thread, too: there device memory cannot become private.
 */
static void moves_as(uint8_t *mem, int prot, const char *perms, bool fixed)
{
	uint8_t *place = pages(16), *to;
	char is[8];

	fill(mem, 4 * PAGE, 80);
	fill(place, 16 * PAGE, 81);
	CHECK_EQ(mprotect(mem, 4 * PAGE, prot), 0);
	to = fixed ? mremap(mem, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place)
		   : mremap(mem, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
	CHECK(to != MAP_FAILED);
	CHECK(!fixed || to == place);
	for (size_t i = 0; i < 8; i++) {
		protection_of(to + i * PAGE, is);
		CHECK(!memcmp(is, perms, 4));
	}
	CHECK_EQ(mprotect(to, 8 * PAGE, PROT_READ | PROT_WRITE), 0);
	CHECK_EQ(differs(to, 4 * PAGE, 80), -1);
	for (size_t i = 4 * PAGE; i < 8 * PAGE; i++)
		CHECK_EQ(to[i], 0);
	CHECK_EQ(munmap(to, 8 * PAGE), 0);
	munmap(place + 8 * PAGE, 8 * PAGE);
	if (!fixed)
		munmap(place, 8 * PAGE);
}

static void protected_moves(void)
{
	static const struct {
		int prot;
		const char *perms;
	} kind[] = {{PROT_READ, "r--p"},
		    {PROT_READ | PROT_EXEC, "r-xp"},
		    {PROT_READ | PROT_WRITE | PROT_EXEC, "rwxp"},
		    {PROT_NONE, "---p"},
		    {PROT_WRITE, "-w-p"}};
	struct ibv_mr *mr[sizeof(kind) / sizeof(kind[0])][2];
	uint8_t *mem[sizeof(kind) / sizeof(kind[0])][2];
	int end[2];
	pthread_t t;

	for (size_t i = 0; i < sizeof(kind) / sizeof(kind[0]); i++)
		for (int fixed = 0; fixed < 2; fixed++) {
			mem[i][fixed] = pages(4);
			CHECK(shares(mem[i][fixed], 4 * PAGE, &mr[i][fixed]));
		}
	CHECK_EQ(pipe(end), 0);
	CHECK_EQ(pthread_create(&t, NULL, idles, &end[0]), 0);
	for (size_t i = 0; i < sizeof(kind) / sizeof(kind[0]); i++)
		for (int fixed = 0; fixed < 2; fixed++) {
			moves_as(pages(4), kind[i].prot, kind[i].perms, fixed);
			moves_as(mem[i][fixed], kind[i].prot, kind[i].perms, fixed);
			CHECK_EQ(ibv_dereg_mr(mr[i][fixed]), 0);
		}
	close(end[1]);
	CHECK_EQ(pthread_join(t, NULL), 0);
	close(end[0]);
}

/* There is no second mapping of private memory, but a mapping can be left behind without its contents. */
static void doubling(bool threads)
{
	uint8_t *mem = pages(8), *to;
	struct ibv_mr *mr;
	pthread_t thread;
	int end[2];

	fill(mem, 8 * PAGE, 110);
	CHECK(shares(mem, 8 * PAGE, &mr));
	CHECK_EQ(pipe(end), 0);
	if (threads)
		CHECK_EQ(pthread_create(&thread, NULL, idles, end), 0);
	CHECK(mremap(mem, 0, 8 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(differs(mem, 8 * PAGE, 110), -1);
	to = mremap(mem, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	CHECK(to != MAP_FAILED);
	CHECK_EQ(differs(to, 8 * PAGE, 110), -1);
	for (size_t i = 0; i < 8 * PAGE; i++)
		CHECK_EQ(mem[i], 0);
	through(mr, mem, 8 * PAGE, 111);
	CHECK_EQ(differs(to, 8 * PAGE, 110), -1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(differs(mem, 8 * PAGE, 112), -1);
	close(end[1]);
	if (threads)
		CHECK_EQ(pthread_join(thread, NULL), 0);
	close(end[0]);
	munmap(mem, 8 * PAGE);
	munmap(to, 8 * PAGE);
}

/* Of glibc 2.36, and not there before. */
ssize_t process_madvise(int pidfd, const struct iovec *iov, size_t n, int advice,
			unsigned int flags) __attribute__((weak));

/* process_madvise() of the process itself, on a kernel that takes all advice there (Linux 6.13). */
static void advising_oneself(struct ibv_mr *mr, uint8_t *mem)
{
	struct iovec both[] = {{mem, PAGE}, {mem + 4 * PAGE, 2 * PAGE}};
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (self < 0 || !process_madvise || process_madvise(self, both, 0, MADV_DONTNEED, 0)) {
		printf("# process_madvise() does not take MADV_DONTNEED: that part is left out\n");
		return;
	}
	fill(mem, 8 * PAGE, 83);
	CHECK_EQ(process_madvise(self, both, 2, MADV_DONTNEED, 0), (long)(3 * PAGE));
	for (size_t i = 0; i < PAGE; i++)
		CHECK_EQ(mem[i], 0);
	for (size_t i = 4 * PAGE; i < 6 * PAGE; i++)
		CHECK_EQ(mem[i], 0);
	fill(mem, 8 * PAGE, 84);
	CHECK_EQ(process_madvise(self, both, 2, 12345, 0), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(process_madvise(self, (void *)1, 2, MADV_DONTNEED, 0), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(differs(mem, 8 * PAGE, 84), -1);
	through(mr, mem, 8 * PAGE, 85);
	close(self);
}

static void start_and_join(void)
{
	pthread_t thread;
	int end[2];

	CHECK_EQ(pipe(end), 0);
	CHECK_EQ(pthread_create(&thread, NULL, idles, end), 0);
	close(end[1]);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	close(end[0]);
}

static pthread_barrier_t running;

/* A sanitizer maps memory where a thread begins. */
static void *runs(void *end)
{
	pthread_barrier_wait(&running);
	return idles(end);
}

/* Beside a thread memory moves where the program wants it, and grows without moving. */
static void remapping(void)
{
	uint8_t *mem = pages(8), *to = pages(12), *area = pages(24);
	struct ibv_mr *mr, *other, *at_to;
	pthread_t thread;
	int end[2];

	CHECK_EQ(munmap(area + 8 * PAGE, 8 * PAGE), 0);
	CHECK(shares(mem, 8 * PAGE, &mr));
	CHECK(shares(area, 8 * PAGE, &other));
	CHECK(shares(to, 4 * PAGE, &at_to));
	fill(mem, 8 * PAGE, 120);
	fill(area, 8 * PAGE, 121);
	memset(to, 1, 12 * PAGE);
	CHECK_EQ(pipe(end), 0);
	pthread_barrier_init(&running, NULL, 2);
	CHECK_EQ(pthread_create(&thread, NULL, runs, end), 0);
	pthread_barrier_wait(&running);

	CHECK(mremap(mem, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to + 1) == MAP_FAILED);
	CHECK_EQ(errno, EINVAL);
	CHECK(mremap(mem, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, mem + 4 * PAGE) ==
	      MAP_FAILED);
	CHECK_EQ(errno, EINVAL);
	CHECK(mremap(mem, 8 * PAGE, 8 * PAGE, MREMAP_FIXED, to) == MAP_FAILED);
	CHECK_EQ(errno, EINVAL);
	through(mr, mem, 8 * PAGE, 122);
	fill(mem, 8 * PAGE, 120);
	CHECK(mremap(mem, 8 * PAGE, 10 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
	CHECK_EQ(differs(to, 8 * PAGE, 120), -1);
	for (size_t i = 8 * PAGE; i < 12 * PAGE; i++)
		CHECK_EQ(to[i], i < 10 * PAGE ? 0 : 1);
	/* The old place is free, and this keeps it so. */
	CHECK(mmap(mem, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		   0) == mem);
	refused(mr, mem, 100, IBV_WC_REM_ACCESS_ERR);
	through(at_to, to, 4 * PAGE, 123);

	CHECK(mremap(area, 8 * PAGE, 24 * PAGE, 0) == MAP_FAILED);
	CHECK_EQ(errno, ENOMEM);
	start_and_join();
	CHECK(mremap(area, 8 * PAGE, 12 * PAGE, 0) == area);
	CHECK_EQ(differs(area, 8 * PAGE, 121), -1);
	for (size_t i = 8 * PAGE; i < 12 * PAGE; i++)
		CHECK_EQ(area[i], 0);
	through(other, area, 8 * PAGE, 124);
	start_and_join();
	CHECK(mremap(area, 12 * PAGE, 4 * PAGE, 0) == area);
	through(other, area, 4 * PAGE, 125);
	start_and_join();

	close(end[1]);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	close(end[0]);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dereg_mr(other), 0);
	CHECK_EQ(ibv_dereg_mr(at_to), 0);
	munmap(mem, 8 * PAGE);
	munmap(to, 12 * PAGE);
	munmap(area, 4 * PAGE);
	munmap(area + 16 * PAGE, 8 * PAGE);
}

/* ---- a move while the device writes there ---- */

#define MUCH (6UL << 20) /* takes a while to copy; a user may lock 8 MiB */

static struct writing {
	struct ibv_qp *qp, *other;
	struct ibv_mr *mr;
	uint64_t *to;
	volatile uint64_t last; /* that was completed well */
	volatile bool end;
} writing;

/* Numbers, one after the other, until one is refused. */
static void *writes(void *arg)
{
	struct writing *w = arg;
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};

	for (uint64_t n = 1; !wc.status && !w->end; n++) {
		*(uint64_t *)s.buf = n;
		CHECK_EQ(post_rdma1(w->qp, &s, IBV_WR_RDMA_WRITE, n, 0, sizeof(n), (uintptr_t)w->to,
				    w->mr->rkey, IBV_SEND_SIGNALED),
			 0);
		wc = next_wc(s.scq);
		if (!wc.status)
			w->last = n;
	}
	if (wc.status) {
		CHECK_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
		expect_event(s.context, IBV_EVENT_QP_ACCESS_ERR);
	}
	return NULL;
}

/* What was written and completed has moved too, or was written where the mapping was left behind. */
static void moving_beside_writes(int flags)
{
	uint8_t *mem = pages(MUCH / PAGE),
		*to = flags & MREMAP_FIXED ? pages(MUCH / PAGE + 1) : NULL;
	pthread_t thread;
	uint64_t got;

	memset(mem, 0, MUCH);
	writing = (struct writing){.to = (uint64_t *)mem};
	CHECK(shares(mem, MUCH, &writing.mr));
	writing.qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	writing.other = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, writing.qp, writing.other);
	CHECK_EQ(pthread_create(&thread, NULL, writes, &writing), 0);
	while (!writing.last)
		sleep_ms(1);
	to = mremap(mem, MUCH, flags & MREMAP_DONTUNMAP ? MUCH : MUCH + PAGE,
		    MREMAP_MAYMOVE | flags, to);
	CHECK(to != MAP_FAILED && to != mem);
	writing.end = flags & MREMAP_DONTUNMAP;
	CHECK_EQ(pthread_join(thread, NULL), 0);
	got = *(uint64_t *)to;
	if (flags & MREMAP_DONTUNMAP && *(uint64_t *)mem)
		got = *(uint64_t *)mem;
	CHECK_EQ(got, writing.last);
	CHECK_EQ(ibv_dereg_mr(writing.mr), 0);
	CHECK_EQ(ibv_destroy_qp(writing.qp), 0);
	CHECK_EQ(ibv_destroy_qp(writing.other), 0);
	munmap(to, flags & MREMAP_DONTUNMAP ? MUCH : MUCH + PAGE);
	if (flags & MREMAP_DONTUNMAP)
		munmap(mem, MUCH);
}

/* What cannot leave its place is not moved. In a process of its own, since it stays for good. */
static void sealed(int arg)
{
	struct ibv_mr *mr;
	pthread_t thread;
	uint8_t *mem;
	int end[2];

	(void)arg;
	up();
	mem = pages(8);
	fill(mem, 8 * PAGE, 130);
	CHECK(shares(mem, 8 * PAGE, &mr));
	CHECK_EQ(pipe(end), 0);
	CHECK_EQ(pthread_create(&thread, NULL, idles, end), 0);
	if (syscall(462 /* mseal() of Linux 6.10 */, mem, 8 * PAGE, 0UL)) {
		printf("# no mseal() here: that part is left out\n");
	} else {
		CHECK(mremap(mem, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
		CHECK_EQ(errno, EPERM);
		CHECK_EQ(differs(mem, 8 * PAGE, 130), -1);
		through(mr, mem, 8 * PAGE, 131);
	}
	close(end[1]);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	down();
}

static void advising(void)
{
	uint8_t *mem = pages(8);
	struct ibv_mr *mr;

	fill(mem, 8 * PAGE, 80);
	CHECK(shares(mem, 8 * PAGE, &mr));
	CHECK_EQ(madvise(mem + 2 * PAGE, 2 * PAGE, MADV_REMOVE), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(madvise(mem + PAGE, PAGE, MADV_WILLNEED), 0);
	CHECK_EQ(differs(mem, 8 * PAGE, 80), -1);
	CHECK_EQ(madvise(mem + 2 * PAGE, 2 * PAGE, MADV_DONTNEED), 0);
	CHECK_EQ(differs(mem, 2 * PAGE, 80), -1);
	for (size_t i = 0; i < 2 * PAGE; i++)
		CHECK_EQ(mem[2 * PAGE + i], 0);
	through(mr, mem, 8 * PAGE, 81);
	CHECK_EQ(remap_file_pages(mem, PAGE, 0, 1, 0), -1);
	CHECK_EQ(errno, EINVAL);
	/* Locked memory keeps its contents. A sanitizer's mlock() does nothing. */
	CHECK_EQ(syscall(SYS_mlock, mem + 6 * PAGE, PAGE), 0);
	CHECK_EQ(madvise(mem + 6 * PAGE, PAGE, MADV_DONTNEED), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(madvise(mem + 6 * PAGE, PAGE, MADV_FREE), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(differs(mem, 8 * PAGE, 82), -1);
	CHECK_EQ(syscall(SYS_munlock, mem + 6 * PAGE, PAGE), 0);
	through(mr, mem, 8 * PAGE, 81);
	CHECK_EQ(differs(mem, 8 * PAGE, 82), -1);
	advising_oneself(mr, mem);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, 8 * PAGE);
}

/* Memory that is mapped in place of a region, as when the C library unmaps and maps again without
 * softhca noticing. */
static void unseen(void)
{
	char name[] = "/tmp/shared-memory.XXXXXX";
	uint8_t *mem = pages(8), *again;
	int fd = mkstemp(name);
	struct ibv_mr *mr, *other;

	CHECK(fd >= 0);
	CHECK_EQ(unlink(name), 0);
	fill(mem, 8 * PAGE, 100);
	CHECK_EQ(write(fd, mem, 4 * PAGE), (long)(4 * PAGE));
	CHECK(shares(mem, 8 * PAGE, &mr));
	/* A file: advice about it does not affect the memory that was there. */
	again = (void *)syscall(SYS_mmap, mem, 4 * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_FIXED, fd, 0);
	CHECK(again == mem);
	CHECK_EQ(madvise(mem, 4 * PAGE, MADV_DONTNEED), 0);
	CHECK_EQ(differs(mem, 8 * PAGE, 100), -1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, 8 * PAGE);

	/* Another region covers half of the rest: what happens to the other half does not affect
	 * it. */
	mem = pages(8);
	fill(mem, 8 * PAGE, 101);
	CHECK(shares(mem, 8 * PAGE, &mr));
	again = (void *)syscall(SYS_mmap, mem, 8 * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(again == mem);
	fill(mem, 4 * PAGE, 102);
	CHECK(shares(mem, 4 * PAGE, &other));
	again = mremap(mem + 4 * PAGE, 4 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
	CHECK(again != MAP_FAILED);
	CHECK_EQ(differs(mem, 4 * PAGE, 102), -1);
	through(other, mem, 4 * PAGE, 103);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dereg_mr(other), 0);
	CHECK_EQ(differs(mem, 4 * PAGE, 104), -1);
	munmap(mem, 4 * PAGE);
	munmap(again, 16 * PAGE);
	close(fd);
}

/* A stack that the program has mapped grows when something below it is touched. */
static void growing_down(int late)
{
	size_t room = 1024 * PAGE, n = 4;
	struct ibv_mr *mr;
	uint8_t *mem;

	up();
	/* Nothing else lies near. */
	mem = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mem != MAP_FAILED);
	CHECK_EQ(munmap(mem, room), 0);
	mem = mmap(mem + room - n * PAGE, n * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0);
	CHECK(mem != MAP_FAILED);
	fill(mem, n * PAGE, 120);
	mr = reg(mem, n * PAGE);
	through(mr, mem, n * PAGE, 121);
	if (late)
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	/* Registered by now, or registered once. */
	for (size_t i = 1; i <= 8; i++)
		mem[-(long)(i * PAGE)] = (uint8_t)i;
	for (size_t i = 1; i <= 8; i++)
		CHECK_EQ(mem[-(long)(i * PAGE)], i);
	CHECK_EQ(differs(mem, n * PAGE, 122), -1);
	if (!late)
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem - 8 * PAGE, (n + 8) * PAGE);
	down();
}

static uint8_t *watched;
static int handled;

static void on_alarm(int sig)
{
	(void)sig;
	if (!mprotect(watched, PAGE, PROT_READ) && !mprotect(watched, PAGE, PROT_READ | PROT_WRITE))
		handled++;
}

/* The handler of a garbage collector changes its own mappings at any moment. */
static void interrupted(void)
{
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	struct sigaction act = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	uint8_t *mem = pages(8);
	struct ibv_mr *mr, *own;

	watched = pages(1);
	CHECK(shares(watched, PAGE, &own));
	CHECK_EQ(sigaction(SIGALRM, &act, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	while (handled < 300) {
		mr = reg(mem, 8 * PAGE);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
	CHECK_EQ(ibv_dereg_mr(own), 0);
	munmap(mem, 8 * PAGE);
	munmap(watched, PAGE);
}

static void protecting(void)
{
	uint8_t *mem = pages(4);
	struct ibv_mr *mr;
	int ends[2];

	fill(mem, 4 * PAGE, 90);
	CHECK(shares(mem, 4 * PAGE, &mr));
	CHECK_EQ(mprotect(mem + PAGE, PAGE, PROT_READ), 0);
	refused(mr, mem + PAGE, 10, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(differs(mem, 4 * PAGE, 90), -1);
	CHECK_EQ(mprotect(mem + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	through(mr, mem, 4 * PAGE, 91);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(differs(mem, 4 * PAGE, 92), -1);
	/* Given up and protected, as allocators do: it stays protected. */
	CHECK(shares(mem, 4 * PAGE, &mr));
	CHECK_EQ(mprotect(mem, 2 * PAGE, PROT_NONE), 0);
	CHECK_EQ(madvise(mem, 2 * PAGE, MADV_DONTNEED), 0);
	CHECK_EQ(pipe(ends), 0);
	CHECK_EQ(write(ends[1], mem, 1), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(write(ends[1], mem + 2 * PAGE, 1), 1);
	close(ends[0]);
	close(ends[1]);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, 4 * PAGE);
}

/* ---- attributes of memory, from before the registration and from after it ---- */

enum { NO_DUMP, WIPE, HUGE, MERGE, KEY, POLICY, ATTRIBUTES };

static int give(uint8_t *mem, int what)
{
	static const int advice[] = {MADV_DONTDUMP, MADV_WIPEONFORK, MADV_HUGEPAGE, MADV_MERGEABLE};
	const unsigned long node0 = 1;
	int key;

	if (what < KEY)
		return madvise(mem, 4 * PAGE, advice[what]);
	if (what == POLICY)
		return (int)syscall(SYS_mbind, mem, 4 * PAGE, 2 /* MPOL_BIND */, &node0, 64UL, 0UL);
	key = pkey_alloc(0, 0);
	return key < 0 ? key : pkey_mprotect(mem, 4 * PAGE, PROT_READ | PROT_WRITE, key);
}

static int policy_of(const void *addr)
{
	int mode = 0;

	(void)syscall(SYS_get_mempolicy, &mode, NULL, 0UL, addr, 2UL /* MPOL_F_ADDR */);
	return mode;
}

/* In a process of its own: a sanitizer may have given its own memory such attributes. */
static void attributes(int late)
{
	char before[512], after[512];
	struct ibv_mr *mr;

	up();
	for (int what = 0; what < ATTRIBUTES; what++) {
		uint8_t *mem = pages(4);
		int policy;

		memset(mem, 1, 4 * PAGE);
		mr = late && what != POLICY ? reg(mem, 4 * PAGE) : NULL;
		if (give(mem, what)) {
			printf("# no attribute %d here: that part is left out\n", what);
			if (mr)
				CHECK_EQ(ibv_dereg_mr(mr), 0);
			continue;
		}
		attributes_of(mem, before, sizeof(before));
		policy = policy_of(mem);
		if (!mr)
			mr = reg(mem, 4 * PAGE);
		through(mr, mem, 4 * PAGE, 3);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		attributes_of(mem, after, sizeof(after));
		if (strcmp(before, after))
			fprintf(stderr, "attribute %d:\n%s%s", what, before, after);
		CHECK(!strcmp(before, after));
		CHECK_EQ(policy_of(mem), policy);
		CHECK_EQ(differs(mem, 4 * PAGE, 4), -1);
		munmap(mem, 4 * PAGE);
	}
	down();
}

int main(void)
{
	pid_t pid;

	test_begin();
	board->word[1] = hca_counter("shared_pages_used");
	pid = spawn(orphan, 0);
	join(pid);
	await(0, 1);
	given_back(board->word[1]);
	for (int late = 0; late < 2; late++)
		join(spawn(attributes, late));
	for (int late = 0; late < 2; late++)
		join(spawn(growing_down, late));
	join(spawn(sealed, 0));
	up();
	forking();
	unmapping();
	(void)mallopt(M_MMAP_THRESHOLD, 128 << 10); /* a mapping each; not for a sanitizer */
	for (int by_realloc = 0; by_realloc < 2; by_realloc++) {
		growing(by_realloc, 0);
		growing(by_realloc, 32 * PAGE);
	}
	doubling(false);
	doubling(true);
	protected_moves();
	remapping();
	moving_beside_writes(0);
	moving_beside_writes(MREMAP_FIXED);
	moving_beside_writes(MREMAP_DONTUNMAP);
	advising();
	unseen();
	interrupted();
	protecting();
	down();
	given_back(board->word[1]);
	return 0;
}
