// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See real.h. The linker gathers the places that REAL() names. Runs before main(), in one thread.
 */
#include "real.h"

extern const struct real __start_shim_reals[], __stop_shim_reals[];

void real_find(void)
{
	for (const struct real *use = __start_shim_reals; use < __stop_shim_reals; use++)
		if (!*use->fn)
			*use->fn = dlsym(RTLD_NEXT, use->name);
	/* What the C library does not have would leave an error for the program. */
	(void)dlerror();
}
