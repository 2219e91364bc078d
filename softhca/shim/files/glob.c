// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * glob() looks into directories by the C library's own functions, unless it is given others: it
 * gets this library's, which know the directories of the instance.
 */
#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>

#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"

_Static_assert(sizeof(glob_t) == sizeof(glob64_t) && sizeof(struct stat) == sizeof(struct stat64),
	       "one layout");

static void *open_dir(const char *path)
{
	return opendir(path);
}

static struct dirent *read_dir(void *dir)
{
	return readdir(dir);
}

static void close_dir(void *dir)
{
	(void)closedir(dir);
}

typedef int glob_fn(const char *pattern, int flags, int (*error)(const char *path, int err),
		    glob_t *out);

static int look(glob_fn *real, const char *pattern, int flags, int (*error)(const char *, int),
		glob_t *out)
{
	glob_t before;
	int ret;

	if (!shim_active() || flags & GLOB_ALTDIRFUNC)
		return real(pattern, flags, error, out);
	before = *out;
	out->gl_opendir = open_dir;
	out->gl_readdir = read_dir;
	out->gl_closedir = close_dir;
	out->gl_lstat = lstat;
	out->gl_stat = stat;
	ret = real(pattern, flags | GLOB_ALTDIRFUNC, error, out);
	out->gl_flags &= ~GLOB_ALTDIRFUNC;
	out->gl_opendir = before.gl_opendir;
	out->gl_readdir = before.gl_readdir;
	out->gl_closedir = before.gl_closedir;
	out->gl_lstat = before.gl_lstat;
	out->gl_stat = before.gl_stat;
	return ret;
}

EXPORT int glob(const char *pattern, int flags, int (*error)(const char *, int), glob_t *out)
{
	return look(REAL(glob), pattern, flags, error, out);
}

EXPORT int glob64(const char *pattern, int flags, int (*error)(const char *, int), glob64_t *out)
{
	return look((glob_fn *)REAL(glob64), pattern, flags, error, (glob_t *)out);
}
