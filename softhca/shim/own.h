/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory that the application has mapped itself. Any thread, any time; nobody waits. */
#ifndef SOFTHCA_SHIM_OWN_H
#define SOFTHCA_SHIM_OWN_H

#include <stdbool.h>
#include <stdint.h>

/* mmap() has given it to the application: private, anonymous. */
void own_mapped(uint64_t addr, uint64_t len);
/* Before it is unmapped, or moved, or something else is mapped there. */
void own_unmapped(uint64_t addr, uint64_t len);
/* All of it is the application's, and the C library has nothing there. */
bool own_has(uint64_t addr, uint64_t len);

void own_init(void);
void own_forked(void);

#endif
