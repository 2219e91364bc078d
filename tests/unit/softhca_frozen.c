// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which threads are made to let go of the device, by what the kernel says of them: those that a
 * signal has stopped, and those that a cgroup's freezer holds on their way back to user mode. What
 * the kernel says is made up here, since the freezer takes rights that a test may not have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/host/status.h"
#include "softhca/host/sys.h"

static const char *state, *tracer, *sleeps_in, *call, *seccomp = "0";

/* Both files that are not the status. */
static int fake_open(const char *path, int flags)
{
	const char *text = strstr(path, "/wchan") ? sleeps_in : call;
	int fd = memfd_create("proc", MFD_CLOEXEC);

	(void)flags;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static int fake_status(const char *path, struct sh_status_field *field, size_t n)
{
	const char *value[] = {state, tracer, "5", "7", seccomp};

	(void)path;
	assert_int_equal(n, 5);
	for (size_t i = 0; i < n; i++)
		snprintf(field[i].value, sizeof(field[i].value), "%s", value[i]);
	return 0;
}

#define sh_open_own    fake_open
#define sh_status_read fake_status
#include "softhca/host/stopped.c"

#define WORD 0x100000001
#define IP   0x401000

static struct sh_door door;
/* Of the thread: what it keeps, and the kernel's word. */
static struct sh_door *armed = &door;
static uint64_t cs = (uintptr_t)&door, reach;

/* Says that of a thread, and returns whether its door was opened. */
static bool opens(const char *its_state, const char *its_tracer, const char *where, int number)
{
	struct area area = {.cs = cs};
	struct sh_self thread = {.word = WORD,
				 .armed = armed,
				 .catches = &door,
				 .cs = &area.cs,
				 .mark = SH_MAGIC,
				 .reach = reach};
	char text[100];
	bool opened;
	int err;

	thread.sp = &thread;
	thread.witness = sh_witness(&err);
	memset(&door, 0, sizeof(door));
	snprintf(text, sizeof(text), "%d 0x%lx 0x%x\n", number, (long)&thread - 64, IP);
	state = its_state;
	tracer = its_tracer;
	sleeps_in = where;
	call = text;
	opened = sh_host_divert(NULL, (uint32_t)getpid(), (uint32_t)gettid(), (uintptr_t)&thread,
				WORD);
	assert_int_equal(door.start_ip, opened ? IP - 2 : 0);
	return opened;
}

static void stopped_by_a_signal(void **unused)
{
	(void)unused;
	assert_true(opens("T (stopped)", "0", "do_signal_stop", -1));
	assert_false(opens("T (stopped)", "1", "do_signal_stop", -1));
	assert_false(opens("t (tracing stop)", "1", "ptrace_stop", -1));
}

static void frozen_by_a_cgroup(void **unused)
{
	(void)unused;
	/* The second version; how the compiler has built the kernel decides on the name. */
	assert_true(opens("S (sleeping)", "0", "get_signal", -1));
	assert_true(opens("S (sleeping)", "0", "do_freezer_trap", 310));
	assert_false(opens("S (sleeping)", "1", "get_signal", -1));
	/* The first one. */
	assert_true(opens("D (disk sleep)", "0", "__refrigerator", -1));
	assert_false(opens("D (disk sleep)", "0", "__refrigerator", 202));
}

/* What a system call has begun takes place, and a page may come soon. */
static void asleep(void **unused)
{
	(void)unused;
	assert_false(opens("S (sleeping)", "0", "futex_wait_queue", 202));
	assert_false(opens("D (disk sleep)", "0", "folio_wait_bit_common", -1));
	assert_false(opens("S (sleeping)", "0", "0", -1)); /* a kernel that does not say */
	assert_false(opens("R (running)", "0", "get_signal", -1));
}

/* A thread that the kernel has disarmed passes its door at one place. */
static void disarmed(void **unused)
{
	(void)unused;
	cs = 0;
	assert_false(opens("T (stopped)", "0", "do_signal_stop", 310));
	reach = IP - 2; /* the instruction of the call, which has two bytes */
	assert_true(opens("T (stopped)", "0", "do_signal_stop", 310));
	seccomp = "2"; /* a filter may have the call made anew */
	assert_false(opens("T (stopped)", "0", "do_signal_stop", 310));
	seccomp = ""; /* a kernel without */
	assert_true(opens("T (stopped)", "0", "do_signal_stop", 310));
	seccomp = "0";
	armed = NULL;
	assert_false(opens("T (stopped)", "0", "do_signal_stop", 310));
	armed = &door;
	cs = 0x1000; /* another descriptor, the program's */
	assert_false(opens("T (stopped)", "0", "do_signal_stop", 310));
	cs = 0;
	for (reach = IP - 4; reach < IP + 2; reach++)
		assert_int_equal(opens("T (stopped)", "0", "do_signal_stop", 310), reach == IP - 2);
	reach = 0;
	cs = (uintptr_t)&door;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stopped_by_a_signal),
		cmocka_unit_test(frozen_by_a_cgroup),
		cmocka_unit_test(asleep),
		cmocka_unit_test(disarmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
