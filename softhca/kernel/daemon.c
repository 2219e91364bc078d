// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The daemon as a process: becomes one, with nothing of the process that started it, and runs the
 * kernel and its loop.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "softhca/host/sys.h"
#include "kern.h"
#include "kernel.h"
#include "server.h"
#include "wire_engine.h"

#define RESERVED 4096 /* descriptors */

/* All from first on but keep. Linux before 5.9 has no call for it. */
static void close_from(int first, int keep)
{
	struct dirent *entry;
	DIR *dir;
	int fd;

	if ((keep <= first || sh_sys(syscall(SYS_close_range, first, keep - 1, 0)) == 0) &&
	    sh_sys(syscall(SYS_close_range, keep < first ? first : keep + 1, ~0u, 0)) == 0)
		return;
	dir = opendir("/proc/self/fd");
	while (dir && (entry = readdir(dir))) {
		fd = atoi(entry->d_name);
		if (fd >= first && fd != keep && fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

/*
 * Makes room for the descriptors of a hundred clients while there is one thread. Once there are
 * more, the kernel enlarges the table only after each processor has been elsewhere, which takes
 * seconds where many programs compute.
 */
static void reserve_descriptors(int any, rlim_t limit)
{
	int fd = fcntl(any, F_DUPFD_CLOEXEC, (int)(limit < RESERVED ? limit : RESERVED) - 1);

	if (fd >= 0)
		close(fd);
}

/* Leaves the caller's session, terminal and directory. */
static void become_daemon(int keep)
{
	int null = open("/dev/null", O_RDWR);
	struct rlimit files;
	sigset_t all;

	setsid();
	umask(022);
	if (chdir("/") < 0)
		_exit(1);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	close_from(3, keep);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
		reserve_descriptors(keep, files.rlim_cur);
	}
}

int sh_kernel_main(const struct sh_kernel_config *cfg, int ready_fd)
{
	struct sh_kernel_config own = *cfg;
	struct sh_status st = {0};
	struct wire wire;
	struct kernel *k;
	int err;

	become_daemon(ready_fd);
	fcntl(ready_fd, F_SETFD, FD_CLOEXEC);
	/* First: the engine must not inherit locks, memory or threads. */
	err = wire_begin(&wire, &own.device.wire, cfg->dir, ready_fd, st.text, sizeof(st.text));
	k = calloc(1, sizeof(*k));
	if (!err)
		err = k ? kern_init(k, &own, st.text, sizeof(st.text)) : -ENOMEM;
	if (!err) {
		k->wire = wire;
		err = server_run(k, ready_fd, &st);
		wire = k->wire;
		wire_end(&wire, &own.device.wire);
		k->wire = wire;
		kern_exit(k);
	}
	wire_end(&wire, &own.device.wire);
	free(k);
	/* Last: when the command hears of a failure, nothing is left. */
	if (err < 0) {
		st.error = -err;
		(void)server_announce(ready_fd, &st);
	}
	return err < 0;
}
