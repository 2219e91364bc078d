// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a test leaves out, and why: the limit of locked memory, user namespaces. verbs_test.h says
 * how a test uses it.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_test.h"

static char skipped[1000]; /* the reasons, each with "; " behind it */
static bool lacks_memory;

void skip_part(const char *fmt, ...)
{
	size_t at = strlen(skipped);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(skipped + at, sizeof(skipped) - at, fmt, ap);
	va_end(ap);
	at = strlen(skipped);
	snprintf(skipped + at, sizeof(skipped) - at, "; ");
}

int test_end(void)
{
	if (!*skipped)
		return 0;
	fflush(NULL);
	if (lacks_memory)
		printf("%sraise that limit by a line in /etc/security/limits.d, or docker run "
		       "--ulimit memlock=-1; the rest passed\n",
		       skipped);
	else
		printf("%sthe rest passed\n", skipped);
	return 77;
}

void lacks_memory_for(const char *part, size_t bytes, uint64_t limit)
{
	lacks_memory = true;
	skip_part("%s locks %zu KiB, and ulimit -l is %" PRIu64, part, bytes / 1024, limit / 1024);
}

bool may_lock(size_t bytes, const char *part)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct rlimit limit;
	bool may;

	CHECK(mem != MAP_FAILED);
	/*
	 * The kernel's own word, which knows of user namespaces. No page is touched. One that has
	 * no such call may lock, and is tried.
	 */
	may = !syscall(SYS_mlock2, mem, bytes, MLOCK_ONFAULT) ||
	      (errno != ENOMEM && errno != EPERM);
	munmap(mem, bytes);
	if (may)
		return true;
	CHECK_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	lacks_memory_for(part, bytes, limit.rlim_cur);
	return false;
}

bool has_namespaces(void)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid)
		_exit(unshare(CLONE_NEWUSER) ? 1 : 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return !status;
}
