// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Does no thread run but the caller and softhca's helper? The kernel counts the threads of a
 * process, and counts one for a moment longer than pthread_join() waits for: the word that
 * pthread_join() sleeps on is cleared first. Such a thread is waited for, since what is registered
 * just then would stay private for as long as it is registered. Allocates nothing.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "alone.h"
#include "shim.h"
#include "softhca/host/process.h"
#include "softhca/host/procstat.h"

#define MOMENT_NS   50000
#define PATIENCE_NS 2000000000

#define EXITING 0x4 /* PF_EXITING: the thread is past its last instruction of user code */

/*
 * In the middle of do_exit(), or a zombie until a debugger has heard of it. The first thread, ended
 * before the others, is one that stays.
 */
static bool is_exiting(int tid)
{
	char path[64], text[512], state;
	unsigned int flags;
	const char *at;
	int err;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	at = sh_proc_stat(path, text, sizeof(text), &err);
	if (!at)
		return err == -ENOENT || err == -ESRCH;
	return sscanf(at, " %c %*d %*d %*d %*d %*d %u", &state, &flags) == 2 && flags & EXITING &&
	       (state != 'Z' || tid != getpid());
}

/* Nothing is decided by this but whether to wait; it ends at the first thread that lives. */
static bool others_exit(void)
{
	int self = (int)syscall(SYS_gettid), helper = sh_process_helper_thread();
	/* The helper has not got to saying its number. */
	int unknown = sh_process_threads() && !helper;
	_Alignas(struct dirent64) char text[1024];
	static int living; /* the one that was found so the last time: it is looked at first */
	bool exiting = true;
	long got = 0;
	int fd;

	if (living && living != self && living != helper && !is_exiting(living))
		return false;
	fd = sh_open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (exiting && (got = sh_sys(syscall(SYS_getdents64, fd, text, sizeof(text)))) > 0) {
		const struct dirent64 *d;

		for (long at = 0; exiting && at < got; at += d->d_reclen) {
			int tid;

			d = (const struct dirent64 *)(text + at);
			tid = atoi(d->d_name);
			if (!tid || tid == self || tid == helper || is_exiting(tid))
				continue;
			exiting = unknown-- > 0;
			if (!exiting)
				living = tid;
		}
	}
	sh_close(fd);
	return exiting && got >= 0;
}

bool alone(void)
{
	static const struct timespec moment = {.tv_nsec = MOMENT_NS};
	struct stat st;

	for (int i = 0; !sh_stat("/proc/self/task", &st); i++) {
		/* . and .. and one for each thread */
		if (st.st_nlink <= (nlink_t)(3 + sh_process_threads()))
			return true;
		if (i == PATIENCE_NS / MOMENT_NS || !others_exit())
			return false;
		syscall(SYS_nanosleep, &moment, NULL);
	}
	return false;
}
