// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Brings an instance up: its place, its daemon, its lease. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softhca.h"
#include "softhca/host/instdir.h"
#include "softhca/host/places.h"

void complain_left(const char *dir, const struct sh_left *left)
{
	if (left->failed) {
		complain("cannot remove %s/%s, a leftover of an instance that has ended: %s%s; the "
			 "next softhca run or start tries again",
			 dir, left->path, left->why,
			 left->failed == EMFILE ? "; raise the limit of open files (ulimit -n 1024)"
						: "");
		return;
	}
	complain("%s/%s is left alone: %s; move it elsewhere, and the next softhca run or start "
		 "removes the rest of the instance",
		 dir, left->path, left->why);
}

int prepare_place(char path[PATH_MAX])
{
	static char tried[SH_PLACES * (PATH_MAX + SH_PLACE_WHY)]; /* the stack may be small */
	int err = sh_place_make(path, tried, sizeof(tried));

	if (!err)
		sh_instance_sweep(path, complain_left);
	else if (sh_place_named())
		complain("SOFTHCA_DIR cannot be used (%s): set it to a directory of yours that "
			 "only you can write to",
			 tried);
	else
		complain("there is no place for an instance (tried in turn: %s): mend one of "
			 "these, or set SOFTHCA_DIR to a "
			 "directory of yours that only you can write to",
			 tried);
	return err;
}

/* In the process that becomes the daemon. */
static void run_daemon(const char *dir, const struct run_options *opt, bool leased, int ready)
{
	struct sh_kernel_config cfg = {
		.dir = dir,
		.device = opt->device,
		.cm_timeout_ns = opt->cm_timeout_ns,
		.leased = leased,
	};
	const char *copy = getenv("SOFTHCA_QUEUES");
	const char *loopback = getenv("SOFTHCA_WIRE_LOOPBACK");

	cfg.copy_queues = copy && !strcmp(copy, "copy");
	if (loopback && !strcmp(loopback, "1") && !cfg.device.wire.n)
		cfg.device.loopback = true;
	_exit(sh_kernel_main(&cfg, ready));
}

int launch_daemon(const char *dir, const struct run_options *opt, bool leased)
{
	struct sh_status status = {.error = ECHILD};
	int ready[2];
	ssize_t got;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0) {
		complain("cannot start the daemon: cannot make a pipe: %s", strerror(errno));
		return -errno;
	}
	pid = fork();
	if (pid == 0) {
		/*
		 * Forks twice, so that the daemon is not a child of this process: the command may
		 * wait for all children.
		 */
		pid = fork();
		if (pid == 0)
			run_daemon(dir, opt, leased, ready[1]);
		_exit(pid < 0);
	}
	if (pid < 0) {
		int err = errno;

		complain("cannot start the daemon: %s%s", strerror(err),
			 err == EAGAIN ? ": this user has too many processes (ulimit -u), or the "
					 "container has (docker run --pids-limit)"
				       : "");
		close(ready[0]);
		close(ready[1]);
		return -err;
	}
	close(ready[1]);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	do
		got = read(ready[0], &status, sizeof(status));
	while (got < 0 && errno == EINTR);
	close(ready[0]);
	if (got != sizeof(status))
		status = (struct sh_status){.error = ECHILD,
					    .text = "the daemon ended before it was ready; dmesg "
						    "says whether the kernel killed it"};
	if (status.error && !(leased && status.error == EEXIST))
		complain("cannot start an instance in %s: %s", dir,
			 status.text[0] ? status.text : strerror(status.error));
	return -status.error;
}

int take_lease(const char *dir)
{
	char path[PATH_MAX];
	void *at;
	int fd;

	if (snprintf(path, sizeof(path), "%s/lease", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_SH) < 0) {
		int err = errno;

		if (fd >= 0)
			close(fd);
		return -err;
	}
	at = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return at == MAP_FAILED ? -errno : 0;
}
