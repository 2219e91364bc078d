// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Questions about paths: may one be used, where does it lead? Answers name places below /sys, never
 * in the instance.
 */

/* With it the C library's headers define some of these names, too. */
#undef _FORTIFY_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"
#include "names.h"

EXPORT int access(const char *path, int mode)
{
	char buf[PATH_MAX];

	return REAL(access)(shim_redirect(path, buf), mode);
}

EXPORT int eaccess(const char *path, int mode)
{
	char buf[PATH_MAX];

	return REAL(eaccess)(shim_redirect(path, buf), mode);
}

EXPORT int euidaccess(const char *path, int mode)
{
	char buf[PATH_MAX];

	return REAL(euidaccess)(shim_redirect(path, buf), mode);
}

EXPORT int faccessat(int fd, const char *path, int mode, int flags)
{
	char buf[PATH_MAX];

	return REAL(faccessat)(fd, shim_redirect(path, buf), mode, flags);
}

EXPORT ssize_t readlink(const char *path, char *out, size_t len)
{
	char buf[PATH_MAX];

	return REAL(readlink)(shim_redirect(path, buf), out, len);
}

EXPORT ssize_t readlinkat(int fd, const char *path, char *out, size_t len)
{
	char buf[PATH_MAX];

	return REAL(readlinkat)(fd, shim_redirect(path, buf), out, len);
}

EXPORT ssize_t __readlink_chk(const char *path, char *out, size_t len, size_t room);
EXPORT ssize_t __readlink_chk(const char *path, char *out, size_t len, size_t room)
{
	char buf[PATH_MAX];

	return REAL(__readlink_chk)(shim_redirect(path, buf), out, len, room);
}

EXPORT ssize_t __readlinkat_chk(int fd, const char *path, char *out, size_t len, size_t room);
EXPORT ssize_t __readlinkat_chk(int fd, const char *path, char *out, size_t len, size_t room)
{
	char buf[PATH_MAX];

	return REAL(__readlinkat_chk)(fd, shim_redirect(path, buf), out, len, room);
}

/* Turns "<instance>/host0/sys/..." into "/sys/...", in place, since that is shorter. */
static char *as_seen(char *result)
{
	if (result && shim.active && !strncmp(result, shim.root, shim.root_len) &&
	    result[shim.root_len] == '/')
		memmove(result, result + shim.root_len, strlen(result + shim.root_len) + 1);
	return result;
}

EXPORT char *realpath(const char *path, char *out)
{
	char buf[PATH_MAX];

	return as_seen(REAL(realpath)(shim_redirect(path, buf), out));
}

EXPORT char *__realpath_chk(const char *path, char *out, size_t room);
EXPORT char *__realpath_chk(const char *path, char *out, size_t room)
{
	char buf[PATH_MAX];

	return as_seen(REAL(__realpath_chk)(shim_redirect(path, buf), out, room));
}

EXPORT char *canonicalize_file_name(const char *path)
{
	char buf[PATH_MAX];

	return as_seen(REAL(canonicalize_file_name)(shim_redirect(path, buf)));
}
