// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Opens the door of a stopped thread of this instance, so that the thread does not go on where it
 * was stopped. softhca/device/memory/life.h has the rules, and says why the order of the steps here
 * makes this safe. This file reads /proc and the thread's struct sh_self, and writes the thread's
 * struct sh_door. It takes no lock and allocates nothing. The caller has the slot's lock `ending`.
 */
#include <string.h>

#include "softhca/device/memory/life.h"
#include "process.h"
#include "status.h"
#include "sys.h"
#include "witness.h"

#define DEEPEST	 (256 << 10) /* more stack than device code ever uses */
#define USER_END (UINT64_C(1) << 47)

/*
 * What the kernel says of a thread. Two looks tell whether the thread has run in between; sp tells
 * which thread it is.
 */
struct look {
	uint64_t switches;
	uint64_t ip, sp;
};

/* The head of the kernel's struct rseq. */
struct area {
	uint32_t cpu_id_start;
	int32_t cpu_id; /* negative: not registered (any more) */
	uint64_t cs;
};

/* Writes the path of a file in the thread's directory in /proc. */
static void path_of(uint32_t pid, uint32_t tid, const char *name, char path[64])
{
	const char *part[] = {NULL, "/task/", NULL, "/", name};
	char *at = stpcpy(path, "/proc/");

	for (unsigned int i = 0; i < 5; i++) {
		uint32_t number = i ? tid : pid;
		char digits[10];
		int k = 0;

		if (part[i]) {
			at = stpcpy(at, part[i]);
			continue;
		}
		do
			digits[k++] = (char)('0' + number % 10);
		while (number /= 10);
		while (k)
			*at++ = digits[--k];
	}
	*at = 0;
}

/* Such a file as a string. */
static bool slurp(uint32_t pid, uint32_t tid, const char *name, char *text, size_t room)
{
	size_t len = 0;
	char path[64];
	long n;
	int fd;

	path_of(pid, tid, name, path);
	fd = sh_open_own(path, O_RDONLY);
	if (fd < 0)
		return false;
	while (len < room - 1 && (n = sh_read(fd, text + len, room - 1 - len)) > 0)
		len += (size_t)n;
	sh_close(fd);
	text[len] = 0;
	return len > 0;
}

static uint64_t decimal(const char *at)
{
	uint64_t n = 0;

	while (*at >= '0' && *at <= '9')
		n = n * 10 + (uint64_t)(*at++ - '0');
	return n;
}

static uint64_t hex(const char *at)
{
	uint64_t n = 0;

	for (;; at++) {
		if (*at >= '0' && *at <= '9')
			n = n << 4 | (uint64_t)(*at - '0');
		else if (*at >= 'a' && *at <= 'f')
			n = n << 4 | (uint64_t)(*at - 'a' + 10);
		else
			return n;
	}
}

/*
 * Does a cgroup's freezer hold the thread, on its way back to user mode? The second version of the
 * freezer does so where a signal stops a thread. The first one holds some threads within a system
 * call, which goes on later; a thread that is in none shows that as call -1.
 */
static bool frozen(uint32_t pid, uint32_t tid)
{
	char text[256];

	if (!slurp(pid, tid, "wchan", text, sizeof(text)))
		return false;
	if (!strcmp(text, "get_signal") || !strcmp(text, "do_freezer_trap"))
		return true;
	return !strcmp(text, "__refrigerator") && slurp(pid, tid, "syscall", text, sizeof(text)) &&
	       !strncmp(text, "-1 ", 3);
}

/* Who else has a say in where a stopped thread goes on. */
struct others {
	bool tracer, filter; /* a seccomp filter */
};

/* Is the thread stopped by a signal or a tracer, or frozen? */
static bool stopped(uint32_t pid, uint32_t tid, uint64_t *switches, struct others *others)
{
	/* A kernel without seccomp does not have its line. */
	enum { STATE, TRACER, SLEPT, PREEMPTED, EACH, SECCOMP = EACH, FIELDS };
	struct sh_status_field field[FIELDS] = {
		[STATE] = {.name = "State:"},
		[TRACER] = {.name = "TracerPid:"},
		[SLEPT] = {.name = "voluntary_ctxt_switches:"},
		[PREEMPTED] = {.name = "nonvoluntary_ctxt_switches:"},
		[SECCOMP] = {.name = "Seccomp:"},
	};
	char path[64];

	path_of(pid, tid, "status", path);
	if (sh_status_read(path, field, FIELDS))
		return false;
	for (unsigned int i = 0; i < EACH; i++)
		if (!field[i].value[0])
			return false;
	others->tracer = decimal(field[TRACER].value) != 0;
	others->filter = decimal(field[SECCOMP].value) == 2;
	*switches = decimal(field[SLEPT].value) + decimal(field[PREEMPTED].value);
	return strchr("Tt", field[STATE].value[0]) ||
	       (strchr("SD", field[STATE].value[0]) && frozen(pid, tid));
}

/*
 * The same, and no tracer has it: that can make a thread go on elsewhere. It can also stop a thread
 * where a system call begins, which then takes place.
 */
static bool stopped_alone(uint32_t pid, uint32_t tid, uint64_t *switches, bool *filter)
{
	struct others others;

	if (!stopped(pid, tid, switches, &others) || others.tracer)
		return false;
	*filter = others.filter;
	return true;
}

/* Takes the last word, a hexadecimal number, off the text. */
static bool last_word(char *text, uint64_t *number)
{
	char *at = strrchr(text, ' ');

	if (!at || strncmp(at, " 0x", 3))
		return false;
	*number = hex(at + 3);
	*at = 0;
	return true;
}

/*
 * Finds where the thread goes on: at look->ip, or two bytes behind it. The kernel shows the place
 * only if the thread is off its processor, and stays off while the kernel looks; otherwise it shows
 * "running". The last word of the file is the address of the next instruction, the word before it
 * the stack pointer. ip is two bytes before that address: if the kernel restarts a system call, the
 * thread goes back to the instruction of the call, which has two bytes.
 */
static bool next_instruction(uint32_t pid, uint32_t tid, struct look *look)
{
	char text[256];

	if (!slurp(pid, tid, "syscall", text, sizeof(text)) || !last_word(text, &look->ip) ||
	    !last_word(text, &look->sp))
		return false;
	look->ip -= 2;
	return look->ip > 2 && look->ip < USER_END - 4;
}

static bool peek(uint32_t tid, void *to, uint64_t from, size_t len)
{
	struct iovec local = {.iov_base = to, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)from, .iov_len = len};

	return sh_vm_readv((int)tid, &local, 1, &remote, 1) == (long)len;
}

/* Writes nothing if another address space has the same number by now. */
static bool poke(uint32_t pid, uint64_t witness, uint64_t to, void *from, size_t len)
{
	struct iovec local[] = {{0}, {.iov_base = from, .iov_len = len}};
	struct iovec remote[] = {{0}, {.iov_base = (void *)(uintptr_t)to, .iov_len = len}};

	return witness && sh_witness_writev((int)pid, witness, local, 1, remote, 1) == (long)len;
}

/*
 * Is this the thread that has the slot, and does it pass its door? Its struct sh_self must name the
 * slot, its stack pointer must lie on the stack that sh_self names, and the kernel's word must
 * point to its door. Or it comes out of sh_reach_call(), where it looks at the door itself; with a
 * seccomp filter it may be about to make that call again. A thread that has stored what others see,
 * and is about to commit that, does not count.
 */
static bool passes(uint32_t tid, const struct look *look, bool filter, uint64_t word,
		   const struct sh_self *self)
{
	const uint64_t sp = (uintptr_t)self->sp;
	struct area area;

	if (self->mark != SH_MAGIC || self->word != word || !self->catches ||
	    self->armed != self->catches || sh_once_commits(self, look->ip + 2))
		return false;
	/*
	 * A thread has other numbers in other PID namespaces, so what the kernel said may be about
	 * another thread. The stack pointer tells.
	 */
	if (look->sp > sp || sp - look->sp > DEEPEST)
		return false;
	if (!peek(tid, &area, (uintptr_t)self->cs - offsetof(struct area, cs), sizeof(area)) ||
	    area.cpu_id < 0)
		return false;
	return area.cs == (uintptr_t)self->catches ||
	       (!area.cs && !filter && self->reach && look->ip == self->reach);
}

bool sh_host_divert(void *host, uint32_t pid, uint32_t tid, uint64_t self_at, uint64_t word)
{
	struct look before, after;
	struct sh_self self;
	uint64_t open[2];
	bool filter;

	(void)host;
	/*
	 * Step 1 of life.h. The switch count is read first and the next instruction then; step 3
	 * reads them in reverse, so the counts enclose everything else.
	 */
	if (!stopped_alone(pid, tid, &before.switches, &filter) ||
	    !next_instruction(pid, tid, &before))
		return false;
	/* Step 2. */
	if (!peek(tid, &self, self_at, sizeof(self)) || !passes(tid, &before, filter, word, &self))
		return false;
	open[0] = before.ip;
	open[1] = 3;
	if (!poke(pid, self.witness, (uintptr_t)self.catches + offsetof(struct sh_door, start_ip),
		  open, sizeof(open)))
		return false;
	/* Step 3. */
	return next_instruction(pid, tid, &after) &&
	       stopped_alone(pid, tid, &after.switches, &filter) && after.ip == before.ip &&
	       after.switches == before.switches;
}

bool sh_host_stands(void *host, uint32_t pid, uint32_t tid)
{
	struct others others;
	uint64_t switches;

	(void)host;
	return stopped(pid, tid, &switches, &others);
}
