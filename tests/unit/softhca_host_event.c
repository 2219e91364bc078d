// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a record that a process cannot write is left to the daemon, whatever the kernel says; and threads that want the
 * descriptors at the same time. The kernel's answers are made up here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "softhca/device/transport/gsi.h"
#include "softhca/host/process.h"
#include "softhca/host/reach.h"

static long made_write(int fd, const void *buf, size_t len);
static int made_utimens(int fd, const struct timespec times[2]);
static struct sh_evq *made_evq(const struct sh_dev *dev, uint32_t index);
static long made_syscall(long number, ...);
#define sh_reach_write	   made_write
#define sh_reach_utimens   made_utimens
#define sh_evq(dev, index) made_evq(dev, index)
#define syscall		   made_syscall
#include "softhca/host/event.c"
#undef syscall

#define EVQ   5
#define PIPE  20 /* the daemon's end of the queue's FIFO */
#define OTHER 0x1000

static struct sh_evq queue;
static struct sh_dev dev;
static long answers[3]; /* of write(), in turn */
static unsigned int writes;
static int utimens_says;
/* What the thread's kernel word says, and where its door is. */
static uint64_t cs;
static struct sh_door door;
static unsigned int waits, wakes;

static long made_write(int fd, const void *buf, size_t len)
{
	assert_int_equal(fd, PIPE);
	assert_int_equal(len, 8);
	assert_string_equal(buf, "record.");
	/* Nobody else uses the descriptor meanwhile. */
	assert_true(is_mine());
	return answers[writes++];
}

static int made_utimens(int fd, const struct timespec times[2])
{
	assert_int_equal(fd, PIPE);
	assert_int_equal(times[1].tv_sec, NEVER);
	return utimens_says;
}

static struct sh_evq *made_evq(const struct sh_dev *of, uint32_t index)
{
	assert_ptr_equal(of, &dev);
	return index == EVQ ? &queue : NULL;
}

/* A futex. A thread that waits is disarmed by that, and finds the lock free after its second wait. */
static long made_syscall(long number, ...)
{
	va_list args;
	int op;

	assert_int_equal(number, SYS_futex);
	va_start(args, number);
	assert_ptr_equal(va_arg(args, uint32_t *), &owner);
	op = va_arg(args, int);
	va_end(args);
	if (op == (FUTEX_WAKE | FUTEX_PRIVATE_FLAG)) {
		wakes++;
		return 1;
	}
	assert_int_equal(op, FUTEX_WAIT | FUTEX_PRIVATE_FLAG);
	assert_true(owner & SLEEPER);
	cs = 0;
	if (++waits == 2)
		owner = 0;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	queue = (struct sh_evq){.generation = 3, .tells = 1};
	sh_process.dev = &dev;
	sh_event_lend(EVQ, 3, PIPE);
	memset(answers, 0, sizeof(answers));
	answers[0] = 8;
	writes = waits = wakes = 0;
	utimens_says = 0;
	cs = 0;
	memset(&sh_self, 0, sizeof(sh_self));
	return 0;
}

static int raise_it(void)
{
	int err = sh_host_event_begin(NULL, EVQ);

	if (!err) {
		assert_true(is_mine());
		err = sh_host_event(NULL, EVQ, "record.", 8);
	}
	assert_int_equal(owner, 0);
	return err;
}

static void is_written(void **state)
{
	(void)state;
	assert_int_equal(raise_it(), 0);
	assert_int_equal(writes, 1);
}

static void begins_anew_after_a_signal(void **state)
{
	(void)state;
	answers[0] = answers[1] = -EINTR;
	answers[2] = 8;
	assert_int_equal(raise_it(), 0);
	assert_int_equal(writes, 3);
}

static void is_left_to_the_daemon(void **state)
{
	static const int errors[] = {EAGAIN, ENOMEM, EIO, EPERM, EBADF, EINVAL, ENOSPC, EPIPE};

	for (unsigned int i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		setup(state);
		answers[0] = -errors[i];
		assert_int_equal(raise_it(), -EAGAIN);
		assert_int_equal(writes, 1);
	}
	/* Nobody could tell whether it was written. */
	setup(state);
	utimens_says = -EROFS;
	assert_int_equal(raise_it(), -EAGAIN);
	assert_int_equal(writes, 0);
}

/* No process will read it. */
static void of_a_queue_that_has_ended(void **state)
{
	(void)state;
	queue.generation = 0;
	assert_int_equal(raise_it(), 0);
	assert_int_equal(writes, 0);
}

/* A thread was thrown: the lock that it held is free, and another one's is not touched. */
static void thrown_with_the_lock(void **state)
{
	(void)state;
	assert_int_equal(sh_host_event_begin(NULL, EVQ), 0);
	owner |= SLEEPER;
	sh_event_thrown();
	assert_int_equal(owner, 0);
	assert_int_equal(wakes, 1);
	owner = OTHER;
	sh_event_thrown();
	assert_int_equal(owner, OTHER);
	owner = 0;
	sh_event_thrown();
	assert_int_equal(owner, 0);
	assert_int_equal(wakes, 1);
}

/* In a signal handler on top of device code a thread that holds the lock must not wait for it. */
static void moves_nothing_under_its_own_lock(void **state)
{
	(void)state;
	assert_int_equal(sh_host_event_begin(NULL, EVQ), 0);
	assert_false(sh_event_move(PIPE));
	assert_int_equal(sh_host_event(NULL, EVQ, "record.", 8), 0);
}

/* Device code that has waited can be thrown again; a signal handler on top of it cannot. */
static void is_armed_after_a_wait(void **state)
{
	(void)state;
	sh_self = (struct sh_self){.word = 7, .armed = &door, .cs = &cs};
	owner = OTHER;
	assert_int_equal(sh_host_event_begin(NULL, EVQ), 0);
	assert_int_equal(waits, 2);
	assert_int_equal(cs, (uintptr_t)&door);
	/* Others may sleep, too. */
	assert_int_equal(sh_host_event(NULL, EVQ, "record.", 8), 0);
	assert_int_equal(wakes, 1);
	waits = 0;
	owner = OTHER;
	cs = (uintptr_t)&door;
	sh_event_forget(EVQ + 1);
	assert_int_equal(waits, 2);
	assert_int_equal(cs, 0);
	/* A pinned thread stays so, and one that is not in the device has no word of the kernel's. */
	waits = 0;
	owner = OTHER;
	sh_self.armed = NULL;
	assert_int_equal(sh_host_event_begin(NULL, EVQ), 0);
	assert_int_equal(cs, 0);
	assert_int_equal(sh_host_event(NULL, EVQ, "record.", 8), 0);
	waits = writes = 0;
	owner = OTHER;
	sh_self = (struct sh_self){0};
	assert_int_equal(sh_host_event_begin(NULL, EVQ), 0);
	assert_int_equal(waits, 2);
	assert_int_equal(sh_host_event(NULL, EVQ, "record.", 8), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(is_written, setup),
		cmocka_unit_test_setup(begins_anew_after_a_signal, setup),
		cmocka_unit_test_setup(is_left_to_the_daemon, setup),
		cmocka_unit_test_setup(of_a_queue_that_has_ended, setup),
		cmocka_unit_test_setup(thrown_with_the_lock, setup),
		cmocka_unit_test_setup(moves_nothing_under_its_own_lock, setup),
		cmocka_unit_test_setup(is_armed_after_a_wait, setup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
