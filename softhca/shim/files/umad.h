/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Open umad files.
 */
#ifndef SOFTHCA_SHIM_UMAD_H
#define SOFTHCA_SHIM_UMAD_H

#include "fifo.h"

#define UMAD_IOCTLS 0x1b

/* Is the descriptor one? Whatever process has opened it. Its index is the minor number. */
bool shim_umad_of_fd(int fd, struct shim_fifo *file);
/*
 * For read(), which every program calls often: false without a system call in a process that has
 * nothing to do with umad.
 */
bool shim_umad_to_read(int fd, struct shim_fifo *file);
bool shim_umad_of_stat(int fd, const struct stat *st, struct shim_fifo *file);
/* False without a system call in a process that has nothing to do with umad, or with issm. */
bool shim_umad_known(void);
bool shim_issm_known(void);
bool shim_umad_is_issm(const struct shim_fifo *file);
int shim_umad_open(unsigned int minor, int flags); /* a descriptor or -errno */
/* What the calls return, or -errno. A read waits if there is nothing to read. */
long shim_umad_write(const struct shim_fifo *file, const void *buf, size_t len);
long shim_umad_read(int fd, const struct shim_fifo *file, void *buf, size_t len);
long shim_umad_ioctl(const struct shim_fifo *file, unsigned long number, void *arg);

#endif
