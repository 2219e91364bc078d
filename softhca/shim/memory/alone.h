/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Is the caller the only thread? Used by still.c. */
#ifndef SOFTHCA_SHIM_ALONE_H
#define SOFTHCA_SHIM_ALONE_H

#include <stdbool.h>

/*
 * True if the caller and softhca's helper are the only threads. Waits for threads that are about to
 * end.
 */
bool alone(void);

#endif
