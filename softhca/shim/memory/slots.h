/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The places from which loaded objects call the functions that tell of mappings: the slots of their
 * global offset tables.
 */
#ifndef SOFTHCA_SHIM_SLOTS_H
#define SOFTHCA_SHIM_SLOTS_H

#include <stdbool.h>

/*
 * Does some object call one of these functions, which are the shim's, elsewhere? fn[i] is what
 * name[i] leads to; there are n of them. May be called in any thread, and takes the dynamic
 * linker's lock. Reads the relocations anew only if objects were loaded or unloaded since the last
 * call.
 */
bool slots_lead_elsewhere(const char *const *name, const void *const *fn, unsigned int n);

#endif
