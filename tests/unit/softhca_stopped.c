// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the door of a stopped thread is opened where the thread passes it, and the thread counts as thrown only if it has
 * not run meanwhile. What the kernel says of the thread is made up here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "softhca/device/memory/life.h"
#include "softhca/host/process.h"
#include "softhca/host/status.h"
#include "softhca/host/sys.h"
#include "softhca/host/witness.h"

static int made_open(const char *path, int flags);
static long made_read(int fd, void *buf, size_t len);
static int made_close(int fd);
static int made_status(const char *path, struct sh_status_field *field, size_t n);
static long made_readv(int pid, const struct iovec *local, unsigned long nlocal,
		       const struct iovec *remote, unsigned long nremote);
static long made_writev(int pid, uint64_t witness, struct iovec *local, unsigned long nlocal,
			struct iovec *remote, unsigned long nremote);
#define sh_open_own	  made_open
#define sh_read		  made_read
#define sh_close	  made_close
#define sh_status_read	  made_status
#define sh_vm_readv	  made_readv
#define sh_witness_writev made_writev
#include "softhca/host/stopped.c"

#define PID  700
#define TID  701
#define WORD UINT64_C(0x1234500000007)
/* Addresses in the other process. */
#define SELF_AT 0x7000000
#define DOOR_AT 0x7001000
#define AREA_AT 0x7002000
#define STACK	0x7ffd0000
#define IP	0x401002
#define REACH	0x402000

/* What one look at the thread finds. */
struct seen {
	const char *state, *tracer, *seccomp, *slept, *preempted, *wchan;
	const char *syscall; /* "running", or its beginning */
	uint64_t sp, ip;
};

static struct seen first, second; /* before the door is opened, and afterwards */
static struct sh_self self;
static struct area area;
static unsigned int written; /* how often the door was */
static uint64_t opened[2];   /* what was written */
static bool other_space;     /* the number is another address space's by now */
static char contents[256];   /* of the file that is open */
static size_t at;

static const struct seen *now(void)
{
	return written ? &second : &first;
}

static int made_open(const char *path, int flags)
{
	const struct seen *s = now();

	assert_int_equal(flags, O_RDONLY);
	at = 0;
	if (!strcmp(path, "/proc/700/task/701/wchan")) {
		snprintf(contents, sizeof(contents), "%s", s->wchan);
	} else if (!strcmp(path, "/proc/700/task/701/syscall")) {
		if (!strcmp(s->syscall, "running"))
			snprintf(contents, sizeof(contents), "running\n");
		else
			snprintf(contents, sizeof(contents), "%s 0x%llx 0x%llx\n", s->syscall,
				 (unsigned long long)s->sp, (unsigned long long)s->ip);
	} else {
		fail_msg("%s", path);
	}
	return 9;
}

static long made_read(int fd, void *buf, size_t len)
{
	size_t left = strlen(contents) - at;

	assert_int_equal(fd, 9);
	len = len < left ? len : left;
	memcpy(buf, contents + at, len);
	at += len;
	return (long)len;
}

static int made_close(int fd)
{
	assert_int_equal(fd, 9);
	return 0;
}

static int made_status(const char *path, struct sh_status_field *field, size_t n)
{
	const struct seen *s = now();

	assert_string_equal(path, "/proc/700/task/701/status");
	for (size_t i = 0; i < n; i++) {
		const char *name = field[i].name;
		const char *value = !strcmp(name, "State:")			? s->state
				    : !strcmp(name, "TracerPid:")		? s->tracer
				    : !strcmp(name, "Seccomp:")			? s->seccomp
				    : !strcmp(name, "voluntary_ctxt_switches:") ? s->slept
										: s->preempted;

		snprintf(field[i].value, sizeof(field[i].value), "%s", value);
	}
	return 0;
}

static long made_readv(int pid, const struct iovec *local, unsigned long nlocal,
		       const struct iovec *remote, unsigned long nremote)
{
	const uint64_t from = (uintptr_t)remote->iov_base;

	assert_int_equal(pid, TID);
	assert_true(nlocal == 1 && nremote == 1);
	if (from == SELF_AT)
		memcpy(local->iov_base, &self, sizeof(self));
	else if (from == AREA_AT)
		memcpy(local->iov_base, &area, sizeof(area));
	else
		return -EFAULT;
	return (long)local->iov_len;
}

static long made_writev(int pid, uint64_t witness, struct iovec *local, unsigned long nlocal,
			struct iovec *remote, unsigned long nremote)
{
	assert_int_equal(pid, PID);
	assert_int_equal(witness, self.witness);
	assert_true(nlocal == 1 && nremote == 1 && local[1].iov_len == sizeof(opened));
	assert_int_equal((uintptr_t)remote[1].iov_base,
			 DOOR_AT + offsetof(struct sh_door, start_ip));
	if (other_space)
		return -ESRCH;
	memcpy(opened, local[1].iov_base, sizeof(opened));
	written++;
	return sizeof(opened);
}

/* A thread that is stopped in front of its door, and stays so. */
static int setup(void **state)
{
	(void)state;
	first = second = (struct seen){
		.state = "T (stopped)",
		.tracer = "0",
		.seccomp = "0",
		.slept = "12",
		.preempted = "4",
		.wchan = "0",
		.syscall = "-1",
		.sp = STACK - 512,
		.ip = IP + 2,
	};
	self = (struct sh_self){
		.word = WORD,
		.armed = (struct sh_door *)DOOR_AT,
		.catches = (struct sh_door *)DOOR_AT,
		.cs = (uint64_t *)(AREA_AT + offsetof(struct area, cs)),
		.sp = (void *)STACK,
		.mark = SH_MAGIC,
		.witness = 77,
	};
	area = (struct area){.cs = DOOR_AT};
	written = 0;
	other_space = false;
	return 0;
}

static bool divert(void)
{
	return sh_host_divert(NULL, PID, TID, SELF_AT, WORD);
}

/* Not thrown, and nothing of it was changed. */
#define left_alone() (!divert() && !written)
/* The door is open, but the thread may have gone on before that. */
#define not_known() (!divert() && written == 1)

static void is_thrown(void **state)
{
	(void)state;
	assert_true(divert());
	assert_int_equal(written, 1);
	assert_int_equal(opened[0], IP);
	assert_int_equal(opened[1], 3);
}

static void is_thrown_where_it_stands(void **state)
{
	static const struct seen seen[] = {
		{.state = "t (tracing stop)"},
		/* The second version of the freezer; how the compiler has built the kernel decides on the name. */
		{.state = "S (sleeping)", .wchan = "do_freezer_trap", .syscall = "310 0x1 0x2"},
		{.state = "S (sleeping)", .wchan = "get_signal"},
		{.state = "D (disk sleep)", .wchan = "__refrigerator"}, /* the first version */
	};

	for (unsigned int i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
		setup(state);
		first.state = second.state = seen[i].state;
		if (seen[i].wchan)
			first.wchan = second.wchan = seen[i].wchan;
		if (seen[i].syscall)
			first.syscall = second.syscall = seen[i].syscall;
		assert_true(divert());
	}
}

/* Stopped, but the thread could go on elsewhere than the kernel says, or is not stopped. */
static void does_not_stand(void **state)
{
	static const struct seen seen[] = {
		{.state = "R (running)"},
		{.state = "R (running)", .wchan = "get_signal"},
		{.state = "S (sleeping)", .wchan = "futex_do_wait"},
		{.state = "S (sleeping)"}, /* a kernel that does not say where */
		{.state = "S (sleeping)", .wchan = "get_signal", .tracer = "5"},
		{.state = "D (disk sleep)", .wchan = "folio_wait_bit_common"},
		{.state = "D (disk sleep)", .wchan = "__refrigerator", .syscall = "202 0x1 0x2"},
		{.state = "T (stopped)", .tracer = "5"},
		{.state = "T (stopped)", .syscall = "running"},
		{.state = "T (stopped)", .slept = ""}, /* a kernel that does not count */
		{.state = "T (stopped)", .preempted = ""},
	};

	for (unsigned int i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
		setup(state);
		first.state = seen[i].state;
		if (seen[i].wchan)
			first.wchan = seen[i].wchan;
		if (seen[i].tracer)
			first.tracer = seen[i].tracer;
		if (seen[i].syscall)
			first.syscall = seen[i].syscall;
		if (seen[i].slept)
			first.slept = seen[i].slept;
		if (seen[i].preempted)
			first.preempted = seen[i].preempted;
		assert_true(left_alone());
	}
}

/* Between the looks the thread ran: it may have passed its door, and come back even to the same place. */
static void ran_meanwhile(void **state)
{
	second.slept = "13";
	assert_true(not_known());
	setup(state);
	second.preempted = "5";
	assert_true(not_known());
	setup(state);
	second.ip += 8;
	assert_true(not_known());
	setup(state);
	second.syscall = "running";
	assert_true(not_known());
	setup(state);
	second.state = "R (running)";
	assert_true(not_known());
	setup(state);
	second.tracer = "5";
	assert_true(not_known());
}

/* Another thread has the number, or another program the address. */
static void is_another_thread(void **state)
{
	self.word++;
	assert_true(left_alone());
	setup(state);
	self.mark++;
	assert_true(left_alone());
	setup(state);
	first.sp = STACK + 8;
	assert_true(left_alone());
	setup(state);
	first.sp = STACK - DEEPEST - 8;
	assert_true(left_alone());
	setup(state);
	first.sp = second.sp = STACK;
	assert_true(divert());
	setup(state);
	first.sp = second.sp = STACK - DEEPEST;
	assert_true(divert());
	setup(state);
	other_space = true;
	assert_true(left_alone());
	setup(state);
	self.witness = 0;
	assert_true(left_alone());
}

static void is_not_armed(void **state)
{
	self.armed = NULL; /* pinned */
	assert_true(left_alone());
	setup(state);
	self.catches = self.armed = NULL; /* cannot be thrown at all */
	assert_true(left_alone());
	setup(state);
	area.cs = 0; /* the kernel has disarmed it */
	assert_true(left_alone());
	setup(state);
	area.cs = DOOR_AT + sizeof(struct sh_door); /* a door of the program's own */
	assert_true(left_alone());
	setup(state);
	area.cpu_id = -1; /* no kernel looks there any more */
	assert_true(left_alone());
}

/* A thread that has stored what others see commits that first. */
static void is_about_to_commit(void **state)
{
	self.once = IP + 2 - SH_ONCE_COMMIT;
	assert_true(left_alone());
	setup(state);
	self.once = IP + 2 - SH_ONCE_COMMIT - SH_ONCE_EACH * (SH_ONCE_SIZES - 1);
	assert_true(left_alone());
	setup(state);
	self.once = IP + 2; /* the store before it */
	assert_true(divert());
}

/* After the system call in sh_reach_call() a disarmed thread looks at the door itself. */
static void comes_out_of_a_call(void **state)
{
	area.cs = 0;
	self.reach = IP;
	assert_true(divert());
	setup(state);
	area.cs = 0;
	self.reach = REACH; /* it is in another call */
	assert_true(left_alone());
	setup(state);
	area.cs = 0;
	self.reach = IP;
	first.seccomp = second.seccomp = "2"; /* a filter can let the call begin again */
	assert_true(left_alone());
	setup(state);
	first.seccomp = second.seccomp = ""; /* a kernel without filters */
	area.cs = 0;
	self.reach = IP;
	assert_true(divert());
	/* The instruction of a call has two bytes. */
	for (uint64_t reach = IP - 2; reach < IP + 4; reach++) {
		setup(state);
		area.cs = 0;
		self.reach = reach;
		assert_int_equal(divert(), reach == IP);
	}
	setup(state);
	self.armed = NULL; /* pinned */
	area.cs = 0;
	self.reach = IP;
	assert_true(left_alone());
}

/* For sh_host_stands() a tracer makes no difference. */
static void stands(void **state)
{
	(void)state;
	assert_true(sh_host_stands(NULL, PID, TID));
	first.tracer = "5";
	assert_true(sh_host_stands(NULL, PID, TID));
	first.state = "R (running)";
	assert_false(sh_host_stands(NULL, PID, TID));
	assert_int_equal(written, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(is_thrown, setup),
		cmocka_unit_test_setup(is_thrown_where_it_stands, setup),
		cmocka_unit_test_setup(does_not_stand, setup),
		cmocka_unit_test_setup(ran_meanwhile, setup),
		cmocka_unit_test_setup(is_another_thread, setup),
		cmocka_unit_test_setup(is_not_armed, setup),
		cmocka_unit_test_setup(is_about_to_commit, setup),
		cmocka_unit_test_setup(comes_out_of_a_call, setup),
		cmocka_unit_test_setup(stands, setup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
