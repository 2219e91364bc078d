/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory of the client.
 */
#ifndef SOFTHCA_SHIM_MEMORY_H
#define SOFTHCA_SHIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct mapping;
struct sh_action;

#define SHIM_PAGE 4096UL

int shim_populate(uint64_t addr, uint64_t len, bool write);
/* What copies to device memory need, opened before them. */
struct shim_copy {
	int pagemap, memory; /* or -1 */
};
void shim_copy_open(struct shim_copy *c, uint64_t len);
void shim_copy_close(const struct shim_copy *c);
/*
 * Copies whole private pages of this process, in which no other thread runs, to device memory that
 * is zero. It skips pages that were never touched, because programs mostly register a large buffer
 * before they use it. Returns 0, or -EFAULT if not all of them can be read.
 */
int shim_copy_pages(const struct shim_copy *c, uint64_t shm_off, uint64_t from, uint64_t len);
int shim_map_action(const struct sh_action *action);
/* Registered memory, of this process or its parent, that is device memory. */
bool shim_region_mapped(const struct mapping *m);
/* Maps zeroed private pages in place of what is there, with the attributes that this has. */
int shim_fresh_pages(uint64_t addr, uint64_t len, int prot);
/* Is something shared mapped there? For callers that cannot read /proc/self/maps. */
bool shim_is_shared(uint64_t addr);

#endif
