/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The functions that this library's functions of the same names replace. */
#ifndef SOFTHCA_SHIM_REAL_H
#define SOFTHCA_SHIM_REAL_H

#include <dlfcn.h>

/* A place that calls such a function. */
struct real {
	void **fn;
	const char *name;
};

/*
 * The function, which real_find() has looked up as a rule. Before that, and where the C library has
 * no such function, each use looks.
 */
#define REAL(symbol)                                                                               \
	({                                                                                         \
		static void *real_fn;                                                              \
		static const struct real real_use                                                  \
			__attribute__((used, section("shim_reals"))) = {&real_fn, #symbol};        \
		if (__builtin_expect(!real_fn, 0))                                                 \
			real_fn = dlsym(RTLD_NEXT, real_use.name);                                 \
		(__typeof__(&symbol))real_fn;                                                      \
	})

/*
 * Looks all of them up. dlsym() takes a lock of the loader's, which a thread holds while its
 * dlopen() runs constructors. Such a constructor may wait for another thread, which may call any of
 * these functions.
 */
void real_find(void);

#endif
