// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tells a user that softhca is why a program sees no device, in one line on standard error. The
 * line comes when the program looks for devices, not before: most programs below `softhca run`
 * never look, and print nothing. Owns the text that waits for that moment. It is written once,
 * before any other thread exists. Allocates no memory.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "softhca/host/sys.h"
#include "attach.h"
#include "say.h"

static char waiting[512];
static bool said;

static void vsay(char *line, size_t size, const char *format, va_list args)
{
	int head = snprintf(line, size, "softhca: %s: ", program_invocation_short_name), len;

	if (head < 0 || head >= (int)size)
		head = 0;
	len = vsnprintf(line + head, size - (size_t)head - 1, format, args);
	if (len < 0)
		return;
	strcat(line, "\n");
}

void shim_say(const char *format, ...)
{
	char line[512];
	va_list args;

	line[0] = '\0';
	va_start(args, format);
	vsay(line, sizeof(line), format, args);
	va_end(args);
	sh_write(STDERR_FILENO, line, strlen(line));
}

void shim_say_later(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsay(waiting, sizeof(waiting), format, args);
	va_end(args);
}

void shim_say_now(const char *path)
{
	if (!waiting[0] ||
	    (strncmp(path, "/sys/class/infiniband", 21) && strncmp(path, "/dev/infiniband", 15)))
		return;
	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		sh_write(STDERR_FILENO, waiting, strlen(waiting));
}

void shim_say_unreachable(int err)
{
	static bool once;

	if (__atomic_exchange_n(&once, true, __ATOMIC_RELAXED))
		return;
	switch (err) {
	case -ENOENT:
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EPIPE:
		shim_say("no device can be opened: the daemon of the instance %s has ended; start "
			 "the instance and the "
			 "program again",
			 shim.dir);
		break;
	case -ESRCH:
		shim_say("no device can be opened: there is no /proc, through which softhca "
			 "reaches the instance: mount it "
			 "(mount -t proc proc /proc)");
		break;
	case -ENOSPC:
		shim_say("no device can be opened: the file system of the instance %s is full: "
			 "free some space there",
			 shim.dir);
		break;
	case -EPERM:
		shim_say("no device can be opened: the daemon of the instance may not reach the "
			 "memory of this process "
			 "(process_vm_readv): it has another user or PID namespace, its executable "
			 "cannot be read, it has called prctl(PR_SET_DUMPABLE, 0), or a security "
			 "profile forbids it; see softhca doctor");
		break;
	case -EPROTO:
		shim_say("no device can be opened: the instance %s was started by another version "
			 "of softhca; start it again "
			 "with this one",
			 shim.dir);
		break;
	case -EAGAIN:
		shim_say("no device can be opened: the instance %s has no room for more processes; "
			 "end some of them, or start it under a higher limit of descriptors "
			 "(ulimit -n)",
			 shim.dir);
		break;
	case -ENFILE:
		shim_say("the instance %s has no descriptor left for a file of this program; end "
			 "some programs, or start the instance under a higher limit of "
			 "descriptors (ulimit -n)",
			 shim.dir);
		break;
	case -ENOMEM:
		shim_say("no device can be opened: device memory cannot be mapped, because the "
			 "limit of addresses is too "
			 "low: ulimit -v unlimited");
		break;
	}
}
