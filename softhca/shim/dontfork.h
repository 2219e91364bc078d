/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which pages the program keeps from its children.
 */
#ifndef SOFTHCA_SHIM_DONTFORK_H
#define SOFTHCA_SHIM_DONTFORK_H

#include <stdint.h>

void shim_dontfork_note(uint64_t addr, uint64_t len, int advice);	/* what madvise() was asked for */
int shim_dontfork_known(uint64_t addr);		/* 1, 0, or -1 if that is not known */
void shim_dontfork_forked(void);

#endif
