/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The target includes this before each file of libibverbs that it compiles. It makes the library
 * read its configuration from a directory of the target, and load no plug-in, whatever name a file
 * gives.
 */
#ifndef TESTS_FUZZ_LIBIBVERBS_FILES_H
#define TESTS_FUZZ_LIBIBVERBS_FILES_H

#include <dlfcn.h>
#include <stddef.h>

extern char fuzz_config_dir[64];
#define IBV_CONFIG_DIR fuzz_config_dir
#define IBV_LIBDIR     "/nonexistent"

static inline void *fuzz_dlopen(const char *name, int flags)
{
	(void)flags;
	/*
	 * The library opens the program itself (NULL) to find out whether it is linked statically.
	 */
	return name ? NULL : dlopen(NULL, RTLD_NOW);
}
#define dlopen(name, flags) fuzz_dlopen(name, flags)
#define dlerror()	    ((char *)"no such plug-in")

#endif
