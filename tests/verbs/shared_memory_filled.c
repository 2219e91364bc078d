// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: pages that the program fills itself when they are touched, by userfaultfd(), are
 * filled when they are registered, and beside registered memory. The answer to a command waits for
 * its page, and nothing else waits with it. Run as often as repeat() says.
 *
 * Seconds: 900
 * Quick: half
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shared_memory_test.h"

enum { FILLED = 32 }; /* pages */

static void fills(int fd)
{
	static uint8_t page[PAGE] __attribute__((aligned(PAGE)));
	struct uffd_msg msg;

	CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
	while (read(fd, &msg, sizeof(msg)) == sizeof(msg)) {
		struct uffdio_copy copy = {.src = (uintptr_t)page, .len = PAGE};

		if (msg.event != UFFD_EVENT_PAGEFAULT)
			continue;
		copy.dst = msg.arg.pagefault.address & ~(PAGE - 1);
		fill(page, PAGE, copy.dst);
		CHECK_EQ(ioctl(fd, UFFDIO_COPY, &copy), 0);
	}
	_exit(1);
}

/* The descriptor of one, or -1. */
static int open_userfaultfd(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		printf("# userfaultfd() takes a privilege: that part is left out\n");
	else
		CHECK_EQ(ioctl(fd, UFFDIO_API, &api), 0);
	return fd;
}

/* Another process is to fill the pages. Returns what ioctl() returns. */
static int give(int fd, uint8_t *mem)
{
	struct uffdio_register r = {.range = {(uintptr_t)mem, FILLED * PAGE},
				    .mode = UFFDIO_REGISTER_MODE_MISSING};

	return ioctl(fd, UFFDIO_REGISTER, &r);
}

static pid_t start_filling(int fd)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		fills(fd);
	return pid;
}

/* The other process has filled each page. */
static void is_filled(const uint8_t *mem)
{
	for (const uint8_t *p = mem; p < mem + FILLED * PAGE; p += PAGE)
		CHECK_EQ(differs(p, PAGE, (uintptr_t)p), -1);
}

static void filled(int arg)
{
	int fd = open_userfaultfd();
	uint8_t *mem, *heap = malloc(3 * PAGE);
	struct ibv_mr *mr, *before;
	pid_t pid;

	(void)arg;
	if (fd < 0)
		return;
	up();
	before = reg(heap, 3 * PAGE);
	mem = pages(FILLED);
	CHECK_EQ(give(fd, mem), 0);
	pid = start_filling(fd);
	mr = reg(mem, FILLED * PAGE);
	is_filled(mem);
	through(mr, mem, 4 * PAGE, 1);
	through(before, heap, 3 * PAGE, 2);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dereg_mr(before), 0);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	join_killed(pid, SIGKILL);
	munmap(mem, FILLED * PAGE);
	free(heap);
	close(fd);
	down();
}

static void *sits(void *arg)
{
	pause();
	return arg;
}

static struct {
	uint8_t *answer;
	int over;
} late;

static void *asks(void *arg)
{
	struct {
		uint32_t number;
		uint16_t in, out; /* in words */
		uint64_t answer;
	} query_device = {1, sizeof(query_device) / 4, 44, (uintptr_t)late.answer};

	CHECK_EQ(write(s.context->cmd_fd, &query_device, sizeof(query_device)),
		 sizeof(query_device));
	__atomic_store_n(&late.over, 1, __ATOMIC_SEQ_CST);
	return arg;
}

static void fills_answer(int fd)
{
	struct uffdio_zeropage zero = {.range = {(uintptr_t)late.answer, PAGE}};

	CHECK_EQ(ioctl(fd, UFFDIO_ZEROPAGE, &zero), 0);
}

/* From stores, or not. */
static void protects_answer(int fd, bool protect)
{
	struct uffdio_writeprotect w = {.range = {(uintptr_t)late.answer, PAGE},
					.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0};

	CHECK_EQ(ioctl(fd, UFFDIO_WRITEPROTECT, &w), 0);
}

static void lifts_protection(int fd)
{
	protects_answer(fd, false);
}

/*
 * A thread waits for an answer, until the program calls let_in(fd) for its page. Neither the daemon
 * nor another thread waits.
 */
static void answered_late(int fd, void (*let_in)(int fd))
{
	pthread_t thread;

	late.over = 0;
	CHECK_EQ(pthread_create(&thread, NULL, asks, NULL), 0);
	for (int i = 0; i < 100; i++) {
		struct ibv_context *other = open_device(0);

		sleep_ms(1);
		CHECK_EQ(ibv_close_device(other), 0);
	}
	CHECK(!__atomic_load_n(&late.over, __ATOMIC_SEQ_CST));
	let_in(fd);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	/* The device's GUID, behind the version of its firmware. */
	CHECK_EQ(memcmp(late.answer + 8, &(uint64_t){0}, 8) != 0, 1);
	munmap(late.answer, FILLED * PAGE);
	close(fd);
	down();
}

/* The answer to a command goes to a page that the program has yet to fill. */
static void answered_missing(int arg)
{
	int fd = open_userfaultfd();

	(void)arg;
	if (fd < 0)
		return;
	up();
	late.answer = pages(FILLED);
	CHECK_EQ(give(fd, late.answer), 0);
	answered_late(fd, fills_answer);
}

/* It goes to a page that the program protects, and is told of stores to. */
static void answered_protected(int arg)
{
	int fd = open_userfaultfd();
	struct uffdio_register r = {.mode = UFFDIO_REGISTER_MODE_WP};

	(void)arg;
	if (fd < 0)
		return;
	up();
	late.answer = pages(FILLED);
	memset(late.answer, 0, FILLED * PAGE);
	r.range = (struct uffdio_range){(uintptr_t)late.answer, FILLED * PAGE};
	CHECK_EQ(ioctl(fd, UFFDIO_REGISTER, &r), 0);
	protects_answer(fd, true);
	answered_late(fd, lifts_protection);
}

/*
 * Beside a thread the memory stays device memory, which has no missing pages: the program is told
 * so, and its memory is as it was. What it has not registered is filled.
 */
static void filled_beside(int arg)
{
	int fd = open_userfaultfd(), ret;
	pthread_t thread;
	struct ibv_mr *mr;
	uint8_t *mem;
	bool shared;
	pid_t pid;

	(void)arg;
	if (fd < 0)
		return;
	up();
	mem = pages(FILLED);
	shared = shares(mem, FILLED * PAGE, &mr);
	CHECK_EQ(pthread_create(&thread, NULL, sits, NULL), 0);
	fill(mem, FILLED * PAGE, 3);
	ret = give(fd, mem);
	if (shared) {
		CHECK_EQ(ret, -1);
		CHECK_EQ(errno, ENOMEM);
		CHECK_EQ(differs(mem, FILLED * PAGE, 3), -1);
		through(mr, mem, 4 * PAGE, 1);
		munmap(mem, FILLED * PAGE);
		mem = pages(FILLED);
		ret = give(fd, mem);
	}
	CHECK_EQ(ret, 0);
	pid = start_filling(fd);
	CHECK_EQ(madvise(mem, FILLED * PAGE, MADV_DONTNEED), 0);
	is_filled(mem);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	join_killed(pid, SIGKILL);
}

int main(int argc, char **argv)
{
	test_begin();
	repeat(argc, argv, "filled", filled);
	repeat(argc, argv, "filled_beside", filled_beside);
	repeat(argc, argv, "answered_missing", answered_missing);
	repeat(argc, argv, "answered_protected", answered_protected);
	return 0;
}
