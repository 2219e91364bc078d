/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A client for softhca's daemon. It consists of a few pages of the target itself, at a fixed
 * address, and a few descriptors. Whatever address or descriptor an input names, the daemon's code
 * reaches nothing else: neither a file of the machine nor the fuzzer's own memory, whose addresses
 * the fuzzer would learn from comparisons.
 */
#ifndef TESTS_FUZZ_USER_H
#define TESTS_FUZZ_USER_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softhca/kernel/user.h"

#define ARENA	    ((char *)0x5a0000000000)
#define ARENA_PAGES 20
#define USER_FDS    3 /* 0 and 1: files; 2: what a command made last, or -1 */

static int user_fd[USER_FDS] = {-1, -1, -1};
static int user_faults; /* the n-th write from now fails; 0: none */

static inline void user_fail(const char *what)
{
	perror(what);
	abort();
}

/* Maps new pages: those of the previous input may be device memory by now. */
static inline void user_arena(void)
{
	if (mmap(ARENA, ARENA_PAGES * 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != ARENA)
		user_fail("mmap");
	user_faults = 0;
}

static inline void user_start(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		user_fd[i] = memfd_create("fuzz", MFD_CLOEXEC);
		if (user_fd[i] < 0)
			user_fail("memfd_create");
	}
}

static inline void user_stop(void)
{
	int i;

	for (i = 0; i < USER_FDS; i++)
		if (user_fd[i] >= 0)
			close(user_fd[i]);
	munmap(ARENA, ARENA_PAGES * 4096);
}

static inline bool user_has(uint64_t addr, size_t len)
{
	uint64_t at = addr - (uintptr_t)ARENA;

	return at <= ARENA_PAGES * 4096 && len <= ARENA_PAGES * 4096 - at;
}

static int user_read(void *arg, const struct user *user, uint64_t addr, void *buf, size_t len)
{
	(void)arg;
	(void)user;
	if (!user_has(addr, len))
		return -EFAULT;
	memcpy(buf, (void *)(uintptr_t)addr, len);
	return 0;
}

static int user_write(void *arg, const struct user *user, uint64_t addr, const void *buf,
		      size_t len)
{
	(void)arg;
	(void)user;
	if (!user_has(addr, len) || (user_faults && !--user_faults))
		return -EFAULT;
	memcpy((void *)(uintptr_t)addr, buf, len);
	return 0;
}

static int user_open_fd(void *arg, pid_t tid, int fd)
{
	char name[64];
	int own;

	(void)arg;
	(void)tid;
	if (fd < 0 || fd >= USER_FDS || user_fd[fd] < 0)
		return -EBADF;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", user_fd[fd]);
	own = open(name, O_PATH | O_CLOEXEC);
	return own < 0 ? -EBADF : own;
}

static const struct user_ops user_bounded = {
	.read = user_read, .write = user_write, .open_fd = user_open_fd};

#endif
