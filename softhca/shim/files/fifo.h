/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Open files that are FIFOs, with a byte for each thing that the daemon has for the program
 * (kernel/fifo.h): how they are opened and recognized, and how a thread waits in one.
 */
#ifndef SOFTHCA_SHIM_FIFO_H
#define SOFTHCA_SHIM_FIFO_H

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct shim_fifo {
	const char *dir; /* of the instance, as in kernel/fifo.h */
	uint32_t index;
	uint32_t generation; /* 0: the instance has been removed, and calls fail */
	uint32_t mode;	     /* O_ACCMODE that the program has asked for; its end only reads */
	uint32_t
		known; /* the connection under which the name was read (fifo_known.h); 0: just now */
};

static inline bool shim_fifo_reads(const struct shim_fifo *f)
{
	return f->mode == O_RDONLY || f->mode == O_RDWR;
}
static inline bool shim_fifo_writes(const struct shim_fifo *f)
{
	return f->mode == O_WRONLY || f->mode == O_RDWR;
}

/* Is the descriptor one of that directory? Whatever process has opened it. */
bool shim_fifo_of_stat(int fd, const struct stat *st, const char *dir, struct shim_fifo *f);

/* The digits of a number, by no call that may not be made in a handler. */
void shim_put_number(char *to, unsigned int n);
/* Where a descriptor leads. False: it cannot be read. */
bool shim_fd_path(int fd, char path[PATH_MAX]);

/*
 * A request to open one. error tells from the reply what has failed, if anything has: 0 or -errno.
 * flags: of open(), of which the request tells the daemon, too. Returns a descriptor or -errno.
 */
int shim_fifo_open(int flags, const void *req, size_t req_len, void *reply, size_t reply_len,
		   int (*error)(const void *reply));
/*
 * A request about the one of that generation: 0 if there is a reply, or the -errno of the call. No
 * daemon is asked about a file whose instance has been removed: that of the next instance of its
 * name might answer.
 * -ENODEV: it is known from another connection.
 */
int shim_fifo_ask(uint32_t generation, uint32_t known, const void *req, size_t req_len, void *reply,
		  size_t reply_len);
/*
 * Does the descriptor still lead there? -EBADF if not, and -EIO if the instance has been removed.
 */
int shim_fifo_still(int fd, const struct shim_fifo *f);
/*
 * Sleeps until there may be something to read, and asks; again and again while that returns
 * -EAGAIN. Returns what ask does, or as the kernel says: EAGAIN, EINTR, a restart after a signal.
 * It is a cancellation point.
 */
long shim_fifo_wait(int fd, const struct shim_fifo *f, long (*ask)(void *arg), void *arg);

#endif
