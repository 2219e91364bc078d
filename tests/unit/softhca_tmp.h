/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A directory for a test: made before each test, and removed with its content. */
#ifndef SOFTHCA_TMP_H
#define SOFTHCA_TMP_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char tmp[64];

/* Returns 0 or -1. */
static inline int tmp_make(const char *name)
{
	snprintf(tmp, sizeof(tmp), "/tmp/%s-XXXXXX", name);
	return mkdtemp(tmp) ? 0 : -1;
}

static inline int tmp_remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

/* Removes path with everything below it, but does not follow links. Returns 0 or -1. */
static inline int tmp_remove(const char *path)
{
	return nftw(path, tmp_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Returns the path of a name in the directory, valid until the next call. */
static inline char *in_tmp(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", tmp, name);
	return path;
}

#endif
