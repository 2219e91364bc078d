/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory that the application has mapped itself. Any thread may call these functions at any time;
 * they do not wait.
 */
#ifndef SOFTHCA_SHIM_OWN_H
#define SOFTHCA_SHIM_OWN_H

#include <stdbool.h>
#include <stdint.h>

/* mmap() has given this memory, private and anonymous, to the application. */
void own_mapped(uint64_t addr, uint64_t len);
/* Called before the range is unmapped or moved, or something else is mapped there. */
void own_unmapped(uint64_t addr, uint64_t len);
/*
 * The code of the functions that report here: munmap() and mmap() (mapcalls.c), mremap() (remap.c).
 */
#define OWN_SOURCES 3
const void *own_source(int i);
/* Is all of the range the application's, with nothing of the C library's in it? */
bool own_has(uint64_t addr, uint64_t len);
/*
 * Has something overwritten the code of own_source(), or does an object call these functions
 * elsewhere (slots.h)? Then what own_has() says may be out of date. It stays true.
 */
bool own_blind(void);

void own_init(void);
void own_forked(void);

#endif
