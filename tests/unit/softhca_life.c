// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How a thread finds out whether others can throw it: it naps in front of a closed door, and sees whether the kernel
 * has disarmed it. What the kernel does in each nap is made up here. And what pinning leaves of a thread that is
 * armed, or is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

static long fake_syscall(long number, ...);
#define syscall fake_syscall
#include "softhca/device/memory/life.c"
#undef syscall

/* What happens in a nap. */
enum nap {
	WAITS = 1,     /* the thread goes to sleep, so that another one gets the processor */
	PREEMPTED = 2, /* an interrupt gives the processor to another one */
	DISARMED = 4,  /* the kernel has looked at the door */
};

static const enum nap *plan;
static unsigned int planned, naps;
static const char *release;
static bool counts;
static struct rusage usage;
static uint64_t cs;

/* The last nap of a plan is that of all times after it. */
static long take_nap(void)
{
	const enum nap nap = plan[naps < planned ? naps : planned - 1];

	assert_true(cs);
	naps++;
	usage.ru_nvcsw += !!(nap & WAITS);
	usage.ru_nivcsw += !!(nap & PREEMPTED);
	if (nap & DISARMED)
		cs = 0;
	return 0;
}

static long fake_syscall(long number, ...)
{
	struct utsname *name;
	struct rusage *to;
	va_list args;

	va_start(args, number);
	switch (number) {
	case SYS_nanosleep:
		va_end(args);
		return take_nap();
	case SYS_uname:
		name = va_arg(args, struct utsname *);
		snprintf(name->release, sizeof(name->release), "%s", release);
		break;
	case SYS_getrusage:
		assert_int_equal(va_arg(args, int), RUSAGE_THREAD);
		to = va_arg(args, struct rusage *);
		*to = usage;
		break;
	default:
		fail();
	}
	va_end(args);
	return number == SYS_getrusage && !counts ? -1 : 0;
}

#if defined(__x86_64__) && !defined(__ILP32__)
/* Says what happens in each nap, and returns what the thread finds out. */
#define looks(...)                                                                                 \
	looks_in((const enum nap[]){__VA_ARGS__},                                                  \
		 sizeof((enum nap[]){__VA_ARGS__}) / sizeof(enum nap))

static bool looks_in(const enum nap *nap, size_t n)
{
	bool is;

	plan = nap;
	planned = (unsigned int)n;
	naps = 0;
	is = kernel_looks(&cs);
	/* Whatever it is, the thread leaves no door behind. */
	assert_int_equal(cs, 0);
	return is;
}

static int setup(void **state)
{
	(void)state;
	release = "6.1.0-13-amd64";
	counts = true;
	return 0;
}

static void a_kernel_that_looks(void **state)
{
	(void)state;
	assert_true(looks(WAITS | DISARMED));
	assert_int_equal(naps, 2);
}

static void a_kernel_that_does_not(void **state)
{
	(void)state;
	assert_false(looks(WAITS));
	assert_int_equal(naps, 1);
	assert_false(looks(WAITS | DISARMED, WAITS));
}

/* Every kernel looks after an interrupt has led to a switch. */
static void a_nap_with_an_interrupt_says_nothing(void **state)
{
	(void)state;
	assert_false(looks(WAITS | PREEMPTED | DISARMED));
	assert_false(looks(PREEMPTED | DISARMED));
	assert_false(looks(WAITS | PREEMPTED | DISARMED, WAITS | PREEMPTED | DISARMED, WAITS));
	assert_true(looks(WAITS | PREEMPTED | DISARMED, PREEMPTED | DISARMED, WAITS | DISARMED));
}

/* On a virtual machine whose processor stood for a moment, the timer ends before the thread sleeps. */
static void a_nap_without_a_switch_says_nothing(void **state)
{
	(void)state;
	assert_true(looks(0, WAITS | DISARMED));
	assert_true(looks(WAITS | DISARMED, 0, 0, WAITS | DISARMED));
	assert_false(looks(0, WAITS));
	assert_false(looks(0));
}

static void releases(void **state)
{
	static const struct {
		const char *release;
		bool looks;
	} of[] = {{"4.17.0", true},
		  {"5.15.0-generic", true},
		  {"6.18.44", true},
		  {"6.19.0", false},
		  {"6.19.0-rc1", false},
		  {"7.0.1", false},
		  {"3.10.0", false},
		  {"6", false},
		  {"", false}};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		release = of[i].release;
		assert_int_equal(looks(WAITS | DISARMED), of[i].looks);
	}
}

static void a_kernel_that_does_not_count(void **state)
{
	(void)state;
	counts = false;
	assert_false(looks(WAITS | DISARMED));
}

/* As before after the pin: a thread that the kernel has disarmed may be in a signal handler on top of device code. */
static void pins_leave_a_thread_as_it_was(void **state)
{
	static struct sh_door door;

	(void)state;
	for (int disarmed = 0; disarmed < 2; disarmed++) {
		const uint64_t was = disarmed ? 0 : (uintptr_t)&door;
		struct sh_door *outer, *inner;

		cs = was;
		sh_self.cs = &cs;
		sh_self.armed = &door;
		outer = sh_pin();
		assert_null(sh_self.armed);
		assert_int_equal(cs, 0);
		inner = sh_pin();
		sh_unpin(inner);
		assert_null(sh_self.armed);
		assert_int_equal(cs, 0);
		sh_unpin(outer);
		assert_ptr_equal(sh_self.armed, &door);
		assert_int_equal(cs, was);
	}
	sh_self.armed = NULL;
	cs = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_kernel_that_looks, setup),
		cmocka_unit_test_setup(a_kernel_that_does_not, setup),
		cmocka_unit_test_setup(a_nap_with_an_interrupt_says_nothing, setup),
		cmocka_unit_test_setup(a_nap_without_a_switch_says_nothing, setup),
		cmocka_unit_test_setup(releases, setup),
		cmocka_unit_test_setup(a_kernel_that_does_not_count, setup),
		cmocka_unit_test(pins_leave_a_thread_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	return 77;
}
#endif
