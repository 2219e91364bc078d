/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How a function of this library stands in front of the C library's function of the same name.
 */
#ifndef SOFTHCA_SHIM_INTERPOSE_H
#define SOFTHCA_SHIM_INTERPOSE_H

#include <errno.h>

#include "compiler.h"
#include "real.h"

#define EXPORT __attribute__((visibility("default")))

/* Returns an internal result as libc does: -1 and errno for an error. */
#define RETURN_ERRNO(result)                                                                       \
	do {                                                                                       \
		long result_ = (result);                                                           \
		if (result_ >= 0)                                                                  \
			return (__typeof__(result))result_;                                        \
		errno = (int)-result_;                                                             \
		return -1;                                                                         \
	} while (0)

/* A call that succeeds leaves errno as it was before. */
static inline int shim_kept(int ret, int before)
{
	if (ret >= 0)
		errno = before;
	return ret;
}

#endif
