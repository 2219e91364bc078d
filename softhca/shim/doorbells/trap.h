/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Stores to the UAR that fault.
 */
#ifndef SOFTHCA_SHIM_TRAP_H
#define SOFTHCA_SHIM_TRAP_H

#include <stdint.h>

struct shim_ctx;

int shim_trap_install(void);
/* Pages of a context's file, from byte off on, have been mapped at start. */
void shim_trap_mapped(const struct shim_ctx *ctx, uint64_t start, uint64_t len, uint64_t off);
void shim_trap_unmapped(uint64_t start, uint64_t end);
void shim_trap_forked(void);

#endif
