/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Lists and hashes within structures.
 */
#ifndef SOFTHCA_KERNEL_LISTS_H
#define SOFTHCA_KERNEL_LISTS_H

#include <stddef.h>

/*
 * Without memory for an element uthash does not add it, and its hh.tbl is NULL. By default uthash
 * exits.
 */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
