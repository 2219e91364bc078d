/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Open rdma_cm files.
 */
#ifndef SOFTHCA_SHIM_RDMACM_H
#define SOFTHCA_SHIM_RDMACM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct shim_cm {
	uint32_t channel, generation;
};

/* Is the descriptor one? Whatever process has opened it. */
bool shim_cm_of_fd(int fd, struct shim_cm *cm);
bool shim_cm_of_stat(int fd, const struct stat *st, struct shim_cm *cm);
/*
 * Files of other rooms that are FIFOs, too: the same below that directory of the instance, and
 * waiting. Until there may be an event, or as the kernel says: EAGAIN, EINTR, a restart after a
 * signal. It is a cancellation point.
 */
bool shim_fifo_of_stat(int fd, const struct stat *st, const char *dir, struct shim_cm *cm);
long shim_fifo_sleep(int fd);
int shim_cm_open(int flags); /* a descriptor or -errno */
/* A command. Waits for an event if that is what the command asks for. len or -errno. */
long shim_cm_write(int fd, const struct shim_cm *cm, const void *buf, size_t len);

#endif
