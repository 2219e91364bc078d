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
/* The functions that report here, and those of the C library that they replace (by_name.c). */
enum { OWN_MUNMAP, OWN_MMAP, OWN_MREMAP, OWN_SOURCES };
void *own_source(int i);
void *own_libc_source(int i);
/*
 * Do calls of own_source() report here, whatever code has overwritten them, and those of the heap not?
 * Makes such calls.
 */
bool own_hears(void);
/* Is all of the range the application's, with nothing of the C library's in it? */
bool own_has(uint64_t addr, uint64_t len);
/*
 * Has something overwritten the code of own_source(), in a way that has not been shown to report here
 * all the same? Then what own_has() says may be out of date.
 */
bool own_blind(void);
/*
 * Finds that out where the code has changed. What has overwritten it may wait for other threads, so the
 * caller holds no lock.
 */
void own_look(void);

void own_init(void);
void own_forked(void);

#endif
