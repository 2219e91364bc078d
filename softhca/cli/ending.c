// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Ends an instance: tells its daemon, and waits until both the daemon and the directory are gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "softhca.h"
#include "softhca/host/client.h"
#include "softhca/host/sys.h"

#define PATIENCE_MS 60000 /* 256 hosts have 60,000 files, and a busy disk takes its time */

static int open_lock(const char *dir)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/lock", dir) >= (int)sizeof(path))
		return -1;
	return open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* A pidfd of the process that listens; -1 if it has no number in this PID namespace. */
static int open_daemon(int control)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(control, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.pid <= 0)
		return -1;
	return (int)syscall(SYS_pidfd_open, cred.pid, 0);
}

/*
 * The directory goes first, then the lock, then the process. The process matters because the caller
 * of this command might see it as a child of its own.
 */
static int await(int lock, int daemon)
{
	static const struct timespec tick = {.tv_nsec = 1000000};
	struct pollfd end = {.fd = daemon, .events = POLLIN};
	int waited;

	for (waited = 0; lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) < 0; waited++) {
		if (waited >= PATIENCE_MS)
			return -ETIMEDOUT;
		nanosleep(&tick, NULL);
	}
	if (lock >= 0)
		flock(lock, LOCK_UN);
	return daemon < 0 || poll(&end, 1, PATIENCE_MS) != 0 ? 0 : -ETIMEDOUT;
}

int end_instance(int control, const char *dir)
{
	const struct sh_stop request = {.type = SH_MSG_STOP};
	struct sh_left left = {.why = ""};
	int lock = open_lock(dir), daemon = open_daemon(control), status, err;

	status = ask(control, &request, sizeof(request), NULL);
	err = status ? 0 : await(lock, daemon);
	if (lock >= 0)
		close(lock);
	if (daemon >= 0)
		close(daemon);
	if (status)
		return status;
	if (err) {
		complain("the daemon of %s (process %ld) was told to end, but has not done so "
			 "within %d "
			 "seconds; kill -KILL %ld ends it",
			 dir, daemon_pid(dir), PATIENCE_MS / 1000, daemon_pid(dir));
		return EXIT_SELF;
	}
	/* Usually the directory is gone, or belongs to another instance by now. */
	err = sh_instance_remove(dir, &left);
	if (left.path[0])
		complain_left(dir, &left);
	return err == -ENOTEMPTY || left.path[0] ? EXIT_SELF : 0;
}
