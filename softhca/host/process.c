// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The host table of this process, its clock and its complaints. Memory, events and timers have
 * files of their own.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "memory.h"
#include "moves.h"
#include "process.h"
#include "sys.h"

struct sh_process sh_process;

typedef int clock_fn(clockid_t, struct timespec *);

static int by_kernel(clockid_t id, struct timespec *ts)
{
	return (int)syscall(SYS_clock_gettime, id, ts);
}

static clock_fn *read_clock = by_kernel;

/*
 * The kernel's own function, which takes no system call. The C library's may be replaced: a program
 * that is given another time (libfaketime) has a device with timers all the same.
 */
static void find_clock(void)
{
	static const char *const name[] = {"__vdso_clock_gettime", "__kernel_clock_gettime"};
	void *vdso = NULL;

	if (getauxval(AT_SYSINFO_EHDR))
		vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
	for (size_t i = 0; vdso && i < sizeof(name) / sizeof(name[0]); i++) {
		clock_fn *fn = (clock_fn *)dlsym(vdso, name[i]);

		if (fn) {
			__atomic_store_n(&read_clock, fn, __ATOMIC_RELAXED);
			break;
		}
	}
}

static uint64_t clock_of(clockid_t id)
{
	struct timespec ts = {0};

	__atomic_load_n(&read_clock, __ATOMIC_RELAXED)(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t sh_now(void)
{
	return clock_of(CLOCK_MONOTONIC);
}

uint64_t sh_since_1970(void)
{
	return clock_of(CLOCK_REALTIME);
}

static uint64_t host_now(void *host)
{
	(void)host;
	return sh_now();
}

void sh_process_prepare(void)
{
	static bool done;

	/* Once: a second time would add to the vDSO's references. */
	if (__atomic_exchange_n(&done, true, __ATOMIC_RELAXED))
		return;
	find_clock();
	sh_helper_prepare();
	/* What was not found would leave an error for the program. */
	(void)dlerror();
}

/* Ten lines in the life of a process say enough; an overwritten table could cause millions. */
static void host_complain(void *host, const char *what, uint32_t hca, uint32_t number)
{
	static atomic_uint said;
	char line[320];
	int len;

	(void)host;
	if (atomic_fetch_add_explicit(&said, 1, memory_order_relaxed) >= 10)
		return;
	len = snprintf(line, sizeof(line),
		       "softhca: damaged device memory: %s (HCA %u, number 0x%x); a program has "
		       "overwritten it: stop the "
		       "instance and start it again\n",
		       what, hca, number);
	if (len > 0)
		sh_write(STDERR_FILENO, line,
			 len < (int)sizeof(line) ? (size_t)len : sizeof(line) - 1);
}

static int host_extend(void *host, uint64_t off, uint64_t len)
{
	(void)host;
	return sh_memory_extend(sh_process.dev, off, len);
}

static void host_gave_up(void *host)
{
	(void)host;
	sh_reach_forget(&sh_process.dev->inst->moves);
	sh_event_thrown();
	sh_helper_look();
}

static const struct sh_host_ops host_ops = {
	.copy = sh_host_copy,
	.seal = sh_host_seal,
	.reach = sh_host_reach,
	.reach_end = sh_host_reach_end,
	.event_begin = sh_host_event_begin,
	.event = sh_host_event,
	.event_written = sh_host_event_written,
	.defer = sh_host_defer,
	.wake = sh_host_wake,
	.rouse = sh_host_rouse,
	.divert = sh_host_divert,
	.stands = sh_host_stands,
	.gave_up = host_gave_up,
	.now = host_now,
	.extend = host_extend,
	.complain = host_complain,
};

int sh_process_init(struct sh_dev *dev, const char *dir)
{
	if (strlen(dir) >= sizeof(sh_process.dir) - 64)
		return -ENAMETOOLONG;
	if (strcmp(sh_process.dir, dir))
		sh_event_reset();
	/*
	 * A thread with this one's number may have been ended while it reached: the first of this
	 * process, when another thread executed this program.
	 */
	if (!sh_process.pid)
		sh_reach_forget(&dev->inst->moves);
	sh_process.dev = dev;
	sh_process.pid = getpid();
	strcpy(sh_process.dir, dir);
	dev->host = &sh_process;
	dev->ops = &host_ops;
	sh_process_prepare();
	sh_moves_begin(&dev->inst->moves);
	sh_helper_watch();
	return 0;
}

void sh_process_forked(void)
{
	sh_process.pid = getpid();
	sh_moves_forked();
	sh_event_forked();
	sh_helper_forked();
}

bool sh_page_size_known(long size, char *text, size_t len)
{
	if (size == 4096)
		return true;
	snprintf(text, len,
		 "softhca needs pages of 4096 bytes, and this kernel has pages of %ld: boot one "
		 "with pages of 4096 bytes, or run in a virtual machine with such a kernel",
		 size);
	return false;
}
