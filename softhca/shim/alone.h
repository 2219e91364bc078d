/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Is the caller the only thread? For still.c. */
#ifndef SOFTHCA_SHIM_ALONE_H
#define SOFTHCA_SHIM_ALONE_H

#include <stdbool.h>

/* No thread but the caller and softhca's helper; waits for those that are about to be no more. */
bool alone(void);

#endif
