// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: with RDMAV_HUGEPAGES_SAFE the library rounds a range to the page size that
 * /proc/self/smaps gives for its mapping. The machine needs no huge pages for this: the program
 * replaces fopen() and madvise(). So it invents what the library reads there, and sees what the
 * library asks for.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <infiniband/driver.h>

#include "libibverbs_smaps.h"

#define HUGE_PAGE ((uintptr_t)2 << 20)
/* An address that fits in 32 bits, too. */
#define BASE ((uintptr_t)0xb0000000)

/* Three huge pages at BASE, with small ones behind them. */
static const char smaps_text[] =
	"b0000000-b0600000 rw-p 00000000 00:0f 1 /anon_hugepage (deleted)\n"
	"Size:               6144 kB\n"
	"KernelPageSize:     2048 kB\n"
	"MMUPageSize:        2048 kB\n"
	"VmFlags: rd wr mr mw me de ht\n"
	"b0600000-b0a00000 rw-p 00000000 00:00 0\n"
	"Size:               4096 kB\n"
	"KernelPageSize:        4 kB\n"
	"VmFlags: rd wr mr mw me ac\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n"
	"KernelPageSize:        4 kB\n";

static int invented;

static struct {
	uintptr_t start;
	size_t len;
	int advice;
} asked[16];
static int num_asked;

/* The C library has two names for fopen(), and libibverbs may call either. */
FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));

FILE *fopen(const char *path, const char *mode)
{
	if (invented && !strncmp(path, "/proc/", 6) && strstr(path, "/smaps"))
		return fmemopen((void *)smaps_text, strlen(smaps_text), "r");
	return ((__typeof__(&fopen))dlsym(RTLD_NEXT, "fopen"))(path, mode);
}

int madvise(void *start, size_t len, int advice)
{
	if (!invented || (uintptr_t)start < BASE || (uintptr_t)start >= BASE + 16 * HUGE_PAGE)
		return syscall(SYS_madvise, start, len, advice);
	if (num_asked < 16) {
		asked[num_asked].start = (uintptr_t)start;
		asked[num_asked].len = len;
		asked[num_asked].advice = advice;
	}
	++num_asked;
	return 0;
}

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition);      \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static int asked_for(uintptr_t offset, size_t len, int advice)
{
	int right = num_asked == 1 && asked[0].start == BASE + offset && asked[0].len == len &&
		    asked[0].advice == advice;

	if (!right)
		fprintf(stderr,
			"%d calls of madvise(), the first: start 0x%lx, length 0x%zx, advice %d\n",
			num_asked, (long)asked[0].start, asked[0].len, asked[0].advice);
	num_asked = 0;
	return right;
}

static void run(void (*child)(void))
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(60);
		child();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void with_variable_child(void)
{
	setenv("RDMAV_HUGEPAGES_SAFE", "1", 1);
	CHECK(!ibv_fork_init());
	invented = 1;

	CHECK(!ibv_dontfork_range((void *)(BASE + 100), 5000));
	CHECK(asked_for(0, HUGE_PAGE, MADV_DONTFORK));
	/* A second range in the same huge page, then a range in that page and the next. */
	CHECK(!ibv_dontfork_range((void *)(BASE + HUGE_PAGE - 1), 1));
	CHECK(!num_asked);
	CHECK(!ibv_dontfork_range((void *)(BASE + HUGE_PAGE - 1), 2));
	CHECK(asked_for(HUGE_PAGE, HUGE_PAGE, MADV_DONTFORK));

	CHECK(!ibv_dofork_range((void *)(BASE + 100), 5000));
	CHECK(!ibv_dofork_range((void *)(BASE + HUGE_PAGE - 1), 1));
	CHECK(!num_asked);
	CHECK(!ibv_dofork_range((void *)(BASE + HUGE_PAGE - 1), 2));
	CHECK(asked_for(0, 2 * HUGE_PAGE, MADV_DOFORK));

	/* Behind the huge pages the library rounds to small ones. */
	CHECK(!ibv_dontfork_range((void *)(BASE + 3 * HUGE_PAGE + 100), 10));
	CHECK(asked_for(3 * HUGE_PAGE, sysconf(_SC_PAGESIZE), MADV_DONTFORK));
}

static void with_variable(void **state)
{
	(void)state;
	run(with_variable_child);
}

static void without_variable_child(void)
{
	unsetenv("RDMAV_HUGEPAGES_SAFE");
	CHECK(!ibv_fork_init());
	invented = 1;
	CHECK(!ibv_dontfork_range((void *)(BASE + 100), 10));
	CHECK(asked_for(0, sysconf(_SC_PAGESIZE), MADV_DONTFORK));
}

static void without_variable(void **state)
{
	(void)state;
	run(without_variable_child);
}

/* The same with real huge pages, if the machine has some. */
static void real_child(void)
{
	char *memory =
		mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1, 0);

	if (memory == MAP_FAILED) {
		fprintf(stderr, "# this machine has no huge pages reserved\n");
		return;
	}
	setenv("RDMAV_HUGEPAGES_SAFE", "1", 1);
	CHECK(!ibv_fork_init());
	CHECK(!ibv_dontfork_range(memory + 5000, 100));
	CHECK(page_is_dontcopy(memory) == 1);
	CHECK(page_is_dontcopy(memory + HUGE_PAGE) == 0);
	CHECK(!ibv_dofork_range(memory + 5000, 100));
	CHECK(page_is_dontcopy(memory) == 0);
}

static void real_huge_pages(void **state)
{
	(void)state;
	run(real_child);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_variable),
		cmocka_unit_test(without_variable),
		cmocka_unit_test(real_huge_pages),
	};

	return cmocka_run_group_tests_name("huge pages", tests, NULL, NULL);
}
