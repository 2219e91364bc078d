/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Open rdma_cm files.
 */
#ifndef SOFTHCA_SHIM_RDMACM_H
#define SOFTHCA_SHIM_RDMACM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "fifo.h"

/* Is the descriptor one? Whatever process has opened it. */
bool shim_cm_of_stat(int fd, const struct stat *st, struct shim_fifo *cm);
int shim_cm_open(int flags); /* a descriptor or -errno */
/* A command. Waits for an event if that is what the command asks for. len or -errno. */
long shim_cm_write(int fd, const struct shim_fifo *cm, const void *buf, size_t len);
/* -errno: it cannot be read. */
int shim_cm_read(const struct shim_fifo *cm);

#endif
