// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The memory and the descriptors of clients, as the kernel reaches them: process_vm_*() and /proc. Never follows a
 * pointer of a client.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kern.h"

static int move(pid_t pid, uint64_t addr, void *buf, size_t len, bool out)
{
	char *p = buf;

	while (len) {
		struct iovec local = {.iov_base = p, .iov_len = len};
		struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
		ssize_t done = out ? process_vm_writev(pid, &local, 1, &remote, 1, 0)
				   : process_vm_readv(pid, &local, 1, &remote, 1, 0);

		if (done <= 0)
			return -EFAULT;
		p += done;
		addr += done;
		len -= done;
	}
	return 0;
}

static int real_read(void *arg, pid_t pid, uint64_t addr, void *buf, size_t len)
{
	(void)arg;
	return move(pid, addr, buf, len, false);
}

static int real_write(void *arg, pid_t pid, uint64_t addr, const void *buf, size_t len)
{
	(void)arg;
	return move(pid, addr, (void *)buf, len, true);
}

/* A descriptor opened with O_PATH is none for the kernel's commands. */
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
