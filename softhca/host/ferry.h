/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Copies that this process may not make by itself. The kernel lets a process reach another one's
 * memory only if it may trace it. A process that gives up its user or its capabilities, or makes
 * itself undumpable, loses that right, and so do its peers; a card would not mind. So the daemon
 * opens the memory of each process while it still may, and makes the copy for the thread that asks.
 * Peers get no such descriptor: they reach what is registered, and nothing else.
 *
 * What is copied goes through device memory (struct sh_ferries). The thread that asks copies
 * between there and its own memory.
 */
#ifndef SOFTHCA_HOST_FERRY_H
#define SOFTHCA_HOST_FERRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct sh_dev;

/*
 * Has the daemon copy what the first remote piece names, as far as one ferry takes it: from the
 * local pieces, which are this process's (out), or to them. Returns the bytes copied, or -errno.
 * -ESRCH: that address space has ended. -EPERM: the daemon may not reach it either, or there is no
 * daemon. -EFAULT: memory of one side is missing, or the process has not registered it. The thread
 * is pinned (life.h) meanwhile, and has announced that it reaches into the process (moves.h).
 */
long sh_ferry(uint32_t proc, uint64_t witness, bool out, const struct iovec *local,
	      unsigned long nlocal, const struct iovec *remote);

/* ---- the daemon's side ---- */

/*
 * Makes one such copy: returns the bytes copied, or -errno as above. tid: the thread that asks, or
 * 0.
 */
typedef long sh_ferry_fn(void *arg, uint32_t tid, uint32_t proc, uint64_t witness, uint64_t addr,
			 void *buf, size_t len, bool out);
/*
 * The calling thread makes the copies from now on: its own at once, those of others when it calls
 * sh_ferry_serve(), which the daemon's attention word calls for. fn NULL: no thread makes copies
 * any more, and waiting threads go on without one.
 */
void sh_ferry_open(struct sh_dev *dev, sh_ferry_fn *fn, void *arg);
void sh_ferry_serve(struct sh_dev *dev);

#endif
