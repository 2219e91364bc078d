// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The memory and the descriptors of clients, as the kernel reaches them: through their witness, and
 * /proc. Never follows a pointer of a client.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softhca/host/witness.h"
#include "user.h"

static int move(const struct user *user, uint64_t addr, void *buf, size_t len, bool out)
{
	char *p = buf;

	while (len) {
		struct iovec local[] = {{0}, {.iov_base = p, .iov_len = len}};
		struct iovec remote[] = {{0},
					 {.iov_base = (void *)(uintptr_t)addr, .iov_len = len}};
		long done = out ? sh_witness_writev(user->pid, user->witness, local, 1, remote, 1)
				: sh_witness_readv(user->pid, user->witness, local, 1, remote, 1);

		if (done <= 0)
			return -EFAULT;
		p += done;
		addr += done;
		len -= done;
	}
	return 0;
}

static int real_read(void *arg, const struct user *user, uint64_t addr, void *buf, size_t len)
{
	(void)arg;
	return move(user, addr, buf, len, false);
}

static int real_write(void *arg, const struct user *user, uint64_t addr, const void *buf,
		      size_t len)
{
	(void)arg;
	return move(user, addr, (void *)buf, len, true);
}

/* The kernel's commands do not accept a descriptor that was opened with O_PATH. */
static bool is_path(pid_t tid, int fd)
{
	unsigned long flags = 0;
	char name[64], line[64];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/fdinfo/%d", tid, fd);
	f = fopen(name, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "flags:", 6))
			flags = strtoul(line + 6, NULL, 8);
	fclose(f);
	return flags & O_PATH;
}

static int real_open_fd(void *arg, pid_t tid, int fd)
{
	char name[64];
	int own;

	(void)arg;
	if (fd < 0)
		return -EBADF;
	snprintf(name, sizeof(name), "/proc/%d/fd/%d", tid, fd);
	own = open(name, O_PATH | O_CLOEXEC);
	if (own < 0)
		return -EBADF;
	if (is_path(tid, fd)) {
		close(own);
		return -EBADF;
	}
	return own;
}

const struct user_ops user_real = {
	.read = real_read,
	.write = real_write,
	.open_fd = real_open_fd,
};
