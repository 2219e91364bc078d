/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Device memory in the address space of this process. It is gigabytes, of which a process uses few,
 * and address space is limited (ulimit -v). So there is one address for all of it, with the room
 * behind it free but not taken, and mapped are
 *
 *	the tables		all of them
 *	the pool		from its beginning to as far as this process has had to look
 *	the shared area		likewise
 *
 * struct sh_dev says how far (pool_end, shared_end). Both only ever grow. An address, once it is
 * mapped, stays so; offsets from the base are plain additions.
 */
#ifndef SOFTHCA_HOST_MEMORY_H
#define SOFTHCA_HOST_MEMORY_H

#include "softhca/device/device.h"

/*
 * Find a place for size bytes of device memory and map the first of them there, more than a page:
 * its address, or NULL and *err. Where no place is to be had, or nothing can grow there (under
 * valgrind), all of it is mapped, wherever the kernel likes.
 */
void *sh_memory_map(int memfd, uint64_t size, uint64_t first, int *err);

/*
 * After sh_dev_attach() on that address: map the tables and make the rest ready to grow, or, where
 * that fails, map all of it elsewhere (dev->inst changes). 0, or -errno with nothing mapped any more.
 */
int sh_memory_begin(struct sh_dev *dev, int memfd);

/*
 * Have [off, off + len) of the pool or of the shared area mapped. 0; -ENOMEM: a limit or another
 * mapping is in the way, and what was mapped stays so; -EINVAL: it is in neither. Any thread, any
 * signal handler of the shim.
 */
int sh_memory_extend(struct sh_dev *dev, uint64_t off, uint64_t len);

/* Unmap what is mapped of it; and what sh_memory_map() did where nothing followed. */
void sh_memory_end(struct sh_dev *dev);
void sh_memory_drop(void *at);

/* Whether a mapping that begins at this address with this offset in device memory is ours. */
bool sh_memory_is_base(const struct sh_dev *dev, uint64_t addr, uint64_t off);

/* Around fork(): no other thread is in the middle of it. In the child only the caller goes on. */
void sh_memory_hold(void);
void sh_memory_let_go(void);
void sh_memory_forked(void);

#endif
