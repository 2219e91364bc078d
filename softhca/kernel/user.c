// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The memory and the descriptors of clients, as the kernel reaches them: through their witness, and
 * /proc. A process may have given up what the daemon needs for that: then its memory is reached
 * through a descriptor that the daemon has opened before. Never follows a pointer of a client.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softhca/host/witness.h"
#include "kern.h"
#include "user.h"

/*
 * Where a userfaultfd of the client has yet to fill a page, or protects it from stores,
 * process_vm_readv() and process_vm_writev() wait for the client. Access by its memory's descriptor
 * fails instead. The shim has seen to it as a rule (shim/files/touch.h). The byte that is put back
 * is one of those that out overwrites.
 */
static bool has_pages(const struct user *user, uint64_t addr, size_t len, bool out)
{
	uint64_t end = addr + len;
	char byte;

	for (; user->mem > 0 && addr < end; addr = (addr | (K_PAGE - 1)) + 1)
		if (sh_witness_move(user->mem, addr, &byte, 1, false) != 1 ||
		    (out && sh_witness_move(user->mem, addr, &byte, 1, true) != 1))
			return false;
	return true;
}

static int move(const struct user *user, uint64_t addr, void *buf, size_t len, bool out)
{
	char *p = buf;

	if (!has_pages(user, addr, len, out))
		return -EFAULT;
	while (len) {
		struct iovec local[] = {{0}, {.iov_base = p, .iov_len = len}};
		struct iovec remote[] = {{0},
					 {.iov_base = (void *)(uintptr_t)addr, .iov_len = len}};
		long done = out ? sh_witness_writev(user->pid, user->witness, local, 1, remote, 1)
				: sh_witness_readv(user->pid, user->witness, local, 1, remote, 1);

		if (done == -EPERM && user->mem > 0)
			done = sh_witness_move(user->mem, addr, p, len, out);
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

/* Where the kernel refuses it for other reasons, the process is to give up nothing. */
static int real_hold(void *arg, struct user *user)
{
	int fd = sh_witness_open(user->pid, user->witness);

	(void)arg;
	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
		return -EAGAIN;
	user->mem = fd > 0 ? fd : 0;
	return 0;
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

/* Of an open() that has failed: -EBADF, unless it is this process that is short of room. */
static int refusal(void)
{
	return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -ENOMEM : -EBADF;
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
		return errno == EACCES || errno == EPERM ? -EACCES : refusal();
	if (is_path(tid, fd)) {
		close(own);
		return -EBADF;
	}
	return own;
}

const struct user_ops user_real = {
	.read = real_read,
	.write = real_write,
	.hold = real_hold,
	.open_fd = real_open_fd,
};

/* A copy of the client's own would keep the file open; this one only names it. */
static int given(int fd)
{
	char name[64];
	int own;

	if (fd < 0)
		return fd;
	if (fcntl(fd, F_GETFL) & O_PATH)
		return -EBADF;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	own = open(name, O_PATH | O_CLOEXEC);
	return own < 0 ? refusal() : own;
}

int client_read(struct kernel *k, const struct user *user, uint64_t addr, void *buf, size_t len)
{
	return k->user->read(k->user_arg, user, addr, buf, len);
}

int client_write(struct kernel *k, const struct user *user, uint64_t addr, const void *buf,
		 size_t len)
{
	return k->user->write(k->user_arg, user, addr, buf, len);
}

int client_file(struct kernel *k, pid_t tid, int fd)
{
	int own;

	if (k->given.asked && k->given.number == fd)
		return given(k->given.fd);
	own = k->user->open_fd(k->user_arg, tid, fd);
	if (own != -EACCES)
		return own;
	k->wanted = fd;
	return -EBADF;
}
