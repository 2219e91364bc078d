// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tells whether the caller and softhca's helper are the only threads. For a moment after
 * pthread_join() has returned the kernel still counts the joined thread, because it clears the word
 * that pthread_join() sleeps on before it removes the thread. alone() waits for such a thread:
 * memory registered in that moment would otherwise stay private for as long as it is registered.
 * Allocates no memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "softhca/host/dirents.h"
#include "softhca/host/process.h"
#include "softhca/host/procstat.h"
#include "softhca/host/sys.h"
#include "alone.h"

#define MOMENT_NS   50000
#define PATIENCE_NS UINT64_C(2000000000)

/*
 * Is the thread in the middle of do_exit(), or a zombie of which a debugger has not heard yet? The
 * first thread does not count: if it ends before the others, it stays a zombie.
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
	return sh_proc_state(at, &state, &flags) && flags & SH_PF_EXITING &&
	       (state != 'Z' || tid != getpid());
}

/*
 * Are all other threads about to end? The answer decides only whether alone() waits. The search
 * ends at the first thread that lives.
 */
static bool others_exit(void)
{
	int self = (int)syscall(SYS_gettid), helper = sh_process_helper_thread();
	/* The helper may not have stored its number yet. */
	int unknown = sh_process_threads() && !helper;
	static int living; /* the thread that ended the last search: checked first */
	struct sh_dirents threads;
	const char *name;
	bool exiting = true;

	if (living && living != self && living != helper && !is_exiting(living))
		return false;
	if (sh_dirents_open(&threads, "/proc/self/task"))
		return false;
	while (exiting && (name = sh_dirents_next(&threads))) {
		int tid = atoi(name);

		if (!tid || tid == self || tid == helper || is_exiting(tid))
			continue;
		exiting = unknown-- > 0;
		if (!exiting)
			living = tid;
	}
	sh_close(threads.fd);
	return exiting && threads.got >= 0;
}

bool alone(void)
{
	static const struct timespec moment = {.tv_nsec = MOMENT_NS};
	uint64_t until = 0;
	struct stat st;

	while (!sh_stat("/proc/self/task", &st)) {
		/* The links are ., .. and one for each thread. */
		if (st.st_nlink <= (nlink_t)(3 + sh_process_threads()))
			return true;
		if (!others_exit())
			return false;
		/*
		 * By the clock, because a moment and a look may take long: the caller may hold the
		 * control connection.
		 */
		if (!until)
			until = sh_now() + PATIENCE_NS;
		else if (sh_now() >= until)
			return false;
		syscall(SYS_nanosleep, &moment, NULL);
	}
	return false;
}
