// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: calls on mappings mean for registered memory that has become device memory what they
 * mean for any memory: munmap, mmap and mprotect do what they say, in a signal handler too; what
 * was mapped in a region's place unseen stays as it is; and a stack that the program has mapped
 * grows.
 * Quick: half
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "shared_memory_test.h"

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

int main(void)
{
	uint64_t used;

	test_begin();
	used = hca_counter("shared_pages_used");
	for (int late = 0; late < 2; late++)
		join(spawn(growing_down, late));
	up();
	unmapping();
	unseen();
	interrupted();
	protecting();
	down();
	given_back(used);
	return 0;
}
