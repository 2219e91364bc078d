// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Rings of asynchronous I/O that /proc/self/maps does not show. A program may have unmapped a ring,
 * or provided the ring's memory itself (IORING_SETUP_NO_MMAP). A descriptor of the ring shows it
 * then. With IORING_SETUP_REGISTERED_FD_ONLY there is no descriptor either: the ring has a number
 * that means something to its thread alone, so the answer about that is for the calling thread. It
 * takes a system call to find that ring, which the kernel may end a sandboxed program for. So such
 * a ring is not found there.
 *
 * Owns nothing, keeps nothing, allocates no memory.
 */
#include <stdio.h>
#include <string.h>

#include "softhca/host/dirents.h"
#include "softhca/host/sys.h"
#include "rings.h"
#include "softhca/shim/sandbox.h"

/* Of Linux 5.1 and 5.18: the headers may be older than the kernel. */
#ifndef SYS_io_uring_enter
#define SYS_io_uring_enter 426
#endif
#ifndef IORING_ENTER_REGISTERED_RING
#define IORING_ENTER_REGISTERED_RING (1U << 4)
#endif

#define REGISTERED 16 /* the most that a thread can have */

static bool is_ring(int dir, const char *name)
{
	static const char link[] = "anon_inode:[io_uring]";
	char text[sizeof(link)];

	/*
	 * Not fstat(): for a file on NFS or FUSE it may write dirty pages back, or wait for a
	 * server. A link of /proc is read without asking the file.
	 */
	long len = sh_sys(syscall(SYS_readlinkat, dir, name, text, sizeof(text)));
	return len == sizeof(link) - 1 && !memcmp(text, link, sizeof(link) - 1);
}

/* Submits nothing and waits for nothing. */
static bool is_registered(unsigned int number)
{
	switch (sh_sys(syscall(SYS_io_uring_enter, number, 0U, 0U, IORING_ENTER_REGISTERED_RING,
			       NULL, 0UL))) {
	case -EBADF:
	case -EINVAL:
	case -ENOSYS:
	case -EPERM:
	case -EACCES:
		return false;
	}
	return true;
}

int rings_held(void)
{
	struct sh_dirents fds;
	const char *name;
	int found = 0, err = sh_dirents_open(&fds, "/proc/thread-self/fd");

	if (err)
		return err;
	while (!found && (name = sh_dirents_next(&fds)))
		found = name[0] != '.' && is_ring(fds.fd, name);
	sh_close(fds.fd);
	return fds.got < 0 ? (int)fds.got : found;
}

int rings_unmapped(void)
{
	int found = rings_held();

	if (!found && !sandboxed())
		for (unsigned int i = 0; !found && i < REGISTERED; i++)
			found = is_registered(i);
	return found;
}
