/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Open files of programs that the daemon plays by FIFOs. The program has an end for reading, so
 * that poll(), O_NONBLOCK and sleeping in read() are the system's own; the daemon has one for both,
 * so that the FIFO neither ends nor blocks. inotify tells the room when the program's end may have
 * been closed.
 */
#ifndef SOFTHCA_KERNEL_FIFO_H
#define SOFTHCA_KERNEL_FIFO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct kernel;

struct fifo {
	struct kernel *k;
	const char *dir; /* of the instance; its name there is INDEX.GENERATION[.MODE] */
	uint32_t index, generation;
	uint32_t mode; /* O_ACCMODE of what the program has opened, whatever its end is open for */
	int fd;	       /* the daemon's end, O_RDWR */
	bool half;     /* fd is O_WRONLY: there was no descriptor left to open it again */
	bool locked;   /* fifo_lock() was called for the program's end */
	dev_t dev;
	ino_t ino;
	struct fifo_owner *owner;
	uint64_t doubted; /* fifo_doubt() was called, and holds until then; 0: no */
};

struct fifo_opening {
	const char *dir;
	uint32_t index, generation;
	uint32_t
		flags; /* with which the program opens it; those that mean nothing here are ignored */
	pid_t pid;     /* the program */
	uint32_t mark; /* of its mode: SH_FIFO_MARK or 0 */
};

/*
 * *fd: the program's end, which the caller hands on and closes. 0 or -errno; -EMFILE: the program has
 * opened its share of the files for which the daemon has descriptors, so that others find some;
 * -ENFILE: the daemon has none left.
 */
int fifo_open(struct fifo *f, struct kernel *k, const struct fifo_opening *o, int *fd);
void fifo_close(struct fifo *f);
/* Of a file that inotify names. False: it has another kind of name. */
bool fifo_name(const char *name, uint32_t *index, uint32_t *generation);
/*
 * What a client's descriptor leads to: 0, -ENOENT (nothing is open there) or -errno. Compare dev
 * and ino: an inode of another file system may have the same number.
 */
int fifo_of_fd(struct kernel *k, pid_t tid, int fd, dev_t *dev, ino_t *ino);

/* Makes it hold SH_FIFO_BYTE for each of that many things to read. */
void fifo_level(struct fifo *f, uint32_t unread);

/*
 * For FIFOs that programs write to as well. Locks the program's end before the daemon hands it on;
 * fifo_unused() can then tell by the lock whether that end is open. False: the file system has no
 * such locks.
 */
bool fifo_lock(struct fifo *f, int fd);
/*
 * The program's end may have been closed. fifo_unused() finds out: at once, and whenever the room's
 * operation `doubted` or `tick` is called while it doubts the file. True: no process reads, and
 * none will; the room frees the file then. Do not ask this of a FIFO that programs write to and
 * that has no lock: the question could send such a program a SIGPIPE.
 */
void fifo_doubt(struct fifo *f);
bool fifo_unused(struct fifo *f);

#endif
