// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: registered memory that has become device memory moves, grows and shrinks as any
 * memory does, by mremap and realloc, beside other threads, too: with its contents and its
 * protection, and without a neighbour's. What the device writes meanwhile is not lost.
 * Quick: half
 */
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shared_memory_test.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

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

/*
 * There is no second mapping of private memory, but a mapping can be left behind without its
 * contents.
 */
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

/*
 * What was written and completed has moved too, or was written where the mapping was left behind.
 */
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

/*
 * A part of a mapping was registered, and is not any more: the mapping moves and grows as one, with its contents. The
 * part begins where the mapping does, in its middle, or ends where it does.
 */
static void once_registered(size_t first, size_t n, int flags)
{
	uint8_t *area = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *mem,
		*to;
	uint8_t *place = pages(40);
	struct ibv_mr *mr;

	CHECK(area != MAP_FAILED);
	mem = mmap(area + 4 * PAGE, 20 * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(mem != MAP_FAILED);
	fill(mem, 20 * PAGE, 90);
	mr = ibv_reg_mr(s.pd, mem + first * PAGE, n * PAGE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	if (!flags)
		CHECK_EQ(munmap(area + 24 * PAGE, 40 * PAGE), 0);
	/* Twice: what has moved moves again. */
	for (int i = 1; i <= 2; i++) {
		size_t was = i * 10 + 10, is = was + 10;

		to = flags & MREMAP_FIXED ? mremap(mem, was * PAGE, is * PAGE, flags, place)
					  : mremap(mem, was * PAGE, is * PAGE, flags);
		CHECK(to != MAP_FAILED);
		CHECK(flags || to == mem);
		CHECK(!(flags & MREMAP_FIXED) || to == place);
		CHECK_EQ(differs(to, 20 * PAGE, 90), -1);
		for (size_t at = 20 * PAGE; at < is * PAGE; at++)
			CHECK_EQ(to[at], 0);
		mem = to;
		place = flags & MREMAP_FIXED ? pages(40) : place;
	}
	mr = reg(mem, 40 * PAGE);
	CHECK_EQ(differs(mem, 20 * PAGE, 90), -1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, 40 * PAGE);
	munmap(place, 40 * PAGE);
	munmap(area, 64 * PAGE);
}

int main(void)
{
	uint64_t used;

	test_begin();
	used = hca_counter("shared_pages_used");
	join(spawn(sealed, 0));
	up();
	(void)mallopt(M_MMAP_THRESHOLD, 128 << 10); /* a mapping each; not for a sanitizer */
	for (int by_realloc = 0; by_realloc < 2; by_realloc++) {
		growing(by_realloc, 0);
		growing(by_realloc, 32 * PAGE);
	}
	doubling(false);
	doubling(true);
	protected_moves();
	for (int how = 0; how < 3; how++) {
		static const int flags[] = {0, MREMAP_MAYMOVE, MREMAP_MAYMOVE | MREMAP_FIXED};

		once_registered(0, 3, flags[how]);
		once_registered(7, 3, flags[how]);
		once_registered(17, 3, flags[how]);
		once_registered(0, 20, flags[how]);
	}
	remapping();
	moving_beside_writes(0);
	moving_beside_writes(MREMAP_FIXED);
	moving_beside_writes(MREMAP_DONTUNMAP);
	down();
	given_back(used);
	return 0;
}
