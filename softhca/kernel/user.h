/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The memory and descriptors of clients. Tests put their own in place of user_real.
 */
#ifndef SOFTHCA_KERNEL_USER_H
#define SOFTHCA_KERNEL_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct user { /* an address space, not only a process number */
	pid_t pid;
	uint64_t witness;
	/*
	 * Its memory (sh_witness_open()), for when the process may not be looked at any more; 0:
	 * none
	 */
	int mem;
};
struct user_ops {
	/* 0 or -EFAULT, also if the process has another address space by now */
	int (*read)(void *arg, const struct user *user, uint64_t addr, void *buf, size_t len);
	int (*write)(void *arg, const struct user *user, uint64_t addr, const void *buf,
		     size_t len);
	/*
	 * Opens user->mem, if that is possible: the process can give up what it takes. 0; -EAGAIN:
	 * there is no room for a descriptor. May be NULL.
	 */
	int (*hold)(void *arg, struct user *user);
	/*
	 * An O_PATH descriptor of the file behind the client's descriptor, or -EBADF. -EACCES: the
	 * daemon may not look. -ENOMEM: it has no room for another descriptor.
	 */
	int (*open_fd)(void *arg, pid_t tid, int fd);
};
extern const struct user_ops user_real;

/*
 * A descriptor that a client has handed over for a request, under its number there. fd -EBADF: it
 * has none of that number; -ENOMEM: there was no room for it.
 */
struct given {
	bool asked;
	int number, fd;
};

struct kernel;
/* As the operations read() and write() that the daemon has. */
int client_read(struct kernel *k, const struct user *user, uint64_t addr, void *buf, size_t len);
int client_write(struct kernel *k, const struct user *user, uint64_t addr, const void *buf,
		 size_t len);
/* open_fd(), or the descriptor that the client has handed over because the daemon may not look. */
int client_file(struct kernel *k, pid_t tid, int fd);

#endif
