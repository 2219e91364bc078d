// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: ibv_fork_init() and the ranges. A child does not get a page from the first
 * ibv_dontfork_range() for it until the last ibv_dofork_range(). The library rounds ranges to whole
 * pages. A call that fails changes nothing. Each test runs in a process of its own, because a
 * process cannot undo ibv_fork_init().
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <infiniband/driver.h>

#include "fake_provider.h"
#include "libibverbs_smaps.h"

#define PAGES 16

static size_t page;
static char *memory;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition);      \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* Compares pages with the pattern, one letter each: c copied on fork, d not copied, - unmapped. */
static int is(const char *pattern)
{
	static const char letter[] = "-cd";
	size_t i;

	for (i = 0; pattern[i]; ++i)
		if (letter[page_is_dontcopy(memory + i * page) + 1] != pattern[i]) {
			fprintf(stderr, "page %zu is not '%c'\n", i, pattern[i]);
			return 0;
		}
	return 1;
}

static void *at(size_t n)
{
	return memory + n * page;
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
		page = sysconf(_SC_PAGESIZE);
		memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(memory != MAP_FAILED);
		child();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void counts_child(void)
{
	CHECK(!ibv_fork_init());
	CHECK(!ibv_fork_init());
	CHECK(is("cccccccc"));

	CHECK(!ibv_dontfork_range(at(1), 3 * page));
	CHECK(is("cdddcccc"));
	CHECK(!ibv_dontfork_range(at(2), 4 * page));
	CHECK(is("cdddddcc"));
	CHECK(!ibv_dontfork_range(at(0), 8 * page));
	CHECK(is("dddddddd"));

	CHECK(!ibv_dofork_range(at(1), 3 * page));
	CHECK(is("dddddddd"));
	CHECK(!ibv_dofork_range(at(0), 8 * page));
	CHECK(is("ccddddcc"));
	CHECK(!ibv_dofork_range(at(2), 2 * page));
	CHECK(is("ccccddcc"));
	CHECK(!ibv_dofork_range(at(4), 2 * page));
	CHECK(is("cccccccc"));

	/* A range is given back more often than it was taken: no count goes below 0. */
	CHECK(!ibv_dofork_range(at(0), 8 * page));
	CHECK(!ibv_dontfork_range(at(3), page));
	CHECK(is("cccdcccc"));
}

/*
 * qemu-user accepts MADV_DONTFORK but keeps nothing from children. The tests then return and do not
 * call cmocka's skip(), which would count as a failure.
 */
static bool emulated(void)
{
	const char *emulator = getenv("EMULATOR");

	if (!emulator || !*emulator)
		return false;
	print_message("# left out in an emulator: what children see\n");
	return true;
}

static void counts(void **state)
{
	(void)state;
	if (emulated())
		return;
	run(counts_child);
}

static void rounding_child(void)
{
	CHECK(!ibv_fork_init());
	CHECK(!ibv_dontfork_range((char *)at(1) + 10, 1));
	CHECK(is("cdcc"));
	CHECK(!ibv_dontfork_range((char *)at(2) - 1, 2));
	CHECK(is("cddc"));
	/* The range reaches to the last byte of a page, and not into the next one. */
	CHECK(!ibv_dontfork_range((char *)at(4) + 1, page - 1));
	CHECK(is("cddcdc"));
	CHECK(!ibv_dontfork_range(at(0), 0));
	CHECK(is("cddcdc"));
	CHECK(!ibv_dofork_range((char *)at(1) + 10, 1));
	CHECK(is("cddcdc"));
	CHECK(!ibv_dofork_range((char *)at(2) - 1, 2));
	CHECK(is("ccccdc"));
}

static void rounding(void **state)
{
	(void)state;
	if (emulated())
		return;
	run(rounding_child);
}

static void failure_child(void)
{
	CHECK(!ibv_fork_init());
	CHECK(!ibv_dontfork_range(at(0), page));
	CHECK(!munmap(at(5), page));
	CHECK(is("dcccc-cc"));
	errno = 0;
	CHECK(ibv_dontfork_range(at(0), 8 * page));
	CHECK(errno == ENOMEM);
	CHECK(is("dcccc-cc"));
	/* The counts are as they were. */
	CHECK(!ibv_dofork_range(at(0), page));
	CHECK(is("ccccc-cc"));
	CHECK(!ibv_dontfork_range(at(3), 2 * page));
	CHECK(is("cccdd-cc"));
}

static void failure_changes_nothing(void **state)
{
	(void)state;
	if (emulated())
		return;
	run(failure_child);
}

/* A program may unmap memory before it ends the registration. That is no failure. */
static void unmapped_child(void)
{
	CHECK(!ibv_fork_init());
	CHECK(!ibv_dontfork_range(at(0), 4 * page));
	CHECK(!munmap(at(1), page));
	CHECK(!ibv_dofork_range(at(0), 4 * page));
	CHECK(is("c-cc"));
}

static void unmapped_before_given_back(void **state)
{
	(void)state;
	/*
	 * Nor is memory of a 32-bit program unmapped for the kernel there: it belongs to the
	 * emulator.
	 */
	if (sizeof(void *) == 4 && emulated())
		return;
	run(unmapped_child);
}

static void too_late_child(void)
{
	CHECK(!ibv_dontfork_range(at(0), page));
	CHECK(!ibv_dofork_range(at(0), page));
	CHECK(is("cc"));
	CHECK(ibv_fork_init() == EINVAL);
	CHECK(!ibv_dontfork_range(at(0), page));
	CHECK(is("cc"));
}

static void too_late(void **state)
{
	(void)state;
	run(too_late_child);
}

static void children_see_nothing_child(void)
{
	int status;
	pid_t pid;

	CHECK(!ibv_fork_init());
	memset(memory, 1, 2 * page);
	CHECK(!ibv_dontfork_range(at(0), page));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		volatile char *p = at(1);

		/* The child has the page beside the range, and not the page in it. */
		_exit(p[0] == 1 && page_is_dontcopy(at(0)) == -1 ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

static void children_see_nothing(void **state)
{
	(void)state;
	if (emulated())
		return;
	run(children_see_nothing_child);
}

/*
 * ibv_reg_mr() first keeps the pages from children. It gives them back if it fails; otherwise
 * ibv_dereg_mr() does.
 */
static void registration_child(void)
{
	struct ibv_device **list;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	fake_provider_start();
	CHECK(!ibv_fork_init());
	list = ibv_get_device_list(NULL);
	CHECK(list && list[0]);
	context = ibv_open_device(list[0]);
	CHECK(context);
	pd = ibv_alloc_pd(context);
	CHECK(pd);

	mr = ibv_reg_mr(pd, at(1), 2 * page, 0);
	CHECK(mr && mr->addr == at(1) && mr->length == 2 * page && mr->pd == pd &&
	      mr->context == context);
	CHECK(is("cddc"));

	fake_hw.refuse_number = 9;
	fake_hw.refuse = EMFILE;
	errno = 0;
	CHECK(!ibv_reg_mr(pd, at(2), 2 * page, 0));
	CHECK(errno == EMFILE);
	CHECK(is("cddc"));

	/* If the pages cannot be kept from children, the library sends no command. */
	CHECK(!munmap(at(5), page));
	fake_hw.commands = 0;
	errno = 0;
	CHECK(!ibv_reg_mr(pd, at(4), 2 * page, 0));
	CHECK(errno == ENOMEM && !fake_hw.commands);

	fake_hw.refuse_number = 13;
	fake_hw.refuse = EBUSY;
	CHECK(ibv_dereg_mr(mr) == EBUSY);
	CHECK(is("cddc"));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(is("cccc"));

	CHECK(!ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(context));
	ibv_free_device_list(list);
	fake_provider_stop();
}

static void registration(void **state)
{
	(void)state;
	if (emulated())
		return;
	run(registration_child);
}

static int setup(void **state)
{
	(void)state;
	unsetenv("RDMAV_HUGEPAGES_SAFE");
	/* In some containers smaps shows no flags. */
	page = sysconf(_SC_PAGESIZE);
	return page_is_dontcopy(&page) == 0 ? 0 : -1;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),
		cmocka_unit_test(rounding),
		cmocka_unit_test(failure_changes_nothing),
		cmocka_unit_test(unmapped_before_given_back),
		cmocka_unit_test(too_late),
		cmocka_unit_test(children_see_nothing),
		cmocka_unit_test(registration),
	};

	return cmocka_run_group_tests_name("fork", tests, setup, NULL);
}
