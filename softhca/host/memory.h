/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Device memory in the address space of this process. It is gigabytes, of which a process uses
 * little, and address space may be limited (ulimit -v). So there is one address for all of it. The
 * room behind that address is free, but not taken. What is mapped:
 *
 *	the tables		all of them
 *	the pool		from its beginning to as far as this process has had to look
 *	the shared area		likewise
 *
 * struct sh_dev says how far (pool_end, shared_end). Both only ever grow. An address that is mapped
 * once stays mapped; an offset from the base is a plain addition.
 */
#ifndef SOFTHCA_HOST_MEMORY_H
#define SOFTHCA_HOST_MEMORY_H

#include "softhca/device/memory/dev.h"

/*
 * Finds a place for size bytes of device memory and maps the first of them there, more than a page.
 * Returns its address, or NULL with *err. If there is no such place, or nothing can grow there
 * (under valgrind), all of it is mapped, wherever the kernel likes.
 */
void *sh_memory_map(int memfd, uint64_t size, uint64_t first, int *err);

/*
 * To be called after sh_dev_attach() on that address. Maps the tables and makes the rest ready to
 * grow; if that fails, maps all of it elsewhere (dev->inst changes). Returns 0, or -errno with
 * nothing mapped any more.
 */
int sh_memory_begin(struct sh_dev *dev, int memfd);

/*
 * Has [off, off + len) of the pool or of the shared area mapped. Returns 0; -ENOMEM: a limit or
 * another mapping is in the way, and what was mapped stays so; -EINVAL: the range is in neither.
 * Any thread may call it, and any signal handler of the shim.
 */
int sh_memory_extend(struct sh_dev *dev, uint64_t off, uint64_t len);

/*
 * sh_memory_end() unmaps what is mapped of it. sh_memory_drop() unmaps what sh_memory_map() mapped,
 * if nothing followed.
 */
void sh_memory_end(struct sh_dev *dev);
void sh_memory_drop(void *at);

/*
 * Is a mapping that begins at this address, with this offset in device memory, part of this
 * process's mapping of all of it?
 */
bool sh_memory_is_base(const struct sh_dev *dev, uint64_t addr, uint64_t off);

/* Around fork(): no other thread is extending a mapping. In the child only the caller goes on. */
void sh_memory_hold(void);
void sh_memory_let_go(void);
void sh_memory_forked(void);

#endif
