/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which rdma_cm file an inode is, as its name said when it was last read: reading a name takes a
 * sixth of the time of a command. While the file is open anywhere, its inode is no other file's.
 * But it may have been closed everywhere, and another channel's file may have the inode, which this
 * process got from another one. The old channel has ended then, and its generation does not come
 * again while the daemon lives: the daemon refuses a request by the old name with ENODEV, and the
 * caller reads the name (rdmacm.c). What became known under one connection does not count under
 * another one, which may be to another daemon. No other file is taken for one: the daemon marks
 * those that were opened for reading and writing (SH_FIFO_MARK), and nothing is kept about the
 * rest.
 */
#ifndef SOFTHCA_SHIM_FIFO_KNOWN_H
#define SOFTHCA_SHIM_FIFO_KNOWN_H

#include "fifo.h"

/* f was read under that connection, or none: 0. */
void fifo_known_add(const struct stat *st, const struct shim_fifo *f, uint32_t connection);
/* Fills in all but the directory. */
bool fifo_known_find(const struct stat *st, struct shim_fifo *f);

#endif
