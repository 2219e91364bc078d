/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How a function of this library stands in front of the C library's function of the same name.
 */
#ifndef SOFTHCA_SHIM_INTERPOSE_H
#define SOFTHCA_SHIM_INTERPOSE_H

#include <dlfcn.h>
#include <errno.h>

#include "compiler.h"

#define EXPORT __attribute__((visibility("default")))

/* The function that this library's function of the same name replaces. */
#define REAL(name)                                                                                     \
	({                                                                                             \
		static __typeof__(&name) real_fn;                                                      \
		if (unlikely(!real_fn))                                                                \
			real_fn = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                          \
		real_fn;                                                                               \
	})

/* Returns an internal result as libc does: -1 and errno for an error. */
#define RETURN_ERRNO(result)                                                                           \
	do {                                                                                           \
		long result_ = (result);                                                               \
		if (result_ >= 0)                                                                      \
			return (__typeof__(result))result_;                                            \
		errno = (int)-result_;                                                                 \
		return -1;                                                                             \
	} while (0)

#endif
