// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * librspreload.so: LD_PRELOAD makes the sockets of a program rsockets. Each call that has such a
 * number goes to the rsocket, every other one to the library behind. A thread that is inside
 * librdmacm gets plain sockets, which rsockets use themselves.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "preload.h"

__thread unsigned int pl_inside;

void *pl_next(void **known, const char *name)
{
	void *f = __atomic_load_n(known, __ATOMIC_RELAXED);

	if (!f) {
		f = dlsym(RTLD_NEXT, name);
		if (!f)
			abort();
		__atomic_store_n(known, f, __ATOMIC_RELAXED);
	}
	return f;
}
