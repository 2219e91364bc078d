// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Extended attributes, which programs that list and copy files ask for. A kernel's device nodes and
 * its files in /sys have none. What the instance's own files have, by the file system that they are
 * in, is not told.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"
#include "names.h"

enum what { GET, SET };

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Whether the file is there: 0 or -errno. */
static int find(const char *to, int flags)
{
	struct stat st;

	return (int)sh_sys(syscall(SYS_newfstatat, AT_FDCWD, to, &st, flags));
}

/* What a kernel says of one attribute of a node, or of a file in /sys. */
static int about(const char *to, int flags, const char *name, enum what what)
{
	int err = find(to, flags);

	if (err)
		return err;
	/* Access lists are for files of /dev; /sys has none. Neither keeps a new one here. */
	if (begins(name, "system.") && (what == SET || begins(to + shim.root_len, "/sys")))
		return -EOPNOTSUPP;
	return what == SET ? -EPERM : -ENODATA;
}

#define GETXATTR(name, flags)                                                                      \
	EXPORT ssize_t name(const char *path, const char *attribute, void *value, size_t size)     \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		const char *to = shim_redirect(path, buf);                                         \
                                                                                                   \
		if (to != buf || !attribute)                                                       \
			return REAL(name)(path, attribute, value, size);                           \
		RETURN_ERRNO(about(to, flags, attribute, GET));                                    \
	}
#define LISTXATTR(name, flags)                                                                     \
	EXPORT ssize_t name(const char *path, char *list, size_t size)                             \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		const char *to = shim_redirect(path, buf);                                         \
                                                                                                   \
		if (to != buf)                                                                     \
			return REAL(name)(path, list, size);                                       \
		RETURN_ERRNO(find(to, flags));                                                     \
	}
#define SETXATTR(name, flags)                                                                      \
	EXPORT int name(const char *path, const char *attribute, const void *value, size_t size,   \
			int how)                                                                   \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		const char *to = shim_redirect(path, buf);                                         \
                                                                                                   \
		if (to != buf || !attribute)                                                       \
			return REAL(name)(path, attribute, value, size, how);                      \
		RETURN_ERRNO(about(to, flags, attribute, SET));                                    \
	}
#define REMOVEXATTR(name, flags)                                                                   \
	EXPORT int name(const char *path, const char *attribute)                                   \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		const char *to = shim_redirect(path, buf);                                         \
                                                                                                   \
		if (to != buf || !attribute)                                                       \
			return REAL(name)(path, attribute);                                        \
		RETURN_ERRNO(about(to, flags, attribute, SET));                                    \
	}

GETXATTR(getxattr, 0)
GETXATTR(lgetxattr, AT_SYMLINK_NOFOLLOW)
LISTXATTR(listxattr, 0)
LISTXATTR(llistxattr, AT_SYMLINK_NOFOLLOW)
SETXATTR(setxattr, 0)
SETXATTR(lsetxattr, AT_SYMLINK_NOFOLLOW)
REMOVEXATTR(removexattr, 0)
REMOVEXATTR(lremovexattr, AT_SYMLINK_NOFOLLOW)
